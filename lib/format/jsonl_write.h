/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_JSONL_WRITE_H
#define EPLB_FORMAT_JSONL_WRITE_H

#include "format/format.h"

void eplb_jsonl_begin(const eplb_counts_shape *shape, eplb_text *text);
void eplb_jsonl_write_row(const eplb_counts_shape *shape, const eplb_written_row *row,
                          eplb_text *text);
void eplb_jsonl_end(const eplb_counts_shape *shape, eplb_text *text);

#endif
