/* SPDX-License-Identifier: MIT */
/* What the two modes of SGLang's recorder share that write .pt files. */
#ifndef EPLB_FORMAT_SGLANG_PT_H
#define EPLB_FORMAT_SGLANG_PT_H

#include "format/sglang_counts.h"
#include "format/torch.h"

typedef struct eplb_sglang_pt {
    eplb_sglang_state common;
    eplb_torch torch;
    eplb_tensor tensor; /* whose rows are read */
    int32_t layers;
    int32_t width;  /* counts of a row in the file: experts or slots */
    double *counts; /* [width] a row as the file has it */
    double *other;  /* what else is handed out: zeros [width], a folded row [experts] */
    int32_t layer;  /* of the next row */

    /* Modes stat and stat_approx */
    size_t steps;
    size_t step;
    bool in_step;
    bool any_step;      /* one was handed out */
    int32_t read_layer; /* whose row is in `counts`, those before in the step are zeros */

    /* Mode per_pass */
    int32_t experts;
    int32_t *map;                   /* [layers][width] */
    const eplb_pickle_cell *record; /* the next one */
    int32_t record_number;          /* the next one's */
    int64_t pass;
    uint64_t items; /* of all records so far */
} eplb_sglang_pt;

/* Opens what the values of a file's keys are. */
eplb_status eplb_sglang_stat_open(eplb_reading *reading, const eplb_pickle_value *logical_count,
                                  eplb_error *error);
eplb_status eplb_sglang_passes_open(eplb_reading *reading, const eplb_pickle_value *records,
                                    const eplb_pickle_value *map, eplb_error *error);

/* Checks a number of layers and of counts in each against the limits, and takes them. */
eplb_status eplb_sglang_pt_shape(eplb_reading *reading, const char *what, size_t layers,
                                 size_t width, int32_t max_width, eplb_error *error);

/* Reads `counts` from where a row begins in the tensor. `step` and `unit` ("expert" or "slot") are
 * for messages, as is the layer. */
eplb_status eplb_sglang_pt_read_row(eplb_reading *reading, size_t offset, int64_t step,
                                    int32_t layer, const char *unit, eplb_error *error);

#endif
