/* SPDX-License-Identifier: MIT */
/*
 * The state of an exact search. Three numberings: experts as in the task; places, which are experts
 * by falling load, in which counts are chosen; and ranks, which are experts by falling share, once
 * all counts are chosen. GPUs without slots are left out and the others reordered, so that those
 * alike (in slots and pinned replicas) follow one another.
 */
#ifndef EPLB_ILP_EXACT_SEARCH_H
#define EPLB_ILP_EXACT_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/plan.h>
#include <eplb/refine.h>

/* Sets of experts are bits of a word. */
#define EPLB_EXACT_EXPERTS 64
#define EPLB_EXACT_SLOTS 512
#define EPLB_EXACT_SCENARIOS 64

/* Objectives this close, relatively, are the same but for rounding. */
#define EPLB_EXACT_ROUNDING 1e-12

/* A bound of counts looks at each expert in each scenario: so often in the time of a node. */
#define EPLB_EXACT_LOOKS 32

typedef struct eplb_exact {
    const eplb_refine_task *task;
    int32_t experts;
    int32_t scenarios;
    int32_t gpus;

    int32_t *gpu;         /* [gpus] its number in the task */
    int32_t *first;       /* [gpus + 1] first slot, slots of these GPUs in a row */
    int32_t *room_rising; /* [gpus] slots of each GPU, sorted */
    bool *alike;          /* [gpus] as the GPU before */
    int32_t last_alike;   /* from this GPU on all are alike */
    int32_t most_room;    /* slots of the GPU that has most */

    int32_t *expert;     /* [experts] at each place */
    double *load;        /* [experts][scenarios] by place */
    double *mean;        /* [scenarios] load of the mean GPU */
    uint64_t twins;      /* bit p: places p - 1 and p have the same loads, and no pins */
    uint64_t *pins;      /* [gpus] bit p: the expert at the place is pinned there */
    int32_t *later_pins; /* [gpus][experts] pins of a place on GPUs behind this one */

    /* Counts, all by place. */
    int32_t *required;   /* [experts] at least, by the task */
    int32_t *usual;      /* [experts] in the task's placement */
    int32_t *fewest;     /* [experts] at least, by the cutoff */
    int32_t *most;       /* [experts] at most */
    int32_t *fewest_sum; /* [experts + 1] of all places from here on */
    int32_t *most_sum;   /* [experts + 1] */
    int32_t *count;      /* [experts] chosen */

    /* Scratch of bounds. */
    double *low;     /* [experts] share at least */
    int32_t *copies; /* [experts] replicas at least */
    int32_t *sorted; /* [scenarios][experts] places by falling share; kept from call to call */
    double *floor;   /* [scenarios] largest load at least, by the counts of the last bound */
    double *least;   /* [most_room + 1] sum of that many smallest shares */
    double *extreme; /* [2][most_room] the smallest and the largest shares */

    /* The packing of chosen counts, all by rank. */
    int32_t *place;      /* [experts] at each rank */
    double *share;       /* [experts][scenarios] */
    double *min_fill;    /* [experts + 1][most_room + 1][scenarios] least load of so many experts
                          * from a rank on */
    double *max_fill;    /* the same, most load */
    int32_t *left;       /* [experts] replicas not yet placed */
    uint64_t twin_ranks; /* bit r: ranks r - 1 and r are twins with equal counts */
    uint64_t *may;       /* [gpus] experts that the GPU may hold */
    uint64_t *must;      /* [gpus] experts that it must hold */
    uint64_t *held;      /* [gpus] experts taken */
    uint64_t *tied;      /* [gpus + 1] bit r: no GPU before tells rank r from r - 1 */
    int32_t *item;       /* [slots] ranks, rising on each GPU */
    double *partial;     /* [slots + gpus][scenarios] load of the first items of a GPU */
    double *top;         /* [gpus + 1][scenarios] largest load of the GPUs before */
    double *rest;        /* [gpus + 1][scenarios] load not on the GPUs before */

    double cutoff;  /* only what is below is looked for */
    double open;    /* least bound of the nodes that were left out for want of budget */
    double value;   /* of the best known placement */
    int32_t *best;  /* [slots] the task's slots */
    int64_t budget; /* of nodes */
    int64_t nodes;
    int64_t bound_nodes; /* that take as long as one bound of counts, beyond its own node */
    int64_t patience;    /* nodes from one question whether to stop to the next */
    int64_t next_ask;    /* nodes at which it is asked again */
    bool ended;          /* for want of budget or because of stop() */
} eplb_exact;

/* Takes over the task; on failure nothing is left. */
eplb_status eplb_exact_init(eplb_exact *exact, const eplb_hooks *hooks,
                            const eplb_refine_task *task, eplb_error *error);
void eplb_exact_free(eplb_exact *exact, const eplb_hooks *hooks);

/* Limits the counts to those that an objective below the cutoff needs. False when there are none.
 */
bool eplb_exact_limit_counts(eplb_exact *exact);

/* Lower bound of the objective when the counts of the first places are chosen and the others have
 * so many spare slots beyond their fewest. */
double eplb_exact_count_bound(eplb_exact *exact, int32_t chosen, int32_t spare);

/* Looks at all counts within the limits. */
void eplb_exact_search_counts(eplb_exact *exact);

/* Looks at all packings of the counts, once all are chosen and their bound was asked for. */
void eplb_exact_pack(eplb_exact *exact);

/* Adds the largest load of a scenario to an objective, 0 at first. */
static inline double eplb_exact_add(const eplb_exact *exact, double value, int32_t scenario,
                                    double largest)
{
    if (exact->task->objective == EPLB_OBJECTIVE_MAX_OF_MAX) {
        return largest > value ? largest : value;
    }
    return value + exact->task->weights[scenario] * largest;
}

/* Takes from the budget. */
static inline void eplb_exact_spend(eplb_exact *exact, int64_t nodes)
{
    int64_t left = exact->ended ? 0 : exact->budget - exact->nodes;
    exact->nodes += nodes < left ? nodes : left;
}

/* Whether to end: for want of budget, or because stop() says so. */
static inline bool eplb_exact_has_ended(eplb_exact *exact)
{
    if (!exact->ended && exact->nodes < exact->budget && exact->nodes >= exact->next_ask) {
        exact->next_ask = exact->nodes + exact->patience;
        exact->ended = exact->task->stop(exact->task->stop_context) != 0;
    }
    exact->ended = exact->ended || exact->nodes >= exact->budget;
    return exact->ended;
}

/* Whether to look at a node of this bound: it is below the cutoff and there is budget left. */
static inline bool eplb_exact_enter(eplb_exact *exact, double bound)
{
    if (bound >= exact->cutoff) {
        return false;
    }
    if (eplb_exact_has_ended(exact)) {
        exact->open = bound < exact->open ? bound : exact->open;
        return false;
    }
    exact->nodes++;
    return true;
}

#endif
