/* SPDX-License-Identifier: MIT */
#include "planner/solve.h"

/* Layers of so few slots are cheap to search, and their steps are few and large: they get more and
 * hotter rounds, and end only at their bound. */
#define SMALL_LAYER 64
/* Relative difference below which a load equals its bound. */
#define ROUNDING 1e-12

/* Level 5 has 8 rounds of 5,000 moves, 2 ms or so for a layer that uses them all. Each level
 * doubles the moves. */
eplb_effort eplb_effort_of(int32_t level, int32_t slots)
{
    if (level <= 1) {
        return (eplb_effort){.tolerance = 0.0};
    }
    eplb_effort effort = {
        .budget = {.rounds = 8, .moves_per_round = (int64_t)5000 << level >> 5, .hottest = 4.0},
        .tolerance = 3e-4};
    for (int32_t l = 5; l < level; l++) {
        effort.tolerance /= 4.0;
    }
    if (slots <= SMALL_LAYER) {
        effort.budget.rounds = 32;
        effort.budget.hottest = 64.0;
        effort.tolerance = 0.0;
    }
    return effort;
}

eplb_stop eplb_layer_solve(eplb_layer *layer, const eplb_effort *effort, double *bound)
{
    layer->moves = 0;
    eplb_layer_counts(layer);
    *bound = eplb_layer_bound(layer);
    eplb_layer_pack(layer);
    double optimal = *bound * (1.0 + ROUNDING);
    double enough = *bound * (1.0 + effort->tolerance);
    enough = enough > optimal ? enough : optimal;
    eplb_layer_swap_descent(layer, enough);
    eplb_layer_index(layer);
    double worst = eplb_layer_worst(layer);
    if (worst > enough && effort->budget.rounds > 0) {
        worst = eplb_layer_search(layer, *bound, enough, &effort->budget);
    }
    if (worst <= optimal) {
        return EPLB_STOP_OPTIMAL;
    }
    return effort->budget.rounds > 0 ? EPLB_STOP_EFFORT : EPLB_STOP_LOCAL_OPTIMUM;
}
