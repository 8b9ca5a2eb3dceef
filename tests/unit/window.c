/* SPDX-License-Identifier: MIT */
#include "window.h"

enum { LAYERS = 2, EXPERTS = 3 };

static void counts_of_a_layer_add_up(void **state)
{
    (void)state;
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 2, 3});
    record(window, 1, (uint32_t[]){10, 20, 30});
    record(window, 1, (uint32_t[]){4, 5, 6});
    begin_step(window);
    record(window, 0, (uint32_t[]){7, 0, 0});
    assert_window_row(window, 0, 0, 8, 2, 3);
    assert_window_row(window, 0, 1, 14, 25, 36);
    eplb_window_destroy(&window);
}

static void ids_are_tokens_of_their_experts(void **state)
{
    (void)state;
    static const int32_t ids[3][3] = {{0, 2, 2}, {1, 2, 0}, {2, 1, 2}};
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    eplb_recorder *recorder = eplb_window_recorder(window, 0);
    begin_step(window);
    assert_ok(eplb_recorder_topk(recorder, 1, ids[0], 3, 3, NULL), NULL);
    assert_window_row(window, 0, 1, 2, 2, 5);
    assert_ok(eplb_recorder_topk(recorder, 1, ids[0], 1, 2, NULL), NULL);
    assert_ok(eplb_recorder_topk(recorder, 1, ids[0], 0, 3, NULL), NULL);
    assert_ok(eplb_recorder_topk(recorder, 1, ids[0], 3, 0, NULL), NULL);
    assert_window_row(window, 0, 1, 3, 2, 6);
    assert_window_row(window, 0, 0, 0, 0, 0);
    eplb_window_destroy(&window);
}

/* vllm-project/vllm#38128, sgl-project/sglang#35766: padding must not be counted. */
static void padding_is_ignored_and_other_ids_out_of_range_are_dropped(void **state)
{
    (void)state;
    static const int32_t ids[] = {-1, 0, -1, EXPERTS - 1, EXPERTS, -2, INT32_MAX, INT32_MIN, -1};
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    begin_step(window);
    assert_ok(eplb_recorder_topk(eplb_window_recorder(window, 0), 0, ids, 9, 1, NULL), NULL);
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 0, 1, 0, 1);
    assert_int_equal(info_of(snapshot).dropped, 4);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void dropped_tokens_leave_with_their_bucket(void **state)
{
    (void)state;
    static const int32_t ids[] = {7, 8, 9};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.buckets = 2;
    options.steps_per_bucket = 1;
    eplb_window *window = make_window(options);
    for (int32_t step = 0; step < 3; step++) {
        begin_step(window);
        assert_ok(eplb_recorder_topk(eplb_window_recorder(window, 0), 0, ids, 3 - step, 1, NULL),
                  NULL);
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).dropped, 2 + 1);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void recorders_are_summed(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 1, 5};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.recorders = 3;
    eplb_window *window = make_window(options);
    assert_null(eplb_window_recorder(window, 3));
    assert_null(eplb_window_recorder(window, -1));
    begin_step(window);
    for (int32_t r = 0; r < 3; r++) {
        eplb_recorder *recorder = eplb_window_recorder(window, r);
        assert_ptr_equal(recorder, eplb_window_recorder(window, r));
        assert_ok(eplb_recorder_counts(recorder, 1, (uint32_t[]){1, 0, 10}, NULL), NULL);
        assert_ok(eplb_recorder_topk(recorder, 1, ids, 3, 1, NULL), NULL);
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 1, 3, 6, 30);
    assert_int_equal(info_of(snapshot).dropped, 3);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void late_record_counts_into_the_step_that_is_current(void **state)
{
    (void)state;
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.steps_per_bucket = 1;
    eplb_window *window = make_window(options);
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 1, 1});
    begin_step(window);
    record(window, 0, (uint32_t[]){2, 2, 2});
    assert_window_row(window, 0, 0, 1, 1, 1);
    assert_window_row(window, 1, 0, 2, 2, 2);
    eplb_window_destroy(&window);
}

static void nothing_counts_before_the_first_step(void **state)
{
    (void)state;
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    record(window, 0, (uint32_t[]){1, 1, 1});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).buckets, 0);
    assert_int_equal(info_of(snapshot).steps, 0);
    assert_int_equal(info_of(snapshot).filled_steps, 0);
    assert_null(eplb_snapshot_row(snapshot, 0, 0));
    eplb_snapshot_destroy(&snapshot);
    begin_step(window);
    assert_window_row(window, 0, 0, 0, 0, 0);
    eplb_window_destroy(&window);
}

