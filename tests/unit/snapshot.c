/* SPDX-License-Identifier: MIT */
/* What a snapshot tells, and snapshots of several ranks. */
#include "window.h"

enum { LAYERS = 2, EXPERTS = 3, RANKS = 4 };

static eplb_window_options rank_options(int32_t rank)
{
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.rank = rank;
    options.ranks = RANKS;
    options.buckets = 3;
    options.steps_per_bucket = 2;
    return options;
}

/* A rank's window after 4 steps, the last of them dummy on odd ranks. */
static eplb_window *make_rank(eplb_window_options options)
{
    eplb_window *window = make_window(options);
    for (uint32_t step = 0; step < 4; step++) {
        if (step == 3 && options.rank % 2 == 1) {
            begin_dummy_step(window);
        } else {
            begin_step(window);
        }
        record(window, 0, (uint32_t[]){1, (uint32_t)options.rank, 10 * step});
    }
    return window;
}

static eplb_snapshot *snapshot_of(eplb_window_options options)
{
    eplb_window *window = make_rank(options);
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_window_destroy(&window);
    return snapshot;
}

static void snapshot_outlives_its_window(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 8};
    eplb_window_options options = rank_options(2);
    options.layer_ids = ids;
    options.name = "decode";
    eplb_snapshot *snapshot = snapshot_of(options);
    assert_row(snapshot, 0, 0, 2, 4, 10);
    assert_row(snapshot, 1, 0, 2, 4, 50);
    assert_row(snapshot, 1, 1, 0, 0, 0);
    eplb_snapshot_info info = info_of(snapshot);
    assert_int_equal(info.layers, LAYERS);
    assert_int_equal(info.experts, EXPERTS);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.ranks, RANKS);
    assert_int_equal(info.ranks_held, 1);
    assert_int_equal(info.buckets, 2);
    assert_int_equal(info.first_bucket, 0);
    assert_int_equal(info.steps, 4);
    assert_int_equal(info.filled_steps, 4);
    assert_int_equal(info.dropped, 0);
    assert_string_equal(eplb_snapshot_name(snapshot), "decode");
    assert_memory_equal(eplb_snapshot_layer_ids(snapshot), ids, sizeof(ids));
    eplb_snapshot_destroy(&snapshot);
    assert_null(snapshot);
    eplb_snapshot_destroy(&snapshot);
    eplb_snapshot_destroy(NULL);
}

static void snapshot_does_not_change_with_its_window(void **state)
{
    (void)state;
    eplb_window *window = make_rank(rank_options(0));
    eplb_snapshot *before = take_snapshot(window);
    record(window, 0, (uint32_t[]){5, 5, 5});
    begin_step(window);
    assert_row(before, 1, 0, 2, 0, 50);
    assert_int_equal(info_of(before).steps, 4);
    assert_window_row(window, 1, 0, 7, 5, 55);
    eplb_snapshot_destroy(&before);
    eplb_window_destroy(&window);
}

static void places_outside_of_a_snapshot_are_empty(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = snapshot_of(rank_options(0));
    assert_null(eplb_snapshot_row(snapshot, -1, 0));
    assert_null(eplb_snapshot_row(snapshot, 2, 0));
    assert_null(eplb_snapshot_row(snapshot, INT64_MAX, 0));
    assert_null(eplb_snapshot_row(snapshot, 0, LAYERS));
    assert_null(eplb_snapshot_row(snapshot, 0, -1));
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, -1), 0);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 2), 0);
    assert_null(eplb_snapshot_name(snapshot));
    eplb_snapshot_destroy(&snapshot);
}

