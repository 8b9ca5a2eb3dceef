/* SPDX-License-Identifier: MIT */
/* Reads YAML by its events, without recursion. Of YAML only what such a file needs is accepted: one
 * document, plain integers, no anchors, aliases or tags. */
#include "format/trtllm_yaml.h"

#include <stdlib.h>
#include <yaml.h>

#include "base/memory.h"
#include "format/quote.h"

/* The list of one layer, as it stands in the file. */
typedef struct listed_layer {
    int32_t id;
    int32_t length;
    size_t first; /* in `experts` */
} listed_layer;

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; empty before the first */
    const eplb_read_options *options;
    eplb_hooks hooks;
    const char *name;
    listed_layer *layers; /* [layer_capacity] */
    int32_t layer_count;
    int32_t layer_capacity;
    int32_t *experts; /* [expert_capacity], all lists one after the other */
    size_t expert_count;
    size_t expert_capacity;
    int32_t slots; /* num_slots; -1 until it was read */
    bool has_updates;
    bool has_layers;
} reader;

/* "FILE:LINE:COLUMN: what" with a quote of the file between `before` and `after`. */
static eplb_status fail_around(const reader *self, eplb_status status, const char *what,
                               const char *before, const char *quote, const char *after,
                               eplb_error *error)
{
    return eplb_error_set(error, status, "%s:%zu:%zu: %s%s%s%s", self->name,
                          self->event.start_mark.line + 1, self->event.start_mark.column + 1, what,
                          before, eplb_quote_bytes(quote, strlen(quote)).text, after);
}

static eplb_status fail(const reader *self, eplb_status status, const char *what, const char *quote,
                        eplb_error *error)
{
    return fail_around(self, status, what, "", quote, "", error);
}

static eplb_status parser_error(const reader *self, eplb_error *error)
{
    const yaml_parser_t *parser = &self->parser;
    if (parser->error == YAML_MEMORY_ERROR) {
        return eplb_out_of_memory(error);
    }
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s:%zu:%zu: %s", self->name,
                          parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                          parser->problem != NULL ? parser->problem : "not YAML");
}

static bool has_anchor_or_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static eplb_status next_event(reader *self, eplb_error *error)
{
    yaml_event_delete(&self->event);
    if (!yaml_parser_parse(&self->parser, &self->event)) {
        return parser_error(self, error);
    }
    return has_anchor_or_tag(&self->event)
               ? fail(self, EPLB_ERROR_PARSE, "anchors, aliases and tags are not accepted", "",
                      error)
               : EPLB_OK;
}

static eplb_status expect_event(reader *self, yaml_event_type_t type, const char *what,
                                eplb_error *error)
{
    eplb_status status = next_event(self, error);
    if (status == EPLB_OK && self->event.type != type) {
        status = fail(self, EPLB_ERROR_PARSE, "expected ", what, error);
    }
    return status;
}

static const char *scalar_text(const reader *self)
{
    return (const char *)self->event.data.scalar.value;
}

/* The integer that the current event is: plain and decimal, without the other forms that YAML 1.1
 * knows (010 is 8 there, 1_0 is 10). */
static bool parse_integer(const reader *self, int32_t *value)
{
    if (self->event.type != YAML_SCALAR_EVENT ||
        self->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return false;
    }
    const char *text = scalar_text(self);
    const char *digits = text + (text[0] == '-' ? 1 : 0);
    size_t length = strlen(digits);
    if (length != self->event.data.scalar.length - (size_t)(digits - text) || length < 1 ||
        length > 10 || strspn(digits, "0123456789") != length || (digits[0] == '0' && length > 1)) {
        return false;
    }
    long long parsed = strtoll(text, NULL, 10);
    *value = (int32_t)parsed;
    return parsed >= INT32_MIN && parsed <= INT32_MAX;
}

static eplb_status current_integer(const reader *self, const char *what, int32_t *value,
                                   eplb_error *error)
{
    if (parse_integer(self, value)) {
        return EPLB_OK;
    }
    if (self->event.type != YAML_SCALAR_EVENT) {
        return fail(self, EPLB_ERROR_PARSE, what, "a list or map", error);
    }
    if (self->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return fail_around(self, EPLB_ERROR_PARSE, what, "the text \"", scalar_text(self), "\"",
                           error);
    }
    return fail(self, EPLB_ERROR_PARSE, what, scalar_text(self), error);
}

