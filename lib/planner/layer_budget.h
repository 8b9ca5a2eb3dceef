/* SPDX-License-Identifier: MIT */
/* One memory budget for all layers: what is tried for each of them, and what becomes of it. */
#ifndef EPLB_PLANNER_LAYER_BUDGET_H
#define EPLB_PLANNER_LAYER_BUDGET_H

#include <stdbool.h>

#include <eplb/layer_budget.h>

#include "planner/share_slots.h"

/* Numbers of slots that are tried for a layer: ever more of them, some nearby those chosen, equal
 * layers, and what a layer finally gets. */
#define EPLB_BUDGET_RISES 32
#define EPLB_BUDGET_TRIES (EPLB_BUDGET_RISES + 16)

/* A layer planned with a number of slots. */
typedef struct eplb_budget_try {
    int32_t slots;
    double value; /* the imbalance; 0 without load */
    const eplb_plan *plan;
    int32_t row; /* of the layer in that plan */
} eplb_budget_try;

typedef struct eplb_budget_layer {
    eplb_budget_try tries[EPLB_BUDGET_TRIES];
    int32_t count;
    double weight;
    double best;   /* value with ever more slots so far */
    int32_t stale; /* tries since more slots helped */
    bool settled;
    int32_t chosen; /* a try */
} eplb_budget_layer;

typedef struct eplb_budget_job {
    eplb_hooks hooks;
    const eplb_load *load;
    const eplb_cluster *cluster;      /* its slots do not matter */
    const eplb_plan_options *options; /* complete */
    int32_t layers;
    int32_t experts;
    int32_t gpus;
    int64_t *room;            /* [gpus] of the budgets that can be used at all; 0 for dead GPUs */
    int64_t capacity;         /* their sum */
    bool has_uniform;         /* each layer's first try is that of equal layers */
    int32_t *uniform;         /* [gpus] slots of equal layers */
    eplb_budget_layer *layer; /* [layers] */
    eplb_plan **plans;        /* that the tries point to */
    int32_t plan_count;
    int32_t plan_capacity;
    eplb_error reason; /* why some number of slots does not do */
    bool cancelled;

    /* Scratch. */
    int32_t *list;   /* [layers] */
    int32_t *shares; /* [gpus] */
    int32_t *from;   /* [gpus] */
    int32_t *to;     /* [gpus] */
    eplb_share_scratch scratch;
} eplb_budget_job;

/* Plans the layers of a list with the slots given [gpus], and notes a try for each. Layers whose
 * rules these slots do not fit get none. */
eplb_status eplb_budget_try_layers(eplb_budget_job *job, const int32_t *layers, int32_t count,
                                   const int32_t *gpu_slots, eplb_error *error);

/* Plans equal layers, and notes a try for each, unless they do not hold the experts. */
eplb_status eplb_budget_try_uniform(eplb_budget_job *job, eplb_error *error);

/* Tries equal layers, so that there is something to fall back on, ever more slots, and numbers near
 * those that are best together; leaves the best choice of each layer. EPLB_ERROR_INFEASIBLE when
 * there is none. */
eplb_status eplb_budget_search(eplb_budget_job *job, eplb_error *error);

/* The sum that the chosen tries have. */
double eplb_budget_sum(const eplb_budget_job *job);

/* Makes the plan of the tries chosen, each layer's slots on the GPUs with most of their budget
 * left. *out is NULL when the rules do not fit these GPUs. */
eplb_status eplb_budget_place(eplb_budget_job *job, eplb_plan **out, eplb_error *error);

/* Makes the plan of equal layers. */
eplb_status eplb_budget_place_uniform(eplb_budget_job *job, eplb_plan **out, eplb_error *error);

/* Memory for the slots of all layers, [layers][gpus]. */
eplb_status eplb_budget_allocate_shares(const eplb_budget_job *job, int32_t **shares,
                                        eplb_error *error);

/* A plan without results, its layers with the slots of shares [layers][gpus] and its GPUs with the
 * most of any layer. On failure it is to be destroyed, too. */
eplb_status eplb_budget_allocate_plan(eplb_budget_job *job, const int32_t *shares, eplb_plan **plan,
                                      eplb_error *error);

/* Whether the rules bind experts to GPUs or nodes. */
bool eplb_budget_binds_gpus(const eplb_budget_job *job);

/* Puts the current placement in the plan's place where it fits the budgets and is no worse. */
eplb_status eplb_budget_keep_current(eplb_budget_job *job, const eplb_placement *current,
                                     eplb_plan **plan, eplb_error *error);

#endif
