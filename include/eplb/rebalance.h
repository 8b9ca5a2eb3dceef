/* SPDX-License-Identifier: MIT */
/*
 * Rebalancing: from the placement in force to a better one with few copies. Engines that plan from
 * nothing copy 80 to 97 % of all slots for a gain that a few well-chosen copies have, too.
 *
 * A copy is a (GPU, expert) pair that the current placement lacks: bringing an expert home is free,
 * and so is renaming slots inside a GPU. Two roads are tried in each layer, and the better one is
 * taken: the current placement is improved step by step, the best placements with 1, 2, 3, ...
 * copies side by side; and a plan from nothing is renamed so that most of it is there already and,
 * where several ways to do so copy as little, so that fewest copies come from other nodes; for more
 * than 256 GPUs of as many slots by a good way, not the best. Experts that stay on a GPU keep their
 * slots. With a target a finder (eplb/fewest.h) may then look for fewer copies, or prove that there
 * are none.
 *
 * Threads, determinism: as for eplb_plan_create (eplb/plan.h).
 */
#ifndef EPLB_REBALANCE_H
#define EPLB_REBALANCE_H

#include <stdint.h>

#include <eplb/fewest.h>
#include <eplb/plan.h>

EPLB_BEGIN_DECLS

/* What a copy costs by default, in units of a layer's imbalance: the weights of an expert of 44 MB
 * through a link of 50 GB/s take as long as a MoE layer of 0.5 ms needs for 1.8 steps, which 3000
 * steps until the next rebalance pay for by 0.0006 each. */
#define EPLB_COPY_PRICE 0.0006

typedef struct eplb_rebalance_options {
    uint32_t struct_size; /* sizeof(eplb_rebalance_options), by eplb_rebalance_options_init */

    /* States that the search keeps for each number of copies, 1..256; 0 (default): what the plan's
     * effort is worth: 1 up to level 5, then 2, 6, 16, 32; and, for layers of up to 128 slots, 128
     * / slots more. Some twice as many are looked at. */
    int32_t beam;

    /* Of each layer, >= 1: the fewest copies that reach it are taken, whatever they cost. -1
     * (default): none. */
    double target_imbalance;

    /* Most copies: in all, in a layer, and into one GPU in a layer; >= 0, or -1 (default): no
     * limit. With max_copies the copies go where they gain most, and copy_price does not count.
     * What has to be copied for a valid placement is copied even so. */
    int64_t max_copies;
    int32_t max_copies_per_layer;
    int32_t max_copies_per_gpu;

    /* Price of a copy in units of the layer's imbalance, >= 0: a layer gets the copies that make
     * imbalance + copy_price * copies smallest. 0: copies are free. Default EPLB_COPY_PRICE;
     * eplb/price.h tells it from bytes, bandwidth and time. */
    double copy_price;

    /* A layer whose imbalance would not fall by as much stays as it is, also where it misses a
     * target; >= 0, default 0. */
    double min_gain;

    /* Without a target, a layer this close to what a plan from nothing has is good enough, in units
     * of imbalance, >= 0; default 0.008: what the noise of eight million tokens a layer leaves. */
    double tolerance;

    /* What looks for fewer copies after the search where there is a target, such as
     * eplb_ilp_fewest_finder; borrowed for the call. NULL (default): nothing. It knows neither
     * limits of copies or replicas nor pins: placements that break them are left out, what it
     * proves holds even so. */
    const eplb_fewest_finder *fewest;
} eplb_rebalance_options;

/* Writes the defaults. */
EPLB_API void eplb_rebalance_options_init(eplb_rebalance_options *options);

/* The whole rebalance; see eplb_plan_get_info for the rest. */
typedef struct eplb_rebalance_info {
    uint32_t struct_size;    /* set by the caller: how much may be written */
    int32_t target_reached;  /* 1: in every layer that has load; -1: there is no target */
    int32_t layers_missed;   /* layers in which it is not reached */
    int32_t layers_changed;  /* layers with copies */
    int64_t copies_required; /* to make the placement valid in the cluster, whatever the limits */
    int64_t fresh_copies;    /* of the plan from nothing, renamed */
    double fresh_mean;       /* its imbalance, mean and worst over the scored layers */
    double fresh_worst;
    int32_t layers_proven;     /* layers with EPLB_FEWEST_PROVEN; 0 without a finder */
    int32_t layers_impossible; /* and with EPLB_FEWEST_IMPOSSIBLE */
    int64_t copies_searched;   /* what would be copied without a finder */
} eplb_rebalance_info;

