/* SPDX-License-Identifier: MIT */
/*
 * Fewest copies: from the placement in force to one that is balanced well enough.
 *
 * A copy writes one expert's weights to a GPU that does not hold that expert now: a pair (GPU,
 * expert) that the current placement lacks, as eplb_placement_copies counts. Bringing an expert
 * back home is free, and so is renaming slots inside a GPU. All experts of a layer have equally
 * many bytes, so the fewest copies are the fewest bytes.
 *
 * Finders are what a rebalance may ask for them (eplb/rebalance.h). The exact optimisation of
 * libeplb-ilp is one (eplb/ilp.h); a host can bring its own. libeplb checks, counts and scores what
 * a finder returns by itself and keeps only what is valid and better. What it proves - that the
 * target is impossible, that no placement has fewer copies or a smaller imbalance - is believed.
 */
#ifndef EPLB_FEWEST_H
#define EPLB_FEWEST_H

#include <stdint.h>

#include <eplb/cluster.h>
#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/plan.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef enum eplb_fewest_verdict {
    EPLB_FEWEST_PROVEN = 0,      /* the target is reached, and never with fewer copies */
    EPLB_FEWEST_REACHED = 1,     /* it is reached; whether with fewer copies is not known */
    EPLB_FEWEST_IMPOSSIBLE = 2,  /* no valid placement reaches it */
    EPLB_FEWEST_NOT_REACHED = 3, /* none was found, and none was ruled out */
} eplb_fewest_verdict;

/* The name that reports use, such as "proven". A static string. */
EPLB_API const char *eplb_fewest_verdict_name(eplb_fewest_verdict verdict);

typedef struct eplb_fewest_task {
    uint32_t struct_size; /* sizeof(eplb_fewest_task), written by eplb_fewest_task_init */
    int32_t objective;    /* an eplb_objective; default EPLB_OBJECTIVE_MEAN_OF_MAX */

    /* Largest objective that will do, as eplb_placement_objective measures it, and 1e-12 of it more
     * for rounding; finite, >= 1. Default 1: perfect balance. A layer without load has it anyway.
     */
    double target;

    /* The placement in force: one row of it. It may have empty slots, experts twice on a GPU or
     * nowhere, GPUs that are dead in `cluster`, and other numbers of slots. */
    const eplb_placement *current;
    int32_t current_row;

    int32_t layer; /* the layer's index in `load` */
    const eplb_load *load;

    /* Where the experts shall be: as many GPUs as `current` has; live ones get all their slots
     * filled, dead ones nothing. */
    const eplb_cluster *cluster;

    /* A valid placement of the layer in that cluster to begin with, such as a plan with few copies;
     * the result is never worse. NULL (default): a plan is made where the current placement does
     * not do. */
    const eplb_placement *start;
    int32_t start_row;

    /* Asked whether to stop, from the calling thread: non-zero is yes, and the best so far is
     * returned. NULL (default): never. */
    int (*stop)(void *stop_context);
    void *stop_context;
} eplb_fewest_task;

/* Writes the defaults; current, load and cluster are to be set. */
EPLB_API void eplb_fewest_task_init(eplb_fewest_task *task);

typedef struct eplb_fewest_result {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t verdict;      /* an eplb_fewest_verdict */

    /* An eplb_stop: EPLB_STOP_OPTIMAL when there is nothing left to find or to prove,
     * EPLB_STOP_LOCAL_OPTIMUM when no neighbourhood has fewer copies, EPLB_STOP_EFFORT when the
     * nodes are used up, EPLB_STOP_CANCELLED when stop() said so. */
    int32_t stop;
    int32_t reserved; /* 0 */
    int64_t copies;   /* that the placement needs */

    /* No placement that reaches the target has fewer copies. Where none reaches it: none with this
     * placement's imbalance. */
    int64_t copies_at_least;
    double imbalance; /* the objective of the placement; 0 for a layer without load */

    /* No placement has a smaller one, whatever it copies; it equals `imbalance` but for rounding
     * where the best reachable is known. Not looked for where the target is reached at once: 1. */
    double imbalance_at_least;
    int64_t nodes; /* of search trees that were looked at, as eplb_ilp_options.nodes counts */
} eplb_fewest_result;

/*
 * `find` gives a valid placement of one row in the task's cluster, which is then the caller's, and
 * what is proven about the layer; see eplb_ilp_fewest_copies. Rebalances call it from the thread
 * that called them, one layer after another. A failure ends the rebalance: only what no placement
 * can do anything about, such as no memory, is one.
 */
typedef struct eplb_fewest_finder {
    uint32_t struct_size; /* sizeof(eplb_fewest_finder) */
    eplb_status (*find)(void *context, eplb_placement **out, const eplb_fewest_task *task,
                        eplb_fewest_result *result, eplb_error *error);
    void *context;
} eplb_fewest_finder;

EPLB_END_DECLS

#endif
