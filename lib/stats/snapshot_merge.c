/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "base/range.h"
#include "stats/snapshot.h"

static eplb_status check_windows(const eplb_snapshot *into, const eplb_snapshot *from,
                                 eplb_error *error)
{
    const eplb_window_shape *a = &into->shape;
    const eplb_window_shape *b = &from->shape;
    const char *name_a = a->name != NULL ? a->name : "";
    const char *name_b = b->name != NULL ? b->name : "";
    if (strcmp(name_a, name_b) != 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "merge: rank %d is of the window \"%s\", rank %d of \"%s\"", a->rank,
                              name_a, b->rank, name_b);
    }
    if (a->ranks != b->ranks) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "merge: rank %d is of %d, rank %d of %d",
                              a->rank, a->ranks, b->rank, b->ranks);
    }
    if (a->steps_per_bucket != b->steps_per_bucket) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "merge: rank %d has %d steps per bucket, rank %d has %d", a->rank,
                              a->steps_per_bucket, b->rank, b->steps_per_bucket);
    }
    return eplb_window_shape_match_layers("merge", a, b, error);
}

static eplb_status check_steps(const eplb_snapshot *into, const eplb_snapshot *from,
                               eplb_error *error)
{
    int32_t a = into->shape.rank;
    int32_t b = from->shape.rank;
    if (into->steps != from->steps) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "merge: rank %d has begun %" PRId64 " steps, rank %d %" PRId64, a,
                              into->steps, b, from->steps);
    }
    if (into->first_bucket != from->first_bucket || into->buckets != from->buckets) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "merge: rank %d has %d buckets from %" PRId64 ", rank %d %d from "
                              "%" PRId64,
                              a, into->buckets, into->first_bucket, b, from->buckets,
                              from->first_bucket);
    }
    size_t words = eplb_window_step_words(&into->shape);
    for (int32_t i = 0; i < into->buckets; i++) {
        uint64_t step_a = into->bucket_steps[(size_t)i * words];
        uint64_t step_b = from->bucket_steps[(size_t)i * words];
        if (step_a != step_b) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "merge: bucket %" PRId64 " begins with step %" PRIu64
                                  " on rank %d, with step %" PRIu64 " on rank %d",
                                  into->first_bucket + i, step_a, a, step_b, b);
        }
    }
    return EPLB_OK;
}

static eplb_status check_ranks(const eplb_snapshot *into, const eplb_snapshot *from,
                               eplb_error *error)
{
    for (int32_t rank = 0; rank < into->shape.ranks; rank++) {
        if (into->held[rank] && from->held[rank]) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "merge: rank %d is in both snapshots",
                                  rank);
        }
    }
    return EPLB_OK;
}

static eplb_status check_sums(const eplb_snapshot *into, const eplb_snapshot *from,
                              eplb_error *error)
{
    size_t cells = eplb_snapshot_cells(into);
    for (size_t i = 0; i < (size_t)into->buckets * cells; i++) {
        if (from->sums[i] > UINT64_MAX - into->sums[i]) {
            size_t row = i % cells / (size_t)into->shape.experts;
            return eplb_error_set(
                error, EPLB_ERROR_OVERFLOW,
                "merge: bucket %" PRId64 ": layer %d: expert %d: %" PRIu64 " + %" PRIu64
                " is 2^64 or more",
                into->first_bucket + (int64_t)(i / cells), into->shape.layer_ids[row],
                (int)(i % (size_t)into->shape.experts), into->sums[i], from->sums[i]);
        }
    }
    return EPLB_OK;
}

static void add(eplb_snapshot *into, const eplb_snapshot *from)
{
    size_t buckets = (size_t)into->buckets;
    size_t words = eplb_window_step_words(&into->shape);
    for (size_t i = 0; i < buckets * eplb_snapshot_cells(into); i++) {
        into->sums[i] += from->sums[i];
    }
    for (size_t b = 0; b < buckets; b++) {
        into->dropped[b] = eplb_saturating_add(into->dropped[b], from->dropped[b]);
        for (size_t i = 1; i < words; i++) {
            into->bucket_steps[b * words + i] |= from->bucket_steps[b * words + i];
        }
    }
    for (int32_t rank = 0; rank < into->shape.ranks; rank++) {
        into->held[rank] |= from->held[rank];
    }
}

eplb_status eplb_snapshot_merge(eplb_snapshot *into, const eplb_snapshot *from, eplb_error *error)
{
    eplb_status status = eplb_check_given("merge", "snapshot", into, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("merge", "snapshot", from, error);
    }
    eplb_status (*const checks[])(const eplb_snapshot *, const eplb_snapshot *, eplb_error *) = {
        check_windows, check_ranks, check_steps, check_sums};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && status == EPLB_OK; i++) {
        status = checks[i](into, from, error);
    }
    if (status == EPLB_OK) {
        add(into, from);
    }
    return status;
}
