/* SPDX-License-Identifier: MIT */
/* Splits whose parts are known without chance. tests/property/split.c has those with it. */
#include "step_stats.h"

#include <eplb/random.h>

static void steady_skew_is_all_persistent(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 4, 2, 2), NULL);
    for (int64_t step = 0; step < 200; step++) {
        add(stats, step, 0, (double[]){5, 1, 1, 1});
    }
    eplb_split split = split_of(stats, 0);
    assert_int_equal(split.steps, 200);
    assert_int_equal(split.too_short, 0);
    assert_int_equal(split.busiest_gpu, 0);
    assert_true(split.seen == 1.5);
    assert_close(split.persistent, 1.5, 1e-12);
    assert_close(split.noise, 0.0, 1e-12);
    assert_close(split.standard_error, 0.0, 1e-12);
    assert_close(split.dispersion, 0.0, 1e-12);
    assert_true(split.drift == 0.0);
    eplb_step_stats_destroy(&stats);
}

/* Every step is as bad as can be, but nobody is always the busiest. */
static void skew_that_evens_out_is_all_noise(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 4, 4, 1), NULL);
    for (int64_t step = 0; step < 512; step++) {
        double counts[4] = {0};
        counts[step % 4] = 8;
        add(stats, step, 0, counts);
    }
    eplb_split split = split_of(stats, 0);
    assert_true(split.seen == 4.0);
    assert_true(split.uncorrected == 1.0);
    assert_true(split.persistent == 1.0);
    assert_true(split.noise == 3.0);
    /* All eight assignments of a step go one way. */
    assert_close(split.dispersion, 8.0 * 512.0 / 511.0, 1e-12);
    eplb_step_stats_destroy(&stats);
}

/* The runs are merged many times over: no step may be lost or counted twice. */
static void pooled_loads_are_those_of_all_steps(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 3, 3, 1), NULL);
    double sum[3] = {0};
    for (int64_t step = 0; step < 3001; step++) {
        double counts[3] = {(double)(step % 7), (double)(step % 11), (double)(step % 5 + 1)};
        add(stats, step, 0, counts);
        for (int32_t e = 0; e < 3; e++) {
            sum[e] += counts[e];
        }
        if (step % 37 == 0) {
            double most = fmax(sum[0], fmax(sum[1], sum[2]));
            assert_true(split_of(stats, 0).uncorrected == most / (sum[0] + sum[1] + sum[2]) * 3.0);
        }
    }
    eplb_step_stats_destroy(&stats);
}

/* A step with many tokens says more about the expected loads than one with few. */
static void large_steps_weigh_more(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    for (int64_t step = 0; step < 64; step++) {
        bool large = step % 2 == 0;
        add(stats, step, 0, large ? (double[]){3000, 1000} : (double[]){1, 3});
    }
    eplb_split split = split_of(stats, 0);
    assert_true(split.seen == 1.5);
    assert_close(split.uncorrected, 6002.0 / 4004.0, 1e-12);
    assert_close(split.persistent, 6002.0 / 4004.0, 1e-12);
    assert_int_equal(split.busiest_gpu, 0);
    eplb_step_stats_destroy(&stats);
}

static void three_steps_are_too_short(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    for (int64_t step = 0; step < 4; step++) {
        add(stats, step, 0, step % 2 == 0 ? (double[]){3, 1} : (double[]){2, 2});
        eplb_split split = split_of(stats, 0);
        bool too_short = step < 3;
        assert_int_equal(split.too_short, too_short);
        assert_true((split.standard_error == 0.0) == too_short);
        assert_true(!too_short || split.persistent == split.uncorrected);
        assert_close(split.persistent + split.noise, split.seen, 1e-15);
    }
    eplb_step_stats_destroy(&stats);
}

static void one_step_has_no_variance(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    add(stats, 0, 0, (double[]){3, 1});
    eplb_split split = split_of(stats, 0);
    assert_true(split.seen == 1.5 && split.persistent == 1.5 && split.noise == 0.0);
    assert_true(split.dispersion == 0.0 && split.drift == 0.0);
    eplb_step_stats_destroy(&stats);
}

/* vllm-project/vllm-ascend#12154, #16183: an all-zero load gives no NaN. */
static void layer_without_steps_splits_to_zeros(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 9};
    eplb_placement *placement = spread(2, 2, 2, 1);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 0, NULL), NULL);
    eplb_step_stats *stats = stats_of(placement, NULL);
    add(stats, 0, 1, (double[]){0, 0});
    eplb_split split = split_of(stats, 1);
    const eplb_split zero = {.struct_size = sizeof(zero), .layer_id = 9, .busiest_gpu = -1};
    assert_memory_equal(&split, &zero, sizeof(split));
    eplb_step_stats_destroy(&stats);
}

/* Four equal steps in a row, then four of another kind: single steps say nothing of how sure the
 * mean is. */
static void steps_that_resemble_each_other_are_joined(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 3);
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    double first = 0.0;
    for (int64_t step = 0; step < 60; step++) {
        first = step % 4 == 0 ? (double)eplb_random_below(&random, 101) : first;
        add(stats, step, 0, (double[]){first, 100.0 - first});
    }
    eplb_split split = split_of(stats, 0);
    assert_true(split.runs < 60 && split.runs >= 8);
    assert_true(split.drift > 2.0);
    eplb_step_stats_destroy(&stats);
}

/* Loads that drift through the whole window depend on each other whatever is joined. */
static void no_fewer_than_eight_runs_are_joined(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    for (int64_t step = 0; step < 60; step++) {
        add(stats, step, 0, (double[]){(double)step, 60.0 - (double)step});
    }
    eplb_split split = split_of(stats, 0);
    assert_int_equal(split.runs, 8);
    assert_true(split.drift > 4.0);
    eplb_step_stats_destroy(&stats);
}

