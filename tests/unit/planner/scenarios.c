/* SPDX-License-Identifier: MIT */
/* Plans for several scenarios: small layers whose optimum is proven
 * (tests/data/cases/scenarios.json), and what the objectives mean. */
#include "planning.h"

#include <cjson/cJSON.h>

#include <eplb/random.h>

/* The optima are written with nine decimals. */
#define WRITTEN 1e-9

/* 2 layers of 6 experts in 3 scenarios, on 3 GPUs x 3 slots. */
enum { SCENARIOS = 3, LAYERS = 2, EXPERTS = 6, GPUS = 3, SLOTS = 9 };

static const double loads[SCENARIOS][LAYERS][EXPERTS] = {
    {{9, 7, 1, 1, 2, 4}, {5, 0, 0, 9, 1, 1}},
    {{1, 2, 8, 9, 3, 1}, {1, 1, 7, 1, 3, 2}},
    {{3, 3, 3, 3, 9, 3}, {0, 8, 1, 1, 1, 8}},
};
static const double weights[SCENARIOS] = {2, 1, 5};

static eplb_load *example_load(void)
{
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, SCENARIOS, LAYERS, EXPERTS, NULL), NULL);
    for (int32_t k = 0; k < SCENARIOS; k++) {
        for (int32_t l = 0; l < LAYERS; l++) {
            assert_ok(eplb_load_set_row(load, k, l, loads[k][l], NULL), NULL);
        }
        assert_ok(eplb_load_set_scenario(load, k, NULL, weights[k], NULL), NULL);
    }
    return load;
}

static eplb_plan *plan_for(const eplb_load *load, const eplb_placement *current, int32_t objective)
{
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.objective = objective;
    eplb_cluster *cluster = cluster_of(GPUS, SLOTS / GPUS, 0);
    eplb_plan *plan = plan_of(load, cluster, current, &options);
    assert_int_equal(info_of(plan).valid, 1);
    eplb_cluster_destroy(&cluster);
    return plan;
}

static double imbalance(const eplb_plan *plan, int32_t layer, const double *row)
{
    double result;
    assert_ok(eplb_placement_imbalance(eplb_plan_placement(plan), layer, row, &result, NULL), NULL);
    return result;
}

/* What the plan says of a layer is what the placement is worth. */
static double value_of(const eplb_plan *plan, const eplb_load *load, int32_t layer,
                       eplb_objective objective)
{
    double value;
    assert_ok(eplb_placement_objective(eplb_plan_placement(plan), layer, load, layer, objective,
                                       &value, NULL),
              NULL);
    return value;
}

