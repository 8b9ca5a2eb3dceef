/* SPDX-License-Identifier: MIT */
/* Files packed with each codec of the build, and what they read as. */
#ifndef EPLB_TESTS_FORMAT_PACKED_H
#define EPLB_TESTS_FORMAT_PACKED_H

#include "packing.h"

typedef void (*packer)(bytes *packed, const void *data, size_t size);

static const packer packers[] = {
#ifdef HAVE_ZLIB
    add_gzip,
#endif
#ifdef HAVE_ZSTD
    add_zstd,
#endif
    NULL,
};

/* Appends a row to the text of all. */
static inline void write_row(void *context, const eplb_counts_row *row)
{
    bytes *text = context;
    char field[64];
    int length =
        snprintf(field, sizeof(field), "step %lld layer %d:", (long long)row->step, row->layer);
    add_bytes(text, field, (size_t)length);
    for (int32_t e = 0; e < row->length; e++) {
        length = snprintf(field, sizeof(field), " %.17g", row->counts[e]);
        add_bytes(text, field, (size_t)length);
    }
    add_bytes(text, "\n", 1);
}

static inline bytes transcript_of(const char *path)
{
    bytes read = {0};
    eplb_error error;
    assert_ok(read_rows(path, NULL, write_row, &read, &error), &error);
    assert_true(read.size > 0);
    return read;
}

/* Reads a file and packed bytes: they must have the same rows. */
static inline void assert_same_counts(const char *path, const bytes *packed)
{
    bytes plain = transcript_of(path);
    test_write_file("packed", packed->data, packed->size);
    bytes unpacked = transcript_of("packed");
    assert_int_equal(unpacked.size, plain.size);
    assert_memory_equal(unpacked.data, plain.data, plain.size);
    free(plain.data);
    free(unpacked.data);
}

#ifdef HAVE_ZSTD
/* A frame that asks for a window of 2^log bytes, with blocks to be added. */
static inline bytes begin_frame(int log)
{
    bytes frame = {0};
    add_integer(&frame, 0xfd2fb528, 4);
    add_integer(&frame, 0, 1);
    add_integer(&frame, (uint64_t)(log - 10) << 3, 1);
    return frame;
}

static inline void add_raw_block(bytes *frame, const char *text, bool last)
{
    add_integer(frame, strlen(text) << 3 | (last ? 1 : 0), 3);
    add_bytes(frame, text, strlen(text));
}
#endif

#endif
