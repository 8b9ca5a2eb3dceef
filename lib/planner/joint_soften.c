/* SPDX-License-Identifier: MIT */
/*
 * Annealing on a soft maximum: the sum over scenarios k and GPUs g of a_k phi(L_gk), with
 * phi(x) = max(0, 1 + beta (x - 1) / 16)^16, which is about exp(beta (x - 1)), and a_k such that
 * each scenario's sum is its weight (of all scenarios together, when the largest of all maxima is
 * what counts). While beta rises the sum goes over to the maxima. A maximum itself would be a poor
 * guide: most moves do not change it.
 *
 * What is kept of each GPU and scenario is the height, a root of a_k times what is in the brackets
 * above, so that a swap adds a difference of scaled shares to one GPU's heights, subtracts it from
 * another's, and then only powers are left.
 *
 * A move is a swap of one of two random replicas, the one on the hotter GPU, with one of an expert
 * that carries much the same. Nearly all moves are rejected, so the evaluation comes first and
 * checks whether the swap is allowed later: the processor then sees one branch that it can predict.
 */
#include <string.h>

#include "planner/dice.h"
#include "planner/joint.h"

#define FIRST_BETA 40.0
#define LAST_BETA 350.0
#define POWER 16.0
/* First temperature, in mean heats of a GPU. It falls to nothing in a line. */
#define FIRST_TEMPERATURE 0.5
/* beta, weights and temperature are renewed after so many moves. */
#define BLOCK 1024

/* The bits of 1.0f. */
#define ONE_BITS 0x3F800000

typedef struct softening {
    eplb_joint *joint;
    eplb_layer *layer;
    eplb_dice dice;
    float temperature;
} softening;

static eplb_lanes power(eplb_lanes height)
{
    eplb_lanes p = eplb_lanes_positive(height);
    p *= p;
    p *= p;
    p *= p;
    return p * p;
}

static float heat_of(const eplb_joint *joint, int32_t gpu)
{
    const eplb_lanes *height = joint->height + (size_t)gpu * (size_t)joint->groups;
    eplb_lanes sum = eplb_lanes_of(0.0f);
    for (int32_t v = 0; v < joint->groups; v++) {
        sum += power(height[v]);
    }
    return eplb_lanes_sum(sum);
}

/* GPU loads, from what is in the slots, into the heights. */
static void sum_loads(eplb_joint *joint, int32_t v)
{
    const eplb_shape *shape = joint->shape;
    size_t groups = (size_t)joint->groups;
    for (int32_t g = 0; g < shape->gpus; g++) {
        eplb_lanes sum = eplb_lanes_of(0.0f);
        for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
            sum += joint->lanes[(size_t)joint->layer->slot_expert[s] * groups + (size_t)v];
        }
        joint->height[(size_t)g * groups + (size_t)v] = sum;
    }
}

/* The POWER-th root of a positive number: a guess from the exponent and Newton's steps. */
static float root(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = (bits - ONE_BITS) / 16 + ONE_BITS;
    float x;
    memcpy(&x, &bits, sizeof(x));
    for (int step = 0; step < 4; step++) {
        float x2 = x * x;
        float x4 = x2 * x2;
        float x8 = x4 * x4;
        x += (value / (x8 * x4 * x2 * x) - x) / (float)POWER;
    }
    return x;
}

/* Of one group of lanes: the largest height before scaling and the sum of the powers relative to
 * it, which cannot overflow. */
static void sum_powers(const eplb_joint *joint, int32_t v, eplb_lanes slope, eplb_lanes *largest,
                       eplb_lanes *sum)
{
    size_t groups = (size_t)joint->groups;
    const eplb_lanes one = eplb_lanes_of(1.0f);
    *largest = eplb_lanes_of(0.0f);
    *sum = eplb_lanes_of(0.0f);
    for (int32_t g = 0; g < joint->shape->gpus; g++) {
        eplb_lanes load = joint->height[(size_t)g * groups + (size_t)v];
        *largest = eplb_lanes_larger(*largest, one + slope * (load - one));
    }
    for (int32_t g = 0; g < joint->shape->gpus; g++) {
        eplb_lanes load = joint->height[(size_t)g * groups + (size_t)v];
        *sum += power((one + slope * (load - one)) / *largest);
    }
}

