/* SPDX-License-Identifier: MIT */
/* Files that are read together are of one model, and of different ranks. */
#ifndef EPLB_FORMAT_ONE_MODEL_H
#define EPLB_FORMAT_ONE_MODEL_H

#include "format/format.h"

/* The length of all rows of formats with full rows, and of the longest of formats with short ones.
 * Starts as zeros. */
typedef struct eplb_row_width {
    int32_t width;    /* 0: no such row yet */
    int32_t longest;  /* short row */
    const char *path; /* where they were first seen; borrowed */
    const char *longest_path;
} eplb_row_width;

/* EPLB_ERROR_DATA for a row of another length than those before, or a short row that is longer. */
eplb_status eplb_row_width_check(eplb_row_width *width, const char *path, const eplb_format *format,
                                 const eplb_counts_row *row, eplb_error *error);

/* The ranks of the files of a source. Starts as zeros. */
typedef struct eplb_ranks {
    int32_t known; /* files that say theirs */
    int32_t files;
    int32_t largest;
    const char *path;   /* of the first file that says its rank; borrowed */
    const char *silent; /* of the first one that does not */
    uint64_t *seen;     /* bits, [words] */
    size_t words;
} eplb_ranks;

/* Notes the rank of a file (-1: it does not say). EPLB_ERROR_DATA for one that another file of the
 * source has, too. */
eplb_status eplb_ranks_add(eplb_ranks *ranks, const eplb_hooks *hooks, const char *path,
                           int32_t rank, eplb_error *error);

/* When all files of the source are noted: EPLB_ERROR_DATA where ranks below the largest are
 * missing, or where files that say their rank are together with some that do not. */
eplb_status eplb_ranks_check(const eplb_ranks *ranks, eplb_error *error);

/* Warns on the log where the only file of a source says its rank: nothing shows whether there are
 * others. */
void eplb_ranks_warn(const eplb_ranks *ranks, const eplb_hooks *hooks);

/* Forgets all of them. */
void eplb_ranks_clear(eplb_ranks *ranks, const eplb_hooks *hooks);

/* The error of a file that lacks what another one has, such as "layer". `step` is where, or -1. */
eplb_status eplb_file_lacks(const char *path, const char *other, int64_t step, const char *what,
                            int64_t number, eplb_error *error);

#endif
