/* SPDX-License-Identifier: MIT */
#include "model/share_flow.h"

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"

/* GPUs this little above the threshold, relatively, are not above it. */
#define ROUNDING 1e-12
/* An expert with this part of the mean GPU's load cannot move the largest, and is kept out of
 * arithmetic that it might underflow in. */
#define NOTHING 1e-290

static void index_replicas(eplb_share_flow *flow)
{
    const eplb_cluster *cluster = flow->cluster;
    int32_t *next = flow->expert_arc;
    for (int32_t g = 0; g < flow->gpus; g++) {
        for (int32_t s = cluster->first_slot[g]; s < cluster->first_slot[g + 1]; s++) {
            flow->slot_gpu[s] = g;
            if (cluster->gpu[g].alive && flow->row[s] >= 0) {
                flow->first[flow->row[s] + 1]++;
            }
        }
    }
    for (int32_t e = 0; e < flow->experts; e++) {
        flow->first[e + 1] += flow->first[e];
        next[e] = flow->first[e];
    }
    int32_t slots = cluster->first_slot[flow->gpus];
    for (int32_t s = 0; s < slots; s++) {
        if (cluster->gpu[flow->slot_gpu[s]].alive && flow->row[s] >= 0) {
            flow->replica[next[flow->row[s]]++] = s;
        }
    }
}

void eplb_loads_by_mean(const double *loads, int32_t experts, int32_t gpus, double *scaled)
{
    double total = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        total += loads[e];
    }
    for (int32_t e = 0; e < experts; e++) {
        scaled[e] = loads[e] > 0.0 ? loads[e] / total * (double)gpus : 0.0;
    }
}

static eplb_status split_evenly(eplb_share_flow *flow, const double *loads, int32_t layer_id,
                                eplb_error *error)
{
    eplb_loads_by_mean(loads, flow->experts, eplb_cluster_live_gpus(flow->cluster), flow->load);
    for (int32_t e = 0; e < flow->experts; e++) {
        int32_t count = flow->first[e + 1] - flow->first[e];
        if (loads[e] > 0.0 && count == 0) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "layer %d: expert %d has %g tokens and no replica on a live GPU",
                                  layer_id, e, loads[e]);
        }
        flow->load[e] = flow->load[e] > NOTHING ? flow->load[e] : 0.0;
        for (int32_t i = flow->first[e]; i < flow->first[e + 1]; i++) {
            int32_t slot = flow->replica[i];
            flow->tokens[slot] = flow->load[e] / (double)count;
            flow->gpu_tokens[flow->slot_gpu[slot]] += flow->tokens[slot];
        }
    }
    return EPLB_OK;
}

eplb_status eplb_share_flow_init(eplb_share_flow *flow, const eplb_placement *placement,
                                 int32_t layer, const int32_t *row, const double *loads,
                                 eplb_error *error)
{
    *flow = (eplb_share_flow){.cluster = placement->cluster,
                              .row = row,
                              .gpus = placement->cluster->gpus,
                              .experts = placement->experts,
                              .threshold = 1.0};
    size_t slots = (size_t)placement->slots;
    size_t gpus = (size_t)flow->gpus;
    size_t experts = (size_t)flow->experts;
    const eplb_array arrays[] = {
        EPLB_ARRAY(flow->load, experts),      EPLB_ARRAY(flow->slot_gpu, slots),
        EPLB_ARRAY(flow->first, experts + 1), EPLB_ARRAY(flow->replica, slots),
        EPLB_ARRAY(flow->tokens, slots),      EPLB_ARRAY(flow->gpu_tokens, gpus),
        EPLB_ARRAY(flow->gpu_level, gpus),    EPLB_ARRAY(flow->expert_level, experts),
        EPLB_ARRAY(flow->gpu_arc, gpus),      EPLB_ARRAY(flow->expert_arc, experts),
        EPLB_ARRAY(flow->queue, gpus),        EPLB_ARRAY(flow->from, gpus),
        EPLB_ARRAY(flow->to, gpus),
    };
    eplb_status status =
        eplb_alloc_arrays(&placement->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status != EPLB_OK) {
        return status;
    }
    index_replicas(flow);
    return split_evenly(flow, loads, placement->layer_ids.ids[layer], error);
}

