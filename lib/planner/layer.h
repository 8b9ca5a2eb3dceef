/* SPDX-License-Identifier: MIT */
/*
 * One layer while it is planned. GPUs here are the live GPUs of the cluster, numbered from 0, and
 * slots are theirs; every slot holds an expert.
 *
 * The arrays are made once for each thread and used for layer after layer: planning allocates
 * nothing.
 */
#ifndef EPLB_PLANNER_LAYER_H
#define EPLB_PLANNER_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/cluster.h>
#include <eplb/hooks.h>
#include <eplb/status.h>

#include "base/sort.h"
#include "planner/rules.h"

/* Two loads this close, relatively, are the same but for rounding. */
#define EPLB_ROUNDING 1e-12

/* The shape that all layers of a plan share. */
struct eplb_shape {
    int32_t experts;
    int32_t gpus;
    int32_t slots;
    bool uniform;            /* every GPU has equally many slots */
    int32_t *first_slot;     /* [gpus + 1] */
    int32_t *slot_gpu;       /* [slots] */
    int32_t *cluster_gpu;    /* [gpus]: the GPU's number in the cluster */
    int64_t *distinct_room;  /* [experts + 1]: room for k experts wherever they are allowed:
                              * sum over GPUs of min(slots, k). NULL when uniform */
    const eplb_rules *rules; /* NULL: a placement only has to be valid */
};

/* Whether every GPU has two slots, or three. */
static inline bool eplb_shape_has_pairs(const eplb_shape *shape)
{
    return shape->uniform && shape->slots == 2 * shape->gpus;
}

static inline bool eplb_shape_has_triples(const eplb_shape *shape)
{
    return shape->uniform && shape->slots == 3 * shape->gpus;
}

/* Of one expert, when each other has at least one. */
static inline int32_t eplb_shape_most_replicas(const eplb_shape *shape)
{
    int32_t spare = shape->slots - shape->experts;
    return spare + 1 < shape->gpus ? spare + 1 : shape->gpus;
}

eplb_status eplb_shape_init(eplb_shape *shape, const eplb_hooks *hooks, const eplb_cluster *cluster,
                            int32_t experts, eplb_error *error);
void eplb_shape_free(eplb_shape *shape, const eplb_hooks *hooks);

struct eplb_layer {
    const eplb_shape *shape;
    const double *load; /* [experts] */

    /* The placement: slot_expert decides, the others follow from it (eplb_layer_index). */
    int32_t *slot_expert; /* [slots] */
    int32_t *count;       /* [experts] replicas */
    double *share;        /* [experts] load / count */
    double *gpu_load;     /* [gpus] */
    uint64_t *holds;      /* [gpus][words] bit e: the GPU holds expert e */
    int32_t words;
    uint64_t *pinned; /* [gpus][words] replicas that must stay; looked at where there are rules */

    /* A replica keeps its number when it moves to another slot. */
    int32_t *slot_replica; /* [slots] */
    int32_t *replica_slot; /* [slots] */
    int32_t *first;        /* [experts] first replica of the expert */
    int32_t *next;         /* [slots] next replica of the same expert, -1 at the end */

    struct eplb_partner_bound *partners; /* NULL unless the shape has pairs or triples */

    int64_t moves; /* counted work */

    /* Scratch of the steps, free between their calls. */
    int32_t *order;     /* [max(experts, slots, gpus)] */
    int32_t *position;  /* [max(experts, slots, gpus)] */
    int32_t *heap;      /* [max(experts, slots, gpus)] */
    int32_t *aside;     /* [max(experts, slots, gpus) + 1] */
    double *key;        /* [max(experts, slots, gpus)] */
    int32_t *room;      /* [gpus] */
    double *gpu_change; /* [gpus] */
    int32_t *best;      /* [slots] the search: slot_expert of the best placement so far */
    int32_t *start;     /* [slots] slot_expert of another start */
};

eplb_status eplb_layer_init(eplb_layer *layer, const eplb_hooks *hooks, const eplb_shape *shape,
                            eplb_error *error);

/* Only what eplb_layer_counts, eplb_layer_bound and eplb_layer_partner_bound use. */
eplb_status eplb_layer_init_counts(eplb_layer *layer, const eplb_hooks *hooks,
                                   const eplb_shape *shape, eplb_error *error);
void eplb_layer_free(eplb_layer *layer, const eplb_hooks *hooks);

/* Derives counts, shares, replicas, bits and GPU loads from slot_expert. O(slots + gpus * words).
 */
void eplb_layer_index(eplb_layer *layer);

/* Largest GPU load. */
double eplb_layer_worst(const eplb_layer *layer);

static inline bool eplb_layer_holds(const eplb_layer *layer, int32_t gpu, int32_t expert)
{
    const uint64_t *bits = layer->holds + (size_t)gpu * (size_t)layer->words;
    return (bits[expert >> 6] >> (expert & 63)) & 1u;
}

static inline void eplb_layer_flip(eplb_layer *layer, int32_t gpu, int32_t expert)
{
    uint64_t *bits = layer->holds + (size_t)gpu * (size_t)layer->words;
    bits[expert >> 6] ^= (uint64_t)1 << (expert & 63);
}