static void info_is_written_as_far_as_the_caller_has_room(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = snapshot_of(rank_options(0));
    eplb_error error;
    assert_status(eplb_snapshot_get_info(snapshot, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_snapshot_info info = {.struct_size = 0};
    assert_status(eplb_snapshot_get_info(snapshot, &info, &error), EPLB_ERROR_ARGUMENT, &error);
    info = (eplb_snapshot_info){.struct_size = offsetof(eplb_snapshot_info, steps), .steps = -7};
    assert_ok(eplb_snapshot_get_info(snapshot, &info, &error), &error);
    assert_int_equal(info.buckets, 2);
    assert_int_equal(info.steps, -7);
    eplb_snapshot_destroy(&snapshot);
}

static void ranks_add_up(void **state)
{
    (void)state;
    eplb_snapshot *all = snapshot_of(rank_options(1));
    eplb_snapshot *two = snapshot_of(rank_options(2));
    eplb_snapshot *three = snapshot_of(rank_options(3));
    eplb_error error;
    assert_ok(eplb_snapshot_merge(two, three, &error), &error);
    assert_ok(eplb_snapshot_merge(all, two, &error), &error);
    assert_row(all, 0, 0, 2 + 2 + 2, 2 + 4 + 6, 30);
    assert_row(all, 1, 0, 1 + 2 + 1, 1 + 4 + 3, 20 + 50 + 20);
    assert_row(all, 1, 1, 0, 0, 0);
    assert_int_equal(info_of(all).rank, 1);
    assert_int_equal(info_of(all).ranks_held, 3);
    assert_int_equal(eplb_snapshot_has_rank(all, 0), 0);
    assert_int_equal(eplb_snapshot_has_rank(all, 1), 1);
    assert_int_equal(eplb_snapshot_has_rank(all, 3), 1);
    assert_int_equal(eplb_snapshot_has_rank(all, RANKS), 0);
    assert_int_equal(eplb_snapshot_has_rank(all, -1), 0);
    eplb_snapshot_destroy(&all);
    eplb_snapshot_destroy(&two);
    eplb_snapshot_destroy(&three);
}

/* Idle ranks run dummy steps beside those of the others. */
static void step_that_several_ranks_counted_is_one(void **state)
{
    (void)state;
    eplb_snapshot *odd = snapshot_of(rank_options(1));
    eplb_snapshot *even = snapshot_of(rank_options(2));
    assert_int_equal(info_of(odd).filled_steps, 3);
    assert_ok(eplb_snapshot_merge(odd, even, NULL), NULL);
    assert_int_equal(info_of(odd).filled_steps, 4);
    assert_int_equal(eplb_snapshot_filled_steps(odd, 1), 2);
    eplb_snapshot_destroy(&odd);
    eplb_snapshot_destroy(&even);
}

static void dropped_tokens_of_ranks_add_up(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 4, 5};
    eplb_snapshot *snapshots[2];
    for (int32_t rank = 0; rank < 2; rank++) {
        eplb_window *window = make_window(rank_options(rank));
        begin_step(window);
        assert_ok(eplb_recorder_topk(eplb_window_recorder(window, 0), 0, ids, 2 + rank, 1, NULL),
                  NULL);
        snapshots[rank] = take_snapshot(window);
        eplb_window_destroy(&window);
    }
    assert_ok(eplb_snapshot_merge(snapshots[0], snapshots[1], NULL), NULL);
    assert_int_equal(info_of(snapshots[0]).dropped, 5);
    eplb_snapshot_destroy(&snapshots[0]);
    eplb_snapshot_destroy(&snapshots[1]);
}

/* sgl-project/sglang#5524: counts of one rank were taken for those of all. */
static void missing_ranks_are_named(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = snapshot_of(rank_options(2));
    int32_t missing[RANKS] = {-7, -7, -7, -7};
    assert_int_equal(eplb_snapshot_missing_ranks(snapshot, missing, RANKS), 3);
    assert_true(missing[0] == 0 && missing[1] == 1 && missing[2] == 3 && missing[3] == -7);
    missing[1] = -7;
    assert_int_equal(eplb_snapshot_missing_ranks(snapshot, missing, 1), 3);
    assert_true(missing[0] == 0 && missing[1] == -7);
    assert_int_equal(eplb_snapshot_missing_ranks(snapshot, NULL, 0), 3);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        eplb_snapshot *other = snapshot_of(rank_options(rank));
        assert_status(eplb_snapshot_merge(snapshot, other, NULL),
                      rank == 2 ? EPLB_ERROR_DATA : EPLB_OK, NULL);
        eplb_snapshot_destroy(&other);
    }
    assert_int_equal(eplb_snapshot_missing_ranks(snapshot, missing, RANKS), 0);
    eplb_snapshot_destroy(&snapshot);
}

