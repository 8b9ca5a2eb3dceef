/* SPDX-License-Identifier: MIT */
/* What weights are worth on real workloads. */
#include "deepseek_v3.h"

#include <eplb/plan.h>
#include <eplb/shares.h>

enum { EXPERTS = 256, GPUS = 32, SLOTS = 288 };

static eplb_plan *plan_of(const eplb_load *load)
{
    eplb_error error;
    eplb_cluster *cluster;
    eplb_plan *plan;
    assert_ok(eplb_cluster_create(&cluster, NULL, GPUS, SLOTS / GPUS, 0, &error), &error);
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, NULL, &error), &error);
    eplb_cluster_destroy(&cluster);
    return plan;
}

/* Adds the imbalances of a placement under another load, split evenly and by weights. */
static void add_imbalances(const eplb_placement *placement, const eplb_load *load, double *even,
                           double *weighted)
{
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        double weights[SLOTS];
        double imbalance;
        const double *row = eplb_load_row(load, 0, l);
        assert_ok(eplb_placement_imbalance(placement, l, row, &imbalance, NULL), NULL);
        *even += imbalance;
        assert_ok(eplb_shares_best(placement, l, row, weights, NULL, &imbalance, NULL), NULL);
        *weighted += imbalance;
    }
}

static void weights_mend_a_third_of_what_other_traffic_spoils(void **state)
{
    (void)state;
    double even = 0.0;
    double weighted = 0.0;
    int32_t layers = 0;
    for (int32_t planned = 0; planned < DEEPSEEK_V3_FILES; planned++) {
        eplb_load *load = deepseek_v3_or_skip(planned, 1);
        eplb_plan *plan = plan_of(load);
        for (int32_t file = 0; file < DEEPSEEK_V3_FILES; file++) {
            eplb_load *other = deepseek_v3_or_skip(file, 1);
            if (file != planned) {
                add_imbalances(eplb_plan_placement(plan), other, &even, &weighted);
                layers += eplb_load_layers(other);
            }
            eplb_load_destroy(&other);
        }
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
    }
    even /= layers;
    weighted /= layers;
    print_message("another workload's plan: %.4f split evenly, %.4f by weights\n", even, weighted);
    assert_true(weighted - 1.0 < (even - 1.0) * 0.67);
}

static void one_spare_slot_a_gpu_balances_every_real_layer(void **state)
{
    (void)state;
    double even = 0.0;
    int32_t layers = 0;
    for (int32_t file = 0; file < DEEPSEEK_V3_FILES; file++) {
        eplb_load *load = deepseek_v3_or_skip(file, 1);
        eplb_plan *plan = plan_of(load);
        eplb_placement *placement;
        assert_ok(eplb_placement_clone(&placement, NULL, eplb_plan_placement(plan), NULL), NULL);
        for (int32_t l = 0; l < eplb_load_layers(load); l++, layers++) {
            double weights[SLOTS];
            double imbalance;
            const double *row = eplb_load_row(load, 0, l);
            assert_ok(eplb_shares_place(placement, l, row, NULL, NULL), NULL);
            assert_ok(eplb_shares_best(placement, l, row, weights, NULL, &imbalance, NULL), NULL);
            assert_close(imbalance, 1.0, 1e-9);
            assert_ok(eplb_placement_imbalance(placement, l, row, &imbalance, NULL), NULL);
            even += imbalance;
        }
        assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
        eplb_placement_destroy(&placement);
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
    }
    print_message("placements for weights, split evenly: %.4f\n", even / layers);
}

TEST_MAIN(cmocka_unit_test(weights_mend_a_third_of_what_other_traffic_spoils),
          cmocka_unit_test(one_spare_slot_a_gpu_balances_every_real_layer))
