/* SPDX-License-Identifier: MIT */
/* The planner's steps on random layers: each keeps what it promises to the next. */
#include "instance.h"

#include "base/memory.h"
#include "model/placement.h"
#include "planner/layer.h"
#include "planner/partner_bound.h"

#define SEEDS 400

typedef struct fixture {
    eplb_hooks hooks;
    eplb_cluster *cluster;
    eplb_shape shape;
    eplb_layer layer;
    double loads[MOST_EXPERTS];
} fixture;

static void make_layer(fixture *f, int32_t experts)
{
    assert_ok(eplb_shape_init(&f->shape, &f->hooks, f->cluster, experts, NULL), NULL);
    assert_ok(eplb_layer_init(&f->layer, &f->hooks, &f->shape, NULL), NULL);
    f->layer.load = f->loads;
}

/* False when the drawn cluster cannot hold the drawn experts. */
static bool setup(fixture *f, uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    eplb_hooks_init(&f->hooks);
    f->cluster = draw_cluster(&random);
    int32_t experts = draw(&random, 1, MOST_EXPERTS);
    draw_loads(&random, f->loads, experts);
    if (eplb_cluster_check_fits(f->cluster, experts, NULL) != EPLB_OK) {
        eplb_cluster_destroy(&f->cluster);
        return false;
    }
    make_layer(f, experts);
    return true;
}

/* So many slots on each GPU. */
static void setup_equal(fixture *f, uint64_t seed, int32_t slots, int32_t most_gpus)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    eplb_hooks_init(&f->hooks);
    int32_t gpus = draw(&random, 2, most_gpus);
    int32_t most = slots * gpus < MOST_EXPERTS ? slots * gpus : MOST_EXPERTS;
    int32_t experts = draw(&random, slots, most);
    draw_loads(&random, f->loads, experts);
    assert_ok(eplb_cluster_create(&f->cluster, NULL, gpus, slots, 0, NULL), NULL);
    make_layer(f, experts);
}

static void setup_pairs(fixture *f, uint64_t seed)
{
    setup_equal(f, seed, 2, 5);
}

static void teardown(fixture *f)
{
    eplb_layer_free(&f->layer, &f->hooks);
    eplb_shape_free(&f->shape, &f->hooks);
    eplb_cluster_destroy(&f->cluster);
}

/* Every derived array agrees with slot_expert, and no GPU holds an expert twice. */
static void assert_consistent(const fixture *f)
{
    const eplb_layer *layer = &f->layer;
    int32_t total = 0;
    for (int32_t e = 0; e < f->shape.experts; e++) {
        assert_true(layer->count[e] >= 1 && layer->count[e] <= f->shape.gpus);
        total += layer->count[e];
        int32_t replicas = 0;
        for (int32_t r = layer->first[e]; r >= 0; r = layer->next[r]) {
            assert_int_equal(layer->slot_expert[layer->replica_slot[r]], e);
            assert_int_equal(layer->slot_replica[layer->replica_slot[r]], r);
            replicas++;
        }
        assert_int_equal(replicas, layer->count[e]);
        assert_true(layer->share[e] == f->loads[e] / (double)layer->count[e]);
        int32_t holders = 0;
        for (int32_t g = 0; g < f->shape.gpus; g++) {
            holders += eplb_layer_holds(layer, g, e);
        }
        assert_int_equal(holders, layer->count[e]);
    }
    assert_int_equal(total, f->shape.slots);
}

/* The plain way to say Adams' method, for equal GPUs. */
static void naive_counts(const fixture *f, int32_t *count)
{
    for (int32_t e = 0; e < f->shape.experts; e++) {
        count[e] = 1;
    }
    for (int32_t spare = f->shape.slots - f->shape.experts; spare > 0; spare--) {
        int32_t best = -1;
        for (int32_t e = 0; e < f->shape.experts; e++) {
            if (count[e] == f->shape.gpus) {
                continue;
            }
            double share = f->loads[e] / count[e];
            double most = best < 0 ? -1.0 : f->loads[best] / count[best];
            if (share > most || (share == most && count[e] < count[best])) {
                best = e;
            }
        }
        count[best]++;
    }
}

