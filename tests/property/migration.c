/* SPDX-License-Identifier: MIT */
/*
 * Schedules of random rebalances, carried out by a simulator that knows nothing of how they are
 * made: weights are tags (the expert's number), a slot that is being written holds garbage, and
 * tokens of every expert are routed to every slot of the map in force before the first copy and
 * after each. What it sees of the sources tells how busy the busiest sender must be.
 */
#include "least_busy.h"

#include <eplb/migration.h>

enum { REBALANCES = 1000, LAYERS = 2, GARBAGE = -1 };

typedef struct scene {
    eplb_placement *from;
    eplb_placement *to;
    eplb_migration_options options;
    eplb_migration *migration;
    int32_t experts;
    int32_t slots;
} scene;

typedef struct machine {
    const scene *what;
    const eplb_cluster *cluster;
    const int32_t *map;                       /* in force */
    int32_t tag[MOST_SLOTS];                  /* weights in slots */
    int32_t buffer[MOST_GPUS][MOST_SLOTS];    /* weights in buffer slots */
    int32_t bound_for[MOST_GPUS][MOST_SLOTS]; /* and the slot that they are for; -1: free */
    int32_t target[MOST_SLOTS];               /* the new placement's */
    bool is_stored[MOST_EXPERTS];             /* has been read from storage */
    bool served[MOST_EXPERTS];                /* has been in the map */
    senders sent;                             /* by GPUs in the layer */
} machine;

/* Every slot of every live GPU gets an expert that the GPU lacks, where there is one, or with a
 * chance of one in `empty` none. Each expert comes before any comes twice. */
static void draw_row(eplb_random *random, const eplb_cluster *cluster, int32_t experts,
                     int32_t empty, int32_t *row)
{
    int32_t order[MOST_SLOTS];
    int32_t count = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        int32_t first = eplb_cluster_first_slot(cluster, g);
        for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, g); s++) {
            row[s] = -1;
            if (eplb_cluster_gpu_alive(cluster, g)) {
                order[count++] = s;
            }
        }
    }
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t j = draw(random, 0, i);
        int32_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t gpu = gpu_of_slot(cluster, order[i]);
        int32_t first = eplb_cluster_first_slot(cluster, gpu);
        int32_t expert = i < experts ? i : draw(random, 0, experts - 1);
        bool is_there = false;
        for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, gpu); s++) {
            is_there = is_there || row[s] == expert;
        }
        if (i < experts || (!is_there && draw(random, 1, empty) > 1)) {
            row[order[i]] = expert;
        }
    }
}

/* Changes a row a little: experts change places, as planners move them. */
static void stir(eplb_random *random, const eplb_cluster *cluster, int32_t *row, int32_t swaps)
{
    for (int32_t i = 0; i < swaps; i++) {
        int32_t a = draw(random, 0, eplb_cluster_slots(cluster) - 1);
        int32_t b = draw(random, 0, eplb_cluster_slots(cluster) - 1);
        if (row[a] >= 0 && row[b] >= 0) {
            int32_t swapped = row[a];
            row[a] = row[b];
            row[b] = swapped;
        }
    }
}

static eplb_placement *place(const eplb_cluster *cluster, int32_t experts)
{
    eplb_placement *placement = NULL;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, LAYERS, experts, NULL), NULL);
    return placement;
}

/* The cluster before: some GPUs that die, some that come back, other numbers of slots on some. */
static eplb_cluster *draw_old_cluster(eplb_random *random, const eplb_cluster *cluster)
{
    eplb_cluster *old = NULL;
    int32_t gpus = eplb_cluster_gpus(cluster);
    assert_ok(eplb_cluster_create(&old, NULL, gpus, 1, 0, NULL), NULL);
    bool differs = draw(random, 0, 3) == 0;
    for (int32_t g = 0; g < gpus; g++) {
        int32_t slots = eplb_cluster_gpu_slots(cluster, g);
        slots = differs && draw(random, 0, 3) == 0 ? draw(random, 0, MOST_SLOTS_PER_GPU) : slots;
        assert_ok(eplb_cluster_set_slots(old, g, slots, NULL), NULL);
        assert_ok(eplb_cluster_set_alive(old, g, draw(random, 0, 7) > 0, NULL), NULL);
    }
    return old;
}

static eplb_migration_options draw_options(eplb_random *random)
{
    eplb_migration_options options;
    eplb_migration_options_init(&options);
    options.mode = draw(random, 0, 1);
    options.max_sends = draw(random, 0, 1) == 0 ? -1 : draw(random, 1, 3);
    options.max_receives = draw(random, 0, 1) == 0 ? -1 : draw(random, 1, 3);
    options.max_copies = draw(random, 0, 2) > 0 ? -1 : draw(random, 1, 5);
    options.buffer_slots = draw(random, options.mode == EPLB_MIGRATION_STAGED ? 1 : 0, 2);
    if (draw(random, 0, 5) == 0) {
        options.buffer_slots = -1;
    }
    return options;
}

