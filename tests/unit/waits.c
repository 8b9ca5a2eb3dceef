/* SPDX-License-Identifier: MIT */
/* Waits that are added, and what a layer, a rank and all of them amount to. */
#include "waits.h"

static void a_rank_in_a_layer_has_its_own_times(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(2, 3);
    add(waits, 1, 2, 10.0);
    add(waits, 1, 2, 30.0);
    add(waits, 1, 0, 500.0);
    eplb_wait_times times = times_of(waits, 1, 2);
    assert_int_equal(times.samples, 2);
    assert_int_equal(times.layer_id, 1);
    assert_true(times.mean == 20.0 && times.worst == 30.0);
    assert_close(times.p50, 10.0, tolerance_of(10.0));
    assert_close(times.p99, 30.0, tolerance_of(30.0));
    assert_int_equal(times_of(waits, 0, 2).samples, 0);
    eplb_waits_destroy(&waits);
    assert_null(waits);
}

static void the_percentile_is_the_least_wait_that_so_many_do_not_exceed(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(1, 1);
    for (int i = 1; i <= 100; i++) {
        add(waits, 0, 0, (double)i);
    }
    eplb_wait_times times = times_of(waits, 0, 0);
    assert_close(times.p50, 50.0, tolerance_of(50.0));
    assert_close(times.p99, 99.0, tolerance_of(99.0));
    add(waits, 0, 0, 1e6); /* the 99th of a hundred and one is still below it */
    assert_close(times_of(waits, 0, 0).p99, 100.0, tolerance_of(100.0));
    eplb_waits_destroy(&waits);
}

static void a_rank_that_never_waits_has_zeros(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(1, 1);
    add(waits, 0, 0, 0.0);
    add(waits, 0, 0, -0.0);
    add(waits, 0, 0, 5.0);
    eplb_wait_times times = times_of(waits, 0, 0);
    assert_int_equal(times.samples, 3);
    assert_true(times.p50 == 0.0 && times.worst == 5.0);
    eplb_waits_destroy(&waits);
}

static void no_percentile_is_above_the_largest_wait(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(1, 1);
    add(waits, 0, 0, 64.0); /* the lower edge of a bin, whose middle is 65 */
    eplb_wait_times times = times_of(waits, 0, 0);
    assert_true(times.p50 == 64.0 && times.p99 == 64.0);
    eplb_waits_destroy(&waits);
}

static void the_rank_that_the_others_wait_for_has_the_smallest_waits(void **state)
{
    (void)state;
    static const double typical[] = {80.0, 120.0, 3.0, 95.0};
    eplb_waits *waits = waits_of(1, 4);
    for (int step = 0; step < 200; step++) {
        for (int32_t r = 0; r < 4; r++) {
            add(waits, 0, r, typical[r]);
        }
    }
    for (int i = 0; i < 4; i++) { /* tails of 2 %: rank 3 gets the worst, rank 2 stays the least */
        add(waits, 0, 3, 4000.0);
        add(waits, 0, 2, 1000.0);
    }
    eplb_layer_waits layer = layer_of(waits, 0);
    assert_int_equal(layer.least_rank, 2);
    assert_int_equal(layer.worst_rank, 3);
    assert_close(layer.least_rank_p50, 3.0, tolerance_of(3.0));
    assert_close(layer.least_rank_p99, 1000.0, tolerance_of(1000.0));
    assert_close(layer.worst_rank_p50, 95.0, tolerance_of(95.0));
    assert_close(layer.worst_rank_p99, 4000.0, tolerance_of(4000.0));
    eplb_waits_destroy(&waits);
}

static void a_layer_has_the_samples_of_all_its_ranks(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(2, 3);
    add(waits, 0, 0, 10.0);
    add(waits, 0, 1, 20.0);
    add(waits, 0, 1, 60.0);
    add(waits, 1, 2, 900.0);
    eplb_layer_waits layer = layer_of(waits, 0);
    assert_int_equal(layer.samples, 3);
    assert_true(layer.mean == 30.0 && layer.worst == 60.0);
    assert_close(layer.p50, 20.0, tolerance_of(20.0));
    assert_close(layer.p99, 60.0, tolerance_of(60.0));
    eplb_waits_destroy(&waits);
}

