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
    assert_close(bound_of(loads, 4, 2, 2), 9.0 / 6.0, 1e-15);
}

static void hot_expert_has_at_most_one_replica_on_each_gpu(void **state)
{
    (void)state;
    static const double loads[3] = {90, 1, 1};
    /* Six slots on two GPUs: 3 of them could hold expert 0, but there are only 2 GPUs. */
    assert_close(bound_of(loads, 3, 2, 3), 1.0, 1e-15);
    /* Two spare slots for two hot experts: one keeps a single replica, or both have two. */
    static const double two[4] = {60, 40, 1, 1};
    assert_close(bound_of(two, 4, 3, 2), 102.0 / 102.0, 1e-15);
    assert_close(bound_of(two, 4, 5, 1), 40.0 / (102.0 / 5.0), 1e-15);
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

TEST_MAIN(cmocka_unit_test(equal_loads_are_bounded_by_the_mean),
          cmocka_unit_test(hot_expert_without_spare_slots_is_the_bound),
          cmocka_unit_test(hot_expert_has_at_most_one_replica_on_each_gpu),
          cmocka_unit_test(no_load_has_no_bound), cmocka_unit_test(bad_arguments_are_refused))
