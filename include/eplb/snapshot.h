/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: what a window held at one moment, bucket by bucket, as exact sums. Snapshots of the
 * same step on several ranks add up (merge); snapshots of one rank or of all become a load, one
 * scenario for each bucket or run of buckets, and so do snapshots of several windows (prefill and
 * decode, classes of traffic) together. A snapshot can be packed into bytes, and so into a file.
 *
 * Threads: many threads may read a snapshot at once; whoever merges into it must be alone.
 */
#ifndef EPLB_SNAPSHOT_H
#define EPLB_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/load.h>
#include <eplb/status.h>
#include <eplb/window.h>

EPLB_BEGIN_DECLS

typedef struct eplb_snapshot eplb_snapshot;

/*
 * Takes a snapshot. It has every recording call that returned before this one began, in the buckets
 * that are still in the window when this one ends. Of calls that run at the same time it may have
 * any, and so a part of the step in progress; nothing is counted twice or torn. Taken when the
 * records of a step are in and before the next step begins, it is exact, and the same on every rank
 * that does so. Cost: about a millisecond for each million of recorders x buckets x
 * layers x experts (measured by `meson test --benchmark window`); it starts again in case the whole
 * window went by meanwhile.
 *
 * The snapshot is the caller's and outlives the window. `hooks` serve the snapshot. Memory: 8 bytes
 * for each bucket, layer and expert. EPLB_ERROR_OVERFLOW when a sum over the recorders is 2^64 or
 * more.
 */
EPLB_API eplb_status eplb_window_snapshot(eplb_snapshot **out, eplb_window *window,
                                          const eplb_hooks *hooks, eplb_error *error);

/* Frees the snapshot and sets the pointer to NULL. */
EPLB_API void eplb_snapshot_destroy(eplb_snapshot **snapshot);

typedef struct eplb_snapshot_info {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layers;
    int32_t experts;
    int32_t rank;         /* on which the snapshot was taken */
    int32_t ranks;        /* of how many */
    int32_t ranks_held;   /* how many of them were merged, its own among them */
    int32_t buckets;      /* the snapshot has buckets first_bucket .. first_bucket + buckets - 1 */
    int32_t model_layers; /* all hidden layers of the model; 0: unknown */
    int64_t first_bucket; /* buckets are numbered from 0 since the window was created */
    int64_t steps;        /* steps begun since then, of every kind */
    int64_t filled_steps; /* counted steps in the snapshot, the one in progress too; a step that
                           * several ranks counted is one */
    uint64_t dropped;     /* tokens in the snapshot's steps with an id out of range, for an empty
                           * slot, or during a change of placement; at most 2^64 - 1 */
} eplb_snapshot_info;

EPLB_API eplb_status eplb_snapshot_get_info(const eplb_snapshot *snapshot, eplb_snapshot_info *info,
                                            eplb_error *error);

/* The name of the window; NULL when it had none. Valid as long as the snapshot. */
EPLB_API const char *eplb_snapshot_name(const eplb_snapshot *snapshot);

/* The layer ids [layers], valid as long as the snapshot. */
EPLB_API const int32_t *eplb_snapshot_layer_ids(const eplb_snapshot *snapshot);

/* Counted steps of one bucket (its number); 0 when the snapshot does not have it. */
EPLB_API int64_t eplb_snapshot_filled_steps(const eplb_snapshot *snapshot, int64_t bucket);

/* Sums [experts] of one bucket (its number) and layer (its index); NULL when the snapshot does not
 * have them. Valid as long as the snapshot; a merge shows through it. */
EPLB_API const uint64_t *eplb_snapshot_row(const eplb_snapshot *snapshot, int64_t bucket,
                                           int32_t layer);

/*
 * Adds what other ranks counted in the same steps. Both snapshots must come from windows of the
 * same name, layers, layer ids, experts, number of ranks and steps per bucket, with the same number
 * of steps begun and the same buckets, and no rank may be in both. Errors: EPLB_ERROR_DATA for what
 * does not match, EPLB_ERROR_OVERFLOW when a sum is 2^64 or more; then `into` is unchanged.
 */
