/* SPDX-License-Identifier: MIT */
#include "format/map.h"

#include "base/memory.h"

eplb_status eplb_map_shape(eplb_map *map, const eplb_read_options *options, size_t layers,
                           size_t slots, eplb_error *error)
{
    if (layers == 0 || slots == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %zu layers of %zu slots: nothing to read", map->name, layers,
                              slots);
    }
    if (layers > (size_t)options->max_layers || slots > (size_t)options->max_slots) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT,
                              "%s: %zu layers of %zu slots, limits %d and %d", map->name, layers,
                              slots, options->max_layers, options->max_slots);
    }
    size_t count;
    if (!eplb_size_mul(layers, slots, &count)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "%s: %zu layers of %zu slots: too large",
                              map->name, layers, slots);
    }
    map->layers = (int32_t)layers;
    map->slots = (int32_t)slots;
    map->layer_ids = eplb_alloc(&map->hooks, layers, sizeof(*map->layer_ids));
    map->experts = eplb_alloc(&map->hooks, count, sizeof(*map->experts));
    if (map->layer_ids == NULL || map->experts == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t l = 0; l < map->layers; l++) {
        map->layer_ids[l] = l;
    }
    return EPLB_OK;
}

int32_t *eplb_map_row(const eplb_map *map, int32_t layer)
{
    return map->experts + (size_t)layer * (size_t)map->slots;
}

void eplb_map_clear(eplb_map *map)
{
    eplb_free(&map->hooks, map->layer_ids);
    eplb_free(&map->hooks, map->experts);
    eplb_free(&map->hooks, map->gpu_slots);
    eplb_free(&map->hooks, map->most_slots);
    map->layer_ids = map->experts = map->gpu_slots = map->most_slots = NULL;
}

/* Finds the number of experts and makes sure that every id is one, or -1. */
static eplb_status find_experts(const eplb_map *map, const eplb_read_options *options,
                                int32_t *experts, eplb_error *error)
{
    int32_t end = options->experts > 0 ? options->experts : options->max_experts;
    if (options->experts > 0 && map->width > 0 && map->width != options->experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %d experts, expected %d", map->name,
                              map->width, options->experts);
    }
    *experts = map->width > 0 ? map->width : options->experts;
    for (int32_t l = 0; l < map->layers; l++) {
        const int32_t *row = eplb_map_row(map, l);
        for (int32_t s = 0; s < map->slots; s++) {
            if (row[s] < -1 || row[s] >= end) {
                eplb_status status =
                    row[s] >= end && options->experts == 0 ? EPLB_ERROR_LIMIT : EPLB_ERROR_DATA;
                return eplb_error_set(error, status,
                                      "%s: layer %d: slot %d: expert %d not in 0..%d (or -1 for an "
                                      "empty slot)",
                                      map->name, map->layer_ids[l], s, row[s], end - 1);
            }
            *experts = row[s] >= *experts ? row[s] + 1 : *experts;
        }
    }
    if (*experts == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: every slot is empty: no experts at all",
                              map->name);
    }
    return EPLB_OK;
}

static eplb_status find_gpus(const eplb_map *map, const eplb_read_options *options, int32_t *gpus,
                             eplb_error *error)
{
    if (map->gpus > 0 && options->gpus > 0 && map->gpus != options->gpus) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: made for %d GPUs, expected %d",
                              map->name, map->gpus, options->gpus);
    }
    *gpus = map->gpus > 0 ? map->gpus : options->gpus;
    if (*gpus == 0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "%s: the file does not say how many GPUs its %d slots are for: give "
                              "their number",
                              map->name, map->slots);
    }
    if (map->gpu_slots == NULL && map->slots % *gpus != 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d slots cannot be spread evenly over %d GPUs", map->name,
                              map->slots, *gpus);
    }
    return EPLB_OK;
}

/* GPUs with equally many slots, or with as many as the map says of each. */
static eplb_status make_cluster(const eplb_map *map, const eplb_read_options *options, int32_t gpus,
                                eplb_cluster **cluster, eplb_error *error)
{
    bool uneven = map->gpu_slots != NULL;
    eplb_status status = eplb_cluster_create(
        cluster, &map->hooks, gpus, uneven ? 1 : map->slots / gpus, options->gpus_per_node, error);
    for (int32_t g = 0; g < gpus && uneven && status == EPLB_OK; g++) {
        status = eplb_cluster_set_slots(*cluster, g, map->most_slots[g], error);
    }
    return status;
}

static bool has_uneven_layers(const eplb_map *map)
{
    for (int32_t l = 0; map->gpu_slots != NULL && l < map->layers; l++) {
        const int32_t *slots = map->gpu_slots + (size_t)l * (size_t)map->gpus;
        if (memcmp(slots, map->most_slots, (size_t)map->gpus * sizeof(*slots)) != 0) {
            return true;
        }
    }
    return false;
}

static eplb_status fill(const eplb_map *map, eplb_placement *placement, eplb_error *error)
{
    bool uneven = has_uneven_layers(map);
    eplb_status status =
        eplb_placement_set_layer_ids(placement, map->layer_ids, map->model_layers, error);
    if (status == EPLB_OK) {
        status = eplb_placement_set_draft_layers(placement, map->draft_layers, error);
    }
    for (int32_t l = 0; l < map->layers && status == EPLB_OK; l++) {
        if (uneven) {
            const int32_t *slots = map->gpu_slots + (size_t)l * (size_t)map->gpus;
            status = eplb_placement_set_layer_slots(placement, l, slots, error);
        }
        if (status == EPLB_OK) {
            status = eplb_placement_set_row(placement, l, eplb_map_row(map, l), error);
        }
    }
    return status;
}

eplb_status eplb_map_finish(const eplb_map *map, const eplb_read_options *options,
                            eplb_placement **out, eplb_error *error)
{
    int32_t experts = 0;
    int32_t gpus = 0;
    eplb_cluster *cluster = NULL;
    eplb_placement *placement = NULL;
    eplb_status status = find_experts(map, options, &experts, error);
    if (status == EPLB_OK) {
        status = find_gpus(map, options, &gpus, error);
    }
    if (status == EPLB_OK) {
        status = make_cluster(map, options, gpus, &cluster, error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_placement_create(&placement, &map->hooks, cluster, map->layers, experts, error);
    }
    if (status == EPLB_OK) {
        status = fill(map, placement, error);
    }
    eplb_cluster_destroy(&cluster);
    if (status != EPLB_OK) {
        eplb_placement_destroy(&placement);
        return status;
    }
    *out = placement;
    return EPLB_OK;
}
