/* SPDX-License-Identifier: MIT */
/* Files that are read together are of one model. */
#ifndef EPLB_FORMAT_ONE_MODEL_H
#define EPLB_FORMAT_ONE_MODEL_H

#include "format/format.h"

/* The length of all rows of formats with full rows. Starts as zeros. */
typedef struct eplb_row_width {
    int32_t width;    /* 0: no such row yet */
    const char *path; /* where it was first seen; borrowed */
} eplb_row_width;

/* EPLB_ERROR_DATA for a row of another length than those before. */
eplb_status eplb_row_width_check(eplb_row_width *width, const char *path, const eplb_format *format,
                                 const eplb_counts_row *row, eplb_error *error);

/* The error of a file that lacks what another one has, such as "layer". `step` is where, or -1. */
eplb_status eplb_file_lacks(const char *path, const char *other, int64_t step, const char *what,
                            int64_t number, eplb_error *error);

#endif
