/* SPDX-License-Identifier: MIT */
/*
 * Files of all-to-all wait times (see eplb/waits.h for what a wait is): CSV with the header
 * `step,layer,rank,wait_us`. This is part of libeplb-format.
 *
 * Columns may be in any order, and `step` may be missing. Each line is one sample; lines of the
 * same step, layer and rank are several samples: a step may have several all-to-alls. `layer` is an
 * id of the file's own numbering, `wait_us` microseconds, 0..EPLB_MAX_WAIT_US, with or without a
 * fraction. Lines end with \n or \r\n; a UTF-8 byte order mark is skipped; blank lines may only end
 * the file.
 *
 * The file is opened read-only and read once, front to back ("-" is standard input). Errors name
 * the file, the line and the wrong value, such as `waits.csv:17: layer 3: rank 9: wait_us -4.5 is
 * negative`.
 *
 * Threads: a reader belongs to one thread at a time.
 */
#ifndef EPLB_WAITS_FILE_H
#define EPLB_WAITS_FILE_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>
#include <eplb/waits.h>

EPLB_BEGIN_DECLS

typedef struct eplb_waits_read_options {
    uint32_t struct_size; /* sizeof(eplb_waits_read_options), written by its _init */

    /* Ranks that there are, up to EPLB_MAX_RANKS; a larger rank is EPLB_ERROR_DATA. 0 (default):
     * one more than the largest in the file, so that a missing last rank is not seen. */
    int32_t ranks;

    /* Limits, each >= 1; beyond them reading fails with EPLB_ERROR_LIMIT. */
    int32_t max_layers; /* layer ids are below it; default 1024 */
    int32_t max_ranks;  /* ranks are below it; default 4096; without effect when ranks is set */
} eplb_waits_read_options;

/* Writes the defaults. */
EPLB_API void eplb_waits_read_options_init(eplb_waits_read_options *options);

/* One line, as eplb_waits_next hands it out. */
typedef struct eplb_waits_row {
    int64_t step; /* >= 0; 0 where the file has no steps */
    int32_t layer;
    int32_t rank;
    double microseconds;
} eplb_waits_row;

typedef struct eplb_waits_reader eplb_waits_reader;

/* Opens a file and reads its header. `path` is copied; options NULL: the defaults. Memory: a buffer
 * of 128 KiB, whatever the size of the file. */
EPLB_API eplb_status eplb_waits_open(eplb_waits_reader **out, const eplb_hooks *hooks,
                                     const char *path, const eplb_waits_read_options *options,
                                     eplb_error *error);

/* Hands out the next line, in the order of the file; EPLB_END after the last one. A last line
 * without a newline may have been cut; that is a warning on the log. A file without any line behind
 * its header is an error. */
EPLB_API eplb_status eplb_waits_next(eplb_waits_reader *reader, eplb_waits_row *row,
                                     eplb_error *error);

/* Closes the file, frees the reader and sets the pointer to NULL. */
EPLB_API void eplb_waits_close(eplb_waits_reader **reader);

/*
 * Reads a whole file. The layers of the waits are the layer ids of the file, ascending. Steps are
 * not kept apart. Memory: as for a builder of eplb/waits.h, whatever the length of the file.
 */
EPLB_API eplb_status eplb_waits_read(eplb_waits **out, const eplb_hooks *hooks, const char *path,
                                     const eplb_waits_read_options *options, eplb_error *error);

EPLB_END_DECLS

#endif