static eplb_load *load_of_case(const cJSON *object, int32_t *experts)
{
    const cJSON *scenarios = cJSON_GetObjectItemCaseSensitive(object, "scenarios");
    *experts = cJSON_GetArraySize(cJSON_GetArrayItem(scenarios, 0));
    eplb_load *load;
    int32_t count = cJSON_GetArraySize(scenarios);
    assert_ok(eplb_load_create(&load, NULL, count, 1, *experts, NULL), NULL);
    for (int32_t k = 0; k < count; k++) {
        double row[16];
        int32_t e = 0;
        const cJSON *item;
        cJSON_ArrayForEach(item, cJSON_GetArrayItem(scenarios, k))
        {
            assert_true(e < 16);
            row[e++] = item->valuedouble;
        }
        assert_ok(eplb_load_set_row(load, k, 0, row, NULL), NULL);
    }
    return load;
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void solve_case(const cJSON *object, int32_t objective, double optimum)
{
    int32_t experts;
    eplb_load *load = load_of_case(object, &experts);
    int32_t gpus = (int32_t)number(object, "gpus");
    eplb_cluster *cluster = cluster_of(gpus, (int32_t)number(object, "slots") / gpus, 0);
    for (int32_t effort = 1; effort <= 9; effort += 4) {
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.objective = objective;
        options.effort = effort;
        eplb_plan *plan = plan_of(load, cluster, NULL, &options);
        eplb_plan_layer layer = layer_of(plan, 0);
        assert_true(layer.lower_bound <= optimum + WRITTEN);
        assert_true(layer.imbalance_after >= optimum - WRITTEN);
        if (effort > 1) {
            assert_close(layer.imbalance_after, optimum, WRITTEN);
        }
        eplb_plan_destroy(&plan);
    }
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void default_effort_finds_the_optimum_of_small_layers(void **state)
{
    (void)state;
    char *text = test_read_file(test_data("cases/scenarios.json").text, NULL);
    cJSON *cases = cJSON_Parse(text);
    free(text);
    assert_int_equal(cJSON_GetArraySize(cases), 5);
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        solve_case(object, EPLB_OBJECTIVE_MEAN_OF_MAX, number(object, "optimum_mean_of_max"));
        solve_case(object, EPLB_OBJECTIVE_MAX_OF_MAX, number(object, "optimum_max_of_max"));
    }
    cJSON_Delete(cases);
}

static void mean_of_max_weighs_the_scenarios(void **state)
{
    (void)state;
    eplb_load *load = example_load();
    eplb_plan *plan = plan_for(load, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    for (int32_t l = 0; l < LAYERS; l++) {
        double mean = 0.0;
        for (int32_t k = 0; k < SCENARIOS; k++) {
            mean += weights[k] / 8.0 * imbalance(plan, l, loads[k][l]);
        }
        assert_close(layer_of(plan, l).imbalance_after, mean, 1e-12);
        assert_close(value_of(plan, load, l, EPLB_OBJECTIVE_MEAN_OF_MAX), mean, 1e-12);
    }
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void max_of_max_is_the_worst_scenario(void **state)
{
    (void)state;
    eplb_load *load = example_load();
    eplb_plan *plan = plan_for(load, NULL, EPLB_OBJECTIVE_MAX_OF_MAX);
    for (int32_t l = 0; l < LAYERS; l++) {
        double largest = 0.0;
        for (int32_t k = 0; k < SCENARIOS; k++) {
            largest = fmax(largest, imbalance(plan, l, loads[k][l]));
        }
        assert_close(layer_of(plan, l).imbalance_after, largest, 1e-12);
        assert_close(value_of(plan, load, l, EPLB_OBJECTIVE_MAX_OF_MAX), largest, 1e-12);
    }
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void sum_is_a_plan_of_the_weighted_sum(void **state)
{
    (void)state;
    eplb_load *load = example_load();
    double rows[LAYERS][EXPERTS];
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t e = 0; e < EXPERTS; e++) {
            rows[l][e] = 2 * loads[0][l][e] + loads[1][l][e] + 5 * loads[2][l][e];
        }
    }
    eplb_load *one = load_of(rows[0], LAYERS, EXPERTS);
    eplb_plan *plan = plan_for(load, NULL, EPLB_OBJECTIVE_SUM);
    eplb_plan *expected = plan_for(one, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), l),
                            eplb_placement_row(eplb_plan_placement(expected), l),
                            SLOTS * sizeof(int32_t));
        assert_true(layer_of(plan, l).imbalance_after == layer_of(expected, l).imbalance_after);
        assert_close(value_of(plan, load, l, EPLB_OBJECTIVE_SUM), layer_of(plan, l).imbalance_after,
                     1e-12);
    }
    eplb_plan_destroy(&expected);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&one);
    eplb_load_destroy(&load);
}

