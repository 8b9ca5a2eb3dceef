/* SPDX-License-Identifier: MIT */
/* From snapshots to the scenarios of a load. */
#include "window.h"

enum { LAYERS = 2, EXPERTS = 3, BUCKETS = 7 };

/* Seven buckets of one step; that of bucket 2 is a dummy. Bucket b has b tokens of expert 0. */
static eplb_snapshot *seven_buckets(const char *name)
{
    static const int32_t ids[LAYERS] = {3, 8};
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.layer_ids = ids;
    options.model_layers = 9;
    options.steps_per_bucket = 1;
    options.name = name;
    eplb_window *window = make_window(options);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        if (bucket == 2) {
            begin_dummy_step(window);
        } else {
            begin_step(window);
        }
        record(window, 1, (uint32_t[]){bucket, 1, 0});
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_window_destroy(&window);
    return snapshot;
}

static eplb_snapshot_load_options load_options(int32_t buckets_per_scenario, double decay)
{
    eplb_snapshot_load_options options;
    eplb_snapshot_load_options_init(&options);
    options.buckets_per_scenario = buckets_per_scenario;
    options.decay = decay;
    return options;
}

static eplb_load *load_of(const eplb_snapshot *snapshot, const eplb_snapshot_load_options *options)
{
    eplb_load *load = NULL;
    eplb_error error;
    assert_ok(eplb_snapshot_load(&load, NULL, &snapshot, 1, options, &error), &error);
    return load;
}

/* A scenario's name, weight, and tokens of experts 0 and 1 in the second layer. */
static void assert_scenario(const eplb_load *load, int32_t scenario, const char *name,
                            double weight, double tokens_0, double tokens_1)
{
    assert_string_equal(eplb_load_scenario_name(load, scenario), name);
    assert_true(eplb_load_scenario_weight(load, scenario) == weight);
    const double *row = eplb_load_row(load, scenario, 1);
    assert_true(row[0] == tokens_0 && row[1] == tokens_1 && row[2] == 0.0);
    row = eplb_load_row(load, scenario, 0);
    assert_true(row[0] == 0.0 && row[1] == 0.0 && row[2] == 0.0);
}

static void each_filled_bucket_is_a_scenario_oldest_first(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = seven_buckets(NULL);
    eplb_load *load = load_of(snapshot, NULL);
    assert_int_equal(eplb_load_scenarios(load), BUCKETS - 1);
    assert_int_equal(eplb_load_layers(load), LAYERS);
    assert_int_equal(eplb_load_experts(load), EXPERTS);
    assert_int_equal(eplb_load_layer_ids(load)[1], 8);
    assert_int_equal(eplb_load_model_layers(load), 9);
    assert_scenario(load, 0, "bucket 0", 1.0, 0.0, 1.0);
    assert_scenario(load, 1, "bucket 1", 1.0, 1.0, 1.0);
    assert_scenario(load, 2, "bucket 3", 1.0, 3.0, 1.0);
    assert_scenario(load, 5, "bucket 6", 1.0, 6.0, 1.0);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy(&snapshot);
}

static void buckets_are_grouped_from_the_newest(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = seven_buckets(NULL);
    eplb_snapshot_load_options options = load_options(2, 1.0);
    eplb_load *load = load_of(snapshot, &options);
    assert_int_equal(eplb_load_scenarios(load), 4);
    assert_scenario(load, 0, "bucket 0", 1.0, 0.0, 1.0);
    assert_scenario(load, 1, "bucket 1..2", 1.0, 1.0, 1.0);
    assert_scenario(load, 2, "bucket 3..4", 1.0, 7.0, 2.0);
    assert_scenario(load, 3, "bucket 5..6", 1.0, 11.0, 2.0);
    eplb_load_destroy(&load);
    options.buckets_per_scenario = -1;
    load = load_of(snapshot, &options);
    assert_int_equal(eplb_load_scenarios(load), 1);
    assert_scenario(load, 0, "bucket 0..6", 1.0, 19.0, 6.0);
    eplb_load_destroy(&load);
    options.buckets_per_scenario = INT32_MAX;
    load = load_of(snapshot, &options);
    assert_scenario(load, 0, "bucket 0..6", 1.0, 19.0, 6.0);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy(&snapshot);
}

