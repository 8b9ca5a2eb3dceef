/* SPDX-License-Identifier: MIT */
/*
 * MindIE's files of one phase, one for each rank: lines of numbers without a header, which are the
 * columns of that rank's experts. They are read side by side, and their lines joined.
 */
#ifndef EPLB_FORMAT_MINDIE_RANKS_H
#define EPLB_FORMAT_MINDIE_RANKS_H

#include "format/format.h"
#include "format/scanner.h"

typedef struct eplb_mindie_file {
    eplb_reading reading;
    eplb_scanner scanner;
} eplb_mindie_file;

typedef struct eplb_mindie_ranks {
    const eplb_reading *directory;
    eplb_mindie_file *files; /* [count], of ranks 0, 1, ... */
    int32_t count;
    int32_t columns;         /* of each file; 0 until the first line of the first one was read */
    int64_t rows;            /* that were read */
    eplb_counts_buffer row;  /* the last one */
    bool is_cumulative;      /* numbers are sums since the beginning */
    eplb_counts_buffer sums; /* the last ones of each layer, as they come in an iteration */
    int32_t sum;             /* the next one of them */
} eplb_mindie_ranks;

/* Whether a name is that of a rank's counts in a phase, "prefill" or "decode". */
bool eplb_mindie_rank_of(const char *name, const char *phase, int32_t *rank);

/* Makes sure that no rank of a phase is missing or there twice. */
eplb_status eplb_mindie_ranks_check(const eplb_reading *directory, const char *phase,
                                    eplb_error *error);

/* Opens the files of a phase; `directory` must outlive them. *ranks starts as zeros, but for
 * is_cumulative, and is to be closed even on failure. */
eplb_status eplb_mindie_ranks_open(eplb_mindie_ranks *ranks, const eplb_reading *directory,
                                   const char *phase, eplb_error *error);
void eplb_mindie_ranks_close(eplb_mindie_ranks *ranks);

/* Reads the next line of each file into ranks->row; `step` and `layer` are what errors name, and a
 * layer 0 begins an iteration. EPLB_END when all files end. */
eplb_status eplb_mindie_ranks_next(eplb_mindie_ranks *ranks, int64_t step, int32_t layer,
                                   eplb_error *error);

#endif
