/* SPDX-License-Identifier: MIT */
/* What layers of real workloads gain from slots where they need them. */
#include "deepseek_v3.h"

#include <eplb/layer_budget.h>

enum { GPUS = 144, SLOTS = 288 };

/* The part of the sum over layers that is gained, with so many slots a layer on average. */
static double gain_of(int32_t workload)
{
    eplb_load *load = deepseek_v3_or_skip(workload, 1);
    int64_t budget[GPUS];
    for (int32_t g = 0; g < GPUS; g++) {
        budget[g] = (int64_t)SLOTS * eplb_load_layers(load) / GPUS;
    }
    eplb_cluster *cluster;
    eplb_plan *plan;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 3;
    options.threads = 2;
    options.objective = EPLB_OBJECTIVE_SUM;
    eplb_error error;
    assert_ok(eplb_cluster_create(&cluster, NULL, GPUS, 1, 0, &error), &error);
    assert_ok(
        eplb_plan_create_in_budget(&plan, NULL, load, cluster, budget, NULL, &options, &error),
        &error);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    for (int32_t g = 0; g < GPUS; g++) {
        int64_t used = 0;
        for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
            used += eplb_placement_open_slots_on(placement, l, g);
        }
        assert_true(used <= budget[g]);
    }
    eplb_layer_budget_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_layer_budget(plan, &info, &error), &error);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return 1.0 - info.sum / info.sum_uniform;
}

static void two_slots_a_gpu_gain_percents(void **state)
{
    (void)state;
    assert_true(gain_of(2) > 0.03);
    assert_true(gain_of(8) > 0.015);
}

TEST_MAIN(cmocka_unit_test(two_slots_a_gpu_gain_percents))
