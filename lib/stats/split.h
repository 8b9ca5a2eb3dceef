/* SPDX-License-Identifier: MIT */
/* The parts of a split: see eplb/split.h for the method. */
#ifndef EPLB_STATS_SPLIT_H
#define EPLB_STATS_SPLIT_H

#include "stats/step_stats.h"

/* Folds of the cross-validation: fewer steps cannot be dealt out. */
#define EPLB_FOLDS 4

/* The runs of a layer as a split uses them: so many of them joined to one that steps of different
 * ones are independent, as far as that can be seen. */
typedef struct eplb_split_runs {
    const eplb_step_layer *layer;
    int32_t gpus;
    int32_t joined;
    int32_t count;       /* of joined runs; the last may be shorter */
    const double *total; /* [gpus + 1] sum of all runs */
} eplb_split_runs;

/* Sums one joined run onto sum [gpus + 1]. */
void eplb_split_add_run(const eplb_split_runs *runs, int32_t run, double *sum);

/* Variance of the share of all assignments that one GPU has, from its scatter between runs; and
 * that of all GPUs together. At least two runs. */
double eplb_split_run_variance(const eplb_split_runs *runs, int32_t gpu);
double eplb_split_all_run_variance(const eplb_split_runs *runs);

/* Joins runs, two and two, as long as that shows that they depend on each other. */
void eplb_split_join(eplb_split_runs *runs);

/*
 * The corrected maximum, a share of all assignments: what the GPU that is busiest in the other
 * folds has. chosen [gpus] gets the share of folds, by tokens, that chose each GPU. fold [gpus + 1]
 * is scratch. At least EPLB_FOLDS runs.
 */
double eplb_split_cross_validate(const eplb_split_runs *runs, double *chosen, double *fold);

/*
 * Variance of all GPUs' loads together, for each assignment of a step, if tokens were independent.
 * topk 0: unknown. scratch [2 * experts].
 */
double eplb_split_independent_variance(const eplb_step_layer *layer, const eplb_cluster *cluster,
                                       int32_t experts, int32_t topk, double *scratch);

#endif
