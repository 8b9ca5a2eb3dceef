/* SPDX-License-Identifier: MIT */
/* Step statistics in one call each. */
#ifndef EPLB_TESTS_STEP_STATS_H
#define EPLB_TESTS_STEP_STATS_H

#include "unit/model.h"

#include <eplb/split.h>
#include <eplb/step_stats.h>

/* One expert in each slot, in order and from 0 again, on equal GPUs. */
static inline eplb_placement *spread(int32_t layers, int32_t experts, int32_t gpus,
                                     int32_t slots_per_gpu)
{
    eplb_placement *placement =
        make_placement(make_cluster(gpus, slots_per_gpu, 0), layers, experts);
    for (int32_t l = 0; l < layers; l++) {
        assert_ok(eplb_placement_spread(placement, l, NULL), NULL);
    }
    return placement;
}

static inline eplb_step_stats_options with_topk(int32_t topk)
{
    eplb_step_stats_options options;
    eplb_step_stats_options_init(&options);
    options.topk = topk;
    return options;
}

/* Frees the placement, which the statistics have copied. `options` may be NULL. */
static inline eplb_step_stats *stats_of(eplb_placement *placement,
                                        const eplb_step_stats_options *options)
{
    eplb_step_stats *stats;
    eplb_error error;
    assert_ok(eplb_step_stats_create(&stats, NULL, placement, options, &error), &error);
    eplb_placement_destroy(&placement);
    return stats;
}

static inline void add(eplb_step_stats *stats, int64_t step, int32_t layer, const double *counts)
{
    eplb_error error;
    assert_ok(eplb_step_stats_add(stats, step, layer, counts, &error), &error);
}

static inline eplb_layer_stats layer_of(const eplb_step_stats *stats, int32_t layer)
{
    eplb_layer_stats result = {.struct_size = sizeof(result)};
    eplb_error error;
    assert_ok(eplb_step_stats_get_layer(stats, layer, &result, &error), &error);
    return result;
}

static inline eplb_step_stats_info info_of(const eplb_step_stats *stats)
{
    eplb_step_stats_info info = {.struct_size = sizeof(info)};
    eplb_error error;
    assert_ok(eplb_step_stats_get_info(stats, &info, &error), &error);
    return info;
}

static inline eplb_split split_of(const eplb_step_stats *stats, int32_t layer)
{
    eplb_split split = {.struct_size = sizeof(split)};
    eplb_error error;
    assert_ok(eplb_step_stats_split(stats, layer, &split, &error), &error);
    return split;
}

#endif
