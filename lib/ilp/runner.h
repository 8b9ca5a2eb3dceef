/* SPDX-License-Identifier: MIT */
/*
 * One solve by GLPK, on a thread of its own with a GLPK environment of its own, so that whatever
 * happens inside ends there: the caller always gets an outcome, and the process lives. GLPK
 * problems and hooks of the host are not touched, nothing is printed, and the thread takes no
 * signals.
 */
#ifndef EPLB_ILP_RUNNER_H
#define EPLB_ILP_RUNNER_H

#include "ilp/model.h"

typedef enum eplb_ilp_outcome {
    EPLB_ILP_OPTIMAL = 0,
    EPLB_ILP_INFEASIBLE = 1, /* no values satisfy all rows and bounds; the bound is INFINITY */
    EPLB_ILP_UNBOUNDED = 2, /* the objective has no minimum, with integer columns taken as others */
    EPLB_ILP_LIMIT = 3,     /* a limit was reached first, or enough */
    EPLB_ILP_STOPPED = 4,   /* stop() said so */
    EPLB_ILP_FAILED = 5, /* GLPK gave up: memory, numerical trouble, an assertion; or no thread */
} eplb_ilp_outcome;

typedef struct eplb_ilp_limits {
    int64_t nodes; /* of branch and bound, >= 0; -1: no limit. With 0 there is only the relaxation's
                    * bound */
    int64_t iterations;   /* of the simplex method for the root, >= 0; -1: no limit */
    int64_t memory_bytes; /* that GLPK may take, >= 0, in whole MiB: below one GLPK does not even
                           * start and has failed; -1: no limit */

    /* Ends when a solution with at most this objective is known; -INFINITY: never. */
    double enough;

    /* Asked at first and every some milliseconds, counted in iterations, on the thread that called;
     * non-zero is yes. NULL: never. */
    int (*stop)(void *stop_context);
    void *stop_context;
} eplb_ilp_limits;

/* Writes: no limit, never enough, no stop. */
void eplb_ilp_limits_init(eplb_ilp_limits *limits);

/* Values satisfy rows and bounds but for this, relative to a row's largest term above 1. */
#define EPLB_ILP_TOLERANCE 1e-7

/* A bound that GLPK has proven with its tolerances is lowered by this, relative to 1 + its
 * magnitude. */
#define EPLB_ILP_MARGIN 1e-6

#define EPLB_ILP_REASON_SIZE 128

/* Arrays are the caller's. */
typedef struct eplb_ilp_solution {
    double *values; /* [columns] in: what to start from, when has_values; out: the best known */

    /* [rows] out: of a program without integer columns solved to optimality, how much the objective
     * changes for each unit that the row's bounds move up: >= 0 where the lower bound holds the
     * row, <= 0 where the upper one does, but for 1e-9. Else zeros. NULL: not wanted. */
    double *duals;
    bool has_values;
    eplb_ilp_outcome outcome;
    double objective;   /* of the values, where has_values; summed in the order of the columns */
    double bound;       /* no values have a smaller objective; -INFINITY: nothing is known. Not an
                         * exact proof: GLPK computes with tolerances, for which a margin of
                         * EPLB_ILP_MARGIN is taken off */
    int64_t nodes;      /* of branch and bound that were looked at */
    int64_t iterations; /* of the simplex method */
    char reason[EPLB_ILP_REASON_SIZE]; /* of EPLB_ILP_FAILED, in words; else empty */
} eplb_ilp_solution;

/*
 * Minimises. Values to start from that satisfy rows, bounds and integrality but for 1e-9 are never
 * given up but for better ones; others are ignored, and then has_values says whether any were
 * found. Values that come back satisfy rows and bounds, recomputed outside GLPK, but for
 * EPLB_ILP_TOLERANCE; integer columns are rounded to integers before that check. Bounds of integer
 * columns are brought to integers, inwards. A row or column whose lower bound is above the upper
 * one makes the program infeasible.
 *
 * Whatever goes wrong inside GLPK is an outcome. The call fails without memory of its own, and with
 * EPLB_ERROR_ARGUMENT for what is no model: numbers that are NaN, infinite costs or entries, rows
 * or columns that do not exist, two entries in one place.
 *
 * Same model, start and limits give the same result, as long as stop() does not interfere.
 */
eplb_status eplb_ilp_solve(const eplb_ilp_model *model, const eplb_ilp_limits *limits,
                           eplb_ilp_solution *solution, eplb_error *error);

#endif
