/* SPDX-License-Identifier: MIT */
/*
 * One layer of several scenarios while it is planned: one placement that serves them all. The
 * placement itself is an eplb_layer's; what is here are the scenarios' loads, each scaled so that
 * the mean GPU has 1, and what the steps of the search keep of them.
 *
 * The steps, in order: counts by eplb_layer_counts and packing by eplb_layer_pack, both on one
 * number for each expert (eplb_joint_start); annealing on a soft maximum, all scenarios of a GPU
 * side by side in memory (eplb_joint_soften); descent on the objective itself (eplb_joint_polish).
 * Small layers are searched on the objective itself, with counts (eplb_joint_anneal).
 */
#ifndef EPLB_PLANNER_JOINT_H
#define EPLB_PLANNER_JOINT_H

#include <eplb/load.h>
#include <eplb/plan.h>

#include "planner/lanes.h"
#include "planner/solve.h"

/* How many experts with like loads an expert is swapped with. */
#define EPLB_JOINT_NEAR 10

typedef struct eplb_joint {
    const eplb_shape *shape;
    eplb_layer *layer;
    eplb_objective objective;

    /* Of the layer at hand: scenarios without load are left out. */
    int32_t scenarios;
    int32_t groups;  /* of lanes, as many as the scenarios fill */
    double *load;    /* [scenarios][experts] the mean of the live GPUs is 1 */
    double *weight;  /* [scenarios] sum 1 */
    double *measure; /* [experts] what counts and packing go by */
    double *share;   /* [experts][scenarios] load / count */

    /* Replicas, numbered expert by expert. They keep their numbers when they move: counts do not
     * change while these are used. */
    int32_t *first_replica; /* [experts + 1] */
    int32_t *replica_slot;  /* [slots] */
    int32_t *slot_replica;  /* [slots] */
    int32_t *near;          /* [experts][near_count] */
    int32_t near_count;     /* at most EPLB_JOINT_NEAR */

    /* The soft phase. */
    eplb_lanes *lanes;  /* [experts][groups] share */
    eplb_lanes *scaled; /* [experts][groups] share in units of height */
    eplb_lanes *height; /* [gpus][groups] */
    float *heat;        /* [gpus] sum of the heights' powers */

    /* Exact objective. */
    double *gpu_load; /* [gpus][scenarios] */
    double *top_load; /* [scenarios][EPLB_JOINT_TOPS] largest GPU loads, largest first */
    int32_t *top_gpu; /* [scenarios][EPLB_JOINT_TOPS] and where they are; -1: none */
    double *scratch;  /* [max(scenarios, experts)] */
} eplb_joint;

/* A swap touches two GPUs: the third largest load is what the others have at most. */
#define EPLB_JOINT_TOPS 3

/* Makes the arrays for layers of the shape with up to so many scenarios. */
eplb_status eplb_joint_init(eplb_joint *joint, const eplb_hooks *hooks, eplb_layer *layer,
                            int32_t scenarios, eplb_objective objective, eplb_error *error);
void eplb_joint_free(eplb_joint *joint, const eplb_hooks *hooks);

/* Takes the loads of a layer over. False when no scenario has any: then load[0..experts-1] are 0.
 */
bool eplb_joint_take(eplb_joint *joint, const eplb_load *load, int32_t layer);

/* The same for one scenario after another: loads [experts], which are left out when they are all
 * zero, and weights of any sum. */
void eplb_joint_begin(eplb_joint *joint);
void eplb_joint_add(eplb_joint *joint, const double *loads, double weight);
bool eplb_joint_end(eplb_joint *joint);

/* The objective, given the largest GPU load of each scenario. */
double eplb_joint_value(const eplb_joint *joint, const double *largest);

/* Lower bound of the objective over all counts and placements, with each scenario's in scratch.
 * Overwrites the layer's counts. `proof`: what longer proofs may cost, once the placement at hand
 * was measured; NULL: none. */
double eplb_joint_bound(eplb_joint *joint, const eplb_effort *proof);

/* Counts and a first placement, indexed. Both go by the largest load of each expert over the
 * scenarios, less this part of its mean. False when there was no way to keep the rules. */
bool eplb_joint_start(eplb_joint *joint, double usual_part);

/* Derives shares and replicas from the layer's indexed placement. */
void eplb_joint_index(eplb_joint *joint);

/* Fills near from the shares. */
void eplb_joint_find_near(eplb_joint *joint);

/* Sums the GPU loads of all scenarios from slot_expert and share, and finds the largest; returns
 * the objective. */
double eplb_joint_measure(eplb_joint *joint);

/* Exchanges the experts of two slots on different GPUs, in slot_expert, replicas and bits. */
void eplb_joint_swap(eplb_joint *joint, int32_t s, int32_t t);

/* Finds the largest loads of a scenario afresh. */
void eplb_joint_find_top(eplb_joint *joint, int32_t scenario);

/* Steps from the indexed placement, with near found; they count their moves in layer->moves. */
void eplb_joint_soften(eplb_joint *joint, int64_t moves);
void eplb_joint_polish(eplb_joint *joint, int64_t moves);

/* Looks for a placement and counts whose objective is at most `enough`, never ending with a worse
 * one; for small layers. The layer is indexed afterwards. */
void eplb_joint_anneal(eplb_joint *joint, double enough, const eplb_budget *budget);

/* Whether eplb_joint_solve can start: rules may not fit the layer's slots. */
bool eplb_joint_fits(eplb_joint *joint);

/* Plans the layer that was taken, which fits; the layer's slot_expert is the result. `bound` gets
 * the lower bound of the objective. */
eplb_stop eplb_joint_solve(eplb_joint *joint, int32_t effort, double *bound);

/* Improves the indexed placement as the end of eplb_joint_solve does, by swaps alone. */
void eplb_joint_rebalance(eplb_joint *joint, int32_t effort);

#endif
