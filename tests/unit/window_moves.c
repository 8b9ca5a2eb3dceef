/* SPDX-License-Identifier: MIT */
/* What happens in the midst of calls, stopped there by hand. */
#include "window.h"

#include <pthread.h>
#include <sched.h>

#include "stats/window.h"

enum { BUCKETS = 3 };

typedef struct reader {
    eplb_window *window;
    eplb_snapshot *snapshot;
    pthread_t thread;
} reader;

static void *read_window(void *context)
{
    reader *r = context;
    (void)eplb_window_snapshot(&r->snapshot, r->window, NULL, NULL);
    return NULL;
}

/* Records one token of bucket 0, 1, ... as the recorder's second lane, which a reader reads last.
 */
static void record_in_second_lane(eplb_window *window, int32_t steps)
{
    eplb_recorder *recorder = eplb_window_recorder(window, 0);
    for (int32_t step = 0; step < steps; step++) {
        begin_step(window);
        atomic_store(&recorder->preferred, 1);
        record(window, 0, (uint32_t[]){1});
    }
}

/* The snapshot of a window of buckets 0..2, begun when `later` more steps had not yet begun and
 * ended when they had. */
static eplb_snapshot *snapshot_across(int32_t later)
{
    eplb_window_options options = window_options(1, 1);
    options.buckets = BUCKETS;
    options.steps_per_bucket = 1;
    reader r = {.window = make_window(options)};
    eplb_recorder *recorder = eplb_window_recorder(r.window, 0);
    record_in_second_lane(r.window, BUCKETS);
    atomic_store(&recorder->preferred, 0);
    assert_true(eplb_lane_try(&recorder->lane[0]));
    assert_int_equal(pthread_create(&r.thread, NULL, read_window, &r), 0);
    while (atomic_load(&recorder->preferred) == 0) {
        (void)sched_yield();
    }
    record_in_second_lane(r.window, later);
    eplb_lane_leave(&recorder->lane[0]);
    assert_int_equal(pthread_join(r.thread, NULL), 0);
    eplb_window_destroy(&r.window);
    assert_non_null(r.snapshot);
    return r.snapshot;
}

static void assert_buckets(eplb_snapshot *snapshot, int64_t first, int32_t count)
{
    eplb_snapshot_info info = info_of(snapshot);
    assert_int_equal(info.first_bucket, first);
    assert_int_equal(info.buckets, count);
    assert_int_equal(info.filled_steps, count);
    for (int32_t i = 0; i < count; i++) {
        assert_row(snapshot, first + i, 0, 1);
    }
    eplb_snapshot_destroy(&snapshot);
}

static void snapshot_has_the_buckets_that_are_still_in_the_window(void **state)
{
    (void)state;
    assert_buckets(snapshot_across(0), 0, 3);
    assert_buckets(snapshot_across(1), 1, 2);
    assert_buckets(snapshot_across(2), 2, 1);
}

static void snapshot_starts_again_when_the_whole_window_has_gone_by(void **state)
{
    (void)state;
    assert_buckets(snapshot_across(3), 3, 3);
    assert_buckets(snapshot_across(7), 7, 3);
}

/* In the midst of a change the number of steps is wrong here; a reader must not tell it. */
static void snapshot_never_tells_half_a_change_of_time(void **state)
{
    (void)state;
    reader r = {.window = make_window(window_options(1, 1))};
    begin_step(r.window);
    atomic_fetch_add(&r.window->version, 1);
    atomic_store(&r.window->steps, 7);
    assert_int_equal(pthread_create(&r.thread, NULL, read_window, &r), 0);
    for (int i = 0; i < 1000; i++) {
        (void)sched_yield();
    }
    atomic_store(&r.window->steps, 2);
    atomic_fetch_add(&r.window->version, 1);
    assert_int_equal(pthread_join(r.thread, NULL), 0);
    assert_non_null(r.snapshot);
    assert_int_equal(info_of(r.snapshot).steps, 2);
    eplb_snapshot_destroy(&r.snapshot);
    eplb_window_destroy(&r.window);
}

static void slot_counts_during_a_change_of_placement_are_dropped(void **state)
{
    (void)state;
    eplb_window_options options = window_options(1, 2);
    options.slots = 3;
    eplb_window *window = make_window(options);
    begin_step(window);
    atomic_fetch_or(&window->clock, EPLB_CLOCK_MAP_CHANGING);
    record_slots(window, 0, (uint32_t[]){5, UINT32_MAX, 2});
    record(window, 0, (uint32_t[]){1, 2});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 0, 1, 2);
    assert_int_equal(info_of(snapshot).dropped, 7 + (uint64_t)UINT32_MAX);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

TEST_MAIN(cmocka_unit_test(snapshot_has_the_buckets_that_are_still_in_the_window),
          cmocka_unit_test(snapshot_starts_again_when_the_whole_window_has_gone_by),
          cmocka_unit_test(snapshot_never_tells_half_a_change_of_time),
          cmocka_unit_test(slot_counts_during_a_change_of_placement_are_dropped))
