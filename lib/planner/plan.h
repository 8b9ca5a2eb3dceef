/* SPDX-License-Identifier: MIT */
/* What a plan is made of, for those that make one. */
#ifndef EPLB_PLANNER_PLAN_H
#define EPLB_PLANNER_PLAN_H

#include <eplb/layer_budget.h>
#include <eplb/rebalance.h>

#include "planner/job.h"

struct eplb_plan {
    eplb_hooks hooks;
    eplb_placement *placement;
    eplb_plan_layer *layers;   /* [info.layers] */
    eplb_plan_choice *choices; /* [info.layers][EPLB_NODE_CHOICES]; NULL: traffic had no price */
    eplb_plan_info info;
    eplb_layer_budget_layer *budget_layers; /* [info.layers]; NULL: made without a budget */
    eplb_layer_budget_info budget;

    eplb_rebalance_layer *rebalance_layers; /* [info.layers]; NULL: made without a rebalance */
    eplb_rebalance_info rebalance;
    int32_t *curve_first; /* [info.layers + 2]: points of each layer, then of all */
    eplb_curve_point *curve;
};

/* Checks what eplb_plan_create is given; `complete` gets the options with their defaults. */
eplb_status eplb_plan_check(const eplb_load *load, const eplb_cluster *cluster,
                            const eplb_placement *current, const eplb_plan_options *options,
                            eplb_plan_options *complete, eplb_error *error);

/* Gives complete options the number of draft layers where they leave it to the current placement
 * (may be NULL), and checks it. */
eplb_status eplb_plan_find_draft_layers(const eplb_load *load, const eplb_placement *current,
                                        eplb_plan_options *options, eplb_error *error);

/* Makes a plan whose placement is empty, by complete options. On failure it is to be destroyed,
 * too. */
eplb_status eplb_plan_allocate(eplb_plan **out, const eplb_hooks *hooks, const eplb_load *load,
                               const eplb_cluster *cluster, const eplb_plan_options *options,
                               eplb_error *error);

/* Counts what the result copies, and sums up the layers. */
eplb_status eplb_plan_summarise(eplb_plan *plan, const eplb_placement *current, eplb_error *error);

#endif