static eplb_status grow_experts(reader *self, eplb_error *error)
{
    if (self->expert_count < self->expert_capacity) {
        return EPLB_OK;
    }
    size_t capacity;
    int32_t *experts = NULL;
    if (eplb_size_mul(self->expert_capacity > 0 ? self->expert_capacity : 512, 2, &capacity)) {
        experts = eplb_realloc(&self->hooks, self->experts, capacity, sizeof(*experts));
    }
    if (experts == NULL) {
        return eplb_out_of_memory(error);
    }
    self->experts = experts;
    self->expert_capacity = capacity;
    return EPLB_OK;
}

static eplb_status grow_layers(reader *self, eplb_error *error)
{
    if (self->layer_count == self->options->max_layers) {
        return fail(self, EPLB_ERROR_LIMIT, "more layers than the limit allows", "", error);
    }
    if (self->layer_count < self->layer_capacity) {
        return EPLB_OK;
    }
    int32_t capacity = self->layer_capacity * 2 + 64;
    listed_layer *layers =
        eplb_realloc(&self->hooks, self->layers, (size_t)capacity, sizeof(*layers));
    if (layers == NULL) {
        return eplb_out_of_memory(error);
    }
    self->layers = layers;
    self->layer_capacity = capacity;
    return EPLB_OK;
}

/* Reads the list of one layer, whose id is the current event. */
static eplb_status read_layer(reader *self, eplb_error *error)
{
    eplb_status status = grow_layers(self, error);
    listed_layer layer = {.first = self->expert_count};
    if (status == EPLB_OK) {
        status = current_integer(self, "layer ids are plain integers, not ", &layer.id, error);
    }
    if (status == EPLB_OK && (layer.id < 0 || layer.id >= EPLB_MAX_LAYERS)) {
        status = fail(self, layer.id < 0 ? EPLB_ERROR_DATA : EPLB_ERROR_LIMIT,
                      "layer id out of range: ", scalar_text(self), error);
    }
    if (status == EPLB_OK) {
        status = expect_event(self, YAML_SEQUENCE_START_EVENT, "a list of expert ids", error);
    }
    while (status == EPLB_OK && (status = next_event(self, error)) == EPLB_OK &&
           self->event.type != YAML_SEQUENCE_END_EVENT) {
        if (layer.length == self->options->max_slots) {
            return fail(self, EPLB_ERROR_LIMIT, "more slots than the limit allows", "", error);
        }
        status = grow_experts(self, error);
        if (status == EPLB_OK) {
            status = current_integer(self, "expert ids are plain integers, not ",
                                     &self->experts[self->expert_count], error);
        }
        self->expert_count++;
        layer.length++;
    }
    if (status == EPLB_OK) {
        self->layers[self->layer_count++] = layer;
    }
    return status;
}

static eplb_status read_layers(reader *self, eplb_error *error)
{
    eplb_status status =
        expect_event(self, YAML_MAPPING_START_EVENT, "a map of layer ids to lists", error);
    while (status == EPLB_OK && (status = next_event(self, error)) == EPLB_OK &&
           self->event.type != YAML_MAPPING_END_EVENT) {
        status = read_layer(self, error);
    }
    self->has_layers = true;
    return status;
}

static eplb_status read_number(reader *self, const char *what, int32_t *value, eplb_error *error)
{
    eplb_status status = next_event(self, error);
    if (status == EPLB_OK) {
        status = current_integer(self, what, value, error);
    }
    if (status == EPLB_OK && *value < 0) {
        status = fail(self, EPLB_ERROR_PARSE, what, scalar_text(self), error);
    }
    return status;
}

/* Reads the value of the key that is the current event. */
static eplb_status read_member(reader *self, eplb_error *error)
{
    if (self->event.type != YAML_SCALAR_EVENT) {
        return fail(self, EPLB_ERROR_PARSE, "a key is a list or map", "", error);
    }
    const char *key = scalar_text(self);
    bool slots = strcmp(key, "num_slots") == 0;
    bool updates = strcmp(key, "layer_updates_per_iter") == 0;
    bool layers = strcmp(key, "initial_global_assignments") == 0;
    if (!slots && !updates && !layers) {
        return fail(self, EPLB_ERROR_PARSE, "unknown key ", key, error);
    }
    if ((slots && self->slots >= 0) || (updates && self->has_updates) ||
        (layers && self->has_layers)) {
        return fail(self, EPLB_ERROR_PARSE, "second key ", key, error);
    }
    if (layers) {
        return read_layers(self, error);
    }
    if (slots) {
        return read_number(self, "num_slots is a plain integer >= 0, not ", &self->slots, error);
    }
    int32_t ignored;
    self->has_updates = true;
    return read_number(self, "layer_updates_per_iter is a plain integer >= 0, not ", &ignored,
                       error);
}

