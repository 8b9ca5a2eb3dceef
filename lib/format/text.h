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

void eplb_text_clear(eplb_text *text);

#endif