static void counts_are_those_of_adams_method(void **state)
{
    (void)state;
    int compared = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        if (!setup(&f, seed)) {
            continue;
        }
        if (f.shape.uniform) {
            int32_t expected[MOST_EXPERTS];
            naive_counts(&f, expected);
            eplb_layer_counts(&f.layer);
            assert_memory_equal(f.layer.count, expected,
                                (size_t)f.shape.experts * sizeof(*expected));
            compared++;
        }
        teardown(&f);
    }
    assert_true(compared > SEEDS / 8);
}

static void packing_is_consistent_on_every_shape_that_fits(void **state)
{
    (void)state;
    int uneven = 0;
    FOR_EACH_SEED(seed, 5 * SEEDS)
    {
        fixture f;
        if (!setup(&f, seed)) {
            continue;
        }
        eplb_layer_counts(&f.layer);
        eplb_layer_pack(&f.layer);
        assert_consistent(&f);
        uneven += !f.shape.uniform;
        teardown(&f);
    }
    assert_true(uneven > SEEDS / 4);
}

static void swaps_never_raise_the_largest_load(void **state)
{
    (void)state;
    int improved = 0;
    FOR_EACH_SEED(seed, 5 * SEEDS)
    {
        fixture f;
        if (!setup(&f, seed)) {
            continue;
        }
        eplb_layer_counts(&f.layer);
        double bound = eplb_layer_bound(&f.layer);
        eplb_layer_pack(&f.layer);
        double before = eplb_layer_worst(&f.layer);
        eplb_layer_swap_descent(&f.layer, bound);
        double claimed = eplb_layer_worst(&f.layer);
        eplb_layer_index(&f.layer);
        assert_consistent(&f);
        double after = eplb_layer_worst(&f.layer);
        assert_close(claimed, after, 1e-9 * after);
        assert_true(after <= before * (1.0 + 1e-12));
        improved += after < before * (1.0 - 1e-9);
        teardown(&f);
    }
    assert_true(improved > SEEDS / 4);
}

static void search_never_ends_worse_and_says_what_it_reached(void **state)
{
    (void)state;
    static const eplb_budget budget = {.rounds = 4, .moves_per_round = 500, .hottest = 1024.0};
    int improved = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        if (!setup(&f, seed)) {
            continue;
        }
        eplb_layer_counts(&f.layer);
        double bound = eplb_layer_bound(&f.layer);
        eplb_layer_pack(&f.layer);
        double before = eplb_layer_worst(&f.layer);
        double reached = eplb_layer_search(&f.layer, bound, bound, &budget);
        assert_consistent(&f);
        assert_true(reached == eplb_layer_worst(&f.layer));
        assert_true(reached <= before);
        assert_true(reached >= bound * (1.0 - 1e-12));
        improved += reached < before * (1.0 - 1e-9);
        teardown(&f);
    }
    assert_true(improved > SEEDS / 8);
}

/* The largest of the pairs of largest and smallest share, second largest and second smallest, ...
 */
static double folded(const fixture *f)
{
    double shares[MOST_SLOTS];
    int32_t ids[MOST_SLOTS];
    int32_t scratch[MOST_SLOTS];
    int32_t slots = 0;
    for (int32_t e = 0; e < f->shape.experts; e++) {
        for (int32_t c = 0; c < f->layer.count[e]; c++) {
            shares[slots] = f->loads[e] / f->layer.count[e];
            ids[slots] = slots;
            slots++;
        }
    }
    assert_int_equal(slots, f->shape.slots);
    eplb_sort_descending(ids, slots, shares, scratch);
    double largest = 0.0;
    for (int32_t i = 0; i < slots / 2; i++) {
        largest = fmax(largest, shares[ids[i]] + shares[ids[slots - 1 - i]]);
    }
    return largest;
}

/* Tries all counts that use all slots, from expert e on; returns the least folded pair. */
static double best_folded(fixture *f, int32_t e, int32_t left)
{
    int32_t experts_left = f->shape.experts - e;
    if (experts_left == 0) {
        return left == 0 ? folded(f) : INFINITY;
    }
    double best = INFINITY;
    for (int32_t c = 1; c <= f->shape.gpus && c <= left - (experts_left - 1); c++) {
        f->layer.count[e] = c;
        best = fmin(best, best_folded(f, e + 1, left - c));
    }
    return best;
}

