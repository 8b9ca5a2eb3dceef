/* SPDX-License-Identifier: MIT */
#include "model.h"

static eplb_load_builder *make_builder(int32_t scenarios)
{
    eplb_load_builder *builder = NULL;
    eplb_error error;
    assert_ok(eplb_load_builder_create(&builder, NULL, scenarios, &error), &error);
    return builder;
}

static void add(eplb_load_builder *builder, int32_t scenario, int32_t layer_id,
                const double *counts, int32_t length)
{
    eplb_error error;
    assert_ok(eplb_load_builder_add(builder, scenario, layer_id, counts, length, &error), &error);
}

static eplb_load *finish(const eplb_load_builder *builder, int32_t experts)
{
    eplb_load *load = NULL;
    eplb_error error;
    assert_ok(eplb_load_builder_finish(builder, &load, experts, &error), &error);
    return load;
}

static void assert_row(const eplb_load *load, int32_t scenario, int32_t layer,
                       const double *expected)
{
    assert_memory_equal(eplb_load_row(load, scenario, layer), expected,
                        (size_t)eplb_load_experts(load) * sizeof(*expected));
}

static void rows_in_any_order_are_summed(void **state)
{
    (void)state;
    eplb_load_builder *builder = make_builder(2);
    add(builder, 0, 7, (double[]){1, 2, 3}, 3);
    add(builder, 1, 4, (double[]){5, 0, 5}, 3);
    add(builder, 0, 4, (double[]){10, 20, 30}, 3);
    add(builder, 0, 7, (double[]){0.5, 0, 100}, 3);
    add(builder, 1, 7, (double[]){0, 0, 9}, 3);
    eplb_load *load = finish(builder, 0);
    assert_int_equal(eplb_load_scenarios(load), 2);
    assert_int_equal(eplb_load_layers(load), 2);
    assert_int_equal(eplb_load_experts(load), 3);
    assert_int_equal(eplb_load_layer_ids(load)[0], 4);
    assert_int_equal(eplb_load_layer_ids(load)[1], 7);
    assert_int_equal(eplb_load_model_layers(load), 0);
    assert_row(load, 0, 0, (double[]){10, 20, 30});
    assert_row(load, 0, 1, (double[]){1.5, 2, 103});
    assert_row(load, 1, 0, (double[]){5, 0, 5});
    assert_row(load, 1, 1, (double[]){0, 0, 9});
    eplb_load_destroy(&load);
    eplb_load_builder_destroy(&builder);
    assert_null(builder);
}

static void short_rows_are_zero_at_the_end(void **state)
{
    (void)state;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 0, (double[]){1}, 1);
    add(builder, 0, 1, (double[]){1, 2, 3, 4}, 4);
    add(builder, 0, 1, (double[]){1, 1}, 2);
    add(builder, 0, 2, NULL, 0);
    eplb_load *load = finish(builder, 0);
    assert_int_equal(eplb_load_experts(load), 4);
    assert_int_equal(eplb_load_layers(load), 3);
    assert_row(load, 0, 0, (double[]){1, 0, 0, 0});
    assert_row(load, 0, 1, (double[]){2, 3, 3, 4});
    assert_row(load, 0, 2, (double[]){0, 0, 0, 0});
    eplb_load_destroy(&load);
    eplb_load_builder_destroy(&builder);
}

static void number_of_experts_can_be_given(void **state)
{
    (void)state;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 3, (double[]){1, 2, 3}, 3);
    eplb_load *load = finish(builder, 5);
    assert_row(load, 0, 0, (double[]){1, 2, 3, 0, 0});
    eplb_load_destroy(&load);
    load = finish(builder, 3);
    assert_int_equal(eplb_load_experts(load), 3);
    eplb_load_destroy(&load);
    eplb_load_builder_destroy(&builder);
}

static void row_longer_than_the_experts_is_refused(void **state)
{
    (void)state;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 3, (double[]){1, 2, 3}, 3);
    add(builder, 0, 6, (double[]){1, 2, 3, 0, 0}, 5);
    eplb_error error;
    eplb_load *load = (eplb_load *)&error;
    assert_status(eplb_load_builder_finish(builder, &load, 4, &error), EPLB_ERROR_DATA, &error);
    assert_null(load);
    assert_contains(error.message, "layer 6: 5 counts");
    assert_contains(error.message, "4");
    eplb_load_builder_destroy(&builder);
}

