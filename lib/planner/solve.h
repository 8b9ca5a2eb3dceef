/* SPDX-License-Identifier: MIT */
/* One layer from its loads to its placement. */
#ifndef EPLB_PLANNER_SOLVE_H
#define EPLB_PLANNER_SOLVE_H

#include "planner/layer.h"

#include <eplb/plan.h>

/* What an effort level may spend on a layer. */
typedef struct eplb_effort {
    eplb_budget budget;
    double tolerance; /* relative, above the bound: so much is good enough */
} eplb_effort;

/* Of a level 1..9 for layers of so many slots. */
eplb_effort eplb_effort_of(int32_t level, int32_t slots);

/* Raises a lower bound of the largest GPU load, of which a placement has `worst`, by a longer proof
 * where there is one: with two or three slots a GPU. Needs only what eplb_layer_init_counts makes.
 */
double eplb_layer_raise_bound(eplb_layer *layer, double bound, double worst,
                              const eplb_effort *effort);

/* Plans the layer whose loads are set and not all zero; slot_expert is the result. `bound` gets the
 * lower bound of the largest GPU load. */
eplb_stop eplb_layer_solve(eplb_layer *layer, const eplb_effort *effort, double *bound);

#endif