/* Equal shares of steps of different sizes differ by rounding: that is no variance. */
static void rounding_is_no_drift(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 3, 3, 1), NULL);
    for (int64_t step = 0; step < 40; step++) {
        double size = 1.0 + 1.0 / (double)(step + 3);
        add(stats, step, 0, (double[]){0.1 * size, 0.7 * size, 0.3 * size});
    }
    eplb_split split = split_of(stats, 0);
    assert_close(split.persistent, 0.7 / 1.1 * 3.0, 1e-12);
    assert_true(split.drift == 0.0);
    eplb_step_stats_destroy(&stats);
}

/* Two copies of an expert on one GPU carry what one would. */
static void second_copy_on_a_gpu_changes_no_variance(void **state)
{
    (void)state;
    static const int32_t rows[2][4] = {{0, -1, 1, 2}, {0, 0, 1, 2}};
    double dispersion[2];
    for (int32_t i = 0; i < 2; i++) {
        eplb_placement *placement = make_placement(make_cluster(2, 2, 0), 1, 3);
        set_row(placement, 0, rows[i]);
        eplb_step_stats *stats = stats_of(placement, NULL);
        for (int64_t step = 0; step < 9; step++) {
            add(stats, step, 0, (double[]){(double)step, 2, 1});
        }
        dispersion[i] = split_of(stats, 0).dispersion;
        eplb_step_stats_destroy(&stats);
    }
    assert_true(dispersion[0] > 0.0);
    assert_close(dispersion[1], dispersion[0], 1e-12);
}

/* Tokens of two experts each, of four that are alike: two GPUs of two experts. Of the six pairs one
 * gives the first GPU 2, four give 1, one gives 0: the variance of a token is 1/3. Steps of one
 * token each that go through all pairs have just that. */
static void several_experts_of_a_token_differ(void **state)
{
    (void)state;
    static const double pairs[6][4] = {{1, 1, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 1},
                                       {0, 1, 1, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}};
    eplb_step_stats_options options = with_topk(2);
    eplb_step_stats *stats = stats_of(spread(1, 4, 2, 2), &options);
    for (int64_t step = 0; step < 600; step++) {
        add(stats, step, 0, pairs[step % 6]);
    }
    assert_close(split_of(stats, 0).dispersion, 600.0 / 599.0, 1e-12);
    eplb_step_stats_destroy(&stats);
}

/* Experts that every GPU has a replica of put the same on each, whatever tokens do. */
static void even_replicas_take_all_variance(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(2, 2, 0), 1, 2);
    set_row(placement, 0, (int32_t[]){0, 1, 1, 0});
    eplb_step_stats *stats = stats_of(placement, NULL);
    for (int64_t step = 0; step < 9; step++) {
        add(stats, step, 0, (double[]){(double)step, 2});
    }
    eplb_split split = split_of(stats, 0);
    assert_true(split.persistent == 1.0 && split.seen == 1.0);
    assert_true(split.dispersion == 0.0 && split.drift == 0.0);
    eplb_step_stats_destroy(&stats);
}

static void same_rows_give_the_same_split(void **state)
{
    (void)state;
    eplb_split splits[2];
    for (int32_t i = 0; i < 2; i++) {
        eplb_random random;
        eplb_random_seed(&random, 11);
        eplb_step_stats *stats = stats_of(spread(1, 6, 3, 2), NULL);
        for (int64_t step = 0; step < 150; step++) {
            double counts[6];
            for (int32_t e = 0; e < 6; e++) {
                counts[e] = (double)eplb_random_below(&random, 9);
            }
            add(stats, step, 0, counts);
        }
        splits[i] = split_of(stats, 0);
        eplb_split again = split_of(stats, 0);
        assert_memory_equal(&splits[i], &again, sizeof(again));
        eplb_step_stats_destroy(&stats);
    }
    assert_memory_equal(&splits[0], &splits[1], sizeof(splits[0]));
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 2, 2, 1), NULL);
    eplb_error error;
    eplb_split split = {.struct_size = sizeof(split)};
    assert_status(eplb_step_stats_split(stats, 2, &split, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "layer 2 not in 0..1");
    assert_status(eplb_step_stats_split(stats, 0, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
    split.struct_size = 0;
    assert_status(eplb_step_stats_split(stats, 0, &split, NULL), EPLB_ERROR_ARGUMENT, NULL);
    eplb_step_stats_destroy(&stats);
}

TEST_MAIN(cmocka_unit_test(steady_skew_is_all_persistent),
          cmocka_unit_test(skew_that_evens_out_is_all_noise),
          cmocka_unit_test(pooled_loads_are_those_of_all_steps),
          cmocka_unit_test(large_steps_weigh_more), cmocka_unit_test(three_steps_are_too_short),
          cmocka_unit_test(one_step_has_no_variance),
          cmocka_unit_test(layer_without_steps_splits_to_zeros),
          cmocka_unit_test(steps_that_resemble_each_other_are_joined),
          cmocka_unit_test(no_fewer_than_eight_runs_are_joined),
          cmocka_unit_test(rounding_is_no_drift),
          cmocka_unit_test(second_copy_on_a_gpu_changes_no_variance),
          cmocka_unit_test(several_experts_of_a_token_differ),
          cmocka_unit_test(even_replicas_take_all_variance),
          cmocka_unit_test(same_rows_give_the_same_split),
          cmocka_unit_test(arguments_out_of_range_are_refused))