static void layer_that_a_scenario_lacks_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load *load = NULL;
    eplb_load_builder *builder = make_builder(3);
    for (int32_t s = 0; s < 3; s++) {
        add(builder, s, 5, (double[]){1, 2}, 2);
    }
    add(builder, 0, 11, (double[]){1, 2}, 2);
    add(builder, 1, 11, (double[]){0, 0}, 2);
    assert_status(eplb_load_builder_finish(builder, &load, 0, &error), EPLB_ERROR_DATA, &error);
    assert_null(load);
    assert_contains(error.message, "layer 11 is in scenario 0 and missing in scenario 2");
    add(builder, 2, 11, NULL, 0);
    load = finish(builder, 0);
    assert_int_equal(eplb_load_layers(load), 2);
    eplb_load_destroy(&load);
    add(builder, 1, 900, (double[]){1}, 1);
    assert_status(eplb_load_builder_finish(builder, &load, 0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 900 is in scenario 1 and missing in scenario 0");
    eplb_load_builder_destroy(&builder);
}

static void nothing_added_makes_no_load(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load *load = (eplb_load *)&error;
    eplb_load_builder *builder = make_builder(2);
    assert_status(eplb_load_builder_finish(builder, &load, 0, &error), EPLB_ERROR_DATA, &error);
    assert_null(load);
    load = (eplb_load *)&error;
    add(builder, 0, 1, NULL, 0);
    add(builder, 1, 1, NULL, 0);
    assert_status(eplb_load_builder_finish(builder, &load, 0, &error), EPLB_ERROR_DATA, &error);
    assert_null(load);
    eplb_load_builder_destroy(&builder);
}

static void adding_goes_on_after_finish(void **state)
{
    (void)state;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 2, (double[]){1, 2}, 2);
    eplb_load *first = finish(builder, 0);
    add(builder, 0, 2, (double[]){10, 10, 10}, 3);
    eplb_load *second = finish(builder, 0);
    assert_row(first, 0, 0, (double[]){1, 2});
    assert_row(second, 0, 0, (double[]){11, 12, 10});
    eplb_load_builder_destroy(&builder);
    assert_row(second, 0, 0, (double[]){11, 12, 10});
    eplb_load_destroy(&first);
    eplb_load_destroy(&second);
}

