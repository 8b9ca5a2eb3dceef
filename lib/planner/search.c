/* SPDX-License-Identifier: MIT */
/*
 * Local search on placement and counts together.
 *
 * The largest GPU load itself is a poor guide: several GPUs must improve before it falls, and until
 * then nothing tells a good move from a useless one. So a round fixes a threshold T below the best
 * load known and minimises the excess, the sum over GPUs of max(0, load - T), by simulated
 * annealing; an excess of zero is a placement with no GPU above T. Rounds bisect T between the
 * lower bound and the best load known.
 *
 * Moves: swap two replicas whose shares are neighbours in size (others would overshoot), or
 * transfer: one slot's expert, which has other replicas, gives way to a further replica of another
 * expert.
 */
#include <string.h>

#include "planner/bisection.h"
#include "planner/dice.h"
#include "planner/layer.h"

/* How far apart in the order of shares two swapped experts may be. */
#define NEIGHBOURS 4
/* One proposal in this many is a transfer. */
#define TRANSFER_EVERY 12
/* The temperature falls after every so many proposals; then the excess is summed afresh too. */
#define COOLING_STEP 256
/* Shares change with transfers; their order is renewed after every so many proposals. */
#define ORDER_STEP 4096
/* Last temperature of a round / first. */
#define COOLING 0.1

typedef struct annealing {
    eplb_layer *layer;
    double threshold;
    double excess;
    double temperature;
    eplb_dice dice;
    int32_t stamp;   /* layer->room[g] == stamp: GPU g is touched by the transfer at hand */
    int32_t touched; /* number of GPUs listed in layer->aside */
} annealing;

static double above(const annealing *a, double load)
{
    return load > a->threshold ? load - a->threshold : 0.0;
}

static double total_excess(const annealing *a)
{
    double sum = 0.0;
    for (int32_t g = 0; g < a->layer->shape->gpus; g++) {
        sum += above(a, a->layer->gpu_load[g]);
    }
    return sum;
}

static bool accept(annealing *a, double change)
{
    return change <= 0.0 || change < eplb_dice_tolerate(&a->dice, a->temperature);
}

static void order_by_share(eplb_layer *layer)
{
    for (int32_t e = 0; e < layer->shape->experts; e++) {
        layer->order[e] = e;
    }
    eplb_sort_descending(layer->order, layer->shape->experts, layer->share, layer->aside);
    for (int32_t i = 0; i < layer->shape->experts; i++) {
        layer->position[layer->order[i]] = i;
    }
}

/* A random GPU, one above the threshold if a few tries find one. */
static int32_t pick_heavy_gpu(annealing *a)
{
    int32_t gpu = eplb_dice_pick(&a->dice, a->layer->shape->gpus);
    for (int tries = 0; tries < 6 && a->layer->gpu_load[gpu] <= a->threshold; tries++) {
        gpu = eplb_dice_pick(&a->dice, a->layer->shape->gpus);
    }
    return gpu;
}

/* A random slot of a GPU, -1 when it has none. */
static int32_t pick_slot(annealing *a, int32_t gpu)
{
    const int32_t *first_slot = a->layer->shape->first_slot;
    int32_t slots = first_slot[gpu + 1] - first_slot[gpu];
    return slots > 0 ? first_slot[gpu] + eplb_dice_pick(&a->dice, slots) : -1;
}

static int32_t pick_replica(annealing *a, int32_t expert)
{
    int32_t replica = a->layer->first[expert];
    for (int32_t skip = eplb_dice_pick(&a->dice, a->layer->count[expert]); skip > 0; skip--) {
        replica = a->layer->next[replica];
    }
    return replica;
}

