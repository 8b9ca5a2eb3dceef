/* SPDX-License-Identifier: MIT */
#include "format/text.h"

#include <stdio.h>

#include "base/memory.h"

static bool make_room(eplb_text *text, size_t more)
{
    size_t needed;
    size_t capacity = text->capacity > 0 ? text->capacity : 1024;
    if (!eplb_size_add(text->length, more, &needed) || !eplb_size_add(needed, 1, &needed)) {
        return false;
    }
    while (capacity < needed) {
        if (!eplb_size_mul(capacity, 2, &capacity)) {
            return false;
        }
    }
    if (capacity == text->capacity) {
        return true;
    }
    char *bytes = eplb_realloc(&text->hooks, text->bytes, capacity, 1);
    if (bytes == NULL) {
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void eplb_text_add_bytes(eplb_text *text, const char *bytes, size_t length)
{
    text->failed = text->failed || !make_room(text, length);
    if (!text->failed) {
        memcpy(text->bytes + text->length, bytes, length);
        text->length += length;
        text->bytes[text->length] = '\0';
    }
}

void eplb_text_add(eplb_text *text, const char *string)
{
    eplb_text_add_bytes(text, string, strlen(string));
}

void eplb_text_add_integer(eplb_text *text, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    eplb_text_add(text, digits);
}

void eplb_text_add_list(eplb_text *text, const int32_t *values, int32_t count,
                        const char *separator)
{
    for (int32_t i = 0; i < count; i++) {
        if (i > 0) {
            eplb_text_add(text, separator);
        }
        eplb_text_add_integer(text, values[i]);
    }
}

void eplb_text_clear(eplb_text *text)
{
    eplb_free(&text->hooks, text->bytes);
    text->bytes = NULL;
    text->length = text->capacity = 0;
}
