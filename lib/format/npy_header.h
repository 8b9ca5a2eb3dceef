/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_NPY_HEADER_H
#define EPLB_FORMAT_NPY_HEADER_H

#include "format/input.h"
#include "format/text.h"

#define EPLB_NPY_MAGIC "\x93NUMPY"
#define EPLB_NPY_MAGIC_SIZE ((size_t)6)

/* The header of a .npy file, versions 1.0 to 3.0 (NumPy's numpy/lib/format.py). */
typedef struct eplb_npy_header {
    char kind;   /* 'i', 'u' or 'f' */
    size_t size; /* bytes of an item */
    bool big_endian;
    bool fortran_order;
    int dimensions;  /* any number */
    size_t shape[3]; /* the first ones */
    uint64_t data_offset;
} eplb_npy_header;

/* The bits of an item of 1 to 8 bytes, the first byte the lowest unless it is big-endian. */
static inline uint64_t eplb_npy_bits(const char *bytes, size_t size, bool big_endian)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        bits |= (uint64_t)byte[i] << 8 * (big_endian ? size - 1 - i : i);
    }
    return bits;
}

/* Reads the header from the beginning of the input, up to the first item. */
eplb_status eplb_npy_read_header(eplb_input *input, eplb_npy_header *header, eplb_error *error);

/* Room for a dictionary that is written. */
#define EPLB_NPY_DICTIONARY_SIZE 116

/* Appends a header of version 1.0: magic, version, length of the dictionary (shorter than
 * EPLB_NPY_DICTIONARY_SIZE) and the dictionary, filled up with blanks. */
void eplb_npy_add_header(eplb_text *text, const char *dictionary);

#endif
