/* SPDX-License-Identifier: MIT */
/* Recorders, the owner and readers at the same time. */
#include "window.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <eplb/random.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SLOW_BUILD 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOW_BUILD 1
#endif
#ifdef SLOW_BUILD
#define SHARE 20 /* of the work of a plain build, a twentieth */
#else
#define SHARE 1
#endif

enum {
    THREADS = 8,
    LAYERS = 3,
    EXPERTS = 40,
    SLOTS = 42,
    TOKENS = 125,
    TOPK = 8,
    IDS = TOKENS * TOPK,
    CALLS = 10000 / SHARE, /* of each thread: 10 million ids in a plain build */
};

/* CMocka's assertions work in one thread only: others remember what went wrong. */
typedef struct recording {
    eplb_recorder *recorder;
    int32_t ids[IDS];
    atomic_int done; /* calls */
    bool failed;
    pthread_t thread;
} recording;

static void *record_ids(void *context)
{
    recording *r = context;
    for (int i = 0; i < CALLS; i++) {
        eplb_status status =
            eplb_recorder_topk(r->recorder, i % LAYERS, r->ids, TOKENS, TOPK, NULL);
        r->failed = r->failed || status != EPLB_OK;
        atomic_fetch_add(&r->done, 1);
    }
    return NULL;
}

static void start_recording(recording *r, eplb_window *window, int32_t index)
{
    eplb_random random;
    eplb_random_seed(&random, (uint64_t)index);
    for (int i = 0; i < IDS; i++) {
        r->ids[i] = (int32_t)eplb_random_below(&random, EXPERTS + 2) - 1;
    }
    r->recorder = eplb_window_recorder(window, index);
    r->failed = false;
    atomic_init(&r->done, 0);
    assert_int_equal(pthread_create(&r->thread, NULL, record_ids, r), 0);
}

static int64_t calls_done(recording *recordings)
{
    int64_t done = 0;
    for (int32_t t = 0; t < THREADS; t++) {
        done += atomic_load(&recordings[t].done);
    }
    return done;
}

/* Ids that count, or are dropped, in any bucket. */
static int64_t ids_in(const eplb_snapshot *snapshot)
{
    eplb_snapshot_info info = info_of(snapshot);
    uint64_t total = info.dropped;
    for (int64_t b = info.first_bucket; b < info.first_bucket + info.buckets; b++) {
        for (int32_t l = 0; l < LAYERS; l++) {
            for (int32_t e = 0; e < EXPERTS; e++) {
                total += eplb_snapshot_row(snapshot, b, l)[e];
            }
        }
    }
    return (int64_t)total;
}

/* Ids of all threads' calls that are no padding. */
static int64_t real_ids_of_a_call(const recording *r)
{
    int64_t real = 0;
    for (int i = 0; i < IDS; i++) {
        real += r->ids[i] != -1;
    }
    return real;
}

static void assert_exact(const eplb_snapshot *snapshot, const recording *recordings)
{
    uint64_t expected[LAYERS][EXPERTS] = {{0}};
    uint64_t dropped = 0;
    for (int32_t t = 0; t < THREADS; t++) {
        for (int i = 0; i < IDS; i++) {
            int32_t id = recordings[t].ids[i];
            dropped += id == EXPERTS ? CALLS : 0;
            for (int32_t l = 0; l < LAYERS && id >= 0 && id < EXPERTS; l++) {
                expected[l][id] += (CALLS + LAYERS - 1 - (uint64_t)l) / LAYERS;
            }
        }
    }
    eplb_snapshot_info info = info_of(snapshot);
    assert_int_equal(info.dropped, dropped);
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t e = 0; e < EXPERTS; e++) {
            uint64_t sum = 0;
            for (int32_t b = 0; b < info.buckets; b++) {
                sum += eplb_snapshot_row(snapshot, info.first_bucket + b, l)[e];
            }
            assert_int_equal(sum, expected[l][e]);
        }
    }
}

