/* SPDX-License-Identifier: MIT */
/*
 * A layer while the fewest copies for it are looked for. GPUs here are the cluster's live ones with
 * slots, numbered from 0, and slots are theirs. A placement of it is an array `chosen` [slots] of
 * experts, in any order on each GPU, valid and full.
 */
#ifndef EPLB_ILP_FEWEST_H
#define EPLB_ILP_FEWEST_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/ilp.h>

/* Objectives this close, relatively, are the same but for rounding. */
#define EPLB_FEWEST_ROUNDING 1e-12

typedef struct eplb_fewest_layer {
    eplb_hooks hooks;
    const eplb_fewest_task *task;
    int32_t experts;
    int32_t gpus;
    int32_t slots;
    int32_t scenarios;    /* those in which the layer has load; 0: it has none */
    bool by_mean;         /* the objective is a mean of several, not a largest */
    int32_t *cluster_gpu; /* [gpus] the GPU's number in the cluster */
    int32_t *first;       /* [gpus + 1] GPU g has the slots first[g]..first[g + 1] - 1 */
    uint8_t *home;        /* [gpus][experts] 1: the current placement has the expert there */
    double *load;         /* [scenarios][experts] scaled so that the mean live GPU has 1 */
    double *weight;       /* [scenarios] > 0, sum 1 */
    eplb_load *own_load;  /* one layer; that of the task, or the sum of its scenarios */

    double limit;  /* the largest objective that will do */
    int32_t *best; /* [slots] the best placement so far */
    bool has_best;
    double best_value; /* its objective */
    int64_t best_copies;

    eplb_placement *row; /* where placements are written to be measured and handed out */
    int32_t *row_slots;  /* [slots of the cluster] */
    int32_t *counts;     /* [experts] scratch */

    int64_t nodes;      /* the counted work */
    int64_t most_nodes; /* -1: no limit */
    int64_t next_ask;   /* nodes at which stop() is asked again */
    bool cancelled;
    eplb_status failure;
} eplb_fewest_layer;

/* How a search ended. */
typedef enum eplb_fewest_end {
    EPLB_FEWEST_NOTHING = 0, /* there is no such placement */
    EPLB_FEWEST_FOUND = 1,   /* it is in layer->best, if it is better than what was there */
    EPLB_FEWEST_ENDED = 2,   /* no more nodes, or stop() said so */
    EPLB_FEWEST_FAILED = 3,  /* layer->failure and the error say why */
} eplb_fewest_end;

/* The task must have been checked. What was made is for eplb_fewest_layer_free, also on failure. */
eplb_status eplb_fewest_layer_init(eplb_fewest_layer *layer, const eplb_hooks *hooks,
                                   const eplb_fewest_task *task, eplb_error *error);
void eplb_fewest_layer_free(eplb_fewest_layer *layer);

static inline bool eplb_fewest_is_home(const eplb_fewest_layer *layer, int32_t gpu, int32_t expert)
{
    return layer->home[(size_t)gpu * (size_t)layer->experts + (size_t)expert] != 0;
}

/* The largest load of an expert in any scenario. */
double eplb_fewest_peak(const eplb_fewest_layer *layer, int32_t expert);

/* (GPU, expert) pairs that the current placement lacks. */
int64_t eplb_fewest_count_copies(const eplb_fewest_layer *layer, const int32_t *chosen);

/* No placement, however balanced, has fewer copies. */
int64_t eplb_fewest_least_copies(const eplb_fewest_layer *layer);

static inline bool eplb_fewest_reached(const eplb_fewest_layer *layer)
{
    return layer->has_best && layer->best_value <= layer->limit;
}

/* Measures a placement and keeps it when it is better than the best so far: within the limit with
 * fewer copies, or else with a smaller objective. `value` (may be NULL) gets the objective. */
eplb_status eplb_fewest_offer(eplb_fewest_layer *layer, const int32_t *chosen, double *value,
                              eplb_error *error);

/* Writes a placement into layer->row: experts that stay keep their slots. */
eplb_status eplb_fewest_write(eplb_fewest_layer *layer, const int32_t *chosen, eplb_error *error);

/* The placement in a row of the cluster's shape. */
void eplb_fewest_choose_row(const eplb_fewest_layer *layer, const int32_t *row, int32_t *chosen);

/* Takes from the budget; false when there is no more, or stop() said so. */
bool eplb_fewest_spend(eplb_fewest_layer *layer, int64_t nodes);

/* Whether the layer is small enough for a search through it. */
bool eplb_fewest_is_small(const eplb_fewest_layer *layer);

/*
 * Looks through all placements with at most `copies` copies (0..slots) and an objective in the
 * limit until one is found.
 */
typedef struct eplb_fewest_search eplb_fewest_search;
eplb_status eplb_fewest_search_create(eplb_fewest_search **out, eplb_fewest_layer *layer,
                                      eplb_error *error);
void eplb_fewest_search_destroy(eplb_fewest_search **search);
eplb_fewest_end eplb_fewest_search_run(eplb_fewest_search *search, int64_t copies,
                                       eplb_error *error);

/* Makes the best placement as balanced as it can be, with up to so many nodes (-1: no limit), and
 * raises `least`, which no placement's objective is below. */
eplb_status eplb_fewest_balance(eplb_fewest_layer *layer, int64_t nodes, double *least,
                                eplb_error *error);

/* Fewer copies, a few GPUs at a time, by GLPK with so much memory: from the current placement to
 * one in the limit, if it finds one; and from the best so far. */
eplb_status eplb_fewest_construct(eplb_fewest_layer *layer, int64_t memory_bytes,
                                  eplb_error *error);
eplb_status eplb_fewest_improve(eplb_fewest_layer *layer, int64_t memory_bytes, eplb_error *error);

/* Exchanges GPUs with equally many slots for the fewest copies. */
eplb_status eplb_fewest_rename(const eplb_fewest_layer *layer, int32_t *chosen, eplb_error *error);

#endif
