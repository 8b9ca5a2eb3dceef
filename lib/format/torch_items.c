/* SPDX-License-Identifier: MIT */
/* Items of tensors, where they lie in the file. */
#include "base/memory.h"
#include "format/torch.h"

#define WINDOW_SIZE ((size_t)256 << 10)

/* Makes `size` bytes (at most WINDOW_SIZE) at `offset` of the file be in the window. */
static eplb_status hold(eplb_torch *self, uint64_t offset, size_t size, const char **bytes,
                        eplb_error *error)
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
        size_t whole = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
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

/* Decodes items that are `step` bytes apart, up to the first that is no count. Inline, so that the
 * types of common files have loops of their own. */
static inline size_t decode_items(eplb_item_type type, const char *bytes, size_t step, size_t count,
                                  double *values, eplb_number_class *number)
{
    for (size_t i = 0; i < count; i++) {
        *number = eplb_item_decode(type, bytes + i * step, &values[i]);
        if (*number != EPLB_NUMBER_COUNT) {
            return i;
        }
    }
    return count;
}

/* The same for what most files have, without a branch for each item: all are counts if none has a
 * sign. */
static bool decode_int32(const char *bytes, size_t count, double *values)
{
    uint32_t signs = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)eplb_item_bits(bytes + i * 4, 4, false);
        signs |= bits;
        values[i] = (double)(int32_t)bits;
    }
    return signs >> 31 == 0;
}

static size_t decode_any(eplb_item_type type, const char *bytes, size_t step, size_t count,
                         double *values, eplb_number_class *number)
{
    if (type.kind == 'i' && type.size == 4 && step == 4 && decode_int32(bytes, count, values)) {
        *number = EPLB_NUMBER_COUNT;
        return count;
    }
    if (type.kind == 'i' && type.size == 8 && step == 8) {
        return decode_items((eplb_item_type){'i', 8, false}, bytes, 8, count, values, number);
    }
    return decode_items(type, bytes, step, count, values, number);
}

eplb_status eplb_torch_read(eplb_torch *torch, const eplb_tensor *tensor, size_t offset,
                            size_t stride, size_t count, double *values, size_t *read,
                            eplb_number_class *number, eplb_error *error)
{
    size_t item = tensor->type.size;
    size_t step = stride * item;
    uint64_t place = tensor->start + (uint64_t)offset * item;
    /* Items too far apart for the window come one by one. */
    size_t span = count > 1 ? (count - 1) * step + item : item;
    size_t part = span <= WINDOW_SIZE ? count : 1;
    *number = EPLB_NUMBER_COUNT;
    *read = 0;
    while (*read < count && *number == EPLB_NUMBER_COUNT) {
        const char *bytes = NULL;
        eplb_status status =
            hold(torch, place + (uint64_t)*read * step, part == 1 ? item : span, &bytes, error);
        if (status != EPLB_OK) {
            return status;
        }
        *read += decode_any(tensor->type, bytes, step, part, values + *read, number);
    }
    return EPLB_OK;
}
