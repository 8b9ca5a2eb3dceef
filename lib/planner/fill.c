/* SPDX-License-Identifier: MIT */
/*
 * Packing for three slots a GPU, given counts.
 *
 * Near balance a search that treats all GPUs alike gets stuck: each has a little room, and none has
 * enough for a move to use. Here all the room is kept together. GPU after GPU is filled to just
 * below a threshold: the replica left that is furthest from the mean, with the pair of others that
 * fills its GPU best, of which there are thousands at first. What these GPUs leave unused is next
 * to nothing, so the last few, whose replicas are all alike by then, share the room of all, and
 * simulated annealing packs them easily.
 */
#include <string.h>

#include "planner/dice.h"
#include "planner/layer.h"

/* GPUs that the annealing packs. */
#define LAST_GPUS 16
#define LAST_SLOTS (3 * LAST_GPUS)
/* How far apart in the order of shares two swapped replicas may be. */
#define NEIGHBOURS 5
/* First temperature / room of a GPU; and last / first. */
#define HEAT 2.0
#define COOLING 0.1
/* The next threshold: so much of the excess over the bound that the best has; after a failure it
 * rises by this part of the way back. */
#define NEXT_PART 0.7
#define BACK_PART 0.15

typedef struct filling {
    eplb_layer *layer;
    double threshold;
    double room;   /* of the GPUs not filled, beyond the replicas left */
    int32_t *left; /* experts of the replicas left, largest share first */
    int32_t replicas;
    eplb_dice dice;
} filling;

typedef struct choice {
    int32_t fixed; /* places in left */
    int32_t larger;
    int32_t smaller;
    double waste;
} choice;

/* False when no two others fit. Pairs are met by moving in from both ends. */
static bool choose(filling *f, choice *best)
{
    const double *share = f->layer->share;
    int32_t last = f->replicas - 1;
    double mean = (f->threshold * (double)(f->replicas / 3) - f->room) / (double)f->replicas;
    bool is_large = share[f->left[0]] - mean >= mean - share[f->left[last]];
    int32_t fixed = is_large ? 0 : last;
    int32_t expert = f->left[fixed];
    double space = f->threshold - share[expert];
    bool found = false;
    best->waste = f->room;
    for (int32_t i = is_large ? 1 : 0, j = is_large ? last : last - 1; i < j;) {
        int32_t a = f->left[i];
        int32_t b = f->left[j];
        double waste = space - share[a] - share[b];
        if (waste < 0.0) {
            i++;
            continue;
        }
        if (waste <= best->waste && a != b && a != expert && b != expert) {
            *best = (choice){fixed, i, j, waste};
            found = true;
        }
        j--;
    }
    f->layer->moves += f->replicas;
    return found;
}

static void fill_gpu(filling *f, int32_t gpu, const choice *c)
{
    int32_t *slot = f->layer->slot_expert + f->layer->shape->first_slot[gpu];
    slot[0] = f->left[c->fixed];
    slot[1] = f->left[c->larger];
    slot[2] = f->left[c->smaller];
    f->room -= c->waste;
    int32_t kept = 0;
    for (int32_t i = 0; i < f->replicas; i++) {
        if (i != c->fixed && i != c->larger && i != c->smaller) {
            f->left[kept++] = f->left[i];
        }
    }
    f->replicas = kept;
}

/* False when the counts at hand do not allow the threshold, or not in this way. */
static bool fill_first(filling *f, int32_t gpus)
{
    eplb_layer *layer = f->layer;
    int32_t experts = layer->shape->experts;
    double total = 0.0;
    f->replicas = 0;
    for (int32_t e = 0; e < experts; e++) {
        layer->order[e] = e;
        total += layer->load[e];
    }
    eplb_sort_descending(layer->order, experts, layer->share, layer->position);
    for (int32_t i = 0; i < experts; i++) {
        for (int32_t c = 0; c < layer->count[layer->order[i]]; c++) {
            f->left[f->replicas++] = layer->order[i];
        }
    }
    f->room = f->threshold * (double)layer->shape->gpus - total;
    for (int32_t gpu = 0; gpu < gpus; gpu++) {
        choice c;
        if (!choose(f, &c)) {
            return false;
        }
        fill_gpu(f, gpu, &c);
    }
    return true;
}

/* The last GPUs. Replicas are ranked by their shares; GPU g has slots 3 g to 3 g + 2. */
typedef struct last {
    int32_t gpus;
    double threshold;
    double load[LAST_GPUS];
    double share[LAST_SLOTS];   /* by rank */
    int32_t expert[LAST_SLOTS]; /* by rank */
    int32_t rank[LAST_SLOTS];   /* by slot */
    int32_t slot[LAST_SLOTS];   /* by rank */
} last;

static bool holds(const last *l, int32_t gpu, int32_t but, int32_t expert)
{
    for (int32_t s = 3 * gpu; s < 3 * gpu + 3; s++) {
        if (s != but && l->expert[l->rank[s]] == expert) {
            return true;
        }
    }
    return false;
}

