/* SPDX-License-Identifier: MIT */
/* Rules of plans beyond validity: limits of replicas, pins, nodes. */
#include "planning.h"

enum { LAYERS = 2, EXPERTS = 6, GPUS = 4, SLOTS = 12, NODES = 2 };

static const double loads[LAYERS][EXPERTS] = {{90, 5, 4, 3, 2, 1}, {0, 0, 0, 0, 0, 0}};

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_plan_options options;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    f->load = load_of(loads[0], LAYERS, EXPERTS);
    f->cluster = cluster_of(GPUS, SLOTS / GPUS, GPUS / NODES);
    eplb_plan_options_init(&f->options);
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

static bool holds(const eplb_plan *plan, int32_t layer, int32_t gpu, int32_t expert)
{
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), layer);
    for (int32_t s = gpu * SLOTS / GPUS; s < (gpu + 1) * SLOTS / GPUS; s++) {
        if (row[s] == expert) {
            return true;
        }
    }
    return false;
}

static int32_t replicas(const eplb_plan *plan, int32_t layer, int32_t expert)
{
    int32_t count = 0;
    for (int32_t g = 0; g < GPUS; g++) {
        count += holds(plan, layer, g, expert) ? 1 : 0;
    }
    return count;
}

static void expect_failure(fixture *f, eplb_status expected, const char *message)
{
    eplb_error error;
    eplb_plan *plan;
    assert_status(eplb_plan_create(&plan, NULL, f->load, f->cluster, NULL, &f->options, &error),
                  expected, &error);
    assert_contains(error.message, message);
    assert_null(plan);
}

static void without_rules_the_hot_expert_is_everywhere(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_int_equal(replicas(plan, 0, 0), GPUS);
    eplb_plan_destroy(&plan);
}

static void fewest_replicas_are_kept_in_every_layer(void **state)
{
    fixture *f = *state;
    f->options.min_replicas = 2;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t e = 0; e < EXPERTS; e++) {
            assert_int_equal(replicas(plan, l, e), 2);
        }
    }
    eplb_plan_destroy(&plan);
    f->options.min_replicas = 3;
    expect_failure(f, EPLB_ERROR_INFEASIBLE,
                   "3 replicas of each of 6 experts need 18 slots, there are 12");
    f->options.min_replicas = 5;
    expect_failure(f, EPLB_ERROR_INFEASIBLE,
                   "at least 5 replicas of each expert, but at most 4 (there are 4 live GPUs)");
    f->options.min_replicas = 0;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "min_replicas 0");
}

static void most_replicas_are_kept(void **state)
{
    fixture *f = *state;
    f->options.max_replicas = 3;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_int_equal(replicas(plan, 0, 0), 3);
    eplb_plan_destroy(&plan);
    f->options.max_replicas = 1;
    expect_failure(f, EPLB_ERROR_INFEASIBLE,
                   "at most 1 replicas of each of 6 experts leave 6 of 12 slots empty");
    f->options.max_replicas = 0;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "max_replicas 0");
}

static void pinned_replicas_are_there(void **state)
{
    fixture *f = *state;
    static const eplb_pin pins[] = {{.layer = 0, .expert = 5, .gpu = 2},
                                    {.layer = 1, .expert = 5, .gpu = 0},
                                    {.layer = -1, .expert = 4, .gpu = -1}};
    f->options.pins = pins;
    f->options.pin_count = 3;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_true(holds(plan, 0, 2, 5));
    assert_true(holds(plan, 1, 0, 5));
    assert_int_equal(replicas(plan, 0, 4), GPUS);
    assert_int_equal(replicas(plan, 1, 4), GPUS);
    assert_int_equal(info_of(plan).valid, 1);
    eplb_plan_destroy(&plan);
}

static void pins_that_do_not_fit_are_refused(void **state)
{
    fixture *f = *state;
    static const eplb_pin all[] = {{.layer = 1, .expert = 0, .gpu = -1},
                                   {.layer = 1, .expert = 1, .gpu = -1},
                                   {.layer = 1, .expert = 2, .gpu = -1}};
    f->options.pins = all;
    f->options.pin_count = 3;
    expect_failure(f, EPLB_ERROR_INFEASIBLE,
                   "layer 1: no way was found to keep all pins and limits of replicas");
    static const eplb_pin unknown[] = {{.layer = 0, .expert = EXPERTS, .gpu = 0}};
    f->options.pins = unknown;
    f->options.pin_count = 1;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "pin 0: no layer 0, expert 6 or GPU 0");
    static const eplb_pin dead[] = {{.layer = 0, .expert = 1, .gpu = 3}};
    f->options.pins = dead;
    assert_ok(eplb_cluster_set_alive(f->cluster, 3, 0, NULL), NULL);
    expect_failure(f, EPLB_ERROR_INFEASIBLE, "expert 1 is pinned to GPU 3, which is dead");
    f->options.pins = NULL;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "pins");
    f->options.pin_count = -1;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "number of pins -1");
}

static void pins_of_a_layer_that_is_not_there_are_refused(void **state)
{
    fixture *f = *state;
    static const eplb_pin pin = {.layer = LAYERS, .expert = 0, .gpu = 0};
    f->options.pins = &pin;
    f->options.pin_count = 1;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "pin 0: no layer 2, expert 0 or GPU 0");
}

