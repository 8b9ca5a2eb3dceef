/* SPDX-License-Identifier: MIT */
/* Splits of synthetic logs whose persistent part is known: 64 experts on 8 GPUs, each token goes to
 * 8. */
#include "unit/step_stats.h"

#include <eplb/random.h>

#include "stats/router_draw.h"

enum { EXPERTS = 64, TOPK = 8, GPUS = 8 };

static const int32_t batches[] = {32, 128, 512, 2048, 4096};
enum { BATCHES = sizeof(batches) / sizeof(batches[0]) };

typedef struct traffic {
    const char *name;
    double hot;       /* popularity of expert 3 against what it would be; 0: all are alike */
    int32_t block;    /* tokens of a block go the same way; 0: there are `blocks` of them */
    int32_t blocks;   /* blocks of a step, when block is 0 */
    int32_t repeated; /* steps in a row that are the same */
} traffic;

static const traffic kinds[] = {
    {"uniform", 0, 1, 0, 1},
    {"skewed", 1, 1, 0, 1},
    {"hot expert", 6, 1, 0, 1},
    {"uniform, blocks", 0, 8, 0, 1},
    {"skewed, blocks", 1, 8, 0, 1},
    {"hot expert, blocks", 6, 8, 0, 1},
    {"uniform, prompts", 0, 0, 8, 1},
    {"hot expert, prompts", 6, 0, 8, 1},
    {"skewed, long steps", 1, 1, 0, 8},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Loads of real layers are about lognormal: here products of coin tosses. */
static void draw_popularity(const traffic *kind, double *popularity)
{
    eplb_random random;
    eplb_random_seed(&random, 5);
    for (int32_t e = 0; e < EXPERTS; e++) {
        popularity[e] = 1.0;
        for (int32_t toss = 0; toss < 12; toss++) {
            bool heads = eplb_random_below(&random, 2) == 1;
            popularity[e] *= kind->hot > 0.0 && heads ? 1.28 : 1.0;
        }
    }
    popularity[3] *= kind->hot > 0.0 ? kind->hot : 1.0;
}

static eplb_router_draw start_router(const double *popularity, uint64_t seed)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_router_draw router;
    assert_ok(eplb_router_draw_init(&router, &hooks, EXPERTS, TOPK, seed, popularity, NULL), NULL);
    return router;
}

static void stop_router(eplb_router_draw *router)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_router_draw_free(router, &hooks);
}

/* By a million tokens: an error of 0.001. */
static double persistent_part_of(const double *popularity)
{
    uint32_t drawn[EXPERTS] = {0};
    double counts[EXPERTS];
    eplb_router_draw router = start_router(popularity, 99);
    eplb_router_draw_tokens(&router, 1000000, drawn);
    stop_router(&router);
    for (int32_t e = 0; e < EXPERTS; e++) {
        counts[e] = drawn[e];
    }
    double truth;
    eplb_placement *placement = spread(1, EXPERTS, GPUS, EXPERTS / GPUS);
    assert_ok(eplb_placement_imbalance(placement, 0, counts, &truth, NULL), NULL);
    eplb_placement_destroy(&placement);
    return truth;
}

/* The popularities, and the persistent part that they make. */
static double start_traffic(const traffic *kind, double *popularity)
{
    draw_popularity(kind, popularity);
    return kind->hot > 0.0 ? persistent_part_of(popularity) : 1.0;
}