static void bad_value_leaves_the_builder_as_it_was(void **state)
{
    (void)state;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 2, (double[]){1, 2}, 2);
    eplb_error error;
    assert_status(eplb_load_builder_add(builder, 0, 2, (double[]){5, 5, (double)NAN}, 3, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 2");
    assert_contains(error.message, "expert 2");
    assert_status(eplb_load_builder_add(builder, 0, 9, (double[]){-1}, 1, &error), EPLB_ERROR_DATA,
                  &error);
    assert_status(eplb_load_builder_add(builder, 0, 9, (double[]){1e308, 1e308}, 2, &error),
                  EPLB_ERROR_OVERFLOW, &error);
    eplb_load *load = finish(builder, 0);
    assert_int_equal(eplb_load_layers(load), 1);
    assert_int_equal(eplb_load_experts(load), 2);
    assert_row(load, 0, 0, (double[]){1, 2});
    eplb_load_destroy(&load);
    eplb_load_builder_destroy(&builder);
}

static void sum_over_rows_that_overflows_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load *load = NULL;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 4, (double[]){0, 1e308}, 2);
    add(builder, 0, 4, (double[]){0, 1e308}, 2);
    assert_status(eplb_load_builder_finish(builder, &load, 0, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_null(load);
    assert_contains(error.message, "layer 4");
    assert_contains(error.message, "expert 1");
    eplb_load_builder_destroy(&builder);
}

static void sum_over_experts_that_overflows_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load *load = NULL;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, 4, (double[]){0, 1e308}, 2);
    add(builder, 0, 4, (double[]){1e308, 0}, 2);
    assert_status(eplb_load_builder_finish(builder, &load, 0, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_null(load);
    eplb_load_builder_destroy(&builder);
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load_builder *builder = make_builder(2);
    const double counts[] = {1, 2, 3};
    static const int32_t bad[][3] = {
        {-1, 0, 3}, {2, 0, 3},
        {0, -1, 3}, {0, EPLB_MAX_LAYERS, 3},
        {0, 0, -1}, {0, 0, EPLB_MAX_EXPERTS + 1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(
            eplb_load_builder_add(builder, bad[i][0], bad[i][1], counts, bad[i][2], &error),
            EPLB_ERROR_ARGUMENT, &error);
    }
    assert_status(eplb_load_builder_add(builder, 0, 0, NULL, 3, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    eplb_load_builder_destroy(&builder);
}

static void number_of_experts_out_of_range_is_refused(void **state)
{
    (void)state;
    static const int32_t bad[] = {-1, EPLB_MAX_EXPERTS + 1, INT32_MAX};
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_load_builder *builder = NULL;
    eplb_error error;
    assert_ok(eplb_load_builder_create(&builder, &hooks, 1, &error), &error);
    add(builder, 0, 0, (double[]){1, 2, 3}, 3);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_load *load = (eplb_load *)&error;
        assert_status(eplb_load_builder_finish(builder, &load, bad[i], &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_null(load);
    }
    assert_status(eplb_load_builder_finish(builder, NULL, 0, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_load_builder_destroy(&builder);
    assert_int_equal(memory.live, 0);
}

static void number_of_scenarios_out_of_range_is_refused(void **state)
{
    (void)state;
    static const int32_t bad[] = {0, -1, EPLB_MAX_SCENARIOS + 1, INT32_MAX};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_error error;
        eplb_load_builder *builder = (eplb_load_builder *)&error;
        assert_status(eplb_load_builder_create(&builder, NULL, bad[i], &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_null(builder);
    }
    assert_status(eplb_load_builder_create(NULL, NULL, 1, NULL), EPLB_ERROR_ARGUMENT, NULL);
}

static void last_layer_and_longest_row_fit(void **state)
{
    (void)state;
    static double counts[EPLB_MAX_EXPERTS];
    counts[EPLB_MAX_EXPERTS - 1] = 6.0;
    eplb_load_builder *builder = make_builder(1);
    add(builder, 0, EPLB_MAX_LAYERS - 1, counts, EPLB_MAX_EXPERTS);
    eplb_load *load = finish(builder, 0);
    assert_int_equal(eplb_load_layers(load), 1);
    assert_int_equal(eplb_load_layer_ids(load)[0], EPLB_MAX_LAYERS - 1);
    assert_int_equal(eplb_load_experts(load), EPLB_MAX_EXPERTS);
    assert_true(eplb_load_row(load, 0, 0)[EPLB_MAX_EXPERTS - 1] == 6.0);
    eplb_load_destroy(&load);
    eplb_load_builder_destroy(&builder);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    eplb_load_builder *builder = NULL;
    eplb_load_builder_destroy(&builder);
    eplb_load_builder_destroy(NULL);
}

static eplb_status build(const eplb_hooks *hooks, void *context)
{
    (void)context;
    static const double counts[40] = {1, 2, 3};
    eplb_load_builder *builder = NULL;
    eplb_load *load = NULL;
    eplb_status status = eplb_load_builder_create(&builder, hooks, 2, NULL);
    for (int32_t i = 0; i < 12 && status == EPLB_OK; i++) {
        status = eplb_load_builder_add(builder, i % 2, i / 2 * 9, counts, 3, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_load_builder_add(builder, 0, 9, counts, 40, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_load_builder_finish(builder, &load, 0, NULL);
    }
    eplb_load_destroy(&load);
    eplb_load_builder_destroy(&builder);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(build, NULL);
}

/* Each allocation of a growing builder fails once, and the row is then added again. */
static void row_that_found_no_memory_can_be_added_again(void **state)
{
    (void)state;
    static const double counts[] = {1, 2, 3};
    for (int64_t fail_at = 3; fail_at < 9; fail_at++) {
        test_memory memory = {.fail_at = fail_at};
        eplb_hooks hooks = test_hooks(&memory);
        eplb_load_builder *builder = NULL;
        assert_ok(eplb_load_builder_create(&builder, &hooks, 1, NULL), NULL);
        int failures = 0;
        for (int32_t layer = 0; layer < 60; layer += 20) {
            if (eplb_load_builder_add(builder, 0, layer, counts, 3, NULL) != EPLB_OK) {
                failures++;
                add(builder, 0, layer, counts, 3);
            }
        }
        assert_int_equal(failures, 1);
        eplb_load *load = finish(builder, 0);
        assert_int_equal(eplb_load_layers(load), 3);
        for (int32_t l = 0; l < 3; l++) {
            assert_row(load, 0, l, counts);
        }
        eplb_load_destroy(&load);
        eplb_load_builder_destroy(&builder);
        assert_int_equal(memory.live, 0);
    }
}

TEST_MAIN(cmocka_unit_test(rows_in_any_order_are_summed),
          cmocka_unit_test(short_rows_are_zero_at_the_end),
          cmocka_unit_test(number_of_experts_can_be_given),
          cmocka_unit_test(row_longer_than_the_experts_is_refused),
          cmocka_unit_test(layer_that_a_scenario_lacks_is_refused),
          cmocka_unit_test(nothing_added_makes_no_load),
          cmocka_unit_test(adding_goes_on_after_finish),
          cmocka_unit_test(bad_value_leaves_the_builder_as_it_was),
          cmocka_unit_test(sum_over_rows_that_overflows_is_refused),
          cmocka_unit_test(sum_over_experts_that_overflows_is_refused),
          cmocka_unit_test(arguments_out_of_range_are_refused),
          cmocka_unit_test(number_of_experts_out_of_range_is_refused),
          cmocka_unit_test(number_of_scenarios_out_of_range_is_refused),
          cmocka_unit_test(last_layer_and_longest_row_fit),
          cmocka_unit_test(destroying_nothing_does_nothing),
          cmocka_unit_test(failing_allocation_leaks_nothing),
          cmocka_unit_test(row_that_found_no_memory_can_be_added_again))
