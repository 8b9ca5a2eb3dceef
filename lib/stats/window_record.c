/* SPDX-License-Identifier: MIT */
/* The hot path: see window.h for what a recorder may touch, and why. */
#include "stats/window.h"

#include <string.h>

#include "base/range.h"
#include "base/size.h"

/* Cells are spilled above this: below, there is room for as much again. */
#define MOST_BEFORE ((uint64_t)INT32_MAX)

static eplb_status check_record(const eplb_recorder *recorder, int32_t layer, const void *array,
                                eplb_error *error)
{
    eplb_status status =
        eplb_check_range("recorder", "layer", layer, 0, recorder->window->shape.layers - 1, error);
    return status == EPLB_OK ? eplb_check_given("recorder", "array", array, error) : status;
}

/* A reader holds one lane at most, so this ends at the first try or the second, unless the reader
 * has gone from one to the other just between the two. */
static eplb_lane *enter(eplb_recorder *recorder)
{
    unsigned lane = atomic_load_explicit(&recorder->preferred, memory_order_relaxed);
    while (!eplb_lane_try(&recorder->lane[lane])) {
        lane = 1 - lane;
    }
    return &recorder->lane[lane];
}

static uint64_t read_clock(const eplb_window *window)
{
    return atomic_load_explicit(&window->clock, memory_order_acquire);
}

/* The cells that the step counts a layer into, or NULL when it counts nothing. None of them holds
 * more than MOST_BEFORE, so the call may add as much again. */
static uint32_t *current_cells(const eplb_window *window, eplb_lane *lane, uint64_t clock,
                               int32_t layer)
{
    if ((clock & EPLB_CLOCK_COUNTING) == 0) {
        return NULL;
    }
    eplb_hot_row *hot = &lane->hot[layer];
    uint64_t tag = clock >> EPLB_CLOCK_TAG_SHIFT;
    if (hot->tag != tag || hot->most > MOST_BEFORE) {
        eplb_lane_spill(window, lane, layer);
        hot->tag = tag;
    }
    return eplb_lane_cells(window, lane, layer);
}

/* For what may be too large for cells: the sums of the bucket that the cells belong to. */
static uint64_t *bank_sums(const eplb_window *window, const eplb_lane *lane, int32_t layer)
{
    return eplb_lane_own_bank_row(window, lane, lane->hot[layer].tag, layer) + EPLB_BANK_SUMS;
}

/* Adds counts to cells, which wrap, and returns the bits that are set in any count. Unrolled, as
 * clang does by itself, it takes a quarter less time. */
static uint32_t add_row(uint32_t *restrict cells, const uint32_t *restrict counts, int32_t experts)
{
    uint32_t bits = 0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 4
#endif
    for (int32_t e = 0; e < experts; e++) {
        cells[e] += counts[e];
        bits |= counts[e];
    }
    return bits;
}

/* Most rows are added in one pass. One with a count that may not fit is taken out again, which is
 * exact whether cells have wrapped or not. */
static void add_counts(const eplb_window *window, eplb_lane *lane, uint32_t *cells, int32_t layer,
                       const uint32_t *counts)
{
    int32_t experts = window->shape.experts;
    uint32_t bits = add_row(cells, counts, experts);
    if (bits <= MOST_BEFORE) {
        lane->hot[layer].most += bits;
        return;
    }
    uint64_t *sums = bank_sums(window, lane, layer);
    for (int32_t e = 0; e < experts; e++) {
        cells[e] -= counts[e];
        sums[e] += counts[e];
    }
}

