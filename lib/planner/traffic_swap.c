/* SPDX-License-Identifier: MIT */
/* Swaps of two replicas on different nodes: descent on the share of tokens that leave their node,
 * hottest experts first. */
#include "planner/traffic.h"

/* Pairs of replicas looked at in one call, at most. */
#define MOST_PAIRS ((int64_t)1 << 22)

/* Smaller gains of the share are rounding. */
#define LEAST_GAIN 1e-12

typedef struct swapping {
    eplb_traffic *traffic;
    eplb_layer *layer;
    double most; /* 1 + tolerance */
    int64_t end; /* of layer->moves */
} swapping;

/* Whether a GPU can take one expert for another. */
static bool stays_below(const swapping *w, int32_t gpu, int32_t giver, int32_t taker)
{
    const eplb_traffic *traffic = w->traffic;
    size_t scenarios = (size_t)traffic->scenarios;
    const double *load = traffic->gpu_load + (size_t)gpu * scenarios;
    const double *out = traffic->load + (size_t)giver * scenarios;
    const double *in = traffic->load + (size_t)taker * scenarios;
    double out_count = (double)w->layer->count[giver];
    double in_count = (double)w->layer->count[taker];
    for (size_t k = 0; k < scenarios; k++) {
        if (load[k] - out[k] / out_count + in[k] / in_count > traffic->reached[k] * w->most) {
            return false;
        }
    }
    return true;
}

/* The best replica on a GPU to swap the one in slot s for, if it beats *best_gain; what s's expert
 * gains by the move is known. */
static void offer_gpu(swapping *w, int32_t s, int32_t h, double own_gain, double *best_gain,
                      int32_t *best)
{
    const eplb_layer *layer = w->layer;
    int32_t g = layer->shape->slot_gpu[s];
    int32_t e = layer->slot_expert[s];
    int32_t from = eplb_traffic_node(w->traffic, g);
    int32_t to = eplb_traffic_node(w->traffic, h);
    for (int32_t t = layer->shape->first_slot[h]; t < layer->shape->first_slot[h + 1]; t++) {
        int32_t f = layer->slot_expert[t];
        w->layer->moves++;
        double gain = own_gain + w->traffic->part[f] *
                                     (double)eplb_traffic_gain(w->traffic, f, to, from) /
                                     (double)w->traffic->nodes->live_gpus;
        if (gain > *best_gain && eplb_layer_may_swap(layer, g, e, h, f) &&
            stays_below(w, g, e, f) && stays_below(w, h, f, e)) {
            *best_gain = gain;
            *best = t;
        }
    }
}

/* The slot that one is best swapped with, the first of equals; -1: with none. */
static int32_t best_partner(swapping *w, int32_t s)
{
    const eplb_traffic *traffic = w->traffic;
    int32_t e = w->layer->slot_expert[s];
    int32_t from = eplb_traffic_node(traffic, w->layer->shape->slot_gpu[s]);
    double best_gain = LEAST_GAIN;
    int32_t best = -1;
    for (int32_t h = 0; h < w->layer->shape->gpus; h++) {
        int32_t to = eplb_traffic_node(traffic, h);
        int32_t gain = to != from ? eplb_traffic_gain(traffic, e, from, to) : 0;
        if (gain > 0) {
            offer_gpu(w, s, h, traffic->part[e] * (double)gain / (double)traffic->nodes->live_gpus,
                      &best_gain, &best);
        }
    }
    return best;
}

static void swap(swapping *w, int32_t s, int32_t t)
{
    eplb_layer *layer = w->layer;
    int32_t g = layer->shape->slot_gpu[s];
    int32_t h = layer->shape->slot_gpu[t];
    int32_t e = layer->slot_expert[s];
    int32_t f = layer->slot_expert[t];
    eplb_layer_swap_slots(layer, s, t);
    eplb_layer_flip(layer, g, e);
    eplb_layer_flip(layer, g, f);
    eplb_layer_flip(layer, h, e);
    eplb_layer_flip(layer, h, f);
    eplb_traffic_sum_gpu(w->traffic, g);
    eplb_traffic_sum_gpu(w->traffic, h);
}

/* Swaps each replica of the expert that gains by it. True when there was one. */
static bool move_replicas(swapping *w, int32_t expert)
{
    bool moved = false;
    for (int32_t r = w->layer->first[expert]; r >= 0 && w->layer->moves < w->end;
         r = w->layer->next[r]) {
        int32_t s = w->layer->replica_slot[r];
        int32_t t = best_partner(w, s);
        if (t >= 0) {
            swap(w, s, t);
            moved = true;
        }
    }
    return moved;
}

void eplb_traffic_swap(eplb_traffic *traffic, double tolerance)
{
    eplb_layer *layer = traffic->layer;
    int32_t experts = layer->shape->experts;
    swapping w = {.traffic = traffic,
                  .layer = layer,
                  .most = 1.0 + tolerance,
                  .end = layer->moves + MOST_PAIRS};
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        eplb_traffic_sum_gpu(traffic, g);
    }
    for (int32_t e = 0; e < experts; e++) {
        layer->order[e] = e;
    }
    eplb_sort_descending(layer->order, experts, traffic->part, layer->position);
    bool moved = true;
    while (moved && layer->moves < w.end) {
        moved = false;
        for (int32_t i = 0; i < experts; i++) {
            moved = move_replicas(&w, layer->order[i]) || moved;
        }
    }
    eplb_layer_index(layer);
}
