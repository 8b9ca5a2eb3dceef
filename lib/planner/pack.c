/* SPDX-License-Identifier: MIT */
/* Packing replicas onto GPUs, largest first. */
#include <string.h>

#include "planner/layer.h"

/* A heap of the GPUs that have room, the least loaded on top, equal loads by smaller GPU. */
typedef struct gpu_heap {
    const double *load;
    int32_t *items;
    int32_t size;
} gpu_heap;

static bool lighter(const gpu_heap *heap, int32_t a, int32_t b)
{
    return heap->load[a] < heap->load[b] || (heap->load[a] == heap->load[b] && a < b);
}

static void push(gpu_heap *heap, int32_t gpu)
{
    int32_t child = heap->size++;
    while (child > 0 && lighter(heap, gpu, heap->items[(child - 1) / 2])) {
        heap->items[child] = heap->items[(child - 1) / 2];
        child = (child - 1) / 2;
    }
    heap->items[child] = gpu;
}

/* Moves the GPU on top down to where its load belongs. */
static void sift_down(gpu_heap *heap)
{
    int32_t gpu = heap->items[0];
    int32_t parent = 0;
    for (int32_t child = 1; child < heap->size; child = 2 * parent + 1) {
        if (child + 1 < heap->size && lighter(heap, heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!lighter(heap, heap->items[child], gpu)) {
            break;
        }
        heap->items[parent] = heap->items[child];
        parent = child;
    }
    heap->items[parent] = gpu;
}

static void remove_top(gpu_heap *heap)
{
    heap->items[0] = heap->items[--heap->size];
    if (heap->size > 0) {
        sift_down(heap);
    }
}

static void start_empty(eplb_layer *layer, gpu_heap *heap)
{
    const eplb_shape *shape = layer->shape;
    heap->load = layer->gpu_load;
    heap->items = layer->heap;
    heap->size = 0;
    memset(layer->holds, 0, (size_t)shape->gpus * (size_t)layer->words * sizeof(*layer->holds));
    for (int32_t g = 0; g < shape->gpus; g++) {
        layer->gpu_load[g] = 0.0;
        layer->room[g] = shape->first_slot[g + 1] - shape->first_slot[g];
        if (layer->room[g] > 0) {
            push(heap, g);
        }
    }
}

static void put(eplb_layer *layer, int32_t gpu, int32_t expert)
{
    layer->slot_expert[layer->shape->first_slot[gpu + 1] - layer->room[gpu]--] = expert;
    layer->gpu_load[gpu] += layer->share[expert];
    eplb_layer_flip(layer, gpu, expert);
}

/*
 * Every GPU with room holds the expert already: gives it the slot of another expert f, and f a slot
 * on `gpu`, which has room. False when no such exchange exists.
 */
static bool put_by_exchange(eplb_layer *layer, int32_t gpu, int32_t expert)
{
    const eplb_shape *shape = layer->shape;
    for (int32_t other = 0; other < shape->gpus; other++) {
        if (eplb_layer_holds(layer, other, expert)) {
            continue;
        }
        for (int32_t s = shape->first_slot[other + 1] - layer->room[other] - 1;
             s >= shape->first_slot[other]; s--) {
            int32_t moved = layer->slot_expert[s];
            if (eplb_layer_holds(layer, gpu, moved) ||
                (shape->rules != NULL && eplb_layer_pins(layer, other, moved))) {
                continue;
            }
            eplb_layer_flip(layer, other, moved);
            eplb_layer_flip(layer, other, expert);
            layer->slot_expert[s] = expert;
            layer->gpu_load[other] += layer->share[expert] - layer->share[moved];
            put(layer, gpu, moved);
            return true;
        }
    }
    return false;
}

/* Puts one replica; false when the greedy way is at a dead end. */
static bool put_on_lightest(eplb_layer *layer, gpu_heap *heap, int32_t expert)
{
    int32_t holders = 0;
    while (heap->size > 0 && eplb_layer_holds(layer, heap->items[0], expert)) {
        layer->aside[holders++] = heap->items[0];
        remove_top(heap);
    }
    bool placed = true;
    if (heap->size > 0) {
        int32_t gpu = heap->items[0];
        put(layer, gpu, expert);
        if (layer->room[gpu] > 0) {
            sift_down(heap);
        } else {
            remove_top(heap);
        }
    } else {
        placed = put_by_exchange(layer, layer->aside[0], expert);
    }
    for (int32_t i = 0; i < holders; i++) {
        if (layer->room[layer->aside[i]] > 0) {
            push(heap, layer->aside[i]);
        }
    }
    return placed;
}

static bool pack_by_load(eplb_layer *layer, const int32_t *order)
{
    gpu_heap heap;
    start_empty(layer, &heap);
    for (int32_t i = 0; i < layer->shape->experts; i++) {
        for (int32_t c = 0; c < layer->count[order[i]]; c++) {
            if (!put_on_lightest(layer, &heap, order[i])) {
                return false;
            }
        }
    }
    return true;
}

/* The lightest GPU with room that lacks the expert, on the nodes that have fewest of its replicas
 * if these are to be spread; -1: none. */
static int32_t lightest_by_rules(const eplb_layer *layer, int32_t expert)
{
    const int32_t *node = layer->shape->rules->node;
    int32_t best = -1;
    int32_t fewest = 0;
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        if (layer->room[g] == 0 || eplb_layer_holds(layer, g, expert)) {
            continue;
        }
        int32_t replicas = node != NULL ? eplb_rules_on_node(layer, expert, node[g]) : 0;
        if (best < 0 || replicas < fewest ||
            (replicas == fewest && layer->gpu_load[g] < layer->gpu_load[best])) {
            best = g;
            fewest = replicas;
        }
    }
    return best;
}

