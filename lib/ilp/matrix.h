/* SPDX-License-Identifier: MIT */
/* A model's entries sorted by rows, and what values are worth in own arithmetic. */
#ifndef EPLB_ILP_MATRIX_H
#define EPLB_ILP_MATRIX_H

#include "ilp/model.h"

typedef struct eplb_ilp_matrix {
    int32_t *start;  /* [rows + 1] row i has the places start[i] + 1..start[i + 1] */
    int32_t *column; /* [entries + 1] from 1, as GLPK counts columns; place 0 is not used */
    double *value;   /* [entries + 1] */
} eplb_ilp_matrix;

/*
 * EPLB_ERROR_ARGUMENT for what is no model: a number that is NaN, a cost or entry that is infinite,
 * a row or column that does not exist, two entries in one place. To be freed after a failure, too.
 */
eplb_status eplb_ilp_matrix_init(eplb_ilp_matrix *matrix, const eplb_ilp_model *model,
                                 eplb_error *error);
void eplb_ilp_matrix_free(eplb_ilp_matrix *matrix, const eplb_hooks *hooks);

/*
 * Whether values [columns] satisfy rows, bounds and integrality but for `tolerance`, relative to
 * the largest term of a row where that is above 1. If so integer columns are rounded, and all are
 * brought within their bounds.
 */
bool eplb_ilp_accept(const eplb_ilp_model *model, const eplb_ilp_matrix *matrix, double tolerance,
                     double *values);

/* A column's bounds; of an integer column the outermost integers within them. */
double eplb_ilp_lower(const eplb_ilp_column *column);
double eplb_ilp_upper(const eplb_ilp_column *column);

double eplb_ilp_objective(const eplb_ilp_model *model, const double *values);

#endif
