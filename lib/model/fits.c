/* SPDX-License-Identifier: MIT */
/* Whether experts fit slots at all. */
#include "model/cluster.h"
#include "model/placement.h"

/* Slots per GPU, rounded up, that give all experts a place; what to ask for instead. */
static int32_t nearest_slots(int32_t experts, int32_t gpus)
{
    return (experts + gpus - 1) / gpus * gpus;
}

eplb_status eplb_cluster_check_fits(const eplb_cluster *cluster, int32_t experts, eplb_error *error)
{
    int32_t live = eplb_cluster_live_gpus(cluster);
    int32_t slots = eplb_cluster_live_slots(cluster);
    if (live == 0) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE, "no live GPU among %d", cluster->gpus);
    }
    if (slots < experts) {
        int32_t needed = nearest_slots(experts, live);
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots on %d live GPUs do not hold %d experts: at least %d slots "
                              "(%d redundant)",
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