static void pair_counts_are_nearly_always_the_best(void **state)
{
    (void)state;
    static const eplb_budget budget = {.rounds = 32, .moves_per_round = 5000, .hottest = 1024.0};
    int improved = 0;
    int best_of_all = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        setup_pairs(&f, seed);
        eplb_layer_counts(&f.layer);
        double bound = eplb_layer_bound(&f.layer);
        double adams = folded(&f);
        assert_true(eplb_layer_pair_counts(&f.layer, bound, bound, &budget));
        double found = folded(&f);
        double best = best_folded(&f, 0, f.shape.slots);
        assert_true(found <= adams);
        assert_true(found >= best * (1.0 - 1e-9));
        best_of_all += found <= best * (1.0 + 1e-9);
        improved += found < adams * (1.0 - 1e-9);
        teardown(&f);
    }
    print_message("%d of %d pairings are the best there is\n", best_of_all, SEEDS);
    assert_true(improved > SEEDS / 10);
    assert_true(best_of_all * 100 >= SEEDS * 99);
}

static void other_shapes_have_no_pairs(void **state)
{
    (void)state;
    static const eplb_budget budget = {.rounds = 1, .moves_per_round = 10, .hottest = 1024.0};
    int refused = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        if (!setup(&f, seed)) {
            continue;
        }
        bool pairs = f.shape.uniform && f.shape.slots == 2 * f.shape.gpus;
        eplb_layer_counts(&f.layer);
        assert_int_equal(eplb_layer_pair_counts(&f.layer, 0.0, 0.0, &budget), pairs);
        refused += !pairs;
        teardown(&f);
    }
    assert_true(refused > SEEDS / 10);
}

/* The pairing lets an expert meet itself: no placement is better. */
static void pair_bound_is_never_above_the_best_pairing_and_mostly_meets_it(void **state)
{
    (void)state;
    int raised = 0;
    int tight = 0;
    FOR_EACH_SEED(seed, 5 * SEEDS)
    {
        fixture f;
        setup_pairs(&f, seed);
        eplb_layer_counts(&f.layer);
        double simple = eplb_layer_bound(&f.layer);
        double bound = eplb_layer_partner_bound(&f.layer, simple, 2.0 * simple, 1e-6, 300);
        double best = best_folded(&f, 0, f.shape.slots);
        assert_true(bound >= simple);
        assert_true(bound <= best * (1.0 + 1e-12));
        raised += bound > simple * (1.0 + 1e-6);
        tight += bound >= best * (1.0 - 1e-5);
        teardown(&f);
    }
    print_message("%d of %d bounds are raised, %d meet the best pairing\n", raised, 5 * SEEDS,
                  tight);
    assert_true(raised > SEEDS);
    assert_true(tight * 10 >= 5 * SEEDS * 8);
}

/* Of the replicas that are left, the largest is put together with any two others: the least largest
 * sum. An expert may meet itself. */
static double best_triples(double *share, int32_t count)
{
    if (count == 0) {
        return 0.0;
    }
    double best = INFINITY;
    for (int32_t i = 1; i < count; i++) {
        for (int32_t j = i + 1; j < count; j++) {
            double left[12];
            int32_t kept = 0;
            for (int32_t k = 1; k < count; k++) {
                if (k != i && k != j) {
                    left[kept++] = share[k];
                }
            }
            double load = share[0] + share[i] + share[j];
            best = load < best ? fmin(best, fmax(load, best_triples(left, kept))) : best;
        }
    }
    return best;
}

/* Tries all counts that use all slots, from expert e on. */
static double best_of_all_triples(fixture *f, int32_t e, int32_t left, double *share)
{
    int32_t experts_left = f->shape.experts - e;
    if (experts_left == 0) {
        return left == 0 ? best_triples(share, f->shape.slots) : INFINITY;
    }
    double best = INFINITY;
    int32_t placed = f->shape.slots - left;
    for (int32_t c = 1; c <= f->shape.gpus && c <= left - (experts_left - 1); c++) {
        for (int32_t i = 0; i < c; i++) {
            share[placed + i] = f->loads[e] / c;
        }
        best = fmin(best, best_of_all_triples(f, e + 1, left - c, share));
    }
    return best;
}

