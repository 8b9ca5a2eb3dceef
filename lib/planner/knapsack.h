/* SPDX-License-Identifier: MIT */
/* The multiple-choice knapsack: one choice of each group, the cheapest that fit together. */
#ifndef EPLB_PLANNER_KNAPSACK_H
#define EPLB_PLANNER_KNAPSACK_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

typedef struct eplb_choice {
    int64_t slots; /* >= 0 */
    double cost;   /* finite */
} eplb_choice;

/*
 * Fills chosen [groups] with the numbers, within their groups, of choices whose slots sum to at
 * most `capacity` and whose costs sum to the least; of equal costs the fewest slots. Group g has
 * the choices first[g]..first[g+1]-1, at least one. Exact but for the rounding of the sums, which
 * run over the groups in order. EPLB_ERROR_INFEASIBLE when nothing fits.
 *
 * Cost: O(choices * (spare + 1)), with spare the capacity that the smallest choices leave; memory
 * O(groups * (spare + 1)). Both are less where states dominate others.
 */
eplb_status eplb_knapsack_solve(const eplb_hooks *hooks, const eplb_choice *choices,
                                const int32_t *first, int32_t groups, int64_t capacity,
                                int32_t *chosen, eplb_error *error);

#endif
