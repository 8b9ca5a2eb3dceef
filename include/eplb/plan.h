/* SPDX-License-Identifier: MIT */
/*
 * Planning: from loads and a cluster to a placement that keeps the busiest GPU of every layer as
 * idle as possible. For each layer the planner chooses how many replicas each expert gets (at least
 * one, at most one on each live GPU, all slots filled) and where each replica sits, and reports a
 * lower bound that no placement can beat.
 *
 * The result is a function of the load, the cluster, the current placement and the options only:
 * not of the number of threads, the compiler or the clock. Equal choices go to the smaller expert
 * id, then to the smaller GPU.
 *
 * Threads: a call reads its inputs and may run at the same time as other calls on the same inputs.
 * It starts options.threads - 1 threads of its own and joins them before it returns. A finished
 * plan is read-only.
 */
#ifndef EPLB_PLAN_H
#define EPLB_PLAN_H

#include <stdint.h>

#include <eplb/cluster.h>
#include <eplb/hooks.h>
#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/refine.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef enum eplb_algorithm {
    /* Replica counts by Adams' method, packing largest first, then local search on placement and
     * counts together. */
    EPLB_ALGORITHM_SEARCH = 0,
    /* The classical algorithm of deepseek-ai/EPLB, for comparison. It may put two replicas of an
     * expert on one GPU; the plan is then marked invalid (see eplb_plan_info.valid). */
    EPLB_ALGORITHM_EPLB = 1,
} eplb_algorithm;

/* What a plan for several scenarios makes small in each layer. A scenario's imbalance is the
 * largest GPU load / the mean load of the live GPUs in that scenario; scenarios in which the layer
 * has no load do not count in it. With one scenario all are the same. */
typedef enum eplb_objective {
    EPLB_OBJECTIVE_MEAN_OF_MAX = 0, /* the mean of the scenarios' imbalances, by their weights */
    EPLB_OBJECTIVE_MAX_OF_MAX = 1,  /* the largest of them; weights do not matter */
    EPLB_OBJECTIVE_SUM = 2, /* the imbalance of the sum of loads, each scaled by its weight: the
                             * classical way, which serves the mix and not its parts */
} eplb_objective;

/* The name that files and the command use, such as "mean-of-max". A static string. */
EPLB_API const char *eplb_objective_name(eplb_objective objective);

/* Why a layer's search, or the whole plan's, ended. A plan's value is the last in this list that
 * any of its layers has. */
typedef enum eplb_stop {
    EPLB_STOP_OPTIMAL = 0,       /* the placement meets its lower bound: nothing can be better */
    EPLB_STOP_LOCAL_OPTIMUM = 1, /* no move that the algorithm knows improves it */
    EPLB_STOP_EFFORT = 2,        /* within the effort level's tolerance, or its budget is used up */
    EPLB_STOP_COPIES = 3,    /* no further copies: they are limited, or cost more than they gain */
    EPLB_STOP_CANCELLED = 4, /* the progress callback asked to stop before it was done */
} eplb_stop;

/* The name that files and the command use, such as "local_optimum". A static string. */
EPLB_API const char *eplb_stop_name(eplb_stop stop);

/* A replica that must be in the plan: an expert that must stay where it is, or with gpu -1 a shared
 * expert that every GPU has. */
typedef struct eplb_pin {
    int32_t layer; /* its index in the load; -1: every layer */
    int32_t expert;
    int32_t gpu;      /* -1: every live GPU */
    int32_t reserved; /* 0 */
} eplb_pin;

