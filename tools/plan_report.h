/* SPDX-License-Identifier: MIT */
/* What `eplb plan` tells about a plan, for people and as JSON. */
#ifndef EPLB_TOOLS_PLAN_REPORT_H
#define EPLB_TOOLS_PLAN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <eplb/format.h>
#include <eplb/layer_budget.h>
#include <eplb/plan.h>
#include <eplb/rebalance.h>

#include "plan_options.h"
#include "price.h"
#include "summary.h"

/* What the plan means to nodes. */
typedef struct plan_nodes {
    int32_t nodes;
    int32_t groups;           /* kept on nodes; 1: none */
    summary without_groups;   /* imbalance of a plan that need not keep them */
    double cross_node_before; /* share of tokens that leave their node, mean of the layers */
    double cross_node_after;
    bool has_node_cost; /* false: there are no choices */
    double node_cost;
    eplb_node_choice choices[EPLB_NODE_CHOICES];
} plan_nodes;

/* What exact optimisation gained. */
typedef struct plan_refinement {
    bool asked;
    double searched; /* mean imbalance, and bound, without it */
    double bound_searched;
    int32_t optimal_layers; /* with the plan */
    int64_t nodes;
} plan_refinement;

/* A memory budget over layers. */
typedef struct plan_budget {
    bool exists; /* false: layers are alike */
    eplb_layer_budget_info info;
} plan_budget;

/* How the plan goes from the placement in force. */
typedef struct plan_rebalance {
    bool exists; /* false: it does not */
    eplb_rebalance_info info;
    double target;           /* NOT_GIVEN: none */
    bool is_limited;         /* by a number of copies in all */
    bool layers_are_limited; /* or in a layer, or into a GPU */
    bool looks_for_fewest;   /* by exact optimisation */
    bool has_min_gain;       /* layers that would gain less stay */
    double copy_price;
    price_terms terms;
    eplb_payoff payoff;
    eplb_curve_point *curve; /* [points] of all layers together */
    int32_t points;
    int32_t knee; /* its index; -1: no curve */
} plan_rebalance;

typedef struct plan_row {
    int32_t layer_id;
    int32_t slots;
    bool scored; /* false: no load, so the imbalances and the bound say nothing */
    double spread;
    double before;
    double after;
    double weighted; /* after, if the engine weighted replicas */
    double bound;
    double uniform; /* in layers with equally many slots, where there is a budget */
    int64_t copies;
    int32_t verdict;         /* an eplb_fewest_verdict; -1: there is none */
    int64_t copies_at_least; /* of a placement that reaches the target; 0: not known */
} plan_row;

/* One scenario: imbalances over the layers in which it has load. */
typedef struct plan_scenario {
    const char *name; /* the load's */
    double weight;
    int32_t layers; /* with load */
    summary before;
    summary after;
} plan_scenario;

/* Experts of a layer whose last copies are on dead GPUs. */
typedef struct plan_loss {
    int32_t layer_id;
    int32_t count;
    int32_t *experts; /* [count] */
} plan_loss;

/* Lists at most this many of them. */
#define LOST_SHOWN 8

/* "3, 17, 40 and 2 more" of `count` experts, of which `some` has the first LOST_SHOWN. Returns
 * `text`. */
char *lost_list(const int32_t *some, int32_t count, char *text, size_t size);

/* What is told about. */
typedef struct plan_subject {
    const eplb_load *load;
    eplb_objective objective;
    const eplb_plan *plan;
    const eplb_plan *without_groups; /* NULL: it keeps no groups on nodes */
    int32_t groups;                  /* that it keeps */
    bool is_refined;                 /* by exact optimisation */
    bool has_node_cost;
    double node_cost; /* that it was made with */
    bool has_layer_budget;
    const eplb_placement *placement;     /* the plan's or one that was made from it */
    const eplb_placement *current;       /* NULL: none */
    const price_terms *rebalance;        /* what copies cost; NULL: it was planned afresh */
    const plan_values *rebalance_values; /* what was asked for then */
    int64_t expert_bytes;                /* of one layer; 0: not known */
} plan_subject;

