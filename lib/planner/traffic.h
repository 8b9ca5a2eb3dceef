/* SPDX-License-Identifier: MIT */
/*
 * Tokens that leave their node, in one planned layer, and what lowers their share without touching
 * replica counts. The model is that of eplb_placement_cross_node: an expert reaches the live GPUs
 * of all nodes that hold it, and the others' tokens leave their node. So it helps to spread an
 * expert's replicas over nodes.
 */
#ifndef EPLB_PLANNER_TRAFFIC_H
#define EPLB_PLANNER_TRAFFIC_H

#include "model/nodes.h"
#include "planner/joint.h"
#include "planner/layer.h"

typedef struct eplb_traffic {
    eplb_layer *layer;
    const eplb_nodes *nodes;

    /* Of the layer at hand. */
    int32_t scenarios;
    double *part;      /* [experts] of all tokens, scenarios by their weights; the sum is 1 */
    double *load;      /* [experts][scenarios] */
    double *gpu_load;  /* [gpus][scenarios] */
    double *reached;   /* [scenarios] largest GPU load when measured */
    eplb_joint *joint; /* whose loads they are; NULL: the layer's */

    /* The layer's shape with rules that keep an expert's replicas spread over nodes. */
    eplb_shape spread;
    eplb_rules spread_rules;

    /* A placement with as little traffic as swaps reach and then balanced again. */
    int32_t *balanced; /* [slots] */
    double *largest;   /* [scenarios] its largest GPU loads */
    double balanced_share;
    int32_t *aside; /* [slots] another one, while that is made */
} eplb_traffic;

/* Makes the arrays for layers with up to so many scenarios. */
eplb_status eplb_traffic_init(eplb_traffic *traffic, const eplb_hooks *hooks, eplb_layer *layer,
                              const eplb_nodes *nodes, int32_t scenarios, eplb_error *error);
void eplb_traffic_free(eplb_traffic *traffic, const eplb_hooks *hooks);

/* Takes the loads over that a joint plan took, or, with NULL, the layer's, which are not all zero.
 */
void eplb_traffic_take(eplb_traffic *traffic, eplb_joint *joint);

/*
 * Makes the placement of one of the choices of eplb_node_choice, from 0 on in their order, each
 * from the one before it. Needs the layer's slot_expert, and leaves the placement indexed. `effort`
 * is a plan's.
 */
void eplb_traffic_choose(eplb_traffic *traffic, int32_t choice, int32_t effort);

/* Share of the tokens that leave their node under the indexed placement. */
double eplb_traffic_share(const eplb_traffic *traffic);

/* How many more GPUs an expert reaches when its replica goes from one node to another. */
int32_t eplb_traffic_gain(const eplb_traffic *traffic, int32_t expert, int32_t from, int32_t to);

static inline int32_t eplb_traffic_node(const eplb_traffic *traffic, int32_t gpu)
{
    return traffic->nodes->node[traffic->layer->shape->cluster_gpu[gpu]];
}

/* Lowers the share by exchanging all that GPUs of different nodes hold, between GPUs of equal size
 * without pinned replicas: every GPU load stays, on another GPU perhaps. Needs the placement
 * indexed and leaves it so. */
void eplb_traffic_exchange(eplb_traffic *traffic);

/* Sums the loads of all GPUs, and finds the largest [scenarios]. */
void eplb_traffic_measure(eplb_traffic *traffic, double *largest);

/* Sums one GPU's loads afresh. */
void eplb_traffic_sum_gpu(eplb_traffic *traffic, int32_t gpu);

/* Lowers the share by swaps of two replicas on different nodes that leave every scenario's largest
 * GPU load within (1 + tolerance) of what was reached, or where it is now. */
void eplb_traffic_swap(eplb_traffic *traffic, double tolerance);

/* The tolerance of one of the choices of eplb_node_choice: the first ones have none. */
double eplb_traffic_tolerance(int32_t choice);

#endif
