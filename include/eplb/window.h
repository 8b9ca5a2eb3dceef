/* SPDX-License-Identifier: MIT */
/*
 * Windows: what a server counts while it runs. A window is a ring of buckets, each the sum of some
 * steps: tokens of each layer and expert. Threads of the server record into it, one of them (the
 * owner) says when a step begins, and a planner takes snapshots of it (see eplb/snapshot.h).
 *
 * Steps. eplb_window_begin_step begins a step; it lasts until the next one begins. A bucket holds
 * options.steps_per_bucket steps, dummy ones too; when the ring is full, a new bucket takes the
 * place of the oldest. What is recorded counts into the step that is current when the recording
 * call begins, so a record that arrives late counts into the next step. In a dummy step, in a
 * warm-up step, before the first step and between a reset and the next step, records are valid and
 * count nothing.
 *
 * Sums. Counts are 32 bits, sums 64. A sum would wrap only after more than 2^32 calls with the
 * largest of counts, 2^32 - 1, by one recorder for one layer in one bucket.
 *
 * Threads: three roles, which may run at the same time.
 * - A recorder belongs to one thread at a time. Its calls take no lock and wait for nobody: while
 *   a snapshot reads one copy of its sums, it counts into another.
 * - The owner's calls (begin_step, reset, set_placement) are made by one thread at a time, any.
 *   begin_step and reset wait for nobody. The owner may hold a recorder as well.
 * - Any threads may take snapshots. They wait for each other, and for the one call that a recorder
 *   or the owner may be in.
 *
 * Creating and destroying a window is done alone. All its memory is taken when it is created.
 */
#ifndef EPLB_WINDOW_H
#define EPLB_WINDOW_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

#define EPLB_MAX_BUCKETS 4096
#define EPLB_MAX_STEPS_PER_BUCKET 1048576
#define EPLB_MAX_RECORDERS 4096
#define EPLB_MAX_RANKS 65536

typedef struct eplb_window eplb_window;

/* A recording thread's handle. Owned by its window. */
typedef struct eplb_recorder eplb_recorder;

typedef struct eplb_window_options {
    uint32_t struct_size;     /* sizeof(eplb_window_options), written by eplb_window_options_init */
    int32_t layers;           /* MoE layers, 1..EPLB_MAX_LAYERS; no default: must be set */
    int32_t experts;          /* logical experts, 1..EPLB_MAX_EXPERTS; no default: must be set */
    int32_t slots;            /* physical slots of a layer, for slot counts, up to EPLB_MAX_SLOTS;
                               * default 0: none are recorded */
    int32_t buckets;          /* 1..EPLB_MAX_BUCKETS; default 16 */
    int32_t steps_per_bucket; /* 1..EPLB_MAX_STEPS_PER_BUCKET; default 64 */
    int32_t recorders;        /* recording threads, 1..EPLB_MAX_RECORDERS; default 1 */

    /* Warm-up: the first so many steps, of any kind, are dummy steps; >= 0, default 0. */
    int32_t skip_steps;

    /* 1: slot counts under several placements may meet in the window, each folded by the one in
     * force when it was recorded. 0 (default): eplb_window_set_placement refuses that. */
    int32_t fold_each_step;

    /* The rank that records here, and of how many; snapshots of several ranks can be merged.
     * Default: rank 0 of 1, at most EPLB_MAX_RANKS. */
    int32_t rank;
    int32_t ranks;

    /* Layer ids [layers] and the number of model layers, as in eplb_load_set_layer_ids (copied).
     * NULL (default): ids equal the indices; 0 (default): unknown. */
    int32_t model_layers;
    const int32_t *layer_ids;

    /* What is counted here, such as "decode" or a class of traffic (copied). It begins the names of
     * scenarios and keeps snapshots of different windows from being merged. NULL (default): none.
     */
    const char *name;
} eplb_window_options;

/* Writes the defaults. */
EPLB_API void eplb_window_options_init(eplb_window_options *options);