typedef struct eplb_plan_options {
    uint32_t struct_size; /* sizeof(eplb_plan_options), written by eplb_plan_options_init */
    int32_t algorithm;    /* an eplb_algorithm; default EPLB_ALGORITHM_SEARCH */

    /* 1 (greedy and swaps) .. 9; default 5. Counted work, never time. One load: a layer that is not
     * good enough by then is searched for up to 40,000 moves of some 50 ns at level 5, half or
     * twice as many for each level below or above. Several scenarios: 60 moves at level 5 for each
     * slot and each sixteenth of a GPU, of some 40 ns for nine scenarios; 10, 20 and 40 at levels 2
     * to 4; 240, 720, 2200 and 6600 at levels 6 to 9. */
    int32_t effort;
    int32_t threads; /* threads that plan layers, >= 1; default 1 */

    /* Keep all replicas of each of `groups` equal runs of expert ids on one node, as the cluster's
     * nodes say (the hierarchy of deepseek-ai/EPLB). Needs live GPUs with equally many slots on
     * equal nodes in order, and groups that share out evenly (EPLB_ERROR_UNSUPPORTED,
     * EPLB_ERROR_INFEASIBLE); not with limits of replicas, pins, spread_nodes or node_cost. It
     * costs balance: the busiest node's mean is a floor. 1 (default): no groups, replicas may be
     * anywhere. */
    int32_t groups;
    int32_t objective; /* an eplb_objective; default EPLB_OBJECTIVE_MEAN_OF_MAX */

    /* Called from the calling thread while layers are planned, with the number of layers done, and
     * at last with all of them; also, with a refiner, while one is refined. Non-zero stops the
     * search: the call succeeds, with EPLB_STOP_CANCELLED and the greedy placement for the layers
     * not yet planned, or that of the search for those not yet refined. NULL (default): none. */
    int (*progress)(void *progress_context, int32_t layers_done, int32_t layers);
    void *progress_context;

    /* Rules beyond validity; not for EPLB_ALGORITHM_EPLB. */
    int32_t min_replicas; /* of each expert, so that a GPU may fail; >= 1, default 1 */
    int32_t max_replicas; /* of each expert, >= 1, or -1 (default): one on each live GPU */

    /* 1: an expert's replicas go to different nodes first: no node keeps a second one while another
     * that has none could get it in exchange, without a pin in the way or another expert's replicas
     * being less spread. Default 0. */
    int32_t spread_nodes;
    int32_t pin_count;    /* default 0 */
    const eplb_pin *pins; /* [pin_count], borrowed for the call */

    /* Price of a token that leaves its node (see eplb_placement_cross_node), in units of the work
     * that an expert does for a token; finite, at most EPLB_MAX_NODE_COST. From 0 on each layer has
     * a few choices, from the best balance to less traffic, and gets the one with the least
     * imbalance + node_cost * share of tokens that leave; see eplb_node_choice. -1 (default):
     * traffic does not matter. Not for EPLB_ALGORITHM_EPLB. */
    double node_cost;

    /* What takes over after the search, such as eplb_ilp_refiner; borrowed for the call. NULL
     * (default): nothing. Its placements count only where they are valid and better. Not for
     * EPLB_ALGORITHM_EPLB, nor with groups, spread_nodes or a node_cost. */
    const eplb_refiner *refiner;

    /* How many of the last layers are the draft model's, 0..layers - 1, for the placement to say
     * (see eplb_placement_set_draft_layers); they are planned like the others. With a current
     * placement it must be the number that this has. -1 (default): that number, 0 without one. */
    int32_t draft_layers;
} eplb_plan_options;

#define EPLB_MAX_NODE_COST 1e9

/* Writes the defaults. */
EPLB_API void eplb_plan_options_init(eplb_plan_options *options);

/* One layer of a plan. Imbalances are largest GPU load / mean load of the live GPUs, and with
 * several scenarios the objective's mean or largest of them; eplb_placement_imbalance tells a
 * single one. */
typedef struct eplb_plan_layer {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layer_id;
    int32_t scored;          /* 0: the layer has no load; the imbalances and the bound are 0 */
    int32_t stop;            /* an eplb_stop */
    double imbalance_before; /* of the current placement; 0 without one, or where it lacks an
                              * expert that has load (eplb/rebalance.h) */
    double imbalance_after;
    double lower_bound; /* no placement that keeps the limits of replicas, the pins and the groups,
                         * with whatever counts, has a smaller imbalance; higher efforts look longer
                         * for a proof */
    int64_t copies;     /* (GPU, expert) pairs that the current placement lacks; 0 without one */
    int64_t moves;      /* local search moves looked at: the counted work */

    /* What imbalance_after and lower_bound would be without a refiner or a finder. */
    double imbalance_searched;
    double bound_searched;
    int64_t refine_nodes; /* of search trees that the refiner and the finder of a rebalance looked
                           * at */
} eplb_plan_layer;

