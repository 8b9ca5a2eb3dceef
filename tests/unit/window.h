/* SPDX-License-Identifier: MIT */
/* Windows and snapshots, made and recorded into or the test fails. */
#ifndef EPLB_TESTS_WINDOW_H
#define EPLB_TESTS_WINDOW_H

#include "model.h"

#include <eplb/snapshot.h>
#include <eplb/window.h>

static inline eplb_window_options window_options(int32_t layers, int32_t experts)
{
    eplb_window_options options;
    eplb_window_options_init(&options);
    options.layers = layers;
    options.experts = experts;
    return options;
}

static inline eplb_window *make_window(eplb_window_options options)
{
    eplb_window *window = NULL;
    eplb_error error;
    assert_ok(eplb_window_create(&window, NULL, &options, &error), &error);
    return window;
}

static inline void begin_step(eplb_window *window)
{
    assert_ok(eplb_window_begin_step(window, EPLB_STEP_COUNTED, NULL), NULL);
}

static inline void begin_dummy_step(eplb_window *window)
{
    assert_ok(eplb_window_begin_step(window, EPLB_STEP_DUMMY, NULL), NULL);
}

/* By the first recorder. */
static inline void record(eplb_window *window, int32_t layer, const uint32_t *counts)
{
    eplb_error error;
    assert_ok(eplb_recorder_counts(eplb_window_recorder(window, 0), layer, counts, &error), &error);
}

static inline void record_slots(eplb_window *window, int32_t layer, const uint32_t *counts)
{
    eplb_error error;
    assert_ok(eplb_recorder_slot_counts(eplb_window_recorder(window, 0), layer, counts, &error),
              &error);
}

static inline eplb_snapshot *take_snapshot(eplb_window *window)
{
    eplb_snapshot *snapshot = NULL;
    eplb_error error;
    assert_ok(eplb_window_snapshot(&snapshot, window, NULL, &error), &error);
    return snapshot;
}

static inline eplb_snapshot_info info_of(const eplb_snapshot *snapshot)
{
    eplb_snapshot_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_snapshot_get_info(snapshot, &info, NULL), NULL);
    return info;
}

#define assert_row(snapshot, bucket, layer, ...)                                                   \
    do {                                                                                           \
        const uint64_t expected_row[] = {__VA_ARGS__};                                             \
        const uint64_t *actual_row = eplb_snapshot_row(snapshot, bucket, layer);                   \
        assert_non_null(actual_row);                                                               \
        assert_int_equal(info_of(snapshot).experts, sizeof(expected_row) / sizeof(uint64_t));      \
        assert_memory_equal(actual_row, expected_row, sizeof(expected_row));                       \
    } while (0)

/* What a window holds at once, for tests that look at one bucket only. */
#define assert_window_row(window, bucket, layer, ...)                                              \
    do {                                                                                           \
        eplb_snapshot *taken = take_snapshot(window);                                              \
        assert_row(taken, bucket, layer, __VA_ARGS__);                                             \
        eplb_snapshot_destroy(&taken);                                                             \
    } while (0)

#endif
