/* SPDX-License-Identifier: MIT */
#include <eplb/placement.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"
#include "model/layer_ids.h"
#include "model/placement.h"
#include "model/row.h"

static eplb_status check_shape(int32_t layers, int32_t experts, eplb_error *error)
{
    eplb_status status =
        eplb_check_range("placement", "number of layers", layers, 1, EPLB_MAX_LAYERS, error);
    return status == EPLB_OK ? eplb_check_range("placement", "number of experts", experts, 1,
                                                EPLB_MAX_EXPERTS, error)
                             : status;
}

eplb_status eplb_placement_create(eplb_placement **out, const eplb_hooks *hooks,
                                  const eplb_cluster *cluster, int32_t layers, int32_t experts,
                                  eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("placement", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("placement", "cluster", cluster, error);
    }
    if (status == EPLB_OK) {
        status = check_shape(layers, experts, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_placement *placement = eplb_alloc_zeroed(&resolved, 1, sizeof(*placement));
    if (placement == NULL) {
        return eplb_out_of_memory(error);
    }
    placement->hooks = resolved;
    placement->layers = layers;
    placement->experts = experts;
    placement->slots = eplb_cluster_slots(cluster);
    size_t count;
    status = eplb_size_mul((size_t)layers, (size_t)placement->slots, &count)
                 ? eplb_cluster_clone(&placement->cluster, &resolved, cluster, error)
                 : eplb_error_set(error, EPLB_ERROR_OVERFLOW, "placement: its size overflows");
    if (status == EPLB_OK) {
        placement->map = eplb_alloc(&resolved, count, sizeof(*placement->map));
        if (placement->map == NULL ||
            eplb_layer_ids_init(&placement->layer_ids, &resolved, layers) != EPLB_OK) {
            status = eplb_out_of_memory(error);
        }
    }
    if (status != EPLB_OK) {
        eplb_placement_destroy(&placement);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        placement->map[i] = -1;
    }
    *out = placement;
    return EPLB_OK;
}

eplb_status eplb_placement_clone(eplb_placement **out, const eplb_hooks *hooks,
                                 const eplb_placement *placement, eplb_error *error)
{
    eplb_status status = eplb_placement_create(out, hooks, placement->cluster, placement->layers,
                                               placement->experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t layers = (size_t)placement->layers;
    memcpy((*out)->map, placement->map,
           layers * (size_t)placement->slots * sizeof(*placement->map));
    memcpy((*out)->layer_ids.ids, placement->layer_ids.ids, layers * sizeof(int32_t));
    (*out)->layer_ids.model_layers = placement->layer_ids.model_layers;
    (*out)->draft_layers = placement->draft_layers;
    for (int32_t l = 0; l < placement->layers && status == EPLB_OK; l++) {
        status = eplb_placement_set_layer_slots(*out, l, eplb_placement_layer_slots(placement, l),
                                                error);
    }
    if (status != EPLB_OK) {
        eplb_placement_destroy(out);
    }
    return status;
}

void eplb_placement_destroy(eplb_placement **placement)
{
    if (placement == NULL || *placement == NULL) {
        return;
    }
    eplb_placement *self = *placement;
    eplb_hooks hooks = self->hooks;
    eplb_cluster_destroy(&self->cluster);
    eplb_free(&hooks, self->layer_ids.ids);
    eplb_free(&hooks, self->map);
    eplb_free(&hooks, self->open);
    eplb_free(&hooks, self);
    *placement = NULL;
}

const eplb_cluster *eplb_placement_cluster(const eplb_placement *placement)
{
    return placement->cluster;
}

int32_t eplb_placement_layers(const eplb_placement *placement)
{
    return placement->layers;
}

int32_t eplb_placement_experts(const eplb_placement *placement)
{
    return placement->experts;
}

int32_t eplb_placement_slots(const eplb_placement *placement)
{
    return placement->slots;
}

eplb_status eplb_placement_set_layer_ids(eplb_placement *placement, const int32_t *ids,
                                         int32_t model_layers, eplb_error *error)
{
    return eplb_layer_ids_set(&placement->layer_ids, placement->layers, ids, model_layers, error);
}

const int32_t *eplb_placement_layer_ids(const eplb_placement *placement)
{
    return placement->layer_ids.ids;
}

int32_t eplb_placement_model_layers(const eplb_placement *placement)
{
    return placement->layer_ids.model_layers;
}

eplb_status eplb_placement_set_draft_layers(eplb_placement *placement, int32_t count,
                                            eplb_error *error)
{
    eplb_status status = eplb_check_range("placement", "number of draft layers", count, 0,
                                          placement->layers - 1, error);
    if (status == EPLB_OK) {
        placement->draft_layers = count;
    }
    return status;
}

int32_t eplb_placement_draft_layers(const eplb_placement *placement)
{
    return placement->draft_layers;
}

static eplb_status check_layer(const eplb_placement *placement, int32_t layer, const void *array,
                               eplb_error *error)
{
    eplb_status status =
        eplb_check_range("placement", "layer", layer, 0, placement->layers - 1, error);
    return status == EPLB_OK ? eplb_check_given("placement", "array", array, error) : status;
}

int32_t *eplb_placement_row_of(eplb_placement *placement, int32_t layer)
{
    return placement->map + (size_t)layer * (size_t)placement->slots;
}

const int32_t *eplb_placement_row(const eplb_placement *placement, int32_t layer)
{
    if (layer < 0 || layer >= placement->layers) {
        return NULL;
    }
    return placement->map + (size_t)layer * (size_t)placement->slots;
}

eplb_status eplb_placement_set_row(eplb_placement *placement, int32_t layer, const int32_t *experts,
                                   eplb_error *error)
{
    eplb_status status = check_layer(placement, layer, experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    for (int32_t s = 0; s < placement->slots; s++) {
        if (experts[s] < -1 || experts[s] >= placement->experts) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "layer %d: slot %d: expert %d not in 0..%d (or -1 for an empty "
                                  "slot)",
                                  placement->layer_ids.ids[layer], s, experts[s],
                                  placement->experts - 1);
        }
    }
    memcpy(eplb_placement_row_of(placement, layer), experts,
           (size_t)placement->slots * sizeof(*experts));
    return EPLB_OK;
}

eplb_status eplb_placement_spread(eplb_placement *placement, int32_t layer, eplb_error *error)
{
    eplb_status status = check_layer(placement, layer, placement->map, error);
    if (status == EPLB_OK) {
        status = eplb_placement_check_fits(placement, layer, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t *row = eplb_placement_row_of(placement, layer);
    int32_t next = 0;
    for (int32_t g = 0; g < placement->cluster->gpus; g++) {
        int32_t end = placement->cluster->first_slot[g + 1];
        int32_t open_end = eplb_placement_open_end(placement, layer, g);
        for (int32_t s = placement->cluster->first_slot[g]; s < end; s++) {
            bool usable = placement->cluster->gpu[g].alive && s < open_end;
            row[s] = usable ? next++ % placement->experts : -1;
        }
    }
    return EPLB_OK;
}

eplb_status eplb_placement_replica_counts(const eplb_placement *placement, int32_t layer,
                                          int32_t *counts, eplb_error *error)
{
    eplb_status status = check_layer(placement, layer, counts, error);
    if (status != EPLB_OK) {
        return status;
    }
    memset(counts, 0, (size_t)placement->experts * sizeof(*counts));
    const int32_t *row = eplb_placement_row(placement, layer);
    for (int32_t s = 0; s < placement->slots; s++) {
        if (row[s] >= 0) {
            counts[row[s]]++;
        }
    }
    return EPLB_OK;
}

/* EPLB_OK when no expert has more than `width` replicas. */
static eplb_status check_width(const eplb_placement *placement, int32_t layer, int32_t width,
                               eplb_error *error)
{
    int32_t *counts = eplb_alloc(&placement->hooks, (size_t)placement->experts, sizeof(*counts));
    if (counts == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_placement_replica_counts(placement, layer, counts, error);
    for (int32_t e = 0; e < placement->experts && status == EPLB_OK; e++) {
        if (counts[e] > width) {
            status = eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                    "layer %d: expert %d has %d replicas, more than the width %d",
                                    placement->layer_ids.ids[layer], e, counts[e], width);
        }
    }
    eplb_free(&placement->hooks, counts);
    return status;
}

eplb_status eplb_placement_logical_to_physical(const eplb_placement *placement, int32_t layer,
                                               int32_t *map, int32_t width, eplb_error *error)
{
    eplb_status status = check_layer(placement, layer, map, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (width < 1) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "placement: width %d below 1", width);
    }
    status = check_width(placement, layer, width, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t cells = (size_t)placement->experts * (size_t)width;
    for (size_t i = 0; i < cells; i++) {
        map[i] = -1;
    }
    const int32_t *row = eplb_placement_row(placement, layer);
    for (int32_t s = 0; s < placement->slots; s++) {
        if (row[s] < 0) {
            continue;
        }
        int32_t *cell = map + (size_t)row[s] * (size_t)width;
        while (*cell >= 0) {
            cell++;
        }
        *cell = s;
    }
    return EPLB_OK;
}

eplb_status eplb_placement_gpu_loads(const eplb_placement *placement, int32_t layer,
                                     const double *expert_loads, double *gpu_loads,
                                     eplb_error *error)
{
    eplb_status status = check_layer(placement, layer, gpu_loads, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (expert_loads == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "placement: no expert loads");
    }
    status = eplb_row_check("expert loads", placement->layer_ids.ids[layer], expert_loads,
                            placement->experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    int32_t *counts = eplb_alloc(&placement->hooks, (size_t)placement->experts, sizeof(*counts));
    if (counts == NULL) {
        return eplb_out_of_memory(error);
    }
    status = eplb_placement_replica_counts(placement, layer, counts, error);
    for (int32_t e = 0; e < placement->experts && status == EPLB_OK; e++) {
        if (counts[e] == 0 && expert_loads[e] > 0.0) {
            status = eplb_error_set(error, EPLB_ERROR_DATA,
                                    "layer %d: expert %d has %g tokens and no replica",
                                    placement->layer_ids.ids[layer], e, expert_loads[e]);
        }
    }
    if (status == EPLB_OK) {
        eplb_gpu_loads(placement->cluster, eplb_placement_row(placement, layer), counts,
                       expert_loads, gpu_loads);
    }
    eplb_free(&placement->hooks, counts);
    return status;
}

void eplb_gpu_loads(const eplb_cluster *cluster, const int32_t *row, const int32_t *counts,
                    const double *expert_loads, double *gpu_loads)
{
    for (int32_t g = 0; g < cluster->gpus; g++) {
        double sum = 0.0;
        for (int32_t s = cluster->first_slot[g]; s < cluster->first_slot[g + 1]; s++) {
            if (row[s] >= 0) {
                sum += expert_loads[row[s]] / (double)counts[row[s]];
            }
        }
        gpu_loads[g] = sum;
    }
}

double eplb_imbalance_of(const eplb_cluster *cluster, const double *expert_loads, int32_t experts,
                         const double *gpu_loads)
{
    double total = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        total += expert_loads[e];
    }
    double largest = 0.0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        largest = gpu_loads[g] > largest ? gpu_loads[g] : largest;
    }
    if (!(total > 0.0)) {
        return 0.0;
    }
    /* Equal shares can sum to a rounding error less than the mean. */
    double imbalance = largest / total * (double)eplb_cluster_live_gpus(cluster);
    return imbalance > 1.0 ? imbalance : 1.0;
}

/* Only live GPUs compute: what dead ones hold would be lost, not served. */
static eplb_status check_dead_gpus(const eplb_cluster *cluster, int32_t layer_id,
                                   const double *gpu_loads, eplb_error *error)
{
    for (int32_t g = 0; g < cluster->gpus; g++) {
        if (!cluster->gpu[g].alive && gpu_loads[g] > 0.0) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "layer %d: GPU %d is dead and holds experts with %g tokens",
                                  layer_id, g, gpu_loads[g]);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_placement_imbalance(const eplb_placement *placement, int32_t layer,
                                     const double *expert_loads, double *imbalance,
                                     eplb_error *error)
{
    if (imbalance == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "placement: no output");
    }
    double *gpu_loads =
        eplb_alloc(&placement->hooks, (size_t)placement->cluster->gpus, sizeof(*gpu_loads));
    if (gpu_loads == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_placement_gpu_loads(placement, layer, expert_loads, gpu_loads, error);
    if (status == EPLB_OK) {
        status =
            check_dead_gpus(placement->cluster, placement->layer_ids.ids[layer], gpu_loads, error);
    }
    if (status == EPLB_OK) {
        *imbalance =
            eplb_imbalance_of(placement->cluster, expert_loads, placement->experts, gpu_loads);
    }
    eplb_free(&placement->hooks, gpu_loads);
    return status;
}
