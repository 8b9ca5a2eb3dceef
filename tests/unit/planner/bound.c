/* SPDX-License-Identifier: MIT */
#include "planning.h"

static double bound_of(const double *loads, int32_t experts, int32_t gpus, int32_t slots_per_gpu)
{
    eplb_error error;
    eplb_cluster *cluster = cluster_of(gpus, slots_per_gpu, 0);
    double bound;
    assert_ok(eplb_lower_bound(cluster, loads, experts, &bound, &error), &error);
    eplb_cluster_destroy(&cluster);
    return bound;
}

static void equal_loads_are_bounded_by_the_mean(void **state)
{
    (void)state;
    static const double loads[4] = {5, 5, 5, 5};
    assert_close(bound_of(loads, 4, 2, 2), 1.0, 1e-15);
}

static void hot_expert_without_spare_slots_is_the_bound(void **state)
{
    (void)state;
    static const double loads[4] = {9, 1, 1, 1};
    assert_close(bound_of(loads, 4, 4, 1), 9.0 / 3.0, 1e-15);
}

static void hot_expert_has_at_most_one_replica_on_each_gpu(void **state)
{
    (void)state;
    static const double loads[3] = {90, 1, 1};
    /* Six slots on two GPUs: 3 of them could hold expert 0, but there are only 2 GPUs. */
    assert_close(bound_of(loads, 3, 2, 3), 1.0, 1e-15);
    static const double two[4] = {60, 40, 1, 1};
    assert_close(bound_of(two, 4, 5, 1), 40.0 / (102.0 / 5.0), 1e-15);
}

static void share_in_one_of_two_slots_needs_a_partner(void **state)
{
    (void)state;
    /* 9 beside 1 */
    static const double one[4] = {9, 1, 1, 1};
    assert_close(bound_of(one, 4, 2, 2), 10.0 / 6.0, 1e-5);
    /* 30 beside 1 twice, and 20 beside 20; all other counts are worse. */
    static const double two[4] = {60, 40, 1, 1};
    assert_close(bound_of(two, 4, 3, 2), 40.0 / 34.0, 1e-5);
    /* The mean is 1, and no share needs to be above it; but only two are small. */
    static const double three[6] = {1, 1, 1, 1, 0.1, 0.1};
    assert_close(bound_of(three, 6, 3, 2), 2.0 / 1.4, 1e-5);
}

static void share_in_one_of_three_slots_needs_two_small_partners(void **state)
{
    (void)state;
    /* One 90 is beside 7 and 1: five ones are not enough for three. */
    static const double one[9] = {90, 90, 90, 7, 1, 1, 1, 1, 1};
    assert_close(bound_of(one, 9, 3, 3), 98.0 / (282.0 / 3.0), 1e-5);
}

static void plan_with_three_slots_a_gpu_reports_what_small_partners_prove(void **state)
{
    (void)state;
    static const double loads[9] = {90, 90, 90, 7, 1, 1, 1, 1, 1};
    eplb_load *load = load_of(loads, 1, 9);
    eplb_cluster *cluster = cluster_of(3, 3, 0);
    eplb_plan *plan = plan_of(load, cluster, NULL, NULL);
    eplb_plan_layer layer = layer_of(plan, 0);
    assert_close(layer.imbalance_after, 98.0 / 94.0, 1e-12);
    assert_close(layer.lower_bound, 98.0 / 94.0, 1e-5);
    assert_true(layer.lower_bound <= layer.imbalance_after);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void more_heavy_shares_than_are_told_apart_are_bounded(void **state)
{
    (void)state;
    double loads[400];
    for (int32_t e = 0; e < 400; e++) {
        loads[e] = e < 240 ? 1000.0 + e : 400.0 + 3.0 * (e - 240);
    }
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 3;
    eplb_load *load = load_of(loads, 1, 400);
    eplb_cluster *cluster = cluster_of(250, 2, 0);
    eplb_plan *plan = plan_of(load, cluster, NULL, &options);
    double bound = bound_of(loads, 400, 250, 2);
    assert_true(bound > 1.01);
    assert_true(bound <= layer_of(plan, 0).imbalance_after);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void more_small_shares_than_are_told_apart_are_bounded(void **state)
{
    (void)state;
    double loads[300];
    for (int32_t e = 0; e < 300; e++) {
        loads[e] = e < 60 ? 900.0 + e : e < 210 ? 21.0 + 0.7 * (e - 60) : 300.0 + (e - 210);
    }
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 3;
    eplb_load *load = load_of(loads, 1, 300);
    eplb_cluster *cluster = cluster_of(102, 3, 0);
    eplb_plan *plan = plan_of(load, cluster, NULL, &options);
    double bound = bound_of(loads, 300, 102, 3);
    assert_true(bound > 1.01);
    assert_true(bound <= layer_of(plan, 0).imbalance_after);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void no_load_has_no_bound(void **state)
{
    (void)state;
    static const double loads[4] = {0, 0, 0, 0};
    assert_close(bound_of(loads, 4, 2, 2), 0.0, 0.0);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    static const double bad[2] = {1, -1};
    eplb_error error;
    double bound = 7;
    eplb_cluster *cluster = cluster_of(2, 2, 0);
    assert_status(eplb_lower_bound(cluster, bad, 2, &bound, &error), EPLB_ERROR_DATA, &error);
    assert_status(eplb_lower_bound(cluster, bad, 0, &bound, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_lower_bound(NULL, bad, 2, &bound, &error), EPLB_ERROR_ARGUMENT, &error);
    static const double many[5] = {1, 1, 1, 1, 1};
    assert_status(eplb_lower_bound(cluster, many, 5, &bound, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    assert_close(bound, 7, 0);
    eplb_cluster_destroy(&cluster);
}

static eplb_status bound_pairs(const eplb_hooks *hooks, void *context)
{
    (void)context;
    static const double loads[4] = {9, 1, 1, 1};
    eplb_cluster *cluster = NULL;
    double bound;
    eplb_status status = eplb_cluster_create(&cluster, hooks, 2, 2, 0, NULL);
    if (status == EPLB_OK) {
        status = eplb_lower_bound(cluster, loads, 4, &bound, NULL);
    }
    eplb_cluster_destroy(&cluster);
    return status;
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    (void)state;
    test_each_failing_allocation(bound_pairs, NULL);
}

TEST_MAIN(cmocka_unit_test(equal_loads_are_bounded_by_the_mean),
          cmocka_unit_test(hot_expert_without_spare_slots_is_the_bound),
          cmocka_unit_test(hot_expert_has_at_most_one_replica_on_each_gpu),
          cmocka_unit_test(share_in_one_of_two_slots_needs_a_partner),
          cmocka_unit_test(share_in_one_of_three_slots_needs_two_small_partners),
          cmocka_unit_test(plan_with_three_slots_a_gpu_reports_what_small_partners_prove),
          cmocka_unit_test(more_heavy_shares_than_are_told_apart_are_bounded),
          cmocka_unit_test(more_small_shares_than_are_told_apart_are_bounded),
          cmocka_unit_test(no_load_has_no_bound),
          cmocka_unit_test(every_failing_allocation_is_an_error_without_a_leak),
          cmocka_unit_test(bad_arguments_are_refused))