static void equal_ranks_are_named_by_the_smaller_one(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(1, 4);
    for (int32_t r = 1; r < 4; r++) {
        add(waits, 0, r, 40.0);
    }
    eplb_layer_waits layer = layer_of(waits, 0);
    assert_int_equal(layer.worst_rank, 1);
    assert_int_equal(layer.least_rank, 1);
    eplb_waits_info info = info_of(waits);
    assert_int_equal(info.worst_rank, 1);
    assert_int_equal(info.least_rank, 1);
    eplb_waits_destroy(&waits);
}

static void a_rank_without_samples_is_missing_and_not_the_least(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(2, 4);
    add(waits, 0, 1, 7.0);
    add(waits, 0, 3, 5.0);
    add(waits, 1, 0, 1.0);
    eplb_layer_waits layer = layer_of(waits, 0);
    assert_int_equal(layer.sampled_ranks, 2);
    assert_int_equal(layer.missing_ranks, 2);
    assert_int_equal(layer.least_rank, 3);
    assert_int_equal(layer.worst_rank, 1);

    int32_t missing[4] = {-7, -7, -7, -7};
    assert_int_equal(eplb_waits_missing_ranks(waits, 0, missing, 4), 2);
    assert_int_equal(missing[0], 0);
    assert_int_equal(missing[1], 2);
    assert_int_equal(missing[2], -7);
    assert_int_equal(eplb_waits_missing_ranks(waits, 0, missing, 1), 2);
    assert_int_equal(eplb_waits_missing_ranks(waits, 0, NULL, 0), 2);
    assert_int_equal(eplb_waits_missing_ranks(waits, -1, missing, 4), 1);
    assert_int_equal(missing[0], 2);
    assert_int_equal(eplb_waits_missing_ranks(waits, 2, missing, 4), 0);
    assert_int_equal(eplb_waits_missing_ranks(waits, -2, missing, 4), 0);
    eplb_waits_destroy(&waits);
}

static void nothing_added_gives_zeros_and_no_rank(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(2, 3);
    eplb_layer_waits layer = layer_of(waits, 1);
    assert_int_equal(layer.layer_id, 1);
    assert_int_equal(layer.samples, 0);
    assert_int_equal(layer.missing_ranks, 3);
    assert_int_equal(layer.worst_rank, -1);
    assert_int_equal(layer.least_rank, -1);
    assert_true(layer.p50 == 0.0 && layer.p99 == 0.0 && layer.mean == 0.0 && layer.worst == 0.0);
    assert_true(layer.worst_rank_p99 == 0.0 && layer.least_rank_p50 == 0.0);
    eplb_rank_waits rank = rank_of(waits, 2);
    assert_int_equal(rank.samples, 0);
    assert_int_equal(rank.missing_layers, 0);
    assert_true(rank.step_wait == 0.0 && rank.mean == 0.0);
    eplb_waits_info info = info_of(waits);
    assert_int_equal(info.missing_ranks, 3);
    assert_int_equal(info.partial_ranks, 0);
    assert_int_equal(info.sampled_layers, 0);
    assert_int_equal(info.worst_rank, -1);
    assert_int_equal(info.least_rank, -1);
    assert_true(info.mean == 0.0 && info.worst_rank_step_wait == 0.0);
    eplb_waits_destroy(&waits);
}

static void a_rank_waits_in_a_step_the_sum_of_its_means(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(3, 2);
    add(waits, 0, 1, 10.0);
    add(waits, 0, 1, 20.0);
    add(waits, 2, 1, 100.0);
    add(waits, 1, 0, 1.0);
    eplb_rank_waits rank = rank_of(waits, 1);
    assert_int_equal(rank.samples, 3);
    assert_int_equal(rank.sampled_layers, 2);
    assert_int_equal(rank.missing_layers, 1);
    assert_true(rank.step_wait == 115.0 && rank.worst == 100.0);
    assert_close(rank.mean, 130.0 / 3, 1e-12);
    assert_close(rank.p50, 20.0, tolerance_of(20.0));
    assert_close(rank.p99, 100.0, tolerance_of(100.0));
    eplb_waits_destroy(&waits);
}

