/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_LOAD_READING_H
#define EPLB_TOOLS_LOAD_READING_H

#include <eplb/format.h>
#include <eplb/load.h>

#include "model_options.h"
#include "options.h"

/* The sources of --load and what other options say about them. */
typedef struct load_request {
    const text_list *sources;
    const eplb_format *from; /* NULL: recognised */
    const char *current;     /* placement in force; NULL: none */
    int32_t experts;         /* 0: as the files say */
    const id_list *dense_layers;
    int32_t slices;             /* 0: what the library does */
    const model_answers *model; /* of --model */
} load_request;

/* Reads the sources into the scenarios of one load, with the model's layer ids as far as they are
 * known. `assumed`: nothing says that the counts are of logical experts, not slots. */
eplb_status read_scenarios(eplb_load **load, const load_request *request, bool *assumed,
                           const eplb_hooks *hooks, eplb_error *error);

#endif
