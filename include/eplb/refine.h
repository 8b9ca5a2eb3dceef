/* SPDX-License-Identifier: MIT */
/*
 * Refiners: what may take over from the planner's search, layer by layer, to make its placement
 * better or to prove how good it can be. The exact optimisation of libeplb-ilp is one
 * (eplb/ilp.h); a host can bring its own. libeplb checks and scores what a refiner returns in its
 * own arithmetic and keeps only what is valid and better, so a refiner can waste time but not spoil
 * a placement. Its lower bound, however, is believed.
 *
 * Threads: refiners are called from the thread that called the planner, one layer after another, in
 * the order of the layers.
 */
#ifndef EPLB_REFINE_H
#define EPLB_REFINE_H

#include <stdint.h>

#include <eplb/status.h>

EPLB_BEGIN_DECLS

/*
 * One layer. GPUs are the live ones, numbered from 0 in the cluster's order, and slots are theirs;
 * every slot holds an expert, and no GPU one twice. All pointers are valid during the call only.
 */
typedef struct eplb_refine_task {
    uint32_t struct_size;
    int32_t layer; /* its index in the load */
    int32_t experts;
    int32_t gpus;
    int32_t slots;        /* of all GPUs */
    int32_t scenarios;    /* those in which the layer has load, >= 1 */
    int32_t objective;    /* EPLB_OBJECTIVE_MEAN_OF_MAX or EPLB_OBJECTIVE_MAX_OF_MAX, which are
                           * the same for one scenario; sums arrive as one */
    int32_t min_replicas; /* of each expert that many GPUs have room for, >= 1 */
    int32_t max_replicas; /* at most gpus */
    const int32_t
        *first_slot;       /* [gpus + 1]: GPU g has the slots first_slot[g]..first_slot[g+1]-1 */
    const double *loads;   /* [scenarios][experts] >= 0, each scaled so that the mean GPU has 1 */
    const double *weights; /* [scenarios] > 0, sum 1 */
    const int32_t *placement; /* [slots] the expert in each slot: what to start from */
    const uint8_t *pinned;    /* [slots] 1: this replica must stay on its GPU; NULL: none must */
    double value;             /* the objective of `placement` */
    double lower_bound;       /* no placement has a smaller objective */

    /* Asks whether to stop, which a refiner does between pieces of work of some milliseconds:
     * non-zero is yes. It then returns the best that it has. Never NULL. */
    int (*stop)(void *stop_context);
    void *stop_context;
} eplb_refine_task;

typedef struct eplb_refine_result {
    uint32_t struct_size;
    int32_t *placement; /* [slots], filled with the task's; replaced by something better */
    double lower_bound; /* the task's; replaced by a larger one that was proven */
    int64_t nodes;      /* 0; replaced by the nodes of search trees that were looked at */
} eplb_refine_result;

/* A failure ends the plan: only what no placement can do anything about, such as no memory, is
 * one. */
typedef struct eplb_refiner {
    uint32_t struct_size; /* sizeof(eplb_refiner) */
    eplb_status (*refine)(void *context, const eplb_refine_task *task, eplb_refine_result *result,
                          eplb_error *error);
    void *context;
} eplb_refiner;

EPLB_END_DECLS

#endif
