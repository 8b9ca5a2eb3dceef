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

/* Shapes of every kind that the estimate lets through, with skewed loads. */
static void layers_that_fit_are_proven(void **state)
{
    (void)state;
    static const int32_t shapes[][3] = {{8, 8, 2},  {8, 4, 4},  {8, 6, 5},  {12, 6, 3},
                                        {16, 4, 4}, {16, 4, 5}, {16, 12, 2}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        eplb_random random;
        eplb_random_seed(&random, i);
        double row[16];
        draw_loads(&random, row, shapes[i][0]);
        eplb_load *load = load_of(row, 1, shapes[i][0]);
        eplb_cluster *cluster = cluster_of(shapes[i][1], shapes[i][2], 0);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        layer_task t;
        int32_t placement[64];
        assert_true(layer_task_make(&t, load, cluster, &options));
        assert_true(eplb_ilp_exact_fits(&t.task));
        assert_true(solve_exactly(&t, NODES, placement).proven);
        eplb_cluster_destroy(&cluster);
        eplb_load_destroy(&load);
    }
}

static bool scenarios_fit(int32_t scenarios, int32_t experts, int32_t gpus, int32_t slots_per_gpu)
{
    eplb_refine_task task = {.scenarios = scenarios,
                             .experts = experts,
                             .gpus = gpus,
                             .slots = gpus * slots_per_gpu,
                             .min_replicas = 1,
                             .max_replicas = gpus};
    return eplb_ilp_exact_fits(&task);
}

static bool shape_fits(int32_t experts, int32_t gpus, int32_t slots_per_gpu)
{
    return scenarios_fit(1, experts, gpus, slots_per_gpu);
}

/* As measured: the first of each pair is mostly proven within the nodes, the other is not. */
static void large_layers_do_not_fit(void **state)
{
    (void)state;
    assert_true(shape_fits(16, 8, 3));
    assert_false(shape_fits(16, 8, 4));
    assert_true(shape_fits(12, 6, 4));
    assert_false(shape_fits(12, 6, 5));
    assert_true(shape_fits(16, 16, 2));
    assert_false(shape_fits(16, 12, 3));
    assert_false(shape_fits(64, 8, 8));
    assert_false(shape_fits(256, 32, 9));
    assert_true(scenarios_fit(3, 16, 16, 2));
    assert_false(scenarios_fit(16, 16, 16, 2));
}

/* Two equal GPUs that start from a given placement, without a bound. */
static void make_by_hand(layer_task *t, int32_t experts, int32_t slots, const double *loads,
                         const int32_t *start)
{
    *t = (layer_task){.task = {.experts = experts,
                               .gpus = 2,
                               .slots = slots,
                               .scenarios = 1,
                               .min_replicas = 1,
                               .max_replicas = 2,
                               .first_slot = t->first_slot,
                               .loads = t->loads,
                               .weights = t->weights,
                               .placement = t->placement,
                               .pinned = t->pinned,
                               .stop = layer_task_stop,
                               .stop_context = t},
                      .first_slot = {0, slots / 2, slots},
                      .weights = {1.0}};
    memcpy(t->loads, loads, (size_t)experts * sizeof(*loads));
    memcpy(t->placement, start, (size_t)slots * sizeof(*start));
    t->task.value = layer_task_value(t, start);
}

/* GLPK's tolerance is 1e-7. */
static void differences_far_below_a_solvers_tolerance_count(void **state)
{
    (void)state;
    static const double loads[] = {0.5 + 3e-10, 0.5 + 1e-10, 0.5 - 1e-10, 0.5 - 3e-10};
    layer_task t;
    int32_t placement[4];
    make_by_hand(&t, 4, 4, loads, (const int32_t[]){0, 1, 2, 3});
    eplb_ilp_exact_result result = solve_exactly(&t, NODES, placement);
    assert_true(result.proven);
    assert_close(result.value, 1.0, 1e-12);
}

/* Experts 1 and 2 have the same load, but 2 is pinned to both GPUs. */
static void expert_may_be_pinned_where_its_like_is_not(void **state)
{
    (void)state;
    static const double loads[] = {0.5, 0.25, 0.25, 0.375, 0.125, 0.5};
    layer_task t;
    int32_t placement[8];
    make_by_hand(&t, 6, 8, loads, (const int32_t[]){2, 0, 5, 3, 2, 1, 4, 3});
    t.pinned[0] = 1;
    t.pinned[4] = 1;
    eplb_ilp_exact_result result = solve_exactly(&t, NODES, placement);
    assert_true(result.proven);
    assert_close(result.value, 1.0, 1e-12);
}

/* They are beyond the arrays of the search. */
static void huge_layers_come_back_as_they_are(void **state)
{
    (void)state;
    static const int32_t first_slot[2] = {0, 65};
    int32_t start[65];
    int32_t placement[65] = {0};
    for (int32_t e = 0; e < 65; e++) {
        start[e] = e;
    }
    eplb_refine_task task = {.experts = 65,
                             .gpus = 1,
                             .slots = 65,
                             .scenarios = 1,
                             .first_slot = first_slot,
                             .placement = start,
                             .value = 1.5,
                             .lower_bound = 1.25};
    eplb_ilp_exact_result result = {.placement = placement};
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    assert_ok(eplb_ilp_exact(&hooks, &task, NODES, &result, NULL), NULL);
    assert_memory_equal(placement, start, sizeof(start));
    assert_true(result.value == 1.5 && result.lower_bound == 1.25 && !result.proven);
    assert_int_equal(result.nodes, 0);
}

TEST_MAIN(cmocka_unit_test(known_layers_are_proven),
          cmocka_unit_test(known_layers_of_several_scenarios_are_proven),
          seeded_test(random_layers_are_those_of_brute_force),
          cmocka_unit_test(layers_that_fit_are_proven), cmocka_unit_test(large_layers_do_not_fit),
          cmocka_unit_test(differences_far_below_a_solvers_tolerance_count),
          cmocka_unit_test(expert_may_be_pinned_where_its_like_is_not),
          cmocka_unit_test(huge_layers_come_back_as_they_are))
