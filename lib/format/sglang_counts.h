/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_SGLANG_COUNTS_H
#define EPLB_FORMAT_SGLANG_COUNTS_H

#include "format/format.h"

eplb_status eplb_sglang_counts_open(eplb_reading *reading, eplb_error *error);
eplb_status eplb_sglang_counts_next(eplb_reading *reading, eplb_counts_row *row, eplb_error *error);
void eplb_sglang_counts_close(eplb_reading *reading);

#endif
