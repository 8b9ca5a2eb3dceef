/* SPDX-License-Identifier: MIT */
/* What `eplb sweep` found, for people and as JSON. */
#ifndef EPLB_TOOLS_SWEEP_H
#define EPLB_TOOLS_SWEEP_H

#include "plan_report.h"
#include "sweep_options.h"

/* One plan. */
typedef struct sweep_row {
    int32_t gpus;
    int32_t redundant;
    int32_t fewest_asked; /* numbers of redundant experts that were rounded up to this one */
    int32_t most_asked;
    int32_t slots_per_gpu;
    bool is_knee;
    plan_report report;
} sweep_row;

/* A combination that no slots fit. */
typedef struct sweep_skip {
    int32_t gpus;
    int32_t redundant;
} sweep_skip;

/* The knee of one number of GPUs. */
typedef struct sweep_answer {
    const sweep_row *knee;
    const sweep_row *last; /* with the most redundant experts */
    double further_gain;   /* of any number above the knee's */
} sweep_answer;

typedef struct sweep {
    const sweep_values *values;
    int32_t layers;
    int32_t experts;
    int32_t scenarios;
    int32_t row_count;
    sweep_row *rows; /* by GPUs, then by redundant experts */
    int32_t skip_count;
    sweep_skip *skips;
    int32_t answer_count;
    sweep_answer *answers; /* by GPUs */
} sweep;

/* The scenario with the largest mean imbalance; NULL: none has load. */
const plan_scenario *sweep_worst_scenario(const sweep_row *row);

void sweep_print(const sweep *self, FILE *out);

/* Prints one JSON document on standard output and returns the exit code. */
int sweep_print_json(const sweep *self);

#endif
