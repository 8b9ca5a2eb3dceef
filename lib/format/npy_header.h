/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_NPY_HEADER_H
#define EPLB_FORMAT_NPY_HEADER_H

#include "format/input.h"
#include "format/item.h"

#define EPLB_NPY_MAGIC "\x93NUMPY"
#define EPLB_NPY_MAGIC_SIZE ((size_t)6)

/* The header of a .npy file, versions 1.0 to 3.0 (NumPy's numpy/lib/format.py). */
typedef struct eplb_npy_header {
    eplb_item_type item;
    bool fortran_order;
    int dimensions;  /* any number */
    size_t shape[3]; /* the first ones */
    uint64_t data_offset;
} eplb_npy_header;

/* Reads the header from the beginning of the input, up to the first item. */
eplb_status eplb_npy_read_header(eplb_input *input, eplb_npy_header *header, eplb_error *error);

#endif
