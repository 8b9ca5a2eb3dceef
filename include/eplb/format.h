/* SPDX-License-Identifier: MIT */
/*
 * Files: counts of tokens per expert that serving engines log, and the placement maps they load.
 * This is libeplb-format (pkg-config eplb-format); it needs libeplb.
 *
 * Inputs are opened read-only and read once, front to back ("-" is standard input); those that are
 * archives or have an index are read where it points, and cannot come from a pipe. What is
 * compressed with gzip or zstd is unpacked while it is read. What a file
 * says is checked before it is believed: sizes against the limits of the read options, numbers
 * against their range, the shape of each row against the others. Errors name the file, the line (or
 * the byte), the layer and the expert, such as
 * `counts.jsonl:17: layer 3: 255 counts, expected 256`.
 *
 * Threads: a reader belongs to one thread at a time; formats are constant. A compressed file, or
 * array of an .npz, is unpacked on a thread of the reader's own from its second MiB on, unless it
 * comes from a pipe. That thread calls no hooks, blocks the signals of the process and ends with
 * the reader; a forked child does not have it and must not touch its parent's readers.
 */
#ifndef EPLB_FORMAT_H
#define EPLB_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

/* One file format. Static, never freed. */
typedef struct eplb_format eplb_format;

/* What a format can do in this build: without libyaml, placements of "trtllm" are written but not
 * read. */
#define EPLB_FORMAT_READS_COUNTS 1u
#define EPLB_FORMAT_READS_PLACEMENT 2u
#define EPLB_FORMAT_WRITES_PLACEMENT 4u
/* Rows are all hidden layers of the model, dense ones too (as zero rows of counts, or any valid
 * row of a placement). Without it, rows are MoE layers only. */
#define EPLB_FORMAT_ALL_MODEL_LAYERS 8u
/* Known only from a change that its engine has not merged. */
#define EPLB_FORMAT_OPEN 16u
/* Layers have the numbers of the model, dense layers counted. Without it, those of MoE layers, but
 * for EPLB_FORMAT_ANY_LAYER_IDS. */
#define EPLB_FORMAT_MODEL_LAYER_IDS 32u
/* Placements may have different numbers of slots on GPUs, and in layers. Without it, each GPU has
 * equally many in each layer. */
#define EPLB_FORMAT_UNEVEN_SLOTS 64u
#define EPLB_FORMAT_WRITES_COUNTS 128u
/* Counts have numbers of layers that their writer chose: of the model, or of MoE layers. */
#define EPLB_FORMAT_ANY_LAYER_IDS 256u

/* The formats in a fixed order; NULL past the end. */
EPLB_API const eplb_format *eplb_format_at(size_t index);

/* The format called `name`, such as "sglang"; NULL when there is none. */
EPLB_API const eplb_format *eplb_format_find(const char *name);

EPLB_API const char *eplb_format_name(const eplb_format *format);
EPLB_API const char *eplb_format_description(const eplb_format *format);
EPLB_API uint32_t eplb_format_flags(const eplb_format *format);

/* Whose files they are, and by what in the content they are recognised, in a few words; "" where
 * nothing is known. */
EPLB_API const char *eplb_format_engine(const eplb_format *format);
EPLB_API const char *eplb_format_recognised_by(const eplb_format *format);

/* The public change that a format with EPLB_FORMAT_OPEN is known from, such as
 * "vllm-project/vllm#49572"; "" where there is none. */
EPLB_API const char *eplb_format_change(const eplb_format *format);

/* How many layers of the draft model (see eplb_placement_set_draft_layers) its placements can mark
 * as such; 0: none, they cannot tell them from the model's own. */
EPLB_API int32_t eplb_format_draft_layers(const eplb_format *format);

/*
 * Whether the content of a file, as far as its beginning tells, or of a directory, has the shape of
 * the format's files of what is `wanted`: EPLB_FORMAT_READS_COUNTS or EPLB_FORMAT_READS_PLACEMENT.
 * *fits gets 1 or 0. EPLB_ERROR_IO when the file cannot be read. Formats that this build cannot
 * read fit, too. Of standard input and of pipes it takes the beginning away.
 */
EPLB_API eplb_status eplb_format_fits(const eplb_format *format, const eplb_hooks *hooks,
                                      const char *path, uint32_t wanted, int32_t *fits,
                                      eplb_error *error);