static void dummy_step_takes_its_place_and_counts_nothing(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 9};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.steps_per_bucket = 2;
    eplb_window *window = make_window(options);
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 0, 0});
    begin_dummy_step(window);
    record(window, 0, (uint32_t[]){50, 50, 50});
    assert_ok(eplb_recorder_topk(eplb_window_recorder(window, 0), 0, ids, 2, 1, NULL), NULL);
    begin_step(window);
    record(window, 0, (uint32_t[]){2, 0, 0});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 0, 1, 0, 0);
    assert_row(snapshot, 1, 0, 2, 0, 0);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 0), 1);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 1), 1);
    assert_int_equal(info_of(snapshot).steps, 3);
    assert_int_equal(info_of(snapshot).filled_steps, 2);
    assert_int_equal(info_of(snapshot).dropped, 0);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

/* vllm-project/vllm#56716: warm-up runs must not pollute the window. */
static void warm_up_steps_count_nothing(void **state)
{
    (void)state;
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.steps_per_bucket = 1;
    options.skip_steps = 2;
    eplb_window *window = make_window(options);
    begin_step(window);
    record(window, 0, (uint32_t[]){9, 9, 9});
    begin_dummy_step(window);
    record(window, 0, (uint32_t[]){9, 9, 9});
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 2, 3});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 0, 0, 0, 0);
    assert_row(snapshot, 1, 0, 0, 0, 0);
    assert_row(snapshot, 2, 0, 1, 2, 3);
    assert_int_equal(info_of(snapshot).filled_steps, 1);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void new_bucket_takes_the_place_of_the_oldest(void **state)
{
    (void)state;
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.buckets = 3;
    options.steps_per_bucket = 2;
    eplb_window *window = make_window(options);
    for (uint32_t step = 0; step < 9; step++) {
        begin_step(window);
        record(window, 0, (uint32_t[]){step, 1, 0});
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).first_bucket, 2);
    assert_int_equal(info_of(snapshot).buckets, 3);
    assert_int_equal(info_of(snapshot).filled_steps, 5);
    assert_null(eplb_snapshot_row(snapshot, 1, 0));
    assert_row(snapshot, 2, 0, 4 + 5, 2, 0);
    assert_row(snapshot, 3, 0, 6 + 7, 2, 0);
    assert_row(snapshot, 4, 0, 8, 1, 0);
    assert_row(snapshot, 4, 1, 0, 0, 0);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

/* A layer that records nothing for a while must not bring old counts back. */
static void idle_layer_forgets_what_has_left_the_window(void **state)
{
    (void)state;
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.buckets = 2;
    options.steps_per_bucket = 1;
    eplb_window *window = make_window(options);
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 1, 1});
    for (int step = 1; step < 5; step++) {
        begin_step(window);
    }
    assert_window_row(window, 4, 0, 0, 0, 0);
    assert_window_row(window, 3, 0, 0, 0, 0);
    record(window, 0, (uint32_t[]){0, 2, 0});
    assert_window_row(window, 4, 0, 0, 2, 0);
    assert_window_row(window, 3, 0, 0, 0, 0);
    begin_step(window);
    record(window, 0, (uint32_t[]){0, 0, 3});
    assert_window_row(window, 4, 0, 0, 2, 0);
    assert_window_row(window, 5, 0, 0, 0, 3);
    eplb_window_destroy(&window);
}

static void reset_empties_the_window_and_numbers_go_on(void **state)
{
    (void)state;
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.skip_steps = 1;
    eplb_window *window = make_window(options);
    begin_step(window);
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 1, 1});
    eplb_window_reset(window);
    record(window, 0, (uint32_t[]){5, 5, 5});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).buckets, 0);
    assert_int_equal(info_of(snapshot).filled_steps, 0);
    assert_int_equal(info_of(snapshot).steps, 2);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_reset(window);
    begin_step(window);
    record(window, 0, (uint32_t[]){0, 2, 0});
    snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).first_bucket, 1);
    assert_int_equal(info_of(snapshot).buckets, 1);
    assert_int_equal(info_of(snapshot).filled_steps, 1);
    assert_int_equal(info_of(snapshot).steps, 3);
    assert_row(snapshot, 1, 0, 0, 2, 0);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

