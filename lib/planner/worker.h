/* SPDX-License-Identifier: MIT */
/* The threads of a plan, each of which plans layer after layer in memory of its own. */
#ifndef EPLB_PLANNER_WORKER_H
#define EPLB_PLANNER_WORKER_H

#include <stdatomic.h>

#include "model/nodes.h"
#include "planner/hierarchy.h"
#include "planner/job.h"
#include "planner/joint.h"
#include "planner/traffic.h"

/* What the threads share. */
typedef struct eplb_run {
    const eplb_plan_job *job;
    eplb_shape shape;
    eplb_rules rules;
    eplb_hierarchy_shape hierarchy; /* no nodes: groups may be anywhere */
    eplb_nodes nodes;               /* when traffic has a price */
    double *loads;   /* [layers][experts], scenarios summed; NULL: no sums are needed */
    double *totals;  /* [layers] */
    bool is_joint;   /* several scenarios, each for itself */
    bool same_slots; /* the current placement's slots and live GPUs are the cluster's */
    atomic_int next;
    atomic_int done;
    atomic_bool cancelled;
    atomic_int failed; /* a layer whose rules do not fit, -1: none */
    int reported;      /* by the calling thread: layers done */
} eplb_run;

/* Tells the caller how many layers are done, on the calling thread; remembers a wish to stop. */
void eplb_run_report(eplb_run *r, int done);

/* One thread and its memory. */
typedef struct eplb_worker {
    eplb_run *run;
    bool calls_progress;
    eplb_layer layer;
    eplb_joint joint;         /* when the run is joint */
    eplb_hierarchy hierarchy; /* when groups are kept on nodes */
    eplb_traffic traffic;     /* when traffic has a price */
    double *gpu_loads;        /* [gpus of the cluster] */
    int32_t *counts;          /* [experts] */
} eplb_worker;

/* Plans one layer (its index): its row of the job's placement, and its result. With a refiner the
 * current placement is left for eplb_worker_refine to compare with. */
void eplb_worker_plan(eplb_worker *w, int32_t index);

/* With a refiner, lets it have a planned layer; `refining` is for the run's shape. Either way what
 * eplb_worker_plan left open is done then. On the thread that called the planner. */
typedef struct eplb_refining eplb_refining;
eplb_status eplb_worker_refine(eplb_worker *w, eplb_refining *refining, int32_t index,
                               eplb_error *error);

/* Writes the planned layer into a row of the placement, and takes one without empty slots over as
 * the layer's placement. */
void eplb_worker_write(const eplb_worker *w, int32_t *row);
void eplb_worker_take_row(eplb_worker *w, const int32_t *row);

/* The objective of a row; w->layer.load are the layer's summed loads. */
double eplb_worker_score(eplb_worker *w, const eplb_cluster *cluster, const int32_t *row,
                         int32_t layer);

/* Whether the layer's current row is what a plan may be; and makes it the plan's. */
bool eplb_worker_can_keep(eplb_worker *w, int32_t layer);
void eplb_worker_keep(const eplb_run *r, int32_t layer);

/* Sets why the search ended, for a placement that may be another than the one that it ended with.
 */
void eplb_worker_correct_stop(eplb_plan_layer *result);

#endif