static void try_swap(annealing *a)
{
    eplb_layer *layer = a->layer;
    int32_t heavy = pick_heavy_gpu(a);
    int32_t s = pick_slot(a, heavy);
    if (s < 0) {
        return;
    }
    int32_t expert = layer->slot_expert[s];
    int32_t place = layer->position[expert] + 1 + eplb_dice_pick(&a->dice, NEIGHBOURS);
    if (place >= layer->shape->experts) {
        return;
    }
    int32_t smaller = layer->order[place];
    int32_t t = layer->replica_slot[pick_replica(a, smaller)];
    int32_t light = layer->shape->slot_gpu[t];
    if (!eplb_layer_may_swap(layer, heavy, expert, light, smaller)) {
        return;
    }
    double moved = layer->share[expert] - layer->share[smaller];
    double heavy_after = layer->gpu_load[heavy] - moved;
    double light_after = layer->gpu_load[light] + moved;
    double change = above(a, heavy_after) + above(a, light_after) -
                    above(a, layer->gpu_load[heavy]) - above(a, layer->gpu_load[light]);
    if (!accept(a, change)) {
        return;
    }
    a->excess += change;
    layer->gpu_load[heavy] = heavy_after;
    layer->gpu_load[light] = light_after;
    eplb_layer_flip(layer, heavy, expert);
    eplb_layer_flip(layer, heavy, smaller);
    eplb_layer_flip(layer, light, smaller);
    eplb_layer_flip(layer, light, expert);
    eplb_layer_swap_slots(layer, s, t);
}

typedef struct transfer {
    int32_t slot;
    int32_t gpu;
    int32_t giver;      /* the expert in the slot now */
    int32_t taker;      /* the expert that gets it */
    double giver_share; /* of each replica after the transfer */
    double taker_share;
} transfer;

/* Proposes a transfer that can relieve a heavy GPU: the GPU gives up a replica, or one of its
 * experts gets a further replica elsewhere. */
static bool pick_transfer(annealing *a, transfer *t)
{
    eplb_layer *layer = a->layer;
    int32_t heavy = pick_heavy_gpu(a);
    int32_t own = pick_slot(a, heavy);
    if (own < 0) {
        return false;
    }
    if (eplb_dice_pick(&a->dice, 2) == 0) {
        t->slot = own;
        t->taker = eplb_dice_pick(&a->dice, layer->shape->experts);
    } else {
        t->slot = eplb_dice_pick(&a->dice, layer->shape->slots);
        t->taker = layer->slot_expert[own];
    }
    t->gpu = layer->shape->slot_gpu[t->slot];
    t->giver = layer->slot_expert[t->slot];
    if (!eplb_layer_may_replace(layer, t->gpu, t->giver, t->taker)) {
        return false;
    }
    t->giver_share = layer->load[t->giver] / (double)(layer->count[t->giver] - 1);
    t->taker_share = layer->load[t->taker] / (double)(layer->count[t->taker] + 1);
    return true;
}

/* Adds `amount` to the pending change of each GPU that holds the expert; lists GPUs met for the
 * first time in layer->aside. */
static void change_holders(annealing *a, int32_t expert, double amount)
{
    eplb_layer *layer = a->layer;
    for (int32_t r = layer->first[expert]; r >= 0; r = layer->next[r]) {
        int32_t gpu = layer->shape->slot_gpu[layer->replica_slot[r]];
        if (layer->room[gpu] != a->stamp) {
            layer->room[gpu] = a->stamp;
            layer->gpu_change[gpu] = 0.0;
            layer->aside[a->touched++] = gpu;
        }
        layer->gpu_change[gpu] += amount;
    }
}

/* The change of the excess, with each touched GPU's change of load left in gpu_change. */
static double weigh_transfer(annealing *a, const transfer *t)
{
    eplb_layer *layer = a->layer;
    a->stamp++;
    a->touched = 0;
    change_holders(a, t->giver, t->giver_share - layer->share[t->giver]);
    change_holders(a, t->taker, t->taker_share - layer->share[t->taker]);
    layer->gpu_change[t->gpu] += t->taker_share - t->giver_share; /* it holds the giver: touched */
    double change = 0.0;
    for (int32_t i = 0; i < a->touched; i++) {
        double load = layer->gpu_load[layer->aside[i]];
        change += above(a, load + layer->gpu_change[layer->aside[i]]) - above(a, load);
    }
    return change;
}

