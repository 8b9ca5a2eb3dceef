/* SPDX-License-Identifier: MIT */
/* The one row of counts that a reader holds. */
#ifndef EPLB_FORMAT_COUNTS_BUFFER_H
#define EPLB_FORMAT_COUNTS_BUFFER_H

#include "base/memory.h"

typedef struct eplb_counts_buffer {
    double *values; /* [capacity] */
    int32_t length;
    int32_t capacity;
} eplb_counts_buffer;

/* Makes room for one more count, doubling what there is, but never beyond `limit`. False when
 * memory is out; the length must be below the limit. */
static inline bool eplb_counts_buffer_grow(eplb_counts_buffer *buffer, const eplb_hooks *hooks,
                                           int32_t limit)
{
    if (buffer->length < buffer->capacity) {
        return true;
    }
    int32_t capacity = buffer->capacity < limit / 2 ? buffer->capacity * 2 : limit;
    capacity = capacity < 256 && limit >= 256 ? 256 : capacity;
    capacity = capacity > buffer->length ? capacity : limit;
    double *values = eplb_realloc(hooks, buffer->values, (size_t)capacity, sizeof(*values));
    if (values == NULL) {
        return false;
    }
    buffer->values = values;
    buffer->capacity = capacity;
    return true;
}

#endif
