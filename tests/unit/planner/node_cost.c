/* SPDX-License-Identifier: MIT */
/* A price for tokens that leave their node. */
#include "planning.h"

#include "planner/traffic.h"

/* Two nodes of two GPUs. */
enum { EXPERTS = 6, GPUS = 4, SLOTS_PER_GPU = 2, GPUS_PER_NODE = 2, SLOTS = 8 };

/* Experts 0 and 1 need two replicas each. */
static const double loads[EXPERTS] = {40, 40, 20, 20, 20, 20};

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
    f->options.node_cost = 0.5;
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

static double share_of(const fixture *f, const eplb_placement *placement)
{
    double share;
    assert_ok(
        eplb_placement_traffic(placement, 0, f->load, 0, EPLB_OBJECTIVE_MEAN_OF_MAX, &share, NULL),
        NULL);
    return share;
}

static eplb_node_choice choice_of(const eplb_plan *plan, int32_t choice)
{
    eplb_node_choice result = {.struct_size = sizeof(result)};
    assert_ok(eplb_plan_get_node_choice(plan, choice, &result, NULL), NULL);
    return result;
}

/* A placement with both replicas of 0 on node 0 and both of 1 on node 1. */
static eplb_placement *crowded(const fixture *f)
{
    static const int32_t row[SLOTS] = {0, 2, 0, 3, 1, 4, 1, 5};
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, f->cluster, 1, EXPERTS, NULL), NULL);
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    return placement;
}

static void priced_plan_has_a_replica_of_hot_experts_on_each_node(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    /* Half of the tokens stay, and those of the others by half. */
    assert_true(fabs(share_of(f, eplb_plan_placement(plan)) - 0.25) <= 1e-12);
    assert_true(layer_of(plan, 0).imbalance_after == 1.0);
    eplb_plan_destroy(&plan);
}

static void traffic_without_a_price_does_not_move_anything(void **state)
{
    fixture *f = *state;
    eplb_placement *current = crowded(f);
    f->options.node_cost = -1.0;
    eplb_plan *plan = plan_of(f->load, f->cluster, current, &f->options);
    assert_int_equal(info_of(plan).copies, 0);
    assert_true(fabs(share_of(f, eplb_plan_placement(plan)) - 0.5) <= 1e-12);
    eplb_plan_destroy(&plan);
    f->options.node_cost = 0.5;
    plan = plan_of(f->load, f->cluster, current, &f->options);
    assert_true(info_of(plan).copies > 0);
    assert_true(fabs(share_of(f, eplb_plan_placement(plan)) - 0.25) <= 1e-12);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void first_choice_is_the_plan_without_a_price(void **state)
{
    fixture *f = *state;
    f->options.node_cost = -1.0;
    eplb_plan *plain = plan_of(f->load, f->cluster, NULL, &f->options);
    f->options.node_cost = 7.0;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    eplb_node_choice first = choice_of(plan, 0);
    assert_int_equal(first.exchanges, 0);
    assert_true(first.tolerance == 0.0);
    assert_true(first.imbalance_mean == info_of(plain).imbalance_after_mean);
    assert_true(fabs(first.cross_node - share_of(f, eplb_plan_placement(plain))) <= 1e-12);
    static const double tolerances[EPLB_NODE_CHOICES] = {0, 0, 0.001, 0.005, 0.01, 0.02, 0.05};
    for (int32_t i = 1; i < EPLB_NODE_CHOICES; i++) {
        assert_int_equal(choice_of(plan, i).exchanges, 1);
        assert_true(choice_of(plan, i).tolerance == tolerances[i]);
    }
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&plain);
}

static void pinned_replicas_stay(void **state)
{
    fixture *f = *state;
    const eplb_pin pins[] = {{.layer = -1, .expert = 0, .gpu = 0},
                             {.layer = -1, .expert = 0, .gpu = 1},
                             {.layer = -1, .expert = 1, .gpu = 2},
                             {.layer = -1, .expert = 1, .gpu = 3}};
    f->options.pins = pins;
    f->options.pin_count = 4;
    f->options.node_cost = 1e6;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), 0);
    for (int32_t g = 0; g < GPUS; g++) {
        assert_int_equal(row[g * SLOTS_PER_GPU], g / GPUS_PER_NODE); /* ascending: it comes first */
    }
    eplb_plan_destroy(&plan);
}

