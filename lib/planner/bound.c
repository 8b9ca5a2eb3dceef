/* SPDX-License-Identifier: MIT */
#include <eplb/plan.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/row.h"
#include "planner/solve.h"

/* The proof gets what a plan of the default effort gives it. */
#define DEFAULT_EFFORT 5

static double relative_bound(eplb_layer *layer)
{
    double total = 0.0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        total += layer->load[e];
    }
    if (!(total > 0.0)) {
        return 0.0;
    }
    eplb_effort effort = eplb_effort_of(DEFAULT_EFFORT, layer->shape->slots);
    double simple = eplb_layer_bound(layer);
    /* With so many slots a GPU no placement need be above so many times the largest share. */
    double highest = (double)(layer->shape->slots / layer->shape->gpus) * simple;
    double raised = eplb_layer_raise_bound(layer, simple, highest, &effort);
    double bound = raised / total * (double)layer->shape->gpus;
    return bound > 1.0 ? bound : 1.0; /* rounding */
}

eplb_status eplb_lower_bound(const eplb_cluster *cluster, const double *expert_loads,
                             int32_t experts, double *bound, eplb_error *error)
{
    if (cluster == NULL || expert_loads == NULL || bound == NULL || experts < 1 ||
        experts > EPLB_MAX_EXPERTS) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "lower bound: no cluster, loads or output, or %d experts not in "
                              "1..%d",
                              experts, EPLB_MAX_EXPERTS);
    }
    eplb_status status = eplb_row_check("lower bound", -1, expert_loads, experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_shape shape;
    status = eplb_shape_init(&shape, &cluster->hooks, cluster, experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_layer layer;
    status = eplb_layer_init_counts(&layer, &cluster->hooks, &shape, error);
    if (status == EPLB_OK) {
        layer.load = expert_loads;
        eplb_layer_counts(&layer);
        *bound = relative_bound(&layer);
    }
    eplb_layer_free(&layer, &cluster->hooks);
    eplb_shape_free(&shape, &cluster->hooks);
    return status;
}
