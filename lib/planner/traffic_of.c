/* SPDX-License-Identifier: MIT */
/* What the scenarios of a load send between nodes. */
#include <stdbool.h>

#include <eplb/plan.h>

#include "base/memory.h"
#include "model/placement.h"
#include "planner/objective.h"

static bool has_load(const eplb_load *load, int32_t scenario, int32_t layer)
{
    const double *row = eplb_load_row(load, scenario, layer);
    for (int32_t e = 0; e < eplb_load_experts(load); e++) {
        if (row[e] > 0.0) {
            return true;
        }
    }
    return false;
}

static eplb_status mean_of_scenarios(const eplb_placement *placement, int32_t row,
                                     const eplb_load *load, int32_t layer, double *share,
                                     eplb_error *error)
{
    double most = eplb_largest_weight(load, layer); /* 0 without any load */
    double weights = 0.0;
    double sum = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        double part;
        eplb_status status =
            eplb_placement_cross_node(placement, row, eplb_load_row(load, k, layer), &part, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (has_load(load, k, layer)) {
            double weight = eplb_load_scenario_weight(load, k) / most;
            weights += weight;
            sum += weight * part;
        }
    }
    *share = weights > 0.0 ? sum / weights : 0.0;
    return EPLB_OK;
}

static eplb_status share_of_sum(const eplb_placement *placement, int32_t row, const eplb_load *load,
                                int32_t layer, double *share, eplb_error *error)
{
    eplb_hooks hooks = placement->hooks;
    double *sums = eplb_alloc(&hooks, (size_t)eplb_load_experts(load), sizeof(*sums));
    if (sums == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_load_sum_row(load, layer, sums, NULL, error);
    if (status == EPLB_OK) {
        status = eplb_placement_cross_node(placement, row, sums, share, error);
    }
    eplb_free(&hooks, sums);
    return status;
}

eplb_status eplb_placement_traffic(const eplb_placement *placement, int32_t row,
                                   const eplb_load *load, int32_t layer, eplb_objective objective,
                                   double *share, eplb_error *error)
{
    if (placement == NULL || load == NULL || share == NULL ||
        placement->experts != eplb_load_experts(load) || eplb_load_row(load, 0, layer) == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "traffic: no placement, load or output, other experts, or no layer "
                              "%d",
                              layer);
    }
    return objective == EPLB_OBJECTIVE_SUM
               ? share_of_sum(placement, row, load, layer, share, error)
               : mean_of_scenarios(placement, row, load, layer, share, error);
}
