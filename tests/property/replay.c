/* SPDX-License-Identifier: MIT */
/*
 * Random logs of several ranks, replayed step by step into a window as a server would have recorded
 * them: what the window has must be what the log says, whichever way it is read.
 */
#include <sys/stat.h>

#include "instance.h"
#include "unit/window.h"

#include <eplb/source.h>

enum { SEEDS = 100, MOST_RANKS = 12, MOST_STEPS = 9, MOST_LAYERS = 4 };

typedef struct recording {
    int32_t ranks;
    int32_t steps;
    int32_t layers;
    int32_t experts;
    int32_t step_numbers[MOST_STEPS];
    int32_t layer_ids[MOST_LAYERS];
    uint32_t counts[MOST_RANKS][MOST_STEPS][MOST_LAYERS][MOST_EXPERTS];
} recording;

static void draw_ascending(eplb_random *random, int32_t *numbers, int32_t count)
{
    int32_t next = 0;
    for (int32_t i = 0; i < count; i++) {
        next += draw(random, 0, 3) == 0 ? draw(random, 0, 20) : 0;
        numbers[i] = next++;
    }
}

/* Ranks of which a quarter is idle in a step, steps without any tokens; sums fit 32 bits. */
static void draw_recording(recording *log, eplb_random *random)
{
    log->ranks = draw(random, 1, MOST_RANKS);
    log->steps = draw(random, 1, MOST_STEPS);
    log->layers = draw(random, 1, MOST_LAYERS);
    log->experts = draw(random, 1, MOST_EXPERTS);
    draw_ascending(random, log->step_numbers, log->steps);
    draw_ascending(random, log->layer_ids, log->layers);
    for (int32_t t = 0; t < log->steps; t++) {
        bool is_warm_up = draw(random, 0, 4) == 0;
        for (int32_t r = 0; r < log->ranks; r++) {
            bool is_idle = is_warm_up || draw(random, 0, 3) == 0;
            int bits = draw(random, 4, 31);
            for (int32_t i = 0; i < log->layers * log->experts; i++) {
                uint64_t drawn = eplb_random_next(random);
                log->counts[r][t][i / log->experts][i % log->experts] =
                    is_idle ? 0 : (uint32_t)(drawn >> (28 + bits) & 0xfffffff);
            }
        }
    }
}

static void write_row(FILE *file, int32_t step, int32_t layer, const uint32_t *counts,
                      int32_t experts, int parity)
{
    fprintf(file, "{\"step\":%d,\"layer\":%d,\"counts\":[", step, layer);
    for (int32_t e = 0; e < experts; e++) {
        bool here = parity < 0 || e % 2 == parity;
        fprintf(file, "%s%u", e > 0 ? "," : "", here ? counts[e] : 0);
    }
    fprintf(file, "]}\n");
}

/* The layers of a step in any order, some of them in two rows. */
static void write_rank(const recording *log, int32_t rank, const char *path, eplb_random *random)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int32_t t = 0; t < log->steps; t++) {
        int32_t first = draw(random, 0, log->layers - 1);
        for (int32_t i = 0; i < log->layers; i++) {
            int32_t l = (first + i) % log->layers;
            bool in_two = draw(random, 0, 4) == 0;
            for (int parity = in_two ? 0 : -1; parity < (in_two ? 2 : 0); parity++) {
                write_row(file, log->step_numbers[t], log->layer_ids[l], log->counts[rank][t][l],
                          log->experts, parity);
            }
        }
    }
    assert_int_equal(fclose(file), 0);
}

static uint32_t summed(const recording *log, int32_t t, int32_t l, int32_t e)
{
    uint32_t sum = 0;
    for (int32_t r = 0; r < log->ranks; r++) {
        sum += log->counts[r][t][l][e];
    }
    return sum;
}

