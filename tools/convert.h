/* SPDX-License-Identifier: MIT */
/* The parts of `eplb convert`. */
#ifndef EPLB_TOOLS_CONVERT_H
#define EPLB_TOOLS_CONVERT_H

#include "convert_options.h"
#include "model_options.h"
#include "standard_input.h"

/* What is converted. */
typedef struct conversion {
    const convert_values *values;
    model_answers model;
    eplb_hooks hooks;
    char *source;            /* the files as one source, owned */
    rereadable input;        /* the same, which can be read more than once */
    const char *path;        /* of the first file */
    char standard_input[32]; /* the path of its copy */
    bool is_placement;
    const eplb_format *from; /* NULL: recognised */
    const eplb_format *to;
} conversion;

/* Finds out whether the files are counts or a placement. Returns an exit code, with a message. */
int convert_find_kind(conversion *self);

/* Convert, and say what was written. Return an exit code, with a message. */
int convert_counts(conversion *self);
int convert_placement(const conversion *self);

/* Prints the table of formats, or as JSON. Returns an exit code. */
int convert_list(bool json);

/*
 * Gives a placement the layers of another format: *out is a new placement. Formats number MoE
 * layers, or model layers, or list all model layers, dense ones, too; --dense-layers and --model
 * lead from one to the other. EPLB_ERROR_DATA where they would have to and are not there, or
 * contradict the file.
 */
eplb_status convert_layers(eplb_placement **out, const conversion *self,
                           const eplb_placement *placement, const eplb_format *from,
                           eplb_error *error);

#endif
