/* SPDX-License-Identifier: MIT */
/*
 * Replica counts for two slots a GPU. For given counts the best pairing is known: the largest share
 * with the smallest, the second largest with the second smallest, and so on (but for an expert that
 * would meet itself). So only the counts are searched, and what they are worth is read off the
 * folded order of the shares: the sum over pairs of what exceeds a threshold, by simulated
 * annealing, with the threshold bisected as in search.c. A move takes one slot from an expert and
 * gives it to another. What Adams' method misses is that a slot spent on a cold expert makes a tiny
 * partner for a hot share.
 */
#include <string.h>

#include "planner/bisection.h"
#include "planner/dice.h"
#include "planner/layer.h"

/* First temperature of a round / distance of the threshold from the best; and last / first. */
#define HEAT 0.1
#define COOLING 0.05

typedef struct pairing {
    eplb_layer *layer;
    int32_t *order; /* [slots] experts of all replicas, smallest share first */
    int32_t *next;  /* [slots] scratch for a new order */
    int32_t *best;  /* [experts] counts */
    double threshold;
    double excess;
    eplb_dice dice;
} pairing;

/* One slot goes from `giver` to `taker`; the shares are those after it. */
typedef struct move {
    int32_t giver;
    int32_t taker;
    double giver_share;
    double taker_share;
} move;

/* Walks the order as it would be after a move, from one end: the old order without the two experts,
 * with their new shares in between. */
typedef struct walk {
    int32_t place;
    int32_t givers; /* replicas still to come */
    int32_t takers;
} walk;

static walk start_walk(const pairing *p, const move *m, int32_t place)
{
    return (walk){.place = place,
                  .givers = p->layer->count[m->giver] - 1,
                  .takers = p->layer->count[m->taker] + 1};
}

static inline bool is_moved(const pairing *p, const move *m, int32_t place)
{
    return p->order[place] == m->giver || p->order[place] == m->taker;
}

static inline double step_up(const pairing *p, const move *m, walk *w, int32_t *expert)
{
    int32_t slots = p->layer->shape->slots;
    while (w->place < slots && is_moved(p, m, w->place)) {
        w->place++;
    }
    bool at_end = w->place >= slots;
    double share = at_end ? 0.0 : p->layer->share[p->order[w->place]];
    bool giver = w->givers > 0 && (at_end || m->giver_share < share);
    share = giver ? m->giver_share : share;
    bool taker = w->takers > 0 && ((at_end && !giver) || m->taker_share < share);
    if (taker) {
        w->takers--;
        *expert = m->taker;
        return m->taker_share;
    }
    if (giver) {
        w->givers--;
        *expert = m->giver;
        return share;
    }
    *expert = p->order[w->place++];
    return share;
}

static inline double step_down(const pairing *p, const move *m, walk *w)
{
    while (w->place >= 0 && is_moved(p, m, w->place)) {
        w->place--;
    }
    double share = w->place >= 0 ? p->layer->share[p->order[w->place]] : -1.0;
    bool giver = w->givers > 0 && m->giver_share > share;
    share = giver ? m->giver_share : share;
    if (w->takers > 0 && m->taker_share > share) {
        w->takers--;
        return m->taker_share;
    }
    if (giver) {
        w->givers--;
    } else {
        w->place--;
    }
    return share;
}

/* The excess after a move, or any value above `most` once it is known to be above. */
static double excess_after(const pairing *p, const move *m, double most)
{
    int32_t pairs = p->layer->shape->gpus;
    walk small = start_walk(p, m, 0);
    walk large = start_walk(p, m, p->layer->shape->slots - 1);
    double excess = 0.0;
    for (int32_t i = 0; i < pairs && excess <= most; i++) {
        int32_t expert;
        double low = step_up(p, m, &small, &expert);
        double high = step_down(p, m, &large);
        double above = low + high - p->threshold;
        excess += above > 0.0 ? above : 0.0;
        if (high + high <= p->threshold) {
            break; /* both shares of all further pairs are smaller than this */
        }
    }
    return excess;
}

/* Sorts the replicas afresh. */
static void sort_replicas(pairing *p)
{
    eplb_layer *layer = p->layer;
    int32_t experts = layer->shape->experts;
    for (int32_t e = 0; e < experts; e++) {
        layer->share[e] = layer->load[e] / (double)layer->count[e];
        p->next[e] = e;
    }
    eplb_sort_descending(p->next, experts, layer->share, p->order);
    int32_t place = layer->shape->slots;
    for (int32_t i = 0; i < experts; i++) {
        for (int32_t c = 0; c < layer->count[p->next[i]]; c++) {
            p->order[--place] = p->next[i];
        }
    }
}

