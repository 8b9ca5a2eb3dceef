/* SPDX-License-Identifier: MIT */
#include "format/fastdeploy_lists.h"

#include <stdio.h>

#include "base/memory.h"

static const char slots_key[] = "expert_id_to_ep_rank_array";
static const char numbers_key[] = "expert_in_rank_num_list";

/* What is checked of one layer. */
typedef struct layer_check {
    const eplb_map *map;
    int32_t layer;
    int32_t width;    /* slots in the list of each expert, -1 filled up */
    int32_t *numbers; /* [experts] of replicas */
    int32_t *listed;  /* [width] of one expert */
    int32_t *owner;   /* [slots] the expert that lists it, -1: none */
} layer_check;

static void clear_check(layer_check *self)
{
    eplb_free(&self->map->hooks, self->numbers);
    eplb_free(&self->map->hooks, self->listed);
    eplb_free(&self->map->hooks, self->owner);
}

static eplb_status contradiction(const layer_check *self, int32_t expert, eplb_error *error,
                                 const char *format, ...) EPLB_PRINTF(4, 5);

static eplb_status contradiction(const layer_check *self, int32_t expert, eplb_error *error,
                                 const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return eplb_error_set(error, EPLB_ERROR_DATA, "%s: layer %d: expert %d: %s", self->map->name,
                          self->layer, expert, text);
}

/* One slot in the list of an expert: a slot that holds it, and that is listed once. */
static eplb_status check_slot(layer_check *self, int32_t expert, int32_t index, eplb_error *error)
{
    int32_t slot = self->listed[index];
    bool is_replica = index < self->numbers[expert];
    if (is_replica != (slot >= 0) || slot < -1) {
        return contradiction(self, expert, error, "%s has %d at place %d, but %s says %d replicas",
                             slots_key, slot, index, numbers_key, self->numbers[expert]);
    }
    if (!is_replica) {
        return EPLB_OK;
    }
    if (slot >= self->map->slots) {
        return contradiction(self, expert, error, "%s has slot %d, not in 0..%d", slots_key, slot,
                             self->map->slots - 1);
    }
    int32_t holds = eplb_map_row(self->map, self->layer)[slot];
    if (holds != expert) {
        return contradiction(self, expert, error, "%s has slot %d, which holds expert %d",
                             slots_key, slot, holds);
    }
    if (self->owner[slot] >= 0) {
        return contradiction(self, expert, error, "%s has slot %d twice", slots_key, slot);
    }
    self->owner[slot] = expert;
    return EPLB_OK;
}

static eplb_status check_expert(layer_check *self, const cJSON *list, int32_t expert,
                                eplb_error *error)
{
    char where[96];
    snprintf(where, sizeof(where), "%s: layer %d: expert %d", slots_key, self->layer, expert);
    eplb_status status = eplb_json_integers_of(list, "slots", self->map->name, where, self->width,
                                               self->listed, error);
    int32_t replicas = self->numbers[expert];
    if (status == EPLB_OK && (replicas < 0 || replicas > self->width)) {
        status = contradiction(self, expert, error, "%s says %d replicas, %s has room for 0 to %d",
                               numbers_key, replicas, slots_key, self->width);
    }
    for (int32_t i = 0; i < self->width && status == EPLB_OK; i++) {
        status = check_slot(self, expert, i, error);
    }
    return status;
}

/* A slot that no expert lists is one that the engine never sends tokens to. */
static eplb_status check_owners(const layer_check *self, eplb_error *error)
{
    const int32_t *row = eplb_map_row(self->map, self->layer);
    for (int32_t s = 0; s < self->map->slots; s++) {
        if (row[s] != -1 && self->owner[s] != row[s]) {
            return contradiction(self, row[s], error, "held by slot %d, which %s does not list", s,
                                 slots_key);
        }
    }
    return EPLB_OK;
}

static eplb_status check_layer(layer_check *self, const cJSON *numbers, const cJSON *experts,
                               eplb_error *error)
{
    char where[64];
    int32_t count = self->map->width;
    snprintf(where, sizeof(where), "%s: layer %d", numbers_key, self->layer);
    eplb_status status = eplb_json_integers_of(numbers, "experts", self->map->name, where, count,
                                               self->numbers, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t found = cJSON_IsArray(experts) ? eplb_json_length(experts) : 0;
    if (found != (size_t)count) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s: layer %d: %zu experts, expected %d",
                              self->map->name, slots_key, self->layer, found, count);
    }
    for (int32_t s = 0; s < self->map->slots; s++) {
        self->owner[s] = -1;
    }
    int32_t expert = 0;
    const cJSON *list = experts->child;
    for (; list != NULL && status == EPLB_OK; list = list->next) {
        status = check_expert(self, list, expert++, error);
    }
    return status == EPLB_OK ? check_owners(self, error) : status;
}

/* A list of the document with a row for each layer of the map. */
static eplb_status find_layers(const cJSON *tree, const char *key, const eplb_map *map,
                               const cJSON **layers, eplb_error *error)
{
    eplb_status status = eplb_json_list_member(tree, key, map->name, "the document", layers, error);
    if (status == EPLB_OK && eplb_json_length(*layers) != (size_t)map->layers) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s: %zu layers, expected %d",
                                map->name, key, eplb_json_length(*layers), map->layers);
    }
    return status;
}