static void recent_buckets_weigh_more(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = seven_buckets(NULL);
    eplb_snapshot_load_options options = load_options(2, 0.5);
    eplb_load *load = load_of(snapshot, &options);
    assert_scenario(load, 3, "bucket 5..6", 1.0, 11.0, 2.0);
    assert_scenario(load, 2, "bucket 3..4", 0.25, 7.0, 2.0);
    assert_scenario(load, 1, "bucket 1..2", 0.0625, 1.0, 1.0);
    eplb_load_destroy(&load);
    options.decay = 1e-290;
    load = load_of(snapshot, &options);
    assert_scenario(load, 1, "bucket 1..2", 1e-300, 1.0, 1.0);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy(&snapshot);
}

static void windows_combine_into_one_load(void **state)
{
    (void)state;
    const eplb_snapshot *both[] = {seven_buckets("prefill"), seven_buckets("decode")};
    eplb_snapshot_load_options options = load_options(4, 0.5);
    options.weights = (double[]){3.0, 1.0};
    eplb_load *load = NULL;
    assert_ok(eplb_snapshot_load(&load, NULL, both, 2, &options, NULL), NULL);
    assert_int_equal(eplb_load_scenarios(load), 4);
    assert_scenario(load, 0, "prefill bucket 0..2", 3.0 / 16, 1.0, 2.0);
    assert_scenario(load, 1, "prefill bucket 3..6", 3.0, 18.0, 4.0);
    assert_scenario(load, 2, "decode bucket 0..2", 1.0 / 16, 1.0, 2.0);
    assert_scenario(load, 3, "decode bucket 3..6", 1.0, 18.0, 4.0);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy((eplb_snapshot **)&both[0]);
    eplb_snapshot_destroy((eplb_snapshot **)&both[1]);
}

static void scenarios_are_listed_as_they_are_made(void **state)
{
    (void)state;
    const eplb_snapshot *both[] = {seven_buckets(NULL), seven_buckets(NULL)};
    eplb_snapshot_load_options options = load_options(3, 0.5);
    eplb_snapshot_scenario listed[7] = {[6] = {.snapshot = -7}};
    int32_t count = -1;
    assert_ok(eplb_snapshot_list_scenarios(both, 2, &options, listed, 7, &count, NULL), NULL);
    assert_int_equal(count, 6);
    assert_int_equal(listed[6].snapshot, -7);
    for (int32_t i = 0; i < 6; i++) {
        int64_t last = 3 * (i % 3);
        assert_int_equal(listed[i].snapshot, i / 3);
        assert_int_equal(listed[i].first_bucket, last > 0 ? last - 2 : 0);
        assert_int_equal(listed[i].last_bucket, last);
        assert_int_equal(listed[i].filled_steps, last == 0 ? 1 : last == 3 ? 2 : 3);
        assert_true(listed[i].weight == (last == 0 ? 1.0 / 64 : last == 3 ? 1.0 / 8 : 1.0));
    }
    listed[2].snapshot = -7;
    assert_ok(eplb_snapshot_list_scenarios(both, 2, &options, listed, 2, &count, NULL), NULL);
    assert_int_equal(count, 6);
    assert_int_equal(listed[2].snapshot, -7);
    assert_ok(eplb_snapshot_list_scenarios(both, 1, NULL, NULL, 0, &count, NULL), NULL);
    assert_int_equal(count, BUCKETS - 1);
    assert_status(eplb_snapshot_list_scenarios(both, 1, NULL, NULL, 0, NULL, NULL),
                  EPLB_ERROR_ARGUMENT, NULL);
    eplb_snapshot_destroy((eplb_snapshot **)&both[0]);
    eplb_snapshot_destroy((eplb_snapshot **)&both[1]);
}

