/* SPDX-License-Identifier: MIT */
/* What `eplb plan` tells about a plan, for people and as JSON. */
#ifndef EPLB_TOOLS_PLAN_REPORT_H
#define EPLB_TOOLS_PLAN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <eplb/format.h>
#include <eplb/plan.h>

/* Over the scored layers; meaningless when there are none. */
typedef struct plan_summary {
    double mean;
    double worst;
} plan_summary;

typedef struct plan_row {
    int32_t layer_id;
    bool scored; /* false: no load, so the imbalances and the bound say nothing */
    double spread;
    double before;
    double after;
    double bound;
    int64_t copies;
} plan_row;

typedef struct plan_report {
    int32_t layers;
    int32_t scored_layers;
    int32_t experts;
    int32_t gpus;
    int32_t slots; /* of one layer */
    int32_t scenarios;
    bool has_current;
    bool valid;
    char violation[160];    /* the first one, when not valid */
    int64_t repaired_slots; /* 0: nothing was repaired */
    eplb_stop stop;
    const char *algorithm;
    plan_summary spread; /* of experts 0..E-1 and again from 0: what engines start with */
    plan_summary before;
    plan_summary after;
    plan_summary bound;
    int64_t copies;
    bool proposes_changes;
    const char *out; /* the file written; NULL: none */
    const eplb_format *format;
    plan_row *rows; /* [layers] */
} plan_report;

/* Fills everything but `algorithm`, `repaired_slots`, `out` and `format`. `placement` is the plan's
 * or one that was made from it; `current` may be NULL. */
eplb_status plan_report_create(plan_report *self, const eplb_load *load, const eplb_plan *plan,
                               const eplb_placement *placement, const eplb_placement *current,
                               eplb_error *error);
void plan_report_destroy(plan_report *self);

void plan_report_print(const plan_report *self, FILE *out);

/* Prints one JSON document on standard output and returns the exit code. */
int plan_report_print_json(const plan_report *self, int exit_code);

/* One line on how an engine loads what was written. */
void print_launch_hint(const plan_report *self, FILE *out);

#endif
