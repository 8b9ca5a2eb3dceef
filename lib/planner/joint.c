/* SPDX-License-Identifier: MIT */
#include "planner/joint.h"

#include "base/memory.h"
#include "planner/objective.h"

#define ARRAY(member, length) EPLB_ARRAY(joint->member, length)

eplb_status eplb_joint_init(eplb_joint *joint, const eplb_hooks *hooks, eplb_layer *layer,
                            int32_t scenarios, eplb_objective objective, eplb_error *error)
{
    const eplb_shape *shape = layer->shape;
    *joint = (eplb_joint){.shape = shape, .layer = layer, .objective = objective};
    joint->near_count = shape->experts - 1 < EPLB_JOINT_NEAR ? shape->experts - 1 : EPLB_JOINT_NEAR;
    size_t experts = (size_t)shape->experts;
    size_t gpus = (size_t)shape->gpus;
    size_t slots = (size_t)shape->slots;
    size_t count = (size_t)scenarios; /* at most 2^12, the others at most 2^20: no overflow */
    size_t groups = (count + EPLB_LANES - 1) / EPLB_LANES;
    const eplb_array arrays[] = {
        ARRAY(load, count * experts),
        ARRAY(weight, count),
        ARRAY(measure, experts),
        ARRAY(share, experts * count),
        ARRAY(first_replica, experts + 1),
        ARRAY(replica_slot, slots),
        ARRAY(slot_replica, slots),
        ARRAY(near, experts * EPLB_JOINT_NEAR),
        ARRAY(lanes, experts * groups),
        ARRAY(scaled, experts * groups),
        ARRAY(height, gpus * groups),
        ARRAY(heat, gpus),
        ARRAY(gpu_load, gpus * count),
        ARRAY(top_load, count * EPLB_JOINT_TOPS),
        ARRAY(top_gpu, count * EPLB_JOINT_TOPS),
        ARRAY(scratch, count > experts ? count : experts),
    };
    eplb_status status =
        eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status != EPLB_OK) {
        eplb_joint_free(joint, hooks);
    }
    return status;
}

void eplb_joint_free(eplb_joint *joint, const eplb_hooks *hooks)
{
    void *arrays[] = {joint->load,     joint->weight,        joint->measure,      joint->share,
                      joint->near,     joint->first_replica, joint->replica_slot, joint->lanes,
                      joint->scaled,   joint->slot_replica,  joint->height,       joint->heat,
                      joint->gpu_load, joint->top_load,      joint->top_gpu,      joint->scratch};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    *joint = (eplb_joint){0};
}

/* Scales the row so that the mean of the live GPUs is 1. */
static void scale_row(const eplb_shape *shape, const double *row, double total, double *scaled)
{
    for (int32_t e = 0; e < shape->experts; e++) {
        scaled[e] = row[e] / total * (double)shape->gpus;
    }
}

void eplb_joint_begin(eplb_joint *joint)
{
    joint->scenarios = 0;
}

void eplb_joint_add(eplb_joint *joint, const double *loads, double weight)
{
    int32_t experts = joint->shape->experts;
    double total = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        total += loads[e];
    }
    if (total > 0.0) {
        scale_row(joint->shape, loads, total,
                  joint->load + (size_t)joint->scenarios * (size_t)experts);
        joint->weight[joint->scenarios++] = weight;
    }
}

bool eplb_joint_end(eplb_joint *joint)
{
    double weights = 0.0;
    for (int32_t k = 0; k < joint->scenarios; k++) {
        weights += joint->weight[k];
    }
    for (int32_t k = 0; k < joint->scenarios; k++) {
        joint->weight[k] /= weights;
    }
    joint->groups = (joint->scenarios + EPLB_LANES - 1) / EPLB_LANES;
    if (joint->scenarios == 0) { /* not those of the layer before */
        memset(joint->load, 0, (size_t)joint->shape->experts * sizeof(*joint->load));
    }
    return joint->scenarios > 0;
}

bool eplb_joint_take(eplb_joint *joint, const eplb_load *load, int32_t layer)
{
    double most = eplb_largest_weight(load, layer);
    eplb_joint_begin(joint);
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        eplb_joint_add(joint, eplb_load_row(load, k, layer),
                       eplb_load_scenario_weight(load, k) / most);
    }
    return eplb_joint_end(joint);
}

