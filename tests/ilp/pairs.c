/* SPDX-License-Identifier: MIT */
/* Layers with two slots a GPU, against all placements there are. */
#include "instance.h"

#include <eplb/plan.h>

#include "ilp/pairs.h"

enum { SEEDS = 150, TINY_EXPERTS = 6, TINY_GPUS = 5, TINY_SLOTS = 2 * TINY_GPUS };

static int never(void *context)
{
    (void)context;
    return 0;
}

static int at_once(void *context)
{
    (void)context;
    return 1;
}

/* A task and all it points to. */
typedef struct layer {
    eplb_refine_task task;
    double loads[MOST_EXPERTS];
    double weight;
    int32_t first_slot[MOST_EXPERTS + 1];
    int32_t placement[2 * MOST_EXPERTS];
    int32_t result[2 * MOST_EXPERTS];
    uint8_t pinned[2 * MOST_EXPERTS];
} layer;

static double largest_load(const layer *l, const int32_t *placement)
{
    int32_t count[MOST_EXPERTS] = {0};
    double largest = 0.0;
    for (int32_t s = 0; s < l->task.slots; s++) {
        count[placement[s]]++;
    }
    for (int32_t s = 0; s < l->task.slots; s += 2) {
        largest = fmax(largest, l->loads[placement[s]] / count[placement[s]] +
                                    l->loads[placement[s + 1]] / count[placement[s + 1]]);
    }
    return largest;
}

/* Random loads, planned without search. */
static void draw_layer(layer *l, eplb_random *random, int32_t experts, int32_t gpus)
{
    eplb_load *load = NULL;
    eplb_cluster *cluster = NULL;
    eplb_plan *plan = NULL;
    eplb_plan_options options;
    double total = 0.0;
    *l = (layer){.weight = 1.0};
    draw_loads(random, l->loads, experts);
    l->loads[0] += 1.0;
    for (int32_t e = 0; e < experts; e++) {
        total += l->loads[e];
    }
    for (int32_t e = 0; e < experts; e++) {
        l->loads[e] *= (double)gpus / total;
    }
    eplb_plan_options_init(&options);
    options.effort = 1;
    assert_ok(eplb_load_create(&load, NULL, 1, 1, experts, NULL), NULL);
    assert_ok(eplb_load_set_row(load, 0, 0, l->loads, NULL), NULL);
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, 2, 0, NULL), NULL);
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, NULL), NULL);
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), 0);
    for (int32_t s = 0; s < 2 * gpus; s++) {
        l->placement[s] = l->result[s] = row[s];
        l->first_slot[(s + 1) / 2] = 2 * ((s + 1) / 2);
    }
    l->task = (eplb_refine_task){.struct_size = sizeof(l->task),
                                 .experts = experts,
                                 .gpus = gpus,
                                 .slots = 2 * gpus,
                                 .scenarios = 1,
                                 .objective = EPLB_OBJECTIVE_MEAN_OF_MAX,
                                 .min_replicas = 1,
                                 .max_replicas = gpus,
                                 .first_slot = l->first_slot,
                                 .loads = l->loads,
                                 .weights = &l->weight,
                                 .placement = l->placement,
                                 .lower_bound = 1.0,
                                 .stop = never};
    l->task.value = largest_load(l, l->placement);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static eplb_refine_result refine(layer *l, const eplb_ilp_options *options)
{
    eplb_ilp *ilp = NULL;
    eplb_error error;
    eplb_refine_result result = {
        .struct_size = sizeof(result), .placement = l->result, .lower_bound = l->task.lower_bound};
    assert_ok(eplb_ilp_create(&ilp, NULL, options, &error), &error);
    assert_ok(eplb_ilp_pairs(ilp, &l->task, &result, &error), &error);
    eplb_ilp_destroy(&ilp);
    return result;
}

/* The best largest load of pairs of the replicas that are left. */
static double best_pairs(const layer *l, const int32_t *count, int32_t *left, double worst)
{
    int32_t first = 0;
    double best = INFINITY;
    while (first < l->task.experts && left[first] == 0) {
        first++;
    }
    if (first == l->task.experts) {
        return worst;
    }
    left[first]--;
    for (int32_t e = first + 1; e < l->task.experts; e++) {
        if (left[e] > 0) {
            left[e]--;
            double load = l->loads[first] / count[first] + l->loads[e] / count[e];
            best = fmin(best, best_pairs(l, count, left, fmax(worst, load)));
            left[e]++;
        }
    }
    left[first]++;
    return best;
}

/* Over all counts of the experts from `expert` on. */
static double best_counts(const layer *l, int32_t *count, int32_t expert, int32_t slots)
{
    int32_t others = l->task.experts - 1 - expert;
    double best = INFINITY;
    if (expert == l->task.experts) {
        int32_t left[TINY_EXPERTS];
        memcpy(left, count, sizeof(left));
        return slots == 0 ? best_pairs(l, count, left, 0.0) : INFINITY;
    }
    for (int32_t c = 1; c <= l->task.gpus && c <= slots - others; c++) {
        count[expert] = c;
        best = fmin(best, best_counts(l, count, expert + 1, slots - c));
    }
    return best;
}