/* The largest GPU load of a scenario is at least 1, the mean, but for rounding: its height before
 * scaling is at least about 1. Lanes without a scenario weigh nothing. */
static float lane_root(const eplb_joint *joint, int32_t lane, float largest, float sum)
{
    if (lane >= joint->scenarios) {
        return 0.0f;
    }
    return root((float)joint->weight[lane] / sum) / largest;
}

static void scale_group(eplb_joint *joint, int32_t v, eplb_lanes roots, float slope)
{
    size_t groups = (size_t)joint->groups;
    eplb_lanes rise = roots * eplb_lanes_of(slope);
    eplb_lanes base = roots * eplb_lanes_of(1.0f - slope);
    for (int32_t e = 0; e < joint->shape->experts; e++) {
        size_t i = (size_t)e * groups + (size_t)v;
        joint->scaled[i] = joint->lanes[i] * rise;
    }
    for (int32_t g = 0; g < joint->shape->gpus; g++) {
        size_t i = (size_t)g * groups + (size_t)v;
        joint->height[i] = base + joint->height[i] * rise;
    }
}

/* For the largest of all maxima, every scenario's heights are measured alike: by the largest. */
static float common_root(const eplb_joint *joint, float slope)
{
    float highest = 0.0f;
    eplb_lanes largest;
    eplb_lanes sum;
    for (int32_t v = 0; v < joint->groups; v++) {
        sum_powers(joint, v, eplb_lanes_of(slope), &largest, &sum);
        for (int32_t i = 0; i < EPLB_LANES && v * EPLB_LANES + i < joint->scenarios; i++) {
            highest = largest[i] > highest ? largest[i] : highest;
        }
    }
    float total = 0.0f;
    for (int32_t v = 0; v < joint->groups; v++) {
        sum_powers(joint, v, eplb_lanes_of(slope), &largest, &sum);
        for (int32_t i = 0; i < EPLB_LANES && v * EPLB_LANES + i < joint->scenarios; i++) {
            float part = largest[i] / highest;
            float p2 = part * part;
            float p4 = p2 * p2;
            float p8 = p4 * p4;
            total += sum[i] * p8 * p8;
        }
    }
    return root(1.0f / total) / highest;
}

/* Heights and heats for the beta of a block. */
static void renew(softening *self, double beta)
{
    eplb_joint *joint = self->joint;
    float slope = (float)(beta / POWER);
    for (int32_t v = 0; v < joint->groups; v++) {
        sum_loads(joint, v);
    }
    bool all_alike = joint->objective == EPLB_OBJECTIVE_MAX_OF_MAX;
    float common = all_alike ? common_root(joint, slope) : 0.0f;
    for (int32_t v = 0; v < joint->groups; v++) {
        eplb_lanes largest;
        eplb_lanes sum;
        eplb_lanes roots;
        sum_powers(joint, v, eplb_lanes_of(slope), &largest, &sum);
        for (int32_t i = 0; i < EPLB_LANES; i++) {
            int32_t lane = v * EPLB_LANES + i;
            roots[i] = !all_alike                ? lane_root(joint, lane, largest[i], sum[i])
                       : lane < joint->scenarios ? common
                                                 : 0.0f;
        }
        scale_group(joint, v, roots, slope);
    }
    for (int32_t g = 0; g < joint->shape->gpus; g++) {
        joint->heat[g] = heat_of(joint, g);
    }
}

/* What two GPUs are like after a swap of s, on the first, with t. */
typedef struct outcome {
    float first;
    float second;
} outcome;

