/* SPDX-License-Identifier: MIT */
/* What a message shows of a file: printable ASCII, so that it stays one line of UTF-8. */
#ifndef EPLB_FORMAT_QUOTE_H
#define EPLB_FORMAT_QUOTE_H

#include <stddef.h>

typedef struct eplb_quote {
    char text[48];
} eplb_quote;

/* The first 40 of `length` bytes, with '?' for what is not printable and "..." for the rest. */
eplb_quote eplb_quote_bytes(const char *bytes, size_t length);

/* Appends them to a list of names in `size` bytes, " 'name'", if there is room. */
void eplb_quote_append(char *list, size_t size, const char *bytes, size_t length);

#endif
