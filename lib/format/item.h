/* SPDX-License-Identifier: MIT */
/* Numbers as arrays of .npy, safetensors and the like store them. */
#ifndef EPLB_FORMAT_ITEM_H
#define EPLB_FORMAT_ITEM_H

#include "format/number.h"

typedef struct eplb_item_type {
    char kind;   /* 'i': signed, 'u': unsigned integers; 'f': floats of 4 or 8 bytes */
    size_t size; /* in bytes, 1 to 8 */
    bool big_endian;
} eplb_item_type;

/* The bits of an item of 1 to 8 bytes, the first byte the lowest unless it is big-endian. */
static inline uint64_t eplb_item_bits(const char *bytes, size_t size, bool big_endian)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        bits |= (uint64_t)byte[i] << 8 * (big_endian ? size - 1 - i : i);
    }
    return bits;
}

/* The value of a float of 4 or 8 bytes. */
double eplb_item_float(uint64_t bits, size_t size);

/* What an item is; its value is exact for counts. */
eplb_number_class eplb_item_decode(const eplb_item_type *type, const char *bytes, double *value);

/* An item as messages show it, integers exactly. */
typedef struct eplb_item_text {
    char text[32];
} eplb_item_text;

eplb_item_text eplb_item_show(const eplb_item_type *type, const char *bytes);

/* Decodes a row of items up to the first that is no count. Returns how many are. */
size_t eplb_item_counts(const eplb_item_type *type, const char *bytes, size_t count,
                        double *counts);

#endif
