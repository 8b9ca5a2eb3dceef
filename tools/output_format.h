/* SPDX-License-Identifier: MIT */
/* The format of a file to write, as its name says it. */
#ifndef EPLB_TOOLS_OUTPUT_FORMAT_H
#define EPLB_TOOLS_OUTPUT_FORMAT_H

#include <stdbool.h>

#include <eplb/format.h>

/*
 * Finds the format of --out `path` of a command unless --to has named it (*format not NULL): that
 * of the name's ending, else sglang for a placement and jsonl for counts. Returns an exit code,
 * with a message for names that stand for what would not be in the file.
 */
int find_output_format(const char *command, const char *path, bool is_placement,
                       const eplb_format **format);

/* Whether the ending of a name stands for placements only, where counts are asked about, or the
 * other way round. */
bool is_name_of_other(const char *path, bool is_placement);

#endif
