/* SPDX-License-Identifier: MIT */
/* vLLM's initial mapping of vllm-project/vllm#41141, which is not merged: one JSON line with the
 * experts of all slots of each MoE layer, by the layer's number from 0 as a string. */
#include <stdio.h>

#include "base/memory.h"
#include "format/json_tree.h"
#include "format/quote.h"
#include "format/vllm_record.h"

static const char type[] = EPLB_VLLM_MAPPING_TYPE;
static const char layers_key[] = EPLB_VLLM_MAPPING_KEY;
static const char slots_key[] = "num_slots";
static const char redundant_key[] = "num_redundant_experts";
static const char top[] = "the document";

static bool probe(const eplb_probe *probe)
{
    return eplb_vllm_probe(probe, type, layers_key);
}

static eplb_status check_record(const cJSON *tree, const char *name, eplb_error *error)
{
    const cJSON *stated;
    int32_t version = 0;
    eplb_status status = eplb_json_member(tree, EPLB_VLLM_TYPE_KEY, name, top, &stated, error);
    if (status == EPLB_OK && (!cJSON_IsString(stated) || strcmp(stated->valuestring, type) != 0)) {
        const char *text = cJSON_IsString(stated) ? stated->valuestring : "no string";
        status =
            eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s '%s', expected '%s'", name,
                           EPLB_VLLM_TYPE_KEY, eplb_quote_bytes(text, strlen(text)).text, type);
    }
    if (status == EPLB_OK) {
        status = eplb_json_integer_member(tree, "version", name, top, &version, error);
    }
    if (status == EPLB_OK && version != EPLB_VLLM_VERSION) {
        status = eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s: version %d, only %d is known",
                                name, version, EPLB_VLLM_VERSION);
    }
    return status;
}

/* The slots and the experts without a second replica are the logical experts. */
static eplb_status read_numbers(const cJSON *tree, int32_t *slots, eplb_map *map, eplb_error *error)
{
    int32_t redundant = 0;
    eplb_status status = eplb_json_integer_member(tree, slots_key, map->name, top, slots, error);
    if (status == EPLB_OK) {
        status = eplb_json_integer_member(tree, redundant_key, map->name, top, &redundant, error);
    }
    if (status == EPLB_OK && (*slots < 1 || redundant < 0 || redundant >= *slots)) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s %d not in 0..%s - 1, which is %d",
                                map->name, redundant_key, redundant, slots_key, *slots - 1);
    }
    map->width = *slots - redundant;
    return status;
}

/* The number of a layer, in decimal digits as Python writes them. */
static bool parse_layer(const char *key, int32_t layers, int32_t *layer)
{
    return eplb_listing_number(key, "", "", layer) && *layer < layers &&
           (key[0] != '0' || key[1] == '\0');
}

static eplb_status read_layer(const cJSON *list, eplb_map *map, eplb_error *error)
{
    int32_t layer = 0;
    if (!parse_layer(list->string, map->layers, &layer)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: layer '%s' among %d: MoE layers are \"0\" to \"%d\"", map->name,
                              eplb_quote_bytes(list->string, strlen(list->string)).text,
                              map->layers, map->layers - 1);
    }
    if (map->layer_ids[layer] >= 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: layer %d is listed twice", map->name,
                              layer);
    }
    map->layer_ids[layer] = layer;
    char where[32];
    snprintf(where, sizeof(where), "layer %d", layer);
    int32_t *row = eplb_map_row(map, layer);
    eplb_status status = eplb_json_integers(list, map->name, where, map->slots, row, error);
    for (int32_t s = 0; s < map->slots && status == EPLB_OK; s++) {
        if (row[s] >= map->width) {
            status = eplb_error_set(
                error, EPLB_ERROR_DATA, "%s: layer %d: slot %d: expert %d, but %s - %s is %d",
                map->name, layer, s, row[s], slots_key, redundant_key, map->width);
        }
    }
    return status;
}

/* What num_slots says becomes memory only when all lists are as long. */
static eplb_status check_lengths(const cJSON *layers, int32_t slots, const char *name,
                                 eplb_error *error)
{
    for (const cJSON *list = layers->child; list != NULL; list = list->next) {
        if (!cJSON_IsArray(list) || eplb_json_length(list) != (size_t)slots) {
            return eplb_error_set(
                error, EPLB_ERROR_PARSE, "%s: layer '%s': expected a list of %d slots, as %s says",
                name, eplb_quote_bytes(list->string, strlen(list->string)).text, slots, slots_key);
        }
    }
    return EPLB_OK;
}

static eplb_status read_tree(const cJSON *tree, const eplb_read_options *options, eplb_map *map,
                             eplb_error *error)
{
    const cJSON *layers;
    int32_t slots = 0;
    eplb_status status = check_record(tree, map->name, error);
    if (status == EPLB_OK) {
        status = read_numbers(tree, &slots, map, error);
    }
    if (status == EPLB_OK) {
        status = eplb_json_member(tree, layers_key, map->name, top, &layers, error);
    }
    if (status == EPLB_OK && !cJSON_IsObject(layers)) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: '%s' is not an object", map->name,
                                layers_key);
    }
    if (status == EPLB_OK) {
        status = check_lengths(layers, slots, map->name, error);
    }
    if (status == EPLB_OK) {
        status = eplb_map_shape(map, options, eplb_json_length(layers), (size_t)slots, error);
    }
    for (int32_t l = 0; l < map->layers && status == EPLB_OK; l++) {
        map->layer_ids[l] = -1;
    }
    const cJSON *list = status == EPLB_OK ? layers->child : NULL;
    for (; list != NULL && status == EPLB_OK; list = list->next) {
        status = read_layer(list, map, error);
    }
    return status;
}

static eplb_status read_placement(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    cJSON *tree;
    eplb_status status = eplb_json_read(reading, &tree, error);
    if (status == EPLB_OK) {
        status = read_tree(tree, &reading->options, map, error);
        cJSON_Delete(tree);
    }
    return status;
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    (void)error;
    int32_t slots = eplb_placement_slots(placement);
    eplb_text_add(text, "{\"record_type\":\"eplb_initial_mapping\",\"version\":1,"
                        "\"num_redundant_experts\":");
    eplb_text_add_integer(text, slots - eplb_placement_experts(placement));
    eplb_text_add(text, ",\"num_slots\":");
    eplb_text_add_integer(text, slots);
    eplb_text_add(text, ",\"initial_global_assignments\":{");
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        eplb_text_add(text, l > 0 ? ",\"" : "\"");
        eplb_text_add_integer(text, l);
        eplb_text_add(text, "\":[");
        eplb_text_add_list(text, eplb_placement_row(placement, l), slots, ",");
        eplb_text_add(text, "]");
    }
    eplb_text_add(text, "}}\n");
    return EPLB_OK;
}

const eplb_format eplb_format_vllm_mapping = {
    .name = "vllm_mapping",
    .description = "vLLM's initial mapping: one JSON line with the slots of each MoE layer",
    .engine = "vLLM",
    .recognised = "JSON line of the record type eplb_initial_mapping",
    .change = "vllm-project/vllm#41141",
    .flags = EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT | EPLB_FORMAT_OPEN,
    .probe = probe,
    .placement = {.read = read_placement, .write = write_placement},
};
