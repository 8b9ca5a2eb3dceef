/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_WRAP_H
#define EPLB_TOOLS_WRAP_H

#include <stdio.h>

/* Writes the words of `text` and a newline in lines of at most 100 columns, as far as words allow:
 * the first word at `column`, where the caller is, further lines indented by `indent`. */
void write_wrapped(FILE *out, const char *text, int column, int indent);

#endif
