/* SPDX-License-Identifier: MIT */
/* Rebalances in one call, and what is true of each. */
#ifndef EPLB_TESTS_REBALANCING_H
#define EPLB_TESTS_REBALANCING_H

#include "planning.h"

#include <eplb/random.h>
#include <eplb/rebalance.h>

/* Skewed loads: most experts are cold, a few are hot. Layers differ. */
static inline eplb_load *skewed_load(int32_t scenarios, int32_t layers, int32_t experts,
                                     uint64_t seed)
{
    eplb_error error;
    eplb_load *load;
    eplb_random random;
    eplb_random_seed(&random, seed);
    assert_ok(eplb_load_create(&load, NULL, scenarios, layers, experts, &error), &error);
    double *row = calloc((size_t)experts, sizeof(*row));
    for (int32_t i = 0; i < scenarios * layers; i++) {
        for (int32_t e = 0; e < experts; e++) {
            double unit = eplb_random_unit(&random);
            row[e] = 1.0 + floor(1000.0 * unit * unit * unit);
        }
        assert_ok(eplb_load_set_row(load, i % scenarios, i / scenarios, row, &error), &error);
    }
    free(row);
    return load;
}

/* The engines' start: experts in order. */
static inline eplb_placement *spread_of(const eplb_cluster *cluster, int32_t layers,
                                        int32_t experts)
{
    eplb_error error;
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, layers, experts, &error), &error);
    for (int32_t l = 0; l < layers; l++) {
        assert_ok(eplb_placement_spread(placement, l, &error), &error);
    }
    return placement;
}

static inline eplb_rebalance_options rebalance_defaults(void)
{
    eplb_rebalance_options options;
    eplb_rebalance_options_init(&options);
    return options;
}

static inline eplb_rebalance_info rebalance_info_of(const eplb_plan *plan)
{
    eplb_rebalance_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_rebalance(plan, &info, NULL), NULL);
    return info;
}

static inline eplb_rebalance_layer rebalance_layer_of(const eplb_plan *plan, int32_t layer)
{
    eplb_rebalance_layer result = {.struct_size = sizeof(result)};
    assert_ok(eplb_plan_get_rebalance_layer(plan, layer, &result, NULL), NULL);
    return result;
}

/* An expert of the placement before that is on the same GPU afterwards has the slot that it had. */
static inline void assert_stayers_keep_slots(const eplb_placement *before,
                                             const eplb_placement *after, int32_t layer)
{
    const eplb_cluster *old = eplb_placement_cluster(before);
    const eplb_cluster *new = eplb_placement_cluster(after);
    for (int32_t g = 0; g < eplb_cluster_gpus(new); g++) {
        const int32_t *a = eplb_placement_row(before, layer) + eplb_cluster_first_slot(old, g);
        const int32_t *b = eplb_placement_row(after, layer) + eplb_cluster_first_slot(new, g);
        int32_t had = eplb_cluster_gpu_slots(old, g);
        int32_t has = eplb_cluster_gpu_slots(new, g);
        for (int32_t s = 0; s < has; s++) {
            for (int32_t t = 0; t < has && t < had; t++) {
                /* Its first slot, where it had several. */
                bool is_first = b[s] >= 0 && a[t] == b[s];
                for (int32_t u = 0; u < t; u++) {
                    is_first = is_first && a[u] != a[t];
                }
                assert_true(!is_first || s == t);
            }
        }
    }
}

static inline bool have_same_slots(const eplb_placement *a, const eplb_placement *b)
{
    const eplb_cluster *one = eplb_placement_cluster(a);
    const eplb_cluster *other = eplb_placement_cluster(b);
    bool same = true;
    for (int32_t g = 0; g < eplb_cluster_gpus(one); g++) {
        same = same && eplb_cluster_gpu_slots(one, g) == eplb_cluster_gpu_slots(other, g);
    }
    return same;
}

