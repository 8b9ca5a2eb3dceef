/* SPDX-License-Identifier: MIT */
/* The same traffic seen through another window: what differs is chance, and is not worth copies. */
#include "deepseek_v3.h"
#include "rebalancing.h"

enum { GPUS = 32, SLOTS_PER_GPU = 9, SLOTS = GPUS * SLOTS_PER_GPU, EXPERTS = 256 };

/* Every LAYER_STEP-th layer of every workload. */
#ifndef LAYER_STEP
#define LAYER_STEP 20
#endif
#define MILLION 1000000

/* Walker's alias method: a bucket for each expert, whose rest belongs to another one. */
typedef struct lots {
    double part[EXPERTS];
    int32_t other[EXPERTS];
} lots;

static void fill_lots(lots *t, const double *loads)
{
    double sum = 0.0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        sum += loads[e];
    }
    int32_t small[EXPERTS];
    int32_t large[EXPERTS];
    int32_t smalls = 0;
    int32_t larges = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        t->part[e] = loads[e] / sum * EXPERTS;
        t->other[e] = e;
        if (t->part[e] < 1.0) {
            small[smalls++] = e;
        } else {
            large[larges++] = e;
        }
    }
    while (smalls > 0 && larges > 0) {
        int32_t e = small[--smalls];
        int32_t f = large[larges - 1];
        t->other[e] = f;
        t->part[f] -= 1.0 - t->part[e];
        if (t->part[f] < 1.0) {
            small[smalls++] = f;
            larges--;
        }
    }
}

/* Counts of as many assignments with the probabilities of a row. */
static void resample(eplb_random *random, const double *loads, int32_t assignments, double *counts)
{
    lots t;
    fill_lots(&t, loads);
    memset(counts, 0, EXPERTS * sizeof(*counts));
    for (int32_t i = 0; i < assignments; i++) {
        int32_t e = (int32_t)eplb_random_below(random, EXPERTS);
        counts[eplb_random_unit(random) < t.part[e] ? e : t.other[e]] += 1.0;
    }
}

/* Sums over workloads and layers. */
typedef struct tally {
    int32_t layers;
    int64_t copies;
    double imbalance;
    double before;
    double fresh;
    double largest; /* imbalance before of a layer */
} tally;

/* Some layers of a workload. */
static eplb_load *layers_of(const eplb_load *load, int32_t first)
{
    eplb_load *some;
    int32_t count = (eplb_load_layers(load) - first + LAYER_STEP - 1) / LAYER_STEP;
    assert_ok(eplb_load_create(&some, NULL, 1, count, EXPERTS, NULL), NULL);
    for (int32_t l = 0; l < count; l++) {
        const double *row = eplb_load_row(load, 0, first + l * LAYER_STEP);
        assert_ok(eplb_load_set_row(some, 0, l, row, NULL), NULL);
    }
    return some;
}

static eplb_load *resampled(const eplb_load *load, int32_t assignments, uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    eplb_load *other;
    assert_ok(eplb_load_create(&other, NULL, 1, eplb_load_layers(load), EXPERTS, NULL), NULL);
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        double counts[EXPERTS];
        resample(&random, eplb_load_row(load, 0, l), assignments, counts);
        assert_ok(eplb_load_set_row(other, 0, l, counts, NULL), NULL);
    }
    return other;
}

static void add(tally *t, const eplb_plan *plan)
{
    int32_t layers = info_of(plan).layers;
    t->layers += layers;
    t->copies += info_of(plan).copies;
    t->before += layers * info_of(plan).imbalance_before_mean;
    t->imbalance += layers * info_of(plan).imbalance_after_mean;
    t->fresh += layers * rebalance_info_of(plan).fresh_mean;
    t->largest = fmax(t->largest, info_of(plan).imbalance_before_worst);
}

/* From the plan for some layers of `workloads` workloads to what a window of them shows;
 * assignments 0: the very same load. */
static tally rebalance_all(int32_t workloads, int32_t assignments,
                           const eplb_rebalance_options *options)
{
    tally t = {0};
    eplb_cluster *cluster = cluster_of(GPUS, SLOTS_PER_GPU, 0);
    for (int32_t file = 0; file < workloads; file++) {
        eplb_load *whole = deepseek_v3_or_skip(file, 1);
        eplb_load *load = layers_of(whole, file % LAYER_STEP);
        eplb_load *seen = assignments > 0 ? resampled(load, assignments, (uint64_t)file) : load;
        eplb_plan *plan = plan_of(load, cluster, NULL, NULL);
        eplb_plan *next = rebalance_of(seen, cluster, eplb_plan_placement(plan), NULL, options);
        add(&t, next);
        eplb_plan_destroy(&next);
        eplb_plan_destroy(&plan);
        if (seen != load) {
            eplb_load_destroy(&seen);
        }
        eplb_load_destroy(&load);
        eplb_load_destroy(&whole);
    }
    eplb_cluster_destroy(&cluster);
    print_message(
        "%d assignments, %d layers: %.4f (worst %.4f) -> %.4f, a new plan %.4f; copies of "
        "%.2f %% of the slots\n",
        assignments, t.layers, t.before / t.layers, t.largest, t.imbalance / t.layers,
        t.fresh / t.layers, 100.0 * (double)t.copies / t.layers / SLOTS);
    return t;
}

static double slots_copied(const tally *t)
{
    return (double)t->copies / t->layers / SLOTS;
}

static void the_same_load_needs_no_copy(void **state)
{
    (void)state;
    tally t = rebalance_all(DEEPSEEK_V3_FILES, 0, NULL);
    assert_int_equal(t.copies, 0);
    eplb_rebalance_options options = rebalance_defaults();
    options.copy_price = 0.0;
    t = rebalance_all(DEEPSEEK_V3_FILES, 0, &options);
    assert_int_equal(t.copies, 0);
}

static void eight_million_assignments_need_no_copy(void **state)
{
    (void)state;
    tally t = rebalance_all(2, 8 * MILLION, NULL);
    assert_int_equal(t.copies, 0);
    assert_true(t.before > t.layers * 1.002); /* there was noise */
}

static void one_million_assignments_need_few_copies(void **state)
{
    (void)state;
    tally t = rebalance_all(DEEPSEEK_V3_FILES, MILLION, NULL);
    assert_true(slots_copied(&t) <= 0.02);
    assert_true(t.imbalance <= t.layers * 1.012);
}

static void free_copies_chase_noise_with_few(void **state)
{
    (void)state;
    eplb_rebalance_options options = rebalance_defaults();
    options.copy_price = 0.0;
    options.tolerance = 0.005;
    tally t = rebalance_all(DEEPSEEK_V3_FILES, MILLION, &options);
    assert_true(slots_copied(&t) <= 0.04);
    assert_true(t.imbalance <= t.fresh + t.layers * 0.005);
}

TEST_MAIN(cmocka_unit_test(the_same_load_needs_no_copy),
          cmocka_unit_test(eight_million_assignments_need_no_copy),
          cmocka_unit_test(one_million_assignments_need_few_copies),
          cmocka_unit_test(free_copies_chase_noise_with_few))
