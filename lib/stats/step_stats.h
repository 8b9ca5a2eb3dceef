/* SPDX-License-Identifier: MIT */
/* What step statistics keep. */
#ifndef EPLB_STATS_STEP_STATS_H
#define EPLB_STATS_STEP_STATS_H

#include <eplb/step_stats.h>

/* Runs of consecutive steps that a layer is kept in; when all are full, two and two are merged. */
#define EPLB_MOST_RUNS 64

/* The histogram has this many bins for each power of two, log-linear as the bits of a double. */
#define EPLB_BIN_BITS 10

typedef struct eplb_step_layer {
    int64_t steps;
    int64_t skipped;
    int64_t impossible_steps;
    int64_t last_step; /* -1: none */
    double assignments;

    /* Sums over steps of what eplb_layer_stats has means of; `dropped` of assignments. */
    double imbalance;
    double idle;
    double idle_others;
    double touched;
    double padded_worst;
    double padded;
    double dropped;
    double utilisation;
    double imbalance_worst;

    const int32_t *row;      /* [slots] */
    const int32_t *replicas; /* [experts] */
    double *experts;         /* [experts] assignments */
    double *share;           /* [gpus] mean share of a step's assignments, weighted by these */
    double *scatter;         /* [gpus] sum over steps of assignments * (share - its mean)^2 */
    uint64_t *histogram;     /* [bins] of imbalance */

    int32_t runs;
    int64_t run_length; /* steps of a full run */
    int64_t filled;     /* steps of the last run */
    double *run;        /* [EPLB_MOST_RUNS][gpus + 1] loads of the GPUs, and their sum */
} eplb_step_layer;

struct eplb_step_stats {
    eplb_hooks hooks;
    eplb_step_stats_options options;
    eplb_placement *placement;
    int32_t bins;
    eplb_step_layer *layers; /* [layers of the placement] */
    int32_t *replicas;       /* what the layers' arrays lie in */
    double *values;
    uint64_t *histograms;
    double *gpu_loads; /* [gpus] scratch */

    /* The step that is being added, and the steps before it, for sums over the layers of a step. */
    int64_t step; /* -1: none */
    double step_mean;
    double step_busiest;
    int64_t whole_steps; /* before this one, with tokens */
    double balancedness;
    int32_t scattered; /* a step went back: rows of one step did not come together */
};

/* One run of a layer: loads [gpus] and their sum. */
static inline double *eplb_step_run(const eplb_step_layer *layer, int32_t run, int32_t gpus)
{
    return layer->run + (size_t)run * ((size_t)gpus + 1);
}

#endif
