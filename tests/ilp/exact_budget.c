/* SPDX-License-Identifier: MIT */
/* Exact searches that end early: for want of nodes, when asked to, without memory. */
#include "random_layer.h"

static void no_budget_gives_the_start_back(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, 100)
    {
        random_layer layer;
        int32_t placement[BRUTE_SLOTS];
        if (!draw_layer(&layer, seed)) {
            continue;
        }
        eplb_ilp_exact_result result = solve_exactly(&layer.t, 0, placement);
        assert_memory_equal(placement, layer.t.placement,
                            (size_t)layer.t.task.slots * sizeof(*placement));
        assert_true(result.value == layer.t.task.value);
        assert_true(result.lower_bound <= layer.brute.best * (1.0 + 1e-12));
    }
}

static void bounds_of_small_budgets_are_not_above_the_optimum(void **state)
{
    (void)state;
    int unfinished = 0;
    FOR_EACH_SEED(seed, 300)
    {
        random_layer layer;
        int32_t placement[BRUTE_SLOTS];
        if (!draw_layer(&layer, seed)) {
            continue;
        }
        bool proven = false;
        for (int64_t nodes = 1; !proven; nodes += 1 + nodes / 8) {
            eplb_ilp_exact_result result = solve_exactly(&layer.t, nodes, placement);
            assert_true(result.lower_bound <= layer.brute.best * (1.0 + 1e-12));
            assert_true(result.value >= layer.brute.best * (1.0 - 1e-12));
            assert_true(result.lower_bound >= layer.t.task.lower_bound * (1.0 - 1e-12));
            unfinished += result.proven ? 0 : 1;
            proven = result.proven;
        }
    }
    print_message("%d unfinished searches\n", unfinished);
    assert_true(unfinished > 400);
}

/* A layer whose proof takes some ten thousand nodes. */
static void make_long_layer(layer_task *t)
{
    static const double row[] = {911, 640, 433, 390, 287, 201, 155, 84, 77, 52};
    eplb_load *load = load_of(row, 1, 10);
    eplb_cluster *cluster = cluster_of(7, 3, 0);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 1;
    assert_true(layer_task_make(t, load, cluster, &options));
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void stop_ends_a_search_with_the_best_so_far(void **state)
{
    (void)state;
    layer_task t;
    make_long_layer(&t);
    int32_t placement[21];
    eplb_ilp_exact_result best = solve_exactly(&t, -1, placement);
    assert_true(best.proven);
    assert_true(best.value < t.task.value);
    int64_t questions = t.asked;
    print_message("%lld nodes, %lld questions\n", (long long)best.nodes, (long long)questions);
    assert_true(questions > 5);
    for (t.stop_at = 1; t.stop_at <= questions; t.stop_at++) {
        t.asked = 0;
        eplb_ilp_exact_result result = solve_exactly(&t, -1, placement);
        assert_int_equal(t.asked, t.stop_at); /* and not again */
        assert_false(result.proven);
        assert_true(result.nodes < best.nodes);
        assert_true(result.lower_bound <= best.value);
        assert_true(t.stop_at > 1 || result.value == t.task.value);
    }
}

/* Every scenario has to be looked at for a bound of counts: the same scenario eight times takes the
 * same steps, and each of them longer. */
static void bounds_of_many_scenarios_count_for_more(void **state)
{
    (void)state;
    static const double row[] = {911, 640, 433, 390, 287, 201, 155, 84,
                                 77,  52,  40,  33,  30,  21,  9,   2};
    eplb_load *load = load_of(row, 1, 16);
    eplb_cluster *cluster = cluster_of(16, 2, 0);
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = 1;
    layer_task t;
    int32_t placement[32];
    assert_true(layer_task_make(&t, load, cluster, &options));
    eplb_ilp_exact_result once = solve_exactly(&t, -1, placement);
    for (int32_t k = 0; k < 8; k++) {
        memcpy(t.loads + 16 * k, t.loads, 16 * sizeof(*t.loads));
        t.weights[k] = 1.0 / 8.0;
    }
    t.task.scenarios = 8;
    eplb_ilp_exact_result eight = solve_exactly(&t, -1, placement);
    print_message("%lld nodes, %lld\n", (long long)once.nodes, (long long)eight.nodes);
    assert_close(eight.value, once.value, 1e-12);
    assert_true(eight.nodes > once.nodes + once.nodes / 3);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void same_task_gives_the_same_result(void **state)
{
    (void)state;
    layer_task t;
    make_long_layer(&t);
    int32_t first[21];
    int32_t again[21];
    for (int64_t nodes = 1; nodes < 100000; nodes *= 4) {
        eplb_ilp_exact_result a = solve_exactly(&t, nodes, first);
        eplb_ilp_exact_result b = solve_exactly(&t, nodes, again);
        assert_memory_equal(first, again, sizeof(first));
        assert_true(a.value == b.value && a.lower_bound == b.lower_bound);
        assert_int_equal(a.nodes, b.nodes);
    }
}

static eplb_status solve_with(const eplb_hooks *hooks, void *context)
{
    layer_task *t = context;
    int32_t placement[21];
    eplb_error error;
    eplb_ilp_exact_result result = {.placement = placement};
    return eplb_ilp_exact(hooks, &t->task, 1000, &result, &error);
}

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    layer_task t;
    make_long_layer(&t);
    test_each_failing_allocation(solve_with, &t);
}

/* The largest that are searched at all: as many experts as a set has bits, as many slots. */
static void largest_layers_end_with_their_budget(void **state)
{
    (void)state;
    static const int32_t shapes[][2] = {{8, 8}, {8, 64}, {9, 56}, {32, 16}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        eplb_random random;
        eplb_random_seed(&random, i);
        double row[64];
        draw_loads(&random, row, 64);
        eplb_load *load = load_of(row, 1, 64);
        eplb_cluster *cluster = cluster_of(shapes[i][0], shapes[i][1], 0);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = 1;
        layer_task t;
        int32_t placement[512];
        assert_true(layer_task_make(&t, load, cluster, &options));
        eplb_ilp_exact_result result = solve_exactly(&t, 5000, placement);
        assert_true(result.proven || result.nodes == 5000);
        eplb_cluster_destroy(&cluster);
        eplb_load_destroy(&load);
    }
}

TEST_MAIN(seeded_test(no_budget_gives_the_start_back),
          seeded_test(bounds_of_small_budgets_are_not_above_the_optimum),
          cmocka_unit_test(stop_ends_a_search_with_the_best_so_far),
          cmocka_unit_test(largest_layers_end_with_their_budget),
          cmocka_unit_test(bounds_of_many_scenarios_count_for_more),
          cmocka_unit_test(same_task_gives_the_same_result),
          cmocka_unit_test(each_failing_allocation_is_reported))
