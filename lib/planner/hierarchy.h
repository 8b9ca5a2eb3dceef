/* SPDX-License-Identifier: MIT */
/*
 * Plans that keep each of some equal runs of expert ids, the groups, wholly on one node: first the
 * groups are shared out over the nodes, as a layer whose experts are groups and whose GPUs are
 * nodes, then each node is a layer of its own.
 */
#ifndef EPLB_PLANNER_HIERARCHY_H
#define EPLB_PLANNER_HIERARCHY_H

#include "planner/group_search.h"
#include "planner/joint.h"
#include "planner/layer.h"
#include "planner/solve.h"

/* EPLB_OK when groups can be kept: equal live GPUs on equal nodes in order, which groups and
 * experts fit. `what` begins the message. */
eplb_status eplb_hierarchy_check(const char *what, const eplb_cluster *cluster, int32_t experts,
                                 int32_t groups, eplb_error *error);

/* The shapes, the same for all layers. All zero: there is no hierarchy. */
typedef struct eplb_hierarchy_shape {
    int32_t groups;
    int32_t nodes;
    eplb_shape outer; /* groups on nodes */
    eplb_shape inner; /* the experts of a node on its GPUs */
} eplb_hierarchy_shape;

/* For a cluster that was checked, of several nodes. */
eplb_status eplb_hierarchy_shape_init(eplb_hierarchy_shape *shape, const eplb_hooks *hooks,
                                      const eplb_cluster *cluster, int32_t experts, int32_t groups,
                                      eplb_error *error);
void eplb_hierarchy_shape_free(eplb_hierarchy_shape *shape, const eplb_hooks *hooks);

/* One thread's memory. */
typedef struct eplb_hierarchy {
    const eplb_hierarchy_shape *shape;
    eplb_layer *whole;
    eplb_layer outer;
    eplb_layer inner;
    eplb_joint *whole_joint; /* NULL: plans are for summed loads, the joints below are unused */
    eplb_joint outer_joint;
    eplb_joint inner_joint;
    eplb_group_search search;
    double *sums;    /* [max(groups, experts of a node)] loads at hand */
    int32_t *expert; /* [experts of a node] ids of those of the node at hand */
} eplb_hierarchy;

/* `joint` is the whole layer's. What a failed call leaves is to be freed. */
eplb_status eplb_hierarchy_init(eplb_hierarchy *hierarchy, const eplb_hooks *hooks,
                                const eplb_hierarchy_shape *shape, eplb_layer *whole,
                                eplb_joint *joint, int32_t scenarios, eplb_error *error);
void eplb_hierarchy_free(eplb_hierarchy *hierarchy, const eplb_hooks *hooks);

/*
 * Plans the whole layer: for the scenarios that its joint took, or (is_joint false) for its load
 * alone, whose sum is `total`. The whole layer's slot_expert is the result, indexed. `bound` gets a
 * lower bound of the objective, in units of the mean GPU load, over all placements that keep the
 * groups.
 */
eplb_stop eplb_hierarchy_solve(eplb_hierarchy *hierarchy, bool is_joint, int32_t effort,
                               double total, double *bound);

/* Whether the placement in a whole layer's slot_expert keeps each group on one node. */
bool eplb_hierarchy_holds(const eplb_hierarchy_shape *shape, const eplb_layer *whole);

#endif
