/* SPDX-License-Identifier: MIT */
/* Items of tensors, where they lie in the file. */
#include "base/memory.h"
#include "format/torch.h"

#define WINDOW_SIZE ((size_t)256 << 10)

/* Makes `size` bytes at `offset` of the file be in the window with what follows, `most` (at
 * most WINDOW_SIZE) in all. */
static eplb_status hold(eplb_torch *self, uint64_t offset, size_t size, size_t most,
                        const char **bytes, eplb_error *error)
{
    bool inside = offset >= self->window_start &&
                  offset - self->window_start <= self->window_size &&
                  size <= self->window_size - (size_t)(offset - self->window_start);
    if (self->window == NULL) {
        self->window = eplb_alloc(&self->hooks, WINDOW_SIZE, 1);
        if (self->window == NULL) {
            return eplb_out_of_memory(error);
        }
    }
    if (!inside) {
        uint64_t left = self->file_size - offset;
        size_t whole = left < most ? (size_t)left : most;
        self->window_size = 0;
        eplb_status status = eplb_input_read_at(self->input, self->window, whole, offset, error);
        if (status != EPLB_OK) {
            return status;
        }
        self->window_start = offset;
        self->window_size = whole;
    }
    *bytes = self->window + (size_t)(offset - self->window_start);
    return EPLB_OK;
}

/* Decodes items that are `step` bytes apart, up to the first that is no count, which is decoded,
 * too. */
static size_t decode_items(const eplb_item_type *type, const char *bytes, size_t step, size_t count,
                           double *values, eplb_number_class *number)
{
    size_t good = step == type->size ? eplb_item_counts(type, bytes, count, values) : 0;
    *number = EPLB_NUMBER_COUNT;
    for (; good < count; good++) {
        *number = eplb_item_decode(type, bytes + good * step, &values[good]);
        if (*number != EPLB_NUMBER_COUNT) {
            break;
        }
    }
    return good;
}

eplb_status eplb_torch_read(eplb_torch *torch, const eplb_tensor *tensor, size_t offset,
                            size_t stride, size_t count, double *values, size_t *read,
                            eplb_number_class *number, eplb_error *error)
{
    size_t item = tensor->type.size;
    size_t step = stride * item;
    uint64_t place = tensor->start + (uint64_t)offset * item;
    /* Items too far apart for the window come one by one, and nothing with them. */
    size_t span = count > 1 ? (count - 1) * step + item : item;
    size_t part = span <= WINDOW_SIZE ? count : 1;
    size_t size = part == 1 ? item : span;
    size_t most = span <= WINDOW_SIZE ? WINDOW_SIZE : item;
    *number = EPLB_NUMBER_COUNT;
    *read = 0;
    while (*read < count && *number == EPLB_NUMBER_COUNT) {
        const char *bytes = NULL;
        eplb_status status = hold(torch, place + (uint64_t)*read * step, size, most, &bytes, error);
        if (status != EPLB_OK) {
            return status;
        }
        size_t good = decode_items(&tensor->type, bytes, step, part, values + *read, number);
        torch->bad = bytes + good * step;
        *read += good;
    }
    return EPLB_OK;
}
