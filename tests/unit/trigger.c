/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/trigger.h>

static int setup(void **state)
{
    eplb_trigger *trigger;
    assert_ok(eplb_trigger_create(&trigger, NULL, NULL, NULL), NULL);
    *state = trigger;
    return 0;
}

static int teardown(void **state)
{
    eplb_trigger *trigger = *state;
    eplb_trigger_destroy(&trigger);
    assert_null(trigger);
    return 0;
}

static eplb_observation observation(double persistent, double standard_error)
{
    return (eplb_observation){.struct_size = sizeof(eplb_observation),
                              .layer_id = -1,
                              .persistent = persistent,
                              .standard_error = standard_error,
                              .hottest_expert = -1};
}

static eplb_verdict observe(eplb_trigger *trigger, double now, const eplb_observation *seen)
{
    eplb_error error;
    eplb_verdict verdict = {.struct_size = sizeof(verdict)};
    assert_ok(eplb_trigger_observe(trigger, now, seen, &verdict, &error), &error);
    assert_true(verdict.reason[0] != '\0');
    return verdict;
}

static void expect(eplb_trigger *trigger, double now, double persistent, eplb_decision decision)
{
    eplb_observation seen = observation(persistent, 0.0);
    assert_int_equal(observe(trigger, now, &seen).decision, decision);
}

static eplb_verdict judge(eplb_trigger *trigger, double now, double before, double after,
                          int64_t copies)
{
    eplb_error error;
    eplb_verdict verdict = {.struct_size = sizeof(verdict)};
    assert_ok(eplb_trigger_judge(trigger, now, before, after, copies, &verdict, &error), &error);
    return verdict;
}

static void imbalance_must_last_before_a_plan_is_asked_for(void **state)
{
    expect(*state, 0.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 59.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 60.0, 1.3, EPLB_DECISION_REBALANCE);
}

static void balanced_layers_have_nothing_to_gain(void **state)
{
    for (int minute = 0; minute < 100; minute++) {
        expect(*state, 60.0 * minute, 1.10, EPLB_DECISION_NOTHING);
    }
}

static void short_dip_above_the_release_does_not_start_over(void **state)
{
    expect(*state, 0.0, 1.2, EPLB_DECISION_WAIT);
    expect(*state, 30.0, 1.06, EPLB_DECISION_WAIT);
    expect(*state, 60.0, 1.06, EPLB_DECISION_REBALANCE);
}

static void fall_to_the_release_starts_over(void **state)
{
    expect(*state, 0.0, 1.2, EPLB_DECISION_WAIT);
    expect(*state, 30.0, 1.05, EPLB_DECISION_NOTHING);
    expect(*state, 40.0, 1.2, EPLB_DECISION_WAIT);
    expect(*state, 99.0, 1.2, EPLB_DECISION_WAIT);
    expect(*state, 100.0, 1.2, EPLB_DECISION_REBALANCE);
}

static void imbalance_that_may_be_noise_never_fires(void **state)
{
    eplb_observation seen = observation(1.29, 0.10);
    for (int minute = 0; minute < 100; minute++) {
        eplb_verdict verdict = observe(*state, 60.0 * minute, &seen);
        assert_int_equal(verdict.decision, EPLB_DECISION_NOTHING);
        assert_contains(verdict.reason, "not surely above 1.10");
    }
    seen.standard_error = 0.09;
    assert_int_equal(observe(*state, 6000.0, &seen).decision, EPLB_DECISION_WAIT);
}

static void hot_expert_alone_never_fires(void **state)
{
    eplb_observation seen = observation(1.04, 0.0);
    seen.hottest_ratio = 13.0;
    seen.hottest_expert = 5;
    for (int minute = 0; minute < 100; minute++) {
        assert_int_equal(observe(*state, 60.0 * minute, &seen).decision, EPLB_DECISION_NOTHING);
    }
}

static void reason_names_layer_parts_time_and_hot_expert(void **state)
{
    eplb_observation seen = observation(1.42, 0.01);
    seen.layer_id = 3;
    seen.seen = 1.6;
    seen.hottest_ratio = 5.0;
    seen.hottest_expert = 7;
    eplb_verdict verdict = observe(*state, 0.0, &seen);
    assert_string_equal(verdict.reason, "layer 3: persistent imbalance 1.42 (1.60 seen) for 0 s, "
                                        "not yet for 60 s");
    verdict = observe(*state, 75.0, &seen);
    assert_string_equal(verdict.reason,
                        "layer 3: persistent imbalance 1.42 (1.60 seen) for 75 s; expert 7 has 5.0 "
                        "times its fair share: give it replicas");
}

static void second_rebalance_waits_for_the_interval(void **state)
{
    expect(*state, 0.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 60.0, 1.3, EPLB_DECISION_REBALANCE);
    assert_ok(eplb_trigger_rebalanced(*state, 70.0, NULL), NULL);
    expect(*state, 80.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 200.0, 1.3, EPLB_DECISION_WAIT); /* sustained, too soon */
    expect(*state, 369.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 370.0, 1.3, EPLB_DECISION_REBALANCE);
}

static void what_was_seen_before_a_rebalance_does_not_count(void **state)
{
    expect(*state, 0.0, 1.3, EPLB_DECISION_WAIT);
    assert_ok(eplb_trigger_rebalanced(*state, 10.0, NULL), NULL);
    expect(*state, 1000.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 1060.0, 1.3, EPLB_DECISION_REBALANCE);
}