static void all_layers_name_the_ranks_that_wait_most_and_least(void **state)
{
    (void)state;
    static const double waits_of_rank[3] = {30.0, 10.0, 20.0};
    eplb_waits *waits = waits_of(3, 5);
    for (int32_t l = 0; l < 3; l += 2) {
        for (int32_t r = 0; r < 3; r++) {
            add(waits, l, r, waits_of_rank[r]);
        }
    }
    for (int i = 0; i < 5; i++) { /* more samples do not make a longer step */
        add(waits, 0, 1, 10.0);
    }
    add(waits, 0, 3, 1.0); /* of one layer only: it cannot be compared */
    eplb_waits_info info = info_of(waits);
    assert_int_equal(info.layers, 3);
    assert_int_equal(info.ranks, 5);
    assert_int_equal(info.sampled_layers, 2);
    assert_int_equal(info.samples, 12);
    assert_int_equal(info.missing_ranks, 1);
    assert_int_equal(info.partial_ranks, 1);
    assert_int_equal(info.worst_rank, 0);
    assert_int_equal(info.least_rank, 1);
    assert_true(info.worst_rank_step_wait == 60.0 && info.least_rank_step_wait == 20.0);
    assert_true(info.worst == 30.0);
    assert_close(info.mean, (60.0 + 40.0 + 20.0 + 50.0 + 1.0) / 12, 1e-12);
    assert_close(info.p50, 10.0, tolerance_of(10.0));
    assert_close(info.p99, 30.0, tolerance_of(30.0));
    eplb_waits_destroy(&waits);
}

static void layers_have_the_ids_given(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 4, 60};
    eplb_waits_options options = shape(3, 2);
    options.layer_ids = ids;
    options.model_layers = 61;
    eplb_waits *waits;
    eplb_error error;
    assert_ok(eplb_waits_create(&waits, NULL, &options, &error), &error);
    assert_memory_equal(eplb_waits_layer_ids(waits), ids, sizeof(ids));
    assert_true(eplb_waits_layer_ids(waits) != ids);
    assert_int_equal(layer_of(waits, 2).layer_id, 60);
    assert_int_equal(times_of(waits, 1, 0).layer_id, 4);
    assert_status(eplb_waits_add(waits, 2, 1, -3.0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 60: rank 1: a wait of -3 us");
    eplb_waits_destroy(&waits);
}

static void what_is_no_wait_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const double bad[] = {
        -1.0, -1e-300, (double)NAN, (double)INFINITY, -(double)INFINITY, 86400e6 + 1.0, 1.7e15};
    eplb_waits *waits = waits_of(2, 2);
    eplb_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(eplb_waits_add(waits, 1, 1, bad[i], &error), EPLB_ERROR_DATA, &error);
        assert_contains(error.message, "layer 1: rank 1: a wait of ");
        assert_contains(error.message, "us is not in 0..86400000000");
    }
    assert_int_equal(info_of(waits).samples, 0);
    add(waits, 1, 1, EPLB_MAX_WAIT_US);
    assert_true(times_of(waits, 1, 1).worst == EPLB_MAX_WAIT_US);
    assert_close(times_of(waits, 1, 1).p50, EPLB_MAX_WAIT_US, tolerance_of(EPLB_MAX_WAIT_US));
    eplb_waits_destroy(&waits);
}