/* Puts the pinned replicas; false when a GPU has no room for them. */
static bool put_pinned(eplb_layer *layer)
{
    const eplb_shape *shape = layer->shape;
    for (int32_t g = 0; g < shape->gpus; g++) {
        for (int32_t e = 0; e < shape->experts; e++) {
            if (!eplb_layer_pins(layer, g, e)) {
                continue;
            }
            if (layer->room[g] == 0) {
                return false;
            }
            put(layer, g, e);
        }
    }
    return true;
}

static bool put_by_rules(eplb_layer *layer, int32_t expert)
{
    int32_t gpu = lightest_by_rules(layer, expert);
    if (gpu >= 0) {
        put(layer, gpu, expert);
        return true;
    }
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        if (layer->room[g] > 0) {
            return put_by_exchange(layer, g, expert);
        }
    }
    return false;
}

/* Replicas of an expert that put_pinned has put. */
static int32_t pins_of(const eplb_layer *layer, int32_t expert)
{
    int32_t pins = 0;
    for (int32_t g = 0; g < layer->shape->gpus && layer->shape->rules != NULL; g++) {
        pins += eplb_layer_pins(layer, g, expert) ? 1 : 0;
    }
    return pins;
}

static bool pack_by_rules(eplb_layer *layer, const int32_t *order)
{
    gpu_heap unused;
    start_empty(layer, &unused);
    if (!put_pinned(layer)) {
        return false;
    }
    for (int32_t i = 0; i < layer->shape->experts; i++) {
        int32_t e = order[i];
        for (int32_t c = pins_of(layer, e); c < layer->count[e]; c++) {
            if (!put_by_rules(layer, e)) {
                return false;
            }
        }
    }
    return true;
}

static int32_t roomiest_without(const eplb_layer *layer, int32_t expert)
{
    int32_t best = -1;
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        if (layer->room[g] > 0 && !eplb_layer_holds(layer, g, expert) &&
            (best < 0 || layer->room[g] > layer->room[best])) {
            best = g;
        }
    }
    return best;
}

/*
 * Experts with most replicas to put first, each onto the GPUs with most room left: finds a packing
 * whenever there is one (the construction behind Gale's and Ryser's theorem), whatever the loads.
 * Counts of eplb_layer_counts always have one, unless there are pins: these come first, and what
 * then finds no room is put by an exchange; false when that does not help.
 */
static bool pack_by_room(eplb_layer *layer)
{
    const eplb_shape *shape = layer->shape;
    gpu_heap unused;
    start_empty(layer, &unused);
    if (shape->rules != NULL && !put_pinned(layer)) {
        return false;
    }
    for (int32_t e = 0; e < shape->experts; e++) {
        layer->order[e] = e;
        layer->key[e] = (double)(layer->count[e] - pins_of(layer, e));
    }
    eplb_sort_descending(layer->order, shape->experts, layer->key, layer->position);
    for (int32_t i = 0; i < shape->experts; i++) {
        int32_t e = layer->order[i];
        for (int32_t c = pins_of(layer, e); c < layer->count[e]; c++) {
            int32_t gpu = roomiest_without(layer, e);
            if (gpu >= 0) {
                put(layer, gpu, e);
            } else if (shape->rules == NULL || !put_by_rules(layer, e)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether an expert must have more replicas than it may: it has more pins. */
static bool exceeds_most(const eplb_layer *layer)
{
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        if (layer->count[e] > layer->shape->rules->max_replicas) {
            return true;
        }
    }
    return false;
}

bool eplb_layer_pack(eplb_layer *layer)
{
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        layer->order[e] = e;
    }
    eplb_sort_descending(layer->order, layer->shape->experts, layer->share, layer->position);
    const eplb_rules *rules = layer->shape->rules;
    if (rules != NULL && exceeds_most(layer)) {
        return false;
    }
    bool packed =
        rules != NULL ? pack_by_rules(layer, layer->order) : pack_by_load(layer, layer->order);
    if (!packed && !pack_by_room(layer)) {
        return false;
    }
    if (rules != NULL) {
        eplb_rules_spread(layer);
    }
    eplb_layer_index(layer);
    return true;
}