static void move_replica(eplb_layer *layer, const transfer *t)
{
    int32_t replica = layer->slot_replica[t->slot];
    int32_t *link = &layer->first[t->giver];
    while (*link != replica) {
        link = &layer->next[*link];
    }
    *link = layer->next[replica];
    layer->next[replica] = layer->first[t->taker];
    layer->first[t->taker] = replica;
    layer->slot_expert[t->slot] = t->taker;
    layer->count[t->giver]--;
    layer->count[t->taker]++;
    layer->share[t->giver] = t->giver_share;
    layer->share[t->taker] = t->taker_share;
    eplb_layer_flip(layer, t->gpu, t->giver);
    eplb_layer_flip(layer, t->gpu, t->taker);
}

static void try_transfer(annealing *a)
{
    eplb_layer *layer = a->layer;
    transfer t;
    if (!pick_transfer(a, &t)) {
        return;
    }
    double change = weigh_transfer(a, &t);
    if (!accept(a, change)) {
        return;
    }
    a->excess += change;
    for (int32_t i = 0; i < a->touched; i++) {
        layer->gpu_load[layer->aside[i]] += layer->gpu_change[layer->aside[i]];
    }
    move_replica(layer, &t);
}

/* One round from the indexed placement. Returns true when no GPU is above the threshold. */
static bool anneal(annealing *a, int64_t moves)
{
    eplb_layer *layer = a->layer;
    double none = EPLB_ROUNDING * a->threshold;
    double fall = a->temperature * (1.0 - COOLING) * COOLING_STEP / (double)moves;
    a->stamp = 0;
    memset(layer->room, 0, (size_t)layer->shape->gpus * sizeof(*layer->room));
    for (int64_t move = 0; move < moves; move++, layer->moves++) {
        if (move % ORDER_STEP == 0) {
            order_by_share(layer);
        }
        if (move % COOLING_STEP == 0 || a->excess <= none) {
            a->excess = total_excess(a); /* what was added up move by move has rounding errors */
            if (a->excess <= none) {
                return true;
            }
        }
        if (move % COOLING_STEP == 0) {
            a->temperature -= fall;
        }
        if (eplb_dice_pick(&a->dice, TRANSFER_EVERY) == 0) {
            try_transfer(a);
        } else {
            try_swap(a);
        }
    }
    return total_excess(a) <= none;
}

static void keep(eplb_layer *layer)
{
    memcpy(layer->best, layer->slot_expert,
           (size_t)layer->shape->slots * sizeof(*layer->slot_expert));
}

static void restore(eplb_layer *layer)
{
    memcpy(layer->slot_expert, layer->best,
           (size_t)layer->shape->slots * sizeof(*layer->slot_expert));
    eplb_layer_index(layer);
}

double eplb_layer_search(eplb_layer *layer, double bound, double enough, const eplb_budget *budget)
{
    annealing a = {.layer = layer};
    eplb_random_seed(&a.dice.random, 1);
    double best = eplb_layer_worst(layer);
    eplb_bisection b = {.bound = bound, .low = bound, .high = best};
    double heat = 1.0;
    keep(layer);
    for (int32_t round = 0; round < budget->rounds && best > enough; round++) {
        a.threshold = eplb_bisection_next(&b);
        if (a.threshold < enough && enough < best) {
            a.threshold = enough; /* less would be harder, and of no use */
        }
        a.temperature = (best - a.threshold) * heat;
        heat = heat < budget->hottest ? heat * EPLB_HEATING : 1.0;
        bool reached = anneal(&a, budget->moves_per_round);
        eplb_layer_index(layer);
        eplb_layer_swap_descent(layer, enough);
        eplb_layer_index(layer);
        double worst = eplb_layer_worst(layer);
        if (worst < best) {
            best = worst;
            keep(layer);
        }
        eplb_bisection_update(&b, a.threshold, best, reached);
        if (round % EPLB_ROUNDS_ON == EPLB_ROUNDS_ON - 1) {
            restore(layer);
        }
    }
    restore(layer);
    return best;
}
