/* SPDX-License-Identifier: MIT */
/*
 * The split of one layer's tokens over replicas that makes the largest GPU load smallest. The state
 * is a split at all times: tokens only move from one replica of an expert to another.
 */
#ifndef EPLB_MODEL_SHARE_FLOW_H
#define EPLB_MODEL_SHARE_FLOW_H

#include <eplb/placement.h>

typedef struct eplb_share_flow {
    const eplb_cluster *cluster;
    const int32_t *row; /* [slots] */
    int32_t gpus;
    int32_t experts;
    double *load;       /* [experts] of an expert, the mean GPU having 1; 0 when next to nothing */
    int32_t *slot_gpu;  /* [slots] */
    int32_t *first;     /* [experts + 1] where in `replica` the expert's begin */
    int32_t *replica;   /* [slots] the filled slots of live GPUs, expert by expert */
    double *tokens;     /* [slots] of the slot */
    double *gpu_tokens; /* [gpus] */

    /* What no split falls short of, and where the tokens of GPUs above it can go. */
    double threshold;
    int32_t *gpu_level;    /* [gpus] steps from a GPU above the threshold; -1: not reached */
    int32_t *expert_level; /* [experts] the same of a GPU that can give tokens of it */
    int32_t *gpu_arc;      /* [gpus] the first slot that has not been found useless */
    int32_t *expert_arc;   /* [experts] the same, of `replica` */
    int32_t *queue;        /* [gpus] */
    int32_t *from;         /* [gpus] slots along a path: tokens leave from[i] for to[i] */
    int32_t *to;           /* [gpus] */
} eplb_share_flow;

/* Loads [experts] as multiples of the mean load of so many GPUs, into scaled [experts]; their sum
 * must be finite. */
void eplb_loads_by_mean(const double *loads, int32_t experts, int32_t gpus, double *scaled);

/* Starts with an even split of a row [slots] that belongs to a layer of the placement. `loads`
 * [experts] have a finite sum; an expert with load and no replica on a live GPU is EPLB_ERROR_DATA.
 * Free it in any case. */
eplb_status eplb_share_flow_init(eplb_share_flow *flow, const eplb_placement *placement,
                                 int32_t layer, const int32_t *row, const double *loads,
                                 eplb_error *error);
void eplb_share_flow_free(eplb_share_flow *flow, const eplb_placement *placement);

/* Ends with a largest GPU load that is the smallest but for some 1e-12 of it. */
void eplb_share_flow_balance(eplb_share_flow *flow);

/* The split as weights [slots]. */
void eplb_share_flow_weights(const eplb_share_flow *flow, double *weights);

#endif