void eplb_share_flow_free(eplb_share_flow *flow, const eplb_placement *placement)
{
    void *arrays[] = {flow->load,    flow->slot_gpu,   flow->first,     flow->replica,
                      flow->tokens,  flow->gpu_tokens, flow->gpu_level, flow->expert_level,
                      flow->gpu_arc, flow->expert_arc, flow->queue,     flow->from,
                      flow->to};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(&placement->hooks, arrays[i]);
    }
}

static bool is_above(const eplb_share_flow *flow, int32_t gpu)
{
    return flow->gpu_tokens[gpu] > flow->threshold * (1.0 + ROUNDING);
}

static bool is_below(const eplb_share_flow *flow, int32_t gpu)
{
    return flow->gpu_tokens[gpu] < flow->threshold;
}

/* Puts the GPUs that hold an expert behind the queue, unless they were in it; its new length. */
static int32_t reach_holders(eplb_share_flow *flow, int32_t expert, int32_t length)
{
    for (int32_t i = flow->first[expert]; i < flow->first[expert + 1]; i++) {
        int32_t gpu = flow->slot_gpu[flow->replica[i]];
        if (flow->gpu_level[gpu] < 0) {
            flow->gpu_level[gpu] = flow->expert_level[expert] + 1;
            flow->queue[length++] = gpu;
        }
    }
    return length;
}

static int32_t start_levels(eplb_share_flow *flow)
{
    int32_t length = 0;
    for (int32_t g = 0; g < flow->gpus; g++) {
        flow->gpu_arc[g] = flow->cluster->first_slot[g];
        flow->gpu_level[g] = is_above(flow, g) ? 0 : -1;
        if (flow->gpu_level[g] == 0) {
            flow->queue[length++] = g;
        }
    }
    for (int32_t e = 0; e < flow->experts; e++) {
        flow->expert_arc[e] = flow->first[e];
        flow->expert_level[e] = -1;
    }
    return length;
}

/* Finds how far tokens of the GPUs above the threshold can get: breadth first. True when they reach
 * one below it. */
static bool find_levels(eplb_share_flow *flow)
{
    bool found = false;
    int32_t length = start_levels(flow);
    for (int32_t i = 0; i < length; i++) {
        int32_t gpu = flow->queue[i];
        found = found || is_below(flow, gpu);
        int32_t end = flow->cluster->first_slot[gpu + 1];
        for (int32_t s = flow->cluster->first_slot[gpu]; s < end; s++) {
            if (flow->tokens[s] > 0.0 && flow->expert_level[flow->row[s]] < 0) {
                flow->expert_level[flow->row[s]] = flow->gpu_level[gpu];
                length = reach_holders(flow, flow->row[s], length);
            }
        }
    }
    return found;
}

/* The next step of a path that has come to a GPU after `depth` steps: from one of its slots to a
 * replica one level on. */
static bool find_step(eplb_share_flow *flow, int32_t gpu, int32_t depth)
{
    int32_t level = flow->gpu_level[gpu];
    int32_t *slot = &flow->gpu_arc[gpu];
    for (; *slot < flow->cluster->first_slot[gpu + 1]; (*slot)++) {
        if (!(flow->tokens[*slot] > 0.0) || flow->expert_level[flow->row[*slot]] != level) {
            continue;
        }
        int32_t expert = flow->row[*slot];
        int32_t *arc = &flow->expert_arc[expert];
        for (; *arc < flow->first[expert + 1]; (*arc)++) {
            if (flow->gpu_level[flow->slot_gpu[flow->replica[*arc]]] == level + 1) {
                flow->from[depth] = *slot;
                flow->to[depth] = flow->replica[*arc];
                return true;
            }
        }
    }
    return false;
}

/* A path from a GPU to one below the threshold, depth first; its steps, 0: there is none. Dead ends
 * are not entered again before the levels are found anew. */
