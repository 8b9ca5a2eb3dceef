/* SPDX-License-Identifier: MIT */
/* Waits in one call each. */
#ifndef EPLB_TESTS_WAITS_H
#define EPLB_TESTS_WAITS_H

#include <eplb/waits.h>

#include "support.h"

static inline eplb_waits_options shape(int32_t layers, int32_t ranks)
{
    eplb_waits_options options;
    eplb_waits_options_init(&options);
    options.layers = layers;
    options.ranks = ranks;
    return options;
}

static inline eplb_waits *waits_of(int32_t layers, int32_t ranks)
{
    eplb_waits_options options = shape(layers, ranks);
    eplb_waits *waits;
    eplb_error error;
    assert_ok(eplb_waits_create(&waits, NULL, &options, &error), &error);
    return waits;
}

static inline void add(eplb_waits *waits, int32_t layer, int32_t rank, double microseconds)
{
    eplb_error error;
    assert_ok(eplb_waits_add(waits, layer, rank, microseconds, &error), &error);
}

static inline eplb_wait_times times_of(const eplb_waits *waits, int32_t layer, int32_t rank)
{
    eplb_wait_times result = {.struct_size = sizeof(result)};
    eplb_error error;
    assert_ok(eplb_waits_get(waits, layer, rank, &result, &error), &error);
    return result;
}

static inline eplb_layer_waits layer_of(const eplb_waits *waits, int32_t layer)
{
    eplb_layer_waits result = {.struct_size = sizeof(result)};
    eplb_error error;
    assert_ok(eplb_waits_get_layer(waits, layer, &result, &error), &error);
    return result;
}

static inline eplb_rank_waits rank_of(const eplb_waits *waits, int32_t rank)
{
    eplb_rank_waits result = {.struct_size = sizeof(result)};
    eplb_error error;
    assert_ok(eplb_waits_get_rank(waits, rank, &result, &error), &error);
    return result;
}

static inline eplb_waits_info info_of(const eplb_waits *waits)
{
    eplb_waits_info info = {.struct_size = sizeof(info)};
    eplb_error error;
    assert_ok(eplb_waits_get_info(waits, &info, &error), &error);
    return info;
}

/* What a percentile may be off by. */
static inline double tolerance_of(double value)
{
    return value < 1.0 ? 1.0 / 32 : value / 64;
}

#endif
