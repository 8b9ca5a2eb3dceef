/* SPDX-License-Identifier: MIT */
/* The task of refining the first layer of a plan, as the planner would make it. */
#ifndef EPLB_TESTS_LAYER_TASK_H
#define EPLB_TESTS_LAYER_TASK_H

#include "planning.h"

#include <eplb/refine.h>

typedef struct layer_task {
    eplb_refine_task task;
    int32_t first_slot[33];
    double loads[8 * 64];
    double weights[8];
    int32_t placement[512];
    uint8_t pinned[512];
    int64_t stop_at; /* the question of this number, from 1, gets yes; 0: none does */
    int64_t asked;
} layer_task;

static inline int layer_task_stop(void *context)
{
    layer_task *t = context;
    return ++t->asked == t->stop_at;
}

/* The scenarios with load, scaled so that the mean GPU has 1. */
static inline void layer_task_scale(layer_task *t, const eplb_load *load)
{
    int32_t experts = eplb_load_experts(load);
    double weights = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        const double *row = eplb_load_row(load, k, 0);
        double total = 0.0;
        for (int32_t e = 0; e < experts; e++) {
            total += row[e];
        }
        for (int32_t e = 0; total > 0.0 && e < experts; e++) {
            t->loads[t->task.scenarios * experts + e] = row[e] / total * t->task.gpus;
        }
        t->weights[t->task.scenarios] = eplb_load_scenario_weight(load, k);
        weights += total > 0.0 ? eplb_load_scenario_weight(load, k) : 0.0;
        t->task.scenarios += total > 0.0 ? 1 : 0;
    }
    for (int32_t k = 0; k < t->task.scenarios; k++) {
        t->weights[k] /= weights;
    }
}

static inline void layer_task_place(layer_task *t, const eplb_cluster *cluster,
                                    const eplb_placement *placement,
                                    const eplb_plan_options *options)
{
    for (int32_t g = 0; g < t->task.gpus; g++) {
        t->first_slot[g + 1] = t->first_slot[g] + eplb_cluster_gpu_slots(cluster, g);
        for (int32_t s = t->first_slot[g]; s < t->first_slot[g + 1]; s++) {
            t->placement[s] = eplb_placement_row(placement, 0)[s];
            for (int32_t i = 0; i < options->pin_count; i++) {
                const eplb_pin *pin = &options->pins[i];
                t->pinned[s] |= pin->gpu == g && pin->expert == t->placement[s];
            }
        }
    }
}

/* Plans the load's only layer on a cluster of live GPUs. False when that is infeasible. */
static inline bool layer_task_make(layer_task *t, const eplb_load *load,
                                   const eplb_cluster *cluster, const eplb_plan_options *options)
{
    eplb_plan *plan;
    eplb_error error;
    eplb_status status = eplb_plan_create(&plan, NULL, load, cluster, NULL, options, &error);
    if (status == EPLB_ERROR_INFEASIBLE) {
        return false;
    }
    assert_ok(status, &error);
    eplb_plan_layer layer = layer_of(plan, 0);
    int32_t gpus = eplb_cluster_gpus(cluster);
    *t = (layer_task){0};
    t->task = (eplb_refine_task){
        .struct_size = sizeof(t->task),
        .experts = eplb_load_experts(load),
        .gpus = gpus,
        .slots = eplb_cluster_slots(cluster),
        .objective = options->objective,
        .min_replicas = options->min_replicas,
        .max_replicas = options->max_replicas < 0 || options->max_replicas > gpus
                            ? gpus
                            : options->max_replicas,
        .first_slot = t->first_slot,
        .loads = t->loads,
        .weights = t->weights,
        .placement = t->placement,
        .pinned = options->pin_count > 0 ? t->pinned : NULL,
        .value = layer.imbalance_after,
        .lower_bound = layer.lower_bound,
        .stop = layer_task_stop,
        .stop_context = t,
    };
    layer_task_scale(t, load);
    layer_task_place(t, cluster, eplb_plan_placement(plan), options);
    eplb_plan_destroy(&plan);
    return true;
}

static inline double layer_task_load(const layer_task *t, const int32_t *placement,
                                     const int32_t *count, int32_t gpu, int32_t scenario)
{
    double load = 0.0;
    for (int32_t s = t->first_slot[gpu]; s < t->first_slot[gpu + 1]; s++) {
        int32_t e = placement[s];
        load += t->loads[scenario * t->task.experts + e] / count[e];
    }
    return load;
}

/* The objective of a placement; fails unless it is valid and keeps limits and pins. */
static inline double layer_task_value(const layer_task *t, const int32_t *placement)
{
    int32_t count[64] = {0};
    for (int32_t g = 0; g < t->task.gpus; g++) {
        uint64_t held = 0;
        for (int32_t s = t->first_slot[g]; s < t->first_slot[g + 1]; s++) {
            assert_in_range(placement[s], 0, t->task.experts - 1);
            assert_int_equal(held >> placement[s] & 1u, 0);
            held |= (uint64_t)1 << placement[s];
            count[placement[s]]++;
        }
        for (int32_t s = t->first_slot[g]; s < t->first_slot[g + 1]; s++) {
            assert_true(!t->pinned[s] || (held >> t->placement[s] & 1u) == 1);
        }
    }
    for (int32_t e = 0; e < t->task.experts; e++) {
        assert_in_range(count[e], t->task.min_replicas, t->task.max_replicas);
    }
    double value = 0.0;
    for (int32_t k = 0; k < t->task.scenarios; k++) {
        double largest = 0.0;
        for (int32_t g = 0; g < t->task.gpus; g++) {
            largest = fmax(largest, layer_task_load(t, placement, count, g, k));
        }
        value = t->task.objective == EPLB_OBJECTIVE_MAX_OF_MAX ? fmax(value, largest)
                                                               : value + t->weights[k] * largest;
    }
    return value;
}

#endif
