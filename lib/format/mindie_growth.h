/* SPDX-License-Identifier: MIT */
/* Whether rows look like sums that grow from iteration to iteration. Only MindIE's configuration
 * says it, and without it each row is taken for a layer. */
#ifndef EPLB_FORMAT_MINDIE_GROWTH_H
#define EPLB_FORMAT_MINDIE_GROWTH_H

#include <stdbool.h>

#include "base/memory.h"

/* Columns of a row are summed into so many parts, which grow where all columns do. */
#define EPLB_GROWTH_PARTS 8

typedef struct eplb_mindie_growth {
    double (*parts)[EPLB_GROWTH_PARTS]; /* [capacity], of each row */
    int32_t rows;
    int32_t capacity;
} eplb_mindie_growth;

/* Takes the next row, values [length]. False: memory is out. */
bool eplb_mindie_growth_add(eplb_mindie_growth *growth, const eplb_hooks *hooks,
                            const double *values, int32_t length);

/* The smallest number of layers that the rows can be iterations of, in which nothing ever falls
 * from one to the next and too much grows for chance; 0: they do not look like that. */
int32_t eplb_mindie_growth_layers(const eplb_mindie_growth *growth);

/* Begins anew, for another phase. */
void eplb_mindie_growth_clear(eplb_mindie_growth *growth, const eplb_hooks *hooks);

#endif
