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
