/* SPDX-License-Identifier: MIT */
/*
 * Clusters: the GPUs of one expert-parallel group, their slots, nodes and health. A slot is room
 * for the weights of one expert of one layer; every MoE layer has the same slots, but for those
 * that a placement closes in it (eplb_placement_set_layer_slots). Slots are numbered through the
 * GPUs in order: with equal GPUs slot s is on GPU s / (slots per GPU).
 *
 * Threads: many threads may read a cluster at once; whoever changes it must be alone.
 */
#ifndef EPLB_CLUSTER_H
#define EPLB_CLUSTER_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

#define EPLB_MAX_GPUS 65536
#define EPLB_MAX_SLOTS 1048576 /* of one layer, all GPUs together */

typedef struct eplb_cluster eplb_cluster;

/*
 * Makes a cluster of `gpus` (1..EPLB_MAX_GPUS) live GPUs with `slots_per_gpu` (>= 1) slots each.
 * GPU g is on node g / gpus_per_node; gpus_per_node 0: all on one node. The last node may have
 * fewer GPUs.
 */
EPLB_API eplb_status eplb_cluster_create(eplb_cluster **out, const eplb_hooks *hooks, int32_t gpus,
                                         int32_t slots_per_gpu, int32_t gpus_per_node,
                                         eplb_error *error);

/*
 * Slots per GPU when `slots` slots of a layer are shared evenly by `gpus` GPUs. Fails with
 * EPLB_ERROR_INFEASIBLE, naming the nearest number of slots that works, when they cannot be shared
 * evenly, are fewer than the experts, or are more than one of each expert on every GPU.
 */
EPLB_API eplb_status eplb_slots_per_gpu(int32_t experts, int32_t gpus, int32_t slots,
                                        int32_t *slots_per_gpu, eplb_error *error);

/*
 * Slots of a layer that fit the memory of one GPU when every MoE layer has equally many:
 * floor((gpu_bytes - reserve_bytes) / (expert_bytes * layers)), but not more than EPLB_MAX_SLOTS.
 * `reserve_bytes` (>= 0) is what everything but the experts' weights takes; `expert_bytes` (>= 1)
 * are the weights of one expert of one layer; `layers` counts MoE layers, 1..EPLB_MAX_LAYERS.
 * EPLB_ERROR_INFEASIBLE, with the sizes in GiB, when not even one slot fits.
 */
EPLB_API eplb_status eplb_slots_from_memory(int64_t gpu_bytes, int64_t reserve_bytes,
                                            int64_t expert_bytes, int32_t layers, int32_t *slots,
                                            eplb_error *error);

/* Frees the cluster and sets the pointer to NULL. */
EPLB_API void eplb_cluster_destroy(eplb_cluster **cluster);

/* Changes one GPU: its slots (>= 0), its node (>= 0), whether it is alive (0 or 1). */
EPLB_API eplb_status eplb_cluster_set_slots(eplb_cluster *cluster, int32_t gpu, int32_t slots,
                                            eplb_error *error);
EPLB_API eplb_status eplb_cluster_set_node(eplb_cluster *cluster, int32_t gpu, int32_t node,
                                           eplb_error *error);
EPLB_API eplb_status eplb_cluster_set_alive(eplb_cluster *cluster, int32_t gpu, int32_t alive,
                                            eplb_error *error);

EPLB_API int32_t eplb_cluster_gpus(const eplb_cluster *cluster);
EPLB_API int32_t eplb_cluster_live_gpus(const eplb_cluster *cluster);

/* One more than the largest node number. */
EPLB_API int32_t eplb_cluster_nodes(const eplb_cluster *cluster);

/* Slots of one layer on all GPUs, dead ones too; and on live GPUs only. */
EPLB_API int32_t eplb_cluster_slots(const eplb_cluster *cluster);
EPLB_API int32_t eplb_cluster_live_slots(const eplb_cluster *cluster);

/* Slots per GPU when all GPUs have equally many; 0 when they differ. */
EPLB_API int32_t eplb_cluster_uniform_slots(const eplb_cluster *cluster);

/* One GPU's first slot, slots, node and health; 0 when the index is out of range. */
EPLB_API int32_t eplb_cluster_first_slot(const eplb_cluster *cluster, int32_t gpu);
EPLB_API int32_t eplb_cluster_gpu_slots(const eplb_cluster *cluster, int32_t gpu);
EPLB_API int32_t eplb_cluster_gpu_node(const eplb_cluster *cluster, int32_t gpu);
EPLB_API int32_t eplb_cluster_gpu_alive(const eplb_cluster *cluster, int32_t gpu);

EPLB_END_DECLS

#endif
