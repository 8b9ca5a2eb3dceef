/* SPDX-License-Identifier: MIT */
#include "planner/layer.h"

#include "base/memory.h"
#include "model/placement.h"
#include "planner/partner_bound.h"

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static void number_live_slots(eplb_shape *shape, const eplb_cluster *cluster)
{
    int32_t live = 0;
    shape->first_slot[0] = 0;
    shape->uniform = true;
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        if (!eplb_cluster_gpu_alive(cluster, g)) {
            continue;
        }
        int32_t slots = eplb_cluster_gpu_slots(cluster, g);
        shape->cluster_gpu[live] = g;
        shape->first_slot[live + 1] = shape->first_slot[live] + slots;
        for (int32_t s = shape->first_slot[live]; s < shape->first_slot[live + 1]; s++) {
            shape->slot_gpu[s] = live;
        }
        shape->uniform = shape->uniform && slots == shape->first_slot[1];
        live++;
    }
}

/* Room for k experts grows, from k - 1, by the GPUs with k slots or more. */
static void fill_distinct_room(eplb_shape *shape)
{
    int64_t *room = shape->distinct_room;
    memset(room, 0, ((size_t)shape->experts + 1) * sizeof(*room));
    for (int32_t g = 0; g < shape->gpus; g++) {
        room[shape->first_slot[g + 1] - shape->first_slot[g]]++; /* at most `experts` slots */
    }
    int64_t with_k_or_more = shape->gpus - room[0];
    room[0] = 0;
    for (int32_t k = 1; k <= shape->experts; k++) {
        int64_t with_k = room[k];
        room[k] = room[k - 1] + with_k_or_more;
        with_k_or_more -= with_k;
    }
}