/* Exchanges the experts of two slots on different GPUs, in slot_expert and bits. */
static inline void eplb_layer_exchange(eplb_layer *layer, int32_t s, int32_t t)
{
    int32_t g = layer->shape->slot_gpu[s];
    int32_t h = layer->shape->slot_gpu[t];
    int32_t e = layer->slot_expert[s];
    int32_t f = layer->slot_expert[t];
    layer->slot_expert[s] = f;
    layer->slot_expert[t] = e;
    eplb_layer_flip(layer, g, e);
    eplb_layer_flip(layer, g, f);
    eplb_layer_flip(layer, h, e);
    eplb_layer_flip(layer, h, f);
}

static inline bool eplb_layer_pins(const eplb_layer *layer, int32_t gpu, int32_t expert)
{
    const uint64_t *bits = layer->pinned + (size_t)gpu * (size_t)layer->words;
    return (bits[expert >> 6] >> (expert & 63)) & 1u;
}

/* Whether expert e of GPU g and expert f of GPU h may change places. */
static inline bool eplb_layer_may_swap(const eplb_layer *layer, int32_t g, int32_t e, int32_t h,
                                       int32_t f)
{
    return g != h && !eplb_layer_holds(layer, h, e) && !eplb_layer_holds(layer, g, f) &&
           (layer->shape->rules == NULL || eplb_rules_allow_swap(layer, g, e, h, f));
}

/* Whether an expert's replica on a GPU may give way to a further one of another expert. */
static inline bool eplb_layer_may_replace(const eplb_layer *layer, int32_t gpu, int32_t giver,
                                          int32_t taker)
{
    return giver != taker && layer->count[giver] > 1 && !eplb_layer_holds(layer, gpu, taker) &&
           (layer->shape->rules == NULL || eplb_rules_allow_replace(layer, gpu, giver, taker));
}

/* Exchanges the experts of two slots, and their replicas; not the bits of the GPUs. */
static inline void eplb_layer_swap_slots(eplb_layer *layer, int32_t s, int32_t t)
{
    int32_t expert = layer->slot_expert[s];
    int32_t replica = layer->slot_replica[s];
    layer->slot_expert[s] = layer->slot_expert[t];
    layer->slot_replica[s] = layer->slot_replica[t];
    layer->slot_expert[t] = expert;
    layer->slot_replica[t] = replica;
    layer->replica_slot[layer->slot_replica[s]] = s;
    layer->replica_slot[replica] = t;
}

/*
 * Replica counts by Adams' method: every expert gets one, each further replica goes to the expert
 * whose replicas carry most (equal: fewer replicas, then smaller id), up to one replica for each
 * GPU. Fills count and share. Minimises the largest share.
 */
void eplb_layer_counts(eplb_layer *layer);

/*
 * Other counts, good where most experts are alike and slots per GPU are few: the coldest experts
 * share one slot of each GPU, all others get one replica. The shares of the cold ones are small
 * then, and fill up GPUs whose other slots hold whole experts. False, and counts unchanged, where
 * GPUs differ or too few experts are left for that slot.
 */
bool eplb_layer_filler_counts(eplb_layer *layer);

/* Largest share: after eplb_layer_counts no choice of counts has a smaller one. */
double eplb_layer_largest_share(const eplb_layer *layer);

/* Lower bound of the largest GPU load over all counts and placements, given counts of
 * eplb_layer_counts. */
double eplb_layer_bound(const eplb_layer *layer);

/* Packs count[e] replicas of each expert, largest share first, each onto the least-loaded GPU that
 * has room and does not hold the expert; pinned ones before all others. Fills slot_expert and
 * indexes. False, which only pins can cause, when no way was found. */
bool eplb_layer_pack(eplb_layer *layer);

/* Swaps replicas of the heaviest GPU with others while that makes the larger of the two GPUs
 * lighter, until the largest GPU load is at most `enough`. Leaves the replica lists stale: index
 * before a search that uses them. */
void eplb_layer_swap_descent(eplb_layer *layer, double enough);

/* What a search may cost. */
typedef struct eplb_budget {
    int32_t rounds;
    int64_t moves_per_round;
    double hottest; /* how much hotter than the coolest rounds others may start */
} eplb_budget;

/*
 * Counts for two slots a GPU, searched on the best pairing of their shares, starting from the
 * counts at hand and never ending with worse ones. False, and nothing changed, for other shapes.
 */
bool eplb_layer_pair_counts(eplb_layer *layer, double bound, double enough,
                            const eplb_budget *budget);

/*
 * Looks for a placement (and counts) whose largest GPU load is at most `enough`, starting from the
 * indexed placement, never ending with a worse one. `bound`: a lower bound of the largest load.
 * Returns the largest load reached.
 */
double eplb_layer_search(eplb_layer *layer, double bound, double enough, const eplb_budget *budget);

/*
 * Packs the counts at hand anew for three slots a GPU, starting from an indexed placement and never
 * ending with a worse one; for other shapes it does nothing. Returns the largest load reached.
 */
double eplb_layer_fill(eplb_layer *layer, double bound, double enough, const eplb_budget *budget);

/*
 * The classical algorithm of deepseek-ai/EPLB: whole groups of experts to nodes, replicas within
 * nodes, packing within nodes. Needs a uniform shape; groups, nodes must divide as the public
 * header says. May put an expert twice on a GPU. Fills slot_expert and indexes.
 */
void eplb_layer_reference(eplb_layer *layer, int32_t groups, int32_t nodes);

#endif
