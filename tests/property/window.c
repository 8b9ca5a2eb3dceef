/* SPDX-License-Identifier: MIT */
/*
 * Random calls to the windows of several ranks, beside a model that keeps each step's counts: a
 * snapshot must have what the model's last steps add up to, on each rank and merged.
 */
#include "instance.h"

#include <eplb/snapshot.h>
#include <eplb/window.h>

enum { SEEDS = 400, CALLS = 120, RANKS = 2, MOST_LAYERS = 3, MOST_STEPS = CALLS + 1 };

/* What one step counted on one rank. */
typedef struct step_counts {
    bool counted;
    uint64_t sums[MOST_LAYERS][MOST_EXPERTS];
    uint64_t dropped;
} step_counts;

typedef struct model {
    eplb_window_options options;
    int32_t steps;                 /* begun */
    int32_t bucket_of[MOST_STEPS]; /* of each step */
    int32_t buckets;               /* begun */
    int32_t steps_in_bucket;       /* of the last one */
    int32_t first_bucket;          /* since the last reset */
    bool open;                     /* a step is current */
    bool has_map;
    int32_t map[MOST_LAYERS][MOST_SLOTS];
    int32_t slot_bucket[RANKS]; /* the last with slot counts; -1: none */
    step_counts rank[RANKS][MOST_STEPS];
} model;

static int32_t oldest_bucket(const model *m)
{
    int32_t in_ring = m->buckets - m->options.buckets;
    return in_ring > m->first_bucket ? in_ring : m->first_bucket;
}

static step_counts *current(model *m, int32_t rank)
{
    bool counts = m->open && m->rank[rank][m->steps - 1].counted;
    return counts ? &m->rank[rank][m->steps - 1] : NULL;
}

static void begin_steps(model *m, eplb_random *random, eplb_window **windows)
{
    if (!m->open || m->steps_in_bucket == m->options.steps_per_bucket) {
        m->buckets++;
        m->steps_in_bucket = 0;
    }
    m->open = true;
    m->steps_in_bucket++;
    m->bucket_of[m->steps] = m->buckets - 1;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        bool dummy = draw(random, 0, 4) == 0;
        eplb_step_kind kind = dummy ? EPLB_STEP_DUMMY : EPLB_STEP_COUNTED;
        assert_ok(eplb_window_begin_step(windows[rank], kind, NULL), NULL);
        m->rank[rank][m->steps].counted = !dummy && m->steps >= m->options.skip_steps;
    }
    m->steps++;
}

static void record_counts(model *m, eplb_random *random, eplb_recorder *recorder, int32_t rank)
{
    int32_t layer = draw(random, 0, m->options.layers - 1);
    step_counts *step = current(m, rank);
    uint32_t counts[MOST_EXPERTS];
    for (int32_t e = 0; e < m->options.experts; e++) {
        counts[e] = (uint32_t)eplb_random_next(random) >> draw(random, 0, 31);
        if (step != NULL) {
            step->sums[layer][e] += counts[e];
        }
    }
    assert_ok(eplb_recorder_counts(recorder, layer, counts, NULL), NULL);
}

static void record_ids(model *m, eplb_random *random, eplb_recorder *recorder, int32_t rank)
{
    enum { MOST_TOKENS = 9, MOST_TOPK = 4 };
    int32_t layer = draw(random, 0, m->options.layers - 1);
    int32_t tokens = draw(random, 0, MOST_TOKENS);
    int32_t k = draw(random, 1, MOST_TOPK);
    step_counts *step = current(m, rank);
    int32_t ids[MOST_TOKENS * MOST_TOPK];
    for (int32_t i = 0; i < tokens * k; i++) {
        ids[i] = draw(random, -2, m->options.experts);
        if (step != NULL && ids[i] >= 0 && ids[i] < m->options.experts) {
            step->sums[layer][ids[i]]++;
        } else if (step != NULL && ids[i] != -1) {
            step->dropped++;
        }
    }
    assert_ok(eplb_recorder_topk(recorder, layer, ids, tokens, k, NULL), NULL);
}

