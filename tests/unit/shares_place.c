/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <eplb/shares.h>

enum { EXPERTS = 8, GPUS = 4, SLOTS = 12 };

static void place(eplb_placement *placement, const double *loads, double *weights)
{
    eplb_error error;
    assert_ok(eplb_shares_place(placement, 0, loads, weights, &error), &error);
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
}

/* 8 experts on 4 GPUs with 3 slots each are as many as 4 x (3 - 1). */
static void one_spare_slot_a_gpu_balances_any_load(void **state)
{
    (void)state;
    static const double loads[][EXPERTS] = {{17, 11, 8, 5, 3, 2, 1, 1}, {1, 0, 0, 0, 0, 0, 0, 0},
                                            {3, 3, 3, 3, 3, 3, 3, 3},   {0, 0, 0, 5, 5, 5, 5, 5},
                                            {1e-9, 1, 1e9, 1, 1, 1, 1}, {1e308, 1e-308, 7e307}};
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        eplb_placement *placement = make_placement(make_cluster(GPUS, 3, 0), 1, EXPERTS);
        double weights[SLOTS];
        double again[SLOTS];
        double imbalance;
        place(placement, loads[i], weights);
        assert_ok(eplb_shares_best(placement, 0, loads[i], again, NULL, &imbalance, NULL), NULL);
        assert_close(imbalance, 1.0, 1e-12);
        assert_memory_equal(weights, again, sizeof(weights));
        eplb_placement_destroy(&placement);
    }
}

static void expert_that_holds_everything_is_on_every_gpu(void **state)
{
    (void)state;
    static const double loads[EXPERTS] = {0, 0, 0, 0, 0, 8, 0, 0};
    eplb_placement *placement = make_placement(make_cluster(GPUS, 3, 0), 1, EXPERTS);
    double weights[SLOTS];
    place(placement, loads, weights);
    int32_t found = 0;
    for (int32_t s = 0; s < SLOTS; s++) {
        if (eplb_placement_row(placement, 0)[s] == 5) {
            found++;
            assert_close(weights[s], 0.25, 1e-12);
        }
    }
    assert_int_equal(found, GPUS);
    eplb_placement_destroy(&placement);
}

static void layer_without_load_is_spread_evenly(void **state)
{
    (void)state;
    static const double zeros[EXPERTS] = {0};
    eplb_placement *placement = make_placement(make_cluster(GPUS, 3, 0), 1, EXPERTS);
    eplb_placement *spread = make_placement(make_cluster(GPUS, 3, 0), 1, EXPERTS);
    assert_ok(eplb_placement_spread(spread, 0, NULL), NULL);
    place(placement, zeros, NULL);
    assert_memory_equal(eplb_placement_row(placement, 0), eplb_placement_row(spread, 0),
                        SLOTS * sizeof(int32_t));
    eplb_placement_destroy(&placement);
    eplb_placement_destroy(&spread);
}

static void dead_gpus_stay_empty(void **state)
{
    (void)state;
    static const double loads[6] = {9, 4, 4, 2, 1, 1};
    eplb_cluster *cluster = make_cluster(GPUS, 3, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 7, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, 6);
    double weights[16];
    double imbalance;
    place(placement, loads, weights);
    assert_ok(eplb_shares_best(placement, 0, loads, weights, NULL, &imbalance, NULL), NULL);
    assert_close(imbalance, 1.0, 1e-12);
    eplb_placement_destroy(&placement);
}

/* The row must stay what it was. */
static void refuse(eplb_cluster *cluster, int32_t experts, const char *message)
{
    double loads[32] = {1, 1};
    eplb_placement *placement = make_placement(cluster, 1, experts);
    eplb_error error;
    assert_status(eplb_shares_place(placement, 0, loads, NULL, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    assert_string_equal(error.message, message);
    assert_int_equal(eplb_placement_row(placement, 0)[0], -1);
    eplb_placement_destroy(&placement);
}

static void too_few_slots_are_refused_with_the_number_that_is_enough(void **state)
{
    (void)state;
    refuse(make_cluster(4, 3, 0), 9,
           "12 slots on 4 live GPUs: weights balance any load of at most 8 experts perfectly, not "
           "of 9: 16 slots (7 redundant) are enough");
    refuse(make_cluster(4, 1, 0), 4,
           "4 slots on 4 live GPUs: weights balance any load of at most 0 experts perfectly, not "
           "of 4: 8 slots (4 redundant) are enough");
}

static void gpus_that_differ_are_refused(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 3, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 2, 4, NULL), NULL);
    refuse(
        cluster, 8,
        "layer 0: weights balance any load perfectly only where the 4 live GPUs have equally many "
        "slots: GPU 0 has 3, GPU 2 has 4");
}

/* Three of four slots are open on each GPU, then all four on the last one. */
static void closed_slots_stay_empty(void **state)
{
    (void)state;
    static const int32_t open[GPUS] = {3, 3, 3, 3};
    static const int32_t uneven[GPUS] = {3, 3, 3, 4};
    static const double loads[EXPERTS] = {17, 11, 8, 5, 3, 2, 1, 1};
    double weights[4 * GPUS];
    double imbalance;
    eplb_error error;
    eplb_placement *placement = make_placement(make_cluster(GPUS, 4, 0), 1, EXPERTS);
    assert_ok(eplb_placement_set_layer_slots(placement, 0, open, &error), &error);
    place(placement, loads, weights);
    assert_ok(eplb_shares_best(placement, 0, loads, weights, NULL, &imbalance, NULL), NULL);
    assert_close(imbalance, 1.0, 1e-12);
    assert_ok(eplb_placement_set_layer_slots(placement, 0, uneven, &error), &error);
    assert_status(eplb_shares_place(placement, 0, loads, weights, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    assert_contains(error.message, "GPU 0 has 3, GPU 3 has 4");
    eplb_placement_destroy(&placement);
}

static void more_slots_a_gpu_than_experts_are_refused(void **state)
{
    (void)state;
    refuse(make_cluster(2, 4, 0), 3,
           "GPU 0 has 4 slots for 3 different experts: at most 3 slots a GPU");
}

TEST_MAIN(cmocka_unit_test(one_spare_slot_a_gpu_balances_any_load),
          cmocka_unit_test(expert_that_holds_everything_is_on_every_gpu),
          cmocka_unit_test(layer_without_load_is_spread_evenly),
          cmocka_unit_test(dead_gpus_stay_empty),
          cmocka_unit_test(too_few_slots_are_refused_with_the_number_that_is_enough),
          cmocka_unit_test(gpus_that_differ_are_refused), cmocka_unit_test(closed_slots_stay_empty),
          cmocka_unit_test(more_slots_a_gpu_than_experts_are_refused))