/* Splits a window of `steps` steps of `batch` tokens each. */
static eplb_split split_window(const traffic *kind, const double *popularity, int32_t batch,
                               int64_t steps, uint64_t seed)
{
    int32_t block = kind->block > 0 ? kind->block : batch / kind->blocks;
    eplb_step_stats_options options = with_topk(TOPK);
    eplb_step_stats *stats = stats_of(spread(1, EXPERTS, GPUS, EXPERTS / GPUS), &options);
    eplb_router_draw router = start_router(kind->hot > 0.0 ? popularity : NULL, seed);
    double counts[EXPERTS] = {0};
    for (int64_t step = 0; step < steps; step++) {
        if (step % kind->repeated == 0) {
            uint32_t drawn[EXPERTS] = {0};
            eplb_router_draw_tokens(&router, batch / block, drawn);
            for (int32_t e = 0; e < EXPERTS; e++) {
                counts[e] = (double)drawn[e] * block;
            }
        }
        add(stats, step, 0, counts);
    }
    stop_router(&router);
    eplb_split split = split_of(stats, 0);
    eplb_step_stats_destroy(&stats);
    return split;
}

/* Steps after which the header promises an error of 0.02 in 95 windows of 100, times `times`. */
static int64_t steps_for(const traffic *kind, int32_t batch, double persistent, double times)
{
    double dispersion = kind->block > 0 ? kind->block : (double)batch / kind->blocks;
    double assignments = 10000.0 * dispersion * persistent * (GPUS - persistent);
    double steps = ceil(times * assignments / (batch * TOPK)) * kind->repeated;
    return steps > 64.0 ? (int64_t)steps : 64;
}

/* With four times the window the error bar is 0.005, and 0.02 four of them. */
static void persistent_part_is_within_2_percent_of_the_truth(void **state)
{
    (void)state;
    enum { WINDOWS = 3 };
    for (size_t k = 0; k < KINDS; k++) {
        double popularity[EXPERTS];
        double truth = start_traffic(&kinds[k], popularity);
        for (size_t b = 0; b < BATCHES; b++) {
            int64_t steps = steps_for(&kinds[k], batches[b], truth, 4.0);
            for (uint64_t seed = 1; seed <= WINDOWS; seed++) {
                eplb_split split = split_window(&kinds[k], popularity, batches[b], steps, seed);
                if (!(fabs(split.persistent - truth) <= 0.02)) {
                    print_error("%s, %d tokens, %lld steps: %.4f +- %.4f, truth %.4f\n",
                                kinds[k].name, batches[b], (long long)steps, split.persistent,
                                split.standard_error, truth);
                    fail();
                }
                assert_true(split.standard_error <= 0.0095);
                assert_close(split.persistent + split.noise, split.seen, 1e-12);
            }
        }
    }
}

typedef struct errors {
    double covered; /* share of windows in which persistent +- 2 standard errors hold the truth */
    double bar;     /* mean standard error */
    double error;   /* root mean square error */
} errors;

static errors measure(const traffic *kind, const double *popularity, double truth, int32_t batch,
                      int64_t steps, int32_t windows)
{
    errors sum = {0};
    for (int32_t w = 0; w < windows; w++) {
        eplb_split split = split_window(kind, popularity, batch, steps, 1000 + (uint64_t)w);
        double error = split.persistent - truth;
        sum.covered += fabs(error) <= 2.0 * split.standard_error ? 1.0 : 0.0;
        sum.bar += split.standard_error;
        sum.error += error * error;
    }
    return (errors){sum.covered / windows, sum.bar / windows, sqrt(sum.error / windows)};
}

static void expect_honest(const traffic *kind, const double *popularity, double truth,
                          int32_t batch, int64_t steps, double least)
{
    errors got = measure(kind, popularity, truth, batch, steps, 200);
    if (got.covered < least || got.bar > 3.0 * got.error) {
        print_error("%s, %d tokens, %lld steps: %.3f of the windows hold the truth; error bar "
                    "%.4f, error %.4f\n",
                    kind->name, batch, (long long)steps, got.covered, got.bar, got.error);
        fail();
    }
}

/* Neither too short nor so long that it says nothing, in windows where it matters. */
static void error_bar_is_honest(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        double popularity[EXPERTS];
        double truth = start_traffic(&kinds[k], popularity);
        int64_t steps = steps_for(&kinds[k], 256, truth, 1.0);
        expect_honest(&kinds[k], popularity, truth, 256, steps, 0.92);
    }
}

