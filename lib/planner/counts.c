/* SPDX-License-Identifier: MIT */
/* How many replicas each expert gets, and what that says about every placement. */
#include <string.h>

#include "planner/layer.h"

/* A heap of experts, the one to get the next replica on top. */
typedef struct expert_heap {
    const eplb_layer *layer;
    int32_t *items;
    int32_t size;
} expert_heap;

static bool goes_first(const eplb_layer *layer, int32_t a, int32_t b)
{
    if (layer->share[a] != layer->share[b]) {
        return layer->share[a] > layer->share[b];
    }
    if (layer->count[a] != layer->count[b]) {
        return layer->count[a] < layer->count[b];
    }
    return a < b;
}

static void sift_down(expert_heap *heap, int32_t parent)
{
    int32_t item = heap->items[parent];
    for (;;) {
        int32_t child = 2 * parent + 1;
        if (child >= heap->size) {
            break;
        }
        if (child + 1 < heap->size &&
            goes_first(heap->layer, heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!goes_first(heap->layer, heap->items[child], item)) {
            break;
        }
        heap->items[parent] = heap->items[child];
        parent = child;
    }
    heap->items[parent] = item;
}

static void remove_top(expert_heap *heap)
{
    heap->items[0] = heap->items[--heap->size];
    if (heap->size > 0) {
        sift_down(heap, 0);
    }
}

/*
 * Whether one more replica of an expert still leaves room for distinct copies: the k most
 * replicated experts can have no more replicas together than the GPUs have slots for k experts
 * (Gale 1957, Ryser 1957). With equal GPUs that holds by itself.
 */
static bool room_for_another(eplb_layer *layer, int32_t expert)
{
    const eplb_shape *shape = layer->shape;
    int32_t most = shape->rules != NULL ? shape->rules->max_replicas : shape->gpus;
    if (layer->count[expert] >= most) {
        return false;
    }
    if (shape->uniform) {
        return true;
    }
    int32_t *experts_with = layer->aside; /* [gpus + 1]: experts with that many replicas */
    for (int32_t c = 0; c <= shape->gpus; c++) {
        experts_with[c] = 0;
    }
    for (int32_t e = 0; e < shape->experts; e++) {
        experts_with[layer->count[e] + (e == expert)]++;
    }
    int64_t replicas = 0;
    int32_t k = 0;
    for (int32_t c = shape->gpus; c > 0; c--) {
        for (int32_t i = 0; i < experts_with[c]; i++) {
            replicas += c;
            if (replicas > shape->distinct_room[++k]) {
                return false;
            }
        }
    }
    return true;
}

/* Gives each expert the fewest replicas it may have; returns how many these are together. */
static int64_t fewest_replicas(eplb_layer *layer)
{
    bool has_rules = layer->shape->rules != NULL;
    int64_t sum = 0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        layer->count[e] = has_rules ? eplb_rules_fewest(layer, e) : 1;
        layer->share[e] = layer->load[e] / (double)layer->count[e];
        sum += layer->count[e];
    }
    return sum;
}

/* Gives spare slots to the experts of the heap, whose items are in no order yet. */
static void share_spare_slots(eplb_layer *layer, expert_heap *heap, int64_t spare)
{
    for (int32_t i = heap->size / 2 - 1; i >= 0; i--) {
        sift_down(heap, i);
    }
    while (spare > 0 && heap->size > 0) {
        int32_t e = heap->items[0];
        if (!room_for_another(layer, e)) {
            remove_top(heap); /* and it stays so: room only shrinks */
            continue;
        }
        layer->count[e]++;
        layer->share[e] = layer->load[e] / (double)layer->count[e];
        sift_down(heap, 0);
        spare--;
    }
}

void eplb_layer_counts(eplb_layer *layer)
{
    expert_heap heap = {.layer = layer, .items = layer->heap, .size = layer->shape->experts};
    int64_t spare = layer->shape->slots - fewest_replicas(layer);
    for (int32_t e = 0; e < heap.size; e++) {
        heap.items[e] = e;
    }
    share_spare_slots(layer, &heap, spare);
}

bool eplb_layer_filler_counts(eplb_layer *layer)
{
    const eplb_shape *shape = layer->shape;
    int32_t fillers = shape->experts - (shape->slots - shape->gpus);
    if (!shape->uniform || fillers < 1 || shape->rules != NULL) {
        return false;
    }
    for (int32_t e = 0; e < shape->experts; e++) {
        layer->order[e] = e;
    }
    eplb_sort_descending(layer->order, shape->experts, layer->load, layer->position);
    expert_heap heap = {.layer = layer, .items = layer->heap, .size = fillers};
    int64_t spare = shape->slots - fewest_replicas(layer);
    memcpy(heap.items, layer->order + shape->experts - fillers,
           (size_t)fillers * sizeof(*heap.items));
    share_spare_slots(layer, &heap, spare);
    return true;
}

double eplb_layer_largest_share(const eplb_layer *layer)
{
    double largest = 0.0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        largest = layer->share[e] > largest ? layer->share[e] : largest;
    }
    return largest;
}

double eplb_layer_bound(const eplb_layer *layer)
{
    double total = 0.0;
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        total += layer->load[e];
    }
    double mean = total / (double)layer->shape->gpus;
    double share = eplb_layer_largest_share(layer);
    return mean > share ? mean : share;
}
