/* SPDX-License-Identifier: MIT */
/*
 * A lower bound of the largest GPU load for two or three slots a GPU, over all counts.
 *
 * Let T be a load that some placement keeps to, and f a function of shares that sums to at most 0
 * over the shares of any GPU that keeps to T. Then, over all replicas,
 *
 *     sum over experts of c_e (1 + f(w_e / c_e)) <= sum of c_e = slots.
 *
 * The left side is smallest when each expert takes the count that is best for it alone. When even
 * that is more than the slots, T is not reached by any counts.
 *
 * Small shares pay for hot ones: f = -g on them, with a g that falls as shares rise, and on a hot
 * share what the partners beside it pay at least. With two slots a share x > T / 2 has one partner
 * of at most T - x, so f(x) = g(T - x). With three it has two, so f(x) is the least g(a) + g(b) of
 * all a + b <= T - x; and f = 0 on the shares between, of which a GPU can hold any.
 *
 * The left side is concave in g, so the best g needs no solver: subgradient steps, each projected
 * onto the falling functions. It is the Lagrangian relaxation of choosing the counts, and with two
 * slots as good as the linear one. What is proven does not depend on how g was found.
 */
#ifndef EPLB_PLANNER_PARTNER_BOUND_H
#define EPLB_PLANNER_PARTNER_BOUND_H

#include "planner/layer.h"

/* The most steps of f on hot shares, and the most on small ones. */
#define EPLB_PARTNER_LEVELS 128
/* The most counts that are told apart for an expert. */
#define EPLB_PARTNER_OPTIONS 64

/* Counts of the experts that differ in the step of f their shares are on, of equal ones the
 * smallest: as f is at least -1, further replicas on the same step cost more. */
typedef struct eplb_partner_bound {
    double *count; /* [experts][most] */
    int32_t *step; /* [experts][most] of f that the share is on: EPLB_PARTNER_LEVELS + k for k > 0
                    * at least hot[k - 1], k < 0 one that pays value[-k - 1], 0 between */
    int32_t *options; /* [experts] how many there are */
    int32_t most;

    bool triples;
    int32_t hot_levels;
    double hot[EPLB_PARTNER_LEVELS]; /* rising shares that need partners */
    int32_t levels;
    double key[EPLB_PARTNER_LEVELS];   /* rising; with two slots the hot share whose partner pays,
                                        * with three - the small share that pays */
    double value[EPLB_PARTNER_LEVELS]; /* what it pays, rising from 0 to 1 */
    int32_t partner[EPLB_PARTNER_LEVELS][2]; /* of a hot share: levels of values, 0: none */
    double kept[EPLB_PARTNER_LEVELS];        /* the best values for the T at hand */
    double slope[EPLB_PARTNER_LEVELS];       /* of the slots that the experts want, by value */
    int32_t run[EPLB_PARTNER_LEVELS];
    double proven_key[EPLB_PARTNER_LEVELS]; /* of the last T that was refuted */
    double proven_value[EPLB_PARTNER_LEVELS];
    int32_t proven_levels;
    double price[2 * EPLB_PARTNER_LEVELS + 1];    /* 1 + f on each step */
    double replicas[2 * EPLB_PARTNER_LEVELS + 1]; /* that the experts choose on each step */

    int32_t most_shares;
    double *share;    /* [most_shares] that an expert can have, hot ones or small ones */
    int32_t *order;   /* [most_shares] */
    int32_t *scratch; /* [most_shares] */
} eplb_partner_bound;

/* NULL in *out where the shape has other than two or three slots on each GPU. */
eplb_status eplb_partner_bound_init(eplb_partner_bound **out, const eplb_hooks *hooks,
                                    const eplb_shape *shape, eplb_error *error);
void eplb_partner_bound_free(eplb_partner_bound **partners, const eplb_hooks *hooks);

/*
 * Raises `low`, a lower bound of the largest GPU load, towards `high`, above which none is looked
 * for, to within the relative tolerance; takes at most so many steps for each load that it tries.
 */
double eplb_layer_partner_bound(eplb_layer *layer, double low, double high, double tolerance,
                                int64_t steps);

#endif
