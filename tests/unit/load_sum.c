/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { LAYERS = 2, EXPERTS = 3 };

static void scenarios_are_summed_by_weight(void **state)
{
    (void)state;
    eplb_load *load = make_load(2, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_scenario(load, 1, NULL, 0.5, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 0, 1, (double[]){1, 2, 3}, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 1, 1, (double[]){10, 0, 4}, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 1, 0, (double[]){99, 99, 99}, NULL), NULL);
    double row[EXPERTS];
    double total = -1.0;
    assert_ok(eplb_load_sum_row(load, 1, row, &total, NULL), NULL);
    assert_true(row[0] == 6.0 && row[1] == 2.0 && row[2] == 5.0);
    assert_true(total == 13.0);
    eplb_load_destroy(&load);
}

static void single_scenario_is_taken_as_it_is(void **state)
{
    (void)state;
    eplb_load *load = make_load(1, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_scenario(load, 0, NULL, 7.0, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 0, 1, (double[]){1, 2, 3}, NULL), NULL);
    double row[EXPERTS];
    double total = -1.0;
    assert_ok(eplb_load_sum_row(load, 1, row, &total, NULL), NULL);
    assert_true(row[0] == 1.0 && row[1] == 2.0 && row[2] == 3.0);
    assert_true(total == 6.0);
    assert_ok(eplb_load_sum_row(load, 0, row, &total, NULL), NULL);
    assert_true(total == 0.0);
    eplb_load_destroy(&load);
}

static void sum_that_overflows_is_refused(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 8};
    eplb_load *load = make_load(2, LAYERS, EXPERTS);
    assert_ok(eplb_load_set_layer_ids(load, ids, 0, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 0, 1, (double[]){1e308, 0, 0}, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 1, 1, (double[]){0, 0, 1e308}, NULL), NULL);
    double row[EXPERTS];
    double total = -7.0;
    eplb_error error;
    assert_status(eplb_load_sum_row(load, 1, row, &total, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_contains(error.message, "layer 8");
    eplb_load_destroy(&load);
}

static void layer_out_of_range_is_refused(void **state)
{
    (void)state;
    eplb_load *load = make_load(1, LAYERS, EXPERTS);
    eplb_error error;
    double row[EXPERTS] = {7};
    assert_status(eplb_load_sum_row(load, LAYERS, row, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_load_sum_row(load, -1, row, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_load_sum_row(load, 0, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_true(row[0] == 7.0);
    assert_ok(eplb_load_sum_row(load, 0, row, NULL, &error), &error);
    assert_true(row[0] == 0.0);
    eplb_load_destroy(&load);
}

TEST_MAIN(cmocka_unit_test(layer_out_of_range_is_refused),
          cmocka_unit_test(scenarios_are_summed_by_weight),
          cmocka_unit_test(single_scenario_is_taken_as_it_is),
          cmocka_unit_test(sum_that_overflows_is_refused))
