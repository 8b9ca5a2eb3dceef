/* SPDX-License-Identifier: MIT */
/* Layers that are too large to be searched through: neighbourhoods, arranged by GLPK. */
#include "fewest.h"

#include "instance.h"

#define EXPERTS 96
#define GPUS 16
#define SLOTS_PER_GPU 7
#define TARGET 1.05
#define NODES 5000000

typedef struct large {
    eplb_cluster *cluster;
    eplb_load *before; /* one layer */
    eplb_load *after;  /* one layer, perhaps with several scenarios */
    eplb_plan *current;
    eplb_plan *fresh;
} large;

/* Skewed, and some experts twice or half as hot as before. */
static void draw_drift(eplb_random *random, const double *before, double *after)
{
    for (int32_t e = 0; e < EXPERTS; e++) {
        double unit = eplb_random_unit(random);
        after[e] = before[e] * (unit < 0.2 ? 2.0 : unit < 0.4 ? 0.5 : 1.0);
    }
}

static large make_large(uint64_t seed, int32_t scenarios)
{
    large all = {.cluster = cluster_of(GPUS, SLOTS_PER_GPU, 0)};
    eplb_random random;
    eplb_random_seed(&random, seed);
    double before[EXPERTS];
    double after[EXPERTS];
    draw_loads(&random, before, EXPERTS);
    all.before = load_of(before, 1, EXPERTS);
    assert_ok(eplb_load_create(&all.after, NULL, scenarios, 1, EXPERTS, NULL), NULL);
    for (int32_t k = 0; k < scenarios; k++) {
        draw_drift(&random, before, after);
        assert_ok(eplb_load_set_row(all.after, k, 0, after, NULL), NULL);
    }
    all.current = plan_of(all.before, all.cluster, NULL, NULL);
    all.fresh = plan_of(all.after, all.cluster, NULL, NULL);
    return all;
}

static void free_large(large *all)
{
    eplb_plan_destroy(&all->current);
    eplb_plan_destroy(&all->fresh);
    eplb_load_destroy(&all->before);
    eplb_load_destroy(&all->after);
    eplb_cluster_destroy(&all->cluster);
}

static eplb_fewest_task large_task(const large *all, double target)
{
    return task_of(eplb_plan_placement(all->current), all->after, all->cluster, target);
}

static int64_t copies_of_fresh_plan(const large *all)
{
    int64_t copies;
    assert_ok(eplb_placement_copies(eplb_plan_placement(all->current),
                                    eplb_plan_placement(all->fresh), 0, &copies, NULL),
              NULL);
    return copies;
}

static eplb_fewest_result solve(const eplb_fewest_task *task, int64_t nodes)
{
    eplb_placement *placement;
    eplb_fewest_result result = solve_fewest(task, nodes, &placement);
    eplb_placement_destroy(&placement);
    return result;
}

static void few_copies_lead_from_the_current_placement_to_the_target(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        large all = make_large(seed, 1);
        eplb_fewest_task task = large_task(&all, TARGET);
        eplb_fewest_result result = solve(&task, NODES);
        assert_int_equal(result.verdict, EPLB_FEWEST_REACHED);
        assert_in_range(result.copies_at_least, 1, result.copies);
        assert_true(result.copies * 4 < copies_of_fresh_plan(&all));
        free_large(&all);
    }
}

static void start_never_gets_worse_and_loses_copies(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        large all = make_large(seed, 1);
        eplb_fewest_task task = large_task(&all, TARGET);
        task.start = eplb_plan_placement(all.fresh);
        int64_t last = copies_of_fresh_plan(&all);
        assert_int_equal(solve(&task, 0).copies, last);
        for (int64_t nodes = 1; nodes <= NODES; nodes *= 1000) {
            eplb_fewest_result result = solve(&task, nodes);
            assert_int_equal(result.verdict, EPLB_FEWEST_REACHED);
            assert_true(result.copies <= last);
            last = result.copies;
        }
        assert_true(last * 5 < copies_of_fresh_plan(&all) * 4);
        free_large(&all);
    }
}

static void several_scenarios_reach_the_target_by_their_objective(void **state)
{
    (void)state;
    for (int32_t objective = 0; objective <= EPLB_OBJECTIVE_SUM; objective++) {
        large all = make_large(7, 3);
        bool is_sum = objective == EPLB_OBJECTIVE_SUM; /* the mix is nearly balanced as it is */
        eplb_fewest_task task = large_task(&all, is_sum ? 1.05 : 1.15);
        task.objective = objective;
        eplb_fewest_result result = solve(&task, NODES);
        assert_int_equal(result.verdict, EPLB_FEWEST_REACHED);
        assert_true(result.copies * 4 < copies_of_fresh_plan(&all));
        free_large(&all);
    }
}

