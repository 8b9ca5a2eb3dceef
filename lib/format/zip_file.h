/* SPDX-License-Identifier: MIT */
/* How minizip reads an input: it asks for single bytes, so a block of the file is kept. */
#ifndef EPLB_FORMAT_ZIP_FILE_H
#define EPLB_FORMAT_ZIP_FILE_H

#include <minizip/ioapi.h>

#include "format/input.h"

#define EPLB_ZIP_BLOCK ((size_t)16 << 10)

typedef struct eplb_zip_file {
    const eplb_input *input;
    uint64_t size;
    uint64_t position;
    uint64_t block_start;
    size_t block_size;
    bool failed; /* the file could not be read, or ended */
    char block[EPLB_ZIP_BLOCK];
} eplb_zip_file;

/* The callbacks that read `file`, which must outlive them. */
zlib_filefunc64_def eplb_zip_callbacks(eplb_zip_file *file);

#endif
