/* SPDX-License-Identifier: MIT */
/* What a placement must keep to besides being valid: limits on replicas, pinned replicas, nodes. */
#ifndef EPLB_PLANNER_RULES_H
#define EPLB_PLANNER_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/plan.h>

typedef struct eplb_layer eplb_layer;
typedef struct eplb_shape eplb_shape;

/* The same for all layers. */
typedef struct eplb_rules {
    int32_t min_replicas;
    int32_t max_replicas; /* at most the live GPUs */
    int32_t *node;        /* [live GPUs]; NULL: replicas need not be spread over nodes */
    const eplb_pin *pins; /* those of all layers */
    int32_t pin_count;
} eplb_rules;

/* EPLB_ERROR_ARGUMENT for a pin to what does not exist, EPLB_ERROR_INFEASIBLE for one to a dead
 * GPU, of a plan of so many layers and experts. */
eplb_status eplb_rules_check_pins(const eplb_plan_options *options, const eplb_cluster *cluster,
                                  int32_t layers, int32_t experts, eplb_error *error);

/* Makes the rules of the options for the live GPUs of the shape and a load of so many layers.
 * EPLB_ERROR_INFEASIBLE when they do not fit the slots, EPLB_ERROR_ARGUMENT for a pin to what does
 * not exist. */
eplb_status eplb_rules_init(eplb_rules *rules, const eplb_hooks *hooks, const eplb_shape *shape,
                            const eplb_cluster *cluster, int32_t layers,
                            const eplb_plan_options *options, eplb_error *error);
void eplb_rules_free(eplb_rules *rules, const eplb_hooks *hooks);

/* Whether there are any: without, the shape has none. */
bool eplb_rules_bind(const eplb_rules *rules, const eplb_shape *shape);

/* Sets the pins of one layer, given by its index in the load. */
void eplb_rules_pin(const eplb_rules *rules, eplb_layer *layer, int32_t index);

/* Replicas that an expert has at least: where it is pinned, and where GPUs have room for all. */
int32_t eplb_rules_fewest(const eplb_layer *layer, int32_t expert);

/* Replicas of an expert on a node. */
int32_t eplb_rules_on_node(const eplb_layer *layer, int32_t expert, int32_t node);

/* Mends by swaps what packing and searches leave behind: experts with a second replica on a node
 * while another node has none and can get one. Needs and keeps slot_expert and holds only. */
void eplb_rules_spread(eplb_layer *layer);

/* The rules' part of eplb_layer_may_swap and eplb_layer_may_replace. */
bool eplb_rules_allow_swap(const eplb_layer *layer, int32_t g, int32_t e, int32_t h, int32_t f);
bool eplb_rules_allow_replace(const eplb_layer *layer, int32_t gpu, int32_t giver, int32_t taker);

/* Whether the indexed placement keeps to the rules. */
bool eplb_rules_hold(const eplb_layer *layer);

#endif
