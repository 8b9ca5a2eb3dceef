/* SPDX-License-Identifier: MIT */
/* What a default plan reaches on real workloads, for every one of them. */
#include "deepseek_v3.h"

#include <eplb/plan.h>

static void expect_mean_imbalance(const eplb_load *load, int32_t slots, int32_t gpus, double most)
{
    eplb_error error;
    eplb_cluster *cluster;
    eplb_plan *plan;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.threads = 2;
    int32_t slots_per_gpu;
    assert_ok(eplb_slots_per_gpu(eplb_load_experts(load), gpus, slots, &slots_per_gpu, &error),
              &error);
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, 0, &error), &error);
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error), &error);
    eplb_plan_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_info(plan, &info, &error), &error);
    assert_int_equal(info.scored_layers, 58);
    assert_int_equal(info.valid, 1);
    if (info.imbalance_after_mean > most) {
        print_error("%d slots on %d GPUs: %.6f\n", slots, gpus, info.imbalance_after_mean);
    }
    assert_true(info.imbalance_after_mean <= most);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
}

static void every_real_workload_is_balanced(void **state)
{
    (void)state;
    for (int32_t file = 0; file < DEEPSEEK_V3_FILES; file++) {
        eplb_load *load = deepseek_v3_or_skip(file, 1);
        /* 61 hidden layers, of which the first three are dense. */
        assert_int_equal(eplb_load_layers(load), 58);
        assert_int_equal(eplb_load_layer_ids(load)[0], 3);
        assert_int_equal(eplb_load_model_layers(load), 61);
        expect_mean_imbalance(load, 288, 32, 1.0004);
        expect_mean_imbalance(load, 320, 64, 1.0010);
        expect_mean_imbalance(load, 288, 72, 1.0020);
        expect_mean_imbalance(load, 288, 96, 1.0100);
        eplb_load_destroy(&load);
    }
}

TEST_MAIN(cmocka_unit_test(every_real_workload_is_balanced))
