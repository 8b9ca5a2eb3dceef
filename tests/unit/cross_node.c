/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { EXPERTS = 4, SLOTS = 8 };

/* Four GPUs with two slots each: expert 0 is on both nodes of two GPUs, the others on one. */
static const int32_t row[SLOTS] = {0, 1, 2, 1, 0, 3, 2, 3};

static eplb_placement *placement_on(eplb_cluster *cluster)
{
    eplb_placement *placement = make_placement(cluster, 1, EXPERTS);
    set_row(placement, 0, row);
    return placement;
}

static double share_of(const eplb_placement *placement, const double *loads)
{
    double share = -7.0;
    eplb_error error;
    assert_ok(eplb_placement_cross_node(placement, 0, loads, &share, &error), &error);
    return share;
}

static void assert_share(const eplb_placement *placement, const double *loads, double expected)
{
    assert_true(fabs(share_of(placement, loads) - expected) <= 1e-12);
}

static void token_stays_where_its_expert_has_a_replica(void **state)
{
    (void)state;
    eplb_placement *placement = placement_on(make_cluster(4, 2, 2));
    assert_share(placement, (double[]){5, 0, 0, 0}, 0.0);
    assert_share(placement, (double[]){0, 5, 0, 0}, 0.5);
    assert_share(placement, (double[]){0, 0, 7, 0}, 0.0); /* GPU 1 and GPU 3 */
    assert_share(placement, (double[]){6, 2, 0, 4}, 0.25);
    eplb_placement_destroy(&placement);
}

static void one_node_keeps_all_tokens(void **state)
{
    (void)state;
    eplb_placement *placement = placement_on(make_cluster(4, 2, 0));
    assert_share(placement, (double[]){1, 2, 3, 4}, 0.0);
    eplb_placement_destroy(&placement);
}

static void larger_node_has_more_tokens(void **state)
{
    (void)state;
    eplb_placement *placement = placement_on(make_cluster(4, 2, 3));
    assert_share(placement, (double[]){0, 8, 0, 0}, 0.25); /* on the three GPUs of node 0 */
    assert_share(placement, (double[]){8, 0, 0, 0}, 0.25);
    assert_share(placement, (double[]){0, 0, 0, 8}, 0.0);
    eplb_placement_destroy(&placement);
}

static void dead_gpus_send_and_hold_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 2, 2);
    assert_ok(eplb_cluster_set_alive(cluster, 0, 0, NULL), NULL);
    eplb_placement *placement = placement_on(cluster);
    /* Expert 0 lives on GPU 2 only, so that GPU 1 of three has to send its tokens away. */
    assert_share(placement, (double[]){9, 0, 0, 0}, 1.0 / 3.0);
    assert_share(placement, (double[]){0, 9, 0, 0}, 2.0 / 3.0);
    eplb_placement_destroy(&placement);
}

static void nodes_need_not_be_numbered_in_order(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 2, 0);
    static const int32_t nodes[4] = {60000, 5, 5, 60000};
    for (int32_t g = 0; g < 4; g++) {
        assert_ok(eplb_cluster_set_node(cluster, g, nodes[g], NULL), NULL);
    }
    eplb_placement *placement = placement_on(cluster);
    assert_share(placement, (double[]){4, 0, 0, 0}, 0.0);
    assert_share(placement, (double[]){0, 4, 0, 0}, 0.0);
    assert_share(placement, (double[]){0, 0, 0, 4}, 0.0);
    set_row(placement, 0, (int32_t[]){0, 2, 1, 3, 1, 3, 0, 2});
    assert_share(placement, (double[]){1, 0, 0, 0}, 0.5);
    assert_share(placement, (double[]){0, 1, 0, 0}, 0.5);
    eplb_placement_destroy(&placement);
}

static void no_load_leaves_no_node(void **state)
{
    (void)state;
    eplb_placement *placement = placement_on(make_cluster(4, 2, 2));
    assert_true(share_of(placement, (double[]){0, 0, 0, 0}) == 0.0);
    eplb_placement_destroy(&placement);
}

static void expert_that_only_dead_gpus_hold_is_refused(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 2, 2);
    assert_ok(eplb_cluster_set_alive(cluster, 2, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(cluster, 3, 0, NULL), NULL);
    eplb_placement *placement = placement_on(cluster);
    double share = -7.0;
    eplb_error error;
    assert_status(eplb_placement_cross_node(placement, 0, (double[]){1, 1, 1, 2.5}, &share, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 0: expert 3 has 2.5 tokens and no replica on a live GPU");
    assert_true(share == -7.0);
    assert_share(placement, (double[]){1, 1, 1, 0}, 0.0);
    eplb_placement_destroy(&placement);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = placement_on(make_cluster(4, 2, 2));
    const double loads[EXPERTS] = {1, 1, 1, 1};
    double share;
    eplb_error error;
    assert_status(eplb_placement_cross_node(NULL, 0, loads, &share, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_cross_node(placement, 1, loads, &share, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "no layer 1");
    assert_status(eplb_placement_cross_node(placement, 0, NULL, &share, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_cross_node(placement, 0, loads, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_cross_node(placement, 0, (double[]){1, -2, 0, 0}, &share, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "expert 1");
    eplb_placement_destroy(&placement);
}

static eplb_status measure(const eplb_hooks *hooks, void *context)
{
    eplb_placement *placement;
    double share;
    eplb_status status = eplb_placement_clone(&placement, hooks, context, NULL);
    if (status == EPLB_OK) {
        status = eplb_placement_cross_node(placement, 0, (double[]){1, 2, 3, 4}, &share, NULL);
    }
    eplb_placement_destroy(&placement);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_placement *placement = placement_on(make_cluster(4, 2, 2));
    test_each_failing_allocation(measure, placement);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(cmocka_unit_test(token_stays_where_its_expert_has_a_replica),
          cmocka_unit_test(one_node_keeps_all_tokens),
          cmocka_unit_test(larger_node_has_more_tokens),
          cmocka_unit_test(dead_gpus_send_and_hold_nothing),
          cmocka_unit_test(nodes_need_not_be_numbered_in_order),
          cmocka_unit_test(no_load_leaves_no_node),
          cmocka_unit_test(expert_that_only_dead_gpus_hold_is_refused),
          cmocka_unit_test(wrong_arguments_are_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing))
