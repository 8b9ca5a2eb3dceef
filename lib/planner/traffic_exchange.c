/* SPDX-License-Identifier: MIT */
/* GPUs as they are, on other nodes: descent over exchanges of two of them. */
#include "planner/traffic.h"

/* Pairs of GPUs looked at, at most. */
#define MOST_PAIRS ((int64_t)1 << 22)

/* Smaller gains of the share are rounding. */
#define LEAST_GAIN 1e-12

static bool has_pin(const eplb_layer *layer, int32_t gpu)
{
    const uint64_t *bits = layer->pinned + (size_t)gpu * (size_t)layer->words;
    for (int32_t word = 0; word < layer->words; word++) {
        if (bits[word] != 0) {
            return true;
        }
    }
    return false;
}

static bool may_exchange(const eplb_layer *layer, int32_t g, int32_t h)
{
    const int32_t *first = layer->shape->first_slot;
    return first[g + 1] - first[g] == first[h + 1] - first[h] &&
           (layer->shape->rules == NULL || (!has_pin(layer, g) && !has_pin(layer, h)));
}

/* What the share falls by when all on GPU g that h lacks goes to h's node. */
static double gain_one_way(const eplb_traffic *traffic, int32_t g, int32_t h)
{
    const eplb_layer *layer = traffic->layer;
    int32_t from = eplb_traffic_node(traffic, g);
    int32_t to = eplb_traffic_node(traffic, h);
    bool equal_nodes = traffic->nodes->gpus[from] == traffic->nodes->gpus[to];
    double gain = 0.0;
    for (int32_t s = layer->shape->first_slot[g]; s < layer->shape->first_slot[g + 1]; s++) {
        int32_t e = layer->slot_expert[s];
        if ((layer->count[e] > 1 || !equal_nodes) && !eplb_layer_holds(layer, h, e)) {
            gain += traffic->part[e] * (double)eplb_traffic_gain(traffic, e, from, to);
        }
    }
    return gain / (double)traffic->nodes->live_gpus;
}

static void exchange(eplb_layer *layer, int32_t g, int32_t h)
{
    const int32_t *first = layer->shape->first_slot;
    for (int32_t i = 0; i < first[g + 1] - first[g]; i++) {
        eplb_layer_swap_slots(layer, first[g] + i, first[h] + i);
    }
    for (int32_t word = 0; word < layer->words; word++) {
        uint64_t *a = &layer->holds[(size_t)g * (size_t)layer->words + (size_t)word];
        uint64_t *b = &layer->holds[(size_t)h * (size_t)layer->words + (size_t)word];
        uint64_t bits = *a;
        *a = *b;
        *b = bits;
    }
}

/* The GPU that one is best exchanged with, the first of equals; -1: with none. */
static int32_t best_partner(eplb_traffic *traffic, int32_t g)
{
    double best_gain = LEAST_GAIN;
    int32_t best = -1;
    for (int32_t h = 0; h < traffic->layer->shape->gpus; h++) {
        if (eplb_traffic_node(traffic, g) == eplb_traffic_node(traffic, h) ||
            !may_exchange(traffic->layer, g, h)) {
            continue;
        }
        traffic->layer->moves++;
        double gain = gain_one_way(traffic, g, h) + gain_one_way(traffic, h, g);
        if (gain > best_gain) {
            best_gain = gain;
            best = h;
        }
    }
    return best;
}

void eplb_traffic_exchange(eplb_traffic *traffic)
{
    eplb_layer *layer = traffic->layer;
    int32_t gpus = layer->shape->gpus;
    if (layer->shape->rules != NULL && layer->shape->rules->node != NULL) {
        return; /* replicas are spread over nodes already, and must stay so */
    }
    int64_t end = layer->moves + MOST_PAIRS;
    int32_t unchanged = 0;
    for (int32_t g = 0; unchanged < gpus && layer->moves < end; g = (g + 1) % gpus) {
        int32_t h = best_partner(traffic, g);
        if (h >= 0) {
            exchange(layer, g, h);
        }
        unchanged = h >= 0 ? 0 : unchanged + 1;
    }
    eplb_layer_index(layer);
}
