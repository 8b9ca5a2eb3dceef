/* SPDX-License-Identifier: MIT */
/* The search with groups of experts kept on nodes. */
#include "planning.h"

/* Four groups of three experts on two nodes of two GPUs with four slots each. */
enum { EXPERTS = 12, GROUPS = 4, GPUS = 4, SLOTS_PER_GPU = 4, GPUS_PER_NODE = 2, SLOTS = 16 };

static const double loads[EXPERTS] = {60, 20, 10, 8, 7, 5, 30, 30, 20, 10, 10, 10};

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_plan_options options;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    f->load = load_of(loads, 1, EXPERTS);
    f->cluster = cluster_of(GPUS, SLOTS_PER_GPU, GPUS_PER_NODE);
    eplb_plan_options_init(&f->options);
    f->options.groups = GROUPS;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    eplb_cluster_destroy(&f->cluster);
    free(f);
    return 0;
}

static void expect_failure(const fixture *f, eplb_status expected, const char *message)
{
    eplb_error error;
    eplb_plan *plan;
    assert_status(eplb_plan_create(&plan, NULL, f->load, f->cluster, NULL, &f->options, &error),
                  expected, &error);
    assert_contains(error.message, message);
    assert_null(plan);
}

/* The node of a group, which must have one. */
static int32_t node_of(const eplb_placement *placement, int32_t group)
{
    int32_t node = -1;
    for (int32_t s = 0; s < SLOTS; s++) {
        if (eplb_placement_row(placement, 0)[s] / (EXPERTS / GROUPS) == group) {
            int32_t here = s / (SLOTS_PER_GPU * GPUS_PER_NODE);
            assert_true(node == -1 || node == here);
            node = here;
        }
    }
    return node;
}

/* Sums of groups 90, 20, 80, 30 of 220: 90 + 20 against 80 + 30 is even. */
static void groups_are_shared_out_evenly_and_stay_whole(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_int_equal(node_of(placement, 0), node_of(placement, 1));
    assert_int_equal(node_of(placement, 2), node_of(placement, 3));
    assert_true(node_of(placement, 0) != node_of(placement, 2));
    assert_int_equal(info_of(plan).valid, 1);
    assert_true(layer_of(plan, 0).imbalance_after <= 1.1);
    eplb_plan_destroy(&plan);
}

static void busiest_node_is_the_bound(void **state)
{
    fixture *f = *state;
    double uneven[EXPERTS] = {0};
    uneven[0] = uneven[1] = uneven[2] = 30.0; /* of a single group, which is on a single node */
    eplb_load *load = load_of(uneven, 1, EXPERTS);
    eplb_plan *plan = plan_of(load, f->cluster, NULL, &f->options);
    assert_true(fabs(layer_of(plan, 0).lower_bound - 2.0) <= 1e-12);
    assert_true(fabs(layer_of(plan, 0).imbalance_after - 2.0) <= 1e-12);
    assert_int_equal(layer_of(plan, 0).stop, EPLB_STOP_OPTIMAL);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* Even nodes, with three experts of 30 and three of 10 on two GPUs each: 70 on one is the best. */
static void bound_is_no_more_than_the_nodes_say(void **state)
{
    fixture *f = *state;
    const double even[EXPERTS] = {30, 30, 30, 10, 10, 10, 30, 30, 30, 10, 10, 10};
    eplb_load *load = load_of(even, 1, EXPERTS);
    eplb_cluster *cluster = cluster_of(GPUS, 3, GPUS_PER_NODE);
    eplb_plan *plan = plan_of(load, cluster, NULL, &f->options);
    assert_true(fabs(layer_of(plan, 0).lower_bound - 1.0) <= 1e-12);
    assert_true(fabs(layer_of(plan, 0).imbalance_after - 70.0 / 60.0) <= 1e-12);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* A node with one spare slot has two replicas of an expert at most, though its GPUs are four and
 * the other node has a spare slot too. */
static void spare_slots_of_a_node_are_the_bound(void **state)
{
    fixture *f = *state;
    const double hot[14] = {90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10};
    eplb_load *load = load_of(hot, 1, 14);
    eplb_cluster *cluster = cluster_of(8, 2, 4);
    f->options.groups = 2;
    eplb_plan *plan = plan_of(load, cluster, NULL, &f->options);
    assert_true(fabs(layer_of(plan, 0).lower_bound - 45.0 / 12.5) <= 1e-12);
    assert_true(fabs(layer_of(plan, 0).imbalance_after - 45.0 / 12.5) <= 1e-12);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void groups_bind_nothing_on_one_node(void **state)
{
    fixture *f = *state;
    eplb_cluster *one = cluster_of(GPUS, SLOTS_PER_GPU, 0);
    eplb_plan *plan = plan_of(f->load, one, NULL, &f->options);
    f->options.groups = 1;
    eplb_plan *free_plan = plan_of(f->load, one, NULL, &f->options);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 0),
                        eplb_placement_row(eplb_plan_placement(free_plan), 0),
                        SLOTS * sizeof(int32_t));
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&free_plan);
    eplb_cluster_destroy(&one);
}

