/* SPDX-License-Identifier: MIT */
/*
 * A lower bound of the largest GPU load for two slots a GPU, over all counts.
 *
 * Let T be a load that some placement keeps to, and x > T / 2. A replica whose share is x or more
 * needs a GPU without another such replica and a partner of at most T - x. So with f = 1 on shares
 * of at least x, -1 on shares of at most T - x and 0 between, f sums to at most 0 on every GPU; and
 * so does every sum of such f with weights that are not negative: every f that rises and has
 * f(p) = -f(T - p). Hence, over all replicas, for every such f,
 *
 *     sum over experts of c_e (1 + f(w_e / c_e)) <= sum of c_e = slots.
 *
 * The left side is smallest when each expert takes the count that is best for it alone. When even
 * that is more than the slots, T is not reached by any counts. This is the Lagrangian relaxation of
 * choosing the counts under one condition for each x; with the best f it equals the linear
 * relaxation of that program, and finding f needs no solver: subgradient steps, each projected onto
 * the rising functions. What is proven does not depend on how f was found.
 */
#ifndef EPLB_PLANNER_PAIR_BOUND_H
#define EPLB_PLANNER_PAIR_BOUND_H

#include "planner/layer.h"

/* The most steps of f above T / 2. */
#define EPLB_PAIR_LEVELS 128
/* The most counts that are told apart for an expert. */
#define EPLB_PAIR_OPTIONS 64

/* Counts of the experts that differ in the step of f their shares are on, of equal ones the
 * smallest: as f is at least -1, further replicas on the same step cost more. */
typedef struct eplb_pair_bound {
    double *count; /* [experts][most] */
    int32_t *step; /* [experts][most] of f that the share is on: EPLB_PAIR_LEVELS + k for k > 0 at
                    * least threshold[k - 1], k < 0 at most T - threshold[-k - 1], 0 between */
    int32_t *options; /* [experts] how many there are */
    int32_t most;

    int32_t levels;
    double threshold[EPLB_PAIR_LEVELS]; /* rising */
    double value[EPLB_PAIR_LEVELS];     /* f from threshold[k] on, rising from 0 to 1 */
    double kept[EPLB_PAIR_LEVELS];      /* the best values for the T at hand */
    double slope[EPLB_PAIR_LEVELS];     /* of the slots that the experts want, by value */
    int32_t run[EPLB_PAIR_LEVELS];
    double proven_threshold[EPLB_PAIR_LEVELS]; /* of the last T that was refuted */
    double proven_value[EPLB_PAIR_LEVELS];
    int32_t proven_levels;
    double price[2 * EPLB_PAIR_LEVELS + 1];    /* 1 + f on each step */
    double replicas[2 * EPLB_PAIR_LEVELS + 1]; /* that the experts choose on each step */

    int32_t most_shares;
    double *share;    /* [most_shares] above T / 2 that an expert can have */
    int32_t *order;   /* [most_shares] */
    int32_t *scratch; /* [most_shares] */
} eplb_pair_bound;

/* NULL in *out where the shape has other than two slots on a GPU. */
eplb_status eplb_pair_bound_init(eplb_pair_bound **out, const eplb_hooks *hooks,
                                 const eplb_shape *shape, eplb_error *error);
void eplb_pair_bound_free(eplb_pair_bound **pairs, const eplb_hooks *hooks);

/*
 * Raises `low`, a lower bound of the largest GPU load, towards `high`, above which none is looked
 * for, to within the relative tolerance; takes at most so many steps for each load that it tries.
 */
double eplb_layer_pair_bound(eplb_layer *layer, double low, double high, double tolerance,
                             int64_t steps);

#endif
