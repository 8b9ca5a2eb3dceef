/* SPDX-License-Identifier: MIT */
/*
 * Taking a snapshot. Every lane is read while it is held, so each row is whole; one with another
 * tag than the bucket's holds nothing of it. A recorder empties a row of a bank only after the
 * clock has moved on, so a second look at the time, after the lanes, tells which of the oldest
 * buckets may be incomplete: those that have left the window.
 */
#include "stats/window.h"

#include <string.h>

#include "base/range.h"
#include "stats/snapshot.h"

/* Adds [count] numbers; false when a sum overflows. */
static bool add(uint64_t *sums, const uint64_t *addends, int32_t count)
{
    bool overflow = false;
    for (int32_t i = 0; i < count; i++) {
        overflow |= __builtin_add_overflow(sums[i], addends[i], &sums[i]);
    }
    return !overflow;
}

static bool add_cells(uint64_t *sums, const uint32_t *cells, int32_t count)
{
    bool overflow = false;
    for (int32_t i = 0; i < count; i++) {
        overflow |= __builtin_add_overflow(sums[i], cells[i], &sums[i]);
    }
    return !overflow;
}

/* Adds what a lane has of one bucket (its index in the snapshot) and layer. */
static bool add_layer(eplb_snapshot *snapshot, const eplb_window *window, const eplb_lane *lane,
                      int32_t index, int32_t layer)
{
    int32_t experts = snapshot->shape.experts;
    size_t row = (size_t)index * (size_t)snapshot->shape.layers + (size_t)layer;
    uint64_t *sums = snapshot->sums + row * (size_t)experts;
    uint64_t *dropped = &snapshot->dropped[index];
    uint64_t tag = (uint64_t)(snapshot->first_bucket + index + 1);
    bool fits = true;
    const uint64_t *bank = eplb_lane_bank_row(window, lane, tag, layer);
    if (bank[EPLB_BANK_TAG] == tag) {
        fits = add(sums, bank + EPLB_BANK_SUMS, experts);
        *dropped = eplb_saturating_add(*dropped, bank[EPLB_BANK_SUMS + experts]);
    }
    if (lane->hot[layer].tag == tag) {
        const uint32_t *first = eplb_lane_cells(window, lane, layer);
        const uint32_t *second = first + window->cells;
        fits = add_cells(sums, first, experts) && add_cells(sums, second, experts) && fits;
        *dropped = eplb_saturating_add(*dropped, (uint64_t)first[experts] + second[experts]);
    }
    return fits;
}

static bool add_lane(eplb_snapshot *snapshot, const eplb_window *window, const eplb_lane *lane)
{
    bool fits = true;
    for (int32_t b = 0; b < snapshot->buckets; b++) {
        for (int32_t l = 0; l < snapshot->shape.layers; l++) {
            fits = add_layer(snapshot, window, lane, b, l) && fits;
        }
    }
    return fits;
}

static bool add_all(eplb_snapshot *snapshot, eplb_window *window)
{
    bool fits = true;
    for (int32_t r = 0; r < window->recorders; r++) {
        for (unsigned i = 0; i < 2; i++) {
            eplb_lane *lane = eplb_lane_take(&window->recorder[r], i);
            fits = add_lane(snapshot, window, lane) && fits;
            eplb_lane_leave(lane);
        }
    }
    return fits;
}

/* Removes the buckets before `first`. bucket_steps is without them already. */
static void keep_from(eplb_snapshot *snapshot, int64_t first)
{
    size_t cells = eplb_snapshot_cells(snapshot);
    int64_t end = snapshot->first_bucket + snapshot->buckets;
    size_t left = first < end ? (size_t)(end - first) : 0;
    size_t gone = (size_t)snapshot->buckets - left;
    memmove(snapshot->sums, snapshot->sums + gone * cells, left * cells * sizeof(*snapshot->sums));
    memmove(snapshot->dropped, snapshot->dropped + gone, left * sizeof(*snapshot->dropped));
    snapshot->buckets = (int32_t)left;
    snapshot->first_bucket = first;
}

static int32_t buckets_in(eplb_window_time time)
{
    return (int32_t)(time.last_bucket - time.first_bucket + 1);
}

static void clear(eplb_snapshot *snapshot)
{
    size_t buckets = (size_t)snapshot->buckets;
    memset(snapshot->sums, 0, buckets * eplb_snapshot_cells(snapshot) * sizeof(*snapshot->sums));
    memset(snapshot->dropped, 0, buckets * sizeof(*snapshot->dropped));
}

/* Fills a snapshot of zeros with room for all buckets of the window. False when a sum overflows. */
static bool take(eplb_snapshot *snapshot, eplb_window *window)
{
    for (;;) {
        eplb_window_time before = eplb_window_read_time(window, NULL);
        snapshot->first_bucket = before.first_bucket;
        snapshot->buckets = buckets_in(before);
        bool fits = add_all(snapshot, window);
        eplb_window_time after = eplb_window_read_time(window, snapshot->bucket_steps);
        snapshot->steps = after.steps;
        if (after.first_bucket <= before.last_bucket || buckets_in(after) == 0) {
            keep_from(snapshot, after.first_bucket);
            return fits;
        }
        clear(snapshot);
    }
}

eplb_status eplb_window_snapshot(eplb_snapshot **out, eplb_window *window, const eplb_hooks *hooks,
                                 eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("snapshot", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("snapshot", "window", window, error);
    }
    eplb_snapshot *snapshot = NULL;
    if (status == EPLB_OK) {
        status = eplb_snapshot_create(&snapshot, hooks, &window->shape, window->buckets, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&window->readers);
    bool fits = take(snapshot, window);
    (void)pthread_mutex_unlock(&window->readers);
    if (!fits) {
        eplb_snapshot_destroy(&snapshot);
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "snapshot: a sum over the recorders is 2^64 or more");
    }
    *out = snapshot;
    return EPLB_OK;
}
