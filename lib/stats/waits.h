/* SPDX-License-Identifier: MIT */
/* What waits keep. */
#ifndef EPLB_STATS_WAITS_H
#define EPLB_STATS_WAITS_H

#include <eplb/waits.h>

#include "model/layer_ids.h"

/*
 * Bins of a histogram of microseconds: linear below 1, and log-linear for each power of two up to
 * 2^37, which is above EPLB_MAX_WAIT_US. The middle of a bin is off by at most 1/64 of any value in
 * it; a bin below 1 gives its lower edge, so that a wait of 0 is 0.
 */
#define EPLB_WAIT_BIN_BITS 5
#define EPLB_WAIT_LINEAR_BINS (1 << EPLB_WAIT_BIN_BITS)
#define EPLB_WAIT_OCTAVES 37
#define EPLB_WAIT_BINS ((1 + EPLB_WAIT_OCTAVES) << EPLB_WAIT_BIN_BITS)

/* The samples of one rank in one layer. */
typedef struct eplb_wait_cell {
    int64_t samples; /* at most UINT32_MAX, so that no bin wraps */
    double sum;
    double largest;
    uint32_t histogram[EPLB_WAIT_BINS];
} eplb_wait_cell;

struct eplb_waits {
    eplb_hooks hooks;
    int32_t layers;
    int32_t ranks;
    eplb_layer_ids layer_ids;
    eplb_wait_cell **cells; /* [layers][ranks]; NULL: no samples, and no memory taken for them */
};

/* The place of one rank in one layer. */
static inline eplb_wait_cell **eplb_waits_at(const eplb_waits *waits, int32_t layer, int32_t rank)
{
    return &waits->cells[(size_t)layer * (size_t)waits->ranks + (size_t)rank];
}

/* Makes waits that no memory is taken for. The ids are NULL or as for eplb_waits_options. */
eplb_status eplb_waits_make(eplb_waits **out, const eplb_hooks *hooks, int32_t layers,
                            int32_t ranks, const int32_t *layer_ids, int32_t model_layers,
                            eplb_error *error);

/* Takes the memory of a cell, empty, unless it has it. */
eplb_status eplb_wait_cell_take(eplb_wait_cell **cell, const eplb_hooks *hooks, eplb_error *error);

/* Adds one wait to a cell, which takes its memory when it has none. The ids are for messages. */
eplb_status eplb_wait_cell_add(eplb_wait_cell **cell, const eplb_hooks *hooks, int32_t layer_id,
                               int32_t rank, double microseconds, eplb_error *error);

#endif
