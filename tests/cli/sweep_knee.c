/* SPDX-License-Identifier: MIT */
#include <eplb/cluster.h>

#include "../support.h"

#include "sweep_knee.h"

typedef struct fit_case {
    int32_t experts;
    int32_t gpus;
    int32_t redundant;
    int32_t each; /* 0: does not fit */
} fit_case;

static void redundant_experts_are_rounded_up_to_even_slots(void **state)
{
    (void)state;
    static const fit_case cases[] = {
        {256, 32, 0, 8},
        {256, 32, 32, 9},
        {256, 32, 1, 9},
        {256, 32, 33, 10},
        {256, 72, 0, 4},
        {256, 300, 0, 1},
        {8, 3, 16, 8},
        {8, 3, 17, 0},
        {1, 1, 0, 1},
        {1, 1, 1, 0},
        {65536, 16, 983040, 65536},
        {65536, 17, 983040, 0},
        {65536, 1, EPLB_MAX_SLOTS, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const fit_case *c = &cases[i];
        int32_t each = 0;
        assert_true(sweep_fit(c->experts, c->gpus, c->redundant, &each) == (c->each > 0));
        assert_int_equal(each, c->each);
    }
}

static int32_t knee5(double a, double b, double c, double d, double e)
{
    const double imbalances[5] = {a, b, c, d, e};
    return sweep_knee(imbalances, 5);
}

static void knee_leaves_a_tenth_of_the_gain(void **state)
{
    (void)state;
    assert_int_equal(knee5(2.0, 1.5, 1.2, 1.05, 1.0), 3); /* 1.1 is a tenth from the best */
    assert_int_equal(knee5(2.0, 1.5, 1.0625, 1.05, 1.0), 2);
    assert_int_equal(knee5(2.0, 1.0, 1.0, 1.0, 1.0), 1);
    assert_int_equal(knee5(2.0, 1.9, 1.8, 1.7, 1.0), 4);
}

static void gains_of_half_a_percent_are_no_gains(void **state)
{
    (void)state;
    assert_int_equal(knee5(1.0, 1.0, 1.0, 1.0, 1.0), 0);
    assert_int_equal(knee5(1.004, 1.003, 1.002, 1.001, 1.0), 0);
    assert_int_equal(knee5(1.02, 1.006, 1.004, 1.003, 1.0), 2);
}

static void plan_that_is_worse_with_more_slots_does_not_hide_the_knee(void **state)
{
    (void)state;
    assert_int_equal(knee5(1.5, 1.0, 1.01, 1.0, 1.02), 1);
    const double one[1] = {1.7};
    assert_int_equal(sweep_knee(one, 1), 0);
}

static void gain_behind_is_that_of_the_best_one_there(void **state)
{
    (void)state;
    const double imbalances[4] = {2.0, 1.25, 1.0, 1.125};
    assert_true(sweep_gain_behind(imbalances, 4, 0) == 1.0);
    assert_true(sweep_gain_behind(imbalances, 4, 1) == 0.25);
    assert_true(sweep_gain_behind(imbalances, 4, 2) == 0.0);
    assert_true(sweep_gain_behind(imbalances, 4, 3) == 0.0);
}

TEST_MAIN(cmocka_unit_test(redundant_experts_are_rounded_up_to_even_slots),
          cmocka_unit_test(knee_leaves_a_tenth_of_the_gain),
          cmocka_unit_test(gains_of_half_a_percent_are_no_gains),
          cmocka_unit_test(plan_that_is_worse_with_more_slots_does_not_hide_the_knee),
          cmocka_unit_test(gain_behind_is_that_of_the_best_one_there))
