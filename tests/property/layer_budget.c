/* SPDX-License-Identifier: MIT */
/* Plans in random budgets: within them, valid, never worse than equal layers, the same on any
 * number of threads. */
#include "instance.h"

#include <eplb/layer_budget.h>

enum { MOST_LAYERS = 6, INSTANCES = 50 };

typedef struct budget_case {
    eplb_cluster *cluster;
    eplb_load *load;
    int64_t budget[MOST_GPUS];
    eplb_plan_options options;
} budget_case;

static eplb_load *draw_load(eplb_random *random)
{
    int32_t scenarios = draw(random, 1, 3);
    int32_t layers = draw(random, 1, MOST_LAYERS);
    int32_t experts = draw(random, 2, MOST_EXPERTS);
    eplb_load *load = NULL;
    assert_ok(eplb_load_create(&load, NULL, scenarios, layers, experts, NULL), NULL);
    for (int32_t k = 0; k < scenarios; k++) {
        assert_ok(eplb_load_set_scenario(load, k, NULL, (double)draw(random, 1, 4), NULL), NULL);
        for (int32_t l = 0; l < layers; l++) {
            double loads[MOST_EXPERTS];
            draw_loads(random, loads, experts);
            assert_ok(eplb_load_set_row(load, k, l, loads, NULL), NULL);
        }
    }
    return load;
}

/* Budgets of all GPUs alike, or each its own, around what the experts need. */
static budget_case draw_case(uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    budget_case drawn = {.cluster = draw_cluster(&random), .load = draw_load(&random)};
    int32_t gpus = eplb_cluster_gpus(drawn.cluster);
    int32_t needed = eplb_load_layers(drawn.load) * eplb_load_experts(drawn.load);
    int32_t each = needed / eplb_cluster_live_gpus(drawn.cluster);
    bool alike = draw(&random, 0, 1) == 1;
    int32_t more = draw(&random, 0, each);
    for (int32_t g = 0; g < gpus; g++) {
        drawn.budget[g] = alike ? each + more : draw(&random, each / 2, 2 * each + 2);
    }
    eplb_plan_options_init(&drawn.options);
    drawn.options.effort = draw(&random, 1, 3);
    drawn.options.objective = draw(&random, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_OBJECTIVE_SUM);
    return drawn;
}

static void release_case(budget_case *drawn)
{
    eplb_cluster_destroy(&drawn->cluster);
    eplb_load_destroy(&drawn->load);
}

static int64_t live_budget(const budget_case *drawn)
{
    int64_t most = (int64_t)eplb_load_layers(drawn->load) * (int64_t)eplb_load_experts(drawn->load);
    int64_t sum = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(drawn->cluster); g++) {
        int64_t own = drawn->budget[g] < most ? drawn->budget[g] : most;
        sum += eplb_cluster_gpu_alive(drawn->cluster, g) ? own : 0;
    }
    return sum;
}

static void assert_within_budgets(const budget_case *drawn, const eplb_plan *plan)
{
    const eplb_placement *placement = eplb_plan_placement(plan);
    eplb_error error;
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    for (int32_t g = 0; g < eplb_cluster_gpus(drawn->cluster); g++) {
        int64_t used = 0;
        for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
            used += eplb_placement_open_slots_on(placement, l, g);
        }
        assert_true(used <= (eplb_cluster_gpu_alive(drawn->cluster, g) ? drawn->budget[g] : 0));
    }
}

/* The sum of weights * imbalances, measured on the placement. */
static double measure(const budget_case *drawn, const eplb_plan *plan,
                      const eplb_placement *placement)
{
    double sum = 0.0;
    for (int32_t l = 0; l < eplb_load_layers(drawn->load); l++) {
        eplb_layer_budget_layer layer = {.struct_size = sizeof(layer)};
        double value;
        assert_ok(eplb_plan_get_budget_layer(plan, l, &layer, NULL), NULL);
        assert_ok(eplb_placement_objective(placement, l, drawn->load, l,
                                           (eplb_objective)drawn->options.objective, &value, NULL),
                  NULL);
        sum += layer.weight * value;
    }
    return sum;
}

