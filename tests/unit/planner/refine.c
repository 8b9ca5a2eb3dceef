/* SPDX-License-Identifier: MIT */
/* What a refiner is asked, and what its answers are worth. */
#include "planning.h"

#include <math.h>
#include <string.h>

#include <eplb/refine.h>

/* Greedy counts share out an 8 and reach 13; with two of the 4 each GPU has 11. */
static const double uneven[5] = {8, 8, 4, 1, 1};
static const int32_t optimal_slots[6] = {0, 2, 3, 1, 2, 4};

enum { OPTIMUM, WORSE, TWICE, MISSING, OUT_OF_RANGE, BOUND_ONLY, FAILURE, ASK_TO_STOP };

typedef struct refiner_state {
    int answer;
    int calls;
    int stops; /* what stop() said */
    eplb_refine_task task;
    double loads[16];
    double weights[4];
    int32_t placement[16];
    uint8_t pinned[16];
    int32_t first_slot[5];
} refiner_state;

static void remember(refiner_state *state, const eplb_refine_task *task)
{
    state->task = *task;
    memcpy(state->loads, task->loads,
           (size_t)(task->scenarios * task->experts) * sizeof(*task->loads));
    memcpy(state->weights, task->weights, (size_t)task->scenarios * sizeof(*task->weights));
    memcpy(state->placement, task->placement, (size_t)task->slots * sizeof(*task->placement));
    memcpy(state->first_slot, task->first_slot,
           (size_t)(task->gpus + 1) * sizeof(*task->first_slot));
    if (task->pinned != NULL) {
        memcpy(state->pinned, task->pinned, (size_t)task->slots);
    }
}

static eplb_status answer(void *context, const eplb_refine_task *task, eplb_refine_result *result,
                          eplb_error *error)
{
    static const int32_t worse[6] = {0, 1, 2, 0, 3, 4};
    static const int32_t twice[6] = {0, 2, 2, 1, 3, 4};
    static const int32_t missing[6] = {0, 2, 3, 1, 2, 3};
    refiner_state *state = context;
    state->calls++;
    remember(state, task);
    assert_memory_equal(result->placement, task->placement,
                        (size_t)task->slots * sizeof(*task->placement));
    assert_true(result->lower_bound == task->lower_bound);
    result->nodes = 7;
    const int32_t *slots = optimal_slots;
    switch (state->answer) {
    case WORSE:
        slots = worse;
        break;
    case TWICE:
        slots = twice;
        break;
    case MISSING:
        slots = missing;
        break;
    case BOUND_ONLY:
        result->lower_bound = task->value;
        return EPLB_OK;
    case FAILURE:
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "no memory here");
    case ASK_TO_STOP:
        state->stops += task->stop(task->stop_context) != 0;
        return EPLB_OK;
    default:
        break;
    }
    memcpy(result->placement, slots, 6 * sizeof(*slots));
    if (state->answer == OUT_OF_RANGE) {
        result->placement[5] = 5;
    }
    return EPLB_OK;
}

typedef struct setting {
    eplb_load *load;
    eplb_cluster *cluster;
    refiner_state state;
    eplb_refiner refiner;
    eplb_plan_options options;
} setting;

/* One layer planned greedily, then refined. */
static void begin(setting *s, int answer_kind)
{
    *s = (setting){.load = load_of(uneven, 1, 5), .cluster = cluster_of(2, 3, 0)};
    s->state.answer = answer_kind;
    s->refiner =
        (eplb_refiner){.struct_size = sizeof(s->refiner), .refine = answer, .context = &s->state};
    eplb_plan_options_init(&s->options);
    s->options.effort = 1;
    s->options.refiner = &s->refiner;
}

static void end(setting *s)
{
    eplb_load_destroy(&s->load);
    eplb_cluster_destroy(&s->cluster);
}

static void better_placement_is_taken(void **state)
{
    (void)state;
    setting s;
    begin(&s, OPTIMUM);
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    eplb_plan_layer layer = layer_of(plan, 0);
    eplb_plan_info info = info_of(plan);
    assert_int_equal(s.state.calls, 1);
    assert_true(layer.imbalance_searched > 1.0);
    assert_true(fabs(layer.imbalance_after - 1.0) <= 1e-12);
    assert_int_equal(layer.stop, EPLB_STOP_OPTIMAL);
    assert_int_equal(layer.refine_nodes, 7);
    assert_int_equal(info.refine_nodes, 7);
    assert_true(info.imbalance_searched_mean == layer.imbalance_searched);
    assert_int_equal(info.valid, 1);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 0), optimal_slots,
                        sizeof(optimal_slots));
    eplb_plan_destroy(&plan);
    end(&s);
}

