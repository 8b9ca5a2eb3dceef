/* SPDX-License-Identifier: MIT */
#ifndef EPLB_MODEL_CLUSTER_H
#define EPLB_MODEL_CLUSTER_H

#include <eplb/cluster.h>

typedef struct eplb_gpu {
    int32_t slots;
    int32_t node;
    int32_t alive;
} eplb_gpu;

struct eplb_cluster {
    eplb_hooks hooks;
    int32_t gpus;
    eplb_gpu *gpu;       /* [gpus] */
    int32_t *first_slot; /* [gpus + 1]; the last is the number of slots */
};

eplb_status eplb_cluster_clone(eplb_cluster **out, const eplb_hooks *hooks,
                               const eplb_cluster *cluster, eplb_error *error);

/* A clone whose GPUs have gpu_slots [gpus] slots, each >= 0. */
eplb_status eplb_cluster_clone_with_slots(eplb_cluster **out, const eplb_hooks *hooks,
                                          const eplb_cluster *cluster, const int32_t *gpu_slots,
                                          eplb_error *error);

#endif
