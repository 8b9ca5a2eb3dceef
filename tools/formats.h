/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_FORMATS_H
#define EPLB_TOOLS_FORMATS_H

#include <stdbool.h>

#include <eplb/format.h>

/*
 * Finds the format that the option of a command names, which must do what one of the flags of
 * `ability` (such as EPLB_FORMAT_READS_COUNTS) says. Whoever reads placements asks for those that
 * are only written, too: what this build cannot read is for the reader to explain. `name` NULL:
 * *format becomes NULL. Returns an exit code, with a message when there is no such format.
 */
int find_format(const char *command, const char *option, const char *name, uint32_t ability,
                const eplb_format **format);

/* The options of readers for a format (NULL: recognised) and the number of logical experts that the
 * user gave (0: none), which is not what the limit of experts is there to stop. */
eplb_read_options reading_options(const eplb_format *format, int32_t experts);

/* Says on standard error that the counts were taken for those of so many logical experts: counts of
 * slots look like them. */
void note_assumed_experts(int32_t experts);

#endif
