/* SPDX-License-Identifier: MIT */
/* The items of arrays in files: integers of 8 to 64 bits, floats of 32 or 64. */
#ifndef EPLB_FORMAT_ITEM_H
#define EPLB_FORMAT_ITEM_H

#include <float.h>
#include <string.h>

#include "format/number.h"

typedef struct eplb_item_type {
    char kind;   /* 'i', 'u' or 'f' */
    size_t size; /* bytes */
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

static inline double eplb_item_float(uint64_t bits, size_t size)
{
    if (size == sizeof(float)) {
        uint32_t narrow = (uint32_t)bits;
        float value;
        memcpy(&value, &narrow, sizeof(value));
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* What an item is as a count; its value is exact for counts, and near enough to be shown for
 * others. */
static inline eplb_number_class eplb_item_decode(eplb_item_type type, const char *bytes,
                                                 double *value)
{
    uint64_t bits = eplb_item_bits(bytes, type.size, type.big_endian);
    unsigned unused = 64 - 8 * (unsigned)type.size;
    if (type.kind == 'f') {
        *value = eplb_item_float(bits, type.size);
        return *value < 0.0        ? EPLB_NUMBER_NEGATIVE
               : *value <= DBL_MAX ? EPLB_NUMBER_COUNT
                                   : EPLB_NUMBER_NOT_FINITE;
    }
    *value = (double)bits;
    if (type.kind == 'i' && (bits << unused) >> 63 != 0) {
        *value = (double)((int64_t)(bits << unused) >> unused);
        return EPLB_NUMBER_NEGATIVE;
    }
    return bits <= (uint64_t)EPLB_EXACT_INTEGER ? EPLB_NUMBER_COUNT : EPLB_NUMBER_INEXACT;
}

#endif