/* The whole plan. Means and worst values are over the scored layers; 0 when there are none. Those
 * before are over layers in which they are known. */
typedef struct eplb_plan_info {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layers;
    int32_t scored_layers;
    int32_t has_current; /* 1 when a current placement was given */
    int32_t valid;       /* 1 when the placement passes eplb_placement_validate */
    int32_t stop;        /* an eplb_stop */
    double imbalance_before_mean;
    double imbalance_before_worst;
    double imbalance_after_mean;
    double imbalance_after_worst;
    double lower_bound_mean;
    int64_t copies;
    int64_t moves;
    double imbalance_searched_mean;
    double bound_searched_mean;
    int64_t refine_nodes;
} eplb_plan_info;

typedef struct eplb_plan eplb_plan;

/*
 * Plans one placement for all scenarios of the load.
 *
 * load: layers x experts; layer ids go over to the placement. A layer without any load keeps its
 *     current placement, or gets an even spread.
 * cluster: live GPUs get all their slots filled, dead ones nothing.
 * current: the placement in force, or NULL. It must be valid, but for empty slots and experts
 *     twice on a GPU, with the load's layers (in the same order: ids are not compared) and experts
 *     and the same number of GPUs. A layer whose current placement is as good as the one found, or
 *     within the effort's tolerance of its bound, keeps it; so a plan is never worse than what it
 *     starts from, and planning the same load again from its own result copies nothing. A layer
 *     cannot keep empty slots, second copies, slots or GPUs that the cluster does not have any
 * more, nor what breaks the rules or the groups of the options. With a node_cost the imbalance
 * counts with the price of traffic, and within the effort's tolerance of that of the placement
 * found is good enough. EPLB_ALGORITHM_EPLB plans every layer that has load afresh. options: NULL
 * for the defaults.
 *
 * Errors: EPLB_ERROR_INFEASIBLE when the slots do not hold the experts (the message names the
 * nearest number that does), or no way was found to keep the rules; EPLB_ERROR_DATA for an invalid
 * current placement; EPLB_ERROR_ARGUMENT for options out of range or shapes that do not match;
 * EPLB_ERROR_OVERFLOW when scenarios are to be summed and the sum is not finite.
 *
 * Cost at the default effort, one thread: see the benchmark; 58 layers of 256 experts on 32 GPUs
 * take a few milliseconds. Memory for each thread: some 60 bytes for each slot and expert and
 * GPUs * experts / 4 bytes, with two or three slots a GPU up to 800 bytes more for each expert, and
 * with several scenarios 24 bytes for each scenario and expert and 12 for each scenario and GPU;
 * once, 8 bytes for each layer and expert, and the result.
 */
EPLB_API eplb_status eplb_plan_create(eplb_plan **out, const eplb_hooks *hooks,
                                      const eplb_load *load, const eplb_cluster *cluster,
                                      const eplb_placement *current,
                                      const eplb_plan_options *options, eplb_error *error);

/* Frees the plan and sets the pointer to NULL. */
EPLB_API void eplb_plan_destroy(eplb_plan **plan);

/* The placement, valid as long as the plan; clone it to keep it. */
EPLB_API const eplb_placement *eplb_plan_placement(const eplb_plan *plan);

/* Copies results out, at most struct_size bytes of them. */
EPLB_API eplb_status eplb_plan_get_info(const eplb_plan *plan, eplb_plan_info *info,
                                        eplb_error *error);
EPLB_API eplb_status eplb_plan_get_layer(const eplb_plan *plan, int32_t layer,
                                         eplb_plan_layer *result, eplb_error *error);

/*
 * What traffic between nodes costs in balance: the choices that each layer had, in a plan with
 * options.node_cost >= 0. Choice 0 is the plan without a look at traffic. In choice 1 GPUs with
 * equally many slots have exchanged all that they hold, which changes no GPU's load. In each later
 * one single replicas have changed places as well, while every scenario's largest GPU load in the
 * layer stays within (1 + tolerance) of choice 0: 0.1 %, 0.5 %, 1 %, 2 %, 5 %. Replica
 * counts are the same in all; pinned replicas stay in their place. Moves are looked at until none
 * lowers the share any more, or 2^22 a layer and choice.
 */
#define EPLB_NODE_CHOICES 7

