/* SPDX-License-Identifier: MIT */
/* All layers of a plan, on several threads. */
#ifndef EPLB_PLANNER_JOB_H
#define EPLB_PLANNER_JOB_H

#include <eplb/plan.h>

/* One layer under one of the choices of eplb_node_choice. */
typedef struct eplb_plan_choice {
    double imbalance;
    double cross_node;
} eplb_plan_choice;

typedef struct eplb_plan_job {
    const eplb_load *load;
    const eplb_cluster *cluster;
    const eplb_placement *current; /* NULL: none */
    const eplb_plan_options *options;

    /* Filled: the map of each layer, and all of its results but the copies. */
    eplb_placement *placement;
    eplb_plan_layer *layers;
    eplb_plan_choice *choices; /* [layers][EPLB_NODE_CHOICES]; NULL: traffic has no price */
} eplb_plan_job;

/* Plans all layers. Which thread plans which layer makes no difference to the result. */
eplb_status eplb_plan_job_run(const eplb_plan_job *job, const eplb_hooks *hooks, eplb_error *error);

#endif
