/* SPDX-License-Identifier: MIT */
#include <eplb/random.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

void eplb_random_seed(eplb_random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        random->state[i] = splitmix64(&seed);
    }
}

uint64_t eplb_random_next(eplb_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
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
