/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/random.h>

/* The first numbers from state 1, 2, 3, 4 as other implementations of xoshiro256** publish them. */
static void generator_is_xoshiro256_starstar(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        11520u,
        0u,
        1509978240u,
        1215971899390074240u,
        1216172134540287360u,
        607988272756665600u,
        16172922978634559625u,
        8476171486693032832u,
        10595114339597558777u,
        2904607092377533576u,
    };
    eplb_random random = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(eplb_random_next(&random) == expected[i]);
    }
}

/* Seed, the state that splitmix64 makes of it, the first and the thousandth number: computed with
 * Python's integers from the published algorithms. */
typedef struct known_sequence {
    uint64_t seed;
    uint64_t state[4];
    uint64_t first[4];
    uint64_t thousandth;
} known_sequence;

static const known_sequence known_sequences[] = {
    {0,
     {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu},
     {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u, 0x6aa594f1262d2d2cu},
     0x7aac8c483a2edd2fu},
    {2026,
     {0xdb9c559891948d23u, 0x78bc927ded35455du, 0xaad71e75cde2b88eu, 0x6280938ad5a104f2u},
     {0x92e011592e98ae15u, 0x489f37946d6d18d8u, 0xd0009e279d9cdedau, 0xe4c7dca786d56702u},
     0xbde709ab879f8f00u},
    {UINT64_MAX,
     {0xe4d971771b652c20u, 0xe99ff867dbf682c9u, 0x382ff84cb27281e9u, 0x6d1db36ccba982d2u},
     {0x8f5520d52a7ead08u, 0xc476a018caa1802du, 0x81de31c0d260469eu, 0xbf658d7e065f3c2fu},
     0xc3c93ea5cde434ccu},
};

static void seed_gives_the_known_sequence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(known_sequences) / sizeof(known_sequences[0]); i++) {
        const known_sequence *known = &known_sequences[i];
        eplb_random random;
        eplb_random_seed(&random, known->seed);
        assert_memory_equal(random.state, known->state, sizeof(known->state));
        uint64_t value = 0;
        for (int n = 0; n < 1000; n++) {
            value = eplb_random_next(&random);
            assert_true(n >= 4 || value == known->first[n]);
        }
        assert_true(value == known->thousandth);
    }
}

static void unit_is_the_top_53_bits(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 0);
    assert_true(eplb_random_unit(&random) == 0.6012629994179048);
    assert_true(eplb_random_unit(&random) == 0.7477740925472398);
    assert_true(eplb_random_unit(&random) == 0.10301998939503632);
}

static void unit_stays_below_one_and_spreads_evenly(void **state)
{
    (void)state;
    enum { BINS = 16, DRAWS = 160000 };
    int hits[BINS] = {0};
    eplb_random random;
    eplb_random_seed(&random, 7);
    for (int i = 0; i < DRAWS; i++) {
        double value = eplb_random_unit(&random);
        assert_true(value >= 0.0 && value < 1.0);
        hits[(int)(value * BINS)]++;
    }
    for (int b = 0; b < BINS; b++) {
        /* Five standard deviations of a bin's 10000 hits are 484. */
        assert_in_range(hits[b], DRAWS / BINS - 500, DRAWS / BINS + 500);
    }
}

static void below_nothing_and_below_one_are_zero(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 3);
    for (int i = 0; i < 100; i++) {
        assert_true(eplb_random_below(&random, 0) == 0);
        assert_true(eplb_random_below(&random, 1) == 0);
    }
}

static void below_reaches_every_number_equally_often(void **state)
{
    (void)state;
    enum { BOUND = 7, DRAWS = 70000 };
    int hits[BOUND] = {0};
    eplb_random random;
    eplb_random_seed(&random, 11);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = eplb_random_below(&random, BOUND);
        assert_true(value < BOUND);
        hits[value]++;
    }
    for (int v = 0; v < BOUND; v++) {
        assert_in_range(hits[v], DRAWS / BOUND - 500, DRAWS / BOUND + 500);
    }
}

/* With this bound a plain remainder would give the lower third twice as often as the rest. */
static void below_a_huge_bound_has_no_bias(void **state)
{
    (void)state;
    enum { DRAWS = 30000 };
    const uint64_t third = (uint64_t)1 << 62;
    const uint64_t bound = 3 * third;
    int hits[3] = {0};
    eplb_random random;
    eplb_random_seed(&random, 13);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t value = eplb_random_below(&random, bound);
        assert_true(value < bound);
        hits[value / third]++;
    }
    for (int t = 0; t < 3; t++) {
        assert_in_range(hits[t], DRAWS / 3 - 500, DRAWS / 3 + 500);
    }
}

static void seeds_side_by_side_give_unlike_sequences(void **state)
{
    (void)state;
    eplb_random one;
    eplb_random two;
    eplb_random_seed(&one, 1);
    eplb_random_seed(&two, 2);
    for (int i = 0; i < 100; i++) {
        assert_true(eplb_random_next(&one) != eplb_random_next(&two));
    }
}

TEST_MAIN(cmocka_unit_test(generator_is_xoshiro256_starstar),
          cmocka_unit_test(seed_gives_the_known_sequence),
          cmocka_unit_test(unit_is_the_top_53_bits),
          cmocka_unit_test(unit_stays_below_one_and_spreads_evenly),
          cmocka_unit_test(below_nothing_and_below_one_are_zero),
          cmocka_unit_test(below_reaches_every_number_equally_often),
          cmocka_unit_test(below_a_huge_bound_has_no_bias),
          cmocka_unit_test(seeds_side_by_side_give_unlike_sequences))