EPLB_API eplb_status eplb_snapshot_merge(eplb_snapshot *into, const eplb_snapshot *from,
                                         eplb_error *error);

/* 1 when the snapshot holds what this rank counted, else 0. */
EPLB_API int32_t eplb_snapshot_has_rank(const eplb_snapshot *snapshot, int32_t rank);

/* Writes the ranks that have not been merged, ascending, at most `capacity` of them, into missing
 * (may be NULL when capacity is 0), and returns how many there are. */
EPLB_API int32_t eplb_snapshot_missing_ranks(const eplb_snapshot *snapshot, int32_t *missing,
                                             int32_t capacity);

typedef struct eplb_snapshot_load_options {
    uint32_t struct_size; /* sizeof(eplb_snapshot_load_options), written by its _init */

    /* Buckets summed into one scenario, counted from the newest one, so that the oldest scenario
     * may have fewer; >= 1, or -1: all of them. Default 1. */
    int32_t buckets_per_scenario;

    /* Weight of a bucket relative to the next newer one, above 0 and at most 1: a scenario weighs
     * decay to the power of the number of buckets that are newer than its newest one. The newest
     * weighs 1 and, with a decay of 0.5^(1/h), one h buckets older a half. No weight falls below
     * 1e-300. Default 1: all alike. */
    double decay;

    /* Factors of the scenarios' weights, one for each snapshot, finite, above 0. NULL (default): 1.
     * Borrowed for the call. */
    const double *weights;

    /* 1: a load is made though ranks are missing. 0 (default): EPLB_ERROR_DATA names them. */
    int32_t allow_missing_ranks;
    int32_t reserved; /* 0 */
} eplb_snapshot_load_options;

/* Writes the defaults. */
EPLB_API void eplb_snapshot_load_options_init(eplb_snapshot_load_options *options);

/* A scenario of a load: a run of buckets of one snapshot. */
typedef struct eplb_snapshot_scenario {
    int32_t snapshot; /* index in the call's array */
    int32_t reserved; /* 0 */
    int64_t first_bucket;
    int64_t last_bucket;
    int64_t filled_steps;
    double weight;
} eplb_snapshot_scenario;

/*
 * Lists the scenarios that eplb_snapshot_load makes, in its order: snapshot by snapshot, the oldest
 * buckets first, without the runs that have no filled step. Writes at most `capacity` of them into
 * scenarios (may be NULL when capacity is 0); scenario_count gets how many there are, 0 for empty
 * windows. Errors as those of eplb_snapshot_load, but for sums.
 */
EPLB_API eplb_status eplb_snapshot_list_scenarios(const eplb_snapshot *const *snapshots,
                                                  int32_t count,
                                                  const eplb_snapshot_load_options *options,
                                                  eplb_snapshot_scenario *scenarios,
                                                  int32_t capacity, int32_t *scenario_count,
                                                  eplb_error *error);

/*
 * Makes a load of `count` (>= 1) snapshots with the same layers, layer ids and experts. Scenarios
 * are named "bucket 7" or "bucket 4..7" after their buckets, with the name of the window before it:
 * "decode bucket 4..7". When no step is filled the load has one scenario of zeros, named "empty".
 *
 * options: NULL for the defaults.
 *
 * Errors: EPLB_ERROR_DATA when ranks are missing or the snapshots' layers differ;
 * EPLB_ERROR_OVERFLOW for a sum above 2^53, which a load cannot hold exactly; EPLB_ERROR_ARGUMENT.
 */
EPLB_API eplb_status eplb_snapshot_load(eplb_load **out, const eplb_hooks *hooks,
                                        const eplb_snapshot *const *snapshots, int32_t count,
                                        const eplb_snapshot_load_options *options,
                                        eplb_error *error);

