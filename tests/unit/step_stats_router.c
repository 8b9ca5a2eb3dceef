/* SPDX-License-Identifier: MIT */
/* Steps drawn by a router, against what is known about balls in bins. */
#include "step_stats.h"

#include <eplb/router.h>

#include "stats/router_draw.h"

#define EXPERTS 256
#define TOPK 8
#define STEPS 4000

/* 64 tokens of a uniform router over 8 ranks: as simulated, and as published in the table of
 * eplb/router.h's measures (mean 1.18, 99th percentile 1.36, padding 30.3 and 28). */
static void uniform_steps_agree_with_the_simulated_router(void **state)
{
    (void)state;
    const int32_t batch = 64;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_router_draw router;
    assert_ok(eplb_router_draw_init(&router, &hooks, EXPERTS, TOPK, 5, NULL, NULL), NULL);
    eplb_step_stats_options options = with_topk(TOPK);
    eplb_placement *placement = make_placement(make_cluster(8, EXPERTS / 8, 0), 1, EXPERTS);
    assert_ok(eplb_placement_spread(placement, 0, NULL), NULL);
    eplb_step_stats *stats = stats_of(placement, &options);
    for (int64_t step = 0; step < STEPS; step++) {
        uint32_t drawn[EXPERTS] = {0};
        double counts[EXPERTS];
        eplb_router_draw_tokens(&router, batch, drawn);
        for (int32_t e = 0; e < EXPERTS; e++) {
            counts[e] = drawn[e];
        }
        add(stats, step, 0, counts);
    }
    eplb_router_draw_free(&router, &hooks);
    eplb_layer_stats layer = layer_of(stats, 0);
    eplb_router_result simulated = {.struct_size = sizeof(simulated)};
    assert_ok(eplb_router_simulate(&simulated, NULL, NULL, batch, NULL), NULL);
    assert_close(layer.imbalance_mean, simulated.imbalance_mean, 0.01);
    assert_close(layer.imbalance_p99, simulated.imbalance_p99, 0.05);
    assert_close(layer.padded_worst_rank, simulated.padded_worst_rank, 0.03 * 30.3);
    assert_close(layer.padded_ratio, simulated.padded_ratio, 0.03 * 28.0);
    assert_close(layer.experts_touched, simulated.experts_touched, 0.005);
    assert_close(layer.imbalance_mean, 1.18, 0.02);
    assert_close(layer.imbalance_p99, 1.36, 0.05);
    assert_close(layer.padded_worst_rank, 30.3, 0.03 * 30.3);
    assert_true(layer.tokens == batch);
    assert_int_equal(layer.impossible_steps, 0);
    eplb_step_stats_destroy(&stats);
}

TEST_MAIN(cmocka_unit_test(uniform_steps_agree_with_the_simulated_router))
