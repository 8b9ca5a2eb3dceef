/* SPDX-License-Identifier: MIT */
/* How many tokens leave their node. */
#include <eplb/placement.h>

#include "base/memory.h"
#include "model/nodes.h"
#include "model/placement.h"
#include "model/row.h"

/* Live GPUs on nodes that hold each expert, reach [experts]. `seen` [experts] is scratch. */
static void find_reach(const eplb_placement *placement, const int32_t *row, const eplb_nodes *nodes,
                       int32_t *reach, int32_t *seen)
{
    const eplb_cluster *cluster = placement->cluster;
    for (int32_t e = 0; e < placement->experts; e++) {
        reach[e] = 0;
        seen[e] = -1;
    }
    for (int32_t i = 0; i < nodes->live_gpus; i++) {
        int32_t gpu = nodes->order[i];
        int32_t node = nodes->node[gpu];
        int32_t first = eplb_cluster_first_slot(cluster, gpu);
        for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, gpu); s++) {
            if (row[s] >= 0 && seen[row[s]] != node) {
                seen[row[s]] = node;
                reach[row[s]] += nodes->gpus[node];
            }
        }
    }
}

static eplb_status sum_leavers(const eplb_placement *placement, int32_t layer, const double *loads,
                               const eplb_nodes *nodes, const int32_t *reach, double *share,
                               eplb_error *error)
{
    double leaving = 0.0;
    double total = 0.0;
    for (int32_t e = 0; e < placement->experts; e++) {
        if (reach[e] == 0 && loads[e] > 0.0) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "layer %d: expert %d has %g tokens and no replica on a live GPU",
                                  placement->layer_ids.ids[layer], e, loads[e]);
        }
        if (loads[e] > 0.0) {
            int32_t beyond = nodes->live_gpus - reach[e];
            leaving += loads[e] * ((double)beyond / (double)nodes->live_gpus);
            total += loads[e];
        }
    }
    *share = total > 0.0 ? leaving / total : 0.0;
    return EPLB_OK;
}

static eplb_status measure(const eplb_placement *placement, int32_t layer, const double *loads,
                           double *share, eplb_error *error)
{
    const eplb_hooks *hooks = &placement->hooks;
    eplb_nodes nodes;
    eplb_status status = eplb_nodes_init(&nodes, hooks, placement->cluster, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t experts = (size_t)placement->experts;
    int32_t *reach = eplb_alloc(hooks, experts, sizeof(*reach));
    int32_t *seen = eplb_alloc(hooks, experts, sizeof(*seen));
    if (reach == NULL || seen == NULL) {
        status = eplb_out_of_memory(error);
    } else {
        find_reach(placement, eplb_placement_row(placement, layer), &nodes, reach, seen);
        status = sum_leavers(placement, layer, loads, &nodes, reach, share, error);
    }
    eplb_free(hooks, reach);
    eplb_free(hooks, seen);
    eplb_nodes_free(&nodes, hooks);
    return status;
}

eplb_status eplb_placement_cross_node(const eplb_placement *placement, int32_t layer,
                                      const double *expert_loads, double *share, eplb_error *error)
{
    if (placement == NULL || expert_loads == NULL || share == NULL ||
        eplb_placement_row(placement, layer) == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "cross-node share: no placement, loads or output, or no layer %d",
                              layer);
    }
    eplb_status status = eplb_row_check("expert loads", placement->layer_ids.ids[layer],
                                        expert_loads, placement->experts, error);
    return status == EPLB_OK ? measure(placement, layer, expert_loads, share, error) : status;
}
