/* SPDX-License-Identifier: MIT */
/*
 * The fewest slots that keep two slots a GPU to a load, as a linear program over the options of
 * pair_options.h: choose one of each expert's, in parts, so that for each level the hot replicas on
 * it or above are no more than the replicas that fit beside it. Its duals are prices. For one slot
 * a replica without load can be had, which holds the prices to at most 1 and gives every program a
 * solution.
 *
 * Rows are experts and levels. The column of a level k is what h_k and above have too few partners,
 * and its row how that differs from the next level's: so an option has two entries and not one for
 * each level below its own. Experts with a single option left, and levels that none of the others
 * is on, are taken out beforehand, and little is left.
 */
#ifndef EPLB_ILP_PAIR_PROGRAM_H
#define EPLB_ILP_PAIR_PROGRAM_H

#include "ilp/ilp.h"
#include "ilp/pair_options.h"
#include "ilp/runner.h"

typedef struct eplb_pair_program {
    const eplb_ilp *ilp;
    eplb_pair_options options;
    uint8_t *excluded; /* [options] 1: not to be chosen */
    double *part;      /* [options] of the last program's solution */
    double *price;     /* [levels] */
    double *hot;       /* [last_levels] levels of the prices that are kept */
    double *last;      /* [last_levels] */
    int32_t last_levels;
    int64_t nodes; /* of own searches that took as long as GLPK so far */

    eplb_ilp_model model;
    int32_t *column;  /* [options] -1: left out */
    double *constant; /* [levels] hot replicas - those that fit, of experts that are taken out */
    int32_t *row;     /* [levels] -1: taken out */
    int32_t *jump;    /* [levels] of a level with a row: where, from it down to the next row, its
                       * price begins */
    int32_t nothing;  /* the column of replicas without load; -1: none */
    double *values;   /* [columns] */
    double *duals;    /* [rows] */
} eplb_pair_program;

/* For a task that eplb_pair_options_apply to. Free it in any case. */
eplb_status eplb_pair_program_init(eplb_pair_program *program, const eplb_ilp *ilp,
                                   const eplb_refine_task *task, eplb_error *error);
void eplb_pair_program_free(eplb_pair_program *program, const eplb_hooks *hooks);

/* Sets options for a load, none of them excluded, and prices by those that were kept last; false
 * when some expert has no option. */
bool eplb_pair_program_set(eplb_pair_program *program, double load);
void eplb_pair_program_keep_prices(eplb_pair_program *program);

/* The cost of the cheapest option of an expert that is not excluded; infinite without. */
double eplb_pair_program_least(const eplb_pair_program *program, int32_t expert);

/* The slots less what the cheapest options cost together. When it is negative, the prices prove
 * that no placement keeps to the load without options that are excluded. */
double eplb_pair_program_spare(const eplb_pair_program *program);
bool eplb_pair_program_is_refuted(const eplb_pair_program *program);

/* Solves the program of the options that cost at most `window` more than the cheapest of their
 * expert. `slots` gets its value, infinite when there is none; then the parts are of no use. */
eplb_status eplb_pair_program_solve(eplb_pair_program *program, double window, double *slots,
                                    eplb_error *error);

#endif