static void task_describes_the_layer(void **state)
{
    (void)state;
    setting s;
    begin(&s, BOUND_ONLY);
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    const eplb_refine_task *task = &s.state.task;
    assert_int_equal(task->struct_size, sizeof(*task));
    assert_int_equal(task->experts, 5);
    assert_int_equal(task->gpus, 2);
    assert_int_equal(task->slots, 6);
    assert_int_equal(task->scenarios, 1);
    assert_int_equal(task->min_replicas, 1);
    assert_int_equal(task->max_replicas, 2);
    assert_null(task->pinned);
    const int32_t first_slot[3] = {0, 3, 6};
    assert_memory_equal(s.state.first_slot, first_slot, sizeof(first_slot));
    assert_true(s.state.weights[0] == 1.0);
    for (int e = 0; e < 5; e++) { /* 22 tokens on two GPUs */
        assert_true(fabs(s.state.loads[e] - uneven[e] / 11.0) <= 1e-15);
    }
    eplb_plan_layer layer = layer_of(plan, 0);
    assert_true(task->value == layer.imbalance_searched);
    assert_true(task->lower_bound == layer.bound_searched);
    eplb_plan_destroy(&plan);
    end(&s);
}

static void pins_and_limits_are_passed_on_and_kept(void **state)
{
    (void)state;
    setting s;
    begin(&s, OPTIMUM);
    const eplb_pin pin = {.layer = 0, .expert = 0, .gpu = 1}; /* the optimum has it on GPU 0 */
    s.options.pin_count = 1;
    s.options.pins = &pin;
    s.options.max_replicas = 2;
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    int pinned = 0;
    for (int slot = 0; slot < 6; slot++) {
        bool is_pinned = slot >= 3 && s.state.placement[slot] == 0;
        assert_int_equal(s.state.pinned[slot], is_pinned);
        pinned += is_pinned;
    }
    assert_int_equal(pinned, 1);
    eplb_plan_layer layer = layer_of(plan, 0);
    assert_true(layer.imbalance_after == layer.imbalance_searched);
    eplb_plan_destroy(&plan);
    end(&s);
}

static void worse_or_invalid_answers_change_nothing(void **state)
{
    (void)state;
    setting plain;
    begin(&plain, OPTIMUM);
    plain.options.refiner = NULL;
    eplb_plan *searched = plan_of(plain.load, plain.cluster, NULL, &plain.options);
    for (int kind = WORSE; kind <= OUT_OF_RANGE; kind++) {
        setting s;
        begin(&s, kind);
        eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
        assert_int_equal(s.state.calls, 1);
        assert_same_maps(plan, searched);
        assert_true(layer_of(plan, 0).imbalance_after == layer_of(searched, 0).imbalance_after);
        eplb_plan_destroy(&plan);
        end(&s);
    }
    eplb_plan_destroy(&searched);
    end(&plain);
}

static void proven_bound_makes_a_layer_optimal(void **state)
{
    (void)state;
    setting s;
    begin(&s, BOUND_ONLY);
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    eplb_plan_layer layer = layer_of(plan, 0);
    assert_true(layer.bound_searched < layer.imbalance_after);
    assert_true(layer.lower_bound == layer.imbalance_after);
    assert_int_equal(layer.stop, EPLB_STOP_OPTIMAL);
    eplb_plan_destroy(&plan);
    end(&s);
}

static void failure_ends_the_plan(void **state)
{
    (void)state;
    setting s;
    begin(&s, FAILURE);
    eplb_error error;
    eplb_plan *plan;
    assert_int_equal(eplb_plan_create(&plan, NULL, s.load, s.cluster, NULL, &s.options, &error),
                     EPLB_ERROR_NOMEM);
    assert_null(plan);
    assert_string_equal(error.message, "no memory here");
    end(&s);
}

static void optimal_layers_are_not_asked_about(void **state)
{
    (void)state;
    setting s;
    begin(&s, OPTIMUM);
    eplb_load_destroy(&s.load);
    const double even[5] = {2, 2, 2, 2, 2};
    s.load = load_of(even, 1, 5);
    s.options.effort = 5;
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    assert_int_equal(layer_of(plan, 0).stop == EPLB_STOP_OPTIMAL ? 0 : 1, s.state.calls);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&s.load);
    const double none[5] = {0};
    s.load = load_of(none, 1, 5);
    s.state.calls = 0;
    plan = plan_of(s.load, s.cluster, NULL, &s.options);
    assert_int_equal(s.state.calls, 0);
    eplb_plan_destroy(&plan);
    end(&s);
}

static void plan_of_own_refined_result_moves_nothing(void **state)
{
    (void)state;
    setting s;
    begin(&s, OPTIMUM);
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    eplb_plan *again = plan_of(s.load, s.cluster, eplb_plan_placement(plan), &s.options);
    assert_int_equal(s.state.calls, 2);
    assert_int_equal(info_of(again).copies, 0);
    assert_same_maps(plan, again);
    /* Without the refiner, too: the search finds nothing better. */
    s.options.refiner = NULL;
    eplb_plan *unrefined = plan_of(s.load, s.cluster, eplb_plan_placement(plan), &s.options);
    assert_int_equal(info_of(unrefined).copies, 0);
    eplb_plan_destroy(&unrefined);
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
    end(&s);
}