static void record_slots(model *m, eplb_random *random, eplb_recorder *recorder, int32_t rank)
{
    int32_t layer = draw(random, 0, m->options.layers - 1);
    step_counts *step = m->has_map ? current(m, rank) : NULL;
    uint32_t counts[MOST_SLOTS];
    for (int32_t s = 0; s < m->options.slots; s++) {
        counts[s] = (uint32_t)eplb_random_next(random) >> draw(random, 0, 31);
        int32_t expert = m->map[layer][s];
        if (step != NULL && expert >= 0) {
            step->sums[layer][expert] += counts[s];
        } else if (step != NULL) {
            step->dropped += counts[s];
        }
    }
    if (step != NULL) {
        m->slot_bucket[rank] = m->buckets - 1;
    }
    assert_status(eplb_recorder_slot_counts(recorder, layer, counts, NULL),
                  m->has_map ? EPLB_OK : EPLB_ERROR_ARGUMENT, NULL);
}

/* Half of the time the one in force again. On each rank by itself, as ranks may differ in what they
 * hold; the model goes on only where all take it, so that all have the same map. */
static void change_placement(model *m, eplb_random *random, eplb_window **windows)
{
    eplb_cluster *cluster = NULL;
    eplb_placement *placement = NULL;
    int32_t row[MOST_SLOTS];
    assert_ok(eplb_cluster_create(&cluster, NULL, 1, m->options.slots, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, m->options.layers,
                                    m->options.experts, NULL),
              NULL);
    bool again = m->has_map && draw(random, 0, 1) == 0;
    bool same = m->has_map;
    int32_t map[MOST_LAYERS][MOST_SLOTS];
    for (int32_t l = 0; l < m->options.layers; l++) {
        for (int32_t s = 0; s < m->options.slots; s++) {
            row[s] = again ? m->map[l][s] : draw(random, -1, m->options.experts - 1);
            map[l][s] = row[s];
            same = same && row[s] == m->map[l][s];
        }
        assert_ok(eplb_placement_set_row(placement, l, row, NULL), NULL);
    }
    bool held = false;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        held = held || m->slot_bucket[rank] >= oldest_bucket(m);
    }
    bool fine = same || !held || m->options.fold_each_step;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        bool own = m->slot_bucket[rank] >= oldest_bucket(m);
        if (fine || own) {
            assert_status(eplb_window_set_placement(windows[rank], placement, NULL),
                          fine ? EPLB_OK : EPLB_ERROR_DATA, NULL);
        }
    }
    if (fine) {
        memcpy(m->map, map, sizeof(map));
        m->has_map = true;
    }
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
}

static void reset(model *m, eplb_window **windows)
{
    for (int32_t rank = 0; rank < RANKS; rank++) {
        eplb_window_reset(windows[rank]);
    }
    m->first_bucket = m->buckets;
    m->open = false;
}

/* Compares a snapshot of ranks first..last. */
static void compare(const model *m, const eplb_snapshot *snapshot, int32_t first, int32_t last)
{
    eplb_snapshot_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_snapshot_get_info(snapshot, &info, NULL), NULL);
    assert_int_equal(info.steps, m->steps);
    assert_int_equal(info.buckets, m->buckets - oldest_bucket(m));
    assert_int_equal(info.first_bucket, oldest_bucket(m));
    assert_int_equal(info.ranks_held, last - first + 1);
    uint64_t dropped = 0;
    for (int32_t b = oldest_bucket(m); b < m->buckets; b++) {
        uint64_t sums[MOST_LAYERS][MOST_EXPERTS] = {{0}};
        int64_t filled = 0;
        for (int32_t t = 0; t < m->steps; t++) {
            bool counted = false;
            for (int32_t r = first; r <= last && m->bucket_of[t] == b; r++) {
                const step_counts *step = &m->rank[r][t];
                counted = counted || step->counted;
                dropped += step->dropped;
                for (int32_t i = 0; i < MOST_LAYERS * MOST_EXPERTS; i++) {
                    sums[i / MOST_EXPERTS][i % MOST_EXPERTS] +=
                        step->sums[i / MOST_EXPERTS][i % MOST_EXPERTS];
                }
            }
            filled += counted;
        }
        assert_int_equal(eplb_snapshot_filled_steps(snapshot, b), filled);
        for (int32_t l = 0; l < m->options.layers; l++) {
            assert_memory_equal(eplb_snapshot_row(snapshot, b, l), sums[l],
                                (size_t)m->options.experts * sizeof(uint64_t));
        }
    }
    assert_int_equal(info.dropped, dropped);
}