static void a_place_out_of_range_is_refused(void **state)
{
    (void)state;
    static const struct {
        int32_t layer;
        int32_t rank;
        const char *message;
    } bad[] = {{-1, 0, "layer -1 not in 0..1"},
               {2, 0, "layer 2 not in 0..1"},
               {0, -1, "rank -1 not in 0..2"},
               {0, 3, "rank 3 not in 0..2"}};
    eplb_waits *waits = waits_of(2, 3);
    eplb_wait_times times = {.struct_size = sizeof(times)};
    eplb_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(eplb_waits_add(waits, bad[i].layer, bad[i].rank, 1.0, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, bad[i].message);
        assert_status(eplb_waits_get(waits, bad[i].layer, bad[i].rank, &times, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, bad[i].message);
    }
    eplb_layer_waits layer = {.struct_size = sizeof(layer)};
    eplb_rank_waits rank = {.struct_size = sizeof(rank)};
    assert_status(eplb_waits_get_layer(waits, 2, &layer, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_layer(waits, -1, &layer, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_rank(waits, 3, &rank, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_rank(waits, -1, &rank, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_waits_destroy(&waits);
}

static void results_need_a_struct_size_and_write_no_more(void **state)
{
    (void)state;
    eplb_waits *waits = waits_of(1, 1);
    add(waits, 0, 0, 4.0);
    eplb_wait_times times = {0};
    eplb_layer_waits layer = {0};
    eplb_rank_waits rank = {0};
    eplb_waits_info info = {0};
    eplb_error error;
    assert_status(eplb_waits_get(waits, 0, 0, &times, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_layer(waits, 0, &layer, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_rank(waits, 0, &rank, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_info(waits, &info, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get(waits, 0, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_layer(waits, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_rank(waits, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_get_info(waits, NULL, &error), EPLB_ERROR_ARGUMENT, &error);

    times.struct_size = offsetof(eplb_wait_times, p50);
    times.p50 = -1.0;
    assert_ok(eplb_waits_get(waits, 0, 0, &times, &error), &error);
    assert_int_equal(times.samples, 1);
    assert_int_equal(times.struct_size, offsetof(eplb_wait_times, p50));
    assert_true(times.p50 == -1.0);
    eplb_waits_destroy(&waits);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    static const int32_t descending[] = {4, 3};
    static const int32_t ascending[] = {3, 4};
    const struct {
        eplb_waits_options options;
        const char *message;
    } bad[] = {
        {{.struct_size = 0, .layers = 1, .ranks = 1}, "struct_size"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 0, .ranks = 1},
         "number of layers 0 not in 1..65536"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 65537, .ranks = 1},
         "number of layers 65537"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 1, .ranks = 0},
         "number of ranks 0 not in 1..65536"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 1, .ranks = 65537},
         "number of ranks 65537"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 1, .ranks = 2, .rank = 2},
         "rank 2 not in -1..1"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 1, .ranks = 2, .rank = -2},
         "rank -2 not in -1..1"},
        {{.struct_size = sizeof(eplb_waits_options), .layers = 1, .ranks = 1, .reserved = 1},
         "reserved 1"},
        {{.struct_size = sizeof(eplb_waits_options),
          .layers = 2,
          .ranks = 1,
          .layer_ids = descending},
         "row 1: id 3 does not follow id 4"},
        {{.struct_size = sizeof(eplb_waits_options),
          .layers = 2,
          .ranks = 1,
          .layer_ids = ascending,
          .model_layers = 4},
         "row 1: id 4 not in 0..3"},
    };
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_waits *waits = (eplb_waits *)&memory;
        eplb_error error;
        assert_status(eplb_waits_create(&waits, &hooks, &bad[i].options, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, bad[i].message);
        assert_null(waits);
    }
    assert_int_equal(memory.live, 0);
    eplb_waits_options options = shape(1, 1);
    eplb_waits *waits;
    eplb_error error;
    assert_status(eplb_waits_create(NULL, NULL, &options, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_create(&waits, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_waits_options_init(NULL);
    eplb_waits_destroy(NULL);
}

static void an_older_callers_options_mean_all_ranks(void **state)
{
    (void)state;
    eplb_waits_options options = shape(1, 2);
    options.struct_size = offsetof(eplb_waits_options, rank);
    options.rank = 77;
    eplb_waits *waits;
    eplb_error error;
    assert_ok(eplb_waits_create(&waits, NULL, &options, &error), &error);
    add(waits, 0, 1, 1.0);
    eplb_waits_destroy(&waits);
}

static void adding_allocates_nothing(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_waits_options options = shape(2, 2);
    eplb_waits *waits;
    assert_ok(eplb_waits_create(&waits, &hooks, &options, NULL), NULL);
    int64_t requests = memory.requests;
    for (int i = 0; i < 1000; i++) {
        add(waits, i % 2, i / 2 % 2, i * 1.5);
    }
    (void)layer_of(waits, 0);
    (void)rank_of(waits, 0);
    (void)info_of(waits);
    assert_int_equal(memory.requests, requests);
    eplb_waits_destroy(&waits);
    assert_int_equal(memory.live, 0);
}

static void one_ranks_memory_is_taken_where_one_rank_records(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_waits_options options = shape(3, 100);
    options.rank = 42;
    eplb_waits *waits;
    assert_ok(eplb_waits_create(&waits, &hooks, &options, NULL), NULL);
    int64_t requests = memory.requests;
    assert_true(requests < 10);
    for (int32_t l = 0; l < 3; l++) {
        add(waits, l, 42, 1.0);
    }
    assert_int_equal(memory.requests, requests);
    memory.fail_at = requests + 1; /* another rank's memory is taken at its first wait */
    eplb_error error;
    assert_status(eplb_waits_add(waits, 0, 41, 1.0, &error), EPLB_ERROR_NOMEM, &error);
    assert_int_equal(info_of(waits).samples, 3);
    add(waits, 0, 41, 1.0);
    assert_int_equal(memory.requests, requests + 2);
    assert_int_equal(info_of(waits).samples, 4);
    eplb_waits_destroy(&waits);
    assert_int_equal(memory.live, 0);
}

static eplb_status create_with_hooks(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_waits_options options = shape(2, 3);
    eplb_waits *waits;
    eplb_status status = eplb_waits_create(&waits, hooks, &options, NULL);
    assert_true((waits != NULL) == (status == EPLB_OK));
    eplb_waits_destroy(&waits);
    return status;
}

static void creating_survives_each_failing_allocation(void **state)
{
    (void)state;
    test_each_failing_allocation(create_with_hooks, NULL);
}

TEST_MAIN(cmocka_unit_test(a_rank_in_a_layer_has_its_own_times),
          cmocka_unit_test(the_percentile_is_the_least_wait_that_so_many_do_not_exceed),
          cmocka_unit_test(a_rank_that_never_waits_has_zeros),
          cmocka_unit_test(no_percentile_is_above_the_largest_wait),
          cmocka_unit_test(the_rank_that_the_others_wait_for_has_the_smallest_waits),
          cmocka_unit_test(a_layer_has_the_samples_of_all_its_ranks),
          cmocka_unit_test(equal_ranks_are_named_by_the_smaller_one),
          cmocka_unit_test(a_rank_without_samples_is_missing_and_not_the_least),
          cmocka_unit_test(nothing_added_gives_zeros_and_no_rank),
          cmocka_unit_test(a_rank_waits_in_a_step_the_sum_of_its_means),
          cmocka_unit_test(all_layers_name_the_ranks_that_wait_most_and_least),
          cmocka_unit_test(layers_have_the_ids_given),
          cmocka_unit_test(what_is_no_wait_is_refused_and_changes_nothing),
          cmocka_unit_test(a_place_out_of_range_is_refused),
          cmocka_unit_test(results_need_a_struct_size_and_write_no_more),
          cmocka_unit_test(bad_options_are_refused),
          cmocka_unit_test(an_older_callers_options_mean_all_ranks),
          cmocka_unit_test(adding_allocates_nothing),
          cmocka_unit_test(one_ranks_memory_is_taken_where_one_rank_records),
          cmocka_unit_test(creating_survives_each_failing_allocation))