/* [steps, layers, experts] of 32 bits, summed over ranks, row-major or column-major. */
static void write_npy(const recording *log, const char *path, bool fortran)
{
    char header[128];
    int32_t shape[3] = {log->steps, log->layers, log->experts};
    int length = snprintf(header, sizeof(header),
                          "{'descr': '<u4', 'fortran_order': %s, 'shape': (%d, %d, %d), }",
                          fortran ? "True" : "False", shape[0], shape[1], shape[2]);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fprintf(file, "%s%*s\n", header, 117 - length, "");
    for (int32_t i = 0; i < shape[0] * shape[1] * shape[2]; i++) {
        int32_t t = fortran ? i % shape[0] : i / shape[2] / shape[1];
        int32_t l = fortran ? i / shape[0] % shape[1] : i / shape[2] % shape[1];
        int32_t e = fortran ? i / shape[0] / shape[1] : i % shape[2];
        uint32_t sum = summed(log, t, l, e);
        uint8_t bytes[4] = {(uint8_t)sum, (uint8_t)(sum >> 8), (uint8_t)(sum >> 16),
                            (uint8_t)(sum >> 24)};
        fwrite(bytes, 1, 4, file);
    }
    assert_int_equal(fclose(file), 0);
}

static eplb_window *window_for(const recording *log, eplb_random *random)
{
    eplb_window_options options = window_options(log->layers, log->experts);
    options.buckets = MOST_STEPS;
    options.steps_per_bucket = draw(random, 1, 3);
    options.layer_ids = log->layer_ids;
    return make_window(options);
}

/* Records each step of a source; returns how many there were. */
static int32_t replay(const recording *log, const char *text, bool has_ids, eplb_window *window)
{
    eplb_error error;
    eplb_source *source;
    eplb_source_step step = {.struct_size = sizeof(step)};
    eplb_status status;
    int32_t steps = 0;
    assert_ok(eplb_source_open(&source, NULL, text, NULL, &error), &error);
    while ((status = eplb_source_next(source, &step, &error)) == EPLB_OK) {
        assert_int_equal(step.step, has_ids ? log->step_numbers[steps] : steps);
        assert_int_equal(step.rows, log->layers);
        assert_int_equal(step.experts, log->experts);
        begin_step(window);
        for (int32_t l = 0; l < step.rows; l++) {
            assert_int_equal(step.layer_ids[l], has_ids ? log->layer_ids[l] : l);
            uint32_t counts[MOST_EXPERTS];
            for (int32_t e = 0; e < step.experts; e++) {
                counts[e] = (uint32_t)step.counts[l * step.experts + e];
            }
            record(window, l, counts);
        }
        steps++;
    }
    assert_status(status, EPLB_END, &error);
    eplb_source_close(&source);
    return steps;
}

static eplb_load *load_of_window(eplb_window *window)
{
    eplb_snapshot *snapshot = take_snapshot(window);
    const eplb_snapshot *snapshots[] = {snapshot};
    eplb_snapshot_load_options options;
    eplb_snapshot_load_options_init(&options);
    options.buckets_per_scenario = -1;
    eplb_error error;
    eplb_load *load;
    assert_ok(eplb_snapshot_load(&load, NULL, snapshots, 1, &options, &error), &error);
    eplb_snapshot_destroy(&snapshot);
    return load;
}

static eplb_load *load_of_source(const char *text, int32_t slices)
{
    eplb_source_load_options options;
    eplb_source_load_options_init(&options);
    options.slices = slices;
    eplb_error error;
    eplb_load *load;
    assert_ok(eplb_source_load(&load, NULL, &text, 1, NULL, &options, &error), &error);
    return load;
}

/* All counts are integers, so sums are exact in any order. */
static void assert_load_of(const recording *log, const eplb_load *load, bool has_ids)
{
    assert_int_equal(eplb_load_layers(load), log->layers);
    assert_int_equal(eplb_load_experts(load), log->experts);
    for (int32_t l = 0; l < log->layers; l++) {
        assert_int_equal(eplb_load_layer_ids(load)[l], has_ids ? log->layer_ids[l] : l);
        for (int32_t e = 0; e < log->experts; e++) {
            double expected = 0.0;
            double sum = 0.0;
            for (int32_t t = 0; t < log->steps; t++) {
                expected += summed(log, t, l, e);
            }
            for (int32_t s = 0; s < eplb_load_scenarios(load); s++) {
                sum += eplb_load_row(load, s, l)[e];
            }
            assert_true(sum == expected);
        }
    }
}

static void check_source(const recording *log, const char *text, bool has_ids, int32_t slices)
{
    eplb_load *load = load_of_source(text, 1);
    assert_int_equal(eplb_load_scenarios(load), 1);
    assert_load_of(log, load, has_ids);
    eplb_load_destroy(&load);
    load = load_of_source(text, slices);
    assert_in_range(eplb_load_scenarios(load), 1, slices);
    assert_load_of(log, load, has_ids);
    eplb_load_destroy(&load);
}