/* Large, medium and small ones together; false when an expert would meet itself. */
static bool deal(last *l, const filling *f)
{
    l->gpus = f->replicas / 3;
    l->threshold = f->threshold;
    memset(l->load, 0, sizeof(l->load));
    for (int32_t r = 0; r < f->replicas; r++) {
        int32_t third = r / l->gpus;
        int32_t gpu = third == 0 ? r : (third + 1) * l->gpus - 1 - r;
        l->share[r] = f->layer->share[f->left[r]];
        l->expert[r] = f->left[r];
        l->slot[r] = 3 * gpu + third;
        l->rank[l->slot[r]] = r;
        l->load[gpu] += l->share[r];
    }
    for (int32_t s = 0; s < f->replicas; s++) {
        if (holds(l, s / 3, s, l->expert[l->rank[s]])) {
            return false;
        }
    }
    return true;
}

static double above(const last *l, double load)
{
    return load > l->threshold ? load - l->threshold : 0.0;
}

static double total_excess(const last *l)
{
    double sum = 0.0;
    for (int32_t g = 0; g < l->gpus; g++) {
        sum += above(l, l->load[g]);
    }
    return sum;
}

/* Swaps a random replica of a GPU, above the threshold if a few tries find one, with a slightly
 * smaller one; returns the change of the excess. */
static double try_swap(last *l, eplb_dice *dice, double temperature)
{
    int32_t g = eplb_dice_pick(dice, l->gpus);
    for (int tries = 0; tries < 6 && l->load[g] <= l->threshold; tries++) {
        g = eplb_dice_pick(dice, l->gpus);
    }
    int32_t s = 3 * g + eplb_dice_pick(dice, 3);
    int32_t r = l->rank[s];
    int32_t q = r + 1 + eplb_dice_pick(dice, NEIGHBOURS);
    if (q >= 3 * l->gpus) {
        return 0.0;
    }
    int32_t t = l->slot[q];
    int32_t h = t / 3;
    if (h == g || holds(l, g, s, l->expert[q]) || holds(l, h, t, l->expert[r])) {
        return 0.0;
    }
    double moved = l->share[r] - l->share[q];
    double change = above(l, l->load[g] - moved) + above(l, l->load[h] + moved) -
                    above(l, l->load[g]) - above(l, l->load[h]);
    if (change > 0.0 && change >= eplb_dice_tolerate(dice, temperature)) {
        return 0.0;
    }
    l->load[g] -= moved;
    l->load[h] += moved;
    l->rank[s] = q;
    l->rank[t] = r;
    l->slot[q] = s;
    l->slot[r] = t;
    return change;
}

static void anneal(last *l, filling *f, int64_t moves)
{
    double none = EPLB_ROUNDING * l->threshold;
    double temperature = HEAT * f->room / (double)l->gpus;
    double fall = temperature * (1.0 - COOLING) / (double)moves;
    double excess = total_excess(l);
    for (int64_t i = 0; i < moves && excess > none; i++, temperature -= fall) {
        excess += try_swap(l, &f->dice, temperature);
        f->layer->moves++;
        if (excess <= none) {
            excess = total_excess(l); /* without the rounding errors of many changes */
        }
    }
}

/* Packs for the threshold; false when that failed before there was a whole placement. */
static bool pack(filling *f, int64_t moves)
{
    eplb_layer *layer = f->layer;
    int32_t gpus = layer->shape->gpus;
    int32_t first = gpus > LAST_GPUS ? gpus - LAST_GPUS : 0;
    last l;
    if (!fill_first(f, first) || !deal(&l, f)) {
        return false;
    }
    anneal(&l, f, moves);
    int32_t *slot = layer->slot_expert + layer->shape->first_slot[first];
    for (int32_t s = 0; s < f->replicas; s++) {
        slot[s] = l.expert[l.rank[s]];
    }
    eplb_layer_index(layer);
    return true;
}

double eplb_layer_fill(eplb_layer *layer, double bound, double enough, const eplb_budget *budget)
{
    double best = eplb_layer_worst(layer);
    if (!eplb_shape_has_triples(layer->shape) || layer->shape->rules != NULL) {
        return best;
    }
    size_t size = (size_t)layer->shape->slots * sizeof(*layer->best);
    filling f = {.layer = layer, .left = layer->aside};
    eplb_random_seed(&f.dice.random, 1);
    double excess = (best - bound) * NEXT_PART;
    memcpy(layer->best, layer->slot_expert, size);
    for (int32_t round = 0; round < budget->rounds && best > enough; round++) {
        f.threshold = bound + excess > enough ? bound + excess : enough;
        bool packed = pack(&f, budget->moves_per_round);
        double worst = packed ? eplb_layer_worst(layer) : best;
        bool reached = packed && worst <= f.threshold * (1.0 + EPLB_ROUNDING);
        if (worst < best) {
            best = worst;
            memcpy(layer->best, layer->slot_expert, size);
        }
        excess =
            reached ? (best - bound) * NEXT_PART : excess + (best - bound - excess) * BACK_PART;
    }
    memcpy(layer->slot_expert, layer->best, size);
    eplb_layer_index(layer);
    return best;
}
