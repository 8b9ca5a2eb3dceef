/* SPDX-License-Identifier: MIT */
/* Small layers whose optimum is proven (tests/data/cases/placement.json): traps that users of the
 * engines reported, and instances where the greedy way fails. */
#include "planning.h"

#include <cjson/cJSON.h>

/* The optima are written with nine decimals. */
#define WRITTEN 1e-9

typedef struct optimum_case {
    const char *name;
    double load[16];
    int32_t experts;
    int32_t gpus;
    int32_t slots;
    double optimum;
} optimum_case;

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static optimum_case case_of(const cJSON *object)
{
    optimum_case result = {
        .name = cJSON_GetObjectItemCaseSensitive(object, "name")->valuestring,
        .gpus = (int32_t)number(object, "gpus"),
        .slots = (int32_t)number(object, "slots"),
        .optimum = number(object, "optimum_imbalance"),
    };
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(object, "load"))
    {
        assert_true(result.experts < 16);
        result.load[result.experts++] = item->valuedouble;
    }
    return result;
}

static cJSON *read_cases(void)
{
    char *text = test_read_file(test_data("cases/placement.json").text, NULL);
    cJSON *cases = cJSON_Parse(text);
    free(text);
    assert_true(cJSON_IsArray(cases));
    assert_int_equal(cJSON_GetArraySize(cases), 17);
    return cases;
}

static eplb_plan_layer solve(const optimum_case *c, int32_t effort)
{
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = effort;
    eplb_load *load = load_of(c->load, 1, c->experts);
    eplb_cluster *cluster = cluster_of(c->gpus, c->slots / c->gpus, 0);
    eplb_plan *plan = plan_of(load, cluster, NULL, &options);
    assert_int_equal(info_of(plan).valid, 1);
    eplb_plan_layer layer = layer_of(plan, 0);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return layer;
}

static void default_effort_finds_the_optimum_of_small_layers(void **state)
{
    (void)state;
    cJSON *cases = read_cases();
    int found = 0;
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        optimum_case c = case_of(object);
        double imbalance = solve(&c, 5).imbalance_after;
        if (imbalance <= c.optimum + WRITTEN) {
            found++;
        } else {
            print_message("%s: %.9f, optimum %.9f\n", c.name, imbalance, c.optimum);
        }
        assert_true(imbalance >= c.optimum - WRITTEN);
    }
    cJSON_Delete(cases);
    assert_int_equal(found, 17);
}

static void no_bound_is_above_the_optimum(void **state)
{
    (void)state;
    cJSON *cases = read_cases();
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        optimum_case c = case_of(object);
        for (int32_t effort = 1; effort <= 9; effort += 4) {
            eplb_plan_layer layer = solve(&c, effort);
            assert_true(layer.lower_bound >= 1.0);
            assert_true(layer.lower_bound <= c.optimum + WRITTEN);
            assert_true(layer.lower_bound <= layer.imbalance_after);
        }
    }
    cJSON_Delete(cases);
}

TEST_MAIN(cmocka_unit_test(default_effort_finds_the_optimum_of_small_layers),
          cmocka_unit_test(no_bound_is_above_the_optimum))
