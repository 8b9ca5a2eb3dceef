/* SPDX-License-Identifier: MIT */
/*
 * Small layers: annealing on the objective itself, with swaps of any two replicas and with
 * transfers, which give a slot of an expert that has others to another expert. With few slots the
 * objective takes little to compute, counts matter most, and steps are too large for anything soft.
 */
#include <string.h>

#include "planner/dice.h"
#include "planner/joint.h"

/* One move in this many is a transfer. */
#define TRANSFER_EVERY 3
/* First temperature of the coolest rounds, in objectives above the bound; others are hotter. */
#define COOLEST 0.02
/* Rounds get cooler by this factor until the coolest, then the next is the hottest. */
#define COOLING 0.5
/* So many rounds go on from where the last one ended before one starts at the best again. */
#define ROUNDS_ON 4

typedef struct annealing {
    eplb_joint *joint;
    eplb_layer *layer;
    eplb_dice dice;
    double value;
    double temperature;
} annealing;

/* The objective of slot_expert and count, from nothing. */
static double compute(eplb_joint *joint)
{
    const eplb_shape *shape = joint->shape;
    const eplb_layer *layer = joint->layer;
    size_t scenarios = (size_t)joint->scenarios;
    for (int32_t k = 0; k < joint->scenarios; k++) {
        joint->scratch[k] = 0.0;
    }
    for (int32_t g = 0; g < shape->gpus; g++) {
        for (size_t k = 0; k < scenarios; k++) {
            double sum = 0.0;
            for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
                sum += joint->share[(size_t)layer->slot_expert[s] * scenarios + k];
            }
            joint->scratch[k] = sum > joint->scratch[k] ? sum : joint->scratch[k];
        }
    }
    return eplb_joint_value(joint, joint->scratch);
}

static void set_count(eplb_joint *joint, int32_t expert, int32_t count)
{
    size_t scenarios = (size_t)joint->scenarios;
    joint->layer->count[expert] = count;
    for (size_t k = 0; k < scenarios; k++) {
        joint->share[(size_t)expert * scenarios + k] =
            joint->load[k * (size_t)joint->shape->experts + (size_t)expert] / (double)count;
    }
}

/* Puts an expert into a slot: counts, shares and bits follow. */
static void assign(eplb_joint *joint, int32_t slot, int32_t expert)
{
    eplb_layer *layer = joint->layer;
    int32_t gpu = joint->shape->slot_gpu[slot];
    int32_t old = layer->slot_expert[slot];
    eplb_layer_flip(layer, gpu, old);
    eplb_layer_flip(layer, gpu, expert);
    layer->slot_expert[slot] = expert;
    set_count(joint, old, layer->count[old] - 1);
    set_count(joint, expert, layer->count[expert] + 1);
}

static bool accept(annealing *self)
{
    double value = compute(self->joint);
    if (value < self->value + eplb_dice_tolerate(&self->dice, self->temperature)) {
        self->value = value;
        return true;
    }
    return false;
}

static void try_transfer(annealing *self)
{
    eplb_layer *layer = self->layer;
    const eplb_shape *shape = self->joint->shape;
    int32_t slot = eplb_dice_pick(&self->dice, shape->slots);
    int32_t taker = eplb_dice_pick(&self->dice, shape->experts);
    int32_t giver = layer->slot_expert[slot];
    if (!eplb_layer_may_replace(layer, shape->slot_gpu[slot], giver, taker)) {
        return;
    }
    assign(self->joint, slot, taker);
    if (!accept(self)) {
        assign(self->joint, slot, giver);
    }
}

static void try_swap(annealing *self)
{
    const eplb_shape *shape = self->joint->shape;
    int32_t s = eplb_dice_pick(&self->dice, shape->slots);
    int32_t t = eplb_dice_pick(&self->dice, shape->slots);
    int32_t e = self->layer->slot_expert[s];
    int32_t f = self->layer->slot_expert[t];
    if (e == f || !eplb_layer_may_swap(self->layer, shape->slot_gpu[s], e, shape->slot_gpu[t], f)) {
        return;
    }
    eplb_layer_exchange(self->layer, s, t);
    if (!accept(self)) {
        eplb_layer_exchange(self->layer, s, t);
    }
}

static void keep(eplb_layer *layer)
{
    memcpy(layer->best, layer->slot_expert,
           (size_t)layer->shape->slots * sizeof(*layer->slot_expert));
}

static void restore(eplb_joint *joint)
{
    eplb_layer *layer = joint->layer;
    memcpy(layer->slot_expert, layer->best,
           (size_t)layer->shape->slots * sizeof(*layer->slot_expert));
    eplb_layer_index(layer);
    eplb_joint_index(joint);
}

/* One round; returns the best objective met, whose placement is kept when it beats `best`. */
static double run_round(annealing *self, double best, double enough, int64_t moves)
{
    double fall = self->temperature / (double)moves;
    for (int64_t move = 0; move < moves && best > enough; move++) {
        if (eplb_dice_pick(&self->dice, TRANSFER_EVERY) == 0) {
            try_transfer(self);
        } else {
            try_swap(self);
        }
        self->layer->moves++;
        self->temperature -= fall;
        if (self->value < best * (1.0 - EPLB_ROUNDING)) {
            best = self->value;
            keep(self->layer);
        }
    }
    return best;
}

void eplb_joint_anneal(eplb_joint *joint, double enough, const eplb_budget *budget)
{
    annealing self = {.joint = joint, .layer = joint->layer};
    eplb_random_seed(&self.dice.random, 1);
    keep(joint->layer);
    self.value = compute(joint);
    double best = self.value;
    double heat = budget->hottest;
    for (int32_t round = 0; round < budget->rounds && best > enough; round++) {
        self.temperature = COOLEST * heat;
        heat = heat * COOLING < 1.0 ? budget->hottest : heat * COOLING;
        best = run_round(&self, best, enough, budget->moves_per_round);
        if (round % ROUNDS_ON == ROUNDS_ON - 1) {
            restore(joint);
            self.value = best;
        }
    }
    restore(joint);
}
