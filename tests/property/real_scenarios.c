/* SPDX-License-Identifier: MIT */
/* One placement for nine real workloads, and what is left of it when a GPU fails. */
#include "deepseek_v3.h"

#include <eplb/plan.h>

static eplb_plan *plan_for(const eplb_load *load, const eplb_cluster *cluster, int32_t objective)
{
    eplb_error error;
    eplb_plan *plan;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.threads = 2;
    options.objective = objective;
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error), &error);
    assert_ok(eplb_placement_validate(eplb_plan_placement(plan), 0, &error), &error);
    return plan;
}

/* The mean over scenarios and layers. */
static double mean_imbalance(const eplb_load *load, const eplb_plan *plan)
{
    double sum = 0.0;
    int32_t rows = eplb_load_scenarios(load) * eplb_load_layers(load);
    for (int32_t i = 0; i < rows; i++) {
        int32_t l = i % eplb_load_layers(load);
        double imbalance;
        const double *row = eplb_load_row(load, i / eplb_load_layers(load), l);
        assert_ok(eplb_placement_imbalance(eplb_plan_placement(plan), l, row, &imbalance, NULL),
                  NULL);
        sum += imbalance;
    }
    return sum / rows;
}

static void expect_balance(const eplb_load *load, int32_t gpus, double most, double of_the_sum)
{
    eplb_cluster *cluster;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, 288 / gpus, 0, NULL), NULL);
    eplb_plan *joint = plan_for(load, cluster, EPLB_OBJECTIVE_MEAN_OF_MAX);
    eplb_plan *sum = plan_for(load, cluster, EPLB_OBJECTIVE_SUM);
    eplb_plan_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_info(joint, &info, NULL), NULL);
    assert_close(info.imbalance_after_mean, mean_imbalance(load, joint), 1e-9);
    assert_true(mean_imbalance(load, joint) <= most);
    assert_true(mean_imbalance(load, sum) >= of_the_sum);
    eplb_plan_destroy(&sum);
    eplb_plan_destroy(&joint);
    eplb_cluster_destroy(&cluster);
}

static void one_placement_serves_nine_workloads(void **state)
{
    (void)state;
    eplb_load *load = deepseek_v3_or_skip(0, DEEPSEEK_V3_FILES);
    expect_balance(load, 32, 1.0105, 1.15);
    expect_balance(load, 72, 1.038, 1.25);
    eplb_load_destroy(&load);
}

static void any_gpu_may_fail(void **state)
{
    (void)state;
    enum { GPUS = 32 };
    eplb_load *load = deepseek_v3_or_skip(0, 1);
    eplb_cluster *cluster;
    assert_ok(eplb_cluster_create(&cluster, NULL, GPUS, 9, 0, NULL), NULL);
    eplb_plan *before = plan_for(load, cluster, EPLB_OBJECTIVE_MEAN_OF_MAX);
    for (int32_t dead = 0; dead < GPUS; dead++) {
        assert_ok(eplb_cluster_set_alive(cluster, dead, 0, NULL), NULL);
        eplb_plan *after = plan_for(load, cluster, EPLB_OBJECTIVE_MEAN_OF_MAX);
        assert_true(mean_imbalance(load, after) <= 1.001);
        for (int32_t l = 0; l < eplb_load_layers(load); l++) {
            int32_t lost;
            int32_t most;
            int32_t worst;
            const eplb_placement *placement = eplb_plan_placement(before);
            assert_ok(eplb_placement_lost_experts(placement, cluster, l, NULL, 0, &lost, NULL),
                      NULL);
            assert_ok(eplb_placement_single_failure(placement, l, &most, &worst, NULL), NULL);
            assert_true(lost >= 1 && lost <= 9 && lost <= most);
        }
        eplb_plan_destroy(&after);
        assert_ok(eplb_cluster_set_alive(cluster, dead, 1, NULL), NULL);
    }
    eplb_plan_destroy(&before);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

TEST_MAIN(cmocka_unit_test(one_placement_serves_nine_workloads), cmocka_unit_test(any_gpu_may_fail))
