/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { SCENARIOS = 2, LAYERS = 3, EXPERTS = 5 };

static void new_load_is_zero_with_plain_ids_and_weights(void **state)
{
    (void)state;
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_int_equal(eplb_load_scenarios(load), SCENARIOS);
    assert_int_equal(eplb_load_layers(load), LAYERS);
    assert_int_equal(eplb_load_experts(load), EXPERTS);
    assert_int_equal(eplb_load_model_layers(load), 0);
    for (int32_t s = 0; s < SCENARIOS; s++) {
        assert_null(eplb_load_scenario_name(load, s));
        assert_true(eplb_load_scenario_weight(load, s) == 1.0);
        for (int32_t l = 0; l < LAYERS; l++) {
            assert_int_equal(eplb_load_layer_ids(load)[l], l);
            for (int32_t e = 0; e < EXPERTS; e++) {
                assert_true(eplb_load_row(load, s, l)[e] == 0.0);
            }
        }
    }
    eplb_load_destroy(&load);
    assert_null(load);
}

static void sizes_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int32_t bad[][3] = {
        {0, LAYERS, EXPERTS},
        {SCENARIOS, 0, EXPERTS},
        {SCENARIOS, LAYERS, 0},
        {-1, LAYERS, EXPERTS},
        {SCENARIOS, INT32_MIN, EXPERTS},
        {SCENARIOS, LAYERS, -7},
        {EPLB_MAX_SCENARIOS + 1, LAYERS, EXPERTS},
        {SCENARIOS, EPLB_MAX_LAYERS + 1, EXPERTS},
        {SCENARIOS, LAYERS, EPLB_MAX_EXPERTS + 1},
        {INT32_MAX, INT32_MAX, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_error error;
        eplb_load *load = (eplb_load *)&error;
        assert_status(eplb_load_create(&load, NULL, bad[i][0], bad[i][1], bad[i][2], &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_null(load);
    }
    assert_status(eplb_load_create(NULL, NULL, 1, 1, 1, NULL), EPLB_ERROR_ARGUMENT, NULL);
}

static void load_beyond_memory_is_out_of_memory(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_load *load = NULL;
    eplb_error error;
    assert_status(eplb_load_create(&load, &hooks, EPLB_MAX_SCENARIOS, EPLB_MAX_LAYERS,
                                   EPLB_MAX_EXPERTS, &error),
                  EPLB_ERROR_NOMEM, &error);
    assert_null(load);
    assert_int_equal(memory.live, 0);
}

static void each_row_is_kept_apart(void **state)
{
    (void)state;
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    for (int32_t s = 0; s < SCENARIOS; s++) {
        for (int32_t l = 0; l < LAYERS; l++) {
            double row[EXPERTS];
            for (int32_t e = 0; e < EXPERTS; e++) {
                row[e] = 100.0 * s + 10.0 * l + e;
            }
            assert_ok(eplb_load_set_row(load, s, l, row, NULL), NULL);
        }
    }
    for (int32_t s = 0; s < SCENARIOS; s++) {
        for (int32_t l = 0; l < LAYERS; l++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                assert_true(eplb_load_row(load, s, l)[e] == 100.0 * s + 10.0 * l + e);
            }
        }
    }
    eplb_load_destroy(&load);
}

static void counts_are_exact_up_to_2_to_the_53(void **state)
{
    (void)state;
    eplb_load *load = make_load(1, 1, 2);
    const double row[] = {9007199254740991.0, 1.0};
    assert_ok(eplb_load_set_row(load, 0, 0, row, NULL), NULL);
    assert_true(eplb_load_row(load, 0, 0)[0] == 9007199254740991.0);
    eplb_load_destroy(&load);
}

static void value_that_is_no_load_is_named_and_changes_nothing(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 7, 9};
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_layer_ids(load, ids, 0, NULL), NULL);
    const double good[EXPERTS] = {1, 2, 3, 4, 5};
    assert_ok(eplb_load_set_row(load, 1, 2, good, NULL), NULL);
    const double bad_values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -1.0, -5e-324};
    for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]); i++) {
        double bad[EXPERTS] = {9, 9, 9, 9, 9};
        bad[3] = bad_values[i];
        bad[4] = (double)NAN;
        eplb_error error;
        assert_status(eplb_load_set_row(load, 1, 2, bad, &error), EPLB_ERROR_DATA, &error);
        assert_contains(error.message, "layer 9");
        assert_contains(error.message, "expert 3");
        char value[32];
        snprintf(value, sizeof(value), "%g", bad_values[i]);
        assert_contains(error.message, value);
        assert_memory_equal(eplb_load_row(load, 1, 2), good, sizeof(good));
    }
    eplb_load_destroy(&load);
}