static eplb_status read_document(reader *self, eplb_error *error)
{
    eplb_status status = expect_event(self, YAML_STREAM_START_EVENT, "YAML", error);
    if (status == EPLB_OK) {
        status = expect_event(self, YAML_DOCUMENT_START_EVENT, "a document", error);
    }
    if (status == EPLB_OK) {
        status = expect_event(self, YAML_MAPPING_START_EVENT, "a map at the top", error);
    }
    while (status == EPLB_OK && (status = next_event(self, error)) == EPLB_OK &&
           self->event.type != YAML_MAPPING_END_EVENT) {
        status = read_member(self, error);
    }
    if (status == EPLB_OK) {
        status = expect_event(self, YAML_DOCUMENT_END_EVENT, "the end of the document", error);
    }
    return status == EPLB_OK ? expect_event(self, YAML_STREAM_END_EVENT, "one document only", error)
                             : status;
}

static int by_id(const void *a, const void *b)
{
    int32_t left = ((const listed_layer *)a)->id;
    int32_t right = ((const listed_layer *)b)->id;
    return (left > right) - (left < right);
}

static eplb_status missing_key(const reader *self, const char *key, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: no key '%s'", self->name, key);
}

/* What num_slots says becomes memory only when all lists are as long. */
static eplb_status check_lengths(const reader *self, eplb_error *error)
{
    for (int32_t l = 0; l < self->layer_count; l++) {
        const listed_layer *layer = &self->layers[l];
        if (layer->length != self->slots) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: layer %d: %d expert ids, but num_slots is %d", self->name,
                                  layer->id, layer->length, self->slots);
        }
    }
    return EPLB_OK;
}

/* Checks what only the whole file tells, and fills the map in the order of the layer ids. */
static eplb_status fill_map(reader *self, eplb_map *map, eplb_error *error)
{
    if (self->slots < 0 || !self->has_layers) {
        return missing_key(self, self->has_layers ? "num_slots" : "initial_global_assignments",
                           error);
    }
    eplb_status status = check_lengths(self, error);
    if (status == EPLB_OK) {
        status = eplb_map_shape(map, self->options, (size_t)self->layer_count, (size_t)self->slots,
                                error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    qsort(self->layers, (size_t)self->layer_count, sizeof(*self->layers), by_id);
    for (int32_t l = 0; l < self->layer_count; l++) {
        const listed_layer *layer = &self->layers[l];
        if (l > 0 && layer->id == layer[-1].id) {
            return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: layer %d is listed twice",
                                  self->name, layer->id);
        }
        map->layer_ids[l] = layer->id;
        memcpy(eplb_map_row(map, l), self->experts + layer->first,
               (size_t)self->slots * sizeof(*self->experts));
    }
    return EPLB_OK;
}

static eplb_status parse(reader *self, const char *text, size_t length, eplb_error *error)
{
    if (!yaml_parser_initialize(&self->parser)) {
        return eplb_out_of_memory(error);
    }
    yaml_parser_set_input_string(&self->parser, (const unsigned char *)text, length);
    yaml_parser_set_encoding(&self->parser, YAML_UTF8_ENCODING);
    eplb_status status = read_document(self, error);
    yaml_event_delete(&self->event);
    yaml_parser_delete(&self->parser);
    return status;
}

eplb_status eplb_trtllm_read(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    char *text;
    size_t length;
    eplb_status status = eplb_reading_read_all(reading, &text, &length, error);
    if (status != EPLB_OK) {
        return status;
    }
    reader self = {
        .options = &reading->options, .hooks = reading->hooks, .name = map->name, .slots = -1};
    status = parse(&self, text, length, error);
    if (status == EPLB_OK) {
        status = fill_map(&self, map, error);
    }
    eplb_free(&reading->hooks, self.layers);
    eplb_free(&reading->hooks, self.experts);
    eplb_free(&reading->hooks, text);
    return status;
}
