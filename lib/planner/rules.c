/* SPDX-License-Identifier: MIT */
#include "planner/rules.h"

#include "base/memory.h"
#include "planner/layer.h"

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static eplb_status check_limits(const eplb_rules *rules, const eplb_shape *shape, eplb_error *error)
{
    int64_t fewest = (int64_t)rules->min_replicas * shape->experts;
    int64_t most = (int64_t)rules->max_replicas * shape->experts;
    if (rules->min_replicas > rules->max_replicas) {
        return eplb_error_set(
            error, EPLB_ERROR_INFEASIBLE,
            "plan: at least %d replicas of each expert, but at most %d (there are "
            "%d live GPUs)",
            rules->min_replicas, rules->max_replicas, shape->gpus);
    }
    if (fewest > shape->slots) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "plan: %d replicas of each of %d experts need %lld slots, there are "
                              "%d",
                              rules->min_replicas, shape->experts, (long long)fewest, shape->slots);
    }
    if (most < shape->slots) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "plan: at most %d replicas of each of %d experts leave %lld of %d "
                              "slots empty",
                              rules->max_replicas, shape->experts, (long long)(shape->slots - most),
                              shape->slots);
    }
    return EPLB_OK;
}

eplb_status eplb_rules_check_pins(const eplb_plan_options *options, const eplb_cluster *cluster,
                                  int32_t layers, int32_t experts, eplb_error *error)
{
    for (int32_t i = 0; i < options->pin_count; i++) {
        const eplb_pin *pin = &options->pins[i];
        if (pin->expert < 0 || pin->expert >= experts || pin->gpu < -1 ||
            pin->gpu >= eplb_cluster_gpus(cluster) || pin->layer < -1 || pin->layer >= layers) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "plan: pin %d: no layer %d, expert %d or GPU %d", i, pin->layer,
                                  pin->expert, pin->gpu);
        }
        if (pin->gpu >= 0 && !eplb_cluster_gpu_alive(cluster, pin->gpu)) {
            return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                  "plan: expert %d is pinned to GPU %d, which is dead", pin->expert,
                                  pin->gpu);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_rules_init(eplb_rules *rules, const eplb_hooks *hooks, const eplb_shape *shape,
                            const eplb_cluster *cluster, int32_t layers,
                            const eplb_plan_options *options, eplb_error *error)
{
    int32_t most = options->max_replicas < 0 ? shape->gpus : options->max_replicas;
    *rules = (eplb_rules){.min_replicas = options->min_replicas,
                          .max_replicas = smaller(most, shape->gpus),
                          .pins = options->pins,
                          .pin_count = options->pin_count};
    eplb_status status = check_limits(rules, shape, error);
    if (status == EPLB_OK) {
        status = eplb_rules_check_pins(options, cluster, layers, shape->experts, error);
    }
    if (status != EPLB_OK || options->spread_nodes == 0) {
        return status;
    }
    rules->node = eplb_alloc(hooks, (size_t)shape->gpus, sizeof(*rules->node));
    if (rules->node == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t g = 0; g < shape->gpus; g++) {
        rules->node[g] = eplb_cluster_gpu_node(cluster, shape->cluster_gpu[g]);
    }
    return EPLB_OK;
}

void eplb_rules_free(eplb_rules *rules, const eplb_hooks *hooks)
{
    eplb_free(hooks, rules->node);
    rules->node = NULL;
}

bool eplb_rules_bind(const eplb_rules *rules, const eplb_shape *shape)
{
    return rules->min_replicas > 1 || rules->max_replicas < shape->gpus || rules->node != NULL ||
           rules->pin_count > 0;
}

static void pin(eplb_layer *layer, int32_t gpu, int32_t expert)
{
    uint64_t *bits = layer->pinned + (size_t)gpu * (size_t)layer->words;
    bits[expert >> 6] |= (uint64_t)1 << (expert & 63);
}

void eplb_rules_pin(const eplb_rules *rules, eplb_layer *layer, int32_t index)
{
    const eplb_shape *shape = layer->shape;
    memset(layer->pinned, 0, (size_t)shape->gpus * (size_t)layer->words * sizeof(*layer->pinned));
    for (int32_t i = 0; i < rules->pin_count; i++) {
        const eplb_pin *p = &rules->pins[i];
        if (p->layer >= 0 && p->layer != index) {
            continue;
        }
        for (int32_t g = 0; g < shape->gpus; g++) {
            if (p->gpu < 0 || p->gpu == shape->cluster_gpu[g]) {
                pin(layer, g, p->expert);
            }
        }
    }
}

int32_t eplb_rules_fewest(const eplb_layer *layer, int32_t expert)
{
    const eplb_shape *shape = layer->shape;
    int32_t needed = 0;
    for (int32_t g = 0; g < shape->gpus; g++) {
        bool has_all = shape->first_slot[g + 1] - shape->first_slot[g] == shape->experts;
        needed += has_all || eplb_layer_pins(layer, g, expert) ? 1 : 0;
    }
    int32_t fewest = shape->rules->min_replicas;
    return needed > fewest ? needed : fewest;
}

int32_t eplb_rules_on_node(const eplb_layer *layer, int32_t expert, int32_t node)
{
    int32_t count = 0;
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        count += layer->shape->rules->node[g] == node && eplb_layer_holds(layer, g, expert) ? 1 : 0;
    }
    return count;
}

