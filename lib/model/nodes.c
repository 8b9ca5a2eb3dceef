/* SPDX-License-Identifier: MIT */
#include "model/nodes.h"

#include "base/memory.h"
#include "model/cluster.h"

/* The place of a number in an ascending list, or where it would have to be. */
static int32_t place_of(const int32_t *list, int32_t count, int32_t number)
{
    int32_t low = 0;
    int32_t high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (list[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Lists the numbers of the nodes, each once, ascending. They mostly come in order. */
static int32_t list_numbers(const eplb_cluster *cluster, int32_t *list)
{
    int32_t count = 0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        int32_t number = cluster->gpu[g].node;
        int32_t place = place_of(list, count, number);
        if (!cluster->gpu[g].alive || (place < count && list[place] == number)) {
            continue;
        }
        memmove(list + place + 1, list + place, (size_t)(count - place) * sizeof(*list));
        list[place] = number;
        count++;
    }
    return count;
}

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
    *nodes = (eplb_nodes){.node = eplb_alloc(hooks, gpus, sizeof(*nodes->node)),
                          .gpus = eplb_alloc(hooks, gpus, sizeof(*nodes->gpus)),
                          .order = eplb_alloc(hooks, gpus, sizeof(*nodes->order))};
    if (nodes->node == NULL || nodes->gpus == NULL || nodes->order == NULL) {
        eplb_nodes_free(nodes, hooks);
        return eplb_out_of_memory(error);
    }
    int32_t *numbers = nodes->order; /* until the GPUs are sorted */
    nodes->count = list_numbers(cluster, numbers);
    for (int32_t n = 0; n < nodes->count; n++) {
        nodes->gpus[n] = 0;
    }
    for (int32_t g = 0; g < cluster->gpus; g++) {
        nodes->node[g] = -1;
        if (cluster->gpu[g].alive) {
            nodes->node[g] = place_of(numbers, nodes->count, cluster->gpu[g].node);
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
