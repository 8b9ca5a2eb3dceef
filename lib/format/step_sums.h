/* SPDX-License-Identifier: MIT */
/* The rows of one step, summed over the files that it is in. */
#ifndef EPLB_FORMAT_STEP_SUMS_H
#define EPLB_FORMAT_STEP_SUMS_H

#include "format/format.h"

/* Starts as zeros, but for hooks and experts. */
typedef struct eplb_step_sums {
    eplb_hooks hooks;
    int32_t rows;
    int32_t experts;    /* of each row; grows with the longest */
    int32_t *layer_ids; /* [rows], ascending */
    int32_t *last_file; /* [rows], the file that last added to each */
    double *counts;     /* [rows][experts] */
    int32_t row_room;
    size_t count_room;
} eplb_step_sums;

/* Begins the next step: no rows. */
void eplb_step_sums_begin(eplb_step_sums *sums);

/* Adds a row of a file. *is_new: the step had no row of this layer. */
eplb_status eplb_step_sums_add(eplb_step_sums *sums, int32_t file, const eplb_counts_row *row,
                               bool *is_new, eplb_error *error);

/* The layer id of the first row to which this file added nothing; -1: there is none. */
int32_t eplb_step_sums_lacking(const eplb_step_sums *sums, int32_t file);

void eplb_step_sums_clear(eplb_step_sums *sums);

#endif
