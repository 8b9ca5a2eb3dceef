/* SPDX-License-Identifier: MIT */
/*
 * Few copies: what a layer can reach from the placement in force with 0, 1, 2, ... copies.
 *
 * A copy is a pair (GPU, expert) that the placement in force, the home, lacks: bringing an expert
 * home is free. A beam search over the number of copies keeps the best states of each level and
 * makes those of the next ones by single moves: a replica changes places with another, or gives way
 * to a further one of another expert. States are compared by their excess: what GPU loads have
 * above a threshold, summed, large ones perhaps counting a little more. The largest load itself
 * would be a plateau, since several GPUs must come down together. On the way to a target a GPU
 * above it is charged for that, however little it has above: it will take a copy to bring it down.
 */
#ifndef EPLB_PLANNER_TRAIL_H
#define EPLB_PLANNER_TRAIL_H

#include <eplb/plan.h>

#include "planner/lanes.h"
#include "planner/layer.h"

/* A move, and what it leads to. */
typedef struct eplb_trail_move {
    float excess;   /* of the state after it */
    int32_t parent; /* the state before it, in the pool */
    int32_t slot;
    int32_t other;  /* the slot that it changes places with; -1: it gets a new expert */
    int32_t expert; /* that */
    uint64_t key;   /* of the state after it: equal for equal states */
} eplb_trail_move;

/* Moves to states of one level, best first. */
typedef struct eplb_trail_queue {
    eplb_trail_move *moves; /* [width] */
    int32_t count;
} eplb_trail_queue;

/* A move costs at most two copies. */
#define EPLB_TRAIL_LEVELS 3

typedef struct eplb_trail {
    const eplb_shape *shape;
    eplb_layer *layer; /* the state at hand, indexed */
    int32_t width;     /* states of a level */
    int64_t moves;     /* looked at: the counted work */
    int64_t kept;      /* moves that got into a queue */

    /* Of the layer at hand. */
    int32_t scenarios;
    int32_t groups; /* of lanes */
    float threshold;
    float charge;          /* most that a GPU above the threshold counts beside its excess */
    float charge_slope;    /* how that rises */
    float steepness;       /* how much more large excesses count: as x + steepness x^2 */
    int32_t most_incoming; /* copies into one GPU; -1: no limit */
    eplb_lanes *load;      /* [experts][groups] the mean GPU has 1 */
    eplb_lanes *weight;    /* [groups] of the scenarios */
    uint64_t *home;        /* [gpus][words] what the placement in force has */

    /* Of the state at hand. */
    eplb_lanes *share;  /* [experts][groups] */
    eplb_lanes *height; /* [gpus][groups] loads */
    float *excess;      /* [gpus] */
    float total;        /* excess of all GPUs */
    int32_t *incoming;  /* [gpus] copies into it */
    int32_t state;      /* its place in the pool */
    uint64_t key;
    int32_t level;
    int32_t copies;
    int32_t slot_groups;     /* slots, four at a time, for swaps */
    eplb_lanes *slot_share;  /* [scenarios][slot_groups] */
    eplb_lanes *slot_height; /* [scenarios][slot_groups] of the slots' GPUs */
    eplb_lanes *slot_excess; /* [slot_groups] of the slots' GPUs */
    float *relief;           /* [experts] excess of all GPUs that hold it */
    float *pull; /* [experts] by how much the busiest GPU's excess would fall without its share, if
                  * it fell on as it begins; but for its charge: */
    float pull_charge;
    float *push; /* [experts] by how much excess would rise at least if that GPU got it */
    int32_t donors;
    int32_t *donor;      /* [slots] slots whose expert has other replicas */
    float *donor_excess; /* [slots] by how much excess the other replicas rise without it */

    /* Scratch, [groups] each: nothing, and changes of shares. */
    eplb_lanes *none;
    eplb_lanes *gain;
    eplb_lanes *loss;
    eplb_lanes *both;

    /* States of the level at hand and the two before it. */
    int32_t *pool;        /* [EPLB_TRAIL_LEVELS * pool_width][slots] */
    int32_t *pool_copies; /* [EPLB_TRAIL_LEVELS * pool_width] */
    uint64_t *pool_key;
    int32_t pool_width;
    int32_t base;                              /* where the level at hand is in the pool */
    int32_t states;                            /* of it so far */
    eplb_trail_queue queue[EPLB_TRAIL_LEVELS]; /* of the levels from the one at hand on */
    float limit[EPLB_TRAIL_LEVELS];            /* of the queues */
} eplb_trail;