static void plan_that_gains_too_little_is_rejected_for_the_interval(void **state)
{
    expect(*state, 0.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 60.0, 1.3, EPLB_DECISION_REBALANCE);
    eplb_verdict verdict = judge(*state, 60.0, 1.300, 1.295, 3);
    assert_int_equal(verdict.decision, EPLB_DECISION_NOTHING);
    assert_contains(verdict.reason, "less than 0.010 to gain");
    expect(*state, 100.0, 1.3, EPLB_DECISION_WAIT);
    expect(*state, 360.0, 1.3, EPLB_DECISION_REBALANCE);
}

static void plan_pays_when_it_saves_more_than_its_copies_cost(void **state)
{
    (void)state;
    eplb_trigger_options options;
    eplb_trigger_options_init(&options);
    options.seconds_per_copy = 0.5;
    options.horizon_seconds = 100.0;
    eplb_trigger *trigger;
    assert_ok(eplb_trigger_create(&trigger, NULL, &options, NULL), NULL);
    /* 100 s * (1 - 1.0 / 1.25) = 20 s: 40 copies cost as much. */
    eplb_verdict verdict = judge(trigger, 0.0, 1.25, 1.0, 39);
    assert_int_equal(verdict.decision, EPLB_DECISION_REBALANCE);
    assert_contains(verdict.reason, "saves 20.0 s in 100 s, 39 copies cost 19.5 s");
    verdict = judge(trigger, 0.0, 1.25, 1.0, 40);
    assert_int_equal(verdict.decision, EPLB_DECISION_NOTHING);
    assert_contains(verdict.reason, "40 copies cost 20.0 s");
    eplb_trigger_destroy(&trigger);
}

static void expect_refused(eplb_trigger *trigger, double now, const eplb_observation *seen,
                           eplb_status expected, const char *part)
{
    eplb_error error;
    eplb_verdict verdict = {.struct_size = sizeof(verdict), .decision = 77};
    assert_status(eplb_trigger_observe(trigger, now, seen, &verdict, &error), expected, &error);
    assert_contains(error.message, part);
    assert_int_equal(verdict.decision, 77);
}

static void bad_observation_leaves_the_trigger_as_it_was(void **state)
{
    expect(*state, 0.0, 1.3, EPLB_DECISION_WAIT);
    eplb_observation seen = observation((double)NAN, 0.0);
    expect_refused(*state, 10.0, &seen, EPLB_ERROR_DATA, "persistent imbalance nan");
    seen = observation(0.9, 0.0);
    expect_refused(*state, 10.0, &seen, EPLB_ERROR_DATA, "persistent imbalance 0.9");
    seen = observation(1.2, -1.0);
    expect_refused(*state, 10.0, &seen, EPLB_ERROR_DATA, "standard error -1");
    seen = observation(1.2, 0.0);
    seen.seen = 0.5;
    expect_refused(*state, 10.0, &seen, EPLB_ERROR_DATA, "seen imbalance 0.5");
    seen = observation(1.2, 0.0);
    expect_refused(*state, -1.0, &seen, EPLB_ERROR_ARGUMENT, "time -1 is before 0");
    seen.struct_size = 0;
    expect_refused(*state, 10.0, &seen, EPLB_ERROR_ARGUMENT, "struct_size");
    expect_refused(*state, 10.0, NULL, EPLB_ERROR_ARGUMENT, "observation");
    expect(*state, 60.0, 1.3, EPLB_DECISION_REBALANCE);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_trigger *trigger;
    eplb_trigger_options defaults;
    eplb_trigger_options_init(&defaults);
    static const struct {
        size_t offset;
        double value;
        const char *part;
    } bad[] = {
        {offsetof(eplb_trigger_options, threshold), 0.9, "threshold 0.9"},
        {offsetof(eplb_trigger_options, release), 1.2, "release 1.2 not in 1..1.1"},
        {offsetof(eplb_trigger_options, sustain_seconds), -1.0, "sustain_seconds -1"},
        {offsetof(eplb_trigger_options, min_interval_seconds), -1.0, "min_interval_seconds -1"},
        {offsetof(eplb_trigger_options, min_gain), -0.5, "min_gain -0.5"},
        {offsetof(eplb_trigger_options, seconds_per_copy), -2.0, "seconds_per_copy -2"},
        {offsetof(eplb_trigger_options, horizon_seconds), 0.0, "horizon_seconds"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_trigger_options options = defaults;
        memcpy((char *)&options + bad[i].offset, &bad[i].value, sizeof(double));
        assert_status(eplb_trigger_create(&trigger, NULL, &options, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_contains(error.message, bad[i].part);
        assert_null(trigger);
    }
    defaults.reserved = 1;
    assert_status(eplb_trigger_create(&trigger, NULL, &defaults, &error), EPLB_ERROR_ARGUMENT,
                  &error);
}

static eplb_status create(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_trigger *trigger = NULL;
    eplb_status status = eplb_trigger_create(&trigger, hooks, NULL, NULL);
    eplb_trigger_destroy(&trigger);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(create, NULL);
}

#define with_trigger(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(with_trigger(imbalance_must_last_before_a_plan_is_asked_for),
          with_trigger(balanced_layers_have_nothing_to_gain),
          with_trigger(short_dip_above_the_release_does_not_start_over),
          with_trigger(fall_to_the_release_starts_over),
          with_trigger(imbalance_that_may_be_noise_never_fires),
          with_trigger(hot_expert_alone_never_fires),
          with_trigger(reason_names_layer_parts_time_and_hot_expert),
          with_trigger(second_rebalance_waits_for_the_interval),
          with_trigger(what_was_seen_before_a_rebalance_does_not_count),
          with_trigger(plan_that_gains_too_little_is_rejected_for_the_interval),
          cmocka_unit_test(plan_pays_when_it_saves_more_than_its_copies_cost),
          with_trigger(bad_observation_leaves_the_trigger_as_it_was),
          cmocka_unit_test(options_out_of_range_are_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing))