/* Half of the rebalances keep most places and move experts in circles; the others share nothing. */
static scene draw_scene(uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    eplb_cluster *cluster = draw_cluster(&random);
    int32_t live = eplb_cluster_live_slots(cluster);
    scene what = {.experts = draw(&random, 1, live < MOST_EXPERTS ? live : MOST_EXPERTS)};
    bool is_near = draw(&random, 0, 1) == 1;
    eplb_cluster *old = draw_old_cluster(&random, cluster);
    if (is_near) {
        eplb_cluster_destroy(&old);
    }
    what.to = place(cluster, what.experts);
    what.from = place(is_near ? cluster : old, what.experts);
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t row[MOST_SLOTS];
        int32_t empty = draw(&random, 1, 8);
        draw_row(&random, cluster, what.experts, empty, row);
        assert_ok(eplb_placement_set_row(what.to, l, row, NULL), NULL);
        if (is_near) {
            stir(&random, cluster, row, draw(&random, 0, 12));
        } else {
            draw_row(&random, old, what.experts, draw(&random, 1, 8), row);
        }
        assert_ok(eplb_placement_set_row(what.from, l, row, NULL), NULL);
    }
    what.options = draw_options(&random);
    eplb_cluster_destroy(&cluster);
    eplb_cluster_destroy(&old);
    return what;
}

static void destroy(scene *what)
{
    eplb_migration_destroy(&what->migration);
    eplb_placement_destroy(&what->from);
    eplb_placement_destroy(&what->to);
}

/* A token of every expert to every slot of the map. */
static void route_tokens(machine *m)
{
    bool found[MOST_EXPERTS] = {false};
    for (int32_t s = 0; s < m->what->slots; s++) {
        int32_t expert = m->map[s];
        if (expert >= 0) {
            assert_int_equal(m->tag[s], expert);
            assert_true(eplb_cluster_gpu_alive(m->cluster, gpu_of_slot(m->cluster, s)));
            found[expert] = true;
            m->served[expert] = true;
        }
    }
    for (int32_t e = 0; e < m->what->experts; e++) {
        assert_int_equal(found[e], m->served[e]);
    }
}

/* What a slot of the machine has in a placement: nothing where the placement has no such slot. */
static int32_t in_placement(const machine *m, const eplb_placement *placement, int32_t layer,
                            int32_t gpu, int32_t place)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    bool exists = eplb_cluster_gpu_alive(m->cluster, gpu) && eplb_cluster_gpu_alive(cluster, gpu) &&
                  place < eplb_cluster_gpu_slots(cluster, gpu);
    int32_t slot = eplb_cluster_first_slot(cluster, gpu) + place;
    return exists ? eplb_placement_row(placement, layer)[slot] : GARBAGE;
}

static void switch_on(machine *m, const scene *what, int32_t layer)
{
    *m = (machine){.what = what,
                   .cluster = eplb_migration_cluster(what->migration),
                   .map = eplb_migration_start_map(what->migration, layer)};
    for (int32_t g = 0; g < eplb_cluster_gpus(m->cluster); g++) {
        int32_t first = eplb_cluster_first_slot(m->cluster, g);
        for (int32_t i = 0; i < eplb_cluster_gpu_slots(m->cluster, g); i++) {
            m->tag[first + i] = in_placement(m, what->from, layer, g, i);
            m->target[first + i] = in_placement(m, what->to, layer, g, i);
            assert_int_equal(m->map[first + i], m->tag[first + i]);
        }
        for (int32_t b = 0; b < MOST_SLOTS; b++) {
            m->bound_for[g][b] = -1;
        }
    }
    route_tokens(m);
}

/* What else a copy could be read from, before it and others begin to write. */
static void note_sources(machine *m, const eplb_round *round, const eplb_copy *copy, int32_t index)
{
    if (copy->source == EPLB_COPY_LOCAL || copy->source == EPLB_COPY_STORAGE) {
        return;
    }
    int32_t node = eplb_cluster_gpu_node(m->cluster, copy->gpu);
    assert_true(m->sent.count < MOST_SENT);
    sent_copy *sent = &m->sent.copies[m->sent.count++];
    *sent = (sent_copy){.round = index, .gpu = copy->source_gpu};
    for (int32_t s = 0; s < m->what->slots; s++) {
        bool is_written = false;
        for (int32_t i = 0; i < round->copy_count; i++) {
            is_written = is_written || (round->copies[i].slot == s && round->copies[i].buffer < 0);
        }
        int32_t gpu = gpu_of_slot(m->cluster, s);
        if (m->tag[s] == copy->expert && !is_written) {
            bool is_near = eplb_cluster_gpu_node(m->cluster, gpu) == node;
            assert_int_not_equal(gpu, copy->gpu);
            assert_true(!is_near || copy->source == EPLB_COPY_NODE);
            sent->may_send[gpu] = is_near == (copy->source == EPLB_COPY_NODE);
        }
    }
}

