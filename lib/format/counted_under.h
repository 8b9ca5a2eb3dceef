/* SPDX-License-Identifier: MIT */
/* Folds the rows of a file of slot counts by the placement that they were counted under. */
#ifndef EPLB_FORMAT_COUNTED_UNDER_H
#define EPLB_FORMAT_COUNTED_UNDER_H

#include "format/format.h"

typedef struct eplb_counted_under {
    const eplb_placement *placement; /* NULL: rows stay as they are */
    const eplb_format *format;       /* of the counts */
    const char *name;                /* of their file */
    int32_t layers;                  /* one more than the last that was seen */
    int32_t known;                   /* layers of the placement that were seen */
    bool *seen;                      /* [layers of the placement] */
    int32_t first;                   /* the least layer with tokens; INT32_MAX: none yet */
    bool by_order;                   /* layers are those of the placement in order */
    double *counts;                  /* [experts] the folded row */
} eplb_counted_under;

/* The options of a file that is folded: its rows are as long as the placement has slots. */
eplb_status eplb_counted_under_resolve(eplb_reading *reading, eplb_error *error);

/* To be called when the format is known and open. */
eplb_status eplb_counted_under_init(eplb_counted_under *self, const eplb_reading *reading,
                                    const eplb_format *format, eplb_error *error);

/* Replaces a row of slots by one of experts. */
eplb_status eplb_counted_under_fold(eplb_counted_under *self, eplb_counts_row *row,
                                    eplb_error *error);

void eplb_counted_under_clear(eplb_counted_under *self, const eplb_hooks *hooks);

/* At the end of the file: EPLB_END, or what is wrong with all of it. */
eplb_status eplb_counted_under_finish(const eplb_counted_under *self, eplb_error *error);

#endif
