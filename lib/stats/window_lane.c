/* SPDX-License-Identifier: MIT */
#include "stats/window.h"

#include <sched.h>
#include <string.h>

/* Steered to the other lane, a recorder that never rests leaves this one at the end of its call. */
eplb_lane *eplb_lane_take(eplb_recorder *recorder, unsigned index)
{
    atomic_store_explicit(&recorder->preferred, 1 - index, memory_order_relaxed);
    while (!eplb_lane_try(&recorder->lane[index])) {
        (void)sched_yield();
    }
    return &recorder->lane[index];
}

uint64_t *eplb_lane_own_bank_row(const eplb_window *window, const eplb_lane *lane, uint64_t tag,
                                 int32_t layer)
{
    uint64_t *row = eplb_lane_bank_row(window, lane, tag, layer);
    if (row[EPLB_BANK_TAG] != tag) {
        memset(row, 0, window->bank_row * sizeof(*row));
        row[EPLB_BANK_TAG] = tag;
    }
    return row;
}

void eplb_lane_spill(const eplb_window *window, eplb_lane *lane, int32_t layer)
{
    eplb_hot_row *hot = &lane->hot[layer];
    uint32_t *first = eplb_lane_cells(window, lane, layer);
    const uint32_t *second = first + window->cells;
    if (hot->most > 0) {
        uint64_t *sums = eplb_lane_own_bank_row(window, lane, hot->tag, layer) + EPLB_BANK_SUMS;
        for (int32_t e = 0; e <= window->shape.experts; e++) {
            sums[e] += (uint64_t)first[e] + second[e];
        }
        memset(first - EPLB_FIRST_CELL, 0, 2 * window->cells * sizeof(*first));
    }
    hot->most = 0;
}
