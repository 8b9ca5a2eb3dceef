/* SPDX-License-Identifier: MIT */
/*
 * A rebalance while it is made: the mended start of each layer, the plan from nothing renamed, and
 * the search for few copies between them. GPUs and slots here are the live ones, as in layer.h.
 */
#ifndef EPLB_PLANNER_REBALANCE_H
#define EPLB_PLANNER_REBALANCE_H

#include <stdatomic.h>

#include <eplb/rebalance.h>

#include "planner/joint.h"
#include "planner/trail.h"

/* The curve of a layer has at most so many points, and a search goes on for as many copies. */
#define EPLB_CURVE_POINTS 257

/* What is known of a layer. */
typedef struct eplb_rebalance_trace {
    eplb_rebalance_layer result;
    int32_t copies;  /* of the placement chosen */
    double value;    /* its objective */
    double searched; /* that before a finder's took its place; 0: none did */
    int32_t points;
    eplb_curve_point *point; /* [EPLB_CURVE_POINTS] falling, from the required copies on */
    int32_t *row;            /* [slots] the placement chosen */
    int32_t *fresh;          /* [slots] the plan from nothing, renamed */
    double bound;
    int64_t moves;
    bool scored;
    bool is_fresh_greedy; /* there may be better renamings: too many GPUs for the best */
    bool is_open;         /* a later call could go on from `row`: it must be searched again */
    bool is_mended;       /* there is a start; else only the plan from nothing keeps the rules */
} eplb_rebalance_trace;

typedef struct eplb_rebalance_job {
    eplb_hooks hooks;
    const eplb_load *load;
    const eplb_cluster *cluster;
    const eplb_placement *current;
    const eplb_plan_options *planning;
    const eplb_rebalance_options *options;
    eplb_plan *plan; /* from nothing; its placement becomes the result */
    eplb_shape shape;
    eplb_rules rules;
    eplb_rebalance_trace *traces; /* [layers] */
    int32_t *quota; /* [layers] most copies of each in a second pass; NULL in the first */
    bool is_again;  /* layers that are open go on from their results */
    atomic_int next;
    atomic_int done;
    atomic_bool cancelled;
} eplb_rebalance_job;

/* One thread and its memory. */
typedef struct eplb_rebalance_worker {
    eplb_rebalance_job *job;
    bool calls_progress;
    eplb_layer layer;
    eplb_joint joint;
    eplb_trail trail;
    double *sums;    /* [experts] loads of all scenarios, when they are one */
    int32_t *start;  /* [slots] */
    int32_t *home;   /* [slots] of the current row; -1: empty, or a slot that it does not have */
    int32_t *counts; /* [experts] */
    double *loads;   /* [experts] mean over the scenarios */
    double *heat;    /* [gpus] */
} eplb_rebalance_worker;

eplb_status eplb_rebalance_worker_init(eplb_rebalance_worker *w, eplb_rebalance_job *job,
                                       eplb_error *error);
void eplb_rebalance_worker_free(eplb_rebalance_worker *w);

/* Takes a layer's loads over; false when it has none. */
bool eplb_rebalance_take(eplb_rebalance_worker *w, int32_t layer);

/*
 * Fills w->start with the current row of a layer made valid in the cluster with few copies: pinned
 * and missing experts first, empty slots after them. Sets the home of the trail. False when no way
 * was found to keep the rules. Needs the layer's loads.
 */
bool eplb_rebalance_mend(eplb_rebalance_worker *w, int32_t layer);

/* Moves experts within their GPUs to the slots that they have in w->home. */
void eplb_rebalance_settle(const eplb_rebalance_worker *w, int32_t *row);

/* Fills trace->fresh with the plan's row, GPUs exchanged so that few pairs are new, and few of
 * these come from other nodes. home [slots]: what the GPUs hold, NULL: the current placement. On
 * the thread that called the planner: allocates. */
eplb_status eplb_rebalance_rename(eplb_rebalance_job *job, int32_t layer, const int32_t *home,
                                  eplb_error *error);

/* Searches one layer and chooses its placement. */
void eplb_rebalance_search(eplb_rebalance_worker *w, int32_t layer);

/* Goes on from the result of a layer that is open as a later call would; trace->fresh is renamed
 * for that. */
void eplb_rebalance_search_again(eplb_rebalance_worker *w, int32_t layer);

/* Searches on from the placement chosen, as a later call would. Needs the layer's loads. */
void eplb_rebalance_search_on(eplb_rebalance_worker *w, int32_t layer);

/* The objective of a layer's slots: the mean GPU has 1. Needs its loads. */
double eplb_rebalance_value(eplb_rebalance_worker *w, const int32_t *row);

/* Whether nothing limits the copies. */
bool eplb_rebalance_is_unlimited(const eplb_rebalance_options *options);

/* Whether a value is within the target. */
bool eplb_rebalance_reaches(const eplb_rebalance_job *job, double value);

/* Whether no GPU gets more copies than a GPU may. Needs the home of the trail. */
bool eplb_rebalance_fits_gpus(const eplb_rebalance_worker *w, const int32_t *row);

/* Asks the finder about the layers searched; takes what is better and notes what is proven. On the
 * thread that called the planner. */
eplb_status eplb_rebalance_find_fewest(eplb_rebalance_worker *w, eplb_error *error);

/* Tells the caller how many layers are done, and learns whether to stop. */
void eplb_rebalance_report(eplb_rebalance_job *job, int done);

/* Of the placements chosen in all layers. */
int64_t eplb_rebalance_copies(const eplb_rebalance_job *job);

/* Writes the placement chosen in a layer into the plan's. */
void eplb_rebalance_write_row(const eplb_rebalance_job *job, int32_t layer);

/* Shares max_copies out over the layers: fills quota [layers] from their curves. */
eplb_status eplb_rebalance_share(const eplb_rebalance_job *job, int32_t *quota, eplb_error *error);

/* Makes the placements chosen, and all that is told of them, the plan's. */
eplb_status eplb_rebalance_finish(eplb_rebalance_job *job, eplb_error *error);

/* Keeps the curves of all layers, and that of the whole, in the plan. */
eplb_status eplb_rebalance_keep_curves(eplb_plan *plan, const eplb_rebalance_trace *traces,
                                       eplb_error *error);

#endif
