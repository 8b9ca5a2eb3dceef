/* SPDX-License-Identifier: MIT */
/*
 * Sources: logged counts that belong together, as `eplb --load SOURCE` names them. A source is one
 * file, or one file from each rank: then the ranks' counts are summed. This is part of
 * libeplb-format.
 *
 * A source is written [NAME=]PATH[,PATH...][:WEIGHT]:
 * - PATH is a file of counts; "-" is standard input; of a directory, all files are the source's but
 *   those whose names begin with a dot, in the order of the numbers in their names (rank2 before
 *   rank10).
 * - NAME is what reports call the source, without '/'; without it, the source is called by its
 *   paths as they are written.
 * - WEIGHT, a decimal number above 0 such as 3 or 0.25, is how much its scenarios weigh; default 1.
 * Where the whole text, or what is left without NAME, or without both NAME and WEIGHT, is the name
 * of a file or directory, it is that one, whatever '=', ':' and ',' it has.
 *
 * Threads: a source belongs to one thread at a time.
 */
#ifndef EPLB_SOURCE_H
#define EPLB_SOURCE_H

#include <stdint.h>

#include <eplb/format.h>
#include <eplb/hooks.h>
#include <eplb/load.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

/* Upper limit of the files of a source. */
#define EPLB_MAX_SOURCE_FILES 65536

typedef struct eplb_source eplb_source;

/*
 * Opens a source: finds its files, opens each and recognises its format. `text` is copied; options
 * NULL: the defaults. Errors: EPLB_ERROR_ARGUMENT for a text that is no source (an empty name or
 * path, a weight that is no number above 0, a file twice, by another link too), EPLB_ERROR_IO for a
 * file that cannot be read, EPLB_ERROR_PARSE as for eplb_counts_open, EPLB_ERROR_DATA for a
 * directory without files, EPLB_ERROR_LIMIT for too many. Memory: that of a counts reader for each
 * file, and one step. All files stay open.
 */
EPLB_API eplb_status eplb_source_open(eplb_source **out, const eplb_hooks *hooks, const char *text,
                                      const eplb_read_options *options, eplb_error *error);

/* Closes its files and sets the pointer to NULL. */
EPLB_API void eplb_source_close(eplb_source **source);

/* The name, valid until the source is closed; the weight; the number of files; and the path of one,
 * valid as long (NULL when the index is out of range). */
EPLB_API const char *eplb_source_name(const eplb_source *source);
EPLB_API double eplb_source_weight(const eplb_source *source);
EPLB_API int32_t eplb_source_files(const eplb_source *source);
EPLB_API const char *eplb_source_path(const eplb_source *source, int32_t file);

/* One step of all files together. The arrays are valid until the next call on the source. */
typedef struct eplb_source_step {
    uint32_t struct_size;     /* set by the caller: how much may be written */
    int32_t rows;             /* layers that have counts in this step, >= 1 */
    int64_t step;             /* its number in the files; 0 where a format has no steps */
    int32_t experts;          /* counts of each row: the longest row so far; options.experts when
                               * that was given */
    int32_t reserved;         /* 0 */
    const int32_t *layer_ids; /* [rows], ascending */
    const double *counts;     /* [rows][experts], summed over files and repeated rows */
} eplb_source_step;

/*
 * Hands out the next step, in ascending order; EPLB_END after the last one. In each file the steps
 * must ascend, too (rows of one step stand together). Every file must have every step, and each
 * step the same layers in every file: half a sum is no sum. EPLB_ERROR_DATA names the file that
 * lacks a step or a layer, the file whose rows are of another length than those of the others, and
 * a row whose step comes after a later one. EPLB_ERROR_OVERFLOW: a sum is not finite. Other errors
 * as for eplb_counts_next. A failed source stays failed.
 */
EPLB_API eplb_status eplb_source_next(eplb_source *source, eplb_source_step *step,
                                      eplb_error *error);

typedef struct eplb_source_load_options {
    uint32_t struct_size; /* sizeof(eplb_source_load_options), written by its _init */

    /* Scenarios that each source is cut into, runs of its steps with equal tokens as far as whole
     * steps allow; 1: one scenario, the sum. A source with fewer steps that have tokens gives one
     * scenario for each of them. 0 (default): 1 when there are several sources or one that can be
     * read only once, else up to 16. */
    int32_t slices;
    int32_t reserved; /* 0 */

    /* NULL (default), or gets 1 when all files say by themselves that their counts are of logical
     * experts, as eplb_counts_are_logical does, else 0. Written when the load was read. */
    int32_t *are_logical;
} eplb_source_load_options;

/* Writes the defaults. */
EPLB_API void eplb_source_load_options_init(eplb_source_load_options *options);

/*
 * Reads whole sources into a load. `texts` [count] are written as above; `reading` and `options`
 * may be NULL: the defaults.
 *
 * Files. All files of all sources must have the same layers and, in formats with full rows (all but
 * CSV), rows of the same length, and no expert beyond it in CSV; those of one source the same
 * steps, in any order. EPLB_ERROR_DATA names the file that differs. In a file of full rows, layers
 * with different numbers of rows are a warning on the log: the file may have been cut. Files are
 * open one at a time.
 *
 * Layers. Where every file is of a format that lists all hidden layers of the model, layers without
 * any tokens in all files are dense: they are left out, and the load knows the number of model
 * layers (unless no layer has any tokens: then all are kept).
 *
 * Scenarios come source by source, the oldest slice first. They are called after their source:
 * "chat", or "chat 3/16". Each weighs the source's weight / the number of its slices. Cut k of n
 * slices lies where the tokens before it are nearest to k/n of all; steps without tokens belong to
 * a neighbour. More than one slice means reading the files twice: with standard input, or a pipe,
 * that is EPLB_ERROR_ARGUMENT, and with a file that changes meanwhile, such as a log that is being
 * written, EPLB_ERROR_DATA. Standard input in two sources is EPLB_ERROR_ARGUMENT, too.
 *
 * Memory: 16 bytes for each scenario, layer and expert; at most 128 for each step of the source
 * that is being read, when it has several files or is cut.
 */
EPLB_API eplb_status eplb_source_load(eplb_load **out, const eplb_hooks *hooks,
                                      const char *const *texts, int32_t count,
                                      const eplb_read_options *reading,
                                      const eplb_source_load_options *options, eplb_error *error);

EPLB_END_DECLS

#endif
