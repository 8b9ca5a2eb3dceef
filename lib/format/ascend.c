/* SPDX-License-Identifier: MIT */
/* vLLM-Ascend's expert_map.json. Its parsers go by the order of the lists and ignore the ids in
 * them, so a file whose ids are not in order, or not complete, would be read as another map. */
#include <stdio.h>

#include "base/memory.h"
#include "format/json_tree.h"
#include "format/probe_json.h"

static bool probe(const eplb_probe *probe)
{
    return eplb_probe_json_key(probe, "layer_list") ||
           eplb_probe_json_key(probe, "moe_layer_count");
}

/* A count or an id that the file must state as it is. */
static eplb_status check_stated(const cJSON *object, const char *key, size_t expected,
                                const char *name, const char *where, eplb_error *error)
{
    int32_t stated;
    eplb_status status = eplb_json_integer_member(object, key, name, where, &stated, error);
    if (status == EPLB_OK && (stated < 0 || (size_t)stated != expected)) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s: %s %d, expected %zu", name, where,
                                key, stated, expected);
    }
    return status;
}

static eplb_status read_device(const cJSON *device, int32_t layer, int32_t gpu, eplb_map *map,
                               eplb_error *error)
{
    char where[64];
    snprintf(where, sizeof(where), "layer %d: device %d", layer, gpu);
    const cJSON *experts;
    eplb_status status = check_stated(device, "device_id", (size_t)gpu, map->name, where, error);
    if (status == EPLB_OK) {
        status = eplb_json_list_member(device, "device_expert", map->name, where, &experts, error);
    }
    int32_t slots = map->slots / map->gpus;
    return status == EPLB_OK
               ? eplb_json_integers(experts, map->name, where, slots,
                                    eplb_map_row(map, layer) + (size_t)gpu * (size_t)slots, error)
               : status;
}

static eplb_status read_layer(const cJSON *layer_object, int32_t layer, eplb_map *map,
                              eplb_error *error)
{
    char where[32];
    snprintf(where, sizeof(where), "layer %d", layer);
    const cJSON *devices;
    size_t gpus = (size_t)map->gpus;
    eplb_status status =
        check_stated(layer_object, "layer_id", (size_t)layer, map->name, where, error);
    if (status == EPLB_OK) {
        status = check_stated(layer_object, "device_count", gpus, map->name, where, error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_json_list_member(layer_object, "device_list", map->name, where, &devices, error);
    }
    if (status == EPLB_OK && eplb_json_length(devices) != gpus) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE,
                                "%s: %s: %zu devices in device_list, %zu "
                                "in device_count",
                                map->name, where, eplb_json_length(devices), gpus);
    }
    int32_t gpu = 0;
    const cJSON *device = status == EPLB_OK ? devices->child : NULL;
    for (; device != NULL && status == EPLB_OK; device = device->next) {
        status = read_device(device, layer, gpu++, map, error);
    }
    return status;
}

