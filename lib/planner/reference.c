/* SPDX-License-Identifier: MIT */
/*
 * The classical expert-parallel load balancer, as described by deepseek-ai/EPLB: a reference to
 * compare with. Whole groups of experts are packed onto nodes; inside each node replicas are added
 * and packed onto its GPUs. With one group and one node it is the global form.
 */
#include <string.h>

#include "planner/layer.h"

/* Packs items in the order given onto bins of equal room: each goes to the least-loaded bin that
 * has room, equal loads to the smaller bin. */
typedef struct packing {
    double *bin_load; /* [bins] */
    int32_t *bin_room;
    int32_t bins;
} packing;

static void open_bins(packing *p, int32_t bins, int32_t room)
{
    p->bins = bins;
    for (int32_t b = 0; b < bins; b++) {
        p->bin_load[b] = 0.0;
        p->bin_room[b] = room;
    }
}

static int32_t put_in_lightest(packing *p, double load)
{
    int32_t best = -1;
    for (int32_t b = 0; b < p->bins; b++) {
        if (p->bin_room[b] > 0 && (best < 0 || p->bin_load[b] < p->bin_load[best])) {
            best = b;
        }
    }
    p->bin_load[best] += load;
    p->bin_room[best]--;
    return best;
}

/* Lists the experts of each node in layer->heap, node after node: groups by load descending, each
 * to the least-loaded node with room. */
static void groups_to_nodes(eplb_layer *layer, int32_t groups, int32_t nodes)
{
    int32_t group_size = layer->shape->experts / groups;
    int32_t groups_per_node = groups / nodes;
    for (int32_t group = 0; group < groups; group++) {
        layer->order[group] = group;
        layer->key[group] = 0.0;
        for (int32_t e = group * group_size; e < (group + 1) * group_size; e++) {
            layer->key[group] += layer->load[e];
        }
    }
    eplb_sort_descending(layer->order, groups, layer->key, layer->position);
    packing p = {.bin_load = layer->gpu_load, .bin_room = layer->room};
    open_bins(&p, nodes, groups_per_node);
    for (int32_t i = 0; i < groups; i++) {
        int32_t group = layer->order[i];
        int32_t node = put_in_lightest(&p, layer->key[group]);
        int32_t place = node * groups_per_node + groups_per_node - 1 - p.bin_room[node];
        for (int32_t e = 0; e < group_size; e++) {
            layer->heap[place * group_size + e] = group * group_size + e;
        }
    }
}

/* Lists the replicas of a node's experts in layer->aside: each expert once, then again and again
 * the one with the largest load per replica, the first of equals. Their shares are final after. */
static void replicate(eplb_layer *layer, const int32_t *experts, int32_t count, int32_t slots)
{
    for (int32_t i = 0; i < count; i++) {
        layer->aside[i] = experts[i];
        layer->count[experts[i]] = 1;
        layer->share[experts[i]] = layer->load[experts[i]];
    }
    for (int32_t s = count; s < slots; s++) {
        int32_t best = experts[0];
        for (int32_t i = 1; i < count; i++) {
            best = layer->share[experts[i]] > layer->share[best] ? experts[i] : best;
        }
        layer->aside[s] = best;
        layer->count[best]++;
        layer->share[best] = layer->load[best] / (double)layer->count[best];
    }
}

/* Packs the replicas of layer->aside onto the node's GPUs, from slot `first` on. */
static void pack_node(eplb_layer *layer, int32_t first, int32_t slots, int32_t gpus)
{
    int32_t room = slots / gpus;
    for (int32_t r = 0; r < slots; r++) {
        layer->order[r] = r;
        layer->key[r] = layer->share[layer->aside[r]];
    }
    eplb_sort_descending(layer->order, slots, layer->key, layer->position);
    packing p = {.bin_load = layer->gpu_load, .bin_room = layer->room};
    open_bins(&p, gpus, room);
    for (int32_t i = 0; i < slots; i++) {
        int32_t r = layer->order[i];
        int32_t gpu = put_in_lightest(&p, layer->key[r]);
        layer->slot_expert[first + gpu * room + room - 1 - p.bin_room[gpu]] = layer->aside[r];
    }
}

void eplb_layer_reference(eplb_layer *layer, int32_t groups, int32_t nodes)
{
    const eplb_shape *shape = layer->shape;
    int32_t experts_per_node = shape->experts / nodes;
    int32_t slots_per_node = shape->slots / nodes;
    groups_to_nodes(layer, groups, nodes);
    for (int32_t node = 0; node < nodes; node++) {
        replicate(layer, layer->heap + node * experts_per_node, experts_per_node, slots_per_node);
        pack_node(layer, node * slots_per_node, slots_per_node, shape->gpus / nodes);
    }
    eplb_layer_index(layer);
}