static void wrong_prices_are_refused(void **state)
{
    fixture *f = *state;
    static const double wrong[] = {-0.5, -2.0, 2e9, INFINITY, NAN};
    for (size_t i = 0; i < 5; i++) {
        eplb_error error;
        eplb_plan *plan;
        f->options.node_cost = wrong[i];
        assert_status(eplb_plan_create(&plan, NULL, f->load, f->cluster, NULL, &f->options, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, "node_cost");
    }
}

static void classical_algorithm_knows_no_price(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_plan *plan;
    f->options.algorithm = EPLB_ALGORITHM_EPLB;
    assert_status(eplb_plan_create(&plan, NULL, f->load, f->cluster, NULL, &f->options, &error),
                  EPLB_ERROR_UNSUPPORTED, &error);
    assert_contains(error.message, "price of traffic");
}

static void choices_are_only_those_of_priced_plans(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    eplb_node_choice choice = {.struct_size = sizeof(choice)};
    static const int32_t wrong[] = {-1, EPLB_NODE_CHOICES};
    for (size_t i = 0; i < 2; i++) {
        assert_status(eplb_plan_get_node_choice(plan, wrong[i], &choice, &error),
                      EPLB_ERROR_ARGUMENT, &error);
    }
    assert_status(eplb_plan_get_node_choice(plan, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    choice.struct_size = 0;
    assert_status(eplb_plan_get_node_choice(plan, 0, &choice, &error), EPLB_ERROR_ARGUMENT, &error);
    choice.struct_size = sizeof(choice);
    eplb_plan_destroy(&plan);
    f->options.node_cost = -1.0;
    plan = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_status(eplb_plan_get_node_choice(plan, 0, &choice, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_plan_destroy(&plan);
}

static int stop_at_once(void *context, int32_t done, int32_t layers)
{
    (void)context;
    (void)done;
    (void)layers;
    return 1;
}

static void cancelled_layers_have_a_single_choice(void **state)
{
    fixture *f = *state;
    double rows[3][EXPERTS];
    for (int32_t l = 0; l < 3; l++) {
        memcpy(rows[l], loads, sizeof(loads));
    }
    eplb_load *load = load_of(rows[0], 3, EXPERTS);
    f->options.progress = stop_at_once;
    eplb_plan *plan = plan_of(load, f->cluster, NULL, &f->options);
    assert_int_equal(layer_of(plan, 2).stop, EPLB_STOP_CANCELLED);
    assert_int_equal(info_of(plan).valid, 1);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* What is exchanged, from inside: a placement with everything to gain. */
static void exchange_keeps_the_loads_of_gpus_and_spares_pinned_ones(void **state)
{
    fixture *f = *state;
    static const int32_t row[SLOTS] = {0, 2, 0, 3, 1, 4, 1, 5};
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    for (int pinned = 0; pinned < 2; pinned++) {
        eplb_shape shape;
        eplb_layer layer;
        eplb_nodes nodes;
        eplb_traffic traffic;
        eplb_rules rules = {.min_replicas = 1, .max_replicas = GPUS};
        assert_ok(eplb_shape_init(&shape, &hooks, f->cluster, EXPERTS, NULL), NULL);
        assert_ok(eplb_layer_init(&layer, &hooks, &shape, NULL), NULL);
        assert_ok(eplb_nodes_init(&nodes, &hooks, f->cluster, NULL), NULL);
        assert_ok(eplb_traffic_init(&traffic, &hooks, &layer, &nodes, 1, NULL), NULL);
        layer.load = loads;
        memcpy(layer.slot_expert, row, sizeof(row));
        eplb_layer_index(&layer);
        if (pinned) { /* expert 2 on GPU 0 and 4 on GPU 2: the other two GPUs are left */
            shape.rules = &rules;
            layer.pinned[0] = (uint64_t)1 << 2;
            layer.pinned[2] = (uint64_t)1 << 4;
        }
        eplb_traffic_take(&traffic, NULL);
        assert_true(fabs(eplb_traffic_share(&traffic) - 0.5) <= 1e-12);
        eplb_traffic_exchange(&traffic);
        assert_true(fabs(eplb_traffic_share(&traffic) - 0.25) <= 1e-12);
        if (pinned) {
            assert_int_equal(layer.slot_expert[1], 2);
            assert_int_equal(layer.slot_expert[5], 4);
        }
        for (int32_t g = 0; g < GPUS; g++) {
            bool found = false; /* GPUs hold what some GPU held */
            for (int32_t h = 0; h < GPUS; h++) {
                found =
                    found || memcmp(layer.slot_expert + g * SLOTS_PER_GPU, row + h * SLOTS_PER_GPU,
                                    SLOTS_PER_GPU * sizeof(int32_t)) == 0;
            }
            assert_true(found);
        }
        eplb_traffic_free(&traffic, &hooks);
        eplb_nodes_free(&nodes, &hooks);
        eplb_layer_free(&layer, &hooks);
        eplb_shape_free(&shape, &hooks);
    }
}

static eplb_status plan_with_price(const eplb_hooks *hooks, void *context)
{
    const fixture *f = context;
    eplb_plan *plan;
    eplb_status status =
        eplb_plan_create(&plan, hooks, f->load, f->cluster, NULL, &f->options, NULL);
    eplb_plan_destroy(&plan);
    return status;
}

static eplb_status measure_traffic(const eplb_hooks *hooks, void *context)
{
    const fixture *f = context;
    eplb_placement *own = crowded(f);
    eplb_placement *placement;
    double share;
    eplb_status status = eplb_placement_clone(&placement, hooks, own, NULL);
    for (int objective = 0; objective <= EPLB_OBJECTIVE_SUM && status == EPLB_OK; objective++) {
        status = eplb_placement_traffic(placement, 0, f->load, 0, (eplb_objective)objective, &share,
                                        NULL);
    }
    eplb_placement_destroy(&placement);
    eplb_placement_destroy(&own);
    return status;
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    fixture *f = *state;
    test_each_failing_allocation(plan_with_price, f);
    test_each_failing_allocation(measure_traffic, f);
}

/* Weights 3 and 1; in the sum the second scenario's many tokens count for more. */
static void traffic_of_scenarios_is_their_weighted_mean(void **state)
{
    fixture *f = *state;
    eplb_placement *placement = crowded(f);
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, 3, 1, EXPERTS, NULL), NULL);
    const double first[EXPERTS] = {1, 0, 0, 0, 0, 0};
    const double second[EXPERTS] = {0, 30, 0, 0, 0, 0};
    assert_ok(eplb_load_set_row(load, 0, 0, first, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 1, 0, second, NULL), NULL);
    assert_ok(eplb_load_set_scenario(load, 0, NULL, 3.0, NULL), NULL);
    assert_ok(eplb_load_set_scenario(load, 2, NULL, 5.0, NULL), NULL); /* without load */
    const int32_t row[SLOTS] = {0, 2, 1, 3, 0, 4, 0, 5};
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    double share;
    assert_ok(
        eplb_placement_traffic(placement, 0, load, 0, EPLB_OBJECTIVE_MEAN_OF_MAX, &share, NULL),
        NULL);
    assert_true(fabs(share - (3.0 * 0.0 + 1.0 * 0.5) / 4.0) <= 1e-12);
    assert_ok(eplb_placement_traffic(placement, 0, load, 0, EPLB_OBJECTIVE_SUM, &share, NULL),
              NULL);
    assert_true(fabs(share - (3.0 * 0.0 + 30.0 * 0.5) / 33.0) <= 1e-12);
    eplb_error error;
    assert_status(eplb_placement_traffic(placement, 0, load, 1, EPLB_OBJECTIVE_SUM, &share, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_traffic(placement, 1, load, 0, EPLB_OBJECTIVE_SUM, &share, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_load_destroy(&load);
    eplb_placement_destroy(&placement);
}

#define PRICED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(PRICED(priced_plan_has_a_replica_of_hot_experts_on_each_node),
          PRICED(traffic_without_a_price_does_not_move_anything),
          PRICED(first_choice_is_the_plan_without_a_price), PRICED(pinned_replicas_stay),
          PRICED(wrong_prices_are_refused), PRICED(classical_algorithm_knows_no_price),
          PRICED(choices_are_only_those_of_priced_plans),
          PRICED(cancelled_layers_have_a_single_choice),
          PRICED(exchange_keeps_the_loads_of_gpus_and_spares_pinned_ones),
          PRICED(every_failing_allocation_is_an_error_without_a_leak),
          PRICED(traffic_of_scenarios_is_their_weighted_mean))
