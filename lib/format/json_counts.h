/* SPDX-License-Identifier: MIT */
/* Counts as lists of JSON, [layers][experts] or [steps][layers][experts], for formats whose counts
 * are such a list. One row is in memory at a time. */
#ifndef EPLB_FORMAT_JSON_COUNTS_H
#define EPLB_FORMAT_JSON_COUNTS_H

#include "format/format.h"

/* The counts are the value of `key` in the document, an object whose other keys are ignored; NULL:
 * they are the document itself. But a list called `width_key` (may be NULL) must have rows as wide
 * as the counts. `may_have_steps`: whether three dimensions are allowed. The next two are for an
 * eplb_format as they are. */
eplb_status eplb_json_counts_open(eplb_reading *reading, const char *key, const char *width_key,
                                  bool may_have_steps, eplb_error *error);
eplb_status eplb_json_counts_next(eplb_reading *reading, eplb_counts_row *row, eplb_error *error);
void eplb_json_counts_close(eplb_reading *reading);

#endif
