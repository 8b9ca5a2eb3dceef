/* SPDX-License-Identifier: MIT */
/*
 * What a router's randomness alone does: balls in bins. With few tokens in a step even the best
 * placement shows a busiest rank, and rows of expert matrix products are padded to full tiles; no
 * placement can mend that, only more tokens in a step can. This simulates it, so that a measured
 * imbalance has something to be compared with.
 *
 * Threads: calls are independent.
 */
#ifndef EPLB_ROUTER_H
#define EPLB_ROUTER_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_router_options {
    uint32_t struct_size; /* sizeof(eplb_router_options), written by eplb_router_options_init */
    int32_t experts;      /* logical experts, 1..EPLB_MAX_EXPERTS; default 256 */
    int32_t topk;         /* different experts that each token goes to, 1..experts; default 8 */
    int32_t ranks;        /* ranks, with equal runs of expert ids each, no replicas; a divisor of
                           * experts; default 8 */
    int32_t tile;   /* rows of a tile that an expert's tokens are padded to, >= 1; default 64 */
    int32_t trials; /* simulated steps, >= 1; default 10000 */
    uint64_t seed;  /* default 1 */

    /* How likely experts are chosen, [experts], finite, >= 0, topk of them above 0: each token
     * draws topk different experts one after another, by popularity among those not yet drawn.
     * NULL (default): all alike. Borrowed for the call. */
    const double *popularity;
} eplb_router_options;

/* Writes the defaults. */
EPLB_API void eplb_router_options_init(eplb_router_options *options);

typedef struct eplb_router_result {
    uint32_t struct_size;  /* set by the caller: how much may be written */
    int32_t batch;         /* tokens of a step */
    double imbalance_mean; /* over the trials: tokens of the busiest rank / mean over ranks */
    double imbalance_p99;  /* its 99th percentile: the least value that 99 % of the trials keep */
    double padded_worst_rank; /* mean: most padded rows of a rank / mean useful rows of a rank */
    double padded_ratio;      /* mean: padded rows of all ranks / useful rows of all ranks */
    double experts_touched;   /* share of experts with a token: 1 - (1 - topk / experts)^batch when
                               * all are alike, else the mean over the trials */
    double experts_touched_measured;     /* the mean over the trials in either case */
    double weight_bytes_share_per_token; /* experts_touched / batch: the share of all expert weights
                                          * that is read for each token */
    double tokens_to_fill_tiles; /* tokens of a step at which an expert of mean load fills a tile:
                                  * tile * experts / topk */
} eplb_router_result;

/*
 * Simulates options.trials steps of `batch` (1..2^24) tokens. Sampling is exact: without
 * replacement and without rounding of probabilities when all are alike. The same options give the
 * same result. Errors: EPLB_ERROR_ARGUMENT, EPLB_ERROR_DATA for popularities that are none.
 * Cost: some 2 ns for each token and expert drawn, with popularities some 10 ns. Memory: some 40
 * bytes for each expert and 4 for each trial.
 */
EPLB_API eplb_status eplb_router_simulate(eplb_router_result *result, const eplb_hooks *hooks,
                                          const eplb_router_options *options, int32_t batch,
                                          eplb_error *error);

EPLB_END_DECLS

#endif
