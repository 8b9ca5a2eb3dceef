/* SPDX-License-Identifier: MIT */
#include "planner/solve.h"

#include "planner/partner_bound.h"

/* Layers of so few slots are cheap to search, and their steps are few and large: they get more and
 * hotter rounds, and end only at their bound. */
#define SMALL_LAYER 64
/* A search on counts alone makes so many moves in the time of one of the search on placements. */
#define PAIR_MOVES 4

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
        effort.budget.hottest = 1024.0;
        effort.tolerance = 0.0;
    }
    return effort;
}

/* With three slots a GPU the search only has to find good counts, in this part of its rounds; the
 * packing has so many times its rounds. */
#define COUNT_PART 4
#define FILL_ROUNDS 2
/* A search for a bound takes one step for so many moves of a round, and goes no closer than this,
 * relatively. */
#define MOVES_PER_STEP 64
#define CLOSEST 1e-6

/* Packs the counts at hand and mends by swaps; returns the largest load. */
static double build(eplb_layer *layer, double enough)
{
    (void)eplb_layer_pack(layer); /* it fits */
    eplb_layer_swap_descent(layer, enough);
    eplb_layer_index(layer);
    return eplb_layer_worst(layer);
}

static void swap_arrays(eplb_layer *layer)
{
    int32_t *placement = layer->slot_expert;
    layer->slot_expert = layer->start;
    layer->start = placement;
}

static void exchange_start(eplb_layer *layer)
{
    swap_arrays(layer);
    eplb_layer_index(layer);
}

/* Builds a placement of the counts at hand beside the one at hand, whose largest load is `worst`.
 * The better one is at hand afterwards and the other in layer->start. */
static void compare_with_build(eplb_layer *layer, double enough, double *worst)
{
    swap_arrays(layer);
    double other = build(layer, enough);
    if (other < *worst) {
        *worst = other;
    } else {
        exchange_start(layer);
    }
}

/* False when there is nothing to try: with one replica for each hot expert, none may be too hot. */
static bool try_fillers(eplb_layer *layer, double enough, double *worst)
{
    double largest = 0.0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        largest = layer->load[e] > largest ? layer->load[e] : largest;
    }
    if (largest >= *worst || !eplb_layer_filler_counts(layer)) {
        return false;
    }
    compare_with_build(layer, enough, worst);
    return true;
}

/* With two slots a GPU the counts are all there is to search. */
static bool try_pairs(eplb_layer *layer, double bound, double enough, const eplb_budget *budget,
                      double *worst)
{
    eplb_budget more = *budget;
    more.moves_per_round *= PAIR_MOVES;
    if (!eplb_layer_pair_counts(layer, bound, enough, &more)) {
        return false;
    }
    compare_with_build(layer, enough, worst);
    return true;
}

/* With three slots a GPU the search gets stuck before it has balanced what its counts allow. */
static double search_triples(eplb_layer *layer, double bound, double enough,
                             const eplb_budget *budget)
{
    eplb_budget part = *budget;
    part.rounds = budget->rounds / COUNT_PART;
    double found = eplb_layer_search(layer, bound, enough, &part);
    part.rounds = budget->rounds * FILL_ROUNDS;
    double filled = eplb_layer_fill(layer, bound, enough, &part);
    if (filled < found) {
        return filled;
    }
    part.rounds = budget->rounds - budget->rounds / COUNT_PART;
    return eplb_layer_search(layer, bound, enough, &part);
}

static double search(eplb_layer *layer, double bound, double enough, const eplb_budget *budget)
{
    bool is_small = layer->shape->slots <= SMALL_LAYER;
    return eplb_shape_has_triples(layer->shape) && !is_small
               ? search_triples(layer, bound, enough, budget)
               : eplb_layer_search(layer, bound, enough, budget);
}

double eplb_layer_raise_bound(eplb_layer *layer, double bound, double worst,
                              const eplb_effort *effort)
{
    if (layer->partners == NULL) {
        return bound;
    }
    double tolerance = effort->tolerance > CLOSEST ? effort->tolerance : CLOSEST;
    int64_t steps = effort->budget.moves_per_round / MOVES_PER_STEP;
    return eplb_layer_partner_bound(layer, bound, worst, tolerance, steps);
}

/* With three slots a GPU nearly all layers come closer to the simple bound than this, relatively:
 * the time of a longer proof would be lost on them. */
#define FAR 2e-3

/* How large a load is optimal but for rounding, or within a tolerance of the bound. */
static double within(double bound, double tolerance)
{
    return bound * (1.0 + (tolerance > EPLB_ROUNDING ? tolerance : EPLB_ROUNDING));
}

eplb_stop eplb_layer_solve(eplb_layer *layer, const eplb_effort *effort, double *bound)
{
    layer->moves = 0;
    eplb_layer_counts(layer);
    *bound = eplb_layer_bound(layer);
    double enough = within(*bound, effort->tolerance);
    double worst = build(layer, enough);
    bool has_other = worst > enough && try_fillers(layer, enough, &worst);
    if (effort->budget.rounds == 0) {
        return worst <= within(*bound, 0.0) ? EPLB_STOP_OPTIMAL : EPLB_STOP_LOCAL_OPTIMUM;
    }
    if (worst > enough && eplb_shape_has_pairs(layer->shape)) {
        *bound = eplb_layer_raise_bound(layer, *bound, worst, effort);
        enough = within(*bound, effort->tolerance);
    }
    bool is_small = layer->shape->slots <= SMALL_LAYER;
    bool searched = worst > enough && try_pairs(layer, *bound, enough, &effort->budget, &worst);
    if (worst > enough && (!searched || is_small)) {
        worst = search(layer, *bound, enough, &effort->budget);
    }
    if (worst > enough && has_other && is_small) {
        exchange_start(layer);
        double other = eplb_layer_search(layer, *bound, enough, &effort->budget);
        if (other < worst) {
            worst = other;
        } else {
            exchange_start(layer);
        }
    }
    if (worst > within(*bound, FAR) && eplb_shape_has_triples(layer->shape)) {
        *bound = eplb_layer_raise_bound(layer, *bound, worst, effort);
    }
    return worst <= within(*bound, 0.0) ? EPLB_STOP_OPTIMAL : EPLB_STOP_EFFORT;
}
