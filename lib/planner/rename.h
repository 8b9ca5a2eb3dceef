/* SPDX-License-Identifier: MIT */
/*
 * A plan from nothing does not care which GPU is which: each GPU's planned experts go to one that
 * already holds most of them. GPUs of a kind, those with as many slots, may be exchanged.
 */
#ifndef EPLB_PLANNER_RENAME_H
#define EPLB_PLANNER_RENAME_H

#include "planner/rebalance.h"

/* One kind of GPUs in one layer. GPUs are the shape's. */
typedef struct eplb_renaming {
    const eplb_rebalance_job *job;
    int32_t layer;
    const int32_t *home; /* [slots of the shape] what the GPUs hold; NULL: the current placement */
    int32_t slots;       /* of each */
    int32_t count;       /* GPUs of the kind */
    int32_t *gpu;        /* [count] */
    int32_t *source;     /* [count] the GPU whose planned experts it gets */
} eplb_renaming;

/* The experts that the plan has on a GPU of the kind. */
const int32_t *eplb_renaming_planned(const eplb_renaming *r, int32_t gpu);

/* What a GPU holds now: an expert or -1 in each of `slots`. */
const int32_t *eplb_renaming_held(const eplb_renaming *r, int32_t gpu, int32_t *slots);

/* Fills `source` greedily, most shared experts first: for kinds of too many GPUs for the best
 * assignment. O(slots) in memory; in time O(slots x replicas of an expert), or some times that. */
eplb_status eplb_renaming_match(eplb_renaming *r, eplb_error *error);

#endif
