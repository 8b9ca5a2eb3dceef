/* SPDX-License-Identifier: MIT */
#include "planner/traffic.h"

#include "base/memory.h"

#define ARRAY(member, length) EPLB_ARRAY(traffic->member, length)

/* The rules that the plan has, if any, and spread replicas. */
static void make_spread(eplb_traffic *traffic)
{
    const eplb_shape *shape = traffic->layer->shape;
    int32_t *node = traffic->spread_rules.node;
    traffic->spread_rules = (eplb_rules){.min_replicas = 1, .max_replicas = shape->gpus};
    if (shape->rules != NULL) {
        traffic->spread_rules = *shape->rules;
    }
    traffic->spread_rules.node = node;
    for (int32_t g = 0; g < shape->gpus; g++) {
        node[g] = eplb_traffic_node(traffic, g);
    }
    traffic->spread = *shape;
    traffic->spread.rules = &traffic->spread_rules;
}

eplb_status eplb_traffic_init(eplb_traffic *traffic, const eplb_hooks *hooks, eplb_layer *layer,
                              const eplb_nodes *nodes, int32_t scenarios, eplb_error *error)
{
    *traffic = (eplb_traffic){.layer = layer, .nodes = nodes};
    size_t experts = (size_t)layer->shape->experts;
    size_t slots = (size_t)layer->shape->slots;
    size_t gpus = (size_t)layer->shape->gpus;
    size_t count = (size_t)scenarios; /* at most 2^12, the others at most 2^20: no overflow */
    const eplb_array arrays[] = {
        ARRAY(part, experts),  ARRAY(load, experts * count),   ARRAY(gpu_load, gpus * count),
        ARRAY(reached, count), ARRAY(largest, count),          ARRAY(balanced, slots),
        ARRAY(aside, slots),   ARRAY(spread_rules.node, gpus),
    };
    eplb_status status =
        eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status != EPLB_OK) {
        eplb_traffic_free(traffic, hooks);
        return status;
    }
    make_spread(traffic);
    return EPLB_OK;
}

void eplb_traffic_free(eplb_traffic *traffic, const eplb_hooks *hooks)
{
    eplb_free(hooks, traffic->part);
    eplb_free(hooks, traffic->load);
    eplb_free(hooks, traffic->gpu_load);
    eplb_free(hooks, traffic->reached);
    eplb_free(hooks, traffic->largest);
    eplb_free(hooks, traffic->balanced);
    eplb_free(hooks, traffic->aside);
    eplb_free(hooks, traffic->spread_rules.node);
    *traffic = (eplb_traffic){0};
}

static void take_alone(eplb_traffic *traffic)
{
    const double *load = traffic->layer->load;
    int32_t experts = traffic->layer->shape->experts;
    double total = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        total += load[e];
    }
    traffic->scenarios = 1;
    for (int32_t e = 0; e < experts; e++) {
        traffic->load[e] = load[e];
        traffic->part[e] = load[e] / total;
    }
}

void eplb_traffic_take(eplb_traffic *traffic, eplb_joint *joint)
{
    traffic->joint = joint;
    if (joint == NULL) {
        take_alone(traffic);
        return;
    }
    size_t experts = (size_t)joint->shape->experts;
    size_t scenarios = (size_t)joint->scenarios;
    traffic->scenarios = joint->scenarios;
    for (size_t e = 0; e < experts; e++) {
        traffic->part[e] = 0.0;
        for (size_t k = 0; k < scenarios; k++) {
            double load = joint->load[k * experts + e]; /* the sum over experts is the GPUs */
            traffic->load[e * scenarios + k] = load;
            traffic->part[e] += joint->weight[k] * load / (double)joint->shape->gpus;
        }
    }
}

/* GPUs on nodes that hold the expert: each node counts at its first replica. */
static int32_t reach_of(const eplb_traffic *traffic, int32_t expert)
{
    const eplb_layer *layer = traffic->layer;
    const int32_t *slot_gpu = layer->shape->slot_gpu;
    int32_t reach = 0;
    for (int32_t r = layer->first[expert]; r >= 0; r = layer->next[r]) {
        int32_t node = eplb_traffic_node(traffic, slot_gpu[layer->replica_slot[r]]);
        int32_t other = layer->first[expert];
        while (other != r &&
               eplb_traffic_node(traffic, slot_gpu[layer->replica_slot[other]]) != node) {
            other = layer->next[other];
        }
        reach += other == r ? traffic->nodes->gpus[node] : 0;
    }
    return reach;
}

double eplb_traffic_share(const eplb_traffic *traffic)
{
    double share = 0.0;
    for (int32_t e = 0; e < traffic->layer->shape->experts; e++) {
        int32_t beyond = traffic->nodes->live_gpus - reach_of(traffic, e);
        share += traffic->part[e] * ((double)beyond / (double)traffic->nodes->live_gpus);
    }
    return share;
}

int32_t eplb_traffic_gain(const eplb_traffic *traffic, int32_t expert, int32_t from, int32_t to)
{
    const eplb_layer *layer = traffic->layer;
    int32_t on_from = 0;
    int32_t on_to = 0;
    for (int32_t r = layer->first[expert]; r >= 0; r = layer->next[r]) {
        int32_t node = eplb_traffic_node(traffic, layer->shape->slot_gpu[layer->replica_slot[r]]);
        on_from += node == from ? 1 : 0;
        on_to += node == to ? 1 : 0;
    }
    return (on_to == 0 ? traffic->nodes->gpus[to] : 0) -
           (on_from == 1 ? traffic->nodes->gpus[from] : 0);
}

void eplb_traffic_sum_gpu(eplb_traffic *traffic, int32_t gpu)
{
    const eplb_layer *layer = traffic->layer;
    size_t scenarios = (size_t)traffic->scenarios;
    double *sum = traffic->gpu_load + (size_t)gpu * scenarios;
    for (size_t k = 0; k < scenarios; k++) {
        sum[k] = 0.0;
    }
    for (int32_t s = layer->shape->first_slot[gpu]; s < layer->shape->first_slot[gpu + 1]; s++) {
        int32_t e = layer->slot_expert[s];
        for (size_t k = 0; k < scenarios; k++) {
            sum[k] += traffic->load[(size_t)e * scenarios + k] / (double)layer->count[e];
        }
    }
}

void eplb_traffic_measure(eplb_traffic *traffic, double *largest)
{
    for (int32_t k = 0; k < traffic->scenarios; k++) {
        largest[k] = 0.0;
    }
    for (int32_t g = 0; g < traffic->layer->shape->gpus; g++) {
        eplb_traffic_sum_gpu(traffic, g);
        const double *load = traffic->gpu_load + (size_t)g * (size_t)traffic->scenarios;
        for (int32_t k = 0; k < traffic->scenarios; k++) {
            largest[k] = load[k] > largest[k] ? load[k] : largest[k];
        }
    }
}