/* Large loads and small ones, so that partners are scarce. */
static void setup_scarce_triples(fixture *f, uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    eplb_hooks_init(&f->hooks);
    int32_t gpus = draw(&random, 2, 3);
    int32_t experts = 3 * gpus - draw(&random, 0, 2);
    for (int32_t e = 0; e < experts; e++) {
        bool hot = e < gpus;
        f->loads[e] =
            hot ? 70.0 + 60.0 * eplb_random_unit(&random) : 15.0 * eplb_random_unit(&random);
    }
    assert_ok(eplb_cluster_create(&f->cluster, NULL, gpus, 3, 0, NULL), NULL);
    make_layer(f, experts);
}

static void triple_bound_is_never_above_the_best_triples(void **state)
{
    (void)state;
    int raised = 0;
    int tight = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        double share[12];
        setup_scarce_triples(&f, seed);
        eplb_layer_counts(&f.layer);
        double simple = eplb_layer_bound(&f.layer);
        double bound = eplb_layer_partner_bound(&f.layer, simple, 3.0 * simple, 1e-6, 300);
        double best = best_of_all_triples(&f, 0, f.shape.slots, share);
        assert_true(bound >= simple);
        assert_true(bound <= best * (1.0 + 1e-12));
        raised += bound > simple * (1.0 + 1e-6);
        tight += bound >= best * (1.0 - 1e-2);
        teardown(&f);
    }
    print_message("%d of %d bounds are raised, %d are near the best triples\n", raised, SEEDS,
                  tight);
    assert_true(raised > SEEDS / 4);
    assert_true(tight > SEEDS / 2);
}

static void filling_never_ends_worse_and_says_what_it_reached(void **state)
{
    (void)state;
    static const eplb_budget budget = {.rounds = 8, .moves_per_round = 500};
    int improved = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        setup_equal(&f, seed, 3, 21); /* more GPUs than are packed last, too */
        eplb_layer_counts(&f.layer);
        double bound = eplb_layer_bound(&f.layer);
        eplb_layer_pack(&f.layer);
        double before = eplb_layer_worst(&f.layer);
        double reached = eplb_layer_fill(&f.layer, bound, bound, &budget);
        assert_consistent(&f);
        assert_true(reached == eplb_layer_worst(&f.layer));
        assert_true(reached <= before);
        assert_true(reached >= bound * (1.0 - 1e-12));
        improved += reached < before * (1.0 - 1e-9);
        teardown(&f);
    }
    print_message("%d of %d placements are better filled\n", improved, SEEDS);
    assert_true(improved > SEEDS / 20);
}

static void other_shapes_are_not_filled(void **state)
{
    (void)state;
    static const eplb_budget budget = {.rounds = 8, .moves_per_round = 500};
    FOR_EACH_SEED(seed, SEEDS)
    {
        fixture f;
        setup_pairs(&f, seed);
        eplb_layer_counts(&f.layer);
        eplb_layer_pack(&f.layer);
        double before = eplb_layer_worst(&f.layer);
        assert_true(eplb_layer_fill(&f.layer, 0.0, 0.0, &budget) == before);
        assert_int_equal(f.layer.moves, 0);
        teardown(&f);
    }
}

TEST_MAIN(seeded_test(counts_are_those_of_adams_method),
          seeded_test(packing_is_consistent_on_every_shape_that_fits),
          seeded_test(pair_counts_are_nearly_always_the_best),
          seeded_test(other_shapes_have_no_pairs), seeded_test(swaps_never_raise_the_largest_load),
          seeded_test(pair_bound_is_never_above_the_best_pairing_and_mostly_meets_it),
          seeded_test(triple_bound_is_never_above_the_best_triples),
          seeded_test(filling_never_ends_worse_and_says_what_it_reached),
          seeded_test(other_shapes_are_not_filled),
          seeded_test(search_never_ends_worse_and_says_what_it_reached))
