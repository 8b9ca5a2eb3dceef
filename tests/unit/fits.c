/* SPDX-License-Identifier: MIT */
#include "model.h"

#include "model/placement.h"

static eplb_status fits(int32_t gpus, int32_t slots_per_gpu, int32_t experts, eplb_error *error)
{
    eplb_cluster *cluster = make_cluster(gpus, slots_per_gpu, 0);
    eplb_status status = eplb_cluster_check_fits(cluster, experts, error);
    eplb_cluster_destroy(&cluster);
    return status;
}

static void as_many_slots_as_experts_fit(void **state)
{
    (void)state;
    eplb_error error;
    assert_ok(fits(4, 2, 8, &error), &error);
    assert_ok(fits(32, 9, 256, &error), &error);
    assert_ok(fits(1, 6, 6, &error), &error);
}

/* vllm-project/vllm#52435: 256 experts on 3, 12 and 72 GPUs. */
static void too_few_slots_name_the_fewest_redundant_experts(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(fits(3, 85, 256, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "256 experts");
    assert_contains(error.message, "at least 258 slots (2 redundant)");
    assert_status(fits(12, 21, 256, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "(8 redundant)");
    assert_status(fits(72, 3, 256, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "(32 redundant)");
}

static void gpu_with_more_slots_than_experts_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    assert_ok(fits(3, 5, 5, &error), &error);
    assert_status(fits(3, 6, 5, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "6 slots for 5 different experts");
}

static void dead_gpus_hold_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(5, 2, 0);
    eplb_error error;
    assert_ok(eplb_cluster_check_fits(cluster, 9, &error), &error);
    assert_ok(eplb_cluster_set_alive(cluster, 3, 0, &error), &error);
    assert_ok(eplb_cluster_check_fits(cluster, 8, &error), &error);
    assert_status(eplb_cluster_check_fits(cluster, 9, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "at least 12 slots");
    eplb_cluster_destroy(&cluster);
}

static void dead_gpu_may_have_any_number_of_slots(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(3, 2, 0);
    eplb_error error;
    assert_ok(eplb_cluster_set_slots(cluster, 1, 100, &error), &error);
    assert_status(eplb_cluster_check_fits(cluster, 4, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, &error), &error);
    assert_ok(eplb_cluster_check_fits(cluster, 4, &error), &error);
    eplb_cluster_destroy(&cluster);
}

static void cluster_without_a_live_gpu_is_refused(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(2, 3, 0);
    eplb_error error;
    assert_ok(eplb_cluster_set_alive(cluster, 0, 0, &error), &error);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, &error), &error);
    assert_status(eplb_cluster_check_fits(cluster, 1, &error), EPLB_ERROR_INFEASIBLE, &error);
    eplb_cluster_destroy(&cluster);
}

static void unequal_gpus_need_no_more_slots_than_experts(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(3, 2, 0);
    eplb_error error;
    assert_ok(eplb_cluster_set_slots(cluster, 0, 3, &error), &error);
    assert_status(eplb_cluster_check_fits(cluster, 8, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "at least 8 slots (0 redundant)");
    eplb_cluster_destroy(&cluster);
}

TEST_MAIN(cmocka_unit_test(unequal_gpus_need_no_more_slots_than_experts),
          cmocka_unit_test(as_many_slots_as_experts_fit),
          cmocka_unit_test(too_few_slots_name_the_fewest_redundant_experts),
          cmocka_unit_test(gpu_with_more_slots_than_experts_is_refused),
          cmocka_unit_test(dead_gpus_hold_nothing),
          cmocka_unit_test(dead_gpu_may_have_any_number_of_slots),
          cmocka_unit_test(cluster_without_a_live_gpu_is_refused))
