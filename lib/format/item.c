/* SPDX-License-Identifier: MIT */
#include "format/item.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

double eplb_item_float(uint64_t bits, size_t size)
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
        *value = eplb_item_float(bits, type->size);
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

eplb_item_text eplb_item_show(const eplb_item_type *type, const char *bytes)
{
    eplb_item_text shown;
    uint64_t bits = eplb_item_bits(bytes, type->size, type->big_endian);
    unsigned unused = 64 - 8 * (unsigned)type->size;
    if (type->kind == 'f') {
        snprintf(shown.text, sizeof(shown.text), "%.17g", eplb_item_float(bits, type->size));
    } else if (type->kind == 'i') {
        snprintf(shown.text, sizeof(shown.text), "%" PRId64, (int64_t)(bits << unused) >> unused);
    } else {
        snprintf(shown.text, sizeof(shown.text), "%" PRIu64, bits);
    }
    return shown;
}

/* Converts items in the order of bytes of this machine; whether all of them are counts. Loops that
 * do not stop at the first that is none have no branches, and become vector code. */
typedef bool convert_function(const char *restrict bytes, size_t count, double *restrict counts);

#define DEFINE_CONVERT(name, type, is_bad)                                                         \
    static bool name(const char *restrict bytes, size_t count, double *restrict counts)            \
    {                                                                                              \
        uint64_t bad = 0;                                                                          \
        for (size_t i = 0; i < count; i++) {                                                       \
            type item;                                                                             \
            memcpy(&item, bytes + i * sizeof(item), sizeof(item));                                 \
            counts[i] = (double)item;                                                              \
            bad |= (is_bad) ? 1u : 0u;                                                             \
        }                                                                                          \
        return bad == 0;                                                                           \
    }

DEFINE_CONVERT(convert_int8, int8_t, item < 0)
DEFINE_CONVERT(convert_int16, int16_t, item < 0)
DEFINE_CONVERT(convert_int32, int32_t, item < 0)
DEFINE_CONVERT(convert_uint8, uint8_t, false)
DEFINE_CONVERT(convert_uint16, uint16_t, false)
DEFINE_CONVERT(convert_uint32, uint32_t, false)
DEFINE_CONVERT(convert_float, float, !(item >= 0.0f && item <= FLT_MAX))
DEFINE_CONVERT(convert_double, double, !(item >= 0.0 && item <= DBL_MAX))

static double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Signed ones, too, since none below 0 is a count. Instructions for this are not everywhere: a half
 * behind the exponent of 2^52 is 2^52 plus that half, and of 2^84, plus 2^32 times the other. */
static bool convert_int64(const char *restrict bytes, size_t count, double *restrict counts)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t item;
        memcpy(&item, bytes + i * sizeof(item), sizeof(item));
        double low = double_of_bits((item & UINT32_MAX) | UINT64_C(0x433) << 52);
        double high = double_of_bits(item >> 32 | UINT64_C(0x453) << 52);
        counts[i] = (high - 0x1.00000001p84) + low;
        any |= item;
    }
    return any < (uint64_t)EPLB_EXACT_INTEGER;
}

static bool is_native(const eplb_item_type *type)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, sizeof(first));
    return type->size == 1 || type->big_endian == (first == 0);
}

/* NULL: the items have to be decoded one by one. */
static convert_function *find_convert(const eplb_item_type *type)
{
    static const struct {
        char kind;
        size_t size;
        convert_function *convert;
    } known[] = {
        {'i', 1, convert_int8},   {'i', 2, convert_int16}, {'i', 4, convert_int32},
        {'i', 8, convert_int64},  {'u', 1, convert_uint8}, {'u', 2, convert_uint16},
        {'u', 4, convert_uint32}, {'u', 8, convert_int64}, {'f', 4, convert_float},
        {'f', 8, convert_double},
    };
    for (size_t i = 0; is_native(type) && i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].kind == type->kind && known[i].size == type->size) {
            return known[i].convert;
        }
    }
    return NULL;
}

size_t eplb_item_counts(const eplb_item_type *type, const char *bytes, size_t count, double *counts)
{
    convert_function *convert = find_convert(type);
    if (convert != NULL && convert(bytes, count, counts)) {
        return count;
    }
    size_t good = 0;
    while (good < count &&
           eplb_item_decode(type, bytes + good * type->size, &counts[good]) == EPLB_NUMBER_COUNT) {
        good++;
    }
    return good;
}