/* Plans equal layers apart from the budget; NULL where they do not hold the experts. */
static eplb_plan *plan_uniform(const budget_case *drawn)
{
    eplb_cluster *cluster = NULL;
    int32_t gpus = eplb_cluster_gpus(drawn->cluster);
    int32_t experts = eplb_load_experts(drawn->load);
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, 1, 0, NULL), NULL);
    for (int32_t g = 0; g < gpus; g++) {
        int64_t slots = drawn->budget[g] / eplb_load_layers(drawn->load);
        slots = slots < experts ? slots : experts;
        assert_ok(eplb_cluster_set_slots(cluster, g, (int32_t)slots, NULL), NULL);
        assert_ok(
            eplb_cluster_set_alive(cluster, g, eplb_cluster_gpu_alive(drawn->cluster, g), NULL),
            NULL);
    }
    eplb_plan *plan = NULL;
    eplb_status status =
        eplb_plan_create(&plan, NULL, drawn->load, cluster, NULL, &drawn->options, NULL);
    assert_true(status == EPLB_OK || status == EPLB_ERROR_INFEASIBLE);
    eplb_cluster_destroy(&cluster);
    return plan;
}

static void assert_never_worse_than_uniform(const budget_case *drawn, const eplb_plan *plan)
{
    eplb_layer_budget_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_layer_budget(plan, &info, NULL), NULL);
    double sum = measure(drawn, plan, eplb_plan_placement(plan));
    assert_close(info.sum, sum, 1e-9 * sum);
    eplb_plan *uniform = plan_uniform(drawn);
    assert_int_equal(info.has_uniform, uniform != NULL);
    if (uniform != NULL) {
        double before = measure(drawn, plan, eplb_plan_placement(uniform));
        assert_close(info.sum_uniform, before, 1e-9 * before);
        assert_true(sum <= before * (1.0 + 1e-12));
    }
    eplb_plan_destroy(&uniform);
}

static void assert_same_on_threads(const budget_case *drawn, const eplb_plan *plan)
{
    eplb_plan_options options = drawn->options;
    eplb_plan *other = NULL;
    options.threads = 3;
    assert_ok(eplb_plan_create_in_budget(&other, NULL, drawn->load, drawn->cluster, drawn->budget,
                                         NULL, &options, NULL),
              NULL);
    const eplb_placement *a = eplb_plan_placement(plan);
    const eplb_placement *b = eplb_plan_placement(other);
    assert_int_equal(eplb_placement_slots(a), eplb_placement_slots(b));
    for (int32_t l = 0; l < eplb_placement_layers(a); l++) {
        assert_memory_equal(eplb_placement_row(a, l), eplb_placement_row(b, l),
                            (size_t)eplb_placement_slots(a) * sizeof(int32_t));
    }
    eplb_plan_destroy(&other);
}

static void plans_keep_to_their_budgets_and_gain(void **state)
{
    (void)state;
    int planned = 0;
    int gained = 0;
    FOR_EACH_SEED(seed, INSTANCES)
    {
        budget_case drawn = draw_case(seed);
        int64_t needed = (int64_t)eplb_load_layers(drawn.load) * eplb_load_experts(drawn.load);
        eplb_plan *plan = NULL;
        eplb_error error;
        eplb_status status = eplb_plan_create_in_budget(&plan, NULL, drawn.load, drawn.cluster,
                                                        drawn.budget, NULL, &drawn.options, &error);
        if (live_budget(&drawn) < needed) {
            assert_status(status, EPLB_ERROR_INFEASIBLE, &error);
        } else {
            assert_ok(status, &error);
            planned++;
            eplb_layer_budget_info info = {.struct_size = sizeof(info)};
            assert_ok(eplb_plan_get_layer_budget(plan, &info, NULL), NULL);
            gained += info.has_uniform && info.sum < info.sum_uniform ? 1 : 0;
            assert_within_budgets(&drawn, plan);
            assert_never_worse_than_uniform(&drawn, plan);
            assert_same_on_threads(&drawn, plan);
        }
        eplb_plan_destroy(&plan);
        release_case(&drawn);
    }
    assert_true(planned > INSTANCES / 2);
    assert_true(gained > INSTANCES / 8);
}

TEST_MAIN(seeded_test(plans_keep_to_their_budgets_and_gain))