typedef struct eplb_node_choice {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t exchanges;    /* 0: the plan without a look at traffic */
    double tolerance;
    double imbalance_mean; /* over the scored layers, as in eplb_plan_info */
    double imbalance_worst;
    double cross_node; /* mean share of tokens that leave their node, by eplb_placement_traffic */
} eplb_node_choice;

/* Copies a choice out, at most struct_size bytes of it. EPLB_ERROR_ARGUMENT when `choice` is not in
 * 0..EPLB_NODE_CHOICES - 1 or the plan was made without a node_cost. */
EPLB_API eplb_status eplb_plan_get_node_choice(const eplb_plan *plan, int32_t choice,
                                               eplb_node_choice *result, eplb_error *error);

/*
 * Share of tokens that leave their node, of one layer of a placement (its row) under one layer of a
 * load: the mean over the scenarios by their weights, of eplb_placement_cross_node; with
 * EPLB_OBJECTIVE_SUM that of their sum. 0 when the layer has no load. Errors as for
 * eplb_placement_cross_node. Cost: O(scenarios * (slots + experts + GPUs)).
 */
EPLB_API eplb_status eplb_placement_traffic(const eplb_placement *placement, int32_t row,
                                            const eplb_load *load, int32_t layer,
                                            eplb_objective objective, double *share,
                                            eplb_error *error);

/*
 * What one layer of a placement (its row) is worth for one layer of a load: the objective that
 * plans make small, as in eplb_plan_layer. 0 when the layer has no load. Errors as for
 * eplb_placement_imbalance. Cost: O(scenarios * slots).
 */
EPLB_API eplb_status eplb_placement_objective(const eplb_placement *placement, int32_t row,
                                              const eplb_load *load, int32_t layer,
                                              eplb_objective objective, double *value,
                                              eplb_error *error);

/*
 * The same for an engine that can weight replicas (eplb/shares.h): each scenario has its own best
 * weights. Errors as for eplb_shares_best. Cost: that of eplb_shares_best for each scenario.
 */
EPLB_API eplb_status eplb_placement_weighted_objective(const eplb_placement *placement, int32_t row,
                                                       const eplb_load *load, int32_t layer,
                                                       eplb_objective objective, double *value,
                                                       eplb_error *error);

/*
 * Lower bound of one layer's imbalance: loads [experts] >= 0 on the live GPUs of a cluster, over
 * all replica counts and placements. The largest of: 1 (the mean load); the least T for which the
 * replicas that shares of at most T need, sum_e max(1, ceil(w_e / T)), fit the slots; the largest
 * expert load / the most replicas it can have; and where every live GPU has two slots, or every one
 * has three, the largest T that could be refuted as follows. A function f of shares that sums to at
 * most 0 over the shares of every GPU that keeps to T shows that T is out of reach when
 * sum_e min_c c (1 + f(w_e / c)) is more than the slots. Here f = -g on small shares, with a g in
 * 0..1 that falls as shares rise, and on large ones what the partners beside them pay at least:
 * with two slots f(x) = g(T - x) for x > T / 2; with three f(x) = min g(a) + g(b) over a + b <= T -
 * x for x > 3 T / 4, where g is 0 from T / 8 on. g is looked for in a counted number of steps,
 * which is some 10 ms for 256 experts; the proof has a margin of 1e-9 for rounding. 0 when there is
 * no load. Otherwise O(slots * log experts), and with unequal GPUs O((slots - experts) * (experts +
 * GPUs)).
 */
EPLB_API eplb_status eplb_lower_bound(const eplb_cluster *cluster, const double *expert_loads,
                                      int32_t experts, double *bound, eplb_error *error);

/*
 * Mends a placement that eplb_placement_validate refuses: removes second copies on a GPU and
 * replicas on dead GPUs, gives each missing expert a slot and fills empty slots, changing as few
 * slots as it can and preferring experts with much load per replica. `load` may be NULL (all
 * experts alike); several scenarios are summed. `changed` (may be NULL) gets the number of slots
 * changed. EPLB_ERROR_INFEASIBLE when the slots do not hold the experts.
 */
EPLB_API eplb_status eplb_placement_repair(eplb_placement *placement, const eplb_load *load,
                                           int64_t *changed, eplb_error *error);

EPLB_END_DECLS

#endif