/* Begins to write: from now on the place has garbage. */
static void start_copy(machine *m, const eplb_copy *copy)
{
    assert_true(eplb_cluster_gpu_alive(m->cluster, copy->gpu));
    assert_int_equal(gpu_of_slot(m->cluster, copy->slot), copy->gpu);
    if (copy->buffer < 0) {
        assert_int_equal(m->what->options.mode, EPLB_MIGRATION_IN_PLACE);
        m->tag[copy->slot] = GARBAGE;
        return;
    }
    int32_t room = m->what->options.buffer_slots;
    assert_true(copy->buffer < (room < 0 ? MOST_SLOTS : room));
    assert_int_equal(m->bound_for[copy->gpu][copy->buffer], -1);
    m->bound_for[copy->gpu][copy->buffer] = copy->slot;
    m->buffer[copy->gpu][copy->buffer] = GARBAGE;
}

/* Reads the source at the last moment and is done. */
static void finish_copy(machine *m, const eplb_copy *copy)
{
    int32_t weights = copy->expert;
    if (copy->source == EPLB_COPY_STORAGE) {
        for (int32_t s = 0; s < m->what->slots; s++) {
            assert_int_not_equal(m->tag[s], copy->expert);
        }
        assert_false(m->is_stored[copy->expert]);
        m->is_stored[copy->expert] = true;
    } else {
        assert_int_equal(gpu_of_slot(m->cluster, copy->source_slot), copy->source_gpu);
        assert_int_equal(copy->source == EPLB_COPY_LOCAL, copy->source_gpu == copy->gpu);
        assert_int_equal(copy->source == EPLB_COPY_REMOTE,
                         eplb_cluster_gpu_node(m->cluster, copy->source_gpu) !=
                             eplb_cluster_gpu_node(m->cluster, copy->gpu));
        weights = m->tag[copy->source_slot];
    }
    assert_int_equal(weights, copy->expert);
    if (copy->buffer >= 0) {
        m->buffer[copy->gpu][copy->buffer] = weights;
    }
}

static void commit(machine *m)
{
    for (int32_t g = 0; g < eplb_cluster_gpus(m->cluster); g++) {
        for (int32_t b = 0; b < MOST_SLOTS; b++) {
            if (m->bound_for[g][b] >= 0) {
                m->tag[m->bound_for[g][b]] = m->buffer[g][b];
                m->bound_for[g][b] = -1;
            }
        }
    }
}

static void assert_within(int32_t count, int32_t most)
{
    assert_true(most < 0 || count <= most);
}

static void assert_limits(const machine *m, const eplb_round *round)
{
    int32_t sent[MOST_GPUS] = {0};
    int32_t received[MOST_GPUS] = {0};
    int32_t count = 0;
    for (int32_t i = 0; i < round->copy_count; i++) {
        const eplb_copy *copy = &round->copies[i];
        if (copy->source != EPLB_COPY_LOCAL) {
            assert_within(++count, m->what->options.max_copies);
            assert_within(++received[copy->gpu], m->what->options.max_receives);
            if (copy->source != EPLB_COPY_STORAGE) {
                assert_within(++sent[copy->source_gpu], m->what->options.max_sends);
            }
        }
    }
}

/* While a round runs nothing leaves the map but what is written, and when it was staged nothing. */
static void assert_during(const machine *m, const eplb_round *round)
{
    for (int32_t s = 0; s < m->what->slots; s++) {
        bool is_written = false;
        for (int32_t i = 0; i < round->copy_count; i++) {
            is_written = is_written || (round->copies[i].slot == s && round->copies[i].buffer < 0);
        }
        assert_int_equal(round->map_during[s], is_written ? -1 : m->map[s]);
    }
}

/* What is staged takes no slot out of the map, but where it shall be empty. */
static void assert_after(const machine *m, const eplb_round *round)
{
    bool is_staged = m->what->options.mode == EPLB_MIGRATION_STAGED;
    for (int32_t s = 0; is_staged && s < m->what->slots; s++) {
        if (m->map[s] >= 0 && round->map_after[s] < 0) {
            assert_int_equal(m->target[s], -1);
        }
    }
}

