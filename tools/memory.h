/* SPDX-License-Identifier: MIT */
/* Memory of GPUs and the experts in it. */
#ifndef EPLB_TOOLS_MEMORY_H
#define EPLB_TOOLS_MEMORY_H

#include <eplb/cluster.h>

#include "options.h"

typedef struct gpu_memory {
    const size_list *sizes; /* one for all GPUs, or one for each */
    int64_t reserve;
    int64_t expert_bytes; /* of one layer */
} gpu_memory;

/* Makes a cluster whose GPUs have as many slots for experts of `layers` layers as their memory
 * holds, but not more than there are experts, with a note where that cuts something.
 * EPLB_ERROR_INFEASIBLE when all of them do not hold the experts. */
eplb_status memory_cluster(eplb_cluster **out, const gpu_memory *memory, int32_t gpus,
                           int32_t gpus_per_node, int32_t layers, int32_t experts,
                           const eplb_hooks *hooks, eplb_error *error);

/* Fills budget [gpus] with the slots of all layers together that each GPU's memory holds. */
eplb_status memory_budget(int64_t *budget, const gpu_memory *memory, int32_t gpus,
                          eplb_error *error);

/* *bytes = expert_bytes * slots * layers; EPLB_ERROR_OVERFLOW when that does not fit. */
eplb_status weight_bytes(int64_t *bytes, int64_t expert_bytes, int64_t slots, int32_t layers,
                         eplb_error *error);

#endif