typedef struct eplb_read_options {
    uint32_t struct_size; /* sizeof(eplb_read_options), written by eplb_read_options_init */

    /* Read as this format; NULL (default): the one whose shape the content has. */
    const eplb_format *format;

    /* Logical experts of the model; 0 (default): as the file says. A file that contradicts it is an
     * error. */
    int32_t experts;

    /* Placements: GPUs that a layer's slots are spread over evenly; 0 (default): as the file says,
     * an error for formats that do not say it. A file that contradicts it is an error. */
    int32_t gpus;

    /* Placements: GPUs of a node; 0 (default): all on one. */
    int32_t gpus_per_node;

    /* Limits, each >= 1; beyond them reading fails with EPLB_ERROR_LIMIT. */
    int32_t max_layers;  /* rows of a step, and layer ids in counts are below it; default 1024 */
    int32_t max_experts; /* counts of a row, and expert ids are below it; default 4096 */
    int32_t max_slots;   /* slots of a layer; default 1048576 */
    int64_t max_bytes; /* a placement file, a snapshot, the index of a .pt, a column-major .npy from
                        * a pipe, a compressed file or an .npz, and, of recordings with maps, a list
                        * of one step in memory; default 256 MiB. Of those that are compressed, at
                        * most 512 times the packed bytes and 1 MiB. Other counts have no limit:
                        * they stream. */

    /* Which array of a file that has several, such as .npz, or the models of "vllm_load", by its
     * name; NULL (default): there must be one only. An error for files of counts without named
     * arrays. Borrowed until the file is closed. */
    const char *array;

    /* Counts of slots: the placement that was in force when they were taken. Rows of the file must
     * have as many counts as it has slots, and are handed out as those of its logical experts.
     * Layers are found by their number, or, in formats that number MoE layers, by their order, and
     * then all must be there where the placement's numbers are not 0, 1, 2, ...; in CSV and JSON
     * lines by their number where the first row has one of the placement's, else by their order.
     * EPLB_ERROR_DATA where numbers of the model may meet those of MoE layers, and where an expert
     * has no slot in the placement. Files that carry the
     * map of their slots are folded by that one. NULL (default): counts are of logical experts.
     * Borrowed until the file is closed. */
    const eplb_placement *counted_under;
} eplb_read_options;

/* Writes the defaults. */
EPLB_API void eplb_read_options_init(eplb_read_options *options);

/* One row of counts, as eplb_counts_next hands it out. */
typedef struct eplb_counts_row {
    int64_t step;         /* >= 0; 0 where the format has no steps */
    int32_t layer;        /* model layer id or MoE index, as the format numbers layers; >= 0 */
    int32_t length;       /* number of counts: experts 0..length-1, those beyond have none */
    const double *counts; /* [length], finite, >= 0; valid until the next call on the reader */
} eplb_counts_row;

typedef struct eplb_counts_reader eplb_counts_reader;

/*
 * Opens a file of counts, or a directory that is one recording of several ranks, such as
 * TensorRT-LLM's, and recognises its format. Fails with EPLB_ERROR_PARSE when no format, or
 * more than one, fits. `path` is copied. Memory: one row and a buffer of 128 KiB, whatever the size
 * of the file (a column-major .npy needs a window of steps for each layer and expert, at most 16
 * MiB in all or one step, a snapshot lies in memory whole, of recordings with maps the counts and
 * the map of a step, of a .pt its index, data.pkl, at up to 16 times its size, with a window of 256
 * KiB, of MindIE's rows that may be sums 64 bytes each, and of safetensors all files of a directory
 * are open, with 24 bytes for each tensor; what is compressed takes 1 MiB more, and zstd's window,
 * at most 8 MiB).
 */
EPLB_API eplb_status eplb_counts_open(eplb_counts_reader **out, const eplb_hooks *hooks,
                                      const char *path, const eplb_read_options *options,
                                      eplb_error *error);

/*
 * Hands out the next row. Rows come in the order of the file. Those of the same step and layer add
 * up, as in concatenated logs of several ranks (but in CSV the lines of one step and layer that
 * follow each other are one row, and an expert twice in it is an error; records of vLLM are of
 * whole steps, and one that does not come after the step before is an error); what no row has is 0.
 * EPLB_END after the last row, and only when the file was whole, as far as its format tells: until
 * then what was read may be the beginning of a broken file. A CSV file whose last line has no
 * newline may have been cut; that is a warning on the log.
 */
EPLB_API eplb_status eplb_counts_next(eplb_counts_reader *reader, eplb_counts_row *row,
                                      eplb_error *error);

/* Closes the file, frees the reader and sets the pointer to NULL. */
EPLB_API void eplb_counts_close(eplb_counts_reader **reader);

/* The rank whose tokens the file counts, as the file or its name says; -1: it does not, or has
 * those of all ranks. */
EPLB_API int32_t eplb_counts_rank(const eplb_counts_reader *reader);

/* Number of all hidden layers of the model, as the file says; 0: it does not. */
EPLB_API int32_t eplb_counts_model_layers(const eplb_counts_reader *reader);

