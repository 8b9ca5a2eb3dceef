/* SPDX-License-Identifier: MIT */
/* A text that grows while a writer renders. A failed allocation is remembered and everything after
 * it ignored, so that writers look at the end only. */
#ifndef EPLB_FORMAT_TEXT_H
#define EPLB_FORMAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>

typedef struct eplb_text {
    eplb_hooks hooks;
    char *bytes; /* NUL-terminated when there are any */
    size_t length;
    size_t capacity;
    bool failed;
} eplb_text;

void eplb_text_add(eplb_text *text, const char *string);
void eplb_text_add_bytes(eplb_text *text, const char *bytes, size_t length);
void eplb_text_add_integer(eplb_text *text, int64_t value);

/* Appends "1,2,3" with the separator given. */
void eplb_text_add_list(eplb_text *text, const int32_t *values, int32_t count,
                        const char *separator);

/* Appends a count, finite and >= 0: one that is integral, up to 2^53, as an integer, others so that
 * reading the text gives the same double, in every locale of the host. */
void eplb_text_add_count(eplb_text *text, double count);

/* Appends a JSON list of counts. */
void eplb_text_add_counts(eplb_text *text, const double *counts, int32_t length);

void eplb_text_clear(eplb_text *text);

#endif