/* The first layer says how many experts there are, and its first expert how long the lists of their
 * slots are. */
static eplb_status find_shape(const cJSON *numbers, const cJSON *experts, eplb_map *map,
                              const eplb_read_options *options, size_t *width, eplb_error *error)
{
    size_t count = cJSON_IsArray(numbers->child) ? eplb_json_length(numbers->child) : 0;
    const cJSON *first = cJSON_IsArray(experts->child) ? experts->child->child : NULL;
    *width = cJSON_IsArray(first) ? eplb_json_length(first) : 0;
    if (count == 0 || *width == 0 || *width > INT32_MAX) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: layer 0: %zu experts in %s, the first with %zu slots in %s",
                              map->name, count, numbers_key, *width, slots_key);
    }
    if (count > (size_t)options->max_experts) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: %s: %zu experts, limit %d", map->name,
                              numbers_key, count, options->max_experts);
    }
    map->width = (int32_t)count;
    return EPLB_OK;
}

static eplb_status make_check(layer_check *self, const eplb_map *map, size_t width,
                              eplb_error *error)
{
    *self = (layer_check){.map = map, .width = (int32_t)width};
    const eplb_array arrays[] = {EPLB_ARRAY(self->numbers, (size_t)map->width),
                                 EPLB_ARRAY(self->listed, width),
                                 EPLB_ARRAY(self->owner, (size_t)map->slots)};
    return eplb_alloc_arrays(&map->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

eplb_status eplb_fastdeploy_check_lists(const cJSON *tree, eplb_map *map,
                                        const eplb_read_options *options, eplb_error *error)
{
    const cJSON *numbers;
    const cJSON *experts;
    size_t width = 0;
    eplb_status status = find_layers(tree, numbers_key, map, &numbers, error);
    if (status == EPLB_OK) {
        status = find_layers(tree, slots_key, map, &experts, error);
    }
    if (status == EPLB_OK) {
        status = find_shape(numbers, experts, map, options, &width, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    layer_check check;
    status = make_check(&check, map, width, error);
    numbers = numbers->child;
    experts = experts->child;
    for (; check.layer < map->layers && status == EPLB_OK; check.layer++) {
        status = check_layer(&check, numbers, experts, error);
        numbers = numbers->next;
        experts = experts->next;
    }
    clear_check(&check);
    return status;
}

static eplb_status add_numbers(const eplb_placement *placement, int32_t *numbers, int32_t *width,
                               eplb_text *text, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    int32_t experts = eplb_placement_experts(placement);
    for (int32_t l = 0; l < eplb_placement_layers(placement) && status == EPLB_OK; l++) {
        status = eplb_placement_replica_counts(placement, l, numbers, error);
        for (int32_t e = 0; e < experts && status == EPLB_OK; e++) {
            *width = numbers[e] > *width ? numbers[e] : *width;
        }
        eplb_json_add_row(text, l == 0, numbers, experts);
    }
    return status;
}

static eplb_status add_slots(const eplb_placement *placement, int32_t *slots, int32_t width,
                             eplb_text *text, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < eplb_placement_layers(placement) && status == EPLB_OK; l++) {
        status = eplb_placement_logical_to_physical(placement, l, slots, width, error);
        eplb_text_add(text, l == 0 ? "[" : ",\n[");
        for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
            eplb_text_add(text, e == 0 ? "[" : ",[");
            eplb_text_add_list(text, slots + (size_t)e * (size_t)width, width, ",");
            eplb_text_add(text, "]");
        }
        eplb_text_add(text, "]");
    }
    return status;
}

eplb_status eplb_fastdeploy_add_lists(const eplb_placement *placement, eplb_text *text,
                                      eplb_error *error)
{
    size_t experts = (size_t)eplb_placement_experts(placement);
    int32_t width = 1;
    size_t cells = 0;
    int32_t *slots = NULL;
    int32_t *numbers = eplb_alloc(&text->hooks, experts, sizeof(*numbers));
    eplb_status status = numbers != NULL ? EPLB_OK : eplb_out_of_memory(error);
    if (status == EPLB_OK) {
        eplb_text_add(text, "\"expert_in_rank_num_list\":[\n");
        status = add_numbers(placement, numbers, &width, text, error);
    }
    if (status == EPLB_OK) {
        slots = eplb_size_mul(experts, (size_t)width, &cells)
                    ? eplb_alloc(&text->hooks, cells, sizeof(*slots))
                    : NULL;
        status = slots != NULL ? EPLB_OK : eplb_out_of_memory(error);
    }
    if (status == EPLB_OK) {
        eplb_text_add(text, "\n],\n\"expert_id_to_ep_rank_array\":[\n");
        status = add_slots(placement, slots, width, text, error);
        eplb_text_add(text, "\n]");
    }
    eplb_free(&text->hooks, numbers);
    eplb_free(&text->hooks, slots);
    return status;
}