/* The folded order's largest pair; `excess`: and its excess over the threshold. */
static double largest_pair(const pairing *p, double *excess)
{
    const double *share = p->layer->share;
    int32_t slots = p->layer->shape->slots;
    double largest = 0.0;
    *excess = 0.0;
    for (int32_t i = 0; i < slots / 2; i++) {
        double load = share[p->order[i]] + share[p->order[slots - 1 - i]];
        largest = load > largest ? load : largest;
        *excess += load > p->threshold ? load - p->threshold : 0.0;
    }
    return largest;
}

static void apply(pairing *p, const move *m)
{
    eplb_layer *layer = p->layer;
    walk w = start_walk(p, m, 0);
    for (int32_t i = 0; i < layer->shape->slots; i++) {
        (void)step_up(p, m, &w, &p->next[i]);
    }
    int32_t *order = p->order;
    p->order = p->next;
    p->next = order;
    layer->count[m->giver]--;
    layer->count[m->taker]++;
    layer->share[m->giver] = m->giver_share;
    layer->share[m->taker] = m->taker_share;
}

static bool pick_move(pairing *p, move *m)
{
    const eplb_layer *layer = p->layer;
    m->giver = p->order[eplb_dice_pick(&p->dice, layer->shape->slots)];
    m->taker = eplb_dice_pick(&p->dice, layer->shape->experts);
    if (layer->count[m->giver] < 2 || m->giver == m->taker ||
        layer->count[m->taker] >= layer->shape->gpus) {
        return false;
    }
    m->giver_share = layer->load[m->giver] / (double)(layer->count[m->giver] - 1);
    m->taker_share = layer->load[m->taker] / (double)(layer->count[m->taker] + 1);
    return true;
}

/* One round. Returns true when no pair is above the threshold. */
static bool anneal(pairing *p, double temperature, int64_t moves)
{
    double none = EPLB_ROUNDING * p->threshold;
    double fall = temperature * (1.0 - COOLING) / (double)moves;
    for (int64_t i = 0; i < moves && p->excess > none; i++, temperature -= fall) {
        move m;
        p->layer->moves++;
        if (!pick_move(p, &m)) {
            continue;
        }
        double most = p->excess + eplb_dice_tolerate(&p->dice, temperature);
        double excess = excess_after(p, &m, most);
        if (excess <= most) {
            apply(p, &m);
            p->excess = excess;
        }
    }
    return p->excess <= none;
}

static void keep_counts(pairing *p)
{
    memcpy(p->best, p->layer->count, (size_t)p->layer->shape->experts * sizeof(*p->best));
}

static void restore_counts(pairing *p)
{
    memcpy(p->layer->count, p->best, (size_t)p->layer->shape->experts * sizeof(*p->best));
    sort_replicas(p);
}

bool eplb_layer_pair_counts(eplb_layer *layer, double bound, double enough,
                            const eplb_budget *budget)
{
    if (!eplb_shape_has_pairs(layer->shape) || layer->shape->rules != NULL) {
        return false;
    }
    pairing p = {
        .layer = layer, .order = layer->order, .next = layer->position, .best = layer->aside};
    eplb_random_seed(&p.dice.random, 1);
    sort_replicas(&p);
    double best = largest_pair(&p, &p.excess);
    eplb_bisection b = {.bound = bound, .low = bound, .high = best};
    double heat = 1.0;
    keep_counts(&p);
    for (int32_t round = 0; round < budget->rounds && best > enough; round++) {
        p.threshold = eplb_bisection_next(&b);
        (void)largest_pair(&p, &p.excess);
        bool reached = anneal(&p, (best - p.threshold) * HEAT * heat, budget->moves_per_round);
        heat = heat < budget->hottest ? heat * EPLB_HEATING : 1.0;
        double largest = largest_pair(&p, &p.excess);
        if (largest < best) {
            best = largest;
            keep_counts(&p);
        }
        eplb_bisection_update(&b, p.threshold, best, reached);
        if (round % EPLB_ROUNDS_ON == EPLB_ROUNDS_ON - 1) {
            restore_counts(&p);
        }
    }
    restore_counts(&p);
    return true;
}
