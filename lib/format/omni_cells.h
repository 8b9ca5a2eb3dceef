/* SPDX-License-Identifier: MIT */
/* omni-infer's placement as it lies in a file: which rank has which expert in which layer. */
#ifndef EPLB_FORMAT_OMNI_CELLS_H
#define EPLB_FORMAT_OMNI_CELLS_H

#include "format/format.h"

typedef struct eplb_omni_cells {
    int32_t ranks;
    int32_t layers;
    int32_t experts;
    uint8_t *cells; /* [ranks][layers][experts] 0 or 1 */
} eplb_omni_cells;

/* Whether the content is of one of the three forms: .npy, .bin, .txt. */
bool eplb_omni_probe(const eplb_probe *probe);

/* Reads a file of one of these forms; the cells are to be freed whether it fails or not. */
eplb_status eplb_omni_read_cells(eplb_reading *reading, eplb_omni_cells *grid, eplb_error *error);
void eplb_omni_free_cells(eplb_omni_cells *grid, const eplb_hooks *hooks);

static inline const uint8_t *eplb_omni_row(const eplb_omni_cells *grid, int32_t rank, int32_t layer)
{
    size_t row = (size_t)rank * (size_t)grid->layers + (size_t)layer;
    return grid->cells + row * (size_t)grid->experts;
}

#endif
