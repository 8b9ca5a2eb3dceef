/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/router.h>

static eplb_router_result simulate(const eplb_router_options *options, int32_t batch)
{
    eplb_error error;
    eplb_router_result result = {.struct_size = sizeof(result)};
    assert_ok(eplb_router_simulate(&result, NULL, options, batch, &error), &error);
    return result;
}

/* 256 experts, 8 of them for a token, 8 ranks, tiles of 64 rows. */
static void noise_of_a_uniform_router_is_that_of_balls_in_bins(void **state)
{
    (void)state;
    static const struct {
        int32_t batch;
        double mean;
        double p99_low;
        double p99_high;
        double padded_worst_rank;
        double padded_ratio;
    } expected[] = {
        {8, 1.52, 2.0, 2.125, 84.9, 57.0},   {64, 1.18, 1.31, 1.41, 30.3, 28.0},
        {256, 1.09, 1.13, 1.23, 8.0, 8.0},   {1024, 1.04, 1.04, 1.14, 2.0, 2.0},
        {4096, 1.02, 0.99, 1.09, 1.3, 1.24},
    };
    eplb_router_options options;
    eplb_router_options_init(&options);
    options.trials = 1000;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        eplb_router_result r = simulate(&options, expected[i].batch);
        assert_int_equal(r.batch, expected[i].batch);
        assert_close(r.imbalance_mean, expected[i].mean, 0.02);
        assert_true(r.imbalance_p99 >= expected[i].p99_low);
        assert_true(r.imbalance_p99 <= expected[i].p99_high);
        assert_close(r.padded_worst_rank, expected[i].padded_worst_rank,
                     0.03 * expected[i].padded_worst_rank);
        assert_close(r.padded_ratio, expected[i].padded_ratio, 0.03 * expected[i].padded_ratio);
    }
}

static void share_of_experts_touched_is_exact_for_a_uniform_router(void **state)
{
    (void)state;
    static const struct {
        int32_t batch;
        double touched;
        double share_per_token;
    } expected[] = {
        {1, 0.031250000, 0.031250000},    {8, 0.224300120, 0.028037515},
        {64, 0.868915968, 0.013576812},   {256, 0.999704744, 0.003905097},
        {2048, 1.000000000, 0.000488281},
    };
    eplb_router_options options;
    eplb_router_options_init(&options);
    options.trials = 200;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        eplb_router_result r = simulate(&options, expected[i].batch);
        assert_close(r.experts_touched, expected[i].touched, 1e-8);
        assert_close(r.experts_touched_measured, expected[i].touched, 0.01);
        assert_close(r.weight_bytes_share_per_token, expected[i].share_per_token, 1e-8);
        assert_close(r.tokens_to_fill_tiles, 2048.0, 0.0);
    }
}

static void every_token_on_every_expert_is_balanced_without_noise(void **state)
{
    (void)state;
    eplb_router_options options;
    eplb_router_options_init(&options);
    options.experts = options.topk = 12;
    options.ranks = 4;
    options.tile = 10;
    options.trials = 3;
    eplb_router_result r = simulate(&options, 25);
    assert_close(r.imbalance_mean, 1.0, 0.0);
    assert_close(r.imbalance_p99, 1.0, 0.0);
    assert_close(r.padded_ratio, 30.0 / 25.0, 1e-15);
    assert_close(r.padded_worst_rank, 30.0 / 25.0, 1e-15);
    assert_close(r.experts_touched, 1.0, 0.0);
}

static void hot_expert_is_on_the_busiest_rank(void **state)
{
    (void)state;
    double popularity[8] = {0, 0, 0, 5, 0, 0, 0, 0};
    eplb_router_options options;
    eplb_router_options_init(&options);
    options.experts = options.ranks = 8;
    options.topk = 1;
    options.trials = 10;
    options.popularity = popularity;
    eplb_router_result r = simulate(&options, 100);
    assert_close(r.imbalance_mean, 8.0, 1e-12);
    assert_close(r.experts_touched, 1.0 / 8.0, 1e-15);
}

