/* SPDX-License-Identifier: MIT */
/* Slots for layers out of one budget for each GPU. */
#include "planning.h"

#include <eplb/layer_budget.h>

enum { LAYERS = 4, EXPERTS = 8, GPUS = 4 };

/* One layer with a hot expert, one with two, two that are even. All have 80 tokens. */
static const double mixed[LAYERS * EXPERTS] = {
    45, 5,  5,  5,  5,  5,  5,  5,  /**/
    10, 10, 10, 10, 10, 10, 10, 10, /**/
    25, 25, 5,  5,  5,  5,  5,  5,  /**/
    10, 10, 10, 10, 10, 10, 10, 10,
};

static const int64_t even_budget[GPUS] = {10, 10, 10, 10};

static eplb_plan *plan_in(const eplb_load *load, const int64_t *budget,
                          const eplb_placement *current, const eplb_plan_options *options)
{
    eplb_error error;
    eplb_plan *plan;
    eplb_cluster *cluster = cluster_of(GPUS, 1, 2);
    assert_ok(
        eplb_plan_create_in_budget(&plan, NULL, load, cluster, budget, current, options, &error),
        &error);
    eplb_cluster_destroy(&cluster);
    return plan;
}

static void refuse(const eplb_load *load, const int64_t *budget, const eplb_plan_options *options,
                   eplb_status expected, const char *part)
{
    eplb_error error;
    eplb_plan *plan = (eplb_plan *)&error;
    eplb_cluster *cluster = cluster_of(GPUS, 1, 2);
    assert_status(
        eplb_plan_create_in_budget(&plan, NULL, load, cluster, budget, NULL, options, &error),
        expected, &error);
    assert_contains(error.message, part);
    assert_null(plan);
    eplb_cluster_destroy(&cluster);
}

static eplb_layer_budget_info budget_of(const eplb_plan *plan)
{
    eplb_layer_budget_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_layer_budget(plan, &info, NULL), NULL);
    return info;
}

static int32_t slots_of(const eplb_plan *plan, int32_t layer)
{
    eplb_layer_budget_layer result = {.struct_size = sizeof(result)};
    assert_ok(eplb_plan_get_budget_layer(plan, layer, &result, NULL), NULL);
    assert_int_equal(result.slots, eplb_placement_open_slots(eplb_plan_placement(plan), layer));
    return result.slots;
}

static void assert_within(const eplb_plan *plan, const int64_t *budget)
{
    const eplb_placement *placement = eplb_plan_placement(plan);
    eplb_error error;
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    for (int32_t g = 0; g < GPUS; g++) {
        int64_t used = 0;
        for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
            used += eplb_placement_open_slots_on(placement, l, g);
        }
        assert_true(used <= budget[g]);
    }
}

