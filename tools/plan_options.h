/* SPDX-License-Identifier: MIT */
/* The command line of `eplb plan`. */
#ifndef EPLB_TOOLS_PLAN_OPTIONS_H
#define EPLB_TOOLS_PLAN_OPTIONS_H

#include "counting.h"
#include "options.h"
#include "price.h"

typedef struct plan_values {
    text_list loads;
    const char *from;
    counting_values counting;
    id_list dense_layers;
    int32_t draft_layers; /* NOT_GIVEN: as the current placement says */
    int32_t experts;      /* 0: as the files say */
    int32_t gpus;
    int32_t gpus_per_node; /* 0: all on one */
    int32_t slots;
    size_list gpu_memory;
    int64_t reserve;
    int64_t expert_bytes; /* 0: not known */
    int32_t layer_budget;
    const char *model;
    int32_t redundant;
    const char *current;
    double target_imbalance; /* NOT_GIVEN: none; limits: none */
    int32_t max_copies;
    int32_t max_copies_per_layer;
    int32_t max_copies_per_gpu;
    double min_gain;   /* NOT_GIVEN: the library's default */
    double copy_price; /* NOT_GIVEN: what `price` says */
    price_values price;
    int32_t algorithm;
    int32_t hierarchy;
    int32_t groups;
    double node_cost; /* NOT_GIVEN: traffic does not matter */
    int32_t objective;
    int32_t slices; /* 0: what the library does */
    int32_t min_replicas;
    int32_t max_replicas; /* -1: no limit */
    bool spread_nodes;
    text_list pins;
    id_list dead_gpus;
    int32_t lost_experts; /* what to do about them */
    int32_t effort;
    int32_t ilp;
    int32_t ilp_nodes; /* NOT_GIVEN: the library's default */
    int32_t threads;
    bool repair;
    const char *out;
    const char *to;
    const char *weights;
    bool json;
    bool detailed_exitcode;
} plan_values;

extern const command plan_command;
extern const plan_values plan_values_default;

/* Names of the values of eplb_algorithm, then of those of this command; ends with NULL. */
extern const char *const plan_algorithms[];

/* The value of --algorithm behind those of eplb_algorithm. */
enum { ALGORITHM_WEIGHTED = 2 };

/* Values of --hierarchy. */
enum { HIERARCHY_NONE, HIERARCHY_GROUPS };

/* Values of --layer-budget. */
enum { BUDGET_UNIFORM, BUDGET_ADAPTIVE };

/* Values of --lost-experts. */
enum { LOST_LOAD, LOST_FAIL };

/* Values of --ilp. */
enum { ILP_OFF, ILP_AUTO, ILP_ON };

/* Whether the plan goes from the placement in force to a better one with few copies. Not where
 * other rules than balance decide: these plan afresh, and keep layers that are good already. */
bool plan_rebalances(const plan_values *values);

/* The name of an option that says how; NULL: none was given. */
const char *plan_rebalance_option_given(const plan_values *values);

/* What each option alone cannot tell: what is missing, and what goes together. Returns an exit
 * code, with a message. */
int plan_values_check(const plan_values *values);

#endif
