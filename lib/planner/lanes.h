/* SPDX-License-Identifier: MIT */
/* Four floats side by side, for one instruction where the machine has it. Each lane is computed by
 * itself and sums have a fixed order, so that the results are the same on every machine. */
#ifndef EPLB_PLANNER_LANES_H
#define EPLB_PLANNER_LANES_H

#include <stdint.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define EPLB_LANES 4

typedef float eplb_lanes __attribute__((vector_size(16)));
typedef int32_t eplb_lane_bits __attribute__((vector_size(16)));

static inline eplb_lanes eplb_lanes_of(float value)
{
    return (eplb_lanes){value, value, value, value};
}

/* The larger of each lane and 0. */
static inline eplb_lanes eplb_lanes_positive(eplb_lanes a)
{
#ifdef __SSE__
    return (eplb_lanes)_mm_max_ps((__m128)a, _mm_setzero_ps()); /* gcc 12 takes two otherwise */
#else
    return (eplb_lanes)((eplb_lane_bits)a & (eplb_lane_bits)(a > eplb_lanes_of(0.0f)));
#endif
}

static inline eplb_lanes eplb_lanes_smaller(eplb_lanes a, eplb_lanes b)
{
#ifdef __SSE__
    return (eplb_lanes)_mm_min_ps((__m128)a, (__m128)b);
#else
    eplb_lane_bits chosen = (eplb_lane_bits)(a < b);
    return (eplb_lanes)(((eplb_lane_bits)a & chosen) | ((eplb_lane_bits)b & ~chosen));
#endif
}

static inline eplb_lanes eplb_lanes_larger(eplb_lanes a, eplb_lanes b)
{
    eplb_lane_bits chosen = (eplb_lane_bits)(a > b);
    return (eplb_lanes)(((eplb_lane_bits)a & chosen) | ((eplb_lane_bits)b & ~chosen));
}

static inline float eplb_lanes_sum(eplb_lanes a)
{
    return (a[0] + a[1]) + (a[2] + a[3]);
}

#endif
