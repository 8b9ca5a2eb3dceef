/* SPDX-License-Identifier: MIT */
#include <eplb/random.h>

#include "base/random_inline.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void eplb_random_seed(eplb_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        random->state[i] = splitmix64(&seed);
    }
}

uint64_t eplb_random_next(eplb_random *random)
{
    return eplb_random_step(random);
}

uint64_t eplb_random_below(eplb_random *random, uint64_t bound)
{
    if (bound == 0) {
        return 0;
    }
    /* Refuses the 2^64 mod bound lowest values, so that the rest divide evenly. */
    uint64_t threshold = (0 - bound) % bound;
    uint64_t value;
    do {
        value = eplb_random_next(random);
    } while (value < threshold);
    return value % bound;
}

double eplb_random_unit(eplb_random *random)
{
    return (double)(eplb_random_next(random) >> 11) * 0x1p-53;
}
