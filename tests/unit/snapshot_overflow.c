/* SPDX-License-Identifier: MIT */
/* Sums near 2^64, which no test can record: they are written inside. */
#include "window.h"

#include "stats/snapshot.h"
#include "stats/window.h"

enum { LAYERS = 2, EXPERTS = 3 };

static eplb_window *make_rank(int32_t rank)
{
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.recorders = 2;
    options.rank = rank;
    options.ranks = 2;
    eplb_window *window = make_window(options);
    begin_step(window);
    return window;
}

static void sum_over_recorders_that_overflows_is_refused(void **state)
{
    (void)state;
    eplb_window *window = make_rank(0);
    for (int32_t r = 0; r < 2; r++) {
        eplb_lane *lane = &window->recorder[r].lane[0];
        eplb_lane_own_bank_row(window, lane, 1, 1)[EPLB_BANK_SUMS + 2] = (uint64_t)1 << 63;
    }
    eplb_snapshot *snapshot = NULL;
    eplb_error error;
    assert_status(eplb_window_snapshot(&snapshot, window, NULL, &error), EPLB_ERROR_OVERFLOW,
                  &error);
    assert_null(snapshot);
    eplb_lane_own_bank_row(window, &window->recorder[0].lane[0], 1, 1)[EPLB_BANK_SUMS + 2]--;
    assert_window_row(window, 0, 1, 0, 0, UINT64_MAX);
    record(window, 1, (uint32_t[]){0, 0, 1});
    assert_status(eplb_window_snapshot(&snapshot, window, NULL, &error), EPLB_ERROR_OVERFLOW,
                  &error);
    eplb_window_destroy(&window);
}

static void sum_over_ranks_that_overflows_is_refused(void **state)
{
    (void)state;
    eplb_window *windows[] = {make_rank(0), make_rank(1)};
    eplb_snapshot *into = take_snapshot(windows[0]);
    eplb_snapshot *from = take_snapshot(windows[1]);
    into->sums[EXPERTS + 2] = UINT64_MAX - 3;
    from->sums[EXPERTS + 2] = 4;
    from->sums[0] = 9;
    eplb_error error;
    assert_status(eplb_snapshot_merge(into, from, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_contains(error.message, "bucket 0: layer 1: expert 2: 18446744073709551612 + 4");
    assert_row(into, 0, 0, 0, 0, 0);
    assert_int_equal(eplb_snapshot_has_rank(into, 1), 0);
    from->sums[EXPERTS + 2] = 3;
    from->dropped[0] = UINT64_MAX;
    into->dropped[0] = 1;
    assert_ok(eplb_snapshot_merge(into, from, &error), &error);
    assert_row(into, 0, 1, 0, 0, UINT64_MAX);
    assert_true(info_of(into).dropped == UINT64_MAX);
    eplb_snapshot_destroy(&into);
    eplb_snapshot_destroy(&from);
    eplb_window_destroy(&windows[0]);
    eplb_window_destroy(&windows[1]);
}

/* In a load, buckets are summed once more. */
static void sum_over_buckets_that_overflows_is_refused(void **state)
{
    (void)state;
    eplb_window_options window_of_two = window_options(1, 1);
    window_of_two.steps_per_bucket = 1;
    eplb_window *window = make_window(window_of_two);
    begin_step(window);
    begin_step(window);
    eplb_snapshot *snapshot = take_snapshot(window);
    snapshot->sums[0] = UINT64_MAX;
    snapshot->sums[1] = 2;
    eplb_snapshot_load_options options;
    eplb_snapshot_load_options_init(&options);
    options.buckets_per_scenario = -1;
    const eplb_snapshot *one = snapshot;
    eplb_load *load = NULL;
    assert_status(eplb_snapshot_load(&load, NULL, &one, 1, &options, NULL), EPLB_ERROR_OVERFLOW,
                  NULL);
    assert_null(load);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

TEST_MAIN(cmocka_unit_test(sum_over_recorders_that_overflows_is_refused),
          cmocka_unit_test(sum_over_ranks_that_overflows_is_refused),
          cmocka_unit_test(sum_over_buckets_that_overflows_is_refused))