/* 40 slots: equal layers get 8 each, and the hot ones stay as they are. */
static void hot_layers_get_the_slots_that_even_ones_do_not_need(void **state)
{
    (void)state;
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan *plan = plan_in(load, even_budget, NULL, NULL);
    eplb_layer_budget_info info = budget_of(plan);
    assert_within(plan, even_budget);
    assert_int_equal(info.has_uniform, 1);
    assert_int_equal(info.is_uniform, 0);
    assert_int_equal(info.uniform_slots, 8);
    assert_int_equal(info.budget, 40);
    assert_int_equal(slots_of(plan, 1), 8);
    assert_int_equal(slots_of(plan, 3), 8);
    assert_true(slots_of(plan, 0) > 8 && slots_of(plan, 0) + slots_of(plan, 2) <= 24);
    assert_close(info.sum_uniform, 2.5 + 1.0 + 1.5 + 1.0, 1e-12);
    assert_true(info.sum < 4.5);
    double sum = 0.0;
    for (int32_t l = 0; l < LAYERS; l++) {
        double value;
        assert_ok(eplb_placement_objective(eplb_plan_placement(plan), l, load, l,
                                           EPLB_OBJECTIVE_MEAN_OF_MAX, &value, NULL),
                  NULL);
        assert_true(value == layer_of(plan, l).imbalance_after);
        sum += value;
    }
    assert_close(info.sum, sum, 1e-12);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* Even layers: nothing is gained, and the result closes no slot. */
static void equal_layers_stay_where_nothing_is_gained(void **state)
{
    (void)state;
    double loads[2 * EXPERTS];
    for (int i = 0; i < 2 * EXPERTS; i++) {
        loads[i] = 3.0;
    }
    eplb_load *load = load_of(loads, 2, EXPERTS);
    eplb_plan *plan = plan_in(load, even_budget, NULL, NULL);
    assert_int_equal(budget_of(plan).is_uniform, 1);
    assert_int_equal(slots_of(plan, 0), 20);
    assert_null(eplb_placement_layer_slots(eplb_plan_placement(plan), 0));
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* 9 slots a GPU for 4 layers: equal layers get 2 on each GPU and leave one unused. */
static void what_equal_layers_leave_is_used(void **state)
{
    (void)state;
    static const int64_t budget[GPUS] = {9, 9, 9, 9};
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan *plan = plan_in(load, budget, NULL, NULL);
    eplb_layer_budget_info info = budget_of(plan);
    assert_within(plan, budget);
    assert_int_equal(info.uniform_slots, 8);
    assert_int_equal(info.used, 36);
    assert_true(info.sum < info.sum_uniform);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* 7 + 8 + 9 + 10 slots: no number on each GPU holds 8 experts in 4 layers but 1 + 2 + 2 + 2. */
static void budgets_that_equal_layers_do_not_fit_are_enough(void **state)
{
    (void)state;
    static const int64_t budget[GPUS] = {7, 8, 9, 10};
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan *plan = plan_in(load, budget, NULL, NULL);
    eplb_layer_budget_info info = budget_of(plan);
    assert_within(plan, budget);
    assert_int_equal(info.has_uniform, 0);
    assert_int_equal(info.uniform_slots, 0);
    assert_true(info.sum_uniform == 0.0);
    assert_int_equal(info.used, 34);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void budgets_that_hold_too_little_are_refused(void **state)
{
    (void)state;
    static const int64_t budget[GPUS] = {7, 8, 8, 8};
    static const int64_t negative[GPUS] = {7, 8, -1, 8};
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    refuse(load, budget, NULL, EPLB_ERROR_INFEASIBLE,
           "31 slots of all layers do not hold 8 experts of 4 layers: they need 32");
    refuse(load, negative, NULL, EPLB_ERROR_ARGUMENT, "slots of a GPU -1");
    refuse(load, NULL, NULL, EPLB_ERROR_ARGUMENT, "no budgets");
    eplb_load_destroy(&load);
}

static void options_for_equal_layers_are_refused(void **state)
{
    (void)state;
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.groups = 2;
    refuse(load, even_budget, &options, EPLB_ERROR_UNSUPPORTED, "without groups");
    eplb_plan_options_init(&options);
    options.node_cost = 0.0;
    refuse(load, even_budget, &options, EPLB_ERROR_UNSUPPORTED, "without a node_cost");
    eplb_plan_options_init(&options);
    options.algorithm = EPLB_ALGORITHM_EPLB;
    refuse(load, even_budget, &options, EPLB_ERROR_UNSUPPORTED, "without algorithm eplb");
    static const eplb_pin pin = {.layer = LAYERS, .expert = 0, .gpu = 0};
    eplb_plan_options_init(&options);
    options.pins = &pin;
    options.pin_count = 1;
    refuse(load, even_budget, &options, EPLB_ERROR_ARGUMENT, "pin 0: no layer 4");
    eplb_load_destroy(&load);
}

static bool holds(const eplb_placement *placement, int32_t layer, int32_t gpu, int32_t expert)
{
    int32_t first = eplb_cluster_first_slot(eplb_placement_cluster(placement), gpu);
    for (int32_t s = 0; s < eplb_placement_open_slots_on(placement, layer, gpu); s++) {
        if (eplb_placement_row(placement, layer)[first + s] == expert) {
            return true;
        }
    }
    return false;
}

static void rules_hold_in_every_layer(void **state)
{
    (void)state;
    static const eplb_pin pins[] = {{.layer = 0, .expert = 7, .gpu = 3},
                                    {.layer = 2, .expert = 5, .gpu = 0},
                                    {.layer = -1, .expert = 1, .gpu = 2}};
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.pins = pins;
    options.pin_count = 3;
    options.max_replicas = 3;
    eplb_plan *plan = plan_in(load, even_budget, NULL, &options);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_within(plan, even_budget);
    assert_int_equal(budget_of(plan).is_uniform, 0);
    assert_true(holds(placement, 0, 3, 7));
    assert_true(holds(placement, 2, 0, 5));
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t counts[EXPERTS];
        assert_true(holds(placement, l, 2, 1));
        assert_ok(eplb_placement_replica_counts(placement, l, counts, NULL), NULL);
        for (int32_t e = 0; e < EXPERTS; e++) {
            assert_in_range(counts[e], 1, 3);
        }
    }
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* Layers of 10 slots have their extra ones on different GPUs, and no GPU can stand for another. */
static void pins_hold_where_slots_rotate(void **state)
{
    (void)state;
    static const int64_t budget[GPUS] = {9, 9, 9, 9};
    eplb_pin pins[GPUS];
    for (int32_t g = 0; g < GPUS; g++) {
        pins[g] = (eplb_pin){.layer = -1, .expert = 2 * g + 1, .gpu = g};
    }
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.pins = pins;
    options.pin_count = GPUS;
    eplb_plan *plan = plan_in(load, budget, NULL, &options);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_within(plan, budget);
    assert_non_null(eplb_placement_layer_slots(placement, 0));
    bool rotates = false;
    for (int32_t l = 0; l < LAYERS; l++) {
        rotates = rotates || eplb_placement_open_slots_on(placement, l, 0) <
                                 eplb_placement_open_slots_on(placement, l, GPUS - 1);
        for (int32_t g = 0; g < GPUS; g++) {
            assert_true(holds(placement, l, g, 2 * g + 1));
        }
    }
    assert_true(rotates);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void fewest_replicas_need_room_in_every_layer(void **state)
{
    (void)state;
    static const int64_t budget[GPUS] = {17, 17, 17, 17};
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.min_replicas = 2;
    eplb_plan *plan = plan_in(load, budget, NULL, &options);
    assert_within(plan, budget);
    assert_true(budget_of(plan).fewest_slots >= 2 * EXPERTS);
    eplb_plan_destroy(&plan);
    refuse(load, even_budget, &options, EPLB_ERROR_INFEASIBLE, "they need 64");
    eplb_load_destroy(&load);
}

/* A layer of few tokens leaves the slots to one of many that is as uneven, before it or behind. */
static void layers_count_by_their_tokens(void **state)
{
    (void)state;
    static const double loads[3 * EXPERTS] = {
        9,  1, 1, 1, 1, 1, 1, 1, /**/
        45, 5, 5, 5, 5, 5, 5, 5, /**/
        9,  1, 1, 1, 1, 1, 1, 1,
    };
    static const int64_t budget[GPUS] = {5, 5, 5, 5};
    for (int32_t first = 0; first < 2; first++) {
        eplb_load *load = load_of(loads + (size_t)first * EXPERTS, 2, EXPERTS);
        eplb_plan *plan = plan_in(load, budget, NULL, NULL);
        int32_t heavy = 1 - first;
        assert_true(slots_of(plan, heavy) > slots_of(plan, first));
        eplb_layer_budget_layer layer = {.struct_size = sizeof(layer)};
        assert_ok(eplb_plan_get_budget_layer(plan, first, &layer, NULL), NULL);
        assert_close(layer.weight, 16.0 / 48.0, 1e-12);
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
    }
}

static void layers_without_load_get_the_fewest_slots(void **state)
{
    (void)state;
    double loads[2 * EXPERTS] = {45, 5, 5, 5, 5, 5, 5, 5};
    static const int64_t budget[GPUS] = {5, 5, 5, 5};
    eplb_load *load = load_of(loads, 2, EXPERTS);
    eplb_plan *plan = plan_in(load, budget, NULL, NULL);
    assert_within(plan, budget);
    assert_int_equal(slots_of(plan, 1), EXPERTS);
    assert_int_equal(layer_of(plan, 1).scored, 0);
    eplb_plan_destroy(&plan);
    memset(loads, 0, sizeof(loads));
    eplb_load_destroy(&load);
    load = load_of(loads, 2, EXPERTS);
    plan = plan_in(load, budget, NULL, NULL);
    assert_within(plan, budget);
    assert_int_equal(budget_of(plan).is_uniform, 1);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void plan_of_own_result_copies_nothing(void **state)
{
    (void)state;
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan *plan = plan_in(load, even_budget, NULL, NULL);
    eplb_plan *again = plan_in(load, even_budget, eplb_plan_placement(plan), NULL);
    eplb_plan_info info = info_of(again);
    assert_int_equal(info.copies, 0);
    assert_true(info.imbalance_before_mean == info.imbalance_after_mean);
    assert_same_maps(plan, again);
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

/* The hot layers on GPUs of their own choice: as good as can be in these slots, but not the plan.
 */
static void current_placement_stays_where_it_is_no_worse(void **state)
{
    (void)state;
    static const double loads[2 * EXPERTS] = {
        10, 10, 10, 10, 10, 10, 10, 10, /**/
        10, 10, 10, 10, 10, 10, 10, 10,
    };
    static const int32_t rows[2][8] = {{7, 5, 3, 1, 6, 4, 2, 0}, {0, 7, 1, 6, 2, 5, 3, 4}};
    static const int64_t budget[GPUS] = {5, 5, 5, 5};
    eplb_error error;
    eplb_load *load = load_of(loads, 2, EXPERTS);
    eplb_cluster *cluster = cluster_of(GPUS, 2, 2);
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, cluster, 2, EXPERTS, &error), &error);
    eplb_cluster_destroy(&cluster);
    for (int32_t l = 0; l < 2; l++) {
        assert_ok(eplb_placement_set_row(current, l, rows[l], &error), &error);
    }
    eplb_plan *plan = plan_in(load, budget, current, NULL);
    assert_int_equal(info_of(plan).copies, 0);
    for (int32_t l = 0; l < 2; l++) {
        assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), l), rows[l],
                            sizeof(rows[l]));
    }
    eplb_plan_destroy(&plan);
    static const int64_t smaller[GPUS] = {3, 5, 5, 5};
    plan = plan_in(load, smaller, current, NULL);
    assert_within(plan, smaller);
    assert_true(info_of(plan).copies > 0);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_load_destroy(&load);
}

/* What a longer search found stays, and nobody claims to have gained or proven anything. */
static void a_better_placement_in_force_is_no_gain(void **state)
{
    (void)state;
    enum { MANY = 24 };
    static const int64_t budget[GPUS] = {20, 20, 20, 20};
    double loads[3 * MANY];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        random = random * 1664525u + 1013904223u;
        loads[i] = 1.0 + (double)(random >> 16) / 64.0;
    }
    eplb_load *load = load_of(loads, 3, MANY);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 9;
    eplb_plan *better = plan_in(load, budget, NULL, &options);
    options.effort = 1;
    eplb_plan *fresh = plan_in(load, budget, NULL, &options);
    assert_true(budget_of(better).sum < budget_of(fresh).sum);
    eplb_plan *kept = plan_in(load, budget, eplb_plan_placement(better), &options);
    assert_int_equal(info_of(kept).copies, 0);
    for (int32_t l = 0; l < 3; l++) {
        eplb_plan_layer layer = {.struct_size = sizeof(layer)};
        assert_ok(eplb_plan_get_layer(kept, l, &layer, NULL), NULL);
        assert_true(layer.imbalance_searched == layer.imbalance_after);
        assert_true(layer.bound_searched == layer.lower_bound);
        assert_true(layer.stop != EPLB_STOP_OPTIMAL ||
                    layer.imbalance_after <= layer.lower_bound * (1.0 + 1e-9));
    }
    eplb_plan_destroy(&kept);
    eplb_plan_destroy(&fresh);
    eplb_plan_destroy(&better);
    eplb_load_destroy(&load);
}

static void dead_gpus_get_nothing(void **state)
{
    (void)state;
    static const int64_t budget[GPUS] = {12, 12, 12, 12};
    eplb_error error;
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_cluster *cluster = cluster_of(GPUS, 1, 2);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_plan *plan;
    assert_ok(eplb_plan_create_in_budget(&plan, NULL, load, cluster, budget, NULL, NULL, &error),
              &error);
    assert_within(plan, budget);
    assert_int_equal(budget_of(plan).budget, 36);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_int_equal(eplb_placement_open_slots_on(eplb_plan_placement(plan), l, 1), 0);
    }
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

typedef struct listener {
    int calls;
    int stop_at;
    int32_t last;
} listener;

static int listen(void *context, int32_t layers_done, int32_t layers)
{
    listener *self = context;
    assert_int_equal(layers, LAYERS);
    assert_true(layers_done >= self->last && layers_done <= LAYERS);
    self->last = layers_done;
    return ++self->calls == self->stop_at;
}

static void progress_rises_to_all_layers(void **state)
{
    (void)state;
    listener self = {0};
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.progress = listen;
    options.progress_context = &self;
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_plan *plan = plan_in(load, even_budget, NULL, &options);
    assert_int_equal(self.last, LAYERS);
    assert_true(self.calls > 2 * LAYERS);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void a_wish_to_stop_gives_a_plan_within_the_budget(void **state)
{
    (void)state;
    static const int64_t uneven[GPUS] = {7, 8, 9, 10};
    static const int64_t *const budgets[] = {even_budget, uneven};
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    for (int i = 0; i < 2; i++) {
        for (int stop_at = 1; stop_at < 8; stop_at += 3) {
            listener self = {.stop_at = stop_at};
            eplb_plan_options options;
            eplb_plan_options_init(&options);
            options.progress = listen;
            options.progress_context = &self;
            eplb_plan *plan = plan_in(load, budgets[i], NULL, &options);
            assert_within(plan, budgets[i]);
            assert_int_equal(info_of(plan).stop, EPLB_STOP_CANCELLED);
            eplb_plan_destroy(&plan);
        }
    }
    eplb_load_destroy(&load);
}

static void other_plans_have_no_budget(void **state)
{
    (void)state;
    eplb_load *load = load_of(mixed, LAYERS, EXPERTS);
    eplb_cluster *cluster = cluster_of(GPUS, 2, 0);
    eplb_plan *plan = plan_of(load, cluster, NULL, NULL);
    eplb_layer_budget_info info = {.struct_size = sizeof(info)};
    eplb_layer_budget_layer layer = {.struct_size = sizeof(layer)};
    assert_int_equal(eplb_plan_get_layer_budget(plan, &info, NULL), EPLB_ERROR_ARGUMENT);
    assert_int_equal(eplb_plan_get_budget_layer(plan, 0, &layer, NULL), EPLB_ERROR_ARGUMENT);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static eplb_status plan_small(const eplb_hooks *hooks, void *context)
{
    static const int64_t budget[2] = {5, 5};
    static const eplb_pin pin = {.layer = 0, .expert = 2, .gpu = 1};
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 1;
    options.pins = &pin;
    options.pin_count = 1;
    eplb_plan *plan;
    eplb_cluster *cluster = cluster_of(2, 1, 0);
    eplb_status status =
        eplb_plan_create_in_budget(&plan, hooks, context, cluster, budget, NULL, &options, NULL);
    eplb_cluster_destroy(&cluster);
    eplb_plan_destroy(&plan);
    return status;
}

static void every_failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    static const double loads[6] = {9, 1, 1, 2, 2, 2};
    eplb_load *load = load_of(loads, 2, 3);
    test_each_failing_allocation(plan_small, load);
    eplb_load_destroy(&load);
}

TEST_MAIN(cmocka_unit_test(hot_layers_get_the_slots_that_even_ones_do_not_need),
          cmocka_unit_test(equal_layers_stay_where_nothing_is_gained),
          cmocka_unit_test(what_equal_layers_leave_is_used),
          cmocka_unit_test(budgets_that_equal_layers_do_not_fit_are_enough),
          cmocka_unit_test(budgets_that_hold_too_little_are_refused),
          cmocka_unit_test(options_for_equal_layers_are_refused),
          cmocka_unit_test(rules_hold_in_every_layer),
          cmocka_unit_test(pins_hold_where_slots_rotate),
          cmocka_unit_test(fewest_replicas_need_room_in_every_layer),
          cmocka_unit_test(layers_count_by_their_tokens),
          cmocka_unit_test(layers_without_load_get_the_fewest_slots),
          cmocka_unit_test(plan_of_own_result_copies_nothing),
          cmocka_unit_test(current_placement_stays_where_it_is_no_worse),
          cmocka_unit_test(a_better_placement_in_force_is_no_gain),
          cmocka_unit_test(dead_gpus_get_nothing), cmocka_unit_test(progress_rises_to_all_layers),
          cmocka_unit_test(a_wish_to_stop_gives_a_plan_within_the_budget),
          cmocka_unit_test(other_plans_have_no_budget),
          cmocka_unit_test(every_failed_allocation_leaks_nothing))