static inline outcome weigh(const eplb_joint *joint, size_t groups, int32_t g, int32_t h, int32_t e,
                            int32_t f)
{
    const eplb_lanes *given = joint->scaled + (size_t)e * groups;
    const eplb_lanes *taken = joint->scaled + (size_t)f * groups;
    const eplb_lanes *first = joint->height + (size_t)g * groups;
    const eplb_lanes *second = joint->height + (size_t)h * groups;
    eplb_lanes first_sum = eplb_lanes_of(0.0f);
    eplb_lanes second_sum = eplb_lanes_of(0.0f);
    for (size_t v = 0; v < groups; v++) {
        eplb_lanes moved = given[v] - taken[v];
        first_sum += power(first[v] - moved);
        second_sum += power(second[v] + moved);
    }
    return (outcome){eplb_lanes_sum(first_sum), eplb_lanes_sum(second_sum)};
}

static void accept(eplb_joint *joint, int32_t s, int32_t t, outcome after)
{
    size_t groups = (size_t)joint->groups;
    int32_t g = joint->shape->slot_gpu[s];
    int32_t h = joint->shape->slot_gpu[t];
    const eplb_lanes *given = joint->scaled + (size_t)joint->layer->slot_expert[s] * groups;
    const eplb_lanes *taken = joint->scaled + (size_t)joint->layer->slot_expert[t] * groups;
    for (size_t v = 0; v < groups; v++) {
        eplb_lanes moved = given[v] - taken[v];
        joint->height[(size_t)g * groups + v] -= moved;
        joint->height[(size_t)h * groups + v] += moved;
    }
    joint->heat[g] = after.first;
    joint->heat[h] = after.second;
    eplb_joint_swap(joint, s, t);
}

static inline void try_swap(softening *self, size_t groups)
{
    eplb_joint *joint = self->joint;
    const eplb_shape *shape = joint->shape;
    int32_t a = eplb_dice_pick(&self->dice, shape->slots);
    int32_t b = eplb_dice_pick(&self->dice, shape->slots);
    int32_t s = joint->heat[shape->slot_gpu[a]] >= joint->heat[shape->slot_gpu[b]] ? a : b;
    int32_t g = shape->slot_gpu[s];
    int32_t e = self->layer->slot_expert[s];
    int32_t near = eplb_dice_pick(&self->dice, joint->near_count);
    int32_t f = joint->near[(size_t)e * (size_t)joint->near_count + (size_t)near];
    int32_t replica = joint->first_replica[f] + eplb_dice_pick(&self->dice, self->layer->count[f]);
    int32_t t = joint->replica_slot[replica];
    int32_t h = shape->slot_gpu[t];
    float tolerance = self->temperature * 0x1p-19f * (float)eplb_dice_pick(&self->dice, 1 << 20);
    outcome after = weigh(joint, groups, g, h, e, f);
    float change = (after.first - joint->heat[g]) + (after.second - joint->heat[h]);
    if (change < tolerance && eplb_layer_may_swap(joint->layer, g, e, h, f)) {
        accept(joint, s, t, after);
    }
}

static inline void try_swaps(softening *self, size_t groups)
{
    for (int32_t move = 0; move < BLOCK; move++) {
        try_swap(self, groups);
    }
}

/* Loops of a constant length run in half the time. */
static void run_block(softening *self)
{
    switch (self->joint->groups) {
    case 1:
        try_swaps(self, 1);
        break;
    case 2:
        try_swaps(self, 2);
        break;
    case 3:
        try_swaps(self, 3);
        break;
    case 4:
        try_swaps(self, 4);
        break;
    default:
        try_swaps(self, (size_t)self->joint->groups);
    }
}

void eplb_joint_soften(eplb_joint *joint, int64_t moves)
{
    softening self = {.joint = joint, .layer = joint->layer};
    if (joint->near_count < 1 || joint->shape->gpus < 2) {
        return;
    }
    eplb_random_seed(&self.dice.random, 1);
    int64_t blocks = (moves + BLOCK - 1) / BLOCK;
    for (int64_t block = 0; block < blocks; block++) {
        double done = (double)block / (double)blocks;
        renew(&self, FIRST_BETA + (LAST_BETA - FIRST_BETA) * done * done);
        self.temperature = (float)(FIRST_TEMPERATURE * (1.0 - done) / (double)joint->shape->gpus);
        run_block(&self);
    }
    joint->layer->moves += blocks * BLOCK;
}
