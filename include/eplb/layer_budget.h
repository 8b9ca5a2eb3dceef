/* SPDX-License-Identifier: MIT */
/*
 * A memory budget across layers: how many slots each layer deserves when what is limited is the
 * memory of each GPU for the experts of all layers together. Layers differ in skew, so the same
 * slots mend more in some layers than in others.
 *
 * The slots are chosen so that the sum over the layers of the imbalance that plans make small
 * (eplb/plan.h) is as small as it can be, each weighted by the layer's share of the tokens. All
 * layers route equally many tokens in most models: then the weights are 1 and the sum is that of
 * the layers' largest GPU loads, in units of the mean, which is the time that a step waits for its
 * slowest GPUs.
 *
 * How: each layer is planned with different numbers of slots, spread over the GPUs in proportion to
 * their budgets; one number for each layer is chosen by a multiple-choice knapsack, solved exactly
 * for the numbers tried; numbers nearby are tried, and it is chosen again, three times. Then each
 * layer gets its slots from the GPUs with most of their budget left. The plan in equal layers, as
 * eplb_plan_create makes it, is one of the choices and is the result unless the sum becomes smaller
 * by 0.01 % or more.
 */
#ifndef EPLB_LAYER_BUDGET_H
#define EPLB_LAYER_BUDGET_H

#include <stdint.h>

#include <eplb/plan.h>

EPLB_BEGIN_DECLS

/* What a budget was made of. Sums are over the layers that have load, of weight * imbalance. */
typedef struct eplb_layer_budget_info {
    uint32_t struct_size;  /* set by the caller: how much may be written */
    int32_t has_uniform;   /* 1: equal layers hold the experts, and were planned for comparison */
    int32_t is_uniform;    /* 1: and nothing better was found, so that they are the plan */
    int32_t uniform_slots; /* of a layer then; 0 without has_uniform */
    int32_t fewest_slots;  /* of a layer in the plan, and the most */
    int32_t most_slots;
    int64_t budget;     /* slots of all layers on live GPUs that the budgets allow */
    int64_t used;       /* and those that the plan has */
    double sum_uniform; /* of the plan in equal layers; 0 without has_uniform */
    double sum;         /* of the plan */
} eplb_layer_budget_info;

typedef struct eplb_layer_budget_layer {
    uint32_t struct_size;     /* set by the caller: how much may be written */
    int32_t slots;            /* on live GPUs */
    double weight;            /* tokens / mean tokens of a layer, mean over the scenarios; 0 without
                               * load */
    double imbalance_uniform; /* of the plan in equal layers; 0 without one, or without load */
} eplb_layer_budget_layer;

/*
 * Plans one placement for all scenarios of the load, in layers with different numbers of slots
 * (eplb_placement_set_layer_slots).
 *
 * cluster: GPUs, their nodes and health; its slots do not matter.
 * gpu_budget: [gpus] slots of all layers together that each GPU has room for, >= 0: bytes for the
 *     experts' weights / bytes of one expert of one layer. What equal layers leave of it, the
 *     remainder of a division by the layers, is used as well.
 * current: the placement in force, or NULL, as for eplb_plan_create. Copies from it are counted.
 *     It is kept as a whole where it fits the budgets and its sum is not larger than that of the
 *     plan, but not when the options have limits of replicas, pins or spread_nodes; nothing less
 *     than the whole of it is kept.
 * options: as for eplb_plan_create, NULL for the defaults. Not with EPLB_ALGORITHM_EPLB, groups or
 *     a node_cost (EPLB_ERROR_UNSUPPORTED). `progress` hears of layers whose slots are settled;
 *     when it asks to stop, the best of what was tried until then is the result. Rules with pins
 *     or spread_nodes bind GPUs, so with them each layer is planned again in the slots it gets.
 *
 * The plan is one as of eplb_plan_create, its bounds are for the slots that the layers have.
 * Errors: EPLB_ERROR_INFEASIBLE when the budgets do not hold each expert of each layer once;
 * otherwise as for eplb_plan_create. Deterministic as that is.
 *
 * Cost: some 10 to 30 times that of eplb_plan_create, and the memory of as many plans.
 */
EPLB_API eplb_status eplb_plan_create_in_budget(eplb_plan **out, const eplb_hooks *hooks,
                                                const eplb_load *load, const eplb_cluster *cluster,
                                                const int64_t *gpu_budget,
                                                const eplb_placement *current,
                                                const eplb_plan_options *options,
                                                eplb_error *error);

/* Copies results out, at most struct_size bytes of them. EPLB_ERROR_ARGUMENT when the plan was not
 * made by eplb_plan_create_in_budget, or there is no such layer. */
EPLB_API eplb_status eplb_plan_get_layer_budget(const eplb_plan *plan, eplb_layer_budget_info *info,
                                                eplb_error *error);
EPLB_API eplb_status eplb_plan_get_budget_layer(const eplb_plan *plan, int32_t layer,
                                                eplb_layer_budget_layer *result, eplb_error *error);

EPLB_END_DECLS

#endif