typedef struct eplb_rebalance_layer {
    uint32_t struct_size;      /* set by the caller: how much may be written */
    int32_t target_reached;    /* 1, 0; -1: there is no target, or no load */
    int64_t copies_required;   /* to make the placement valid */
    double required_imbalance; /* with these alone; without any, the current imbalance */
    int64_t fresh_copies;
    double fresh_imbalance;
    int32_t from_fresh;      /* 1: the plan from nothing was better */
    int32_t verdict;         /* an eplb_fewest_verdict; -1: no finder was asked */
    int64_t copies_at_least; /* no placement that reaches the target has fewer; 0: nothing is known,
                              * or no placement reaches it */
    int64_t copies_searched; /* what would be copied without a finder */
} eplb_rebalance_layer;

/* Imbalance against copies. */
typedef struct eplb_curve_point {
    int64_t copies;
    double imbalance;
} eplb_curve_point;

/*
 * Plans from the placement in force.
 *
 * load, cluster: as for eplb_plan_create.
 * current: with the load's layers (in the same order) and experts and the cluster's number of GPUs.
 *     It may have empty slots, experts twice on a GPU or nowhere, and GPUs that are dead in the
 *     cluster, or have other slots there; what is needed to make it valid is copied whatever the
 *     limits say. Closed slots (eplb/placement.h) are EPLB_ERROR_UNSUPPORTED.
 * planning: NULL for the defaults; not with groups, spread_nodes, a node_cost or
 *     EPLB_ALGORITHM_EPLB (EPLB_ERROR_UNSUPPORTED). A refiner takes part in the plan from nothing,
 *     during which progress is called with no layer done.
 *     Where no way is found to mend the current placement so that it keeps the limits of replicas
 *     and the pins, the layer gets the plan from nothing, whatever that copies.
 * rebalancing: NULL for the defaults.
 *
 * The result is an eplb_plan whose placement is never worse in a layer than the current one, where
 * that is valid; a layer without load keeps its placement. The same load again, from the plan's own
 * result, copies nothing, but where a limit of copies ended the search.
 *
 * Errors: as for eplb_plan_create, and those of a finder. Cost: a plan from nothing, and for each
 * layer and number of copies some 0.2 ms at the default effort for 288 slots and one scenario (see
 * the benchmark); then what a finder takes, once a layer, and again where the target was not
 * reached.
 */
EPLB_API eplb_status eplb_rebalance_create(eplb_plan **out, const eplb_hooks *hooks,
                                           const eplb_load *load, const eplb_cluster *cluster,
                                           const eplb_placement *current,
                                           const eplb_plan_options *planning,
                                           const eplb_rebalance_options *rebalancing,
                                           eplb_error *error);

/* Copies results out, at most struct_size bytes of them. EPLB_ERROR_ARGUMENT for a plan that
 * eplb_rebalance_create did not make. */
EPLB_API eplb_status eplb_plan_get_rebalance(const eplb_plan *plan, eplb_rebalance_info *info,
                                             eplb_error *error);
EPLB_API eplb_status eplb_plan_get_rebalance_layer(const eplb_plan *plan, int32_t layer,
                                                   eplb_rebalance_layer *result, eplb_error *error);

/*
 * What other numbers of copies would have given: points with rising copies and falling imbalance,
 * the first with the copies that are required, or fewer. layer: its index, or -1 for the mean over
 * the scored layers, when all copies go where they gain most. Writes the first `capacity` points
 * (points may be NULL when that is 0); `count` gets how many there are. The curve ends where the
 * search ended; the plan from nothing is on it only where nothing else needs as few copies.
 */
EPLB_API eplb_status eplb_plan_get_curve(const eplb_plan *plan, int32_t layer,
                                         eplb_curve_point *points, int32_t capacity, int32_t *count,
                                         eplb_error *error);

/*
 * The knee of a curve: its first point from which on at most a tenth of all that the curve gains is
 * left to gain, or less than 0.005. -1 for an empty curve.
 */
EPLB_API int32_t eplb_curve_knee(const eplb_curve_point *points, int32_t count);

EPLB_END_DECLS

#endif