/* The first thread is owner and reader: it begins steps and takes snapshots all the while. */
static void totals_are_exact_while_snapshots_are_taken(void **state)
{
    (void)state;
    static recording recordings[THREADS];
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.recorders = THREADS;
    options.buckets = 64;
    options.steps_per_bucket = 2;
    eplb_window *window = make_window(options);
    begin_step(window);
    int64_t ids_of_all_calls = 0;
    for (int32_t t = 0; t < THREADS; t++) {
        start_recording(&recordings[t], window, t);
        ids_of_all_calls += CALLS * real_ids_of_a_call(&recordings[t]);
    }
    int64_t last = 0;
    for (int step = 1; calls_done(recordings) < (int64_t)THREADS * CALLS; step++) {
        int64_t least = atomic_load(&recordings[0].done) * real_ids_of_a_call(&recordings[0]);
        eplb_snapshot *snapshot = take_snapshot(window);
        int64_t ids = ids_in(snapshot);
        assert_true(ids >= least && ids >= last && ids <= ids_of_all_calls);
        last = ids;
        eplb_snapshot_destroy(&snapshot);
        if (step < 100) {
            begin_step(window);
        }
    }
    for (int32_t t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(recordings[t].thread, NULL), 0);
        assert_false(recordings[t].failed);
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_int_equal(ids_in(snapshot), ids_of_all_calls);
    assert_exact(snapshot, recordings);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

enum { EVEN_RECORDERS = 2, EVEN_CALLS = 60000 / SHARE };

/* Counts that are the same for all experts of a layer, by each of the three kinds of call. */
typedef struct even_recording {
    eplb_recorder *recorder;
    bool failed;
    pthread_t thread;
} even_recording;

static void *record_evenly(void *context)
{
    even_recording *r = context;
    uint32_t counts[SLOTS];
    int32_t ids[EXPERTS];
    for (int32_t i = 0; i < SLOTS; i++) {
        counts[i] = i < EXPERTS ? 7 : 0;
    }
    for (int32_t e = 0; e < EXPERTS; e++) {
        ids[e] = e;
    }
    for (int i = 0; i < EVEN_CALLS; i++) {
        eplb_status status =
            i % 3 == 0   ? eplb_recorder_counts(r->recorder, i / 3 % LAYERS, counts, NULL)
            : i % 3 == 1 ? eplb_recorder_topk(r->recorder, i / 3 % LAYERS, ids, 1, EXPERTS, NULL)
                         : eplb_recorder_slot_counts(r->recorder, i / 3 % LAYERS, counts, NULL);
        r->failed = r->failed || status != EPLB_OK;
    }
    return NULL;
}

/* Two placements in each of which the first slots hold each expert once. */
static eplb_placement *make_even_placement(int32_t shift)
{
    eplb_placement *placement = make_placement(make_cluster(2, SLOTS / 2, 0), LAYERS, EXPERTS);
    int32_t row[SLOTS];
    for (int32_t s = 0; s < SLOTS; s++) {
        row[s] = s < EXPERTS ? (s + shift) % EXPERTS : -1;
    }
    for (int32_t l = 0; l < LAYERS; l++) {
        set_row(placement, l, row);
    }
    return placement;
}

/* Steps begin without a pause, in a window of two buckets, and placements change. */
typedef struct ownership {
    eplb_window *window;
    eplb_placement *placements[2];
    atomic_bool *stop;
    bool failed;
    pthread_t thread;
} ownership;

static void *own(void *context)
{
    ownership *o = context;
    for (int step = 0; !atomic_load(o->stop); step++) {
        bool good =
            eplb_window_begin_step(o->window, step % 5 == 0 ? EPLB_STEP_DUMMY : EPLB_STEP_COUNTED,
                                   NULL) == EPLB_OK;
        if (step % 16 == 0) {
            good = good && eplb_window_set_placement(o->window, o->placements[step / 16 % 2],
                                                     NULL) == EPLB_OK;
        }
        if (step % 1000 == 0) {
            eplb_window_reset(o->window);
        }
        o->failed = o->failed || !good;
        (void)sched_yield();
    }
    return NULL;
}

static void read_even_rows(eplb_window *window)
{
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_snapshot_info info = info_of(snapshot);
    for (int32_t b = 0; b < info.buckets; b++) {
        for (int32_t l = 0; l < LAYERS; l++) {
            const uint64_t *row = eplb_snapshot_row(snapshot, info.first_bucket + b, l);
            for (int32_t e = 1; e < EXPERTS; e++) {
                assert_int_equal(row[e], row[0]);
            }
        }
    }
    eplb_snapshot_destroy(&snapshot);
}

/* The test's own thread is the reader. No row may mix two buckets, two maps or half a call. */
static void record_and_read(int snapshots)
{
    atomic_bool stop;
    atomic_init(&stop, false);
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.recorders = EVEN_RECORDERS;
    options.slots = SLOTS;
    options.fold_each_step = 1;
    options.buckets = 2;
    options.steps_per_bucket = 3;
    ownership o = {.window = make_window(options), .stop = &stop};
    o.placements[0] = make_even_placement(0);
    o.placements[1] = make_even_placement(11);
    assert_ok(eplb_window_set_placement(o.window, o.placements[1], NULL), NULL);
    even_recording r[EVEN_RECORDERS];
    assert_int_equal(pthread_create(&o.thread, NULL, own, &o), 0);
    for (int32_t i = 0; i < EVEN_RECORDERS; i++) {
        r[i] = (even_recording){.recorder = eplb_window_recorder(o.window, i)};
        assert_int_equal(pthread_create(&r[i].thread, NULL, record_evenly, &r[i]), 0);
    }
    for (int i = 0; i < snapshots; i++) {
        read_even_rows(o.window);
    }
    for (int32_t i = 0; i < EVEN_RECORDERS; i++) {
        assert_int_equal(pthread_join(r[i].thread, NULL), 0);
        assert_false(r[i].failed);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(o.thread, NULL), 0);
    assert_false(o.failed);
    read_even_rows(o.window);
    eplb_placement_destroy(&o.placements[0]);
    eplb_placement_destroy(&o.placements[1]);
    eplb_window_destroy(&o.window);
}

static void rows_are_whole_while_buckets_and_placements_change(void **state)
{
    (void)state;
    record_and_read(2000 / SHARE);
}

/* Without readers, which bring threads in step with each other, the thread sanitizer sees more. */
static void placements_change_while_slot_counts_are_recorded(void **state)
{
    (void)state;
    record_and_read(0);
}

TEST_MAIN(cmocka_unit_test(totals_are_exact_while_snapshots_are_taken),
          cmocka_unit_test(rows_are_whole_while_buckets_and_placements_change),
          cmocka_unit_test(placements_change_while_slot_counts_are_recorded))
