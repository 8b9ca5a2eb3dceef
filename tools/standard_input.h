/* SPDX-License-Identifier: MIT */
/* Standard input ("-") as a file among others on the command line. It can be read once. */
#ifndef EPLB_TOOLS_STANDARD_INPUT_H
#define EPLB_TOOLS_STANDARD_INPUT_H

#include <eplb/status.h>

#include "options.h"

/* How often the sources of --load and one more file (may be NULL) name standard input. */
int32_t uses_of_standard_input(const text_list *sources, const char *file);

/* A source that can be read more than once. */
typedef struct rereadable {
    char *text; /* the source, "-" replaced by a file with the same content; owned */
    int file;   /* its descriptor; -1: the source is no standard input */
} rereadable;

/* Spools standard input, if `source` names it, into a file of TMPDIR or /tmp without a name.
 * Refuses other pipes. */
eplb_status rereadable_open(rereadable *self, const char *source, eplb_error *error);
void rereadable_close(rereadable *self);

/* Makes a message that names that file name standard input. */
void rereadable_explain(const rereadable *self, eplb_error *error);

#endif
