/* SPDX-License-Identifier: MIT */
/* Nine real DeepSeek-V3 workloads, where they lie beside the checkout: what a default plan reaches,
 * for every one of them. */
#include "support.h"

#include <eplb/plan.h>
#include <eplb/source.h>

static const char *const files[] = {
    "decode_in1000out1000.json",  "decode_in2000out100.json", "decode_in500out1500.json",
    "prefill_in1000out1000.json", "prefill_in1024.json",      "prefill_in1800out100.json",
    "prefill_in2000out100.json",  "prefill_in2048.json",      "prefill_in512.json",
};

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
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "data/deepseek_v3/%s", files[i]);
        test_path path = test_shared_or_skip(name);
        const char *paths[] = {path.text};
        eplb_error error;
        eplb_load *load;
        assert_ok(eplb_source_load(&load, NULL, paths, 1, NULL, NULL, &error), &error);
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
