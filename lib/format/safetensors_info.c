/* SPDX-License-Identifier: MIT */
/* The header's object of one tensor: {"dtype":"I64","shape":[8],"data_offsets":[0,64]}. */
#include <stdarg.h>
#include <stdio.h>

#include "format/quote.h"
#include "format/safetensors.h"

enum { HAS_TYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

/* Types of counts; there are others, of weights. */
static const struct {
    const char *name;
    char kind;
    size_t size;
} types[] = {
    {"I64", 'i', 8}, {"I32", 'i', 4}, {"I16", 'i', 2}, {"I8", 'i', 1},  {"U64", 'u', 8},
    {"U32", 'u', 4}, {"U16", 'u', 2}, {"U8", 'u', 1},  {"F64", 'f', 8}, {"F32", 'f', 4},
};

/* The first numbers of a list, and what all make. */
typedef struct size_list {
    uint64_t sizes[2];
    size_t count;
    size_t product;
    bool overflows;
} size_list;

eplb_status eplb_tensor_fail(const eplb_scanner *scanner, const eplb_tensor_info *info,
                             eplb_status status, eplb_error *error, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return eplb_scan_fail(scanner, status, error, "tensor '%s': %s",
                          eplb_quote_bytes(info->name, strlen(info->name)).text, text);
}

static eplb_status scan_type(eplb_scanner *scanner, eplb_tensor_info *info, eplb_error *error)
{
    char name[16];
    size_t length = 0;
    eplb_status status = eplb_scan_string(scanner, name, sizeof(name), &length, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t kept = length < sizeof(name) ? length : sizeof(name);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (kept == strlen(types[i].name) && memcmp(name, types[i].name, kept) == 0) {
            info->type = (eplb_item_type){.kind = types[i].kind, .size = types[i].size};
            return EPLB_OK;
        }
    }
    return eplb_tensor_fail(scanner, info, EPLB_ERROR_UNSUPPORTED, error,
                            "items of type '%s', expected integers of 8 to 64 bits or "
                            "floats of 32 or 64",
                            eplb_quote_bytes(name, kept).text);
}

/* Reads a list of sizes: the first two go to `sizes`. */
static eplb_status scan_sizes(eplb_scanner *scanner, const char *words, size_list *list,
                              eplb_error *error)
{
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '[', "'[': a list of sizes", error);
    *list = (size_list){.product = 1};
    while (status == EPLB_OK) {
        int64_t size = 0;
        status = eplb_scan_more(scanner, ']', &first, &more, error);
        if (status != EPLB_OK || !more) {
            break;
        }
        status = eplb_scan_integer(scanner, words, EPLB_EXACT_INTEGER, &size, error);
        if (list->count < 2) {
            list->sizes[list->count] = (uint64_t)size;
        }
        list->count++;
        list->overflows |= !eplb_size_mul(list->product, (size_t)size, &list->product);
    }
    return status;
}

static eplb_status scan_shape(eplb_scanner *scanner, eplb_tensor_info *info, size_t *items,
                              eplb_error *error)
{
    size_list list;
    eplb_status status = scan_sizes(scanner, "shape", &list, error);
    if (status == EPLB_OK && list.overflows) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "a shape of too many items");
    }
    info->dimensions = list.count;
    memcpy(info->shape, list.sizes, sizeof(list.sizes));
    *items = list.product;
    return status;
}

static eplb_status scan_offsets(eplb_scanner *scanner, eplb_tensor_info *info, eplb_error *error)
{
    size_list list;
    eplb_status status = scan_sizes(scanner, "data_offsets", &list, error);
    if (status == EPLB_OK && list.count != 2) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error, "data_offsets are not two");
    }
    info->begin = list.sizes[0];
    info->end = list.sizes[1];
    return status;
}

static eplb_status scan_member(eplb_scanner *scanner, const char *key, unsigned *seen,
                               eplb_tensor_info *info, size_t *items, eplb_error *error)
{
    unsigned bit = strcmp(key, "dtype") == 0          ? HAS_TYPE
                   : strcmp(key, "shape") == 0        ? HAS_SHAPE
                   : strcmp(key, "data_offsets") == 0 ? HAS_OFFSETS
                                                      : 0;
    if ((*seen & bit) != 0) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error, "a second key of one name");
    }
    *seen |= bit;
    return bit == HAS_TYPE      ? scan_type(scanner, info, error)
           : bit == HAS_SHAPE   ? scan_shape(scanner, info, items, error)
           : bit == HAS_OFFSETS ? scan_offsets(scanner, info, error)
                                : eplb_scan_skip(scanner, error);
}

static eplb_status check_place(const eplb_scanner *scanner, const eplb_tensor_info *info,
                               size_t items, uint64_t data_size, eplb_error *error)
{
    unsigned long long begin = info->begin;
    unsigned long long end = info->end;
    if (begin > end || end > data_size) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "data_offsets [%llu, %llu], not inside the %llu bytes "
                                "of data",
                                begin, end, (unsigned long long)data_size);
    }
    size_t bytes;
    if (!eplb_size_mul(items, info->type.size, &bytes) || bytes != end - begin) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "data_offsets [%llu, %llu], but a shape of %zu items "
                                "of %zu bytes",
                                begin, end, items, info->type.size);
    }
    if (bytes > UINT32_MAX) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_LIMIT, error, "%zu bytes, at most %lld",
                                bytes, (long long)UINT32_MAX);
    }
    return EPLB_OK;
}

eplb_status eplb_safetensors_scan_info(eplb_scanner *scanner, uint64_t data_size,
                                       eplb_tensor_info *info, eplb_error *error)
{
    char key[EPLB_KEY_SIZE];
    unsigned seen = 0;
    size_t items = 0;
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '{', "'{': what a tensor is", error);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status == EPLB_OK && more) {
            status = scan_member(scanner, key, &seen, info, &items, error);
        }
    }
    if (status == EPLB_OK && seen != HAS_ALL) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "no key 'dtype', 'shape' or 'data_offsets'");
    }
    return status == EPLB_OK ? check_place(scanner, info, items, data_size, error) : status;
}