/*
 * Makes a window in which no step has begun. Memory: 16 bytes for each recorder, bucket, layer and
 * expert, 16 more for each recorder, layer and expert, 4 for each layer and slot.
 */
EPLB_API eplb_status eplb_window_create(eplb_window **out, const eplb_hooks *hooks,
                                        const eplb_window_options *options, eplb_error *error);

/* Frees the window with its recorders and sets the pointer to NULL. Snapshots stay. */
EPLB_API void eplb_window_destroy(eplb_window **window);

typedef enum eplb_step_kind {
    EPLB_STEP_COUNTED = 0, /* what is recorded in it counts; the step is filled */
    EPLB_STEP_DUMMY = 1,   /* it takes its place in a bucket and counts nothing: an idle rank's
                            * step, or one that must not be seen, such as a profiling run */
} eplb_step_kind;

/*
 * Begins a step, by the owner. Ranks whose snapshots are to be merged begin the same steps; where
 * one is idle its step is a dummy. EPLB_ERROR_ARGUMENT when `kind` is none.
 */
EPLB_API eplb_status eplb_window_begin_step(eplb_window *window, eplb_step_kind kind,
                                            eplb_error *error);

/*
 * Empties the window, by the owner: no step is current, and the next one begins a new bucket. The
 * numbers of steps and buckets go on, the placement stays, and warm-up steps are not skipped again.
 * A recording call that runs meanwhile ends as if it had come before.
 */
EPLB_API void eplb_window_reset(eplb_window *window);

/*
 * Sets the placement that folds slot counts from now on, by the owner; it is copied and need not be
 * valid: counts of empty slots are dropped and counted as dropped. It must have the window's
 * layers (in the same order: ids are not compared), experts and slots, else EPLB_ERROR_ARGUMENT.
 *
 * While the window holds slot counts under the placement in force, one that differs from it is
 * EPLB_ERROR_DATA and changes nothing, unless options.fold_each_step is 1. Reset the window first,
 * or wait until those counts have left it. The same placement again is always fine.
 *
 * Call it between steps, when the slot counts of the last one have arrived: those that arrive
 * during the call are dropped, and counted as dropped. Waits for a snapshot that is being taken and
 * for recording calls that are running.
 */
EPLB_API eplb_status eplb_window_set_placement(eplb_window *window, const eplb_placement *placement,
                                               eplb_error *error);

/* The recorder of this index, valid as long as the window; NULL when it is out of range. */
EPLB_API eplb_recorder *eplb_window_recorder(eplb_window *window, int32_t index);

/*
 * Records tokens of one layer (its index, 0..layers-1). Calls for one layer in one step add up. A
 * failed call (EPLB_ERROR_ARGUMENT) has counted nothing.
 *
 * counts: tokens of each logical expert, counts [experts].
 * topk: the router's choice, ids [tokens][k], each one token for an expert. -1 is padding and is
 *     ignored; any other id outside of 0..experts-1 is dropped, and counted as dropped.
 * slot_counts: tokens of each physical slot, counts [slots], each for the expert that the placement
 *     in force has there. EPLB_ERROR_ARGUMENT when the window has no slots or no placement yet.
 *
 * Cost, by `meson test --benchmark window`: counts about twice a memcpy of them, an id or a slot
 * less than a nanosecond.
 */
EPLB_API eplb_status eplb_recorder_counts(eplb_recorder *recorder, int32_t layer,
                                          const uint32_t *counts, eplb_error *error);
EPLB_API eplb_status eplb_recorder_topk(eplb_recorder *recorder, int32_t layer, const int32_t *ids,
                                        int32_t tokens, int32_t k, eplb_error *error);
EPLB_API eplb_status eplb_recorder_slot_counts(eplb_recorder *recorder, int32_t layer,
                                               const uint32_t *counts, eplb_error *error);

EPLB_END_DECLS

#endif
