/* SPDX-License-Identifier: MIT */
/* Rebalances that ask for the fewest copies: never worse than without, and stable. */
#include "fewest.h"
#include "rebalancing.h"

#define LAYERS 3
#define NODES 10000
#define RUNS 6

typedef struct task {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current;
    eplb_ilp *ilp;
    eplb_plan_options planning;
    eplb_rebalance_options options;
} task;

static task make_task(int32_t scenarios, int32_t experts, int32_t gpus, int32_t slots,
                      uint64_t seed)
{
    task t = {.load = skewed_load(scenarios, LAYERS, experts, seed),
              .cluster = cluster_of(gpus, slots, 0),
              .ilp = ilp_of(NODES),
              .options = rebalance_defaults()};
    eplb_plan_options_init(&t.planning);
    t.current = spread_of(t.cluster, LAYERS, experts);
    t.options.beam = 1; /* the search must leave something to be found */
    t.options.fewest = eplb_ilp_fewest_finder(t.ilp);
    return t;
}

static void free_task(task *t)
{
    eplb_load_destroy(&t->load);
    eplb_cluster_destroy(&t->cluster);
    eplb_placement_destroy(&t->current);
    eplb_ilp_destroy(&t->ilp);
}

static eplb_plan *rebalanced(const task *t)
{
    return rebalance_of(t->load, t->cluster, t->current, &t->planning, &t->options);
}

/* Small layers, some of which reach the target, some not, and some that nobody knows about. */
static void for_each_task(void (*check)(task *t))
{
    static const double targets[] = {1.0, 1.02, 1.1, 1.3};
    for (uint64_t run = 0; run < RUNS; run++) {
        task t = run % 2 == 0 ? make_task(1, 7, 4, 3, run) : make_task(2, 12, 4, 4, run);
        t.planning.objective =
            run % 4 == 1 ? EPLB_OBJECTIVE_MAX_OF_MAX : EPLB_OBJECTIVE_MEAN_OF_MAX;
        for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
            t.options.target_imbalance = targets[i];
            check(&t);
        }
        free_task(&t);
    }
}

static int64_t gained;

static void check_not_worse(task *t)
{
    eplb_plan *with = rebalanced(t);
    const eplb_fewest_finder *finder = t->options.fewest;
    t->options.fewest = NULL;
    eplb_plan *without = rebalanced(t);
    t->options.fewest = finder;
    for (int32_t l = 0; l < LAYERS; l++) {
        eplb_rebalance_layer a = rebalance_layer_of(with, l);
        eplb_rebalance_layer b = rebalance_layer_of(without, l);
        assert_int_equal(a.copies_searched, layer_of(without, l).copies);
        assert_true(a.target_reached >= b.target_reached);
        assert_true(!b.target_reached || layer_of(with, l).copies <= a.copies_searched);
        assert_true(b.target_reached ||
                    layer_of(with, l).imbalance_after <= layer_of(without, l).imbalance_after);
        assert_true(a.verdict != EPLB_FEWEST_PROVEN ||
                    a.copies_at_least == layer_of(with, l).copies);
        gained += b.target_reached ? a.copies_searched - layer_of(with, l).copies : 0;
    }
    eplb_plan_destroy(&with);
    eplb_plan_destroy(&without);
}

static void no_layer_is_worse_than_without(void **state)
{
    (void)state;
    gained = 0;
    for_each_task(check_not_worse);
    assert_true(gained > 0);
}

static void check_again(task *t)
{
    eplb_plan *plan = rebalanced(t);
    assert_int_equal(copies_again(plan, t->load, t->cluster, &t->planning, &t->options), 0);
    eplb_plan_destroy(&plan);
}

static void the_same_load_again_copies_nothing(void **state)
{
    (void)state;
    for_each_task(check_again);
}

/* The target is out of reach of so few nodes, and of GLPK. */
static void large_layers_again_copy_nothing(void **state)
{
    (void)state;
    task t = make_task(1, 40, 10, 5, 3);
    t.options.target_imbalance = 1.0;
    eplb_plan *plan = rebalanced(&t);
    assert_int_equal(rebalance_info_of(plan).target_reached, 0);
    assert_int_equal(copies_again(plan, t.load, t.cluster, &t.planning, &t.options), 0);
    eplb_plan_destroy(&plan);
    free_task(&t);
}

static void threads_do_not_change_a_byte(void **state)
{
    (void)state;
    task t = make_task(2, 12, 4, 4, 1);
    t.options.target_imbalance = 1.02;
    eplb_plan *one = rebalanced(&t);
    t.planning.threads = 3;
    eplb_plan *three = rebalanced(&t);
    assert_same_maps(one, three);
    eplb_plan_destroy(&one);
    eplb_plan_destroy(&three);
    free_task(&t);
}

/* Slots of a dead GPU, and another number of them, are what a finder is told of. */
static void a_dead_gpu_is_planned_around(void **state)
{
    (void)state;
    task t = make_task(1, 7, 4, 3, 5);
    assert_ok(eplb_cluster_set_alive(t.cluster, 1, 0, NULL), NULL);
    t.options.target_imbalance = 1.2;
    eplb_plan *plan = rebalanced(&t);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_true(rebalance_layer_of(plan, l).verdict >= 0);
        assert_int_equal(eplb_placement_row(eplb_plan_placement(plan), l)[3], -1);
    }
    eplb_plan_destroy(&plan);
    free_task(&t);
}

static eplb_status rebalance_with(const eplb_hooks *hooks, void *context)
{
    const task *t = context;
    eplb_ilp_options few;
    eplb_ilp_options_init(&few);
    few.nodes = 0;
    eplb_ilp *ilp;
    eplb_status status = eplb_ilp_create(&ilp, hooks, &few, NULL);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_rebalance_options options = t->options;
    options.fewest = eplb_ilp_fewest_finder(ilp);
    eplb_plan *plan;
    status = eplb_rebalance_create(&plan, hooks, t->load, t->cluster, t->current, &t->planning,
                                   &options, NULL);
    eplb_plan_destroy(&plan);
    eplb_ilp_destroy(&ilp);
    return status;
}

static void failing_allocations_leave_nothing_behind(void **state)
{
    (void)state;
    task t = make_task(1, 6, 2, 4, 1);
    t.options.target_imbalance = 1.05;
    t.planning.effort = 1;
    test_each_failing_allocation(rebalance_with, &t);
    free_task(&t);
}

TEST_MAIN(cmocka_unit_test(no_layer_is_worse_than_without),
          cmocka_unit_test(the_same_load_again_copies_nothing),
          cmocka_unit_test(large_layers_again_copy_nothing),
          cmocka_unit_test(threads_do_not_change_a_byte),
          cmocka_unit_test(a_dead_gpu_is_planned_around),
          cmocka_unit_test(failing_allocations_leave_nothing_behind))
