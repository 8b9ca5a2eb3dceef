/* SPDX-License-Identifier: MIT */
/* Random choices of the searches: seeded, cheap, the same everywhere. */
#ifndef EPLB_PLANNER_DICE_H
#define EPLB_PLANNER_DICE_H

#include <eplb/cluster.h>

#include "base/random_inline.h"

/* As many as the largest bound, EPLB_MAX_SLOTS, needs. */
#define EPLB_DICE_BITS 21

typedef struct eplb_dice {
    eplb_random random;
    uint64_t bits; /* drawn and not yet picked from */
    int32_t bits_left;
} eplb_dice;

/* A number in 0..bound-1, bound at most EPLB_MAX_SLOTS: three picks to a step of the generator. Not
 * quite even for large bounds, which a search does not mind. */
static inline int32_t eplb_dice_pick(eplb_dice *dice, int32_t bound)
{
    if (dice->bits_left < EPLB_DICE_BITS) {
        dice->bits = eplb_random_step(&dice->random);
        dice->bits_left = 64;
    }
    uint64_t drawn = dice->bits & ((1u << EPLB_DICE_BITS) - 1);
    dice->bits >>= EPLB_DICE_BITS;
    dice->bits_left -= EPLB_DICE_BITS;
    return (int32_t)((drawn * (uint64_t)bound) >> EPLB_DICE_BITS);
}

/*
 * How much worse a move may be to be accepted at a temperature: even between nothing and twice the
 * temperature. As good as the exponential rule of simulated annealing here, and no libm decides.
 */
static inline double eplb_dice_tolerate(eplb_dice *dice, double temperature)
{
    double unit = (double)(eplb_random_step(&dice->random) >> 11) * 0x1p-53;
    return 2.0 * unit * temperature;
}

#endif
