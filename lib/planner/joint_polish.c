/* SPDX-License-Identifier: MIT */
/* Descent on the objective itself, by swaps that start at the busiest GPU of a scenario. */
#include "planner/dice.h"
#include "planner/joint.h"

void eplb_joint_find_top(eplb_joint *joint, int32_t scenario)
{
    double *load = joint->top_load + (size_t)scenario * EPLB_JOINT_TOPS;
    int32_t *gpu = joint->top_gpu + (size_t)scenario * EPLB_JOINT_TOPS;
    for (int i = 0; i < EPLB_JOINT_TOPS; i++) {
        load[i] = -1.0;
        gpu[i] = -1;
    }
    for (int32_t g = 0; g < joint->shape->gpus; g++) {
        double x = joint->gpu_load[(size_t)g * (size_t)joint->scenarios + (size_t)scenario];
        if (!(x > load[EPLB_JOINT_TOPS - 1])) {
            continue;
        }
        int place = EPLB_JOINT_TOPS - 1;
        while (place > 0 && x > load[place - 1]) {
            load[place] = load[place - 1];
            gpu[place] = gpu[place - 1];
            place--;
        }
        load[place] = x;
        gpu[place] = g;
    }
}

/* The largest load of a scenario on other GPUs than these two. */
static double largest_of_others(const eplb_joint *joint, int32_t scenario, int32_t g, int32_t h)
{
    const int32_t *gpu = joint->top_gpu + (size_t)scenario * EPLB_JOINT_TOPS;
    int i = 0;
    while (i < EPLB_JOINT_TOPS - 1 && (gpu[i] == g || gpu[i] == h)) {
        i++;
    }
    return joint->top_load[scenario * EPLB_JOINT_TOPS + i];
}

static double value_after(eplb_joint *joint, int32_t g, int32_t h, int32_t e, int32_t f)
{
    size_t scenarios = (size_t)joint->scenarios;
    const double *given = joint->share + (size_t)e * scenarios;
    const double *taken = joint->share + (size_t)f * scenarios;
    const double *first = joint->gpu_load + (size_t)g * scenarios;
    const double *second = joint->gpu_load + (size_t)h * scenarios;
    for (int32_t k = 0; k < joint->scenarios; k++) {
        double moved = given[k] - taken[k];
        double largest = largest_of_others(joint, k, g, h);
        double a = first[k] - moved;
        double b = second[k] + moved;
        largest = a > largest ? a : largest;
        joint->scratch[k] = b > largest ? b : largest;
    }
    return eplb_joint_value(joint, joint->scratch);
}

static void take(eplb_joint *joint, int32_t s, int32_t t)
{
    size_t scenarios = (size_t)joint->scenarios;
    const double *given = joint->share + (size_t)joint->layer->slot_expert[s] * scenarios;
    const double *taken = joint->share + (size_t)joint->layer->slot_expert[t] * scenarios;
    double *first = joint->gpu_load + (size_t)joint->shape->slot_gpu[s] * scenarios;
    double *second = joint->gpu_load + (size_t)joint->shape->slot_gpu[t] * scenarios;
    for (int32_t k = 0; k < joint->scenarios; k++) {
        double moved = given[k] - taken[k];
        first[k] -= moved;
        second[k] += moved;
        eplb_joint_find_top(joint, k);
    }
    eplb_joint_swap(joint, s, t);
}

/* A scenario whose busiest GPU counts: any, or the one that is the objective. */
static int32_t pick_scenario(const eplb_joint *joint, eplb_dice *dice)
{
    int32_t chosen = eplb_dice_pick(dice, joint->scenarios);
    if (joint->objective == EPLB_OBJECTIVE_MAX_OF_MAX) {
        for (int32_t k = 0; k < joint->scenarios; k++) {
            if (joint->top_load[k * EPLB_JOINT_TOPS] > joint->top_load[chosen * EPLB_JOINT_TOPS]) {
                chosen = k;
            }
        }
    }
    return chosen;
}

/* A slot to exchange with: of a like expert, or any. */
static int32_t pick_other_slot(const eplb_joint *joint, eplb_dice *dice, int32_t expert)
{
    if (eplb_dice_pick(dice, 2) == 0) {
        return eplb_dice_pick(dice, joint->shape->slots);
    }
    int32_t near = eplb_dice_pick(dice, joint->near_count);
    int32_t like = joint->near[(size_t)expert * (size_t)joint->near_count + (size_t)near];
    return joint->replica_slot[joint->first_replica[like] +
                               eplb_dice_pick(dice, joint->layer->count[like])];
}

/* Whether the GPU that gives e for f gets less load in a scenario: else that scenario, whose
 * busiest GPU it is, is worse off, and others hardly ever make up for it. */
static bool lightens(const eplb_joint *joint, int32_t scenario, int32_t e, int32_t f)
{
    size_t scenarios = (size_t)joint->scenarios;
    return joint->share[(size_t)e * scenarios + (size_t)scenario] >
           joint->share[(size_t)f * scenarios + (size_t)scenario];
}

void eplb_joint_polish(eplb_joint *joint, int64_t moves)
{
    const eplb_shape *shape = joint->shape;
    if (joint->near_count < 1 || shape->gpus < 2) {
        return;
    }
    eplb_dice dice = {0};
    eplb_random_seed(&dice.random, 2);
    double value = eplb_joint_measure(joint);
    for (int64_t move = 0; move < moves; move++) {
        int32_t k = pick_scenario(joint, &dice);
        int32_t g = joint->top_gpu[k * EPLB_JOINT_TOPS];
        int32_t first_slot = shape->first_slot[g];
        int32_t s = first_slot + eplb_dice_pick(&dice, shape->first_slot[g + 1] - first_slot);
        int32_t e = joint->layer->slot_expert[s];
        int32_t t = pick_other_slot(joint, &dice, e);
        int32_t f = joint->layer->slot_expert[t];
        int32_t h = shape->slot_gpu[t];
        if (!lightens(joint, k, e, f) || !eplb_layer_may_swap(joint->layer, g, e, h, f)) {
            continue;
        }
        double after = value_after(joint, g, h, e, f);
        if (after < value * (1.0 - EPLB_ROUNDING)) {
            value = after;
            take(joint, s, t);
        }
    }
    joint->layer->moves += moves;
}
