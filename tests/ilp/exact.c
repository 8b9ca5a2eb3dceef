/* SPDX-License-Identifier: MIT */
/* Proven optima: of the cases in tests/data/cases, and of random layers against brute force. */
#include "random_layer.h"

#include <cjson/cJSON.h>

/* The optima are written with nine decimals. */
#define WRITTEN 1e-9
#define NODES EPLB_ILP_EXACT_NODES

static cJSON *read_cases(const char *name, int count)
{
    char *text = test_read_file(test_data(name).text, NULL);
    cJSON *cases = cJSON_Parse(text);
    free(text);
    assert_int_equal(cJSON_GetArraySize(cases), count);
    return cases;
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void add_row(eplb_load *load, int32_t scenario, const cJSON *array)
{
    double row[16];
    int32_t experts = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        assert_true(experts < 16);
        row[experts++] = item->valuedouble;
    }
    assert_ok(eplb_load_set_row(load, scenario, 0, row, NULL), NULL);
}

/* A case with one load, or with several scenarios. */
static eplb_load *load_of_case(const cJSON *object)
{
    const cJSON *single = cJSON_GetObjectItemCaseSensitive(object, "load");
    const cJSON *scenarios = cJSON_GetObjectItemCaseSensitive(object, "scenarios");
    const cJSON *first = single != NULL ? single : cJSON_GetArrayItem(scenarios, 0);
    int32_t count = single != NULL ? 1 : cJSON_GetArraySize(scenarios);
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, count, 1, cJSON_GetArraySize(first), NULL), NULL);
    for (int32_t k = 0; k < count; k++) {
        add_row(load, k, single != NULL ? single : cJSON_GetArrayItem(scenarios, k));
    }
    return load;
}

/* Started from the plan of the least and of the default effort. */
static void prove_case(const cJSON *object, int32_t objective, double optimum)
{
    eplb_load *load = load_of_case(object);
    int32_t gpus = (int32_t)number(object, "gpus");
    eplb_cluster *cluster = cluster_of(gpus, (int32_t)number(object, "slots") / gpus, 0);
    for (int32_t effort = 1; effort <= 5; effort += 4) {
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.objective = objective;
        options.effort = effort;
        layer_task t;
        int32_t placement[64];
        assert_true(layer_task_make(&t, load, cluster, &options));
        assert_true(eplb_ilp_exact_fits(&t.task));
        eplb_ilp_exact_result result = solve_exactly(&t, NODES, placement);
        print_message("%s: %.9f after %lld nodes\n",
                      cJSON_GetObjectItemCaseSensitive(object, "name")->valuestring, result.value,
                      (long long)result.nodes);
        assert_true(result.proven);
        assert_close(result.value, optimum, WRITTEN * optimum);
    }
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void known_layers_are_proven(void **state)
{
    (void)state;
    cJSON *cases = read_cases("cases/placement.json", 17);
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        prove_case(object, EPLB_OBJECTIVE_MEAN_OF_MAX, number(object, "optimum_imbalance"));
    }
    cJSON_Delete(cases);
}

static void known_layers_of_several_scenarios_are_proven(void **state)
{
    (void)state;
    cJSON *cases = read_cases("cases/scenarios.json", 5);
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        prove_case(object, EPLB_OBJECTIVE_MEAN_OF_MAX, number(object, "optimum_mean_of_max"));
        prove_case(object, EPLB_OBJECTIVE_MAX_OF_MAX, number(object, "optimum_max_of_max"));
    }
    cJSON_Delete(cases);
}

static void random_layers_are_those_of_brute_force(void **state)
{
    (void)state;
    int solved = 0;
    int improved = 0;
    int with_pins = 0;
    FOR_EACH_SEED(seed, 1000)
    {
        random_layer layer;
        int32_t placement[BRUTE_SLOTS];
        if (solved == 200 || !draw_layer(&layer, seed)) {
            continue;
        }
        eplb_ilp_exact_result result = solve_exactly(&layer.t, NODES, placement);
        assert_true(result.proven);
        assert_close(result.value, layer.brute.best, 1e-9 * layer.brute.best);
        improved += result.value < layer.t.task.value * (1.0 - 1e-9);
        with_pins += layer.t.task.pinned != NULL;
        solved++;
    }
    print_message("%d layers, %d with pins, %d better than planned\n", solved, with_pins, improved);
    assert_int_equal(solved, 200);
    assert_true(improved > 10);
    assert_true(with_pins > 20);
}

TEST_MAIN(cmocka_unit_test(known_layers_are_proven),
          cmocka_unit_test(known_layers_of_several_scenarios_are_proven),
          seeded_test(random_layers_are_those_of_brute_force))
