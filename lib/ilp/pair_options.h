/* SPDX-License-Identifier: MIT */
/*
 * Two slots on each GPU, one load: which counts of which experts can matter for a largest GPU load
 * T, and what any counts cost at least.
 *
 * The shares above T / 2 that experts can have are the hot ones, h_1 < ... < h_L. A GPU that keeps
 * to T and has a replica on h_k or above has another of at most T - h_k. So for each k the replicas
 * of share h_k or more are no more than those of at most T - h_k; and by Hall's theorem that is all
 * that counts have to satisfy, but for an expert that would meet itself.
 *
 * Hence prices: for 0 <= y_1 <= ... <= y_L <= 1 let a replica on h_k cost 1 + y_k, one that fits
 * beside h_k but not beside h_(k+1) 1 - y_k, and others 1. The two replicas of a GPU that keeps to
 * T cost at most 2, so all together cost at most the slots. If they cost more even with the count
 * that is cheapest for each expert alone, then no placement keeps to T.
 */
#ifndef EPLB_ILP_PAIR_OPTIONS_H
#define EPLB_ILP_PAIR_OPTIONS_H

#include <stdbool.h>

#include <eplb/hooks.h>
#include <eplb/refine.h>

/* Loads are told apart by this much, relatively: far more than rounding can move a sum. */
#define EPLB_PAIR_MARGIN 1e-9

/* Of the counts that put an expert on the same level only the smallest is an option: prices are
 * not negative. */
typedef struct eplb_pair_option {
    int32_t expert;
    int32_t count;
    int32_t level; /* k > 0: on h_k; -k < 0: fits beside h_k; 0: neither */
} eplb_pair_option;

typedef struct eplb_pair_options {
    eplb_hooks hooks;
    const eplb_refine_task *task;
    int32_t least; /* replicas of an expert */
    int32_t most;
    double load; /* T */
    int32_t levels;
    int32_t most_levels;
    double *hot;              /* [levels] */
    eplb_pair_option *option; /* expert by expert, rising counts */
    int32_t *first;           /* [experts + 1] of each expert's options */
    double *share;            /* [most_levels] scratch, as the next two */
    int32_t *order;
    int32_t *scratch;
} eplb_pair_options;

/* Whether all of that applies to a task, and is small enough. */
bool eplb_pair_options_apply(const eplb_refine_task *task);

/* For such a task. Free it in any case. */
eplb_status eplb_pair_options_init(eplb_pair_options *options, const eplb_hooks *hooks,
                                   const eplb_refine_task *task, eplb_error *error);
void eplb_pair_options_free(eplb_pair_options *options);

/* Finds levels and options for a load. False when some expert has no count that keeps to it. */
bool eplb_pair_options_set(eplb_pair_options *options, double load);

/* The cost of an option, by prices [levels]. */
double eplb_pair_option_cost(const eplb_pair_option *option, const double *price);

#endif
