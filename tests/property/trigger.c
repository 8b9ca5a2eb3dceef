/* SPDX-License-Identifier: MIT */
/* A day of traffic that does not change: the trigger asks for a plan when there is none yet, and
 * then keeps still. */
#include "traffic.h"

enum { EXPERTS = 64, GPUS = 8, SLOTS_PER_GPU = 10, MINUTES = 1440 };

static int setup(void **state)
{
    traffic *t = calloc(1, sizeof(*t));
    double popularity[EXPERTS];
    eplb_random random;
    eplb_random_seed(&random, 11);
    for (int32_t e = 0; e < EXPERTS; e++) { /* the hottest some 5 times the fair share */
        double unit = eplb_random_unit(&random);
        popularity[e] = 1.0 / (0.2 + unit);
    }
    traffic_init(t, EXPERTS, popularity, GPUS, SLOTS_PER_GPU);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    traffic_free(*state);
    free(*state);
    return 0;
}

static void day_of_the_same_traffic_needs_one_plan(void **state)
{
    traffic *t = *state;
    eplb_trigger *trigger;
    assert_ok(eplb_trigger_create(&trigger, NULL, NULL, NULL), NULL);
    int plans = 0;
    double noisiest = 1.0;
    for (int minute = 0; minute < MINUTES; minute++) {
        eplb_observation seen = traffic_observe(t);
        eplb_verdict verdict = {.struct_size = sizeof(verdict)};
        assert_ok(eplb_trigger_observe(trigger, 60.0 * minute, &seen, &verdict, NULL), NULL);
        if (minute == 0) {
            assert_true(seen.persistent >
                        1.2); /* the even spread is uneven, and that is no noise */
            assert_true(seen.hottest_ratio > 2.0);
        }
        noisiest = plans > 0 ? fmax(noisiest, seen.seen) : noisiest;
        if (verdict.decision == EPLB_DECISION_REBALANCE) {
            traffic_replan(t);
            assert_ok(eplb_trigger_rebalanced(trigger, 60.0 * minute, NULL), NULL);
            plans++;
        }
    }
    assert_true(noisiest > 1.1); /* what was seen alone would have fired */
    assert_true(plans == 1 || plans == 2);
    eplb_trigger_destroy(&trigger);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(day_of_the_same_traffic_needs_one_plan, setup, teardown))