/* Before any step, and after dummy steps only: no load is a normal load. */
static void empty_window_is_one_scenario_of_zeros(void **state)
{
    (void)state;
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    for (int dummy = 0; dummy < 2; dummy++) {
        eplb_snapshot *snapshot = take_snapshot(window);
        eplb_load *load = load_of(snapshot, NULL);
        assert_int_equal(eplb_load_scenarios(load), 1);
        assert_scenario(load, 0, "empty", 1.0, 0.0, 0.0);
        int32_t count = -1;
        const eplb_snapshot *one = snapshot;
        assert_ok(eplb_snapshot_list_scenarios(&one, 1, NULL, NULL, 0, &count, NULL), NULL);
        assert_int_equal(count, 0);
        eplb_load_destroy(&load);
        eplb_snapshot_destroy(&snapshot);
        begin_dummy_step(window);
    }
    eplb_window_destroy(&window);
}

/* vllm-project/vllm-ascend#12154, #16183: an all-zero load is a load. */
static void steps_without_tokens_are_a_scenario_of_zeros(void **state)
{
    (void)state;
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    begin_step(window);
    record(window, 1, (uint32_t[]){0, 0, 0});
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_load *load = load_of(snapshot, NULL);
    assert_int_equal(eplb_load_scenarios(load), 1);
    assert_scenario(load, 0, "bucket 0", 1.0, 0.0, 0.0);
    assert_int_equal(eplb_load_layer_is_zero(load, 0), 1);
    assert_int_equal(eplb_load_layer_is_zero(load, 1), 1);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static eplb_snapshot *one_of_many_ranks(int32_t ranks)
{
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.rank = ranks > 1 ? 1 : 0;
    options.ranks = ranks;
    eplb_window *window = make_window(options);
    begin_step(window);
    record(window, 1, (uint32_t[]){4, 2, 0});
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_window_destroy(&window);
    return snapshot;
}

/* sgl-project/sglang#5524: counts of one rank were taken for those of all. */
static void load_of_some_ranks_is_refused_unless_asked_for(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = one_of_many_ranks(4);
    const eplb_snapshot *one = snapshot;
    eplb_load *load = NULL;
    eplb_error error;
    assert_status(eplb_snapshot_load(&load, NULL, &one, 1, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_null(load);
    assert_contains(error.message, "of 4 ranks, missing: 0, 2, 3");
    eplb_snapshot_load_options options = load_options(1, 1.0);
    options.allow_missing_ranks = 1;
    load = load_of(snapshot, &options);
    assert_scenario(load, 0, "bucket 0", 1.0, 4.0, 2.0);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy(&snapshot);
}

static void long_list_of_missing_ranks_is_cut(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = one_of_many_ranks(20);
    const eplb_snapshot *one = snapshot;
    eplb_load *load = NULL;
    eplb_error error;
    assert_status(eplb_snapshot_load(&load, NULL, &one, 1, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "missing: 0, 2, 3, ");
    assert_contains(error.message, ", 16 and 3 more");
    eplb_snapshot_destroy(&snapshot);
}

/* 2^53 is the last that a load holds exactly. */
static void sum_that_a_load_cannot_hold_exactly_is_refused(void **state)
{
    (void)state;
    static const uint32_t most = UINT32_MAX;
    static const uint32_t rest = 1 << 21;
    static const uint32_t one = 1;
    eplb_window *window = make_window(window_options(1, 1));
    begin_step(window);
    for (uint32_t i = 0; i < rest; i++) {
        record(window, 0, &most);
    }
    record(window, 0, &rest);
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 0, (uint64_t)1 << 53);
    eplb_load *load = load_of(snapshot, NULL);
    assert_true(eplb_load_row(load, 0, 0)[0] == 9007199254740992.0);
    eplb_load_destroy(&load);
    eplb_snapshot_destroy(&snapshot);

    record(window, 0, &one);
    snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 0, ((uint64_t)1 << 53) + 1);
    const eplb_snapshot *snapshots[] = {snapshot};
    eplb_error error;
    assert_status(eplb_snapshot_load(&load, NULL, snapshots, 1, NULL, &error), EPLB_ERROR_OVERFLOW,
                  &error);
    assert_null(load);
    assert_contains(error.message, "layer 0: expert 0: 9007199254740993 tokens");
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void snapshots_with_other_layers_do_not_combine(void **state)
{
    (void)state;
    const eplb_snapshot *both[] = {seven_buckets(NULL), one_of_many_ranks(1)};
    eplb_load *load = NULL;
    eplb_error error;
    assert_status(eplb_snapshot_load(&load, NULL, both, 2, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_null(load);
    assert_contains(error.message, "row 0 is layer 3 and layer 0");
    eplb_snapshot_destroy((eplb_snapshot **)&both[0]);
    eplb_snapshot_destroy((eplb_snapshot **)&both[1]);
}

static void assert_refused(const eplb_snapshot *const *snapshots, int32_t count,
                           const eplb_snapshot_load_options *options, const char *message)
{
    eplb_load *load = NULL;
    int32_t scenarios = -7;
    eplb_error error;
    assert_status(eplb_snapshot_load(&load, NULL, snapshots, count, options, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, message);
    assert_null(load);
    assert_status(
        eplb_snapshot_list_scenarios(snapshots, count, options, NULL, 0, &scenarios, &error),
        EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, message);
    assert_int_equal(scenarios, -7);
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    static const double bad[] = {0.0, -1.0, 1.5, NAN, INFINITY};
    eplb_snapshot *snapshot = seven_buckets(NULL);
    const eplb_snapshot *snapshots[] = {snapshot, NULL};
    assert_refused(snapshots, 0, NULL, "number of snapshots 0");
    assert_refused(snapshots, 2, NULL, "no snapshot");
    assert_refused(NULL, 1, NULL, "no snapshots");
    eplb_snapshot_load_options options = load_options(0, 1.0);
    assert_refused(snapshots, 1, &options, "0 buckets per scenario");
    options = load_options(-2, 1.0);
    assert_refused(snapshots, 1, &options, "-2 buckets per scenario");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options = load_options(1, bad[i]);
        assert_refused(snapshots, 1, &options, "decay");
        options = load_options(1, 1.0);
        options.weights = &bad[i];
        if (bad[i] != 1.5) {
            assert_refused(snapshots, 1, &options, "weight 0");
        }
    }
    options = load_options(1, 1.0);
    options.allow_missing_ranks = 2;
    assert_refused(snapshots, 1, &options, "allow_missing_ranks 2");
    options.struct_size = 0;
    assert_refused(snapshots, 1, &options, "eplb_snapshot_load_options_init");
    assert_status(eplb_snapshot_load(NULL, NULL, snapshots, 1, NULL, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    eplb_snapshot_load_options_init(NULL);
    eplb_snapshot_destroy(&snapshot);
}

static eplb_status load_only(const eplb_hooks *hooks, void *context)
{
    const eplb_snapshot *snapshot = context;
    eplb_load *load = NULL;
    eplb_status status = eplb_snapshot_load(&load, hooks, &snapshot, 1, NULL, NULL);
    assert_true((status == EPLB_OK) == (load != NULL));
    eplb_load_destroy(&load);
    return status;
}

static void failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = seven_buckets("decode");
    test_each_failing_allocation(load_only, snapshot);
    eplb_snapshot_destroy(&snapshot);
}

TEST_MAIN(cmocka_unit_test(each_filled_bucket_is_a_scenario_oldest_first),
          cmocka_unit_test(buckets_are_grouped_from_the_newest),
          cmocka_unit_test(recent_buckets_weigh_more),
          cmocka_unit_test(windows_combine_into_one_load),
          cmocka_unit_test(scenarios_are_listed_as_they_are_made),
          cmocka_unit_test(empty_window_is_one_scenario_of_zeros),
          cmocka_unit_test(steps_without_tokens_are_a_scenario_of_zeros),
          cmocka_unit_test(load_of_some_ranks_is_refused_unless_asked_for),
          cmocka_unit_test(long_list_of_missing_ranks_is_cut),
          cmocka_unit_test(sum_that_a_load_cannot_hold_exactly_is_refused),
          cmocka_unit_test(snapshots_with_other_layers_do_not_combine),
          cmocka_unit_test(arguments_out_of_range_are_refused),
          cmocka_unit_test(failed_allocation_leaks_nothing))
