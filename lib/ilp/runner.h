/* SPDX-License-Identifier: MIT */
/*
 * One solve by GLPK, on a thread of its own with a GLPK environment of its own, so that whatever
 * happens inside ends there: the caller always gets an outcome, and the process lives.
 */
#ifndef EPLB_ILP_RUNNER_H
#define EPLB_ILP_RUNNER_H

#include "ilp/model.h"

typedef enum eplb_ilp_outcome {
    EPLB_ILP_OPTIMAL = 0,
    EPLB_ILP_INFEASIBLE = 1, /* no values satisfy all rows and bounds */
    EPLB_ILP_UNBOUNDED = 2,
    EPLB_ILP_LIMIT = 3,   /* a limit was reached first */
    EPLB_ILP_STOPPED = 4, /* stop() said so */
    EPLB_ILP_FAILED = 5,  /* GLPK gave up: memory, numerical trouble, an assertion; or no thread */
} eplb_ilp_outcome;

typedef struct eplb_ilp_limits {
    int64_t nodes;        /* of branch and bound, >= 0; -1: no limit */
    int64_t iterations;   /* of the simplex method for the root, >= 0; -1: no limit */
    int64_t memory_bytes; /* that GLPK may take, >= 0; -1: no limit */

    /* Ends when a solution with at most this objective is known; -INFINITY: never. */
    double enough;

    /* Asked every some milliseconds, on the solving thread; non-zero is yes. NULL: never. */
    int (*stop)(void *stop_context);
    void *stop_context;
} eplb_ilp_limits;

/* Writes: no limit, never enough, no stop. */
void eplb_ilp_limits_init(eplb_ilp_limits *limits);

/* Arrays are the caller's. */
typedef struct eplb_ilp_solution {
    double *values; /* [columns] in: what to start from, when has_values; out: the best known */
    double *duals;  /* [rows] out: of a program without integer columns solved to optimality, the
                     * change of the objective for each unit of the row; NULL: not wanted */
    bool has_values;
    eplb_ilp_outcome outcome;
    double objective;   /* of the values, where has_values */
    double bound;       /* no values have a smaller objective; -INFINITY: nothing is known */
    int64_t nodes;      /* of branch and bound that were looked at */
    int64_t iterations; /* of the simplex method */
    char reason[128];   /* of EPLB_ILP_FAILED, in words; else empty */
} eplb_ilp_solution;

/*
 * Minimises. Values to start from that satisfy rows and bounds but for 1e-9 are never given up but
 * for better ones; others are ignored. Values that come back satisfy rows and bounds, recomputed
 * outside GLPK, but for 1e-7, and integer columns are rounded to integers before that check.
 * Whatever goes wrong inside GLPK is an outcome; the call fails only without memory of its own.
 */
eplb_status eplb_ilp_solve(const eplb_ilp_model *model, const eplb_ilp_limits *limits,
                           eplb_ilp_solution *solution, eplb_error *error);

#endif
