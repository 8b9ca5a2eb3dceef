/* SPDX-License-Identifier: MIT */
/* Bytes that grow, and packed ones: gzip members, zstd frames, zip archives with any fault. */
#ifndef EPLB_TESTS_FORMAT_PACKING_H
#define EPLB_TESTS_FORMAT_PACKING_H

#if defined HAVE_ZLIB || defined HAVE_ZIP
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "reading.h"

/* Starts as zeros; `data` is to be freed. */
typedef struct bytes {
    unsigned char *data;
    size_t size;
    size_t room; /* of `data`, more than `size` or both 0 */
} bytes;

static inline void add_bytes(bytes *self, const void *data, size_t size)
{
    if (self->room - self->size <= size) {
        self->room = 2 * (self->size + size) + 64;
        self->data = realloc(self->data, self->room);
        assert_non_null(self->data);
    }
    memcpy(self->data + self->size, data, size);
    self->size += size;
}

/* Appends an integer, little-endian. */
static inline void add_integer(bytes *self, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i));
        add_bytes(self, &byte, 1);
    }
}

static inline bytes bytes_of_file(const char *path)
{
    bytes read = {0};
    read.data = (unsigned char *)test_read_file(path, &read.size);
    read.room = read.size + 1;
    return read;
}

#if defined HAVE_ZLIB || defined HAVE_ZIP
/* Appends what the data deflates to: for 16 + 15 window bits as a gzip member, for -15 raw. */
static inline void add_deflated(bytes *self, const void *data, size_t size, int window_bits)
{
    z_stream encoder = {0};
    assert_int_equal(deflateInit2(&encoder, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    size_t room = deflateBound(&encoder, (uLong)size);
    unsigned char *packed = malloc(room);
    assert_non_null(packed);
    encoder.next_in = (Bytef *)(uintptr_t)data;
    encoder.avail_in = (uInt)size;
    encoder.next_out = packed;
    encoder.avail_out = (uInt)room;
    assert_int_equal(deflate(&encoder, Z_FINISH), Z_STREAM_END);
    add_bytes(self, packed, room - encoder.avail_out);
    assert_int_equal(deflateEnd(&encoder), Z_OK);
    free(packed);
}
#endif

#ifdef HAVE_ZLIB
static inline void add_gzip(bytes *self, const void *data, size_t size)
{
    add_deflated(self, data, size, 16 + 15);
}
#endif

#ifdef HAVE_ZSTD
/* Appends a frame with a checksum. */
static inline void add_zstd(bytes *self, const void *data, size_t size)
{
    size_t room = ZSTD_compressBound(size);
    unsigned char *packed = malloc(room);
    ZSTD_CCtx *encoder = ZSTD_createCCtx();
    assert_non_null(packed);
    assert_non_null(encoder);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, 1)));
    size_t length = ZSTD_compress2(encoder, packed, room, data, size);
    assert_false(ZSTD_isError(length));
    add_bytes(self, packed, length);
    (void)ZSTD_freeCCtx(encoder);
    free(packed);
}
#endif

#ifdef HAVE_ZIP
/* An entry of an archive, and what is to be wrong with it. */
typedef struct zip_part {
    const char *name;
    bytes content;
    bool deflated;
    unsigned flags;     /* 1: said to be encrypted */
    uint32_t crc_fault; /* of the bits of its checksum */
} zip_part;

enum { MOST_PARTS = 4 };

/* What the local header and the directory both say of an entry. */
static inline void add_zip_fields(bytes *self, const zip_part *part, size_t packed)
{
    uLong crc = crc32(0, part->content.data, (uInt)part->content.size) ^ part->crc_fault;
    add_integer(self, 20, 2); /* version */
    add_integer(self, part->flags, 2);
    add_integer(self, part->deflated ? 8 : 0, 2);
    add_integer(self, 0, 2); /* time and date: the beginning of 1980 */
    add_integer(self, 0x21, 2);
    add_integer(self, crc, 4);
    add_integer(self, packed, 4);
    add_integer(self, part->content.size, 4);
    add_integer(self, strlen(part->name), 2);
    add_integer(self, 0, 2); /* extra */
}

static inline bytes zip_of(const zip_part *parts, int count)
{
    bytes archive = {0};
    size_t offsets[MOST_PARTS];
    size_t sizes[MOST_PARTS];
    assert_true(count <= MOST_PARTS);
    for (int i = 0; i < count; i++) {
        bytes packed = {0};
        if (parts[i].deflated) {
            add_deflated(&packed, parts[i].content.data, parts[i].content.size, -15);
        } else {
            add_bytes(&packed, parts[i].content.data, parts[i].content.size);
        }
        offsets[i] = archive.size;
        sizes[i] = packed.size;
        add_bytes(&archive, "PK\x03\x04", 4);
        add_zip_fields(&archive, &parts[i], packed.size);
        add_bytes(&archive, parts[i].name, strlen(parts[i].name));
        add_bytes(&archive, packed.data, packed.size);
        free(packed.data);
    }
    size_t directory = archive.size;
    for (int i = 0; i < count; i++) {
        add_bytes(&archive, "PK\x01\x02", 4);
        add_integer(&archive, 20, 2);
        add_zip_fields(&archive, &parts[i], sizes[i]);
        add_integer(&archive, 0, 2); /* comment */
        add_integer(&archive, 0, 2); /* disk */
        add_integer(&archive, 0, 6); /* attributes */
        add_integer(&archive, offsets[i], 4);
        add_bytes(&archive, parts[i].name, strlen(parts[i].name));
    }
    size_t end = archive.size;
    add_bytes(&archive, "PK\x05\x06", 4);
    add_integer(&archive, 0, 4); /* disks */
    add_integer(&archive, (uint64_t)count, 2);
    add_integer(&archive, (uint64_t)count, 2);
    add_integer(&archive, end - directory, 4);
    add_integer(&archive, directory, 4);
    add_integer(&archive, 0, 2); /* comment */
    return archive;
}
#endif

#endif
