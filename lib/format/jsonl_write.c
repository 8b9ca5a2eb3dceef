/* SPDX-License-Identifier: MIT */
/* Counts as JSON lines. */
#include "format/jsonl_write.h"

void eplb_jsonl_begin(const eplb_counts_shape *shape, eplb_text *text)
{
    (void)shape;
    (void)text;
}

void eplb_jsonl_write_row(const eplb_counts_shape *shape, const eplb_written_row *row,
                          eplb_text *text)
{
    eplb_text_add(text, "{\"step\":");
    eplb_text_add_integer(text, row->step);
    eplb_text_add(text, ",\"layer\":");
    eplb_text_add_integer(text, row->layer);
    eplb_text_add(text, ",\"counts\":");
    eplb_text_add_counts(text, row->counts, shape->experts);
    eplb_text_add(text, "}\n");
}

void eplb_jsonl_end(const eplb_counts_shape *shape, eplb_text *text)
{
    (void)shape;
    (void)text;
}