/* For layers of the shape with up to so many scenarios. */
eplb_status eplb_trail_init(eplb_trail *trail, const eplb_hooks *hooks, eplb_layer *layer,
                            int32_t scenarios, int32_t width, eplb_error *error);
void eplb_trail_free(eplb_trail *trail, const eplb_hooks *hooks);

/* Takes a layer over: loads [scenarios][experts] with a mean GPU load of 1, weights [scenarios] of
 * sum 1. Nothing is at home yet: the caller sets the bits. */
void eplb_trail_begin(eplb_trail *trail, int32_t scenarios, const double *loads,
                      const double *weights);

/* Takes everything out of the home. */
void eplb_trail_clear_home(eplb_trail *trail);

/* Whether a GPU has an expert at home; and says so. */
static inline bool eplb_trail_is_home(const eplb_trail *trail, int32_t gpu, int32_t expert)
{
    const uint64_t *bits = trail->home + (size_t)gpu * (size_t)trail->layer->words;
    return (bits[expert >> 6] >> (expert & 63)) & 1u;
}

static inline void eplb_trail_set_home(eplb_trail *trail, int32_t gpu, int32_t expert)
{
    uint64_t *bits = trail->home + (size_t)gpu * (size_t)trail->layer->words;
    bits[expert >> 6] |= (uint64_t)1 << (expert & 63);
}

/* Pairs of a placement [slots] that are not at home. */
int32_t eplb_trail_copies(const eplb_trail *trail, const int32_t *slots);

/* What the search asks of its caller: about each state its objective, in doubles, of the placement
 * indexed in trail->layer; at the end of a level whether to go on, given the best state there. */
typedef struct eplb_trail_visitor {
    double (*value)(void *context);
    void *context;

    /* copies: at most the level. */
    bool (*level)(void *level_context, int32_t level, int32_t copies, double value,
                  const int32_t *slots);
    void *level_context;
} eplb_trail_visitor;

/* What states are compared by. */
typedef struct eplb_trail_measure {
    float threshold; /* the mean GPU has 1 */
    float steepness; /* how much more large excesses count */
    float charge;    /* of a GPU above the threshold, in shares of an average replica */
} eplb_trail_measure;

/* Searches from a valid placement [slots] on, whose copies are the first level, until the visitor
 * ends it or no move leads on. */
void eplb_trail_run(eplb_trail *trail, const int32_t *start, const eplb_trail_measure *measure,
                    const eplb_trail_visitor *visitor);

/* The moves from the state at hand, offered to the queues. */
void eplb_trail_expand(eplb_trail *trail);

/* Puts a move into the queue of the level with so many copies, if it is among the best there. */
void eplb_trail_offer(eplb_trail *trail, const eplb_trail_move *move, int32_t copies);

/* The excess that a move to a state with so many copies must stay below to be kept. */
static inline float eplb_trail_limit(const eplb_trail *trail, int32_t copies)
{
    return trail->limit[copies > trail->level ? copies - trail->level : 0];
}

/* The part of an expert on a GPU in a state's key. */
static inline uint64_t eplb_trail_key(int32_t gpu, int32_t expert)
{
    uint64_t x = ((uint64_t)(uint32_t)gpu << 32 | (uint32_t)expert) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
