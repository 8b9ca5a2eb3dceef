/* SPDX-License-Identifier: MIT */
#ifndef EPLB_MODEL_PLACEMENT_H
#define EPLB_MODEL_PLACEMENT_H

#include <eplb/placement.h>

#include "model/cluster.h"
#include "model/layer_ids.h"

struct eplb_placement {
    eplb_hooks hooks;
    eplb_cluster *cluster;
    int32_t layers;
    int32_t experts;
    int32_t slots;
    int32_t draft_layers; /* of the last layers */
    eplb_layer_ids layer_ids;
    int32_t *map;  /* [layers][slots] */
    int32_t *open; /* [layers][gpus] open slots; NULL: all of them, in every layer */
};

int32_t *eplb_placement_row_of(eplb_placement *placement, int32_t layer);

/* Behind the last open slot of a GPU. */
static inline int32_t eplb_placement_open_end(const eplb_placement *placement, int32_t layer,
                                              int32_t gpu)
{
    const eplb_cluster *cluster = placement->cluster;
    return placement->open == NULL
               ? cluster->first_slot[gpu + 1]
               : cluster->first_slot[gpu] +
                     placement->open[(size_t)layer * (size_t)cluster->gpus + (size_t)gpu];
}

/* EPLB_ERROR_INFEASIBLE, with the nearest number that works, unless every expert finds a slot on a
 * live GPU and every live slot can be filled without an expert twice on one GPU. */
eplb_status eplb_cluster_check_fits(const eplb_cluster *cluster, int32_t experts,
                                    eplb_error *error);

/* The fewest slots, equally many on each GPU, that hold all experts. */
int64_t eplb_fewest_slots(int32_t experts, int32_t gpus);

/* The same for the open slots of one layer. */
eplb_status eplb_placement_check_fits(const eplb_placement *placement, int32_t layer,
                                      eplb_error *error);

/* The one place where GPU loads are summed: gpu_loads [gpus] of a row [slots] whose experts have
 * counts [experts] replicas. */
void eplb_gpu_loads(const eplb_cluster *cluster, const int32_t *row, const int32_t *counts,
                    const double *expert_loads, double *gpu_loads);

/* Largest GPU load / mean over live GPUs; 0 without load. */
double eplb_imbalance_of(const eplb_cluster *cluster, const double *expert_loads, int32_t experts,
                         const double *gpu_loads);

#endif
