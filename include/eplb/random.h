/* SPDX-License-Identifier: MIT */
/*
 * The library's own seeded generator: the same seed gives the same numbers on every platform.
 * xoshiro256** of Blackman and Vigna ("Scrambled linear pseudorandom number generators", ACM TOMS
 * 47, 2021), seeded through splitmix64. Not for secrets.
 *
 * Threads: a generator belongs to one thread at a time.
 */
#ifndef EPLB_RANDOM_H
#define EPLB_RANDOM_H

#include <stdint.h>

#include <eplb/export.h>

EPLB_BEGIN_DECLS

typedef struct eplb_random {
    uint64_t state[4];
} eplb_random;

/* Starts the sequence that belongs to `seed` (any value). */
EPLB_API void eplb_random_seed(eplb_random *random, uint64_t seed);

/* The next 64 random bits. */
EPLB_API uint64_t eplb_random_next(eplb_random *random);

/* A number in 0..bound-1, all equally likely; bound 0 gives 0. */
EPLB_API uint64_t eplb_random_below(eplb_random *random, uint64_t bound);

/* A number in [0, 1), a multiple of 2^-53. */
EPLB_API double eplb_random_unit(eplb_random *random);

EPLB_END_DECLS

#endif
