/* SPDX-License-Identifier: MIT */
/* What a placement is worth to a plan, and what it sends between nodes. */
#include <stdbool.h>

#include <eplb/plan.h>
#include <eplb/shares.h>

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

/* Measures one layer of a placement for one row of loads: an imbalance, or a share of tokens. */
typedef eplb_status measure(const eplb_placement *placement, int32_t row, const double *loads,
                            double *value, eplb_error *error);

/* The mean by weights over the scenarios that have load in the layer, 0 when none has, and the
 * largest value. */
static eplb_status measure_each(measure *of, const eplb_placement *placement, int32_t row,
                                const eplb_load *load, int32_t layer, double *mean, double *largest,
                                eplb_error *error)
{
    double most = eplb_largest_weight(load, layer);
    double weights = 0.0;
    double sum = 0.0;
    *largest = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        const double *loads = eplb_load_row(load, k, layer);
        double value;
        eplb_status status = of(placement, row, loads, &value, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (has_load(loads, eplb_load_experts(load))) {
            double weight = eplb_load_scenario_weight(load, k) / most;
            weights += weight;
            sum += weight * value;
            *largest = value > *largest ? value : *largest;
        }
    }
    *mean = weights > 0.0 ? sum / weights : 0.0;
    return EPLB_OK;
}

static eplb_status measure_sum(measure *of, const eplb_placement *placement, int32_t row,
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
        status = of(placement, row, sums, value, error);
    }
    eplb_free(&hooks, sums);
    return status;
}

static eplb_status check(const char *what, const eplb_placement *placement, const eplb_load *load,
                         int32_t layer, const double *value, eplb_error *error)
{
    if (placement == NULL || load == NULL || value == NULL ||
        placement->experts != eplb_load_experts(load) || eplb_load_row(load, 0, layer) == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "%s: no placement, load or output, other experts, or no layer %d",
                              what, layer);
    }
    return EPLB_OK;
}

static eplb_status measure_objective(measure *of, const eplb_placement *placement, int32_t row,
                                     const eplb_load *load, int32_t layer, eplb_objective objective,
                                     double *value, eplb_error *error)
{
    eplb_status status = check("objective", placement, load, layer, value, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (objective == EPLB_OBJECTIVE_SUM || eplb_load_scenarios(load) == 1) {
        return measure_sum(of, placement, row, load, layer, value, error);
    }
    double mean;
    double largest;
    status = measure_each(of, placement, row, load, layer, &mean, &largest, error);
    if (status == EPLB_OK) {
        /* A mean of ones can be a rounding error less. */
        mean = mean > 0.0 && mean < 1.0 ? 1.0 : mean;
        *value = objective == EPLB_OBJECTIVE_MAX_OF_MAX ? largest : mean;
    }
    return status;
}

eplb_status eplb_placement_objective(const eplb_placement *placement, int32_t row,
                                     const eplb_load *load, int32_t layer, eplb_objective objective,
                                     double *value, eplb_error *error)
{
    return measure_objective(eplb_placement_imbalance, placement, row, load, layer, objective,
                             value, error);
}

static eplb_status weighted_imbalance(const eplb_placement *placement, int32_t row,
                                      const double *loads, double *imbalance, eplb_error *error)
{
    double *weights = eplb_alloc(&placement->hooks, (size_t)placement->slots, sizeof(*weights));
    if (weights == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_shares_best(placement, row, loads, weights, NULL, imbalance, error);
    eplb_free(&placement->hooks, weights);
    return status;
}

eplb_status eplb_placement_weighted_objective(const eplb_placement *placement, int32_t row,
                                              const eplb_load *load, int32_t layer,
                                              eplb_objective objective, double *value,
                                              eplb_error *error)
{
    return measure_objective(weighted_imbalance, placement, row, load, layer, objective, value,
                             error);
}

eplb_status eplb_placement_traffic(const eplb_placement *placement, int32_t row,
                                   const eplb_load *load, int32_t layer, eplb_objective objective,
                                   double *share, eplb_error *error)
{
    eplb_status status = check("traffic", placement, load, layer, share, error);
    if (status != EPLB_OK) {
        return status;
    }
    double largest;
    return objective == EPLB_OBJECTIVE_SUM
               ? measure_sum(eplb_placement_cross_node, placement, row, load, layer, share, error)
               : measure_each(eplb_placement_cross_node, placement, row, load, layer, share,
                              &largest, error);
}
