/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_NEAREST_H
#define EPLB_TOOLS_NEAREST_H

/* Looks for the name that a mistyped word may have meant. */
typedef struct nearest {
    const char *word;
    const char *name; /* the best so far; NULL: none is near */
    int distance;
} nearest;

void nearest_begin(nearest *search, const char *word);
void nearest_offer(nearest *search, const char *name);

/* The hint to put after a message, such as "; did you mean '--gpus'?", or "". `prefix` stands
 * before the name. `text` holds `size` bytes. Returns `text`. */
const char *nearest_hint(const nearest *search, const char *prefix, char *text, int size);

#endif
