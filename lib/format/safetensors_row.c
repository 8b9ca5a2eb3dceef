/* SPDX-License-Identifier: MIT */
/* The items of a safetensors file as rows of counts. */
#include <stdio.h>

#include "format/safetensors.h"

static eplb_status fail_at(const eplb_safetensors *self, const eplb_counts_row *row, int32_t expert,
                           eplb_status status, const char *problem, eplb_error *error)
{
    char step[40] = "";
    if (row->step >= 0) {
        snprintf(step, sizeof(step), "step %lld: ", (long long)row->step);
    }
    return eplb_error_set(error, status, "%s: %slayer %d: expert %d: %s", self->input->name, step,
                          row->layer, expert, problem);
}

static eplb_status bad_item(const eplb_safetensors *self, const eplb_item_type *type,
                            const eplb_counts_row *row, int32_t expert, eplb_error *error)
{
    double value;
    char problem[80];
    eplb_number_class number = eplb_item_decode(type, self->input->cursor, &value);
    snprintf(problem, sizeof(problem), "%s %s", eplb_item_show(type, self->input->cursor).text,
             eplb_number_words(number));
    return fail_at(self, row, expert, eplb_number_status(number), problem, error);
}

eplb_status eplb_safetensors_row(eplb_safetensors *self, const eplb_item_type *type,
                                 uint64_t offset, const eplb_counts_row *row, double *counts,
                                 eplb_error *error)
{
    eplb_input *input = self->input;
    eplb_status status = eplb_input_seek(input, self->data_offset + offset, error);
    int32_t done = 0;
    while (status == EPLB_OK && done < row->length) {
        size_t rest = (size_t)(row->length - done);
        size_t most = EPLB_INPUT_PREFIX / type->size;
        status = eplb_input_need(input, (rest < most ? rest : most) * type->size, error);
        size_t items = eplb_input_unread(input) / type->size;
        items = items < rest ? items : rest;
        if (status == EPLB_OK && items == 0) {
            return fail_at(self, row, done, EPLB_ERROR_PARSE, "the file ends too early", error);
        }
        size_t good =
            status == EPLB_OK ? eplb_item_counts(type, input->cursor, items, counts + done) : 0;
        input->cursor += good * type->size;
        done += (int32_t)good;
        if (status == EPLB_OK && good < items) {
            return bad_item(self, type, row, done, error);
        }
    }
    return status;
}