/* Around each size at which the inside has to carry: 2^31, 2^32 and twice that. */
static void sums_of_the_largest_counts_are_exact(void **state)
{
    (void)state;
    static const uint32_t counts[] = {UINT32_MAX, INT32_MAX, 1, (uint32_t)INT32_MAX + 1, 1 << 30};
    static const int32_t ids[] = {0, 0, 2};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.steps_per_bucket = 100;
    eplb_window *window = make_window(options);
    eplb_recorder *recorder = eplb_window_recorder(window, 0);
    uint64_t expected[EXPERTS] = {0};
    begin_step(window);
    for (size_t i = 0; i < 60; i++) {
        uint32_t row[EXPERTS];
        for (size_t e = 0; e < EXPERTS; e++) {
            row[e] = counts[(i * (e + 1) + i / 7) % 5];
            expected[e] += row[e];
        }
        record(window, 1, row);
        assert_ok(eplb_recorder_topk(recorder, 1, ids, 3, 1, NULL), NULL);
        expected[0] += 2;
        expected[2] += 1;
        assert_window_row(window, 0, 1, expected[0], expected[1], expected[2]);
    }
    assert_true(expected[1] > 4 * (uint64_t)UINT32_MAX);
    eplb_window_destroy(&window);
}

static void nothing_is_allocated_after_creation(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1, 9, -1};
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.slots = 4;
    options.buckets = 2;
    options.steps_per_bucket = 1;
    options.fold_each_step = 1;
    eplb_placement *placement = make_placement(make_cluster(2, 2, 0), LAYERS, EXPERTS);
    eplb_window *window = NULL;
    assert_ok(eplb_window_create(&window, &hooks, &options, NULL), NULL);
    int64_t requests = memory.requests;
    for (uint32_t step = 0; step < 9; step++) {
        eplb_recorder *recorder = eplb_window_recorder(window, 0);
        set_row(placement, 0, (int32_t[]){0, 1, 2, (int32_t)(step % 3)});
        assert_ok(eplb_window_set_placement(window, placement, NULL), NULL);
        begin_step(window);
        record(window, 0, (uint32_t[]){UINT32_MAX, step, 0});
        record_slots(window, 0, (uint32_t[]){1, 2, 3, UINT32_MAX});
        assert_ok(eplb_recorder_topk(recorder, 1, ids, 2, 2, NULL), NULL);
        eplb_snapshot *snapshot = take_snapshot(window);
        eplb_snapshot_destroy(&snapshot);
        if (step == 5) {
            eplb_window_reset(window);
        }
    }
    assert_int_equal(memory.requests, requests);
    eplb_window_destroy(&window);
    assert_null(window);
    assert_int_equal(memory.live, 0);
    eplb_window_destroy(&window);
    eplb_window_destroy(NULL);
    eplb_placement_destroy(&placement);
}

static eplb_status create_only(const eplb_hooks *hooks, void *context)
{
    eplb_window *window = NULL;
    eplb_status status = eplb_window_create(&window, hooks, context, NULL);
    assert_true((status == EPLB_OK) == (window != NULL));
    eplb_window_destroy(&window);
    return status;
}

static void failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 8};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.slots = 5;
    options.layer_ids = ids;
    options.name = "decode";
    test_each_failing_allocation(create_only, &options);
}

