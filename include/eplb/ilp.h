/* SPDX-License-Identifier: MIT */
/*
 * Exact optimisation with GLPK: placements of small layers with a proof, better placements and
 * bounds of large ones. This is libeplb-ilp (pkg-config eplb-ilp); it needs libeplb. GLPK is under
 * the GPL, version 3 or later, so a program that links this library is as a whole, too.
 *
 * Work is counted in nodes and iterations, never in time: results depend on the input and the
 * options only. Whatever happens inside GLPK - out of memory, numerical trouble, a failed
 * assertion - the caller gets back what it started from. GLPK problems of the host are not touched,
 * and nothing is printed.
 *
 * Threads: each solve runs on a thread of its own, which is joined before the call returns. An
 * eplb_ilp is read-only once made and may serve several callers at once.
 */
#ifndef EPLB_ILP_H
#define EPLB_ILP_H

#include <stdint.h>

#include <eplb/fewest.h>
#include <eplb/hooks.h>
#include <eplb/placement.h>
#include <eplb/refine.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef enum eplb_ilp_mode {
    EPLB_ILP_AUTO = 0, /* only layers that a proof is likely for within the budget */
    EPLB_ILP_ON = 1,   /* every layer: proofs, larger bounds, better placements of parts */
} eplb_ilp_mode;

typedef struct eplb_ilp_options {
    uint32_t struct_size; /* sizeof(eplb_ilp_options), written by eplb_ilp_options_init */
    int32_t mode;         /* an eplb_ilp_mode; default EPLB_ILP_AUTO */

    /* Nodes of all search trees of a layer, >= 0; -1: no limit. Default 5,000,000, of 95 to
     * 470 ns for those of own searches, up to 2 us with many experts or scenarios, and up to
     * milliseconds, which count as many, for GLPK's. With EPLB_ILP_ON the bound of a layer with two
     * slots on each GPU and one scenario is looked for in any case; what that takes is counted,
     * too, and may be more than the limit: some 10 s for 1024 experts on 575 GPUs. */
    int64_t nodes;

    /* Memory that GLPK may take in one solve, in bytes, >= 0; -1: no limit. Default 1 GiB. */
    int64_t memory_bytes;
} eplb_ilp_options;

/* Writes the defaults. */
EPLB_API void eplb_ilp_options_init(eplb_ilp_options *options);

typedef struct eplb_ilp eplb_ilp;

/* options: NULL for the defaults. EPLB_ERROR_ARGUMENT for options out of range. */
EPLB_API eplb_status eplb_ilp_create(eplb_ilp **out, const eplb_hooks *hooks,
                                     const eplb_ilp_options *options, eplb_error *error);

/* Frees it and sets the pointer to NULL. */
EPLB_API void eplb_ilp_destroy(eplb_ilp **ilp);

/* For eplb_plan_options.refiner. Valid as long as the eplb_ilp. */
EPLB_API const eplb_refiner *eplb_ilp_refiner(const eplb_ilp *ilp);

/*
 * Finds a valid placement of one layer that reaches a target with as few copies as it can, and says
 * what is proven. Where no placement reaches the target, or none is found, the placement is the one
 * with the least imbalance that was found, with as few copies as that takes.
 *
 * `out` gets a placement of one row in the cluster's shape, with the load's layer id, which is the
 * caller's. An expert that stays on its GPU keeps its slot where the GPU still has that slot.
 *
 * Small layers (experts x GPUs up to 1024, up to 64 of each) are searched through: first for the
 * best balance, where the target is not reached yet; then for a placement without copies, with one,
 * two and so on, until one is found. Half of the nodes are for that. Of larger ones, and where
 * there is no proof by then, a few GPUs at a time are arranged anew by GLPK, with at most 250
 * binary variables; larger layers get no proof but by chance, when a placement meets the simple
 * bounds. The eplb_ilp's nodes and memory_bytes are the limits; its mode does not matter here.
 *
 * The result depends on the task and the options only, unless stop() says yes.
 *
 * Errors: EPLB_ERROR_INFEASIBLE when the slots do not hold the experts; EPLB_ERROR_ARGUMENT for
 * what does not match or is out of range; EPLB_ERROR_DATA for a start that is not valid;
 * EPLB_ERROR_OVERFLOW when scenarios are to be summed and the sum is not finite. On failure `out`
 * is NULL and `result` unchanged.
 */
EPLB_API eplb_status eplb_ilp_fewest_copies(const eplb_ilp *ilp, eplb_placement **out,
                                            const eplb_fewest_task *task,
                                            eplb_fewest_result *result, eplb_error *error);

/* For eplb_rebalance_options.fewest: eplb_ilp_fewest_copies. Valid as long as the eplb_ilp. */
EPLB_API const eplb_fewest_finder *eplb_ilp_fewest_finder(const eplb_ilp *ilp);

/*
 * As eplb_shares_best (eplb/shares.h), by a linear program: weights [slots] that make the largest
 * GPU load of one layer smallest, `largest`: that load, and `bound`, which no weights fall short
 * of: the program's dual, recomputed outside GLPK. They differ by 1e-9 of them at most, but where
 * GLPK gives up: then weights are even or the bound is the mean GPU load. For checks and for bounds
 * with a proof; eplb_shares_best is a hundred times faster.
 */
EPLB_API eplb_status eplb_ilp_shares(const eplb_ilp *ilp, const eplb_placement *placement,
                                     int32_t layer, const double *expert_loads, double *weights,
                                     double *largest, double *bound, eplb_error *error);

EPLB_END_DECLS

#endif
