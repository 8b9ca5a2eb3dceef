/* SPDX-License-Identifier: MIT */
/* Plans in one call, and looks at them. */
#ifndef EPLB_TESTS_PLANNING_H
#define EPLB_TESTS_PLANNING_H

#include "support.h"

#include <eplb/plan.h>

static inline eplb_load *load_of(const double *rows, int32_t layers, int32_t experts)
{
    eplb_error error;
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, 1, layers, experts, &error), &error);
    for (int32_t l = 0; l < layers; l++) {
        assert_ok(eplb_load_set_row(load, 0, l, rows + (size_t)l * (size_t)experts, &error),
                  &error);
    }
    return load;
}

static inline eplb_cluster *cluster_of(int32_t gpus, int32_t slots_per_gpu, int32_t gpus_per_node)
{
    eplb_error error;
    eplb_cluster *cluster;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, gpus_per_node, &error),
              &error);
    return cluster;
}

static inline eplb_placement *placement_with_rows(const eplb_cluster *cluster, const int32_t *rows,
                                                  int32_t layers, int32_t experts)
{
    eplb_error error;
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, layers, experts, &error), &error);
    for (int32_t l = 0; l < layers; l++) {
        const int32_t *row = rows + (size_t)l * (size_t)eplb_placement_slots(placement);
        assert_ok(eplb_placement_set_row(placement, l, row, &error), &error);
    }
    return placement;
}

static inline eplb_plan *plan_of(const eplb_load *load, const eplb_cluster *cluster,
                                 const eplb_placement *current, const eplb_plan_options *options)
{
    eplb_error error;
    eplb_plan *plan;
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, current, options, &error), &error);
    return plan;
}

static inline eplb_plan_info info_of(const eplb_plan *plan)
{
    eplb_plan_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_plan_get_info(plan, &info, NULL), NULL);
    return info;
}

static inline eplb_plan_layer layer_of(const eplb_plan *plan, int32_t layer)
{
    eplb_plan_layer result = {.struct_size = sizeof(result)};
    assert_ok(eplb_plan_get_layer(plan, layer, &result, NULL), NULL);
    return result;
}

static inline void assert_same_maps(const eplb_plan *a, const eplb_plan *b)
{
    const eplb_placement *p = eplb_plan_placement(a);
    const eplb_placement *q = eplb_plan_placement(b);
    for (int32_t l = 0; l < eplb_placement_layers(p); l++) {
        assert_memory_equal(eplb_placement_row(p, l), eplb_placement_row(q, l),
                            (size_t)eplb_placement_slots(p) * sizeof(int32_t));
    }
}

#endif
