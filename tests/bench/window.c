/* SPDX-License-Identifier: MIT */
/*
 * The recording side of a window: a step of 58 layers x 256 experts beside a memcpy of the same
 * bytes, top-k ids on one thread and on two, and all of it while snapshots are taken. Each figure
 * is the best of many runs.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>

#include "bench.h"

#define RUNS 10000
#define LAYERS 58
#define EXPERTS 256
#define SLOTS 288
#define THREADS 2
#define TOKENS 4096
#define TOPK 8
#define ID_CALLS 500

static double seconds(void)
{
    return bench_seconds(CLOCK_MONOTONIC);
}

static eplb_window *make_window(void)
{
    eplb_error error;
    eplb_window_options options;
    eplb_window_options_init(&options);
    options.layers = LAYERS;
    options.experts = EXPERTS;
    options.slots = SLOTS;
    options.recorders = THREADS;
    eplb_window *window;
    bench_check(eplb_window_create(&window, NULL, &options, &error), &error);
    bench_check(eplb_window_begin_step(window, EPLB_STEP_COUNTED, &error), &error);
    eplb_cluster *cluster;
    eplb_placement *placement;
    bench_check(eplb_cluster_create(&cluster, NULL, 32, SLOTS / 32, 0, &error), &error);
    bench_check(eplb_placement_create(&placement, NULL, cluster, LAYERS, EXPERTS, &error), &error);
    for (int32_t l = 0; l < LAYERS; l++) {
        bench_check(eplb_placement_spread(placement, l, &error), &error);
    }
    bench_check(eplb_window_set_placement(window, placement, &error), &error);
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
    return window;
}

typedef void step_function(eplb_recorder *recorder, const uint32_t *counts);

/* Volatile, so that no compiler leaves out a copy that nobody reads. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

static void copy_step(eplb_recorder *recorder, const uint32_t *counts)
{
    static uint32_t copied[LAYERS][EXPERTS];
    (void)recorder;
    (void)copy(copied, counts, sizeof(copied));
}

static void record_counts(eplb_recorder *recorder, const uint32_t *counts)
{
    for (int32_t l = 0; l < LAYERS; l++) {
        bench_check(eplb_recorder_counts(recorder, l, counts + l * EXPERTS, NULL), NULL);
    }
}

static void record_slot_counts(eplb_recorder *recorder, const uint32_t *counts)
{
    for (int32_t l = 0; l < LAYERS; l++) {
        bench_check(eplb_recorder_slot_counts(recorder, l, counts + l * SLOTS, NULL), NULL);
    }
}

/* In turn, so that other work on the machine meets all alike. */
static void measure_steps(eplb_window *window, const char *when)
{
    static const struct {
        const char *name;
        step_function *step;
    } ways[] = {{"memcpy", copy_step},
                {"counts", record_counts},
                {"counts of 288 slots, folded", record_slot_counts}};
    enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
    static uint32_t counts[LAYERS * SLOTS];
    for (uint32_t i = 0; i < LAYERS * SLOTS; i++) {
        counts[i] = i * 2654435769u >> 20;
    }
    eplb_recorder *recorder = eplb_window_recorder(window, 0);
    double best[WAYS] = {INFINITY, INFINITY, INFINITY};
    for (int run = 0; run < RUNS; run++) {
        for (int way = 0; way < WAYS; way++) {
            ways[way].step(recorder, counts);
            double start = seconds();
            ways[way].step(recorder, counts);
            best[way] = fmin(best[way], seconds() - start);
        }
    }
    printf("a step of %d x %d counts%s\n", LAYERS, EXPERTS, when);
    for (int way = 0; way < WAYS; way++) {
        printf("  %-28s %8.2f us %8.2f x memcpy\n", ways[way].name, 1e6 * best[way],
               best[way] / best[0]);
    }
    printf("\n");
}

/* How ids are drawn: all alike, a few experts most of the time, one expert, half of them padding */
typedef enum id_kind { UNIFORM, SKEWED, SAME, PADDED, ID_KINDS } id_kind;

static void draw_ids(int32_t *ids, id_kind kind)
{
    eplb_random random;
    eplb_random_seed(&random, 1);
    for (int i = 0; i < TOKENS * TOPK; i++) {
        double unit = eplb_random_unit(&random);
        ids[i] = (int32_t)(EXPERTS * (kind == SKEWED ? unit * unit * unit : unit));
        ids[i] = kind == SAME ? 7 : ids[i];
        ids[i] = kind == PADDED && eplb_random_below(&random, 2) == 0 ? -1 : ids[i];
    }
}

typedef struct id_thread {
    eplb_recorder *recorder;
    const int32_t *ids;
    double cpu_seconds;
    pthread_t thread;
} id_thread;

