/* SPDX-License-Identifier: MIT */
/* vLLM-Ascend's expert_map.json. Its parsers go by the order of the lists and ignore the ids in
 * them, so a file whose ids are not in order, or not complete, would be read as another map. */
#include <stdio.h>

#include "base/memory.h"
#include "format/json_tree.h"
#include "format/probe_json.h"

/* A layer behind those of moe_layer_count, whose id is that number, is the draft model's. */
#define DRAFT_LAYERS 1

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

/* What all layers and devices of a file have alike. */
typedef struct shape {
    const char *name; /* of the file */
    int32_t gpus;
    int32_t slots; /* of each device */
} shape;

static eplb_status read_device(const cJSON *device, int32_t layer, int32_t gpu, const shape *self,
                               int32_t *slots, eplb_error *error)
{
    char where[64];
    snprintf(where, sizeof(where), "layer %d: device %d", layer, gpu);
    const cJSON *experts;
    eplb_status status = check_stated(device, "device_id", (size_t)gpu, self->name, where, error);
    if (status == EPLB_OK) {
        status = eplb_json_list_member(device, "device_expert", self->name, where, &experts, error);
    }
    return status == EPLB_OK
               ? eplb_json_integers(experts, self->name, where, self->slots, slots, error)
               : status;
}

/* The devices of a layer, each `step` slots behind the one before. */
static eplb_status read_layer(const cJSON *layer_object, int32_t layer, const shape *self,
                              int32_t *slots, size_t step, eplb_error *error)
{
    char where[32];
    snprintf(where, sizeof(where), "layer %d", layer);
    const cJSON *devices;
    size_t gpus = (size_t)self->gpus;
    eplb_status status =
        check_stated(layer_object, "layer_id", (size_t)layer, self->name, where, error);
    if (status == EPLB_OK) {
        status = check_stated(layer_object, "device_count", gpus, self->name, where, error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_json_list_member(layer_object, "device_list", self->name, where, &devices, error);
    }
    if (status == EPLB_OK && eplb_json_length(devices) != gpus) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE,
                                "%s: %s: %zu devices in device_list, %zu "
                                "in device_count",
                                self->name, where, eplb_json_length(devices), gpus);
    }
    int32_t gpu = 0;
    const cJSON *device = status == EPLB_OK ? devices->child : NULL;
    for (; device != NULL && status == EPLB_OK; device = device->next) {
        status = read_device(device, layer, gpu, self, slots + (size_t)gpu * step, error);
        gpu++;
    }
    return status;
}

/* All layers behind each other; with a step of 0 each device in the place of the one before. */
static eplb_status read_layers(const cJSON *layers, const shape *self, int32_t *slots, size_t step,
                               eplb_error *error)
{
    eplb_status status = EPLB_OK;
    int32_t layer = 0;
    for (const cJSON *object = layers->child; object != NULL && status == EPLB_OK;
         object = object->next) {
        size_t before = (size_t)layer * (size_t)self->gpus * step;
        status = read_layer(object, layer++, self, slots + before, step, error);
    }
    return status;
}

/* What the first layer claims becomes memory for all of them only when all of it is there. */
static eplb_status check_layers(const cJSON *layers, const shape *self, const eplb_hooks *hooks,
                                eplb_error *error)
{
    int32_t *slots = eplb_alloc(hooks, (size_t)self->slots, sizeof(*slots));
    eplb_status status =
        slots != NULL ? read_layers(layers, self, slots, 0, error) : eplb_out_of_memory(error);
    eplb_free(hooks, slots);
    return status;
}

/* The first device of the first layer says the shape of all. */
static eplb_status find_shape(const cJSON *layers, const eplb_read_options *options, shape *self,
                              eplb_error *error)
{
    const cJSON *devices;
    const cJSON *experts;
    eplb_status status = eplb_json_integer_member(layers->child, "device_count", self->name,
                                                  "layer 0", &self->gpus, error);
    if (status == EPLB_OK && (self->gpus < 1 || self->gpus > EPLB_MAX_GPUS)) {
        status =
            eplb_error_set(error, EPLB_ERROR_PARSE, "%s: layer 0: device_count %d not in 1..%d",
                           self->name, self->gpus, EPLB_MAX_GPUS);
    }
    if (status == EPLB_OK) {
        status = eplb_json_list_member(layers->child, "device_list", self->name, "layer 0",
                                       &devices, error);
    }
    if (status == EPLB_OK) {
        status = eplb_json_list_member(devices->child, "device_expert", self->name,
                                       "layer 0: device 0", &experts, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    size_t slots = eplb_json_length(experts);
    if (slots == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %zu layers of 0 slots: nothing to read",
                              self->name, eplb_json_length(layers));
    }
    if (slots > (size_t)options->max_slots) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: layer 0: device 0: %zu slots, limit %d",
                              self->name, slots, options->max_slots);
    }
    self->slots = (int32_t)slots;
    return EPLB_OK;
}

/* The layers of moe_layer_count, and perhaps the draft model's. */
static eplb_status count_layers(const cJSON *tree, const cJSON *layers, eplb_map *map,
                                const char *where, eplb_error *error)
{
    int32_t stated;
    eplb_status status =
        eplb_json_integer_member(tree, "moe_layer_count", map->name, where, &stated, error);
    size_t listed = eplb_json_length(layers);
    if (status != EPLB_OK || (stated >= 0 && listed == (size_t)stated)) {
        return status;
    }
    if (stated > 0 && listed == (size_t)stated + DRAFT_LAYERS) {
        map->draft_layers = DRAFT_LAYERS;
        return EPLB_OK;
    }
    bool has_more = stated > 0 && listed > (size_t)stated;
    return eplb_error_set(error, EPLB_ERROR_PARSE,
                          "%s: layer_list has %zu layers, moe_layer_count says %d%s", map->name,
                          listed, stated, has_more ? ": at most one more, of the draft model" : "");
}

static eplb_status read_tree(const cJSON *tree, const eplb_read_options *options, eplb_map *map,
                             eplb_error *error)
{
    static const char top[] = "the document";
    const cJSON *layers;
    eplb_status status = eplb_json_list_member(tree, "layer_list", map->name, top, &layers, error);
    if (status == EPLB_OK) {
        status = count_layers(tree, layers, map, top, error);
    }
    shape all = {.name = map->name};
    if (status == EPLB_OK) {
        status = find_shape(layers, options, &all, error);
    }
    if (status == EPLB_OK) {
        status = check_layers(layers, &all, &map->hooks, error);
    }
    if (status == EPLB_OK) {
        map->gpus = all.gpus;
        status = eplb_map_shape(map, options, eplb_json_length(layers),
                                (size_t)all.gpus * (size_t)all.slots, error);
    }
    return status == EPLB_OK ? read_layers(layers, &all, map->experts, (size_t)all.slots, error)
                             : status;
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
    eplb_text_add_integer(text, eplb_placement_layers(placement) -
                                    eplb_placement_draft_layers(placement));
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
    .placement = {.read = read_placement, .write = write_placement, .draft_layers = DRAFT_LAYERS},
};