/* A replica may go from one GPU to another unless that makes the nodes' numbers less even. */
static bool spreads(const eplb_layer *layer, int32_t expert, int32_t from, int32_t to)
{
    const int32_t *node = layer->shape->rules->node;
    return node == NULL || node[from] == node[to] ||
           eplb_rules_on_node(layer, expert, node[to]) <
               eplb_rules_on_node(layer, expert, node[from]);
}

bool eplb_rules_allow_swap(const eplb_layer *layer, int32_t g, int32_t e, int32_t h, int32_t f)
{
    return !eplb_layer_pins(layer, g, e) && !eplb_layer_pins(layer, h, f) &&
           spreads(layer, e, g, h) && spreads(layer, f, h, g);
}

/* Fewest and most replicas of an expert on a node with a slot. */
static void range_on_nodes(const eplb_layer *layer, int32_t expert, int32_t *fewest, int32_t *most)
{
    const eplb_shape *shape = layer->shape;
    *fewest = INT32_MAX;
    *most = 0;
    for (int32_t g = 0; g < shape->gpus; g++) {
        if (shape->first_slot[g + 1] == shape->first_slot[g] ||
            (g > 0 && shape->rules->node[g] == shape->rules->node[g - 1])) {
            continue;
        }
        int32_t count = eplb_rules_on_node(layer, expert, shape->rules->node[g]);
        *fewest = smaller(*fewest, count);
        *most = count > *most ? count : *most;
    }
}

/* Whether an expert has a second replica on a node while another node has none. */
static bool crowds_a_node(const eplb_layer *layer, int32_t expert)
{
    int32_t fewest;
    int32_t most;
    range_on_nodes(layer, expert, &fewest, &most);
    return most > 1 && fewest == 0;
}

/* A swap that brings a replica of an expert from one GPU to another. */
static bool find_exchange(const eplb_layer *layer, int32_t expert, int32_t from, int32_t to,
                          int32_t *s, int32_t *t)
{
    const int32_t *first_slot = layer->shape->first_slot;
    for (*t = first_slot[to]; *t < first_slot[to + 1]; ++*t) {
        if (eplb_layer_may_swap(layer, from, expert, to, layer->slot_expert[*t])) {
            *s = first_slot[from];
            while (layer->slot_expert[*s] != expert) {
                ++*s;
            }
            return true;
        }
    }
    return false;
}

/* A swap that brings a replica of an expert from a node that has more to one that has none. False
 * when there is no need or no room. */
static bool find_spread(const eplb_layer *layer, int32_t expert, int32_t *s, int32_t *t)
{
    const int32_t *node = layer->shape->rules->node;
    int32_t gpus = layer->shape->gpus;
    if (node == NULL || !crowds_a_node(layer, expert)) {
        return false;
    }
    for (int32_t to = 0; to < gpus; to++) {
        if (eplb_rules_on_node(layer, expert, node[to]) > 0) {
            continue;
        }
        for (int32_t from = 0; from < gpus; from++) {
            if (eplb_layer_holds(layer, from, expert) &&
                eplb_rules_on_node(layer, expert, node[from]) > 1 &&
                find_exchange(layer, expert, from, to, s, t)) {
                return true;
            }
        }
    }
    return false;
}

/* Each swap makes one expert's numbers on the nodes more even and no other's less: it ends. */
void eplb_rules_spread(eplb_layer *layer)
{
    bool changed;
    do {
        changed = false;
        for (int32_t e = 0; e < layer->shape->experts; e++) {
            int32_t s;
            int32_t t;
            while (find_spread(layer, e, &s, &t)) {
                eplb_layer_exchange(layer, s, t);
                changed = true;
            }
        }
    } while (changed);
}

bool eplb_rules_allow_replace(const eplb_layer *layer, int32_t gpu, int32_t giver, int32_t taker)
{
    const eplb_rules *rules = layer->shape->rules;
    if (layer->count[giver] <= rules->min_replicas || layer->count[taker] >= rules->max_replicas ||
        eplb_layer_pins(layer, gpu, giver)) {
        return false;
    }
    if (rules->node == NULL) {
        return true;
    }
    int32_t fewest;
    int32_t most;
    range_on_nodes(layer, giver, &fewest, &most);
    if (eplb_rules_on_node(layer, giver, rules->node[gpu]) < most) {
        return false;
    }
    range_on_nodes(layer, taker, &fewest, &most);
    return eplb_rules_on_node(layer, taker, rules->node[gpu]) == fewest;
}

bool eplb_rules_hold(const eplb_layer *layer)
{
    const eplb_shape *shape = layer->shape;
    for (int32_t e = 0; e < shape->experts; e++) {
        if (layer->count[e] < shape->rules->min_replicas ||
            layer->count[e] > shape->rules->max_replicas) {
            return false;
        }
        for (int32_t g = 0; g < shape->gpus; g++) {
            if (eplb_layer_pins(layer, g, e) && !eplb_layer_holds(layer, g, e)) {
                return false;
            }
        }
        int32_t s;
        int32_t t;
        if (find_spread(layer, e, &s, &t)) {
            return false;
        }
    }
    return true;
}