static int32_t find_path(eplb_share_flow *flow, int32_t source)
{
    int32_t depth = 0;
    int32_t gpu = source;
    while (!is_below(flow, gpu)) {
        if (find_step(flow, gpu, depth)) {
            gpu = flow->slot_gpu[flow->to[depth++]];
            continue;
        }
        flow->gpu_level[gpu] = -1;
        if (depth == 0) {
            return 0;
        }
        gpu = flow->slot_gpu[flow->from[--depth]];
    }
    return depth;
}

/* Moves as many tokens along the path as its ends and slots allow. What is used up is then exactly
 * used up, whatever rounding does. */
static void push(eplb_share_flow *flow, int32_t source, int32_t depth)
{
    int32_t sink = flow->slot_gpu[flow->to[depth - 1]];
    double surplus = flow->gpu_tokens[source] - flow->threshold;
    double room = flow->threshold - flow->gpu_tokens[sink];
    double amount = surplus < room ? surplus : room;
    for (int32_t i = 0; i < depth; i++) {
        double tokens = flow->tokens[flow->from[i]];
        amount = tokens < amount ? tokens : amount;
    }
    for (int32_t i = 0; i < depth; i++) {
        flow->tokens[flow->from[i]] -= amount;
        flow->tokens[flow->to[i]] += amount;
    }
    flow->gpu_tokens[source] =
        amount < surplus ? flow->gpu_tokens[source] - amount : flow->threshold;
    flow->gpu_tokens[sink] = amount < room ? flow->gpu_tokens[sink] + amount : flow->threshold;
}

/* Moves what the levels at hand allow. */
static void push_all(eplb_share_flow *flow)
{
    for (int32_t g = 0; g < flow->gpus; g++) {
        int32_t depth = 1;
        while (is_above(flow, g) && depth > 0) {
            depth = find_path(flow, g);
            if (depth > 0) {
                push(flow, g, depth);
            }
        }
    }
}

static bool is_confined(const eplb_share_flow *flow, int32_t expert)
{
    for (int32_t i = flow->first[expert]; i < flow->first[expert + 1]; i++) {
        if (flow->gpu_level[flow->slot_gpu[flow->replica[i]]] < 0) {
            return false;
        }
    }
    return true;
}

/* The mean load of the GPUs reached by the experts that no other GPU holds; `reached` gets how many
 * GPUs those are. */
static double load_of_reached(const eplb_share_flow *flow, int32_t *reached)
{
    *reached = 0;
    for (int32_t g = 0; g < flow->gpus; g++) {
        *reached += flow->gpu_level[g] >= 0 ? 1 : 0;
    }
    double sum = 0.0;
    for (int32_t e = 0; e < flow->experts; e++) {
        sum += is_confined(flow, e) ? flow->load[e] : 0.0;
    }
    return *reached > 0 ? sum / (double)*reached : 0.0;
}

/* Each threshold is reached by fewer GPUs than the one before, or rounding is all that is left. */
void eplb_share_flow_balance(eplb_share_flow *flow)
{
    int32_t last = flow->gpus + 1;
    for (;;) {
        while (find_levels(flow)) {
            push_all(flow);
        }
        int32_t reached;
        double load = load_of_reached(flow, &reached);
        if (reached >= last || load <= flow->threshold) {
            return;
        }
        last = reached;
        flow->threshold = load;
    }
}

void eplb_share_flow_weights(const eplb_share_flow *flow, double *weights)
{
    memset(weights, 0, (size_t)eplb_cluster_slots(flow->cluster) * sizeof(*weights));
    for (int32_t e = 0; e < flow->experts; e++) {
        double sum = 0.0;
        for (int32_t i = flow->first[e]; i < flow->first[e + 1]; i++) {
            sum += flow->tokens[flow->replica[i]];
        }
        for (int32_t i = flow->first[e]; i < flow->first[e + 1]; i++) {
            int32_t slot = flow->replica[i];
            weights[slot] = flow->load[e] > 0.0
                                ? flow->tokens[slot] / sum
                                : 1.0 / (double)(flow->first[e + 1] - flow->first[e]);
        }
    }
}