static void check_replay(const recording *log, const char *text, bool has_ids, eplb_random *random)
{
    eplb_window *window = window_for(log, random);
    assert_int_equal(replay(log, text, has_ids, window), log->steps);
    eplb_load *load = load_of_window(window);
    assert_int_equal(eplb_load_scenarios(load), 1);
    assert_load_of(log, load, true);
    eplb_load_destroy(&load);
    eplb_window_destroy(&window);
}

static void write_ranks(const recording *log, const char *directory, eplb_random *random)
{
    assert_int_equal(mkdir(directory, 0700), 0);
    for (int32_t r = 0; r < log->ranks; r++) {
        char name[32];
        snprintf(name, sizeof(name), "rank%d", r);
        test_path path = test_join(directory, name);
        write_rank(log, r, path.text, random);
    }
}

static void replayed_log_is_what_the_log_says(void **state)
{
    static recording log;
    test_path array = test_join(*state, "array.npy");
    test_path columns = test_join(*state, "columns.npy");
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        draw_recording(&log, &random);
        char directory[32];
        snprintf(directory, sizeof(directory), "log%llu", (unsigned long long)seed);
        test_path ranks = test_join(*state, directory);
        write_ranks(&log, ranks.text, &random);
        write_npy(&log, array.text, false);
        write_npy(&log, columns.text, true);
        int32_t slices = draw(&random, 2, MOST_STEPS + 2);
        check_source(&log, ranks.text, true, slices);
        check_source(&log, array.text, false, slices);
        check_source(&log, columns.text, false, slices);
        check_replay(&log, ranks.text, true, &random);
        check_replay(&log, array.text, false, &random);
    }
}

enum { MOST_TOTALS = 30 };

/* The tokens before each step that has any, and behind the last one. */
typedef struct totals {
    int32_t steps;
    int64_t before[MOST_TOTALS + 1];
} totals;

static totals write_totals(const char *path, eplb_random *random)
{
    totals drawn = {0};
    int32_t steps = draw(random, 1, MOST_TOTALS);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int32_t t = 0; t < steps; t++) {
        int32_t tokens = draw(random, 0, 3) == 0 ? 0 : 1 << draw(random, 0, 6);
        fprintf(file, "{\"step\":%d,\"layer\":0,\"counts\":[%d]}\n", t, tokens);
        drawn.before[drawn.steps + 1] = drawn.before[drawn.steps] + tokens;
        drawn.steps += tokens > 0 ? 1 : 0;
    }
    assert_int_equal(fclose(file), 0);
    return drawn;
}

/* The place behind `start` that is nearest to the share of a cut and leaves a step for each slice
 * behind it. */
static int32_t best_place(const totals *all, int32_t start, int32_t cut, int32_t slices)
{
    int64_t wanted = all->before[all->steps] * cut;
    int32_t best = start + 1;
    for (int32_t place = start + 2; place <= all->steps - (slices - cut); place++) {
        int64_t off = llabs(all->before[place] * slices - wanted);
        best = off < llabs(all->before[best] * slices - wanted) ? place : best;
    }
    return best;
}

static void cuts_are_nearest_to_equal_shares(void **state)
{
    test_path path = test_join(*state, "f");
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        totals all = write_totals(path.text, &random);
        int32_t wanted = draw(&random, 2, 9);
        int32_t slices = all.steps < wanted ? all.steps : wanted;
        eplb_load *load = load_of_source(path.text, wanted);
        assert_int_equal(eplb_load_scenarios(load), slices > 0 ? slices : 1);
        int32_t start = 0;
        for (int32_t cut = 1; cut <= slices; cut++) {
            int32_t end = cut < slices ? best_place(&all, start, cut, slices) : all.steps;
            double tokens = (double)(all.before[end] - all.before[start]);
            assert_true(eplb_load_row(load, cut - 1, 0)[0] == tokens);
            start = end;
        }
        eplb_load_destroy(&load);
    }
}

static int teardown(void **state)
{
    test_tell_seed(state);
    return test_directory_teardown(state);
}

#define SEEDED_IN_DIRECTORY(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, test_directory_setup, teardown)

TEST_MAIN(SEEDED_IN_DIRECTORY(replayed_log_is_what_the_log_says),
          SEEDED_IN_DIRECTORY(cuts_are_nearest_to_equal_shares))
