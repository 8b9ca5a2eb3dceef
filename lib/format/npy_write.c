/* SPDX-License-Identifier: MIT */
/* Counts as a NumPy array of float64, which holds every sum of integers up to 2^53 and everything
 * that was read: [layers, experts] for one step, else [steps, layers, experts]. */
#include "format/npy_write.h"

#include <stdio.h>
#include <string.h>

#include "format/npy_header.h"

void eplb_npy_begin(const eplb_counts_shape *shape, eplb_text *text)
{
    char steps[24] = "";
    if (shape->steps != 1) {
        snprintf(steps, sizeof(steps), "%lld, ", (long long)shape->steps);
    }
    char dictionary[EPLB_NPY_DICTIONARY_SIZE];
    snprintf(dictionary, sizeof(dictionary),
             "{'descr': '<f8', 'fortran_order': False, 'shape': (%s%d, %d), }", steps,
             shape->layers, shape->experts);
    eplb_npy_add_header(text, dictionary);
}

void eplb_npy_write_row(const eplb_counts_shape *shape, const eplb_written_row *row,
                        eplb_text *text)
{
    for (int32_t e = 0; e < shape->experts; e++) {
        uint64_t bits;
        char bytes[sizeof(bits)];
        memcpy(&bits, &row->counts[e], sizeof(bits));
        for (size_t i = 0; i < sizeof(bits); i++) {
            bytes[i] = (char)(unsigned char)(bits >> 8 * i & 0xff);
        }
        eplb_text_add_bytes(text, bytes, sizeof(bytes));
    }
}

void eplb_npy_end(const eplb_counts_shape *shape, eplb_text *text)
{
    (void)shape;
    (void)text;
}