eplb_status eplb_recorder_counts(eplb_recorder *recorder, int32_t layer, const uint32_t *counts,
                                 eplb_error *error)
{
    eplb_status status = check_record(recorder, layer, counts, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_window *window = recorder->window;
    eplb_lane *lane = enter(recorder);
    uint32_t *cells = current_cells(window, lane, read_clock(window), layer);
    if (cells != NULL) {
        add_counts(window, lane, cells, layer, counts);
    }
    eplb_lane_leave(lane);
    return EPLB_OK;
}

/* Cells are numbered from that of padding: -1 and all experts keep their distance, and whatever is
 * below or above comes out above them as unsigned. */
static uint32_t cell_of(int32_t id, uint32_t experts)
{
    uint32_t cell = (uint32_t)id + 1u;
    return cell <= experts ? cell : experts + 1;
}

static void add_ids(const eplb_window *window, uint32_t *cells, const int32_t *ids, size_t count)
{
    uint32_t experts = (uint32_t)window->shape.experts;
    uint32_t *even = cells - 1;
    uint32_t *odd = even + window->cells;
    size_t i = 0;
    for (; i + 1 < count; i += 2) {
        even[cell_of(ids[i], experts)]++;
        odd[cell_of(ids[i + 1], experts)]++;
    }
    if (i < count) {
        even[cell_of(ids[i], experts)]++;
    }
}

eplb_status eplb_recorder_topk(eplb_recorder *recorder, int32_t layer, const int32_t *ids,
                               int32_t tokens, int32_t k, eplb_error *error)
{
    eplb_status status = check_record(recorder, layer, ids, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("recorder", "number of tokens", tokens, 0, INT32_MAX, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("recorder", "top-k", k, 0, INT32_MAX, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    size_t left;
    if (!eplb_size_mul((size_t)tokens, (size_t)k, &left)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "recorder: %d x %d ids are too many",
                              tokens, k);
    }
    const eplb_window *window = recorder->window;
    eplb_lane *lane = enter(recorder);
    uint64_t clock = read_clock(window);
    for (size_t part; left > 0; left -= part, ids += part) {
        part = left < MOST_BEFORE ? left : MOST_BEFORE;
        uint32_t *cells = current_cells(window, lane, clock, layer);
        if (cells != NULL) {
            add_ids(window, cells, ids, part);
            lane->hot[layer].most += part;
        }
    }
    eplb_lane_leave(lane);
    return EPLB_OK;
}

static void add_slots(const eplb_window *window, eplb_lane *lane, uint32_t *cells, uint64_t clock,
                      int32_t layer, const uint32_t *counts)
{
    int32_t slots = window->slots;
    const int32_t *expert = window->slot_expert + (size_t)layer * (size_t)slots;
    eplb_hot_row *hot = &lane->hot[layer];
    uint64_t total = 0;
    for (int32_t s = 0; s < slots; s++) {
        total += counts[s];
    }
    if ((clock & EPLB_CLOCK_MAP_CHANGING) != 0) {
        bank_sums(window, lane, layer)[window->shape.experts] += total;
        return;
    }
    lane->slot_tag = hot->tag;
    if (total <= MOST_BEFORE) {
        for (int32_t s = 0; s < slots; s++) {
            cells[expert[s]] += counts[s];
        }
        hot->most += total;
        return;
    }
    uint64_t *sums = bank_sums(window, lane, layer);
    for (int32_t s = 0; s < slots; s++) {
        sums[expert[s]] += counts[s];
    }
}

eplb_status eplb_recorder_slot_counts(eplb_recorder *recorder, int32_t layer,
                                      const uint32_t *counts, eplb_error *error)
{
    eplb_status status = check_record(recorder, layer, counts, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_window *window = recorder->window;
    eplb_lane *lane = enter(recorder);
    uint64_t clock = read_clock(window);
    bool has_map = (clock & (EPLB_CLOCK_MAP | EPLB_CLOCK_MAP_CHANGING)) != 0;
    uint32_t *cells = has_map ? current_cells(window, lane, clock, layer) : NULL;
    if (cells != NULL) {
        add_slots(window, lane, cells, clock, layer, counts);
    }
    eplb_lane_leave(lane);
    return has_map ? EPLB_OK
                   : eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                    "recorder: layer %d: slot counts without a placement", layer);
}
