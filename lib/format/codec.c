/* SPDX-License-Identifier: MIT */
#include "format/codec.h"

#include <string.h>

#include "base/memory.h"
#include "format/read_ahead.h"

typedef struct codec {
    const char *name;
    const char *magic;
    size_t magic_size;
    const char *library; /* NULL: no build reads it */
    eplb_status (*open)(eplb_stream **stream, eplb_input *packed, eplb_error *error); /* NULL: not
                                                                                       * built in */
} codec;

static const codec codecs[] = {
    /* With the method, which is always deflate: two bytes may begin other files, too. */
    {"gzip", "\x1f\x8b\x08", 3, "zlib",
#ifdef EPLB_HAVE_ZLIB
     eplb_gzip_open
#else
     NULL
#endif
    },
    {"zstd", "\x28\xb5\x2f\xfd", 4, "libzstd",
#ifdef EPLB_HAVE_ZSTD
     eplb_zstd_open
#else
     NULL
#endif
    },
    {"xz",
     "\xfd"
     "7zXZ\0",
     6, NULL, NULL},
    {"bzip2", "BZh91AY&SY", 10, NULL, NULL},
    {"lz4", "\x04\x22\x4d\x18", 4, NULL, NULL},
};
#define LONGEST_MAGIC 10

static eplb_status refuse(const eplb_input *input, const codec *found, eplb_error *error)
{
    return found->library != NULL
               ? eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                "%s: compressed with %s, and this build is without %s", input->name,
                                found->name, found->library)
               : eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                "%s: compressed with %s, which is not read: unpack it first",
                                input->name, found->name);
}

/* zstd's frames without data have 16 magics. They stand first in what pzstd writes. */
static bool begins_skippable(const eplb_input *input)
{
    return eplb_input_unread(input) >= 4 && ((unsigned char)input->cursor[0] & 0xF0) == 0x50 &&
           memcmp(input->cursor + 1, "\x2a\x4d\x18", 3) == 0;
}

static bool begins(const eplb_input *input, const codec *candidate)
{
    bool has_magic = eplb_input_unread(input) >= candidate->magic_size &&
                     memcmp(input->cursor, candidate->magic, candidate->magic_size) == 0;
    return has_magic || (strcmp(candidate->name, "zstd") == 0 && begins_skippable(input));
}

static const codec *find_codec(const eplb_input *input)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        if (begins(input, &codecs[i])) {
            return &codecs[i];
        }
    }
    return NULL;
}

/* Reads ahead, but not of what has to be waited for, as a pipe has: who closes would wait, too. */
static eplb_status read_ahead(eplb_stream **stream, const eplb_input *packed, eplb_error *error)
{
    uint64_t size;
    if (!eplb_input_size(packed, &size)) {
        return EPLB_OK;
    }
    eplb_stream *ahead = eplb_read_ahead(*stream, &packed->hooks);
    if (ahead == NULL) {
        return eplb_out_of_memory(error);
    }
    *stream = ahead;
    return EPLB_OK;
}

static eplb_status unpack(eplb_input *input, const codec *found, eplb_error *error)
{
    eplb_input *packed = eplb_alloc(&input->hooks, 1, sizeof(*packed));
    if (packed == NULL) {
        return eplb_out_of_memory(error);
    }
    *packed = *input;
    eplb_stream *stream;
    eplb_status status = found->open(&stream, packed, error);
    if (status != EPLB_OK) {
        eplb_free(&input->hooks, packed); /* the bytes are still the input's */
        return status;
    }
    eplb_hooks hooks = input->hooks;
    char *name = input->name;
    eplb_input_from_memory(input, name, NULL, 0); /* file and buffer are the stream's now */
    input->hooks = hooks;
    status = read_ahead(&stream, packed, error);
    if (status == EPLB_OK) {
        status = eplb_input_from_stream(input, &hooks, name, stream, error);
    }
    if (status != EPLB_OK) {
        stream->close(stream);
    }
    return status;
}

eplb_status eplb_codec_wrap(eplb_input *input, eplb_error *error)
{
    eplb_status status = eplb_input_need(input, LONGEST_MAGIC, error);
    const codec *found = status == EPLB_OK ? find_codec(input) : NULL;
    if (found == NULL) {
        return status;
    }
    if (found->open == NULL) {
        return refuse(input, found, error);
    }
    return unpack(input, found, error);
}

void eplb_codec_close_packed(eplb_input *packed)
{
    eplb_hooks hooks = packed->hooks;
    packed->name = NULL; /* that of the unpacked input */
    eplb_input_close(packed);
    eplb_free(&hooks, packed);
}

eplb_status eplb_codec_fail(const eplb_input *packed, const char *codec_name, const char *what,
                            eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %llu of the %s data: %s", packed->name,
                          (unsigned long long)eplb_input_offset(packed, packed->cursor), codec_name,
                          what);
}
