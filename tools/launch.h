/* SPDX-License-Identifier: MIT */
/* What to do with a file that was written: one line for people. */
#ifndef EPLB_TOOLS_LAUNCH_H
#define EPLB_TOOLS_LAUNCH_H

#include <stdio.h>

#include <eplb/format.h>

/* A placement in a file. */
typedef struct written_map {
    const eplb_format *format;
    const char *path;
    int32_t redundant; /* experts of a layer */
} written_map;

/* How an engine loads it. */
void print_launch_hint(const written_map *map, FILE *out);

/* What reads the counts at `path`. */
void print_counts_hint(const eplb_format *format, const char *path, FILE *out);

#endif
