/* SPDX-License-Identifier: MIT */
/* Whether experts fit slots at all. */
#include <eplb/load.h>

#include "model/cluster.h"
#include "model/placement.h"

/* The fewest slots, equally many on each GPU, that hold all experts. */
static int64_t fewest_slots(int32_t experts, int32_t gpus)
{
    return ((int64_t)experts + gpus - 1) / gpus * gpus;
}

eplb_status eplb_slots_per_gpu(int32_t experts, int32_t gpus, int32_t slots, int32_t *slots_per_gpu,
                               eplb_error *error)
{
    if (experts < 1 || experts > EPLB_MAX_EXPERTS || gpus < 1 || gpus > EPLB_MAX_GPUS ||
        slots < 0 || slots_per_gpu == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "slots per GPU: %d experts not in 1..%d, %d GPUs not in 1..%d, %d "
                              "slots below 0, or no output",
                              experts, EPLB_MAX_EXPERTS, gpus, EPLB_MAX_GPUS, slots);
    }
    long long fewest = fewest_slots(experts, gpus);
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

eplb_status eplb_cluster_check_fits(const eplb_cluster *cluster, int32_t experts, eplb_error *error)
{
    int32_t live = eplb_cluster_live_gpus(cluster);
    int32_t slots = eplb_cluster_live_slots(cluster);
    if (live == 0) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE, "no live GPU among %d", cluster->gpus);
    }
    if (slots < experts) {
        long long needed = fewest_slots(experts, live);
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots on %d live GPUs do not hold %d experts: at least %lld "
                              "slots (%lld redundant)",
                              slots, live, experts, needed, needed - experts);
    }
    for (int32_t g = 0; g < cluster->gpus; g++) {
        if (cluster->gpu[g].alive && cluster->gpu[g].slots > experts) {
            return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                  "GPU %d has %d slots for %d different experts: at most %d slots "
                                  "a GPU",
                                  g, cluster->gpu[g].slots, experts, experts);
        }
    }
    return EPLB_OK;
}