typedef struct plan_report {
    int32_t layers;
    int32_t draft_layers; /* of the last ones */
    int32_t scored_layers;
    int32_t experts;
    int32_t gpus;
    bool layers_differ;   /* in slots */
    int32_t slots;        /* of one layer, the most of any */
    int32_t least_slots;  /* and the fewest */
    int32_t fewest_slots; /* of a GPU in a layer, and the most */
    int32_t most_slots;
    int64_t fewest_sum; /* of a GPU in all layers, and the most */
    int64_t most_sum;
    int64_t expert_bytes; /* 0: not known, and neither are other bytes */
    int64_t fewest_bytes; /* of experts' weights on a GPU, and the most */
    int64_t most_bytes;
    int64_t bytes_to_copy;
    int32_t scenarios;
    eplb_objective objective;
    int32_t live_gpus;
    plan_scenario *scenario; /* [scenarios] */
    int32_t losses;
    plan_loss *loss; /* [losses] layers that lost experts */
    int32_t fragile; /* most experts of a layer that a single failure would lose */
    int32_t fragile_layer_id;
    int32_t fragile_gpu;
    bool has_current;
    bool valid;
    char violation[160];    /* the first one, when not valid */
    int64_t repaired_slots; /* 0: nothing was repaired */
    eplb_stop stop;
    const char *algorithm;
    summary spread; /* of experts 0..E-1 and again from 0: what engines start with */
    summary before;
    summary after;
    summary weighted;
    bool gains_by_weights; /* enough to tell */
    summary bound;
    plan_refinement refinement;
    plan_nodes nodes;
    plan_budget budget;
    plan_rebalance rebalance;
    int64_t copies;
    bool proposes_changes;
    const char *out; /* the file written; NULL: none */
    const eplb_format *format;
    plan_row *rows; /* [layers] */
} plan_report;

/* Fills everything but `algorithm`, `repaired_slots`, `out` and `format`. */
eplb_status plan_report_create(plan_report *self, const plan_subject *subject, eplb_error *error);
void plan_report_destroy(plan_report *self);

/* The part on nodes: fills it from what was told about, and tells about it. */
eplb_status plan_nodes_measure(plan_report *self, const plan_subject *subject, eplb_error *error);
void plan_nodes_print_summary(const plan_report *self, FILE *out);
void plan_nodes_print(const plan_report *self, FILE *out);

/* The part on exact optimisation. */
eplb_status plan_refinement_measure(plan_report *self, const plan_subject *subject,
                                    eplb_error *error);
void plan_refinement_print(const plan_report *self, FILE *out);

/* The part on a memory budget over layers. */
eplb_status plan_budget_measure(plan_report *self, const plan_subject *subject, eplb_error *error);
void plan_budget_print(const plan_report *self, FILE *out);

/* The part on the way from the placement in force; after the rest. */
eplb_status plan_rebalance_measure(plan_report *self, const plan_subject *subject,
                                   eplb_error *error);
void plan_rebalance_print(const plan_report *self, FILE *out);
void plan_rebalance_add_json(cJSON *document, const plan_report *self);

/* What is proven of the number of copies: of all layers, of those that miss the target, and of one
 * layer. Nothing where it was not looked for. */
eplb_status plan_fewest_measure(plan_report *self, const plan_subject *subject, eplb_error *error);
void plan_fewest_print(const plan_report *self, FILE *out);
void plan_fewest_add_json(cJSON *object, const plan_report *self);
void plan_fewest_add_layer_json(cJSON *object, const plan_report *self, const plan_row *row);

void plan_report_print(const plan_report *self, FILE *out);

/* Prints one JSON document on standard output and returns the exit code. */
int plan_report_print_json(const plan_report *self, int exit_code);

#endif