/* Nearly full GPUs of unequal slots: the lightest one is soon the wrong one. */
static void any_replica_can_be_pinned_where_gpus_have_unequal_slots(void **state)
{
    fixture *f = *state;
    static const int32_t slots[GPUS] = {6, 6, 4, 4};
    for (int32_t g = 0; g < GPUS; g++) {
        assert_ok(eplb_cluster_set_slots(f->cluster, g, slots[g], NULL), NULL);
    }
    for (int32_t i = 0; i < EXPERTS * GPUS; i++) {
        const eplb_pin pin = {.layer = i % LAYERS, .expert = i / GPUS, .gpu = i % GPUS};
        f->options.pins = &pin;
        f->options.pin_count = 1;
        eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
        assert_int_equal(info_of(plan).valid, 1);
        const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), pin.layer);
        int32_t found = 0;
        for (int32_t s = 0; s < slots[pin.gpu]; s++) {
            int32_t slot = eplb_cluster_first_slot(f->cluster, pin.gpu) + s;
            found += row[slot] == pin.expert ? 1 : 0;
        }
        assert_int_equal(found, 1);
        eplb_plan_destroy(&plan);
    }
}

static void more_pins_than_the_most_replicas_are_refused(void **state)
{
    fixture *f = *state;
    static const eplb_pin everywhere = {.layer = 0, .expert = 3, .gpu = -1};
    f->options.pins = &everywhere;
    f->options.pin_count = 1;
    f->options.max_replicas = GPUS - 1;
    expect_failure(f, EPLB_ERROR_INFEASIBLE,
                   "layer 0: no way was found to keep all pins and limits of replicas");
}

/* Node 1 has room for four of six experts: two must be on node 0 twice. */
static void a_current_placement_that_cannot_be_spread_further_is_kept(void **state)
{
    fixture *f = *state;
    static const double alike[] = {1, 1, 1, 1, 1, 1};
    static const int32_t row[] = {2, 3, 4, 5, 4, 5, 0, 1, 0, 1, 2, 3};
    eplb_load *load = load_of(alike, 1, EXPERTS);
    eplb_cluster *cluster = cluster_of(3, 4, 2);
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, cluster, 1, EXPERTS, NULL), NULL);
    assert_ok(eplb_placement_set_row(current, 0, row, NULL), NULL);
    f->options.spread_nodes = 1;
    eplb_plan *plan = plan_of(load, cluster, current, &f->options);
    assert_int_equal(info_of(plan).copies, 0);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void replicas_go_to_different_nodes_first(void **state)
{
    fixture *f = *state;
    f->options.spread_nodes = 1;
    f->options.max_replicas = 3;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t e = 0; e < EXPERTS; e++) {
            int32_t first = (holds(plan, l, 0, e) ? 1 : 0) + (holds(plan, l, 1, e) ? 1 : 0);
            int32_t second = replicas(plan, l, e) - first;
            assert_true(first - second <= 1 && second - first <= 1);
        }
    }
    eplb_plan_destroy(&plan);
    f->options.spread_nodes = 2;
    expect_failure(f, EPLB_ERROR_ARGUMENT, "spread_nodes 2");
}

static void current_placement_is_kept_only_if_it_keeps_the_rules(void **state)
{
    fixture *f = *state;
    eplb_plan *free_plan = plan_of(f->load, f->cluster, NULL, &f->options);
    f->options.max_replicas = 3;
    eplb_plan *plan = plan_of(f->load, f->cluster, eplb_plan_placement(free_plan), &f->options);
    assert_int_equal(replicas(plan, 0, 0), 3);
    eplb_plan *again = plan_of(f->load, f->cluster, eplb_plan_placement(plan), &f->options);
    assert_int_equal(info_of(again).copies, 0);
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&free_plan);
}

static void classical_algorithm_knows_no_rules(void **state)
{
    fixture *f = *state;
    f->options.algorithm = EPLB_ALGORITHM_EPLB;
    f->options.min_replicas = 2;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "it knows no limits of replicas, pins or nodes");
}

static eplb_status plan_with_rules(const eplb_hooks *hooks, void *context)
{
    const fixture *f = context;
    eplb_plan *plan = NULL;
    eplb_status status =
        eplb_plan_create(&plan, hooks, f->load, f->cluster, NULL, &f->options, NULL);
    eplb_plan_destroy(&plan);
    return status;
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    fixture *f = *state;
    f->options.spread_nodes = 1;
    test_each_failing_allocation(plan_with_rules, f);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(with_fixture(without_rules_the_hot_expert_is_everywhere),
          with_fixture(fewest_replicas_are_kept_in_every_layer),
          with_fixture(most_replicas_are_kept), with_fixture(pinned_replicas_are_there),
          with_fixture(any_replica_can_be_pinned_where_gpus_have_unequal_slots),
          with_fixture(pins_that_do_not_fit_are_refused),
          with_fixture(pins_of_a_layer_that_is_not_there_are_refused),
          with_fixture(more_pins_than_the_most_replicas_are_refused),
          with_fixture(a_current_placement_that_cannot_be_spread_further_is_kept),
          with_fixture(replicas_go_to_different_nodes_first),
          with_fixture(current_placement_is_kept_only_if_it_keeps_the_rules),
          with_fixture(classical_algorithm_knows_no_rules),
          with_fixture(every_failing_allocation_is_an_error_without_a_leak))