/* A curve, to be freed. */
static inline eplb_curve_point *curve_of(const eplb_plan *plan, int32_t layer, int32_t *count)
{
    assert_ok(eplb_plan_get_curve(plan, layer, NULL, 0, count, NULL), NULL);
    eplb_curve_point *points = calloc((size_t)*count + 1, sizeof(*points));
    assert_ok(eplb_plan_get_curve(plan, layer, points, *count, count, NULL), NULL);
    return points;
}

/* Of a layer, or -1: the whole. It begins with at most so many copies. */
static inline void assert_curve_falls(const eplb_plan *plan, int32_t layer, int64_t required)
{
    int32_t count;
    eplb_curve_point *points = curve_of(plan, layer, &count);
    assert_true(count == 0 || points[0].copies <= required);
    for (int32_t i = 1; i < count; i++) {
        assert_true(points[i].copies > points[i - 1].copies);
        assert_true(points[i].imbalance < points[i - 1].imbalance);
    }
    free(points);
}

/* What eplb_rebalance_create promises of every layer; returns the copies of all. */
static inline int64_t assert_keeps_promises(const eplb_plan *plan, const eplb_load *load,
                                            const eplb_placement *current, eplb_objective objective)
{
    eplb_error error;
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    int64_t all = 0;
    int64_t required = 0;
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        int64_t copies;
        double value;
        eplb_plan_layer layer = layer_of(plan, l);
        eplb_rebalance_layer more = rebalance_layer_of(plan, l);
        assert_ok(eplb_placement_copies(current, placement, l, &copies, &error), &error);
        assert_ok(eplb_placement_objective(placement, l, load, l, objective, &value, &error),
                  &error);
        assert_int_equal(layer.copies, copies);
        assert_true(copies >= more.copies_required || more.from_fresh == 1);
        assert_true(layer.imbalance_after == value);
        assert_true(layer.lower_bound <= value * (1.0 + 1e-9));
        /* Without required copies the start is the current placement: never worse. */
        bool is_start = layer.scored && more.copies_required == 0;
        assert_true(!is_start || value <= more.required_imbalance * (1.0 + 1e-9));
        bool was_scored =
            is_start && layer.imbalance_before > 0.0 && have_same_slots(current, placement);
        assert_true(!was_scored || value <= layer.imbalance_before * (1.0 + 1e-9));
        assert_true(layer.scored || copies == more.copies_required);
        assert_stayers_keep_slots(current, placement, l);
        assert_curve_falls(plan, l, more.copies_required);
        all += copies;
        required += more.copies_required;
    }
    assert_curve_falls(plan, -1, required);
    assert_int_equal(info_of(plan).copies, all);
    assert_int_equal(rebalance_info_of(plan).copies_required, required);
    return all;
}

static inline eplb_plan *rebalance_of(const eplb_load *load, const eplb_cluster *cluster,
                                      const eplb_placement *current,
                                      const eplb_plan_options *planning,
                                      const eplb_rebalance_options *options)
{
    eplb_error error;
    eplb_plan *plan;
    assert_ok(eplb_rebalance_create(&plan, NULL, load, cluster, current, planning, options, &error),
              &error);
    (void)assert_keeps_promises(plan, load, current,
                                planning != NULL ? (eplb_objective)planning->objective
                                                 : EPLB_OBJECTIVE_MEAN_OF_MAX);
    return plan;
}

/* Copies of the same rebalance once more, from its own result. */
static inline int64_t copies_again(const eplb_plan *plan, const eplb_load *load,
                                   const eplb_cluster *cluster, const eplb_plan_options *planning,
                                   const eplb_rebalance_options *options)
{
    eplb_plan *again = rebalance_of(load, cluster, eplb_plan_placement(plan), planning, options);
    int64_t copies = info_of(again).copies;
    if (copies == 0) {
        assert_same_maps(plan, again);
    }
    eplb_plan_destroy(&again);
    return copies;
}

#endif
