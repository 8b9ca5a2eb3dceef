/* SPDX-License-Identifier: MIT */
/* What a file format is to the library. A new format is one file that defines its eplb_format, and
 * one line in EPLB_FORMATS. */
#ifndef EPLB_FORMAT_FORMAT_H
#define EPLB_FORMAT_FORMAT_H

#include <stdbool.h>

#include <eplb/format.h>

#include "format/input.h"
#include "format/listing.h"
#include "format/map.h"
#include "format/text.h"

/* In the order of eplb_format_at. */
#define EPLB_FORMATS(X)                                                                            \
    X(sglang)                                                                                      \
    X(npy)                                                                                         \
    X(npz)                                                                                         \
    X(csv)                                                                                         \
    X(jsonl)                                                                                       \
    X(trtllm)                                                                                      \
    X(ascend)                                                                                      \
    X(vllm)                                                                                        \
    X(vllm_mapping)                                                                                \
    X(vllm_stats)                                                                                  \
    X(vllm_dump)                                                                                   \
    X(vllm_load)                                                                                   \
    X(omni)                                                                                        \
    X(fastdeploy)                                                                                  \
    X(lmdeploy)                                                                                    \
    X(mindie)                                                                                      \
    X(snapshot)

/* An open file that is being read. `options` are complete and checked; options.experts is how many
 * counts a row must have (0: not known), which are slots where the counts are to be folded. */
typedef struct eplb_reading {
    eplb_hooks hooks;
    eplb_read_options options;
    int32_t logical_experts; /* that the caller knows of; 0: not known */
    eplb_input input;        /* of a directory: its name, and no bytes */
    eplb_listing *listing;   /* NULL unless a directory is read */
    int32_t model_layers;    /* that the file is of, as its counts say; 0: they do not */
    int32_t rank;            /* whose counts the file has; -1: it does not say, or all ranks */
    bool is_folded;          /* the file has the map of its slots: rows are logical experts */
    bool is_archive;         /* for formats with files of two kinds: it is a zip archive */
    void *state;             /* the format's own, between open and close */
} eplb_reading;

/* The beginning of a file, without a byte order mark. data[size] is readable and 0. */
typedef struct eplb_probe {
    const char *data;
    size_t size;
    uint32_t wanted; /* EPLB_FORMAT_READS_COUNTS or EPLB_FORMAT_READS_PLACEMENT */
} eplb_probe;

/* A row that is to be written. The counts are checked, [shape->experts]. */
typedef struct eplb_written_row {
    int64_t step;       /* as the caller numbers it */
    int64_t step_index; /* of those that were written */
    int32_t layer;      /* its id */
    int32_t row;        /* of those of a step: with `full_steps` only */
    const double *counts;
} eplb_written_row;

struct eplb_format {
    const char *name;
    const char *description;
    const char *engine;     /* whose files they are; "any" */
    const char *recognised; /* by what in the content, in a few words */
    const char *change;     /* with EPLB_FORMAT_OPEN: the public change that it is known from */
    uint32_t flags;

    /* Whether the content is of this format, as far as its beginning tells. */
    bool (*probe)(const eplb_probe *probe);

    struct {
        /* Checks the head of the file and makes reading->state. After a failure close is called. */
        eplb_status (*open)(eplb_reading *reading, eplb_error *error);
        eplb_status (*next)(eplb_reading *reading, eplb_counts_row *row, eplb_error *error);
        void (*close)(eplb_reading *reading);
        /* Rows may be shorter than the number of experts: what is missing is 0. */
        bool short_rows;
        /* options.array names one of several arrays of a file. */
        bool names_arrays;
        /* Whether the files of a directory are one recording of this format, which open then finds
         * in reading->listing. NULL: no such recordings. */
        bool (*probe_directory)(const eplb_listing *listing);
        /* Appends what begins the file, one row, and what ends it. NULL: counts are not written. */
        void (*begin)(const eplb_counts_shape *shape, eplb_text *text);
        void (*write_row)(const eplb_counts_shape *shape, const eplb_written_row *row,
                          eplb_text *text);
        void (*end)(const eplb_counts_shape *shape, eplb_text *text);
        bool needs_steps; /* the beginning says how many there are */
        bool full_steps;  /* a step has every row, as zeros where nothing was given */
    } counts;

    struct {
        /* Fills `map`, which the caller clears whether it fails or not. */
        eplb_status (*read)(eplb_reading *reading, eplb_map *map, eplb_error *error);
        /* Appends the file's text. The placement is valid, all GPUs are live, and they and the
         * layers are alike but for EPLB_FORMAT_UNEVEN_SLOTS. */
        eplb_status (*write)(const eplb_placement *placement, eplb_text *text, eplb_error *error);
        int32_t draft_layers; /* the most that it can mark as the draft model's */
    } placement;
};

#define EPLB_DECLARE_FORMAT(name) extern const eplb_format eplb_format_##name;
EPLB_FORMATS(EPLB_DECLARE_FORMAT)
#undef EPLB_DECLARE_FORMAT

/*
 * Opens a file, or a directory, and finds out its format among those that do what is `wanted`,
 * unless the options name it. On failure nothing is left open.
 */
eplb_status eplb_reading_open(eplb_reading *reading, const eplb_hooks *hooks, const char *path,
                              const eplb_read_options *options, uint32_t wanted,
                              const eplb_format **format, eplb_error *error);
void eplb_reading_close(eplb_reading *reading);

/* Opens a file of the directory that is being read, with the same options. */
eplb_status eplb_reading_open_child(const eplb_reading *parent, const char *name,
                                    eplb_reading *child, eplb_error *error);

/* Whether a format reads the directory as one recording. */
bool eplb_is_recording(const eplb_listing *listing);

/* The beginning of an open file, for a format to look at. */
eplb_probe eplb_reading_probe(const eplb_reading *reading, uint32_t wanted);

/* Whether a format has files of what is `wanted`. It may be one that this build cannot read: then
 * its reader says why, which its flags could not. */
bool eplb_format_has_files(const eplb_format *format, uint32_t wanted);

/* Reads the rest of the file, but for a byte order mark at its start, into one NUL-terminated text
 * that is the caller's. EPLB_ERROR_LIMIT beyond options.max_bytes, and as below. */
eplb_status eplb_reading_read_all(eplb_reading *reading, char **text, size_t *length,
                                  eplb_error *error);

/* EPLB_ERROR_LIMIT where so many bytes are to be held of what is compressed, and they are more than
 * 1 MiB and 512 times the packed bytes that were read. */
eplb_status eplb_reading_check_unpacked(const eplb_reading *reading, uint64_t bytes,
                                        eplb_error *error);

#endif