/* Merging must fail with the message and leave the snapshot of rank 0 as it was. Frees `from`. */
static void assert_no_merge(eplb_snapshot *from, const char *message)
{
    eplb_snapshot *into = snapshot_of(rank_options(0));
    eplb_error error;
    assert_status(eplb_snapshot_merge(into, from, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, message);
    assert_row(into, 0, 0, 2, 0, 10);
    assert_row(into, 1, 0, 2, 0, 50);
    assert_int_equal(info_of(into).ranks_held, 1);
    assert_int_equal(info_of(into).filled_steps, 4);
    eplb_snapshot_destroy(&into);
    eplb_snapshot_destroy(&from);
}

static void rank_is_not_added_twice(void **state)
{
    (void)state;
    assert_no_merge(snapshot_of(rank_options(0)), "rank 0 is in both");
    eplb_snapshot *both = snapshot_of(rank_options(1));
    eplb_snapshot *zero = snapshot_of(rank_options(0));
    assert_ok(eplb_snapshot_merge(both, zero, NULL), NULL);
    eplb_snapshot_destroy(&zero);
    assert_no_merge(both, "rank 0 is in both");
}

static void windows_of_another_shape_do_not_merge(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {0, 2};
    eplb_window_options options = rank_options(1);
    options.layers = LAYERS + 1;
    assert_no_merge(snapshot_of(options), "2 layers of 3 experts and 3 layers of 3 experts");
    options = rank_options(1);
    options.layer_ids = ids;
    assert_no_merge(snapshot_of(options), "row 1 is layer 1 and layer 2");
    options = rank_options(1);
    options.model_layers = 9;
    assert_no_merge(snapshot_of(options), "0 model layers and 9 model layers");
    options = rank_options(1);
    options.ranks = RANKS + 1;
    assert_no_merge(snapshot_of(options), "rank 0 is of 4, rank 1 of 5");
    options = rank_options(1);
    options.name = "prefill";
    assert_no_merge(snapshot_of(options), "\"prefill\"");
    options = rank_options(1);
    options.steps_per_bucket = 4;
    assert_no_merge(snapshot_of(options), "rank 0 has 2 steps per bucket, rank 1 has 4");
}

static void other_steps_do_not_merge(void **state)
{
    (void)state;
    eplb_window *window = make_rank(rank_options(1));
    begin_step(window);
    assert_no_merge(take_snapshot(window), "rank 0 has begun 4 steps, rank 1 5");
    eplb_window_destroy(&window);

    eplb_window_options options = rank_options(1);
    options.buckets = 1;
    assert_no_merge(snapshot_of(options), "rank 0 has 2 buckets from 0, rank 1 1 from 1");

    window = make_window(rank_options(1));
    begin_step(window);
    eplb_window_reset(window);
    begin_step(window);
    begin_step(window);
    begin_step(window);
    assert_no_merge(take_snapshot(window), "rank 0 has 2 buckets from 0, rank 1 2 from 1");
    eplb_window_destroy(&window);
}

/* As many steps and the same numbers of buckets, cut at other steps. */
static void buckets_of_other_steps_do_not_merge(void **state)
{
    (void)state;
    eplb_snapshot *snapshots[2];
    for (int32_t rank = 0; rank < 2; rank++) {
        eplb_window *window = make_window(rank_options(rank));
        begin_step(window);
        if (rank == 0) {
            eplb_window_reset(window);
        }
        begin_step(window);
        if (rank == 1) {
            eplb_window_reset(window);
        }
        begin_step(window);
        snapshots[rank] = take_snapshot(window);
        assert_int_equal(info_of(snapshots[rank]).first_bucket, 1);
        eplb_window_destroy(&window);
    }
    eplb_error error;
    assert_status(eplb_snapshot_merge(snapshots[0], snapshots[1], &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "bucket 1 begins with step 1 on rank 0, with step 2 on rank 1");
    eplb_snapshot_destroy(&snapshots[0]);
    eplb_snapshot_destroy(&snapshots[1]);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    eplb_window *window = make_window(rank_options(0));
    eplb_snapshot *snapshot = NULL;
    eplb_error error;
    assert_status(eplb_window_snapshot(NULL, window, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_window_snapshot(&snapshot, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_null(snapshot);
    snapshot = take_snapshot(window);
    assert_status(eplb_snapshot_merge(NULL, snapshot, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_snapshot_merge(snapshot, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static eplb_status snapshot_only(const eplb_hooks *hooks, void *context)
{
    eplb_snapshot *snapshot = NULL;
    eplb_status status = eplb_window_snapshot(&snapshot, context, hooks, NULL);
    assert_true((status == EPLB_OK) == (snapshot != NULL));
    eplb_snapshot_destroy(&snapshot);
    return status;
}

static void failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_window_options options = rank_options(0);
    options.name = "decode";
    eplb_window *window = make_rank(options);
    test_each_failing_allocation(snapshot_only, window);
    eplb_window_destroy(&window);
}

TEST_MAIN(cmocka_unit_test(snapshot_outlives_its_window),
          cmocka_unit_test(snapshot_does_not_change_with_its_window),
          cmocka_unit_test(places_outside_of_a_snapshot_are_empty),
          cmocka_unit_test(info_is_written_as_far_as_the_caller_has_room),
          cmocka_unit_test(ranks_add_up), cmocka_unit_test(step_that_several_ranks_counted_is_one),
          cmocka_unit_test(dropped_tokens_of_ranks_add_up),
          cmocka_unit_test(missing_ranks_are_named), cmocka_unit_test(rank_is_not_added_twice),
          cmocka_unit_test(windows_of_another_shape_do_not_merge),
          cmocka_unit_test(other_steps_do_not_merge),
          cmocka_unit_test(buckets_of_other_steps_do_not_merge),
          cmocka_unit_test(missing_arguments_are_refused),
          cmocka_unit_test(failed_allocation_leaks_nothing))
