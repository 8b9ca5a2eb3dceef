/* SPDX-License-Identifier: MIT */
#include "format/item.h"

#include <float.h>
#include <string.h>

static double float_of(uint64_t bits, size_t size)
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

eplb_number_class eplb_item_decode(const eplb_item_type *type, const char *bytes, double *value)
{
    uint64_t bits = eplb_item_bits(bytes, type->size, type->big_endian);
    unsigned unused = 64 - 8 * (unsigned)type->size;
    if (type->kind == 'f') {
        *value = float_of(bits, type->size);
        return *value < 0.0        ? EPLB_NUMBER_NEGATIVE
               : *value <= DBL_MAX ? EPLB_NUMBER_COUNT
                                   : EPLB_NUMBER_NOT_FINITE;
    }
    *value = (double)bits;
    if (type->kind == 'i' && (bits << unused) >> 63 != 0) {
        *value = (double)((int64_t)(bits << unused) >> unused);
        return EPLB_NUMBER_NEGATIVE;
    }
    return bits <= (uint64_t)EPLB_EXACT_INTEGER ? EPLB_NUMBER_COUNT : EPLB_NUMBER_INEXACT;
}

/* Written out, compilers make one load of it, which they do not of the loop. */
static uint64_t int64_bits(const char *bytes)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    return (uint64_t)byte[0] | (uint64_t)byte[1] << 8 | (uint64_t)byte[2] << 16 |
           (uint64_t)byte[3] << 24 | (uint64_t)byte[4] << 32 | (uint64_t)byte[5] << 40 |
           (uint64_t)byte[6] << 48 | (uint64_t)byte[7] << 56;
}

/* Negative numbers are above 2^53 as well. */
static size_t int64_counts(const char *bytes, size_t count, double *counts)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = int64_bits(bytes + i * sizeof(bits));
        if (bits > (uint64_t)EPLB_EXACT_INTEGER) {
            return i;
        }
        counts[i] = (double)(int64_t)bits;
    }
    return count;
}

size_t eplb_item_counts(const eplb_item_type *type, const char *bytes, size_t count, double *counts)
{
    if (type->kind == 'i' && type->size == sizeof(int64_t) && !type->big_endian) {
        return int64_counts(bytes, count, counts);
    }
    size_t good = 0;
    while (good < count &&
           eplb_item_decode(type, bytes + good * type->size, &counts[good]) == EPLB_NUMBER_COUNT) {
        good++;
    }
    return good;
}