/* Each scenario is measured by itself: one with ten times the tokens is worth no more. */
static void amount_of_tokens_does_not_matter(void **state)
{
    (void)state;
    eplb_load *load = example_load();
    eplb_plan *plan = plan_for(load, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    for (int32_t l = 0; l < LAYERS; l++) {
        double row[EXPERTS];
        for (int32_t e = 0; e < EXPERTS; e++) {
            row[e] = loads[1][l][e] * 0x1p1000;
        }
        assert_ok(eplb_load_set_row(load, 1, l, row, NULL), NULL);
    }
    eplb_plan *again = plan_for(load, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), l),
                            eplb_placement_row(eplb_plan_placement(again), l),
                            SLOTS * sizeof(int32_t));
    }
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void scenario_without_load_in_a_layer_does_not_count_there(void **state)
{
    (void)state;
    static const double nothing[EXPERTS] = {0};
    eplb_load *load = example_load();
    assert_ok(eplb_load_set_row(load, 1, 0, nothing, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 2, 0, nothing, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 0, 1, nothing, NULL), NULL);
    eplb_plan *plan = plan_for(load, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    assert_close(layer_of(plan, 0).imbalance_after, imbalance(plan, 0, loads[0][0]), 1e-12);
    double mean =
        1.0 / 6 * imbalance(plan, 1, loads[1][1]) + 5.0 / 6 * imbalance(plan, 1, loads[2][1]);
    assert_close(layer_of(plan, 1).imbalance_after, mean, 1e-12);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void layer_without_load_in_any_scenario_is_not_scored(void **state)
{
    (void)state;
    static const double nothing[EXPERTS] = {0};
    eplb_load *load = example_load();
    for (int32_t k = 0; k < SCENARIOS; k++) {
        assert_ok(eplb_load_set_row(load, k, 0, nothing, NULL), NULL);
    }
    eplb_plan *plan = plan_for(load, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    assert_int_equal(info_of(plan).scored_layers, 1);
    assert_int_equal(layer_of(plan, 0).scored, 0);
    assert_true(layer_of(plan, 0).imbalance_after == 0.0);
    for (int32_t objective = 0; objective <= EPLB_OBJECTIVE_SUM; objective++) {
        assert_true(value_of(plan, load, 0, (eplb_objective)objective) == 0.0);
    }
    double value;
    eplb_error error;
    assert_status(eplb_placement_objective(eplb_plan_placement(plan), 0, load, LAYERS,
                                           EPLB_OBJECTIVE_SUM, &value, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "no layer 2");
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void plan_of_its_own_result_moves_nothing(void **state)
{
    (void)state;
    eplb_load *load = example_load();
    for (int32_t objective = 0; objective <= EPLB_OBJECTIVE_SUM; objective++) {
        eplb_plan *plan = plan_for(load, NULL, objective);
        eplb_plan *again = plan_for(load, eplb_plan_placement(plan), objective);
        assert_int_equal(info_of(again).copies, 0);
        assert_true(info_of(again).imbalance_after_mean == info_of(plan).imbalance_after_mean);
        eplb_plan_destroy(&again);
        eplb_plan_destroy(&plan);
    }
    eplb_load_destroy(&load);
}

/* 72 experts on 8 GPUs x 10 slots: too large for the small layers' way. */
static eplb_load *larger_load(void)
{
    enum { MANY = 72, KINDS = 3 };
    eplb_load *load;
    eplb_random random;
    eplb_random_seed(&random, 5);
    assert_ok(eplb_load_create(&load, NULL, KINDS, 1, MANY, NULL), NULL);
    for (int32_t k = 0; k < KINDS; k++) {
        double row[MANY];
        for (int32_t e = 0; e < MANY; e++) {
            row[e] = 1.0 / (0.1 + eplb_random_unit(&random));
        }
        assert_ok(eplb_load_set_row(load, k, 0, row, NULL), NULL);
    }
    return load;
}

static void more_effort_takes_more_of_the_imbalance_away(void **state)
{
    (void)state;
    eplb_load *load = larger_load();
    eplb_cluster *cluster = cluster_of(8, 10, 0);
    double after[2];
    for (int32_t i = 0; i < 2; i++) {
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = i == 0 ? 1 : 5;
        eplb_plan *plan = plan_of(load, cluster, NULL, &options);
        after[i] = info_of(plan).imbalance_after_mean;
        eplb_plan_destroy(&plan);
    }
    assert_true(after[1] < 1.0 + 0.6 * (after[0] - 1.0));
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* Sums of the ends of the range of numbers: nothing overflows or is lost. */
static void loads_of_any_magnitude_plan_alike(void **state)
{
    (void)state;
    eplb_load *load = larger_load();
    eplb_cluster *cluster = cluster_of(8, 10, 0);
    eplb_plan *plan = plan_of(load, cluster, NULL, NULL);
    for (int32_t k = 0; k < 3; k++) {
        double row[72];
        for (int32_t e = 0; e < 72; e++) {
            row[e] = eplb_load_row(load, k, 0)[e] * (k == 0 ? 0x1p1000 : k == 1 ? 0x1p-1000 : 1.0);
        }
        assert_ok(eplb_load_set_row(load, k, 0, row, NULL), NULL);
    }
    eplb_plan *again = plan_of(load, cluster, NULL, NULL);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 0),
                        eplb_placement_row(eplb_plan_placement(again), 0), 80 * sizeof(int32_t));
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static eplb_status plan_larger(const eplb_hooks *hooks, void *context)
{
    eplb_cluster *cluster = cluster_of(8, 10, 0);
    eplb_plan *plan = NULL;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 1;
    options.threads = 2;
    eplb_status status = eplb_plan_create(&plan, hooks, context, cluster, NULL, &options, NULL);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    return status;
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    (void)state;
    eplb_load *load = larger_load();
    test_each_failing_allocation(plan_larger, load);
    eplb_load_destroy(&load);
}

static void objectives_have_the_names_of_the_command(void **state)
{
    (void)state;
    assert_string_equal(eplb_objective_name(EPLB_OBJECTIVE_MEAN_OF_MAX), "mean-of-max");
    assert_string_equal(eplb_objective_name(EPLB_OBJECTIVE_MAX_OF_MAX), "max-of-max");
    assert_string_equal(eplb_objective_name(EPLB_OBJECTIVE_SUM), "sum");
    assert_string_equal(eplb_objective_name((eplb_objective)3), "unknown");
}

static eplb_load *one_layer_load(double value, double weight)
{
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, 2, 1, EXPERTS, NULL), NULL);
    for (int32_t k = 0; k < 2; k++) {
        double row[EXPERTS] = {0};
        row[k] = value;
        row[k + 2] = value / 4;
        assert_ok(eplb_load_set_row(load, k, 0, row, NULL), NULL);
        assert_ok(eplb_load_set_scenario(load, k, NULL, weight, NULL), NULL);
    }
    return load;
}

static void expect_plan_as_of_small_numbers(double value, double weight)
{
    eplb_load *small = one_layer_load(1.0, 1.0);
    eplb_load *large = one_layer_load(value, weight);
    eplb_plan *expected = plan_for(small, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    eplb_plan *plan = plan_for(large, NULL, EPLB_OBJECTIVE_MEAN_OF_MAX);
    assert_close(layer_of(plan, 0).imbalance_after, layer_of(expected, 0).imbalance_after, 1e-12);
    assert_close(value_of(plan, large, 0, EPLB_OBJECTIVE_MEAN_OF_MAX),
                 layer_of(expected, 0).imbalance_after, 1e-12);
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&expected);
    eplb_load_destroy(&large);
    eplb_load_destroy(&small);
}

static void scenarios_whose_sum_overflows_are_planned(void **state)
{
    (void)state;
    expect_plan_as_of_small_numbers(1e308, 1.0);
    expect_plan_as_of_small_numbers(1e10, 1e300);
}

static void weights_whose_sum_overflows_or_vanishes_are_weighed(void **state)
{
    (void)state;
    expect_plan_as_of_small_numbers(1.0, 1.7e308);
    expect_plan_as_of_small_numbers(1e-20, 1e-310);
}

TEST_MAIN(cmocka_unit_test(default_effort_finds_the_optimum_of_small_layers),
          cmocka_unit_test(mean_of_max_weighs_the_scenarios),
          cmocka_unit_test(max_of_max_is_the_worst_scenario),
          cmocka_unit_test(sum_is_a_plan_of_the_weighted_sum),
          cmocka_unit_test(amount_of_tokens_does_not_matter),
          cmocka_unit_test(scenario_without_load_in_a_layer_does_not_count_there),
          cmocka_unit_test(layer_without_load_in_any_scenario_is_not_scored),
          cmocka_unit_test(plan_of_its_own_result_moves_nothing),
          cmocka_unit_test(more_effort_takes_more_of_the_imbalance_away),
          cmocka_unit_test(loads_of_any_magnitude_plan_alike),
          cmocka_unit_test(scenarios_whose_sum_overflows_are_planned),
          cmocka_unit_test(weights_whose_sum_overflows_or_vanishes_are_weighed),
          cmocka_unit_test(every_failing_allocation_is_an_error_without_a_leak),
          cmocka_unit_test(objectives_have_the_names_of_the_command))
