/* SPDX-License-Identifier: MIT */
/* Content that is read as the one and may be the other: lists of numbers fit counts and a placement
 * alike, and only a look at the numbers tells them apart. What is found is said, not acted upon. */
#ifndef EPLB_FORMAT_LIKENESS_H
#define EPLB_FORMAT_LIKENESS_H

#include "format/format.h"

/* A format with files of nothing but what is `wanted` that the content fits, too; NULL: none, or
 * the caller named the format. Before anything is read. */
const eplb_format *eplb_likeness_find(const eplb_reading *reading, uint32_t wanted);

/* Counts that may be a placement. */
typedef struct eplb_map_likeness {
    const eplb_format *format; /* of placements; NULL: they are not, as far as rows were seen */
    int32_t width;             /* of the rows; 0: none was seen */
} eplb_map_likeness;

void eplb_map_likeness_add(eplb_map_likeness *likeness, const eplb_counts_row *row);

/* Warns where every row had nothing but the numbers from 0 on, none left out, and enough of them.
 */
void eplb_map_likeness_warn(const eplb_map_likeness *likeness, const eplb_reading *reading);

/* Warns of a placement that may be counts of the format (NULL: it is not): of ids that are most
 * often above its number of slots. */
void eplb_warn_of_counts(const eplb_map *map, const eplb_format *counts);

#endif
