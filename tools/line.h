/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_LINE_H
#define EPLB_TOOLS_LINE_H

#include <stddef.h>

#include <eplb/export.h>

/* A line of text that grows in a caller's buffer. What does not fit is cut; control characters
 * become '?'. */
typedef struct line {
    char *text;
    size_t size;
    size_t used;
} line;

/* Begins an empty line in `text`, which holds `size` > 0 bytes. */
line line_begin(char *text, size_t size);
void line_add(line *self, const char *format, ...) EPLB_PRINTF(2, 3);

/* Adds a number of things, which may be a mean: "64 tokens", "1 token", "0.4 tokens". */
void line_add_count(line *self, double count, const char *thing);

#endif
