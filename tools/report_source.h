/* SPDX-License-Identifier: MIT */
/* One --load of `eplb report`: read twice, first for its sums, then step by step. */
#ifndef EPLB_TOOLS_REPORT_SOURCE_H
#define EPLB_TOOLS_REPORT_SOURCE_H

#include <eplb/eplb.h>
#include <eplb/format.h>

#include "model_options.h"
#include "report_options.h"
#include "standard_input.h"

/* Steps of a layer in which an expert got more tokens than there were: more than one from a
 * token. What is beside the number of steps tells about the worst of them. */
typedef struct excess {
    int64_t steps;
    int64_t step;
    int32_t expert;
    int32_t layer_id;
    double got;
    double tokens; /* of the step */
} excess;

typedef struct report_source {
    const report_values *values;
    const model_answers *model;
    const eplb_format *from; /* NULL: recognised */
    const char *text;        /* the source as it was given */
    eplb_hooks hooks;
    rereadable input;
    eplb_load *load;               /* summed over steps; its scenario has the source's name */
    eplb_placement *counted_under; /* of --counted-under; NULL: none */
    bool assumes_experts;      /* nothing says that the counts are of logical experts, not slots */
    int32_t *file_ids;         /* [layers]: their numbers in the files */
    eplb_placement *placement; /* the one to judge, with the load's layers */
    eplb_step_stats *stats;
    eplb_plan *plan;            /* for the summed load, in the same slots */
    eplb_step_stats *replanned; /* the same steps under the plan */
    excess *excesses;           /* [layers] */
    int64_t steps;              /* with tokens */
} report_source;

/* Reads the source `text` and the placement. What it made is to be given to report_source_close
 * even when it failed. */
eplb_status report_source_read(report_source *self, const report_values *values,
                               const model_answers *model, const eplb_format *from,
                               const char *text, eplb_error *error);
void report_source_close(report_source *self);

#endif
