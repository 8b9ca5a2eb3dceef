/* SPDX-License-Identifier: MIT */
#include "model/nodes.h"

#include "base/memory.h"
#include "model/cluster.h"

/* Counting sort of the live GPUs by node. */
static void sort_gpus(eplb_nodes *nodes, int32_t gpus)
{
    int32_t next = 0;
    for (int32_t n = 0; n < nodes->count; n++) { /* gpus: for now where the node's GPUs begin */
        int32_t live = nodes->gpus[n];
        nodes->gpus[n] = next;
        next += live;
    }
    for (int32_t g = 0; g < gpus; g++) {
        if (nodes->node[g] >= 0) {
            nodes->order[nodes->gpus[nodes->node[g]]++] = g;
        }
    }
    for (int32_t n = nodes->count - 1; n > 0; n--) { /* and now where they end */
        nodes->gpus[n] -= nodes->gpus[n - 1];
    }
}

eplb_status eplb_nodes_init(eplb_nodes *nodes, const eplb_hooks *hooks, const eplb_cluster *cluster,
                            eplb_error *error)
{
    size_t gpus = (size_t)cluster->gpus;
    size_t count = (size_t)eplb_cluster_nodes(cluster);
    *nodes = (eplb_nodes){.count = eplb_cluster_nodes(cluster),
                          .node = eplb_alloc(hooks, gpus, sizeof(*nodes->node)),
                          .gpus = eplb_alloc_zeroed(hooks, count, sizeof(*nodes->gpus)),
                          .order = eplb_alloc(hooks, gpus, sizeof(*nodes->order))};
    if (nodes->node == NULL || nodes->gpus == NULL || nodes->order == NULL) {
        eplb_nodes_free(nodes, hooks);
        return eplb_out_of_memory(error);
    }
    for (int32_t g = 0; g < cluster->gpus; g++) {
        nodes->node[g] = -1;
        if (cluster->gpu[g].alive) {
            nodes->node[g] = cluster->gpu[g].node;
            nodes->gpus[nodes->node[g]]++;
            nodes->live_gpus++;
        }
    }
    sort_gpus(nodes, cluster->gpus);
    return EPLB_OK;
}

void eplb_nodes_free(eplb_nodes *nodes, const eplb_hooks *hooks)
{
    eplb_free(hooks, nodes->node);
    eplb_free(hooks, nodes->gpus);
    eplb_free(hooks, nodes->order);
    *nodes = (eplb_nodes){0};
}