static void error_bar_is_honest_after_four_steps(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        double popularity[EXPERTS];
        double truth = start_traffic(&kinds[k], popularity);
        expect_honest(&kinds[k], popularity, truth, 256, 4, 0.93);
    }
}

/* The steps' memory of 8 is longer than the runs of 64 steps, and the window not much longer. */
static void error_bar_is_honest_about_steps_alike(void **state)
{
    (void)state;
    const traffic *kind = &kinds[KINDS - 1];
    double popularity[EXPERTS];
    double truth = start_traffic(kind, popularity);
    expect_honest(kind, popularity, truth, 256, 64, 0.93);
}

/* The worst case of the choice: one GPU ahead of the others by two errors of its load. */
static void error_bar_holds_where_gpus_are_nearly_alike(void **state)
{
    (void)state;
    double popularity[EXPERTS];
    for (int32_t e = 0; e < EXPERTS; e++) {
        popularity[e] = e < EXPERTS / GPUS ? 1.07 : 1.0;
    }
    double truth = persistent_part_of(popularity);
    expect_honest(&kinds[1], popularity, truth, 64, 32, 0.93);
}

/* The bias of the plain maximum is what is corrected: with GPUs alike it is 1.4 errors of one GPU's
 * load, and a third of that is left. */
static void short_window_is_not_taken_for_skew(void **state)
{
    (void)state;
    enum { WINDOWS = 200 };
    double popularity[EXPERTS];
    draw_popularity(&kinds[0], popularity);
    double plain = 0.0;
    double corrected = 0.0;
    for (uint64_t seed = 0; seed < WINDOWS; seed++) {
        eplb_split split = split_window(&kinds[0], popularity, 64, 32, seed);
        plain += (split.uncorrected - 1.0) / WINDOWS;
        corrected += (split.persistent - 1.0) / WINDOWS;
    }
    assert_true(plain > 0.025);
    assert_true(corrected < 0.4 * plain);
}

/* Independent tokens have a dispersion of 1, blocks that of their size; steps that repeat make the
 * window's mean less sure than so many independent ones would. */
static void correlation_is_measured(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        double popularity[EXPERTS];
        draw_popularity(&kinds[k], popularity);
        double expected = kinds[k].block > 0 ? kinds[k].block : 128.0 / kinds[k].blocks;
        eplb_split split = split_window(&kinds[k], popularity, 128, 1600, 4);
        assert_close(split.dispersion, expected, 0.12 * expected);
        assert_true(split.drift > 0.5 * kinds[k].repeated);
        assert_true(split.drift < 1.6 * kinds[k].repeated);
    }
}

/* What is seen falls with the tokens of a step, the persistent part stays. */
static void only_noise_falls_with_more_tokens(void **state)
{
    (void)state;
    const traffic *kind = &kinds[4];
    double popularity[EXPERTS];
    double truth = start_traffic(kind, popularity);
    double noise = INFINITY;
    for (size_t b = 0; b < BATCHES; b++) {
        int64_t steps = steps_for(kind, batches[b], truth, 4.0);
        eplb_split split = split_window(kind, popularity, batches[b], steps, 8);
        assert_true(split.noise < 0.7 * noise);
        noise = split.noise;
    }
    assert_true(noise < 0.02);
}

TEST_MAIN(cmocka_unit_test(persistent_part_is_within_2_percent_of_the_truth),
          cmocka_unit_test(error_bar_is_honest),
          cmocka_unit_test(error_bar_is_honest_after_four_steps),
          cmocka_unit_test(error_bar_is_honest_about_steps_alike),
          cmocka_unit_test(error_bar_holds_where_gpus_are_nearly_alike),
          cmocka_unit_test(short_window_is_not_taken_for_skew),
          cmocka_unit_test(correlation_is_measured),
          cmocka_unit_test(only_noise_falls_with_more_tokens))
