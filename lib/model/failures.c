/* SPDX-License-Identifier: MIT */
/* What the failure of GPUs takes away. */
#include <stdbool.h>

#include <eplb/placement.h>

#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"

/* Whether an expert has a slot, on any GPU or on one that lives in `cluster`. */
static bool has_replica(const eplb_placement *placement, int32_t layer, int32_t expert,
                        const eplb_cluster *cluster)
{
    const int32_t *row = eplb_placement_row(placement, layer);
    const eplb_cluster *own = placement->cluster;
    for (int32_t g = 0; g < own->gpus; g++) {
        if (cluster != NULL && !cluster->gpu[g].alive) {
            continue;
        }
        for (int32_t s = own->first_slot[g]; s < own->first_slot[g + 1]; s++) {
            if (row[s] == expert) {
                return true;
            }
        }
    }
    return false;
}

eplb_status eplb_placement_lost_experts(const eplb_placement *placement,
                                        const eplb_cluster *cluster, int32_t layer,
                                        int32_t *experts, int32_t capacity, int32_t *count,
                                        eplb_error *error)
{
    if (placement == NULL || cluster == NULL || count == NULL || capacity < 0 ||
        (experts == NULL && capacity > 0) || eplb_placement_row(placement, layer) == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "lost experts: no placement, cluster or output, or no layer %d",
                              layer);
    }
    if (placement->cluster->gpus != cluster->gpus) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "lost experts: a placement on %d GPUs, a cluster of %d",
                              placement->cluster->gpus, cluster->gpus);
    }
    *count = 0;
    for (int32_t e = 0; e < placement->experts; e++) {
        if (has_replica(placement, layer, e, NULL) && !has_replica(placement, layer, e, cluster)) {
            if (*count < capacity) {
                experts[*count] = e;
            }
            ++*count;
        }
    }
    return EPLB_OK;
}

/* Whether the expert in a slot is nowhere else on live GPUs but, perhaps, in later slots of the
 * same GPU. */
static bool is_alone(const eplb_placement *placement, const int32_t *row, int32_t gpu, int32_t slot)
{
    const eplb_cluster *cluster = placement->cluster;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        int32_t end = g == gpu ? slot : cluster->first_slot[g + 1];
        for (int32_t s = cluster->first_slot[g]; s < end; s++) {
            if (row[s] == row[slot] && cluster->gpu[g].alive) {
                return false;
            }
        }
    }
    return true;
}

eplb_status eplb_placement_single_failure(const eplb_placement *placement, int32_t layer,
                                          int32_t *lost, int32_t *gpu, eplb_error *error)
{
    const int32_t *row = placement != NULL ? eplb_placement_row(placement, layer) : NULL;
    if (row == NULL || lost == NULL || gpu == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "single failure: no placement or output, or no layer %d", layer);
    }
    *lost = 0;
    *gpu = -1;
    for (int32_t g = 0; g < placement->cluster->gpus; g++) {
        int32_t alone = 0;
        for (int32_t s = placement->cluster->first_slot[g];
             s < placement->cluster->first_slot[g + 1]; s++) {
            alone += row[s] >= 0 && is_alone(placement, row, g, s) ? 1 : 0;
        }
        if (placement->cluster->gpu[g].alive && alone > *lost) {
            *lost = alone;
            *gpu = g;
        }
    }
    return EPLB_OK;
}
