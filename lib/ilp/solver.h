/* SPDX-License-Identifier: MIT */
/* What a solve does with GLPK on its own thread. All memory it writes to is the caller's. */
#ifndef EPLB_ILP_SOLVER_H
#define EPLB_ILP_SOLVER_H

#include <setjmp.h>

#include "ilp/matrix.h"
#include "ilp/runner.h"

typedef struct eplb_ilp_solver {
    const eplb_ilp_model *model;
    const eplb_ilp_matrix *matrix;
    eplb_ilp_limits limits; /* may be asked on the solver's thread */
    double *best;           /* [columns] where has_best: the best values known, accepted */
    double *found;          /* [columns] what GLPK has found */
    double *start;          /* [columns + 1] from 1: the first best values, as GLPK wants them */
    double *duals;          /* [rows] or NULL */
    bool has_best;
    bool has_integers;
    bool has_offered;         /* GLPK has been told where to start */
    eplb_ilp_outcome outcome; /* EPLB_ILP_OPTIMAL as long as nothing else is known */
    double objective;         /* of the best values */
    double bound;
    double found_objective; /* of GLPK's best integer values; INFINITY: none so far */
    int64_t nodes;
    int64_t iterations;
    int64_t asked_at; /* iterations and nodes at the last question whether to stop */
    char reason[EPLB_ILP_REASON_SIZE];
    jmp_buf escape; /* where GLPK's errors lead */
} eplb_ilp_solver;

/* Solves; the calling thread must have no GLPK environment, and has none afterwards. */
void eplb_ilp_solver_run(eplb_ilp_solver *solver);

#endif
