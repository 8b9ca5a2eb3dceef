/* SPDX-License-Identifier: MIT */
/*
 * Fix and optimise, for layers that are too large to be solved whole: a few GPUs are filled anew by
 * an integer program while the others stay, again and again with others.
 */
#ifndef EPLB_ILP_NEIGHBOURHOOD_H
#define EPLB_ILP_NEIGHBOURHOOD_H

#include <eplb/hooks.h>
#include <eplb/refine.h>

typedef struct eplb_ilp_neighbourhood_options {
    int64_t nodes;        /* of all search trees, >= 0; each program counts as one at least */
    int64_t memory_bytes; /* that GLPK may take in one program; -1: no limit */
    double gap;           /* enough: value <= lower bound * (1 + gap) */
    int32_t idle;         /* ends after so many programs in a row that gained nothing, >= 1 */
} eplb_ilp_neighbourhood_options;

/* Writes the defaults. */
void eplb_ilp_neighbourhood_options_init(eplb_ilp_neighbourhood_options *options);

/*
 * Improves `placement` [slots], a valid one of the task, by its objective. What comes back is valid
 * and never worse, keeps pinned replicas on their GPUs and the limits of replicas for all counts
 * that it changes. The result depends on the arguments only, as long as task->stop does not
 * interfere. `nodes` gets the nodes of all search trees. Fails only without memory, and then leaves
 * the placement as it was. `hooks` must be complete (eplb_hooks_resolve).
 *
 * Measured with nine scenarios after the planner's own search: 288 slots on 144 GPUs go from 1.4097
 * to 1.4046 on average over 12 layers, at 0.4 ms a node and some 0.55 s a layer with the defaults.
 * On nine layers each of 288 slots on 32, 72 and 96 GPUs and 320 on 64 it gains 0.0001 at most, on
 * average (bench-refine 7).
 */
eplb_status eplb_ilp_neighbourhood(const eplb_hooks *hooks, const eplb_refine_task *task,
                                   const eplb_ilp_neighbourhood_options *options,
                                   int32_t *placement, int64_t *nodes, eplb_error *error);

#endif
