/* SPDX-License-Identifier: MIT */
/* How the counts of files are to be understood: --counted-under and --array. */
#ifndef EPLB_TOOLS_COUNTING_H
#define EPLB_TOOLS_COUNTING_H

#include <stdbool.h>

#include <eplb/format.h>

#include "model_options.h"

/* Help of the options. */
#define COUNTED_UNDER_HELP                                                                         \
    "placement that was in force when the tokens were counted, where the files have counts of "    \
    "slots: they are folded into those of its experts; its GPUs do not matter"
#define ARRAY_HELP                                                                                 \
    "which array of an .npz file, or model of a vllm_load one (default: its only one)"

/* The options' values. */
typedef struct counting_values {
    const char *counted_under; /* a file of a placement; NULL: counts are of logical experts */
    const char *array;         /* NULL: the only one */
} counting_values;

/* Refuses values that cannot be meant, as wrong usage of the command. */
int counting_check(const counting_values *values, const char *command_name);

/* Reads the placement of --counted-under; *placement becomes NULL where there is none. `experts`:
 * of the model; 0: not known. */
eplb_status counting_open(eplb_placement **placement, const counting_values *values,
                          int32_t experts, const eplb_hooks *hooks, eplb_error *error);

/* The options of readers of counts: those of reading_options, and what the values say. `placement`
 * is theirs. */
eplb_read_options counting_reading(const counting_values *values, const eplb_placement *placement,
                                   const eplb_format *from, int32_t experts);

/* Where files were refused since they have more counts in a row than there are experts, by
 * --experts or --model, makes the message ask for --counted-under. */
void counting_explain(const counting_values *values, const model_answers *model, int32_t experts,
                      eplb_error *error);

/* Where the placement in force and the loads do not have the same experts, makes the message say
 * that the loads have counts of slots, as far as the file at `current` tells. */
void counting_explain_current(const counting_values *values, const char *current,
                              const eplb_load *load, eplb_error *error);

#endif