/* Runs a round, and routes tokens before it, when all copies have begun and as each ends. */
static void run(machine *m, const eplb_round *round, int32_t index)
{
    assert_limits(m, round);
    assert_during(m, round);
    m->map = round->map_during;
    for (int32_t i = 0; i < round->copy_count; i++) {
        note_sources(m, round, &round->copies[i], index);
    }
    for (int32_t i = 0; i < round->copy_count; i++) {
        start_copy(m, &round->copies[i]);
        route_tokens(m);
    }
    int32_t arrived[MOST_SLOTS];
    for (int32_t i = 0; i < round->copy_count; i++) {
        finish_copy(m, &round->copies[i]);
        arrived[i] = round->copies[i].expert;
        route_tokens(m);
    }
    for (int32_t i = 0; i < round->copy_count; i++) {
        if (round->copies[i].buffer < 0) {
            m->tag[round->copies[i].slot] = arrived[i];
        }
    }
    if (round->commit) {
        commit(m);
    }
    assert_after(m, round);
    m->map = round->map_after;
    route_tokens(m);
}

/* No expert twice on a GPU, unless a placement has one; both of ours may only when stirred. */
static bool has_twins(const eplb_cluster *cluster, const int32_t *row)
{
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        int32_t first = eplb_cluster_first_slot(cluster, g);
        int32_t end = first + eplb_cluster_gpu_slots(cluster, g);
        for (int32_t s = first; s < end; s++) {
            for (int32_t t = first; t < s; t++) {
                if (row[s] >= 0 && row[s] == row[t]) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* What a machine that stops for good is left with: a placement that a new plan can start from. */
static void assert_state(const machine *m, int32_t layer)
{
    bool allowed =
        has_twins(eplb_placement_cluster(m->what->from), eplb_placement_row(m->what->from, layer));
    assert_true(allowed || !has_twins(m->cluster, m->map));
}

static void run_layer(const scene *what, int32_t layer)
{
    static machine m;
    int64_t first;
    int64_t count;
    switch_on(&m, what, layer);
    assert_ok(eplb_migration_layer_rounds(what->migration, layer, &first, &count, NULL), NULL);
    for (int64_t r = first; r < first + count; r++) {
        eplb_round round = {.struct_size = sizeof(round)};
        assert_ok(eplb_migration_get_round(what->migration, r, &round, NULL), NULL);
        assert_int_equal(round.layer, layer);
        run(&m, &round, (int32_t)(r - first));
        assert_state(&m, layer);
    }
    m.sent.most_in_round = what->options.max_sends;
    assert_int_equal(busiest(&m.sent), least_busy(&m.sent));
    assert_memory_equal(m.map, m.target, (size_t)what->slots * sizeof(*m.map));
}

/* Whether a refusal is right: without a buffer, in place, where no slot is spare. */
static bool has_spare_slot(const scene *what, int32_t layer)
{
    const int32_t *row = eplb_placement_row(what->to, layer);
    int32_t counts[MOST_EXPERTS];
    assert_ok(eplb_placement_replica_counts(what->to, layer, counts, NULL), NULL);
    const eplb_cluster *cluster = eplb_placement_cluster(what->to);
    for (int32_t s = 0; s < eplb_placement_slots(what->to); s++) {
        if (eplb_cluster_gpu_alive(cluster, gpu_of_slot(cluster, s)) &&
            (row[s] < 0 || counts[row[s]] > 1)) {
            return true;
        }
    }
    return false;
}

static void assert_refusal(const scene *what, const eplb_error *error)
{
    bool all_have_spares = true;
    for (int32_t l = 0; l < LAYERS; l++) {
        all_have_spares = all_have_spares && has_spare_slot(what, l);
    }
    assert_contains(error->message, " buffer slot");
    assert_int_not_equal(what->options.buffer_slots, -1);
    assert_true(what->options.mode == EPLB_MIGRATION_STAGED || !all_have_spares);
}

/* Makes the schedule; one that has been refused once is made with as much buffer as it takes. */
static bool make(scene *what)
{
    eplb_error error;
    bool is_refused = false;
    eplb_status status =
        eplb_migration_create(&what->migration, NULL, what->from, what->to, &what->options, &error);
    if (status == EPLB_ERROR_INFEASIBLE) {
        assert_refusal(what, &error);
        is_refused = true;
        what->options.buffer_slots = -1;
        status = eplb_migration_create(&what->migration, NULL, what->from, what->to, &what->options,
                                       &error);
    }
    assert_ok(status, &error);
    what->slots = eplb_migration_slots(what->migration);
    return is_refused;
}

static void no_token_meets_wrong_weights(void **state)
{
    (void)state;
    int32_t refused = 0;
    FOR_EACH_SEED(seed, REBALANCES)
    {
        scene what = draw_scene(seed);
        eplb_error error;
        refused += make(&what) ? 1 : 0;
        for (int32_t l = 0; l < LAYERS; l++) {
            run_layer(&what, l);
        }
        assert_ok(eplb_migration_check(what.migration, what.from, what.to, &error), &error);
        destroy(&what);
    }
    assert_in_range(refused, 1, REBALANCES / 5);
}

TEST_MAIN(seeded_test(no_token_meets_wrong_weights))