/* The first device of the first layer says the shape of all. */
static eplb_status find_shape(const cJSON *layers, const eplb_read_options *options, eplb_map *map,
                              eplb_error *error)
{
    const cJSON *devices;
    const cJSON *experts;
    int32_t gpus = 0;
    eplb_status status =
        eplb_json_integer_member(layers->child, "device_count", map->name, "layer 0", &gpus, error);
    if (status == EPLB_OK && (gpus < 1 || gpus > EPLB_MAX_GPUS)) {
        status =
            eplb_error_set(error, EPLB_ERROR_PARSE, "%s: layer 0: device_count %d not in 1..%d",
                           map->name, gpus, EPLB_MAX_GPUS);
    }
    if (status == EPLB_OK) {
        status = eplb_json_list_member(layers->child, "device_list", map->name, "layer 0", &devices,
                                       error);
    }
    if (status == EPLB_OK) {
        status = eplb_json_list_member(devices->child, "device_expert", map->name,
                                       "layer 0: device 0", &experts, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    map->gpus = gpus;
    size_t slots;
    return eplb_size_mul(eplb_json_length(experts), (size_t)gpus, &slots)
               ? eplb_map_shape(map, options, eplb_json_length(layers), slots, error)
               : eplb_error_set(error, EPLB_ERROR_OVERFLOW, "%s: too many slots", map->name);
}

/* Its parsers take the layer behind the others, whose id is their number, for the draft model. */
static bool has_draft_layer(const cJSON *layers, int32_t moe_layers)
{
    const cJSON *last = layers->child != NULL ? layers->child->prev : NULL;
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(last, "layer_id");
    return eplb_json_length(layers) == (size_t)moe_layers + 1 && cJSON_IsNumber(id) &&
           id->valuedouble == (double)moe_layers;
}

static eplb_status check_layer_count(const cJSON *tree, const cJSON *layers, const char *name,
                                     const char *where, eplb_error *error)
{
    int32_t stated;
    eplb_status status =
        eplb_json_integer_member(tree, "moe_layer_count", name, where, &stated, error);
    size_t listed = eplb_json_length(layers);
    if (status != EPLB_OK || (stated >= 0 && listed == (size_t)stated)) {
        return status;
    }
    if (stated > 0 && has_draft_layer(layers, stated)) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: layer %d, behind the %d of moe_layer_count, is a draft (MTP) "
                              "layer: maps with one are not supported",
                              name, stated, stated);
    }
    return eplb_error_set(error, EPLB_ERROR_PARSE,
                          "%s: layer_list has %zu layers, moe_layer_count says %d", name, listed,
                          stated);
}

static eplb_status read_tree(const cJSON *tree, const eplb_read_options *options, eplb_map *map,
                             eplb_error *error)
{
    static const char top[] = "the document";
    const cJSON *layers;
    eplb_status status = eplb_json_list_member(tree, "layer_list", map->name, top, &layers, error);
    if (status == EPLB_OK) {
        status = check_layer_count(tree, layers, map->name, top, error);
    }
    if (status == EPLB_OK) {
        status = find_shape(layers, options, map, error);
    }
    int32_t layer = 0;
    const cJSON *object = status == EPLB_OK ? layers->child : NULL;
    for (; object != NULL && status == EPLB_OK; object = object->next) {
        status = read_layer(object, layer++, map, error);
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

static void add_device(eplb_text *text, int32_t gpu, const int32_t *experts, int32_t slots)
{
    eplb_text_add(text, gpu > 0 ? ",{\"device_id\":" : "{\"device_id\":");
    eplb_text_add_integer(text, gpu);
    eplb_text_add(text, ",\"device_expert\":[");
    eplb_text_add_list(text, experts, slots, ",");
    eplb_text_add(text, "]}");
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    (void)error;
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    int32_t gpus = eplb_cluster_gpus(cluster);
    int32_t slots = eplb_cluster_uniform_slots(cluster);
    eplb_text_add(text, "{\"moe_layer_count\":");
    eplb_text_add_integer(text, eplb_placement_layers(placement));
    eplb_text_add(text, ",\"layer_list\":[\n");
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        eplb_text_add(text, l > 0 ? ",\n{\"layer_id\":" : "{\"layer_id\":");
        eplb_text_add_integer(text, l);
        eplb_text_add(text, ",\"device_count\":");
        eplb_text_add_integer(text, gpus);
        eplb_text_add(text, ",\"device_list\":[");
        for (int32_t g = 0; g < gpus; g++) {
            add_device(text, g, eplb_placement_row(placement, l) + (size_t)g * (size_t)slots,
                       slots);
        }
        eplb_text_add(text, "]}");
    }
    eplb_text_add(text, "\n]}\n");
    return EPLB_OK;
}

const eplb_format eplb_format_ascend = {
    .name = "ascend",
    .description = "vLLM-Ascend's expert_map.json",
    .engine = "vLLM-Ascend",
    .recognised = "JSON with the key moe_layer_count",
    .flags = EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT,
    .probe = probe,
    .placement = {.read = read_placement, .write = write_placement},
};
