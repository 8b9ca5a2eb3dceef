/* SPDX-License-Identifier: MIT */
#include <eplb/load.h>

#include <math.h>

#include "base/range.h"

eplb_status eplb_load_sum_row(const eplb_load *load, int32_t layer, double *row, double *total,
                              eplb_error *error)
{
    eplb_status status =
        eplb_check_range("sum of scenarios", "layer", layer, 0, eplb_load_layers(load) - 1, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("sum of scenarios", "row", row, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t scenarios = eplb_load_scenarios(load);
    int32_t experts = eplb_load_experts(load);
    for (int32_t e = 0; e < experts; e++) {
        row[e] = 0.0;
    }
    for (int32_t s = 0; s < scenarios; s++) {
        const double *values = eplb_load_row(load, s, layer);
        double weight = scenarios > 1 ? eplb_load_scenario_weight(load, s) : 1.0;
        for (int32_t e = 0; e < experts; e++) {
            row[e] += weight * values[e];
        }
    }
    double sum = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        sum += row[e];
    }
    if (!isfinite(sum)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "layer %d: the sum of the scenarios is too large",
                              eplb_load_layer_ids(load)[layer]);
    }
    if (total != NULL) {
        *total = sum;
    }
    return EPLB_OK;
}
