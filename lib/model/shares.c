/* SPDX-License-Identifier: MIT */
#include <eplb/shares.h>

#include <math.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "model/row.h"
#include "model/share_flow.h"

/* Weights may be written with few digits. */
#define TOLERANCE 1e-6

static const char what[] = "shares";

static eplb_status check_arguments(const eplb_placement *placement, int32_t layer,
                                   const double *expert_loads, const double *weights,
                                   eplb_error *error)
{
    eplb_status status = eplb_check_given(what, "placement", placement, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "layer", layer, 0, placement->layers - 1, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_given(what, "expert loads", expert_loads, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_given(what, "weights", weights, error);
    }
    return status == EPLB_OK ? eplb_row_check("expert loads", placement->layer_ids.ids[layer],
                                              expert_loads, placement->experts, error)
                             : status;
}

static void sum_loads(const eplb_placement *placement, int32_t layer, const double *expert_loads,
                      const double *weights, double *gpu_loads)
{
    const eplb_cluster *cluster = placement->cluster;
    const int32_t *row = eplb_placement_row(placement, layer);
    for (int32_t g = 0; g < cluster->gpus; g++) {
        double sum = 0.0;
        for (int32_t s = cluster->first_slot[g]; s < cluster->first_slot[g + 1]; s++) {
            sum += row[s] >= 0 ? expert_loads[row[s]] * weights[s] : 0.0;
        }
        gpu_loads[g] = sum;
    }
}

/* `gpu_loads` [gpus] is scratch. */
static void measure(const eplb_placement *placement, int32_t layer, const double *expert_loads,
                    const double *weights, double *gpu_loads, double *largest, double *imbalance)
{
    sum_loads(placement, layer, expert_loads, weights, gpu_loads);
    if (largest != NULL) {
        *largest = 0.0;
        for (int32_t g = 0; g < placement->cluster->gpus; g++) {
            *largest = gpu_loads[g] > *largest ? gpu_loads[g] : *largest;
        }
    }
    if (imbalance != NULL) {
        *imbalance =
            eplb_imbalance_of(placement->cluster, expert_loads, placement->experts, gpu_loads);
    }
}

eplb_status eplb_shares_best(const eplb_placement *placement, int32_t layer,
                             const double *expert_loads, double *weights, double *largest,
                             double *imbalance, eplb_error *error)
{
    eplb_status status = check_arguments(placement, layer, expert_loads, weights, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_share_flow flow;
    status = eplb_share_flow_init(&flow, placement, layer, eplb_placement_row(placement, layer),
                                  expert_loads, error);
    if (status == EPLB_OK) {
        eplb_share_flow_balance(&flow);
        eplb_share_flow_weights(&flow, weights);
        measure(placement, layer, expert_loads, weights, flow.gpu_tokens, largest, imbalance);
    }
    eplb_share_flow_free(&flow, placement);
    return status;
}

static eplb_status check_weight(const eplb_placement *placement, int32_t layer, int32_t gpu,
                                int32_t slot, double weight, eplb_error *error)
{
    int id = placement->layer_ids.ids[layer];
    if (!isfinite(weight) || weight < 0.0) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "weights: layer %d: slot %d: %g is not a weight (finite, >= 0)", id,
                              slot, weight);
    }
    int32_t expert = eplb_placement_row(placement, layer)[slot];
    if (weight > 0.0 && (expert < 0 || !placement->cluster->gpu[gpu].alive)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "weights: layer %d: slot %d of GPU %d has %g but %s", id, slot, gpu,
                              weight, expert < 0 ? "is empty" : "the GPU is dead");
    }
    return EPLB_OK;
}

/* `sums` [experts] starts with zeros. */
static eplb_status check_weights(const eplb_placement *placement, int32_t layer,
                                 const double *expert_loads, const double *weights, double *sums,
                                 eplb_error *error)
{
    const eplb_cluster *cluster = placement->cluster;
    const int32_t *row = eplb_placement_row(placement, layer);
    for (int32_t g = 0; g < cluster->gpus; g++) {
        for (int32_t s = cluster->first_slot[g]; s < cluster->first_slot[g + 1]; s++) {
            eplb_status status = check_weight(placement, layer, g, s, weights[s], error);
            if (status != EPLB_OK) {
                return status;
            }
            if (row[s] >= 0) {
                sums[row[s]] += weights[s];
            }
        }
    }
    for (int32_t e = 0; e < placement->experts; e++) {
        if (expert_loads[e] > 0.0 && !(fabs(sums[e] - 1.0) <= TOLERANCE)) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "weights: layer %d: expert %d: they sum to %.9g, not to 1",
                                  placement->layer_ids.ids[layer], e, sums[e]);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_shares_gpu_loads(const eplb_placement *placement, int32_t layer,
                                  const double *expert_loads, const double *weights,
                                  double *gpu_loads, eplb_error *error)
{
    eplb_status status = check_arguments(placement, layer, expert_loads, weights, error);
    if (status == EPLB_OK) {
        status = eplb_check_given(what, "output", gpu_loads, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    double *sums = eplb_alloc_zeroed(&placement->hooks, (size_t)placement->experts, sizeof(*sums));
    if (sums == NULL) {
        return eplb_out_of_memory(error);
    }
    status = check_weights(placement, layer, expert_loads, weights, sums, error);
    if (status == EPLB_OK) {
        sum_loads(placement, layer, expert_loads, weights, gpu_loads);
    }
    eplb_free(&placement->hooks, sums);
    return status;
}
