/* SPDX-License-Identifier: MIT */
/* Traffic of one layer that does not change, seen through windows of noisy steps under the
 * placement in force. */
#ifndef EPLB_TESTS_TRAFFIC_H
#define EPLB_TESTS_TRAFFIC_H

#include "support.h"

#include <eplb/plan.h>
#include <eplb/split.h>
#include <eplb/step_stats.h>
#include <eplb/trigger.h>

#include "stats/router_draw.h"

enum { TOPK = 8, BATCH = 64, STEPS = 100 };

typedef struct traffic {
    eplb_hooks hooks;
    int32_t experts;
    double *popularity; /* [experts] */
    eplb_router_draw draw;
    eplb_load *load; /* of the last window */
    eplb_cluster *cluster;
    eplb_placement *placement; /* in force */
} traffic;

/* Starts under an even spread. */
static inline void traffic_init(traffic *t, int32_t experts, const double *popularity, int32_t gpus,
                                int32_t slots_per_gpu)
{
    *t = (traffic){.experts = experts};
    eplb_hooks_init(&t->hooks);
    t->popularity = malloc((size_t)experts * sizeof(*popularity));
    memcpy(t->popularity, popularity, (size_t)experts * sizeof(*popularity));
    assert_ok(eplb_router_draw_init(&t->draw, &t->hooks, experts, TOPK, 3, t->popularity, NULL),
              NULL);
    assert_ok(eplb_load_create(&t->load, NULL, 1, 1, experts, NULL), NULL);
    assert_ok(eplb_cluster_create(&t->cluster, NULL, gpus, slots_per_gpu, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&t->placement, NULL, t->cluster, 1, experts, NULL), NULL);
    assert_ok(eplb_placement_spread(t->placement, 0, NULL), NULL);
}

static inline void traffic_free(traffic *t)
{
    eplb_router_draw_free(&t->draw, &t->hooks);
    free(t->popularity);
    eplb_load_destroy(&t->load);
    eplb_cluster_destroy(&t->cluster);
    eplb_placement_destroy(&t->placement);
}

/* One window of steps, as the trigger is told of it. */
static inline eplb_observation traffic_observe(traffic *t)
{
    eplb_step_stats *stats;
    double *sums = calloc((size_t)t->experts, sizeof(*sums));
    double *row = calloc((size_t)t->experts, sizeof(*row));
    uint32_t *counts = calloc((size_t)t->experts, sizeof(*counts));
    assert_ok(eplb_step_stats_create(&stats, NULL, t->placement, NULL, NULL), NULL);
    for (int32_t step = 0; step < STEPS; step++) {
        memset(counts, 0, (size_t)t->experts * sizeof(*counts));
        eplb_router_draw_tokens(&t->draw, BATCH, counts);
        for (int32_t e = 0; e < t->experts; e++) {
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
    free(sums);
    free(row);
    free(counts);
    return (eplb_observation){.struct_size = sizeof(eplb_observation),
                              .persistent = split.persistent,
                              .standard_error = split.standard_error,
                              .seen = split.seen,
                              .hottest_expert = layer.hottest_experts[0],
                              .hottest_ratio = layer.hottest_ratios[0]};
}

/* Puts a plan for t->load in force. */
static inline void traffic_replan(traffic *t)
{
    eplb_plan *plan;
    assert_ok(eplb_plan_create(&plan, NULL, t->load, t->cluster, NULL, NULL, NULL), NULL);
    eplb_placement_destroy(&t->placement);
    assert_ok(eplb_placement_clone(&t->placement, NULL, eplb_plan_placement(plan), NULL), NULL);
    eplb_plan_destroy(&plan);
}

#endif
