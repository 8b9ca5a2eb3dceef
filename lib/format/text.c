/* SPDX-License-Identifier: MIT */
#include "format/text.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "format/number.h"

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
    bool fits = length < text->capacity - text->length; /* the NUL, too */
    text->failed = text->failed || !(fits || make_room(text, length));
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

/* Logs have millions of numbers: snprintf would take most of the time. */
void eplb_text_add_integer(eplb_text *text, int64_t value)
{
    char digits[24];
    char *first = digits + sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        *--first = '-';
    }
    eplb_text_add_bytes(text, first, (size_t)(digits + sizeof(digits) - first));
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

/* The shortest of three precisions that reads as the same double; `digits` holds 40 bytes. */
static void print_exactly(double count, char *digits)
{
    for (int precision = 14; precision <= 16; precision++) {
        snprintf(digits, 40, "%.*e", precision, count);
        if (strtod(digits, NULL) == count) { /* both in the locale of the host */
            return;
        }
    }
}

/* "5.25e-01": what the host's locale puts for the point, and zeros at the end, are left out. */
static void add_fraction(eplb_text *text, double count)
{
    char digits[40];
    print_exactly(count, digits);
    size_t exponent = strcspn(digits, "e");
    size_t fraction = 1;
    while (fraction < exponent && (digits[fraction] < '0' || digits[fraction] > '9')) {
        fraction++;
    }
    size_t end = exponent;
    while (end > fraction && digits[end - 1] == '0') {
        end--;
    }
    eplb_text_add_bytes(text, digits, 1);
    if (end > fraction) {
        eplb_text_add(text, ".");
        eplb_text_add_bytes(text, digits + fraction, end - fraction);
    }
    eplb_text_add(text, digits + exponent);
}

void eplb_text_add_count(eplb_text *text, double count)
{
    if (count <= (double)EPLB_EXACT_INTEGER && count == (double)(int64_t)count) {
        eplb_text_add_integer(text, (int64_t)count);
    } else {
        add_fraction(text, count);
    }
}

void eplb_text_add_counts(eplb_text *text, const double *counts, int32_t length)
{
    for (int32_t e = 0; e < length; e++) {
        eplb_text_add(text, e == 0 ? "[" : ",");
        eplb_text_add_count(text, counts[e]);
    }
    eplb_text_add(text, "]");
}

void eplb_text_clear(eplb_text *text)
{
    eplb_free(&text->hooks, text->bytes);
    text->bytes = NULL;
    text->length = text->capacity = 0;
}
