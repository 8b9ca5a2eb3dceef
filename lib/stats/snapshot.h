/* SPDX-License-Identifier: MIT */
#ifndef EPLB_STATS_SNAPSHOT_H
#define EPLB_STATS_SNAPSHOT_H

#include <eplb/snapshot.h>

#include "stats/window_shape.h"

struct eplb_snapshot {
    eplb_hooks hooks;
    eplb_window_shape shape;
    int32_t buckets;
    int64_t first_bucket;
    int64_t steps;          /* begun, of every kind */
    uint64_t *sums;         /* [buckets][layers][experts] */
    uint64_t *dropped;      /* [buckets] */
    uint64_t *bucket_steps; /* [buckets][eplb_window_step_words] */
    uint8_t *held;          /* [ranks]: 1 when the rank's counts are in */
};

/* Makes a snapshot of zeros with room for so many buckets, that holds the shape's rank. */
eplb_status eplb_snapshot_create(eplb_snapshot **out, const eplb_hooks *hooks,
                                 const eplb_window_shape *shape, int32_t buckets,
                                 eplb_error *error);

/* Number of sums of one bucket. */
static inline size_t eplb_snapshot_cells(const eplb_snapshot *snapshot)
{
    return (size_t)snapshot->shape.layers * (size_t)snapshot->shape.experts;
}

/* For totals that only inform: what does not fit is the largest number. */
static inline uint64_t eplb_saturating_add(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

#endif
