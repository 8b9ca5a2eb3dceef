/* SPDX-License-Identifier: MIT */
#include "format/zip_file.h"

#include <string.h>

static voidpf ZCALLBACK open_file(voidpf opaque, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return opaque;
}

static int ZCALLBACK close_file(voidpf opaque, voidpf stream)
{
    (void)opaque;
    (void)stream;
    return 0;
}

static int ZCALLBACK test_error(voidpf opaque, voidpf stream)
{
    (void)stream;
    return ((const eplb_zip_file *)opaque)->failed ? 1 : 0;
}

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* Makes the block begin at the position. */
static bool move_block(eplb_zip_file *file)
{
    size_t size = smaller(file->size - file->position, EPLB_ZIP_BLOCK);
    file->block_start = file->position;
    file->block_size = 0;
    if (eplb_input_read_at(file->input, file->block, size, file->position, NULL) != EPLB_OK) {
        file->failed = true;
        return false;
    }
    file->block_size = size;
    return true;
}

static uLong ZCALLBACK read_file(voidpf opaque, voidpf stream, void *data, uLong size)
{
    (void)stream;
    eplb_zip_file *file = opaque;
    char *next = data;
    size_t left = file->position < file->size ? smaller(file->size - file->position, size) : 0;
    size_t done = left;
    if (left < size) {
        file->failed = true; /* minizip would take the missing bytes for zeros */
    }
    while (left > 0) {
        bool inside = file->position >= file->block_start &&
                      file->position - file->block_start < file->block_size;
        if (!inside && !move_block(file)) {
            return 0;
        }
        size_t skip = (size_t)(file->position - file->block_start);
        size_t take = smaller(left, file->block_size - skip);
        memcpy(next, file->block + skip, take);
        next += take;
        left -= take;
        file->position += take;
    }
    return (uLong)done;
}

static uLong ZCALLBACK write_file(voidpf opaque, voidpf stream, const void *data, uLong size)
{
    (void)opaque;
    (void)stream;
    (void)data;
    (void)size;
    return 0;
}

static ZPOS64_T ZCALLBACK tell(voidpf opaque, voidpf stream)
{
    (void)stream;
    return ((const eplb_zip_file *)opaque)->position;
}

static long ZCALLBACK seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin)
{
    (void)stream;
    eplb_zip_file *file = opaque;
    uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? file->position
                    : origin == ZLIB_FILEFUNC_SEEK_END ? file->size
                                                       : 0;
    uint64_t target = base + offset;
    if (target < base || target > file->size) {
        return -1;
    }
    file->position = target;
    return 0;
}

zlib_filefunc64_def eplb_zip_callbacks(eplb_zip_file *file)
{
    return (zlib_filefunc64_def){.zopen64_file = open_file,
                                 .zread_file = read_file,
                                 .zwrite_file = write_file,
                                 .ztell64_file = tell,
                                 .zseek64_file = seek,
                                 .zclose_file = close_file,
                                 .zerror_file = test_error,
                                 .opaque = file};
}
