/* SPDX-License-Identifier: MIT */
/* Counts as CSV: a line for each expert, those without tokens, too, so that the number of experts
 * is there. */
#include "format/csv_write.h"

void eplb_csv_begin(const eplb_counts_shape *shape, eplb_text *text)
{
    (void)shape;
    eplb_text_add(text, "step,layer,expert,tokens\n");
}

void eplb_csv_write_row(const eplb_counts_shape *shape, const eplb_written_row *row,
                        eplb_text *text)
{
    for (int32_t e = 0; e < shape->experts; e++) {
        eplb_text_add_integer(text, row->step);
        eplb_text_add(text, ",");
        eplb_text_add_integer(text, row->layer);
        eplb_text_add(text, ",");
        eplb_text_add_integer(text, e);
        eplb_text_add(text, ",");
        eplb_text_add_count(text, row->counts[e]);
        eplb_text_add(text, "\n");
    }
}

void eplb_csv_end(const eplb_counts_shape *shape, eplb_text *text)
{
    (void)shape;
    (void)text;
}