double eplb_joint_value(const eplb_joint *joint, const double *largest)
{
    double value = 0.0;
    for (int32_t k = 0; k < joint->scenarios; k++) {
        if (joint->objective == EPLB_OBJECTIVE_MAX_OF_MAX) {
            value = largest[k] > value ? largest[k] : value;
        } else {
            value += joint->weight[k] * largest[k];
        }
    }
    return value;
}

double eplb_joint_bound(eplb_joint *joint, const eplb_effort *proof)
{
    eplb_layer *layer = joint->layer;
    for (int32_t k = 0; k < joint->scenarios; k++) {
        layer->load = joint->load + (size_t)k * (size_t)joint->shape->experts;
        eplb_layer_counts(layer);
        double bound = eplb_layer_bound(layer);
        joint->scratch[k] =
            proof == NULL
                ? bound
                : eplb_layer_raise_bound(layer, bound, joint->top_load[k * EPLB_JOINT_TOPS], proof);
    }
    return eplb_joint_value(joint, joint->scratch);
}

static void measure_experts(eplb_joint *joint, double usual_part)
{
    int32_t experts = joint->shape->experts;
    for (int32_t e = 0; e < experts; e++) {
        double largest = 0.0;
        double mean = 0.0;
        for (int32_t k = 0; k < joint->scenarios; k++) {
            double load = joint->load[(size_t)k * (size_t)experts + (size_t)e];
            largest = load > largest ? load : largest;
            mean += joint->weight[k] * load;
        }
        joint->measure[e] = largest - usual_part * mean;
    }
}

bool eplb_joint_start(eplb_joint *joint, double usual_part)
{
    measure_experts(joint, usual_part);
    joint->layer->load = joint->measure;
    eplb_layer_counts(joint->layer);
    if (!eplb_layer_pack(joint->layer)) {
        return false;
    }
    eplb_joint_index(joint);
    return true;
}

static void number_replicas(eplb_joint *joint)
{
    const eplb_layer *layer = joint->layer;
    int32_t next = 0;
    for (int32_t e = 0; e < joint->shape->experts; e++) {
        joint->first_replica[e] = next;
        for (int32_t r = layer->first[e]; r >= 0; r = layer->next[r]) {
            joint->replica_slot[next] = layer->replica_slot[r];
            joint->slot_replica[layer->replica_slot[r]] = next++;
        }
    }
    joint->first_replica[joint->shape->experts] = next;
}

static void share_loads(eplb_joint *joint)
{
    size_t scenarios = (size_t)joint->scenarios;
    size_t experts = (size_t)joint->shape->experts;
    for (size_t e = 0; e < experts; e++) {
        double count = (double)joint->layer->count[e];
        float *lanes = (float *)(joint->lanes + e * (size_t)joint->groups);
        for (size_t k = 0; k < scenarios; k++) {
            double share = joint->load[k * experts + e] / count;
            joint->share[e * scenarios + k] = share;
            lanes[k] = (float)share;
        }
        for (size_t k = scenarios; k < EPLB_LANES * (size_t)joint->groups; k++) {
            lanes[k] = 0.0f;
        }
    }
}

double eplb_joint_measure(eplb_joint *joint)
{
    const eplb_shape *shape = joint->shape;
    size_t scenarios = (size_t)joint->scenarios;
    for (int32_t g = 0; g < shape->gpus; g++) {
        double *sum = joint->gpu_load + (size_t)g * scenarios;
        for (size_t k = 0; k < scenarios; k++) {
            sum[k] = 0.0;
        }
        for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
            const double *share = joint->share + (size_t)joint->layer->slot_expert[s] * scenarios;
            for (size_t k = 0; k < scenarios; k++) {
                sum[k] += share[k];
            }
        }
    }
    for (int32_t k = 0; k < joint->scenarios; k++) {
        eplb_joint_find_top(joint, k);
        joint->scratch[k] = joint->top_load[k * EPLB_JOINT_TOPS];
    }
    return eplb_joint_value(joint, joint->scratch);
}

void eplb_joint_index(eplb_joint *joint)
{
    number_replicas(joint);
    share_loads(joint);
}

void eplb_joint_swap(eplb_joint *joint, int32_t s, int32_t t)
{
    int32_t replica = joint->slot_replica[s];
    joint->slot_replica[s] = joint->slot_replica[t];
    joint->slot_replica[t] = replica;
    joint->replica_slot[joint->slot_replica[s]] = s;
    joint->replica_slot[replica] = t;
    eplb_layer_exchange(joint->layer, s, t);
}
