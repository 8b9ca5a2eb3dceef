/* SPDX-License-Identifier: MIT */
/* The classical algorithm, against the example that deepseek-ai/EPLB publishes. */
#include "planning.h"

static const double published_loads[2 * 12] = {
    90, 132, 40,  61, 104, 165, 39,  4,   73,  56, 183, 86, /* layer 0 */
    20, 107, 104, 64, 19,  197, 187, 157, 172, 86, 16,  27, /* layer 1 */
};

static eplb_plan_options reference_options(int32_t groups)
{
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.algorithm = EPLB_ALGORITHM_EPLB;
    options.groups = groups;
    return options;
}

static void published_example_is_reproduced(void **state)
{
    (void)state;
    static const int32_t expected[2][16] = {
        {5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1},
        {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1},
    };
    eplb_load *load = load_of(published_loads, 2, 12);
    eplb_cluster *cluster = cluster_of(8, 2, 4);
    eplb_plan_options options = reference_options(4);
    eplb_plan *plan = plan_of(load, cluster, NULL, &options);
    for (int32_t l = 0; l < 2; l++) {
        assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), l), expected[l],
                            sizeof(expected[l]));
    }
    assert_int_equal(info_of(plan).valid, 1);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* vllm-project/vllm#18343: four replicas of the one hot expert on four GPUs of which one gets two.
 */
static void duplicate_on_a_gpu_is_marked_invalid(void **state)
{
    (void)state;
    static const double loads[8] = {1000, 1, 1, 1, 1, 1, 1, 1};
    eplb_load *load = load_of(loads, 1, 8);
    eplb_cluster *cluster = cluster_of(4, 3, 0);
    eplb_plan_options options = reference_options(1);
    eplb_error error = {.status = 77};
    eplb_plan *plan;
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error), &error);
    assert_int_equal(error.status, 77); /* an invalid plan is no error of the call */
    assert_int_equal(info_of(plan).valid, 0);
    assert_true(layer_of(plan, 0).imbalance_after > 1.5);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void expect_refused(int32_t experts, int32_t gpus, int32_t slots_per_gpu,
                           int32_t gpus_per_node, int32_t groups, const char *part)
{
    double loads[64];
    for (int32_t e = 0; e < experts; e++) {
        loads[e] = e;
    }
    eplb_load *load = load_of(loads, 1, experts);
    eplb_cluster *cluster = cluster_of(gpus, slots_per_gpu, gpus_per_node);
    eplb_plan_options options = reference_options(groups);
    eplb_error error;
    eplb_plan *plan;
    assert_status(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error),
                  EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, part);
    assert_null(plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* sgl-project/sglang#6629 */
static void groups_that_do_not_fit_the_nodes_are_refused(void **state)
{
    (void)state;
    expect_refused(16, 6, 4, 2, 8, "8 groups do not fit 3 nodes");
    expect_refused(16, 6, 4, 2, 3, "3 groups do not divide 16 experts");
    expect_refused(16, 5, 4, 2, 3 * 4, "12 groups do not divide 16 experts");
    expect_refused(18, 5, 4, 2, 3, "5 GPUs are not on 3 equal nodes");
}

static void groups_stay_on_one_node(void **state)
{
    (void)state;
    eplb_load *load = load_of(published_loads, 2, 12);
    eplb_cluster *cluster = cluster_of(8, 2, 4);
    eplb_plan_options options = reference_options(4);
    eplb_plan *plan = plan_of(load, cluster, NULL, &options);
    for (int32_t l = 0; l < 2; l++) {
        int32_t node_of_group[4] = {-1, -1, -1, -1};
        for (int32_t s = 0; s < 16; s++) {
            int32_t group = eplb_placement_row(eplb_plan_placement(plan), l)[s] / 3;
            int32_t node = s / 8;
            assert_true(node_of_group[group] == -1 || node_of_group[group] == node);
            node_of_group[group] = node;
        }
    }
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void unequal_gpus_are_not_supported(void **state)
{
    (void)state;
    eplb_load *load = load_of(published_loads, 1, 12);
    eplb_cluster *cluster = cluster_of(8, 2, 4);
    eplb_plan_options options = reference_options(1);
    eplb_error error;
    eplb_plan *plan;
    assert_ok(eplb_cluster_set_alive(cluster, 3, 0, &error), &error);
    assert_status(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error),
                  EPLB_ERROR_UNSUPPORTED, &error);
    assert_ok(eplb_cluster_set_alive(cluster, 3, 1, &error), &error);
    assert_ok(eplb_cluster_set_slots(cluster, 3, 5, &error), &error);
    assert_status(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error),
                  EPLB_ERROR_UNSUPPORTED, &error);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

TEST_MAIN(cmocka_unit_test(published_example_is_reproduced),
          cmocka_unit_test(duplicate_on_a_gpu_is_marked_invalid),
          cmocka_unit_test(groups_that_do_not_fit_the_nodes_are_refused),
          cmocka_unit_test(groups_stay_on_one_node),
          cmocka_unit_test(unequal_gpus_are_not_supported))