static void same_seed_gives_the_same_result_and_another_another(void **state)
{
    (void)state;
    eplb_router_options options;
    eplb_router_options_init(&options);
    options.trials = 50;
    eplb_router_result first = simulate(&options, 32);
    eplb_router_result second = simulate(&options, 32);
    assert_memory_equal(&first, &second, sizeof(first));
    options.seed = 2;
    second = simulate(&options, 32);
    assert_true(first.imbalance_mean != second.imbalance_mean);
}

static void expect_refused(const eplb_router_options *options, int32_t batch, eplb_status expected,
                           const char *part)
{
    eplb_error error;
    eplb_router_result result = {.struct_size = sizeof(result), .imbalance_mean = -7.0};
    assert_status(eplb_router_simulate(&result, NULL, options, batch, &error), expected, &error);
    assert_contains(error.message, part);
    assert_true(result.imbalance_mean == -7.0);
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_router_options defaults;
    eplb_router_options_init(&defaults);
    expect_refused(&defaults, 0, EPLB_ERROR_ARGUMENT, "batch 0 not in 1..");
    expect_refused(&defaults, (1 << 24) + 1, EPLB_ERROR_ARGUMENT, "batch 16777217");
    eplb_router_options o = defaults;
    o.experts = 0;
    expect_refused(&o, 1, EPLB_ERROR_ARGUMENT, "number of experts 0");
    o = defaults;
    o.topk = 257;
    expect_refused(&o, 1, EPLB_ERROR_ARGUMENT, "top-k 257 not in 1..256");
    o = defaults;
    o.ranks = 7;
    expect_refused(&o, 1, EPLB_ERROR_ARGUMENT, "7 ranks do not share 256 experts");
    o = defaults;
    o.tile = 0;
    expect_refused(&o, 1, EPLB_ERROR_ARGUMENT, "tile 0");
    o = defaults;
    o.trials = 0;
    expect_refused(&o, 1, EPLB_ERROR_ARGUMENT, "trials 0");
    o = (eplb_router_options){.experts = 8};
    expect_refused(&o, 1, EPLB_ERROR_ARGUMENT, "struct_size");
    double popularity[256] = {1, 2, 3, 4, 5, 6, 7};
    o = defaults;
    o.popularity = popularity;
    expect_refused(&o, 1, EPLB_ERROR_DATA, "7 experts have a popularity above 0");
    popularity[9] = -1.0;
    expect_refused(&o, 1, EPLB_ERROR_DATA, "expert 9");
    eplb_error error;
    assert_status(eplb_router_simulate(NULL, NULL, &defaults, 1, &error), EPLB_ERROR_ARGUMENT,
                  &error);
}

static eplb_status small_simulation(const eplb_hooks *hooks, void *context)
{
    eplb_router_options options;
    eplb_router_options_init(&options);
    options.experts = 16;
    options.topk = 2;
    options.trials = 5;
    options.popularity = context;
    eplb_router_result result = {.struct_size = sizeof(result)};
    return eplb_router_simulate(&result, hooks, &options, 4, NULL);
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    double popularity[16] = {1, 2, 3, 4, 5};
    test_each_failing_allocation(small_simulation, NULL);
    test_each_failing_allocation(small_simulation, popularity);
}

TEST_MAIN(cmocka_unit_test(noise_of_a_uniform_router_is_that_of_balls_in_bins),
          cmocka_unit_test(share_of_experts_touched_is_exact_for_a_uniform_router),
          cmocka_unit_test(every_token_on_every_expert_is_balanced_without_noise),
          cmocka_unit_test(hot_expert_is_on_the_busiest_rank),
          cmocka_unit_test(same_seed_gives_the_same_result_and_another_another),
          cmocka_unit_test(arguments_out_of_range_are_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing))
