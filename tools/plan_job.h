/* SPDX-License-Identifier: MIT */
/* What `eplb plan` holds while it works, and its parts. */
#ifndef EPLB_TOOLS_PLAN_JOB_H
#define EPLB_TOOLS_PLAN_JOB_H

#include <stdbool.h>

#include "exact.h"
#include "model_options.h"
#include "plan_options.h"
#include "plan_rebalance.h"
#include "plan_report.h"

typedef struct plan_job {
    const plan_values *values;
    model_answers model;
    const eplb_format *from;
    const eplb_format *to;
    eplb_hooks hooks;
    int32_t draft_layers; /* of the loads' last ones, as far as it is known before they are read;
                           * -1: not at all */
    eplb_load *load;
    bool assumes_experts;    /* nothing says that the counts are of logical experts, not slots */
    eplb_placement *current; /* NULL: none */
    eplb_cluster *cluster;
    exact *exact;    /* NULL: no exact optimisation */
    int64_t *budget; /* [gpus] slots of all layers together; NULL: layers are alike */
    bool rebalances; /* the plan goes from the current placement with few copies */
    price_terms terms;
    eplb_plan *plan;
    eplb_plan *without_groups; /* NULL: the plan keeps no groups on nodes */
    eplb_placement *repaired;  /* NULL: the plan is valid or stays as it is */
    int64_t repaired_slots;
    eplb_placement *weighted; /* NULL: not asked for */
} plan_job;

/* Finds out how many layers are the draft model's, as far as it is known before logs are read,
 * which may take long: a contradiction, or more than the format to write can mark, is a usage
 * error. */
int plan_find_draft_layers(plan_job *self);

/* Reads the loads and the current placement. */
eplb_status plan_read_inputs(plan_job *self, eplb_error *error);

/* Makes the cluster, with its dead GPUs. EPLB_ERROR_INFEASIBLE where these have the last copies of
 * experts and --lost-experts says that this is a failure. */
eplb_status plan_make_cluster(plan_job *self, eplb_error *error);

/* The placement that is handed out: of the plan, repaired or with weights. */
const eplb_placement *plan_result(const plan_job *self);

/* Writes the placement and its weights, then tells about them. */
int plan_deliver(const plan_job *self, plan_report *report);

#endif