static void target_below_the_bound_is_impossible(void **state)
{
    (void)state;
    double loads[EXPERTS];
    for (int32_t e = 0; e < EXPERTS; e++) {
        loads[e] = e == 0 ? 60.0 : 1.0;
    }
    eplb_load *load = load_of(loads, 1, EXPERTS);
    eplb_cluster *cluster = cluster_of(GPUS, EXPERTS / GPUS, 0);
    eplb_plan *current = plan_of(load, cluster, NULL, NULL);
    eplb_fewest_task task = task_of(eplb_plan_placement(current), load, cluster, TARGET);
    eplb_fewest_result result = solve(&task, NODES);
    assert_int_equal(result.verdict, EPLB_FEWEST_IMPOSSIBLE);
    assert_true(result.imbalance_at_least > TARGET);
    assert_int_equal(result.copies, 0); /* nothing is better than what there is */
    eplb_plan_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void target_that_is_not_reached_gets_the_best_that_was_found(void **state)
{
    (void)state;
    large all = make_large(3, 1);
    eplb_fewest_task task = large_task(&all, 1.0);
    eplb_fewest_result result = solve(&task, NODES);
    assert_int_equal(result.verdict, EPLB_FEWEST_NOT_REACHED);
    double value;
    assert_ok(eplb_placement_objective(eplb_plan_placement(all.fresh), 0, all.after, 0,
                                       EPLB_OBJECTIVE_MEAN_OF_MAX, &value, NULL),
              NULL);
    assert_true(result.imbalance <= value * (1.0 + 1e-12));
    free_large(&all);
}

static void same_task_gives_the_same_placement(void **state)
{
    (void)state;
    large all = make_large(5, 1);
    eplb_fewest_task task = large_task(&all, TARGET);
    eplb_placement *a;
    eplb_placement *b;
    eplb_fewest_result first = solve_fewest(&task, NODES, &a);
    eplb_fewest_result second = solve_fewest(&task, NODES, &b);
    assert_memory_equal(&first, &second, sizeof(first));
    assert_memory_equal(eplb_placement_row(a, 0), eplb_placement_row(b, 0),
                        (size_t)eplb_placement_slots(a) * sizeof(int32_t));
    eplb_placement_destroy(&a);
    eplb_placement_destroy(&b);
    free_large(&all);
}

/* Says yes at the call of this number, and from then on. */
static int stop_at(void *context)
{
    int *calls = context;
    return --*calls <= 0;
}

static void stop_returns_the_best_so_far(void **state)
{
    (void)state;
    large all = make_large(5, 1);
    for (int calls = 1; calls <= 64; calls *= 4) {
        int left = calls;
        eplb_fewest_task task = large_task(&all, TARGET);
        task.stop = stop_at;
        task.stop_context = &left;
        eplb_fewest_result result = solve(&task, NODES);
        assert_true(left > 0 || result.stop == EPLB_STOP_CANCELLED);
        assert_true(calls > 1 || result.stop == EPLB_STOP_CANCELLED);
    }
    free_large(&all);
}

static eplb_status solve_once(const eplb_hooks *hooks, void *context)
{
    const eplb_fewest_task *task = context;
    eplb_ilp_options options;
    eplb_ilp_options_init(&options);
    options.nodes = 20000;
    eplb_ilp *ilp;
    eplb_status status = eplb_ilp_create(&ilp, hooks, &options, NULL);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_error error;
    eplb_placement *placement;
    eplb_fewest_result result = {.struct_size = sizeof(result), .copies = 12345};
    status = eplb_ilp_fewest_copies(ilp, &placement, task, &result, &error);
    assert_true(status == EPLB_OK ? placement != NULL
                                  : placement == NULL && result.copies == 12345);
    eplb_placement_destroy(&placement);
    eplb_ilp_destroy(&ilp);
    return status;
}

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    large all = make_large(5, 2);
    eplb_fewest_task task = large_task(&all, 1.2);
    test_each_failing_allocation(solve_once, &task);
    free_large(&all);
}

TEST_MAIN(cmocka_unit_test(few_copies_lead_from_the_current_placement_to_the_target),
          cmocka_unit_test(start_never_gets_worse_and_loses_copies),
          cmocka_unit_test(several_scenarios_reach_the_target_by_their_objective),
          cmocka_unit_test(target_below_the_bound_is_impossible),
          cmocka_unit_test(target_that_is_not_reached_gets_the_best_that_was_found),
          cmocka_unit_test(same_task_gives_the_same_placement),
          cmocka_unit_test(stop_returns_the_best_so_far),
          cmocka_unit_test(each_failing_allocation_is_reported))
