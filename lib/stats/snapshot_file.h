/* SPDX-License-Identifier: MIT */
/* Snapshots as bytes: eplb/snapshot.h states the layout. */
#ifndef EPLB_STATS_SNAPSHOT_FILE_H
#define EPLB_STATS_SNAPSHOT_FILE_H

#include "base/size.h"
#include "stats/snapshot.h"

/* Places of what messages name, and where the parts of fixed size end. */
enum {
    EPLB_AT_VERSION = 8,
    EPLB_AT_LAYERS = 16,
    EPLB_AT_EXPERTS = 20,
    EPLB_AT_RANK = 24,
    EPLB_AT_RANKS = 28,
    EPLB_AT_STEPS_PER_BUCKET = 32,
    EPLB_AT_MODEL_LAYERS = 36,
    EPLB_AT_BUCKETS = 40,
    EPLB_AT_FIRST_BUCKET = 44,
    EPLB_AT_STEPS = 52,
    EPLB_AT_LAYER_IDS = 72,
    EPLB_CRC_SIZE = 4,
};

/* Size in bytes of a snapshot of this shape, all checksums included; false when it overflows.
 * name_size is that of the name with its NUL; 0: no name. */
static inline bool eplb_snapshot_file_size(const eplb_window_shape *shape, int32_t buckets,
                                           size_t name_size, size_t *size)
{
    size_t sums;
    size_t bucket;
    size_t total;
    size_t lists = EPLB_AT_LAYER_IDS + 4 * (size_t)shape->layers + (size_t)shape->ranks;
    return eplb_size_mul((size_t)shape->layers, (size_t)shape->experts, &sums) &&
           eplb_size_add(sums, eplb_window_step_words(shape) + 1, &bucket) &&
           eplb_size_mul(bucket, 8, &bucket) && eplb_size_add(bucket, EPLB_CRC_SIZE, &bucket) &&
           eplb_size_mul(bucket, (size_t)buckets, &total) &&
           eplb_size_add(total, lists + EPLB_CRC_SIZE, &total) &&
           eplb_size_add(total, name_size, size);
}

/* The numbers of a header, as wide as they can be in a file. */
typedef struct eplb_snapshot_header {
    uint64_t layers;
    uint64_t experts;
    uint64_t rank;
    uint64_t ranks;
    uint64_t steps_per_bucket;
    uint64_t model_layers;
    uint64_t buckets;
    uint64_t first_bucket;
    uint64_t steps;
    uint64_t name_size;
} eplb_snapshot_header;

/* As eplb_snapshot_unpack; `what` begins the messages. */
eplb_status eplb_snapshot_decode(eplb_snapshot **out, const eplb_hooks *hooks, const char *what,
                                 const uint8_t *bytes, size_t size, eplb_error *error);

/* Checks of what was read, beyond checksums. They fail with EPLB_ERROR_PARSE, the message beginning
 * with `what`, or with `place`, which names the byte too. A bucket's are made in order. */
eplb_status eplb_snapshot_check_header(const eplb_snapshot_header *header, const char *what,
                                       eplb_error *error);
eplb_status eplb_snapshot_check_bucket(const eplb_snapshot *snapshot, int32_t index,
                                       const char *place, eplb_error *error);

#endif
