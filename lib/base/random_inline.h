/* SPDX-License-Identifier: MIT */
/* The generator's step, inline for inner loops. */
#ifndef EPLB_BASE_RANDOM_INLINE_H
#define EPLB_BASE_RANDOM_INLINE_H

#include <eplb/random.h>

static inline uint64_t eplb_rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline uint64_t eplb_random_step(eplb_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = eplb_rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = eplb_rotate_left(s[3], 45);
    return result;
}

#endif
