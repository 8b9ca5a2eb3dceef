/* SPDX-License-Identifier: MIT */
/*
 * Step statistics: what the steps of a log, or of a running server, look like under a given
 * placement. A sink for rows (step, layer, counts): each layer keeps sums, a histogram and a few
 * dozen subtotals, however many steps come.
 *
 * Everything is computed from even split: each of the c replicas of an expert with n tokens gets
 * n / c, also in parts of tokens. "Tokens" of an expert or a GPU are rows of its matrix products:
 * a token that is routed to topk experts counts topk times. These are called assignments where a
 * step's sum is meant.
 *
 * Threads: statistics belong to one thread at a time; while nothing is added, many may read.
 */
#ifndef EPLB_STEP_STATS_H
#define EPLB_STEP_STATS_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_step_stats_options {
    uint32_t struct_size; /* sizeof(eplb_step_stats_options), written by the _init function */
    int32_t topk;         /* different experts that each token goes to; 0 (default): unknown */
    int32_t tile;     /* rows of a tile that a replica's tokens are padded to, >= 1; default 64 */
    int32_t reserved; /* 0 */

    /* An expert's tokens in a step beyond this factor times the fair share (assignments / experts)
     * count as dropped; > 0, default 1.25. Not rounded to whole tokens. */
    double capacity_factor;
} eplb_step_stats_options;

/* Writes the defaults. */
EPLB_API void eplb_step_stats_options_init(eplb_step_stats_options *options);

typedef struct eplb_step_stats eplb_step_stats;

/*
 * Makes statistics without a step. `placement` is copied; empty slots and second copies on a GPU
 * are allowed, but every expert must have a replica in every layer and none on a dead GPU
 * (EPLB_ERROR_DATA). `options`: NULL for the defaults. Memory for each layer: 12 bytes for each
 * expert, 4 for each slot, some 530 for each GPU, and 8 KiB for each binary digit of the number of
 * live GPUs.
 */
EPLB_API eplb_status eplb_step_stats_create(eplb_step_stats **out, const eplb_hooks *hooks,
                                            const eplb_placement *placement,
                                            const eplb_step_stats_options *options,
                                            eplb_error *error);

/* Frees the statistics and sets the pointer to NULL. */
EPLB_API void eplb_step_stats_destroy(eplb_step_stats **stats);

/*
 * Adds one layer (index in the placement) of one step: counts [experts] of all ranks together, by
 * logical expert. Steps of a layer must ascend; layers may come in any order. A row of zeros (a
 * dense layer, warm-up) is counted as skipped and nothing else.
 *
 * Errors, which leave the statistics as they were: EPLB_ERROR_DATA for values that are no loads
 * (as in eplb_load_set_row) and for a step that is not after the layer's last one: rows of several
 * ranks must be summed before; EPLB_ERROR_OVERFLOW for sums that are not finite;
 * EPLB_ERROR_ARGUMENT. Allocates nothing. Cost: O(experts + slots).
 */
EPLB_API eplb_status eplb_step_stats_add(eplb_step_stats *stats, int64_t step, int32_t layer,
                                         const double *counts, eplb_error *error);

#define EPLB_HOTTEST_EXPERTS 4

/* One layer. Without a step all numbers are 0 and the hottest experts -1. "Mean" is over steps,
 * each counted alike; a GPU's mean is over live GPUs. */
typedef struct eplb_layer_stats {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layer_id;
    int64_t steps;   /* with tokens */
    int64_t skipped; /* rows of zeros */

    /* Steps in which an expert got more than assignments / topk tokens, more than one from each
     * token of the step: topk is wrong, or the counts are not what they are taken for. 0 when topk
     * is unknown. */
    int64_t impossible_steps;

    double assignments; /* mean of a step */
    double tokens;      /* mean of a step: assignments / topk; 0 when topk is unknown */

    /* Imbalance: tokens of the busiest GPU / mean of the GPUs. A percentile is the least value
     * that so many steps do not exceed, rounded down to a multiple of 2^-10 of its power of two:
     * at most 0.1 % less. */
    double imbalance_mean;
    double imbalance_p50;
    double imbalance_p99;
    double imbalance_worst;

    double idle_share;  /* mean of 1 - mean / max: time that GPUs wait at combine for the busiest */
    double idle_others; /* the same of all GPUs but the busiest */

    double experts_touched; /* mean share of experts with a token */

    /* As in eplb/router.h: most padded rows of a GPU / mean useful rows of a GPU, and all padded
     * rows / all useful rows; means. Each replica's share is rounded up to whole tiles. */
    double padded_worst_rank;
    double padded_ratio;

    double dropped; /* share of all assignments beyond the capacity factor */

    /* Experts with most tokens over all steps, and their tokens / the fair share; ties by smaller
     * id. -1 and 0 where there are no more experts. */
    int32_t hottest_experts[EPLB_HOTTEST_EXPERTS];
    double hottest_ratios[EPLB_HOTTEST_EXPERTS];

    /* What engines print. SGLang: mean of (mean + 1e-5) / (max + 1e-5). TensorRT-LLM: mean of
     * (max - mean) / mean, which is imbalance_mean - 1. */
    double sglang_utilisation;
    double trtllm_imbalance;
} eplb_layer_stats;

/* All layers. */
typedef struct eplb_step_stats_info {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layers;
    int32_t scored_layers; /* with a step */
    int32_t reserved;      /* 0 */
    int64_t rows;          /* added, those of zeros too */
    int64_t skipped;       /* rows of zeros */
    double imbalance_mean; /* over the scored layers: of their means; and the largest of them */
    double imbalance_worst;

    /* vLLM's balancedness, vllm-project/vllm#51813: for each step the sum over layers of the mean
     * GPU / the sum over layers of the busiest GPU; mean over steps. 0 when that is unknown: no
     * step, or rows of one step did not come one after another. */
    double vllm_balancedness;

    /* Over all rows with tokens: see eplb_layer_stats. */
    double sglang_utilisation;
    double trtllm_imbalance;
} eplb_step_stats_info;

/* Copies results out, at most struct_size bytes of them. Cost: O(experts + histogram). */
EPLB_API eplb_status eplb_step_stats_get_layer(const eplb_step_stats *stats, int32_t layer,
                                               eplb_layer_stats *result, eplb_error *error);
EPLB_API eplb_status eplb_step_stats_get_info(const eplb_step_stats *stats,
                                              eplb_step_stats_info *info, eplb_error *error);

/* Tokens [experts] of one layer over all steps; NULL when the index is out of range. Valid until
 * the statistics are destroyed; later rows show through it. */
EPLB_API const double *eplb_step_stats_experts(const eplb_step_stats *stats, int32_t layer);

EPLB_END_DECLS

#endif
