/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_FORMATS_H
#define EPLB_TOOLS_FORMATS_H

#include <eplb/format.h>

/*
 * Finds the format that the option of a command names, which must do what `ability` (a flag such as
 * EPLB_FORMAT_READS_COUNTS) says. `name` NULL: *format becomes NULL. Returns an exit code, with a
 * message when there is no such format.
 */
int find_format(const char *command, const char *option, const char *name, uint32_t ability,
                const eplb_format **format);

#endif