static void layer_without_load_keeps_groups_on_nodes(void **state)
{
    fixture *f = *state;
    const double zeros[EXPERTS] = {0};
    eplb_load *load = load_of(zeros, 1, EXPERTS);
    eplb_plan *plan = plan_of(load, f->cluster, NULL, &f->options);
    for (int32_t group = 0; group < GROUPS; group++) {
        assert_true(node_of(eplb_plan_placement(plan), group) >= 0);
    }
    assert_int_equal(layer_of(plan, 0).scored, 0);
    assert_int_equal(info_of(plan).valid, 1);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void current_placement_that_breaks_groups_is_not_kept(void **state)
{
    fixture *f = *state;
    f->options.groups = 1;
    eplb_plan *broken = plan_of(f->load, f->cluster, NULL, &f->options);
    f->options.groups = GROUPS;
    eplb_plan *plan = plan_of(f->load, f->cluster, eplb_plan_placement(broken), &f->options);
    for (int32_t group = 0; group < GROUPS; group++) {
        assert_true(node_of(eplb_plan_placement(plan), group) >= 0);
    }
    assert_true(layer_of(plan, 0).copies > 0);
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&broken);
}

static void own_result_is_kept(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    eplb_plan *again = plan_of(f->load, f->cluster, eplb_plan_placement(plan), &f->options);
    assert_int_equal(info_of(again).copies, 0);
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
}

static void rules_and_prices_do_not_go_with_groups(void **state)
{
    fixture *f = *state;
    const eplb_plan_options good = f->options;
    const eplb_pin pin = {.layer = -1, .expert = 0, .gpu = 0};
    f->options.min_replicas = 2;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "plan with groups: it knows no limits");
    f->options = good;
    f->options.max_replicas = 3;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "no limits");
    f->options = good;
    f->options.spread_nodes = 1;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "nodes");
    f->options = good;
    f->options.pin_count = 1;
    f->options.pins = &pin;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "pins");
    f->options = good;
    f->options.node_cost = 0.0;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "price of traffic");
}

/* sgl-project/sglang#6629 */
static void groups_that_do_not_fit_are_refused(void **state)
{
    fixture *f = *state;
    f->options.groups = 5;
    expect_failure(f, EPLB_ERROR_INFEASIBLE, "5 groups do not divide 12 experts");
    f->options.groups = 3;
    expect_failure(f, EPLB_ERROR_INFEASIBLE, "3 groups do not fit 2 nodes");
    f->options.groups = GROUPS;
    assert_ok(eplb_cluster_set_node(f->cluster, 1, 1, NULL), NULL);
    expect_failure(f, EPLB_ERROR_INFEASIBLE, "4 GPUs are not on 2 equal nodes in order");
    assert_ok(eplb_cluster_set_node(f->cluster, 1, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(f->cluster, 3, 0, NULL), NULL);
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "all GPUs must be alive");
}

/* A node's six experts cannot fill seven slots of a GPU. */
static void slots_beyond_a_nodes_experts_are_refused(void **state)
{
    fixture *f = *state;
    eplb_cluster_destroy(&f->cluster);
    f->cluster = cluster_of(GPUS, 7, GPUS_PER_NODE);
    expect_failure(f, EPLB_ERROR_INFEASIBLE, "4 groups: within each of 2 nodes: ");
}

/* Groups have 90, 20, 80, 30 in one scenario and 15, 100, 15, 85 in the other. With 0 and 1 on a
 * node the busiest ones have 110 of 110 and 115 of 107.5; with 0 and 2 and with 0 and 3 more. */
static void groups_are_shared_out_for_all_scenarios(void **state)
{
    fixture *f = *state;
    const double other[EXPERTS] = {5, 5, 5, 90, 5, 5, 5, 5, 5, 50, 30, 5};
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, 2, 1, EXPERTS, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 0, 0, loads, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 1, 0, other, NULL), NULL);
    eplb_plan *plan = plan_of(load, f->cluster, NULL, &f->options);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_int_equal(node_of(placement, 0), node_of(placement, 1));
    assert_int_equal(node_of(placement, 2), node_of(placement, 3));
    assert_true(layer_of(plan, 0).lower_bound >= (1.0 + 115.0 / 107.5) / 2.0 - 1e-12);
    assert_true(layer_of(plan, 0).imbalance_after <= 1.2);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static eplb_status plan_with_groups(const eplb_hooks *hooks, void *context)
{
    const fixture *f = context;
    eplb_plan *plan;
    eplb_status status =
        eplb_plan_create(&plan, hooks, f->load, f->cluster, NULL, &f->options, NULL);
    eplb_plan_destroy(&plan);
    return status;
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    fixture *f = *state;
    test_each_failing_allocation(plan_with_groups, f);
    eplb_load_destroy(&f->load);
    assert_ok(eplb_load_create(&f->load, NULL, 3, 1, EXPERTS, NULL), NULL);
    for (int32_t k = 0; k < 3; k++) {
        assert_ok(eplb_load_set_row(f->load, k, 0, loads, NULL), NULL);
    }
    f->options.effort = 1;
    test_each_failing_allocation(plan_with_groups, f);
}

#define PLANNED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(PLANNED(groups_are_shared_out_evenly_and_stay_whole), PLANNED(busiest_node_is_the_bound),
          PLANNED(bound_is_no_more_than_the_nodes_say),
          PLANNED(spare_slots_of_a_node_are_the_bound), PLANNED(groups_bind_nothing_on_one_node),
          PLANNED(layer_without_load_keeps_groups_on_nodes),
          PLANNED(current_placement_that_breaks_groups_is_not_kept), PLANNED(own_result_is_kept),
          PLANNED(rules_and_prices_do_not_go_with_groups),
          PLANNED(groups_that_do_not_fit_are_refused),
          PLANNED(slots_beyond_a_nodes_experts_are_refused),
          PLANNED(groups_are_shared_out_for_all_scenarios),
          PLANNED(every_failing_allocation_is_an_error_without_a_leak))
