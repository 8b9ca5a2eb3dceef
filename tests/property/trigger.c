/* SPDX-License-Identifier: MIT */
/* A day of traffic that does not change, seen through windows of noisy steps: the trigger asks for
 * a plan when there is none yet, and then keeps still. */
#include "support.h"

#include <eplb/plan.h>
#include <eplb/split.h>
#include <eplb/step_stats.h>
#include <eplb/trigger.h>

#include "stats/router_draw.h"

enum {
    EXPERTS = 64,
    GPUS = 8,
    SLOTS_PER_GPU = 10,
    TOPK = 8,
    BATCH = 64,
    STEPS = 100,
    MINUTES = 1440
};

typedef struct traffic {
    eplb_hooks hooks;
    double popularity[EXPERTS];
    eplb_router_draw draw;
    eplb_load *load; /* of the last window */
    eplb_cluster *cluster;
    eplb_placement *placement;
} traffic;

static int setup(void **state)
{
    traffic *t = calloc(1, sizeof(*t));
    eplb_hooks_init(&t->hooks);
    eplb_random random;
    eplb_random_seed(&random, 11);
    for (int32_t e = 0; e < EXPERTS; e++) { /* the hottest some 5 times the fair share */
        double unit = eplb_random_unit(&random);
        t->popularity[e] = 1.0 / (0.2 + unit);
    }
    assert_ok(eplb_router_draw_init(&t->draw, &t->hooks, EXPERTS, TOPK, 3, t->popularity, NULL),
              NULL);
    assert_ok(eplb_load_create(&t->load, NULL, 1, 1, EXPERTS, NULL), NULL);
    assert_ok(eplb_cluster_create(&t->cluster, NULL, GPUS, SLOTS_PER_GPU, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&t->placement, NULL, t->cluster, 1, EXPERTS, NULL), NULL);
    assert_ok(eplb_placement_spread(t->placement, 0, NULL), NULL);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    traffic *t = *state;
    eplb_router_draw_free(&t->draw, &t->hooks);
    eplb_load_destroy(&t->load);
    eplb_cluster_destroy(&t->cluster);
    eplb_placement_destroy(&t->placement);
    free(t);
    return 0;
}

/* One window of steps under the placement in force, as the trigger is told of it. */
static eplb_observation observe_window(traffic *t)
{
    eplb_step_stats *stats;
    double sums[EXPERTS] = {0};
    assert_ok(eplb_step_stats_create(&stats, NULL, t->placement, NULL, NULL), NULL);
    for (int32_t step = 0; step < STEPS; step++) {
        uint32_t counts[EXPERTS] = {0};
        double row[EXPERTS];
        eplb_router_draw_tokens(&t->draw, BATCH, counts);
        for (int32_t e = 0; e < EXPERTS; e++) {
            row[e] = counts[e];
            sums[e] += counts[e];
        }
        assert_ok(eplb_step_stats_add(stats, step, 0, row, NULL), NULL);
    }
    assert_ok(eplb_load_set_row(t->load, 0, 0, sums, NULL), NULL);
    eplb_split split = {.struct_size = sizeof(split)};
    eplb_layer_stats layer = {.struct_size = sizeof(layer)};
    assert_ok(eplb_step_stats_split(stats, 0, &split, NULL), NULL);
    assert_ok(eplb_step_stats_get_layer(stats, 0, &layer, NULL), NULL);
    eplb_step_stats_destroy(&stats);
    return (eplb_observation){.struct_size = sizeof(eplb_observation),
                              .persistent = split.persistent,
                              .standard_error = split.standard_error,
                              .seen = split.seen,
                              .hottest_expert = layer.hottest_experts[0],
                              .hottest_ratio = layer.hottest_ratios[0]};
}

static void plan_for_last_window(traffic *t)
{
    eplb_plan *plan;
    assert_ok(eplb_plan_create(&plan, NULL, t->load, t->cluster, NULL, NULL, NULL), NULL);
    eplb_placement_destroy(&t->placement);
    assert_ok(eplb_placement_clone(&t->placement, NULL, eplb_plan_placement(plan), NULL), NULL);
    eplb_plan_destroy(&plan);
}

static void day_of_the_same_traffic_needs_one_plan(void **state)
{
    traffic *t = *state;
    eplb_trigger *trigger;
    assert_ok(eplb_trigger_create(&trigger, NULL, NULL, NULL), NULL);
    int plans = 0;
    double noisiest = 1.0;
    for (int minute = 0; minute < MINUTES; minute++) {
        eplb_observation seen = observe_window(t);
        eplb_verdict verdict = {.struct_size = sizeof(verdict)};
        assert_ok(eplb_trigger_observe(trigger, 60.0 * minute, &seen, &verdict, NULL), NULL);
        if (minute == 0) {
            assert_true(seen.persistent >
                        1.2); /* the even spread is uneven, and that is no noise */
            assert_true(seen.hottest_ratio > 2.0);
        }
        noisiest = plans > 0 ? fmax(noisiest, seen.seen) : noisiest;
        if (verdict.decision == EPLB_DECISION_REBALANCE) {
            plan_for_last_window(t);
            assert_ok(eplb_trigger_rebalanced(trigger, 60.0 * minute, NULL), NULL);
            plans++;
        }
    }
    assert_true(noisiest > 1.1); /* what was seen alone would have fired */
    assert_true(plans == 1 || plans == 2);
    eplb_trigger_destroy(&trigger);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(day_of_the_same_traffic_needs_one_plan, setup, teardown))
