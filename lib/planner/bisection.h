/* SPDX-License-Identifier: MIT */
/* How the rounds of a search for a small largest load follow each other: their thresholds (at or
 * above `high` is reached, at or below `low` was not), their heat and where they start. */
#ifndef EPLB_PLANNER_BISECTION_H
#define EPLB_PLANNER_BISECTION_H

#include <stdbool.h>
#include <stdint.h>

/* Each round starts so much hotter than the one before, up to the budget's hottest. */
#define EPLB_HEATING 4.0
/* So many rounds go on from where the last one ended before one starts at the best again. */
#define EPLB_ROUNDS_ON 4

typedef struct eplb_bisection {
    double bound; /* no load is below it */
    double low;
    double high;
    int32_t round;
} eplb_bisection;

/*
 * The next threshold. The first is lower than the middle: most layers come close to their bound.
 * When the interval is exhausted it is opened again, for a round that failed proves nothing.
 */
double eplb_bisection_next(eplb_bisection *self);

/* After a round for `threshold`: the largest load of the best placement, and whether the threshold
 * itself was reached. */
void eplb_bisection_update(eplb_bisection *self, double threshold, double best, bool reached);

#endif
