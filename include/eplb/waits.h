/* SPDX-License-Identifier: MIT */
/*
 * All-to-all wait times: how long each rank waits at the all-to-all of each layer, as a server
 * measures them or a log has them (see eplb/waits_file.h): percentiles, the rank that waits
 * longest, and the rank that the others wait for.
 *
 * What is a wait. The time from when a rank is ready at the all-to-all of a layer (the combine,
 * which brings the experts' results back) until the last of the others is. The busiest rank is
 * ready last, so it waits LEAST: the rank that the others wait for is the one with the SMALLEST
 * waits. A rank with large waits has little to do. Compare the least rank of a layer with the
 * busiest GPU that the placement and the load predict: where they differ, something else than
 * tokens holds that rank up.
 *
 * Percentiles. The p-th is the least wait that p percent of the samples do not exceed, as in
 * eplb/step_stats.h. It is read from a histogram: off by at most 1/64 of its value, or by less than
 * 1/32 us below 1 us, and never above the largest wait. Counts, means and the largest wait are not
 * rounded. Ranks whose reported values are equal are ties; the smaller rank is named.
 *
 * A rank without samples is reported as missing and takes no part in any comparison.
 *
 * Threads: waits belong to one thread at a time; while nothing is added or merged, many may read.
 * There are no locks: let each thread record into its own, and merge them.
 */
#ifndef EPLB_WAITS_H
#define EPLB_WAITS_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/load.h>
#include <eplb/status.h>
#include <eplb/window.h>

EPLB_BEGIN_DECLS

/* The longest wait that is taken, in microseconds: a day. What is longer is no wait but, most
 * likely, a time of day. */
#define EPLB_MAX_WAIT_US 86400e6

typedef struct eplb_waits eplb_waits;

typedef struct eplb_waits_options {
    uint32_t struct_size; /* sizeof(eplb_waits_options), written by eplb_waits_options_init */
    int32_t layers;       /* MoE layers, 1..EPLB_MAX_LAYERS; no default: must be set */
    int32_t ranks;        /* 1..EPLB_MAX_RANKS; no default: must be set */

    /* The one rank that records here: memory is taken for its waits only. -1 (default): for those
     * of every rank. */
    int32_t rank;

    /* Layer ids [layers] and the number of model layers, as in eplb_load_set_layer_ids (copied).
     * NULL (default): ids equal the indices; 0 (default): unknown. */
    const int32_t *layer_ids;
    int32_t model_layers;
    int32_t reserved; /* 0 */
} eplb_waits_options;

/* Writes the defaults. */
EPLB_API void eplb_waits_options_init(eplb_waits_options *options);

/* Makes waits without a sample. Memory: 8 bytes for each layer and rank, and 4888 for each of them
 * that memory is taken for, however many samples come. */
EPLB_API eplb_status eplb_waits_create(eplb_waits **out, const eplb_hooks *hooks,
                                       const eplb_waits_options *options, eplb_error *error);

/* Frees the waits and sets the pointer to NULL. */
EPLB_API void eplb_waits_destroy(eplb_waits **waits);

/*
 * Adds one wait of a rank in a layer (its index, 0..layers-1), in microseconds. Several in one step
 * are several samples. Cost: O(1). Allocates nothing, except at the first wait of a layer and rank
 * that no memory was taken for.
 *
 * Errors, which leave the waits as they were: EPLB_ERROR_ARGUMENT for a layer or rank out of range,
 * EPLB_ERROR_DATA for a wait that is NaN, negative or above EPLB_MAX_WAIT_US, EPLB_ERROR_OVERFLOW
 * after 2^32 - 1 samples of one layer and rank, EPLB_ERROR_NOMEM.
 */
EPLB_API eplb_status eplb_waits_add(eplb_waits *waits, int32_t layer, int32_t rank,
                                    double microseconds, eplb_error *error);

/*
 * Adds the samples of `from`, such as those of another rank, to `into`; the histograms add up, so
 * the result is as if all had been added to one. Both must have the same layers, ranks, layer ids
 * and number of model layers. Errors: EPLB_ERROR_DATA for what does not match, EPLB_ERROR_OVERFLOW
 * for more than 2^32 - 1 samples of a layer and rank, EPLB_ERROR_NOMEM; then no sample was added.
 */
EPLB_API eplb_status eplb_waits_merge(eplb_waits *into, const eplb_waits *from, eplb_error *error);

/* The layer ids [layers], valid as long as the waits. */
EPLB_API const int32_t *eplb_waits_layer_ids(const eplb_waits *waits);

/* Times are microseconds. Without a sample all times are 0. */

/* One rank in one layer. */
typedef struct eplb_wait_times {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layer_id;
    int64_t samples;
    double p50;
    double p99;
    double mean;
    double worst; /* the largest */
} eplb_wait_times;