static void *record_ids(void *context)
{
    id_thread *t = context;
    double start = bench_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < ID_CALLS; i++) {
        bench_check(eplb_recorder_topk(t->recorder, i % LAYERS, t->ids, TOKENS, TOPK, NULL), NULL);
    }
    t->cpu_seconds = bench_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    return NULL;
}

/* Million ids of all threads a second. */
typedef struct id_rate {
    double wall; /* of a clock on the wall: less where the machine has other work */
    double cpu;  /* each thread by its own processor time */
} id_rate;

static id_rate measure_rate(eplb_window *window, const int32_t *ids, int32_t threads)
{
    id_rate best = {0};
    double millions = 1e-6 * ID_CALLS * TOKENS * TOPK;
    for (int run = 0; run < 9; run++) {
        id_thread t[THREADS];
        double start = seconds();
        for (int32_t i = 0; i < threads; i++) {
            t[i] = (id_thread){.recorder = eplb_window_recorder(window, i), .ids = ids};
            if (pthread_create(&t[i].thread, NULL, record_ids, &t[i]) != 0) {
                exit(EXIT_FAILURE);
            }
        }
        double cpu = 0.0;
        for (int32_t i = 0; i < threads; i++) {
            (void)pthread_join(t[i].thread, NULL);
            cpu += millions / t[i].cpu_seconds;
        }
        best.wall = fmax(best.wall, threads * millions / (seconds() - start));
        best.cpu = fmax(best.cpu, cpu);
    }
    return best;
}

static void measure_ids(eplb_window *window)
{
    static const char *const names[ID_KINDS] = {"uniform", "skewed", "one expert", "half padding"};
    static int32_t ids[TOKENS * TOPK];
    printf("top-k ids, %d tokens x %d, million a second, by wall clock and by processor time\n",
           TOKENS, TOPK);
    printf("  %-14s %17s %21s\n", "", "1 thread", "2 threads");
    for (id_kind kind = UNIFORM; kind < ID_KINDS; kind++) {
        draw_ids(ids, kind);
        id_rate one = measure_rate(window, ids, 1);
        id_rate two = measure_rate(window, ids, 2);
        printf("  %-14s %8.0f %8.0f %12.0f %8.0f\n", names[kind], one.wall, one.cpu, two.wall,
               two.cpu);
    }
    printf("\n");
}

typedef struct reader {
    eplb_window *window;
    atomic_bool stop;
    int snapshots;
    double taken; /* seconds, all snapshots */
    pthread_t thread;
} reader;

static void *take_snapshots(void *context)
{
    reader *r = context;
    eplb_error error;
    while (!atomic_load(&r->stop)) {
        double start = seconds();
        eplb_snapshot *snapshot;
        bench_check(eplb_window_snapshot(&snapshot, r->window, NULL, &error), &error);
        eplb_snapshot_destroy(&snapshot);
        r->taken += seconds() - start;
        r->snapshots++;
    }
    return NULL;
}

/* Of a window with all buckets full. */
static void measure_snapshot(eplb_window *window)
{
    static uint32_t counts[LAYERS * EXPERTS];
    for (int i = 0; i < LAYERS * EXPERTS; i++) {
        counts[i] = 1;
    }
    eplb_error error;
    eplb_window_options defaults;
    eplb_window_options_init(&defaults);
    for (int32_t step = 0; step < defaults.buckets * defaults.steps_per_bucket; step++) {
        bench_check(eplb_window_begin_step(window, EPLB_STEP_COUNTED, &error), &error);
        for (int32_t r = 0; r < THREADS; r++) {
            record_counts(eplb_window_recorder(window, r), counts);
        }
    }
    double best = INFINITY;
    for (int i = 0; i < 50; i++) {
        double start = seconds();
        eplb_snapshot *snapshot;
        bench_check(eplb_window_snapshot(&snapshot, window, NULL, &error), &error);
        best = fmin(best, seconds() - start);
        eplb_snapshot_destroy(&snapshot);
    }
    double counters = (double)THREADS * defaults.buckets * LAYERS * EXPERTS;
    printf("a snapshot of %d recorders, %d buckets: %.2f ms, %.2f ms for each million counters\n",
           THREADS, defaults.buckets, 1e3 * best, 1e9 * best / counters);
}

int main(void)
{
    eplb_window *window = make_window();
    measure_steps(window, "");
    measure_ids(window);
    reader r = {.window = window};
    atomic_init(&r.stop, false);
    if (pthread_create(&r.thread, NULL, take_snapshots, &r) != 0) {
        return EXIT_FAILURE;
    }
    measure_steps(window, ", while snapshots are taken");
    atomic_store(&r.stop, true);
    (void)pthread_join(r.thread, NULL);
    printf("%d snapshots of %d recorders, 1 bucket, %.2f ms each\n", r.snapshots, THREADS,
           1e3 * r.taken / fmax(1, r.snapshots));
    measure_snapshot(window);
    eplb_window_destroy(&window);
    return EXIT_SUCCESS;
}