eplb_status eplb_shape_init(eplb_shape *shape, const eplb_hooks *hooks, const eplb_cluster *cluster,
                            int32_t experts, eplb_error *error)
{
    memset(shape, 0, sizeof(*shape));
    eplb_status status = eplb_cluster_check_fits(cluster, experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    shape->experts = experts;
    shape->gpus = eplb_cluster_live_gpus(cluster);
    shape->slots = eplb_cluster_live_slots(cluster);
    size_t gpus = (size_t)shape->gpus;
    shape->first_slot = eplb_alloc(hooks, gpus + 1, sizeof(int32_t));
    shape->slot_gpu = eplb_alloc(hooks, (size_t)shape->slots, sizeof(int32_t));
    shape->cluster_gpu = eplb_alloc(hooks, gpus, sizeof(int32_t));
    if (shape->first_slot == NULL || shape->slot_gpu == NULL || shape->cluster_gpu == NULL) {
        eplb_shape_free(shape, hooks);
        return eplb_out_of_memory(error);
    }
    number_live_slots(shape, cluster);
    if (!shape->uniform) {
        shape->distinct_room = eplb_alloc(hooks, (size_t)experts + 1, sizeof(int64_t));
        if (shape->distinct_room == NULL) {
            eplb_shape_free(shape, hooks);
            return eplb_out_of_memory(error);
        }
        fill_distinct_room(shape);
    }
    return EPLB_OK;
}

void eplb_shape_free(eplb_shape *shape, const eplb_hooks *hooks)
{
    eplb_free(hooks, shape->first_slot);
    eplb_free(hooks, shape->slot_gpu);
    eplb_free(hooks, shape->cluster_gpu);
    eplb_free(hooks, shape->distinct_room);
    memset(shape, 0, sizeof(*shape));
}

/* Makes all arrays or frees the layer. */
static eplb_status allocate(eplb_layer *layer, const eplb_hooks *hooks, const eplb_array *arrays,
                            size_t count, eplb_error *error)
{
    eplb_status status = eplb_alloc_arrays(hooks, arrays, count, error);
    if (status != EPLB_OK) {
        eplb_layer_free(layer, hooks);
    }
    return status;
}

#define ARRAY(member, length) EPLB_ARRAY(layer->member, length)
#define ALLOCATE(arrays) allocate(layer, hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error)

eplb_status eplb_layer_init_counts(eplb_layer *layer, const eplb_hooks *hooks,
                                   const eplb_shape *shape, eplb_error *error)
{
    memset(layer, 0, sizeof(*layer));
    layer->shape = shape;
    size_t experts = (size_t)shape->experts;
    size_t most = (size_t)larger(larger(shape->experts, shape->slots), shape->gpus);
    const eplb_array arrays[] = {
        ARRAY(count, experts),
        ARRAY(share, experts),
        ARRAY(heap, most),
        ARRAY(aside, most + 1),
    };
    eplb_status status = eplb_partner_bound_init(&layer->partners, hooks, shape, error);
    return status != EPLB_OK ? status : ALLOCATE(arrays);
}

eplb_status eplb_layer_init(eplb_layer *layer, const eplb_hooks *hooks, const eplb_shape *shape,
                            eplb_error *error)
{
    eplb_status status = eplb_layer_init_counts(layer, hooks, shape, error);
    if (status != EPLB_OK) {
        return status;
    }
    layer->words = (shape->experts + 63) / 64;
    size_t experts = (size_t)shape->experts;
    size_t slots = (size_t)shape->slots;
    size_t gpus = (size_t)shape->gpus;
    size_t most = (size_t)larger(larger(shape->experts, shape->slots), shape->gpus);
    const eplb_array arrays[] = {
        ARRAY(slot_expert, slots),
        ARRAY(gpu_load, gpus),
        ARRAY(holds, gpus * (size_t)layer->words), /* at most 2^26 */
        ARRAY(pinned, gpus * (size_t)layer->words),
        ARRAY(slot_replica, slots),
        ARRAY(replica_slot, slots),
        ARRAY(first, experts),
        ARRAY(next, slots),
        ARRAY(order, most),
        ARRAY(position, most),
        ARRAY(key, most),
        ARRAY(room, gpus),
        ARRAY(gpu_change, gpus),
        ARRAY(best, slots),
        ARRAY(start, slots),
    };
    return ALLOCATE(arrays);
}

void eplb_layer_free(eplb_layer *layer, const eplb_hooks *hooks)
{
    void *arrays[] = {layer->slot_expert,  layer->count,        layer->share, layer->gpu_load,
                      layer->holds,        layer->slot_replica, layer->first, layer->next,
                      layer->replica_slot, layer->order,        layer->heap,  layer->aside,
                      layer->position,     layer->key,          layer->room,  layer->gpu_change,
                      layer->best,         layer->start,        layer->pinned};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    eplb_partner_bound_free(&layer->partners, hooks);
    memset(layer, 0, sizeof(*layer));
}

void eplb_layer_index(eplb_layer *layer)
{
    const eplb_shape *shape = layer->shape;
    for (int32_t e = 0; e < shape->experts; e++) {
        layer->count[e] = 0;
        layer->first[e] = -1;
    }
    for (int32_t s = shape->slots - 1; s >= 0; s--) {
        int32_t e = layer->slot_expert[s];
        layer->slot_replica[s] = s;
        layer->replica_slot[s] = s;
        layer->next[s] = layer->first[e];
        layer->first[e] = s;
        layer->count[e]++;
    }
    for (int32_t e = 0; e < shape->experts; e++) {
        layer->share[e] = layer->load[e] / (double)layer->count[e];
    }
    memset(layer->holds, 0, (size_t)shape->gpus * (size_t)layer->words * sizeof(*layer->holds));
    for (int32_t g = 0; g < shape->gpus; g++) {
        uint64_t *bits = layer->holds + (size_t)g * (size_t)layer->words;
        double sum = 0.0;
        for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
            int32_t e = layer->slot_expert[s];
            bits[e >> 6] |= (uint64_t)1 << (e & 63);
            sum += layer->share[e];
        }
        layer->gpu_load[g] = sum;
    }
}

double eplb_layer_worst(const eplb_layer *layer)
{
    double worst = 0.0;
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        worst = layer->gpu_load[g] > worst ? layer->gpu_load[g] : worst;
    }
    return worst;
}
