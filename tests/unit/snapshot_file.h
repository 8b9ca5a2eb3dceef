/* SPDX-License-Identifier: MIT */
/* Snapshots as bytes: one that has some of everything, and forgeries with right checksums. */
#ifndef EPLB_TESTS_SNAPSHOT_FILE_H
#define EPLB_TESTS_SNAPSHOT_FILE_H

#include "window.h"

#define SAMPLE_NAME "decode"

/* Places in the sample, by the layout in eplb/snapshot.h. */
enum {
    SAMPLE_LAYERS = 2,
    SAMPLE_MODEL_LAYERS = 12,
    SAMPLE_EXPERTS = 5,
    SAMPLE_RANKS = 4,
    SAMPLE_BUCKETS = 3,
    SAMPLE_FIRST_BUCKET = 2,
    SAMPLE_STEPS = 9,
    AT_HEADER = 16,
    AT_LISTS = 72,
    AT_HELD = AT_LISTS + 4 * SAMPLE_LAYERS,
    AT_NAME = AT_HELD + SAMPLE_RANKS,
    AT_BUCKETS = AT_NAME + (int)sizeof(SAMPLE_NAME) + 4,
    SAMPLE_BUCKET_SIZE = 8 + 8 + 8 + 8 * SAMPLE_LAYERS * SAMPLE_EXPERTS + 4,
    SAMPLE_SIZE = AT_BUCKETS + SAMPLE_BUCKETS * SAMPLE_BUCKET_SIZE,
};

static inline eplb_window_options sample_options(int32_t rank)
{
    static const int32_t ids[SAMPLE_LAYERS] = {3, 9};
    eplb_window_options options = window_options(SAMPLE_LAYERS, SAMPLE_EXPERTS);
    options.buckets = SAMPLE_BUCKETS;
    options.steps_per_bucket = 2;
    options.rank = rank;
    options.ranks = SAMPLE_RANKS;
    options.model_layers = SAMPLE_MODEL_LAYERS;
    options.layer_ids = ids;
    options.name = SAMPLE_NAME;
    return options;
}

/*
 * What one rank counted in buckets 2 (steps 4 and 5), 3 (6 and 7, dummy) and 4 (8 so far). The
 * step that is a dummy on an even rank is none on an odd one. Rank 3 has dropped two tokens.
 */
static inline eplb_snapshot *sample_of(int32_t rank)
{
    eplb_window *window = make_window(sample_options(rank));
    for (uint32_t step = 0; step < SAMPLE_STEPS; step++) {
        bool dummy = step / 2 == 3 || step == 4 + (uint32_t)(rank % 2);
        assert_ok(eplb_window_begin_step(window, dummy ? EPLB_STEP_DUMMY : EPLB_STEP_COUNTED, NULL),
                  NULL);
        for (int32_t layer = 0; layer < SAMPLE_LAYERS; layer++) {
            record(window, layer,
                   (uint32_t[]){step, 1000u * (uint32_t)layer, UINT32_MAX, 0, (uint32_t)rank});
        }
        if (step == 4 && rank == 3) {
            static const int32_t ids[] = {SAMPLE_EXPERTS, -1, -7, 0};
            assert_ok(eplb_recorder_topk(eplb_window_recorder(window, 0), 1, ids, 2, 2, NULL),
                      NULL);
        }
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_window_destroy(&window);
    return snapshot;
}

/* Ranks 2 and 3, merged. */
static inline eplb_snapshot *make_sample(void)
{
    eplb_snapshot *sample = sample_of(2);
    eplb_snapshot *other = sample_of(3);
    assert_ok(eplb_snapshot_merge(sample, other, NULL), NULL);
    eplb_snapshot_destroy(&other);
    return sample;
}

/* Adds to the sample what it lacks. */
static inline void merge_missing_ranks(eplb_snapshot *sample)
{
    for (int32_t rank = 0; rank < 2; rank++) {
        eplb_snapshot *other = sample_of(rank);
        eplb_error error;
        assert_ok(eplb_snapshot_merge(sample, other, &error), &error);
        eplb_snapshot_destroy(&other);
    }
}

typedef struct packed {
    uint8_t *bytes; /* to be freed */
    size_t size;
} packed;

static inline packed pack(const eplb_snapshot *snapshot)
{
    packed p;
    eplb_error error;
    assert_ok(eplb_snapshot_pack(snapshot, NULL, &p.bytes, &p.size, &error), &error);
    return p;
}

static inline packed pack_sample(void)
{
    eplb_snapshot *sample = make_sample();
    packed p = pack(sample);
    assert_int_equal(p.size, SAMPLE_SIZE);
    eplb_snapshot_destroy(&sample);
    return p;
}

static inline void set_number(packed p, size_t offset, size_t size, uint64_t value)
{
    for (size_t i = 0; i < size; i++) {
        p.bytes[offset + i] = (uint8_t)(value >> 8 * i);
    }
}

/* CRC-32C bit by bit, as the polynomial says. */
static inline uint32_t slow_crc32c(uint32_t crc, const uint8_t *bytes, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

/* Sets the checksums of a sample that was changed. */
static inline void seal_sample(packed p)
{
    size_t ends[3 + SAMPLE_BUCKETS] = {AT_HEADER, AT_LISTS, AT_BUCKETS};
    for (size_t i = 0; i < SAMPLE_BUCKETS; i++) {
        ends[3 + i] = AT_BUCKETS + (i + 1) * SAMPLE_BUCKET_SIZE;
    }
    uint32_t crc = 0;
    size_t start = 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t at = ends[i] - 4;
        crc = slow_crc32c(crc, p.bytes + start, at - start);
        set_number(p, at, 4, crc);
        start = ends[i];
    }
}

#endif