/* 1: the rows are of logical experts, since the file says so, has the map of its slots, or was
 * folded by options.counted_under; 0: nothing says so, and they may be of slots. */
EPLB_API int32_t eplb_counts_are_logical(const eplb_counts_reader *reader);

/* The format that was recognised. */
EPLB_API const eplb_format *eplb_counts_format(const eplb_counts_reader *reader);

/*
 * Reads a placement. The result has the shape that the file says and may still break the rules of
 * eplb_placement_validate: an editor of broken maps must be able to read them. Of a recording with
 * maps it is the last one. `format` (may be NULL) gets the format that was recognised.
 */
EPLB_API eplb_status eplb_placement_read(eplb_placement **out, const eplb_hooks *hooks,
                                         const char *path, const eplb_read_options *options,
                                         const eplb_format **format, eplb_error *error);

/*
 * Writes a placement as `format`, whole or not at all; path "-" is standard output. Refuses what
 * eplb_placement_validate refuses (EPLB_ERROR_DATA), and what the format cannot carry, such as GPUs
 * or layers with different numbers of slots (EPLB_ERROR_UNSUPPORTED). Formats with all model layers
 * get an even spread in the rows of the other layers; the model's number of layers is taken from
 * the placement, or, where that is unknown, is one more than the last layer id. Formats that number
 * MoE layers get the rows in their order: the placement must have all of them.
 */
EPLB_API eplb_status eplb_placement_write(const eplb_placement *placement, const eplb_hooks *hooks,
                                          const char *path, const eplb_format *format,
                                          eplb_error *error);

/* The same into memory: `text` [length] is to be given to the hooks' release (NULL hooks: free). */
EPLB_API eplb_status eplb_placement_format(const eplb_placement *placement, const eplb_hooks *hooks,
                                           const eplb_format *format, char **text, size_t *length,
                                           eplb_error *error);

/* What is the same for all rows of a file of counts that is to be written. */
typedef struct eplb_counts_shape {
    uint32_t struct_size; /* sizeof(eplb_counts_shape), written by eplb_counts_shape_init */

    int32_t layers;           /* that rows may be of, >= 1; default 0 */
    const int32_t *layer_ids; /* [layers] ascending, >= 0; copied; NULL (default): 0, 1, 2, ... */

    /* All hidden layers of the model, above the last id; 0 (default): one more than the last id.
     * Formats with EPLB_FORMAT_ALL_MODEL_LAYERS write so many rows a step. */
    int32_t model_layers;

    int32_t experts; /* of each row, >= 1; default 0 */

    /* Steps that will be written; -1 (default): not known. A single step is written without an axis
     * of steps in formats that have arrays. */
    int64_t steps;
} eplb_counts_shape;

/* Writes the defaults. */
EPLB_API void eplb_counts_shape_init(eplb_counts_shape *shape);

typedef struct eplb_counts_writer eplb_counts_writer;

/*
 * Begins a file of counts of a format with EPLB_FORMAT_WRITES_COUNTS. It appears whole, when it is
 * committed, or not at all (eplb/file.h); path "-" is standard output, which gets the rows as they
 * come. Integral counts up to 2^53 are written as integers, others so that reading them gives the
 * same double; "npy" is float64 throughout. "npy" needs the number of steps
 * (EPLB_ERROR_ARGUMENT). Memory: the text of a row, and 64 KiB. Threads: a writer belongs to one
 * thread at a time.
 */
EPLB_API eplb_status eplb_counts_writer_create(eplb_counts_writer **out, const eplb_hooks *hooks,
                                               const char *path, const eplb_format *format,
                                               const eplb_counts_shape *shape, eplb_error *error);

/*
 * Adds a row: counts [length] of the experts 0..length-1 of one layer in one step; those beyond
 * have none. Rows come in the order of steps, and in each step of layers, each at most once. What
 * is missing is left out, or zero in arrays, which number the steps from 0. EPLB_ERROR_DATA for a
 * count that is negative or not finite, EPLB_ERROR_ARGUMENT for a row out of order, too long, of
 * another layer, or of more steps than were promised. After a failure every later call fails, too.
 */
EPLB_API eplb_status eplb_counts_writer_add(eplb_counts_writer *writer, int64_t step, int32_t layer,
                                            const double *counts, int32_t length,
                                            eplb_error *error);

/* Ends the file and makes it appear. EPLB_ERROR_ARGUMENT without any row, or with fewer steps than
 * were promised. Call it once; then only destroy is left to call. */
EPLB_API eplb_status eplb_counts_writer_commit(eplb_counts_writer *writer, eplb_error *error);

/* Frees the writer and sets the pointer to NULL. What was not committed is discarded. */
EPLB_API void eplb_counts_writer_destroy(eplb_counts_writer **writer);

EPLB_END_DECLS

#endif