static void compare_all(const model *m, eplb_window **windows)
{
    eplb_snapshot *snapshots[RANKS];
    for (int32_t rank = 0; rank < RANKS; rank++) {
        assert_ok(eplb_window_snapshot(&snapshots[rank], windows[rank], NULL, NULL), NULL);
        compare(m, snapshots[rank], rank, rank);
    }
    for (int32_t rank = 1; rank < RANKS; rank++) {
        assert_ok(eplb_snapshot_merge(snapshots[0], snapshots[rank], NULL), NULL);
        eplb_snapshot_destroy(&snapshots[rank]);
    }
    compare(m, snapshots[0], 0, RANKS - 1);
    eplb_snapshot_destroy(&snapshots[0]);
}

static void start(model *m, eplb_random *random, eplb_window **windows)
{
    memset(m, 0, sizeof(*m));
    eplb_window_options_init(&m->options);
    m->options.layers = draw(random, 1, MOST_LAYERS);
    m->options.experts = draw(random, 1, MOST_EXPERTS);
    m->options.slots = draw(random, 1, MOST_SLOTS);
    m->options.buckets = draw(random, 1, 4);
    m->options.steps_per_bucket = draw(random, 1, 5);
    m->options.recorders = draw(random, 1, 3);
    m->options.skip_steps = draw(random, 0, 3);
    m->options.fold_each_step = draw(random, 0, 1);
    m->options.ranks = RANKS;
    for (int32_t rank = 0; rank < RANKS; rank++) {
        m->options.rank = rank;
        m->slot_bucket[rank] = -1;
        assert_ok(eplb_window_create(&windows[rank], NULL, &m->options, NULL), NULL);
    }
}

static void snapshots_agree_with_a_model_that_keeps_every_step(void **state)
{
    (void)state;
    static model m;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_window *windows[RANKS];
        start(&m, &random, windows);
        for (int32_t call = 0; call < CALLS; call++) {
            int32_t rank = draw(&random, 0, RANKS - 1);
            eplb_recorder *recorder =
                eplb_window_recorder(windows[rank], draw(&random, 0, m.options.recorders - 1));
            switch (draw(&random, 0, 13)) {
            case 0:
            case 1:
            case 2:
                begin_steps(&m, &random, windows);
                break;
            case 3:
                change_placement(&m, &random, windows);
                break;
            case 4:
                compare_all(&m, windows);
                break;
            case 5:
                if (draw(&random, 0, 9) == 0) {
                    reset(&m, windows);
                }
                break;
            case 6:
            case 7:
            case 8:
                record_slots(&m, &random, recorder, rank);
                break;
            case 9:
            case 10:
            case 11:
                record_counts(&m, &random, recorder, rank);
                break;
            default:
                record_ids(&m, &random, recorder, rank);
                break;
            }
        }
        compare_all(&m, windows);
        for (int32_t rank = 0; rank < RANKS; rank++) {
            eplb_window_destroy(&windows[rank]);
        }
    }
}

TEST_MAIN(seeded_test(snapshots_agree_with_a_model_that_keeps_every_step))