static void window_too_large_for_memory_is_refused(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_window_options options = window_options(EPLB_MAX_LAYERS, EPLB_MAX_EXPERTS);
    options.buckets = EPLB_MAX_BUCKETS;
    options.recorders = EPLB_MAX_RECORDERS;
    eplb_window *window = NULL;
    eplb_error error;
    assert_status(eplb_window_create(&window, &hooks, &options, &error), EPLB_ERROR_NOMEM, &error);
    assert_null(window);
    assert_int_equal(memory.live, 0);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        int32_t value;
        const char *message;
    } cases[] = {
        {offsetof(eplb_window_options, layers), 0, "number of layers 0 not in 1..65536"},
        {offsetof(eplb_window_options, experts), 0, "number of experts 0 not in 1..65536"},
        {offsetof(eplb_window_options, experts), EPLB_MAX_EXPERTS + 1, "number of experts 65537"},
        {offsetof(eplb_window_options, slots), -1, "number of slots -1"},
        {offsetof(eplb_window_options, slots), EPLB_MAX_SLOTS + 1, "number of slots 1048577"},
        {offsetof(eplb_window_options, buckets), 0, "number of buckets 0 not in 1..4096"},
        {offsetof(eplb_window_options, buckets), EPLB_MAX_BUCKETS + 1, "number of buckets 4097"},
        {offsetof(eplb_window_options, steps_per_bucket), 0, "steps per bucket 0"},
        {offsetof(eplb_window_options, steps_per_bucket), EPLB_MAX_STEPS_PER_BUCKET + 1,
         "steps per bucket 1048577"},
        {offsetof(eplb_window_options, recorders), 0, "number of recorders 0"},
        {offsetof(eplb_window_options, recorders), EPLB_MAX_RECORDERS + 1,
         "number of recorders 4097"},
        {offsetof(eplb_window_options, skip_steps), -1, "steps to skip -1"},
        {offsetof(eplb_window_options, fold_each_step), 2, "fold_each_step 2"},
        {offsetof(eplb_window_options, ranks), 0, "number of ranks 0"},
        {offsetof(eplb_window_options, ranks), EPLB_MAX_RANKS + 1, "number of ranks 65537"},
        {offsetof(eplb_window_options, rank), 1, "rank 1 not in 0..0"},
        {offsetof(eplb_window_options, rank), -1, "rank -1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_window_options options = window_options(LAYERS, EXPERTS);
        memcpy((char *)&options + cases[i].offset, &cases[i].value, sizeof(cases[i].value));
        eplb_window *window = NULL;
        eplb_error error;
        assert_status(eplb_window_create(&window, NULL, &options, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_null(window);
        assert_contains(error.message, cases[i].message);
    }
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    static const int32_t descending[LAYERS] = {8, 3};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    eplb_window *window = NULL;
    eplb_error error;
    assert_status(eplb_window_create(NULL, NULL, &options, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_window_create(&window, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    options.layer_ids = descending;
    assert_status(eplb_window_create(&window, NULL, &options, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "id 3 does not follow id 8");
    options.struct_size = 0;
    assert_status(eplb_window_create(&window, NULL, &options, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "eplb_window_options_init");
    assert_null(window);
    eplb_window_options_init(NULL);
}

static void shorter_options_of_an_older_caller_get_defaults(void **state)
{
    (void)state;
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.struct_size = offsetof(eplb_window_options, slots);
    options.buckets = -7;
    options.ranks = -7;
    eplb_window *window = make_window(options);
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).ranks, 1);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void refused_record_counts_nothing(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1};
    static const uint32_t counts[EXPERTS] = {1, 1, 1};
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    eplb_recorder *recorder = eplb_window_recorder(window, 0);
    begin_step(window);
    eplb_error error;
    assert_status(eplb_recorder_counts(recorder, LAYERS, counts, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_contains(error.message, "layer 2 not in 0..1");
    assert_status(eplb_recorder_counts(recorder, -1, counts, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_recorder_counts(recorder, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_recorder_topk(recorder, LAYERS, ids, 1, 2, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_recorder_topk(recorder, 0, NULL, 1, 2, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_recorder_topk(recorder, 0, ids, -1, 2, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "number of tokens -1");
    assert_status(eplb_recorder_topk(recorder, 0, ids, 1, -2, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "top-k -2");
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_window_row(window, 0, l, 0, 0, 0);
    }
    eplb_window_destroy(&window);
}

static void step_of_no_kind_is_refused_and_not_begun(void **state)
{
    (void)state;
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    eplb_error error;
    assert_status(eplb_window_begin_step(window, (eplb_step_kind)2, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).steps, 0);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void every_step_of_a_long_bucket_is_told(void **state)
{
    (void)state;
    enum { STEPS = 130 };
    eplb_window_options options = window_options(1, 1);
    options.steps_per_bucket = STEPS;
    eplb_window *window = make_window(options);
    for (int step = 0; step < 2 * STEPS; step++) {
        if (step % 3 == 0) {
            begin_dummy_step(window);
        } else {
            begin_step(window);
        }
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(info_of(snapshot).buckets, 2);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 0), 86);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 1), 87);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

TEST_MAIN(cmocka_unit_test(counts_of_a_layer_add_up),
          cmocka_unit_test(ids_are_tokens_of_their_experts),
          cmocka_unit_test(padding_is_ignored_and_other_ids_out_of_range_are_dropped),
          cmocka_unit_test(dropped_tokens_leave_with_their_bucket),
          cmocka_unit_test(recorders_are_summed),
          cmocka_unit_test(late_record_counts_into_the_step_that_is_current),
          cmocka_unit_test(nothing_counts_before_the_first_step),
          cmocka_unit_test(dummy_step_takes_its_place_and_counts_nothing),
          cmocka_unit_test(warm_up_steps_count_nothing),
          cmocka_unit_test(new_bucket_takes_the_place_of_the_oldest),
          cmocka_unit_test(idle_layer_forgets_what_has_left_the_window),
          cmocka_unit_test(reset_empties_the_window_and_numbers_go_on),
          cmocka_unit_test(sums_of_the_largest_counts_are_exact),
          cmocka_unit_test(nothing_is_allocated_after_creation),
          cmocka_unit_test(failed_allocation_leaks_nothing),
          cmocka_unit_test(window_too_large_for_memory_is_refused),
          cmocka_unit_test(options_out_of_range_are_refused),
          cmocka_unit_test(missing_arguments_are_refused),
          cmocka_unit_test(shorter_options_of_an_older_caller_get_defaults),
          cmocka_unit_test(refused_record_counts_nothing),
          cmocka_unit_test(step_of_no_kind_is_refused_and_not_begun),
          cmocka_unit_test(every_step_of_a_long_bucket_is_told))