/* One layer. Where no rank has samples, the ranks are -1. */
typedef struct eplb_layer_waits {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layer_id;
    int64_t samples;
    double p50; /* of the samples of all ranks together */
    double p99;
    double mean;
    double worst;
    int32_t sampled_ranks; /* ranks with samples */
    int32_t missing_ranks; /* the others */

    /* The rank that waits longest: the largest p99. */
    int32_t worst_rank;
    /* The rank that the others wait for, the busiest: the smallest p50. While ranks are missing it
     * may be one of them. */
    int32_t least_rank;
    double worst_rank_p50;
    double worst_rank_p99;
    double least_rank_p50;
    double least_rank_p99;
} eplb_layer_waits;

/* One rank in all layers. */
typedef struct eplb_rank_waits {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t reserved;     /* 0 */
    int32_t sampled_layers;
    int32_t missing_layers; /* layers in which other ranks have samples and this one has none */
    int64_t samples;
    double p50; /* of the samples of all layers together */
    double p99;
    double mean;
    double worst;

    /* The sum over layers of the mean: what the rank waits in a step that has one all-to-all a
     * layer. Means add up over layers; percentiles do not. */
    double step_wait;
} eplb_rank_waits;

/* All layers and ranks. */
typedef struct eplb_waits_info {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layers;
    int32_t ranks;
    int32_t sampled_layers; /* layers with samples */
    int32_t missing_ranks;  /* ranks without samples in any layer */
    int32_t partial_ranks;  /* ranks with samples in some, but not in all of these layers */
    int64_t samples;
    double p50; /* of all samples together */
    double p99;
    double mean;
    double worst;

    /* The ranks with the largest and the smallest step_wait, among those with samples in all the
     * sampled layers; -1 and 0 when there is none. */
    int32_t worst_rank;
    int32_t least_rank;
    double worst_rank_step_wait;
    double least_rank_step_wait;
} eplb_waits_info;

/*
 * Copy results out, at most struct_size bytes of them. EPLB_ERROR_ARGUMENT for a layer (index) or
 * rank out of range or a result without struct_size. Cost: O(1216), the bins of a histogram, for
 * each layer and rank that is looked at. They use 10 KiB of stack and allocate nothing.
 */
EPLB_API eplb_status eplb_waits_get(const eplb_waits *waits, int32_t layer, int32_t rank,
                                    eplb_wait_times *result, eplb_error *error);
EPLB_API eplb_status eplb_waits_get_layer(const eplb_waits *waits, int32_t layer,
                                          eplb_layer_waits *result, eplb_error *error);
EPLB_API eplb_status eplb_waits_get_rank(const eplb_waits *waits, int32_t rank,
                                         eplb_rank_waits *result, eplb_error *error);
EPLB_API eplb_status eplb_waits_get_info(const eplb_waits *waits, eplb_waits_info *info,
                                         eplb_error *error);

/* Writes the ranks without samples in a layer (its index; -1: in any layer), ascending, at most
 * `capacity` of them, into missing (may be NULL when capacity is 0), and returns how many there
 * are; 0 when there is no such layer. */
EPLB_API int32_t eplb_waits_missing_ranks(const eplb_waits *waits, int32_t layer, int32_t *missing,
                                          int32_t capacity);

/*
 * A builder takes waits by layer id, for sources whose shape is known only at their end. Only
 * layers and ranks with samples take much memory: 4888 bytes for each pair of them, and 8 bytes for
 * each possible layer and, in a layer with samples, each possible rank.
 *
 * Threads: a builder belongs to one thread at a time.
 */
typedef struct eplb_waits_builder eplb_waits_builder;

/* Makes a builder for layer ids below `max_layers` (1..EPLB_MAX_LAYERS) and ranks below `max_ranks`
 * (1..EPLB_MAX_RANKS). */
EPLB_API eplb_status eplb_waits_builder_create(eplb_waits_builder **out, const eplb_hooks *hooks,
                                               int32_t max_layers, int32_t max_ranks,
                                               eplb_error *error);

/* Frees the builder and sets the pointer to NULL. */
EPLB_API void eplb_waits_builder_destroy(eplb_waits_builder **builder);

/* As eplb_waits_add, by layer id. Allocates at the first wait of a layer and rank. */
EPLB_API eplb_status eplb_waits_builder_add(eplb_waits_builder *builder, int32_t layer_id,
                                            int32_t rank, double microseconds, eplb_error *error);

/*
 * Makes the waits of everything added, and empties the builder, which may be used again. The layers
 * are the layer ids seen, ascending, their model's number of layers unknown. `ranks`: their number,
 * or 0 to take one more than the largest seen. EPLB_ERROR_DATA when nothing was added or a rank is
 * not below `ranks`; a failed call leaves the builder as it was.
 */
EPLB_API eplb_status eplb_waits_builder_finish(eplb_waits_builder *builder, eplb_waits **out,
                                               int32_t ranks, eplb_error *error);

EPLB_END_DECLS

#endif
