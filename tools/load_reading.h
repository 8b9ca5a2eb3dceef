/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_LOAD_READING_H
#define EPLB_TOOLS_LOAD_READING_H

#include <eplb/format.h>
#include <eplb/load.h>

#include "counting.h"
#include "model_options.h"
#include "options.h"

/* Help texts of the options that say it. */
#define SCENARIOS_HELP                                                                             \
    "logged counts of tokens per expert, [NAME=]PATH[,PATH...][:WEIGHT]; several paths, or a "     \
    "directory, are ranks that are summed; - is standard input; may be given more than once: "     \
    "each "                                                                                        \
    "is a scenario"
#define SLICES_HELP                                                                                \
    "scenarios that each source is cut into, runs of steps with equal tokens (default: up to 16 "  \
    "for a single source, else 1; 1 sums it)"
#define OBJECTIVE_HELP                                                                             \
    "what to make small in each layer: the mean of the scenarios' imbalances (default), the "      \
    "largest, or the imbalance of their summed tokens"
#define DENSE_LAYERS_HELP                                                                          \
    "model layers that are dense, such as 0-2,60, or none (default: where the files list all "     \
    "model layers, those without tokens)"

/* The names of eplb_objective, in its order; ends with NULL. */
extern const char *const objective_choices[];

/* The sources of --load and what other options say about them. */
typedef struct load_request {
    const text_list *sources;
    const eplb_format *from; /* NULL: recognised */
    const char *current;     /* placement in force; NULL: none */
    int32_t experts;         /* 0: as the files say */
    const counting_values *counting;
    const id_list *dense_layers;
    int32_t slices;             /* 0: what the library does */
    int32_t draft_layers;       /* that are known of; -1: none */
    const model_answers *model; /* of --model */
} load_request;

/* Reads the sources into the scenarios of one load, with the model's layer ids as far as they are
 * known. `assumed`: nothing says that the counts are of logical experts, not slots. */
eplb_status read_scenarios(eplb_load **load, const load_request *request, bool *assumed,
                           const eplb_hooks *hooks, eplb_error *error);

#endif