/* vllm-project/vllm#28155: weights of 1e30 are fine, sums that overflow are not. */
static void row_whose_sum_overflows_is_refused(void **state)
{
    (void)state;
    eplb_load *load = make_load(1, 1, EXPERTS);
    const double large[EXPERTS] = {1e30, 1e30, 0, 0, 1e308};
    const double too_large[EXPERTS] = {1e308, 0, 0, 0, 1e308};
    assert_ok(eplb_load_set_row(load, 0, 0, large, NULL), NULL);
    eplb_error error;
    assert_status(eplb_load_set_row(load, 0, 0, too_large, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_memory_equal(eplb_load_row(load, 0, 0), large, sizeof(large));
    eplb_load_destroy(&load);
}

static void row_out_of_range_is_refused(void **state)
{
    (void)state;
    static const double row[EXPERTS] = {1, 1, 1, 1, 1};
    static const int32_t bad[][2] = {{-1, 0}, {SCENARIOS, 0}, {0, -1}, {0, LAYERS}, {INT32_MAX, 0}};
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_error error;
        assert_status(eplb_load_set_row(load, bad[i][0], bad[i][1], row, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_null(eplb_load_row(load, bad[i][0], bad[i][1]));
    }
    assert_status(eplb_load_set_row(load, 0, 0, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
    eplb_load_destroy(&load);
}

static void layer_ids_are_the_models(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 4, 60};
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_layer_ids(load, ids, 61, NULL), NULL);
    assert_memory_equal(eplb_load_layer_ids(load), ids, sizeof(ids));
    assert_int_equal(eplb_load_model_layers(load), 61);
    assert_ok(eplb_load_set_layer_ids(load, ids, 0, NULL), NULL);
    assert_int_equal(eplb_load_model_layers(load), 0);
    eplb_load_destroy(&load);
}

static void layer_ids_out_of_order_or_range_change_nothing(void **state)
{
    (void)state;
    static const int32_t good[LAYERS] = {3, 4, 60};
    static const int32_t bad[][LAYERS] = {
        {3, 3, 5}, {3, 5, 4}, {-1, 4, 5}, {3, 4, 61}, {0, 1, INT32_MAX},
    };
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_layer_ids(load, good, 61, NULL), NULL);
    eplb_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(eplb_load_set_layer_ids(load, bad[i], 61, &error), EPLB_ERROR_ARGUMENT,
                      &error);
    }
    static const int32_t beyond_all[LAYERS] = {0, 1, EPLB_MAX_LAYERS};
    assert_status(eplb_load_set_layer_ids(load, beyond_all, 0, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_load_set_layer_ids(load, good, -1, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_load_set_layer_ids(load, good, EPLB_MAX_LAYERS + 1, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_load_set_layer_ids(load, NULL, 61, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_memory_equal(eplb_load_layer_ids(load), good, sizeof(good));
    assert_int_equal(eplb_load_model_layers(load), 61);
    eplb_load_destroy(&load);
}

static void scenario_has_a_name_and_a_weight(void **state)
{
    (void)state;
    char name[] = "chat";
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_scenario(load, 1, name, 2.5, NULL), NULL);
    name[0] = 'w';
    assert_string_equal(eplb_load_scenario_name(load, 1), "chat");
    assert_true(eplb_load_scenario_weight(load, 1) == 2.5);
    assert_null(eplb_load_scenario_name(load, 0));
    assert_ok(eplb_load_set_scenario(load, 1, "code", 3.0, NULL), NULL);
    assert_string_equal(eplb_load_scenario_name(load, 1), "code");
    assert_ok(eplb_load_set_scenario(load, 1, NULL, 4.0, NULL), NULL);
    assert_null(eplb_load_scenario_name(load, 1));
    assert_true(eplb_load_scenario_weight(load, 1) == 4.0);
    eplb_load_destroy(&load);
}

static void bad_scenario_or_weight_changes_nothing(void **state)
{
    (void)state;
    const double bad[] = {0.0, -1.0, (double)NAN, (double)INFINITY};
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_scenario(load, 1, "chat", 2.5, NULL), NULL);
    eplb_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(eplb_load_set_scenario(load, 1, "x", bad[i], &error), EPLB_ERROR_ARGUMENT,
                      &error);
    }
    assert_status(eplb_load_set_scenario(load, -1, "x", 1.0, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_load_set_scenario(load, SCENARIOS, "x", 1.0, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_string_equal(eplb_load_scenario_name(load, 1), "chat");
    assert_true(eplb_load_scenario_weight(load, 1) == 2.5);
    assert_null(eplb_load_scenario_name(load, SCENARIOS));
    assert_true(eplb_load_scenario_weight(load, -1) == 0.0);
    eplb_load_destroy(&load);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    eplb_load *load = NULL;
    eplb_load_destroy(&load);
    eplb_load_destroy(NULL);
}

static eplb_status create_and_name(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_load *load = NULL;
    eplb_status status = eplb_load_create(&load, hooks, SCENARIOS, LAYERS, EXPERTS, NULL);
    if (status == EPLB_OK) {
        status = eplb_load_set_scenario(load, 1, "chat", 2.0, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_load_set_scenario(load, 1, "code", 2.0, NULL);
        assert_string_equal(eplb_load_scenario_name(load, 1), status == EPLB_OK ? "code" : "chat");
    }
    eplb_load_destroy(&load);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(create_and_name, NULL);
}

TEST_MAIN(cmocka_unit_test(new_load_is_zero_with_plain_ids_and_weights),
          cmocka_unit_test(sizes_out_of_range_are_refused),
          cmocka_unit_test(load_beyond_memory_is_out_of_memory),
          cmocka_unit_test(each_row_is_kept_apart),
          cmocka_unit_test(counts_are_exact_up_to_2_to_the_53),
          cmocka_unit_test(value_that_is_no_load_is_named_and_changes_nothing),
          cmocka_unit_test(row_whose_sum_overflows_is_refused),
          cmocka_unit_test(row_out_of_range_is_refused), cmocka_unit_test(layer_ids_are_the_models),
          cmocka_unit_test(layer_ids_out_of_order_or_range_change_nothing),
          cmocka_unit_test(scenario_has_a_name_and_a_weight),
          cmocka_unit_test(bad_scenario_or_weight_changes_nothing),
          cmocka_unit_test(destroying_nothing_does_nothing),
          cmocka_unit_test(failing_allocation_leaks_nothing))
