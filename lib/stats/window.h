/* SPDX-License-Identifier: MIT */
/*
 * Inside a window.
 *
 * Each recorder has two lanes, each with sums of its own in plain memory, so that recording is
 * vector code, and a flag that says that a thread is in it. A recorder takes a free lane for each
 * call. A reader takes one lane at a time, so one is always free for the recorder; what the window
 * holds is the sum of both lanes. Readers exclude each other by a mutex that no recorder touches.
 *
 * A lane counts the current bucket in 32-bit cells, half the memory traffic of 64-bit ones, and
 * adds them to a 64-bit bank of that bucket before they could overflow or when the bucket is over.
 *
 * Time is one atomic word, the clock, which only the owner writes and which a recorder reads inside
 * its lane. So whoever has taken and left a lane after a change of the clock knows that no call
 * that saw the old clock is running there.
 */
#ifndef EPLB_STATS_WINDOW_H
#define EPLB_STATS_WINDOW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <eplb/window.h>

#include "stats/window_shape.h"

/*
 * Buckets are told apart by tags: the bucket's number + 1. Rows of a bucket that has left the ring
 * keep their tag until something is recorded into their place.
 *
 * A layer's cells come in two sets, which add up: ids are counted into both in turn, so that equal
 * ids in a row do not wait for each other. Tokens that count nowhere have cells as well, beside the
 * experts', so that counting ids needs no branches: padding (-1) below expert 0, dropped tokens
 * above the last expert.
 */
typedef struct eplb_hot_row {
    uint64_t tag;  /* of the bucket whose tokens the cells hold; 0: none */
    uint64_t most; /* no cell of a set holds more */
} eplb_hot_row;

#define EPLB_CACHE_LINE 64

/* Cells before that of expert 0 and, of a row of a bank, words before its sum. */
enum { EPLB_FIRST_CELL = 16, EPLB_BANK_TAG = 0, EPLB_BANK_SUMS = 1 };

typedef struct eplb_lane {
    atomic_bool taken;
    uint64_t slot_tag; /* of the last bucket that has slot counts; 0: none */
    eplb_hot_row *hot; /* [layers] */
    uint32_t *cells;   /* [layers][2][cells]: see eplb_lane_cells */
    uint64_t *bank;    /* [buckets][layers][bank_row]: tag, sums [experts], dropped */
} eplb_lane;

struct eplb_recorder {
    const eplb_window *window;
    atomic_uint preferred; /* the lane to try first: readers steer recorders away */
    eplb_lane lane[2];
    char padding[EPLB_CACHE_LINE]; /* recorders share no cache line */
};

/* The clock: the tag of the current bucket (0: none) and, below it, how counts are taken. */
enum {
    EPLB_CLOCK_COUNTING = 1,     /* the step counts what is recorded */
    EPLB_CLOCK_MAP = 2,          /* slot counts are folded by window.slot_expert */
    EPLB_CLOCK_MAP_CHANGING = 4, /* they are dropped */
    EPLB_CLOCK_TAG_SHIFT = 3,
};

struct eplb_window {
    eplb_hooks hooks;
    eplb_window_shape shape;
    int32_t slots;
    int32_t buckets;
    int32_t recorders;
    int32_t skip_steps;
    bool fold_each_step;
    size_t cells;    /* of a set */
    size_t bank_row; /* words of a row of a bank */
    eplb_recorder *recorder;
    eplb_hot_row *hot;    /* of all lanes */
    uint32_t *cell;       /* of all lanes */
    uint64_t *bank;       /* of all lanes */
    int32_t *slot_expert; /* [layers][slots]; `experts` for an empty slot */
    pthread_mutex_t readers;
    bool has_mutex;

    /* Written by the owner only. */
    _Atomic uint64_t clock;
    int32_t steps_in_bucket;

    /* And these under `version`, odd while they change. */
    _Atomic uint64_t version;
    _Atomic int64_t steps;          /* begun, of every kind */
    _Atomic int64_t first_bucket;   /* since the last reset, whether the ring still has it or not */
    _Atomic int64_t last_bucket;    /* the current one; first_bucket - 1: none */
    _Atomic uint64_t *bucket_steps; /* [buckets][eplb_window_step_words] */
};

/* What is in a window at one moment: no bucket when first > last. */
typedef struct eplb_window_time {
    int64_t steps;
    int64_t first_bucket;
    int64_t last_bucket;
} eplb_window_time;

/* Reads the time and, into bucket_steps [buckets][eplb_window_step_words], oldest first, the steps
 * of the buckets, both of the same moment. bucket_steps may be NULL. */
eplb_window_time eplb_window_read_time(const eplb_window *window, uint64_t *bucket_steps);

/* Takes a lane of a recorder for reading; the caller holds window.readers. */
eplb_lane *eplb_lane_take(eplb_recorder *recorder, unsigned index);

static inline bool eplb_lane_try(eplb_lane *lane)
{
    return !atomic_exchange_explicit(&lane->taken, true, memory_order_acquire);
}

static inline void eplb_lane_leave(eplb_lane *lane)
{
    atomic_store_explicit(&lane->taken, false, memory_order_release);
}

/* A layer's first set of cells, from expert 0; the second is window.cells further. */
static inline uint32_t *eplb_lane_cells(const eplb_window *window, const eplb_lane *lane,
                                        int32_t layer)
{
    return lane->cells + 2 * window->cells * (size_t)layer + EPLB_FIRST_CELL;
}

/* The row of a bank where a bucket's sums of a layer are, if its tag is `tag`. */
static inline uint64_t *eplb_lane_bank_row(const eplb_window *window, const eplb_lane *lane,
                                           uint64_t tag, int32_t layer)
{
    size_t bucket = (size_t)((tag - 1) % (uint64_t)window->buckets);
    size_t row = bucket * (size_t)window->shape.layers + (size_t)layer;
    return lane->bank + row * window->bank_row;
}

/* The same row, emptied if it is another bucket's. */
uint64_t *eplb_lane_own_bank_row(const eplb_window *window, const eplb_lane *lane, uint64_t tag,
                                 int32_t layer);

/* Moves a layer's cells into the bank of their bucket; they are zero then. */
void eplb_lane_spill(const eplb_window *window, eplb_lane *lane, int32_t layer);

#endif