static void assert_valid(const layer *l)
{
    bool has[MOST_EXPERTS] = {false};
    for (int32_t s = 0; s < l->task.slots; s++) {
        assert_in_range(l->result[s], 0, l->task.experts - 1);
        has[l->result[s]] = true;
        assert_true(s % 2 == 0 || l->result[s] != l->result[s - 1]);
    }
    for (int32_t e = 0; e < l->task.experts; e++) {
        assert_true(has[e]);
    }
}

static void draw_tiny(layer *l, uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    int32_t gpus = draw(&random, 2, TINY_GPUS);
    int32_t experts = draw(&random, 2, 2 * gpus < TINY_EXPERTS ? 2 * gpus : TINY_EXPERTS);
    draw_layer(l, &random, experts, gpus);
}

static void bounds_and_placements_are_on_their_sides_of_brute_force(void **state)
{
    (void)state;
    int32_t met = 0;
    int32_t better = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        layer l;
        int32_t count[TINY_EXPERTS];
        draw_tiny(&l, seed);
        eplb_refine_result result = refine(&l, NULL);
        double optimum = best_counts(&l, count, 0, l.task.slots);
        double value = largest_load(&l, l.result);
        assert_valid(&l);
        assert_true(result.lower_bound <= optimum * (1.0 + 1e-12));
        assert_true(value >= optimum * (1.0 - 1e-12));
        assert_true(value <= l.task.value * (1.0 + 1e-12));
        met += result.lower_bound >= value * (1.0 - 1e-4) ? 1 : 0;
        better += value < l.task.value * (1.0 - 1e-9) ? 1 : 0;
    }
    print_message("%d of %d proven, %d better\n", met, SEEDS, better);
    assert_true(met >= SEEDS * 8 / 10);
    assert_true(better > 0);
}

static void larger_layers_come_closer(void **state)
{
    (void)state;
    double gap_before = 0.0;
    double gap_after = 0.0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        layer l;
        eplb_random random;
        eplb_random_seed(&random, seed);
        draw_layer(&l, &random, MOST_EXPERTS, 14);
        eplb_refine_result result = refine(&l, NULL);
        double value = largest_load(&l, l.result);
        assert_valid(&l);
        assert_true(result.lower_bound <= value);
        gap_before += l.task.value - l.task.lower_bound;
        gap_after += value - result.lower_bound;
    }
    assert_true(gap_after < 0.2 * gap_before);
}

static void pinned_replicas_stay_and_the_bound_rises(void **state)
{
    (void)state;
    layer l;
    draw_tiny(&l, 3);
    l.task.pinned = l.pinned;
    eplb_refine_result result = refine(&l, NULL);
    assert_memory_equal(l.result, l.placement, sizeof(l.result));
    assert_true(result.lower_bound > 1.0);
}

static void stop_leaves_everything_as_it_was(void **state)
{
    (void)state;
    layer l;
    draw_tiny(&l, 3);
    l.task.stop = at_once;
    eplb_refine_result result = refine(&l, NULL);
    assert_memory_equal(l.result, l.placement, sizeof(l.result));
    assert_true(result.lower_bound == 1.0);
}

static void no_nodes_still_give_a_bound(void **state)
{
    (void)state;
    eplb_ilp_options options;
    eplb_ilp_options_init(&options);
    options.nodes = 0;
    layer l;
    draw_tiny(&l, 3);
    eplb_refine_result result = refine(&l, &options);
    assert_memory_equal(l.result, l.placement, sizeof(l.result));
    assert_true(result.lower_bound > 1.0);
}

static void other_layers_are_left_alone(void **state)
{
    (void)state;
    layer l;
    draw_tiny(&l, 3);
    l.task.scenarios = 2;
    assert_true(refine(&l, NULL).lower_bound == 1.0);
    l.task.scenarios = 1;
    l.first_slot[1] = 1;
    assert_true(refine(&l, NULL).lower_bound == 1.0);
    assert_memory_equal(l.result, l.placement, sizeof(l.result));
}

static eplb_status refine_with(const eplb_hooks *hooks, void *context)
{
    layer *l = context;
    eplb_ilp *ilp = NULL;
    eplb_refine_result result = {.struct_size = sizeof(result), .placement = l->result};
    eplb_status status = eplb_ilp_create(&ilp, hooks, NULL, NULL);
    if (status == EPLB_OK) {
        status = eplb_ilp_pairs(ilp, &l->task, &result, NULL);
    }
    eplb_ilp_destroy(&ilp);
    return status;
}

static void failing_memory_leaks_nothing(void **state)
{
    (void)state;
    layer l;
    draw_tiny(&l, 3);
    test_each_failing_allocation(refine_with, &l);
}

TEST_MAIN(seeded_test(bounds_and_placements_are_on_their_sides_of_brute_force),
          cmocka_unit_test(larger_layers_come_closer),
          cmocka_unit_test(pinned_replicas_stay_and_the_bound_rises),
          cmocka_unit_test(stop_leaves_everything_as_it_was),
          cmocka_unit_test(no_nodes_still_give_a_bound),
          cmocka_unit_test(other_layers_are_left_alone),
          cmocka_unit_test(failing_memory_leaks_nothing))
