/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { SCENARIOS = 2, LAYERS = 4, EXPERTS = 3 };

static const int32_t layer_ids[LAYERS] = {0, 2, 5, 6};

/* Layers 0 and 5 are zero; the others hold 100 * scenario + 10 * layer id + expert. */
static eplb_load *make_half_dense_load(void)
{
    eplb_load *load = make_load(SCENARIOS, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_layer_ids(load, layer_ids, 8, NULL), NULL);
    assert_ok(eplb_load_set_scenario(load, 1, "code", 3.0, NULL), NULL);
    for (int32_t s = 0; s < SCENARIOS; s++) {
        for (int32_t l = 1; l < LAYERS; l += 2) {
            double row[EXPERTS];
            for (int32_t e = 0; e < EXPERTS; e++) {
                row[e] = 100.0 * s + 10.0 * layer_ids[l] + e;
            }
            assert_ok(eplb_load_set_row(load, s, l, row, NULL), NULL);
        }
    }
    return load;
}

static void listed_layers_go_and_the_rest_stays(void **state)
{
    (void)state;
    eplb_load *load = make_half_dense_load();
    eplb_load *result = NULL;
    eplb_error error;
    assert_ok(eplb_load_without_layers(&result, load, (int32_t[]){5, 0}, 2, &error), &error);
    eplb_load_destroy(&load);
    assert_int_equal(eplb_load_scenarios(result), SCENARIOS);
    assert_int_equal(eplb_load_layers(result), 2);
    assert_int_equal(eplb_load_experts(result), EXPERTS);
    assert_int_equal(eplb_load_model_layers(result), 8);
    assert_int_equal(eplb_load_layer_ids(result)[0], 2);
    assert_int_equal(eplb_load_layer_ids(result)[1], 6);
    assert_null(eplb_load_scenario_name(result, 0));
    assert_string_equal(eplb_load_scenario_name(result, 1), "code");
    assert_true(eplb_load_scenario_weight(result, 1) == 3.0);
    for (int32_t s = 0; s < SCENARIOS; s++) {
        for (int32_t l = 0; l < 2; l++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                double expected = 100.0 * s + 10.0 * (l == 0 ? 2 : 6) + e;
                assert_true(eplb_load_row(result, s, l)[e] == expected);
            }
        }
    }
    eplb_load_destroy(&result);
}

static void layers_that_are_not_there_do_not_matter(void **state)
{
    (void)state;
    eplb_load *load = make_half_dense_load();
    eplb_load *result = NULL;
    assert_ok(eplb_load_without_layers(&result, load, (int32_t[]){1, 7, 0, 1, 0}, 5, NULL), NULL);
    assert_int_equal(eplb_load_layers(result), 3);
    eplb_load_destroy(&result);
    assert_ok(eplb_load_without_layers(&result, load, NULL, 0, NULL), NULL);
    assert_int_equal(eplb_load_layers(result), LAYERS);
    assert_memory_equal(eplb_load_layer_ids(result), layer_ids, sizeof(layer_ids));
    eplb_load_destroy(&result);
    eplb_load_destroy(&load);
}

static void layer_with_tokens_in_any_scenario_is_refused(void **state)
{
    (void)state;
    eplb_load *load = make_half_dense_load();
    assert_ok(eplb_load_set_row(load, 1, 2, (double[]){0, 0, 41}, NULL), NULL);
    eplb_error error;
    eplb_load *result = (eplb_load *)&error;
    assert_status(eplb_load_without_layers(&result, load, (int32_t[]){0, 5}, 2, &error),
                  EPLB_ERROR_DATA, &error);
    assert_null(result);
    assert_contains(error.message, "layer 5");
    assert_contains(error.message, "expert 2");
    assert_contains(error.message, "41");
    eplb_load_destroy(&load);
}

static void at_least_one_layer_must_stay(void **state)
{
    (void)state;
    eplb_load *load = make_load(SCENARIOS, 2, EXPERTS);
    eplb_error error;
    eplb_load *result = (eplb_load *)&error;
    assert_status(eplb_load_without_layers(&result, load, (int32_t[]){0, 1}, 2, &error),
                  EPLB_ERROR_DATA, &error);
    assert_null(result);
    eplb_load_destroy(&load);
}

static eplb_status strip(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_load *load = NULL;
    eplb_load *result = NULL;
    eplb_status status = eplb_load_create(&load, hooks, SCENARIOS, LAYERS, EXPERTS, NULL);
    if (status == EPLB_OK) {
        status = eplb_load_set_scenario(load, 0, "chat", 2.0, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_load_without_layers(&result, load, (int32_t[]){1, 3}, 2, NULL);
    }
    eplb_load_destroy(&result);
    eplb_load_destroy(&load);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(strip, NULL);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load *load = make_load(1, 2, 3);
    eplb_load *out = load;
    assert_status(eplb_load_without_layers(NULL, load, NULL, 0, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_load_without_layers(&out, load, NULL, 1, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_null(out);
    assert_status(eplb_load_without_layers(&out, NULL, NULL, 0, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    eplb_load_destroy(&load);
}

static void layer_is_zero_without_load_in_any_scenario(void **state)
{
    (void)state;
    eplb_load *load = make_load(2, 3, 2);
    assert_ok(eplb_load_set_row(load, 1, 1, (double[]){0, 4}, NULL), NULL);
    assert_int_equal(eplb_load_layer_is_zero(load, 0), 1);
    assert_int_equal(eplb_load_layer_is_zero(load, 1), 0);
    assert_int_equal(eplb_load_layer_is_zero(load, 2), 1);
    assert_int_equal(eplb_load_layer_is_zero(load, 3), 0);
    assert_int_equal(eplb_load_layer_is_zero(load, -1), 0);
    eplb_load_destroy(&load);
}

TEST_MAIN(cmocka_unit_test(layer_is_zero_without_load_in_any_scenario),
          cmocka_unit_test(missing_arguments_are_refused),
          cmocka_unit_test(listed_layers_go_and_the_rest_stays),
          cmocka_unit_test(layers_that_are_not_there_do_not_matter),
          cmocka_unit_test(layer_with_tokens_in_any_scenario_is_refused),
          cmocka_unit_test(at_least_one_layer_must_stay),
          cmocka_unit_test(failing_allocation_leaks_nothing))
