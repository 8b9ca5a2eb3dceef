/* SPDX-License-Identifier: MIT */
/* Whether experts fit slots at all. */
#include <stdbool.h>

#include <eplb/load.h>

#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"

int64_t eplb_fewest_slots(int32_t experts, int32_t gpus)
{
    return ((int64_t)experts + gpus - 1) / gpus * gpus;
}

eplb_status eplb_slots_per_gpu(int32_t experts, int32_t gpus, int32_t slots, int32_t *slots_per_gpu,
                               eplb_error *error)
{
    static const char what[] = "slots per GPU";
    eplb_status status =
        eplb_check_range(what, "number of experts", experts, 1, EPLB_MAX_EXPERTS, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "number of GPUs", gpus, 1, EPLB_MAX_GPUS, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "number of slots", slots, 0, INT32_MAX, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_given(what, "output", slots_per_gpu, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    long long fewest = eplb_fewest_slots(experts, gpus);
    long long most = (long long)experts * gpus;
    if (slots < fewest) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots on %d GPUs do not hold %d experts evenly: the smallest "
                              "valid number is %lld (%lld redundant)",
                              slots, gpus, experts, fewest, fewest - experts);
    }
    if (slots > most) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots: with each of %d experts once on each of %d GPUs only "
                              "%lld can be filled (%lld redundant)",
                              slots, experts, gpus, most, most - experts);
    }
    if (slots % gpus != 0) {
        long long lower = slots / gpus * gpus;
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots cannot be shared evenly by %d GPUs: the nearest valid "
                              "numbers are %lld and %lld (%lld and %lld redundant)",
                              slots, gpus, lower, lower + gpus, lower - experts,
                              lower + gpus - experts);
    }
    *slots_per_gpu = slots / gpus;
    return EPLB_OK;
}

/* Slots of a GPU: the cluster's, or those given. */
static int32_t slots_on(const eplb_cluster *cluster, const int32_t *gpu_slots, int32_t gpu)
{
    return gpu_slots != NULL ? gpu_slots[gpu] : cluster->gpu[gpu].slots;
}

/* Slots of the live GPUs; *equal: each of them has equally many. */
static int32_t live_slots(const eplb_cluster *cluster, const int32_t *gpu_slots, bool *equal)
{
    int32_t first = -1;
    int32_t sum = 0;
    *equal = true;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        if (cluster->gpu[g].alive) {
            int32_t slots = slots_on(cluster, gpu_slots, g);
            *equal = *equal && (first < 0 || slots == first);
            first = slots;
            sum += slots;
        }
    }
    return sum;
}

static eplb_status check_fits(const eplb_cluster *cluster, const int32_t *gpu_slots,
                              int32_t experts, eplb_error *error)
{
    int32_t live = eplb_cluster_live_gpus(cluster);
    bool equal;
    int32_t slots = live_slots(cluster, gpu_slots, &equal);
    if (live == 0) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE, "no live GPU among %d", cluster->gpus);
    }
    if (slots < experts) {
        long long needed = equal ? eplb_fewest_slots(experts, live) : experts;
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots on %d live GPUs do not hold %d experts: at least %lld "
                              "slots (%lld redundant)",
                              slots, live, experts, needed, needed - experts);
    }
    for (int32_t g = 0; g < cluster->gpus; g++) {
        int32_t own = slots_on(cluster, gpu_slots, g);
        if (cluster->gpu[g].alive && own > experts) {
            return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                  "GPU %d has %d slots for %d different experts: at most %d slots "
                                  "a GPU",
                                  g, own, experts, experts);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_cluster_check_fits(const eplb_cluster *cluster, int32_t experts, eplb_error *error)
{
    return check_fits(cluster, NULL, experts, error);
}

eplb_status eplb_placement_check_fits(const eplb_placement *placement, int32_t layer,
                                      eplb_error *error)
{
    const int32_t *gpu_slots = eplb_placement_layer_slots(placement, layer);
    if (gpu_slots == NULL) {
        return check_fits(placement->cluster, NULL, placement->experts, error);
    }
    eplb_error inner;
    eplb_status status = check_fits(placement->cluster, gpu_slots, placement->experts, &inner);
    return status == EPLB_OK ? EPLB_OK
                             : eplb_error_set(error, status, "layer %d: %.400s",
                                              placement->layer_ids.ids[layer], inner.message);
}