/*
 * Snapshots as bytes, for files and for ranks that send them to each other. The layout, version 1,
 * is the same on every host; all integers are little-endian and nothing is padded:
 *
 *   byte  size
 *      0  8     89 45 50 4c 42 53 0d 0a (EPLB_SNAPSHOT_MAGIC)
 *      8  4     version; as all up to byte 15, the same in every version
 *     12  4     checksum
 *     16  4     layers L, 1..EPLB_MAX_LAYERS
 *     20  4     experts E, 1..EPLB_MAX_EXPERTS
 *     24  4     rank on which it was taken, below R
 *     28  4     ranks R, 1..EPLB_MAX_RANKS
 *     32  4     steps per bucket S, 1..EPLB_MAX_STEPS_PER_BUCKET
 *     36  4     model layers; 0: unknown
 *     40  4     buckets B, 0..EPLB_MAX_BUCKETS
 *     44  8     number of the first bucket
 *     52  8     steps begun, at least the number behind the last bucket, at most 2^63 - 1
 *     60  8     bytes of the name N, with its NUL; 0: no name
 *     68  4     checksum
 *     72  4 L   layer ids, ascending
 *         R     of each rank 1 when its counts are in, else 0; that of its own is 1
 *         N     name
 *         4     checksum
 * and B times, oldest first
 *         8     number of the bucket's first step; S after that of the bucket before
 *         8 W   W = S / 64, rounded up: bit i % 64 of word i / 64 is 1 when the bucket's step i was
 *               counted; other bits are 0
 *         8     dropped tokens
 *         8 L E tokens of each layer and expert; they and those dropped are 0 when no step was
 *               counted
 *         4     checksum
 *
 * A checksum is the CRC-32C (Castagnoli; RFC 3720) of all bytes before it but other checksums.
 * Every byte that changed is found; of damage in several places one in 2^32 may not be.
 */
#define EPLB_SNAPSHOT_MAGIC                                                                        \
    "\x89"                                                                                         \
    "EPLBS\r\n"
#define EPLB_SNAPSHOT_MAGIC_SIZE 8
#define EPLB_SNAPSHOT_VERSION 1

/*
 * Packs a snapshot: bytes [size] are to be given to the hooks' release (NULL hooks: free). The same
 * snapshot gives the same bytes. Errors: EPLB_ERROR_NOMEM, EPLB_ERROR_ARGUMENT.
 */
EPLB_API eplb_status eplb_snapshot_pack(const eplb_snapshot *snapshot, const eplb_hooks *hooks,
                                        uint8_t **bytes, size_t *size, eplb_error *error);

/*
 * Makes the snapshot that was packed; it does not need the bytes [size] any more, and is to others
 * what the packed one was. Everything is checked: the size, the checksums, each number's range, and
 * what is true of every window's snapshot. Sizes are believed only when they add up to `size`, so
 * that memory is at most about twice `size`.
 *
 * Errors, which name the byte: EPLB_ERROR_PARSE for what is no snapshot, not whole, damaged, wrong
 * or has bytes behind it; EPLB_ERROR_UNSUPPORTED for a later version. EPLB_ERROR_NOMEM.
 */
EPLB_API eplb_status eplb_snapshot_unpack(eplb_snapshot **out, const eplb_hooks *hooks,
                                          const uint8_t *bytes, size_t size, eplb_error *error);

/* Packs a snapshot into a file, whole or not at all, as in eplb/file.h: whoever reads it, after a
 * crash too, finds the old snapshot or the new one. Also EPLB_ERROR_IO. */
EPLB_API eplb_status eplb_snapshot_write(const eplb_snapshot *snapshot, const eplb_hooks *hooks,
                                         const char *path, eplb_error *error);

/*
 * Reads such a file, as eplb_snapshot_unpack. A file of more than `max_bytes` (>= 0; -1: no limit)
 * is EPLB_ERROR_LIMIT; one that cannot be read EPLB_ERROR_IO.
 */
EPLB_API eplb_status eplb_snapshot_read(eplb_snapshot **out, const eplb_hooks *hooks,
                                        const char *path, int64_t max_bytes, eplb_error *error);

EPLB_END_DECLS

#endif
