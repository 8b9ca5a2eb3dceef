/* SPDX-License-Identifier: MIT */
/* What a placement is worth to a plan. */
#include <eplb/plan.h>

#include "base/memory.h"
#include "model/placement.h"
#include "planner/objective.h"

const char *eplb_objective_name(eplb_objective objective)
{
    switch (objective) {
    case EPLB_OBJECTIVE_MEAN_OF_MAX:
        return "mean-of-max";
    case EPLB_OBJECTIVE_MAX_OF_MAX:
        return "max-of-max";
    case EPLB_OBJECTIVE_SUM:
        return "sum";
    }
    return "unknown";
}

static bool has_load(const double *row, int32_t experts)
{
    for (int32_t e = 0; e < experts; e++) {
        if (row[e] > 0.0) {
            return true;
        }
    }
    return false;
}

double eplb_largest_weight(const eplb_load *load, int32_t layer)
{
    double largest = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        double weight = eplb_load_scenario_weight(load, k);
        if (weight > largest && has_load(eplb_load_row(load, k, layer), eplb_load_experts(load))) {
            largest = weight;
        }
    }
    return largest;
}

/* Scenarios without load in the layer have an imbalance of 0. */
static eplb_status combine_scenarios(const eplb_placement *placement, int32_t row,
                                     const eplb_load *load, int32_t layer, eplb_objective objective,
                                     double *value, eplb_error *error)
{
    double most = eplb_largest_weight(load, layer);
    double weights = 0.0;
    double sum = 0.0;
    double largest = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        double imbalance;
        eplb_status status = eplb_placement_imbalance(placement, row, eplb_load_row(load, k, layer),
                                                      &imbalance, error);
        if (status != EPLB_OK) {
            return status;
        }
        double weight = imbalance > 0.0 ? eplb_load_scenario_weight(load, k) / most : 0.0;
        weights += weight;
        sum += weight * imbalance;
        largest = imbalance > largest ? imbalance : largest;
    }
    double mean = weights > 0.0 ? sum / weights : 0.0;
    /* A mean of ones can be a rounding error less. */
    mean = weights > 0.0 && mean < 1.0 ? 1.0 : mean;
    *value = objective == EPLB_OBJECTIVE_MAX_OF_MAX ? largest : mean;
    return EPLB_OK;
}

static eplb_status imbalance_of_sum(const eplb_placement *placement, int32_t row,
                                    const eplb_load *load, int32_t layer, double *value,
                                    eplb_error *error)
{
    eplb_hooks hooks = placement->hooks;
    double *sums = eplb_alloc(&hooks, (size_t)eplb_load_experts(load), sizeof(*sums));
    if (sums == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_load_sum_row(load, layer, sums, NULL, error);
    if (status == EPLB_OK) {
        status = eplb_placement_imbalance(placement, row, sums, value, error);
    }
    eplb_free(&hooks, sums);
    return status;
}

eplb_status eplb_placement_objective(const eplb_placement *placement, int32_t row,
                                     const eplb_load *load, int32_t layer, eplb_objective objective,
                                     double *value, eplb_error *error)
{
    if (placement == NULL || load == NULL || value == NULL ||
        placement->experts != eplb_load_experts(load) || eplb_load_row(load, 0, layer) == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "objective: no placement, load or output, other experts, or no layer "
                              "%d",
                              layer);
    }
    if (objective == EPLB_OBJECTIVE_SUM || eplb_load_scenarios(load) == 1) {
        return imbalance_of_sum(placement, row, load, layer, value, error);
    }
    return combine_scenarios(placement, row, load, layer, objective, value, error);
}
