/* SPDX-License-Identifier: MIT */
#include "planner/solve.h"

/* Layers of so few slots are searched until they meet their bound or the budget is spent. */
#define SMALL_LAYER 64
/* Relative difference below which a load equals its bound. */
#define ROUNDING 1e-12

eplb_effort eplb_effort_of(int32_t level)
{
    if (level <= 1) {
        return (eplb_effort){.budget = {0, 0}, .tolerance = 0.0};
    }
    /* Level 5: 8 rounds of 5,000 moves, 2 ms or so for a layer that uses them all. Each level
     * doubles the budget. */
    int64_t moves = (int64_t)5000 << level >> 5;
    double tolerance = 3e-4;
    for (int32_t l = 5; l < level; l++) {
        tolerance /= 4.0;
    }
    return (eplb_effort){.budget = {.rounds = 8, .moves_per_round = moves}, .tolerance = tolerance};
}

eplb_stop eplb_layer_solve(eplb_layer *layer, const eplb_effort *effort, double *bound)
{
    layer->moves = 0;
    eplb_layer_counts(layer);
    *bound = eplb_layer_bound(layer);
    eplb_layer_pack(layer);
    double optimal = *bound * (1.0 + ROUNDING);
    eplb_layer_swap_descent(layer, optimal);
    eplb_layer_index(layer);
    double worst = eplb_layer_worst(layer);
    double enough = optimal;
    if (layer->shape->slots > SMALL_LAYER) {
        enough = *bound * (1.0 + effort->tolerance);
    }
    if (worst > enough && effort->budget.rounds > 0) {
        worst = eplb_layer_search(layer, *bound, enough, &effort->budget);
    }
    if (worst <= optimal) {
        return EPLB_STOP_OPTIMAL;
    }
    return effort->budget.rounds > 0 ? EPLB_STOP_EFFORT : EPLB_STOP_LOCAL_OPTIMUM;
}