static void scenarios_are_scaled_and_weighted(void **state)
{
    (void)state;
    setting s;
    begin(&s, BOUND_ONLY);
    eplb_load_destroy(&s.load);
    eplb_error error;
    assert_ok(eplb_load_create(&s.load, NULL, 3, 1, 5, &error), &error);
    const double other[5] = {1, 30, 30, 1, 4};
    assert_ok(eplb_load_set_row(s.load, 0, 0, uneven, &error), &error);
    assert_ok(eplb_load_set_row(s.load, 2, 0, other, &error), &error); /* 1 has no load */
    assert_ok(eplb_load_set_scenario(s.load, 2, NULL, 3.0, &error), &error);
    s.options.objective = EPLB_OBJECTIVE_MAX_OF_MAX;
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    assert_int_equal(s.state.task.scenarios, 2);
    assert_int_equal(s.state.task.objective, EPLB_OBJECTIVE_MAX_OF_MAX);
    assert_true(fabs(s.state.weights[0] - 0.25) <= 1e-15);
    assert_true(fabs(s.state.weights[1] - 0.75) <= 1e-15);
    assert_true(fabs(s.state.loads[0] - 8.0 / 11.0) <= 1e-15);
    assert_true(fabs(s.state.loads[5 + 1] - 30.0 / 33.0) <= 1e-15);
    eplb_plan_destroy(&plan);
    end(&s);
}

static int stop_at_once(void *context, int32_t done, int32_t layers)
{
    (void)layers;
    int32_t *last = context;
    *last = done;
    return 1;
}

static int count_layers(void *context, int32_t done, int32_t layers)
{
    (void)layers;
    int32_t *last = context;
    assert_true(done >= *last);
    *last = done;
    return 0;
}

static void progress_counts_refined_layers_and_stops(void **state)
{
    (void)state;
    setting s;
    begin(&s, ASK_TO_STOP);
    int32_t last = 0;
    s.options.progress = count_layers;
    s.options.progress_context = &last;
    eplb_plan *plan = plan_of(s.load, s.cluster, NULL, &s.options);
    assert_int_equal(last, 1);
    assert_int_equal(s.state.stops, 0);
    eplb_plan_destroy(&plan);

    s.options.progress = stop_at_once;
    s.state.calls = 0;
    plan = plan_of(s.load, s.cluster, NULL, &s.options);
    assert_int_equal(s.state.calls, 0);
    assert_int_equal(layer_of(plan, 0).stop, EPLB_STOP_CANCELLED);
    eplb_plan_destroy(&plan);
    end(&s);
}

static void refiners_do_not_go_with_what_they_do_not_know(void **state)
{
    (void)state;
    setting s;
    begin(&s, OPTIMUM);
    eplb_cluster_destroy(&s.cluster);
    s.cluster = cluster_of(2, 3, 1);
    const struct {
        int32_t algorithm;
        int32_t spread_nodes;
        double node_cost;
        int32_t groups;
        const char *message;
    } rows[] = {
        {EPLB_ALGORITHM_EPLB, 0, -1.0, 1,
         "plan: no refiner with algorithm eplb: it knows the balance of GPUs only"},
        {EPLB_ALGORITHM_SEARCH, 1, -1.0, 1,
         "plan: no refiner with spread_nodes: it knows the balance of GPUs only"},
        {EPLB_ALGORITHM_SEARCH, 0, 0.5, 1,
         "plan: no refiner with a node_cost: it knows the balance of GPUs only"},
        {EPLB_ALGORITHM_SEARCH, 0, -1.0, 5,
         "plan: no refiner with groups: it knows the balance of GPUs only"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        s.options.algorithm = rows[i].algorithm;
        s.options.spread_nodes = rows[i].spread_nodes;
        s.options.node_cost = rows[i].node_cost;
        s.options.groups = rows[i].groups;
        eplb_error error;
        eplb_plan *plan;
        assert_int_equal(eplb_plan_create(&plan, NULL, s.load, s.cluster, NULL, &s.options, &error),
                         EPLB_ERROR_UNSUPPORTED);
        assert_string_equal(error.message, rows[i].message);
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(better_placement_is_taken),
        cmocka_unit_test(task_describes_the_layer),
        cmocka_unit_test(pins_and_limits_are_passed_on_and_kept),
        cmocka_unit_test(worse_or_invalid_answers_change_nothing),
        cmocka_unit_test(proven_bound_makes_a_layer_optimal),
        cmocka_unit_test(failure_ends_the_plan),
        cmocka_unit_test(optimal_layers_are_not_asked_about),
        cmocka_unit_test(plan_of_own_refined_result_moves_nothing),
        cmocka_unit_test(scenarios_are_scaled_and_weighted),
        cmocka_unit_test(progress_counts_refined_layers_and_stops),
        cmocka_unit_test(refiners_do_not_go_with_what_they_do_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
