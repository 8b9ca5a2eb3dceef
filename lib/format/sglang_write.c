/* SPDX-License-Identifier: MIT */
/* SGLang's logical_count as JSON: [layers][experts] for one step, else [steps][layers][experts]. */
#include "format/sglang_write.h"

static bool has_steps(const eplb_counts_shape *shape)
{
    return shape->steps != 1;
}

void eplb_sglang_begin(const eplb_counts_shape *shape, eplb_text *text)
{
    eplb_text_add(text, has_steps(shape) ? "{\"logical_count\":[[\n" : "{\"logical_count\":[\n");
}

void eplb_sglang_write_row(const eplb_counts_shape *shape, const eplb_written_row *row,
                           eplb_text *text)
{
    if (row->row > 0) {
        eplb_text_add(text, ",\n");
    } else if (row->step_index > 0) {
        eplb_text_add(text, "],[\n");
    }
    eplb_text_add_counts(text, row->counts, shape->experts);
}

void eplb_sglang_end(const eplb_counts_shape *shape, eplb_text *text)
{
    eplb_text_add(text, has_steps(shape) ? "]]}\n" : "]}\n");
}
