/* SPDX-License-Identifier: MIT */
/* gzip (RFC 1952): one member behind another, by zlib. */
#include "format/codec.h"
#include "format/zlib_memory.h"

typedef struct gzip {
    eplb_stream stream;
    eplb_input *packed;
    z_stream decoder;
    bool in_member;
} gzip;

/* Whether another member follows. Zeros that fill up a block do not count. */
static eplb_status begin_member(gzip *self, bool *follows, eplb_error *error)
{
    eplb_input *packed = self->packed;
    eplb_status status = eplb_input_need(packed, 2, error);
    while (status == EPLB_OK && eplb_input_unread(packed) > 0 && *packed->cursor == '\0') {
        packed->cursor++;
        status = eplb_input_need(packed, 2, error);
    }
    *follows = status == EPLB_OK && eplb_input_unread(packed) > 0;
    if (*follows && (eplb_input_unread(packed) < 2 || memcmp(packed->cursor, "\x1f\x8b", 2) != 0)) {
        return eplb_codec_fail(packed, "gzip", "no gzip member, and more than its end", error);
    }
    self->in_member = *follows;
    return status == EPLB_OK && *follows && inflateReset(&self->decoder) != Z_OK
               ? eplb_codec_fail(packed, "gzip", "cannot begin a member", error)
               : status;
}

static eplb_status check_result(const gzip *self, int result, eplb_error *error)
{
    switch (result) {
    case Z_OK:
    case Z_STREAM_END:
    case Z_BUF_ERROR: /* nothing done: more bytes are needed */
        return EPLB_OK;
    case Z_MEM_ERROR:
        return eplb_out_of_memory(error);
    default:
        return eplb_codec_fail(self->packed, "gzip",
                               self->decoder.msg != NULL ? self->decoder.msg : "wrong", error);
    }
}

/* Unpacks what is at hand. */
static eplb_status inflate_some(gzip *self, char *data, size_t size, size_t *got, eplb_error *error)
{
    eplb_input *packed = self->packed;
    eplb_status status = eplb_input_need(packed, 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (eplb_input_unread(packed) == 0) {
        return eplb_codec_fail(packed, "gzip", "the file ends too early", error);
    }
    z_stream *decoder = &self->decoder;
    uInt offered = (uInt)eplb_input_unread(packed);
    uInt room = size < 1u << 30 ? (uInt)size : 1u << 30;
    decoder->next_in = (Bytef *)(uintptr_t)packed->cursor;
    decoder->avail_in = offered;
    decoder->next_out = (Bytef *)data;
    decoder->avail_out = room;
    int result = inflate(decoder, Z_NO_FLUSH);
    packed->cursor += offered - decoder->avail_in;
    *got = room - decoder->avail_out;
    self->in_member = result != Z_STREAM_END;
    return check_result(self, result, error);
}

static eplb_status read_gzip(eplb_stream *stream, char *data, size_t size, size_t *got,
                             eplb_error *error)
{
    gzip *self = (gzip *)stream;
    eplb_status status = EPLB_OK;
    bool more = true;
    *got = 0;
    while (status == EPLB_OK && more && *got == 0) {
        if (!self->in_member) {
            status = begin_member(self, &more, error);
        } else {
            status = inflate_some(self, data, size, got, error);
        }
    }
    self->stream.packed = eplb_input_offset(self->packed, self->packed->limit);
    return status;
}

static void close_gzip(eplb_stream *stream)
{
    gzip *self = (gzip *)stream;
    eplb_input *packed = self->packed;
    (void)inflateEnd(&self->decoder);
    eplb_free(&packed->hooks, self);
    eplb_codec_close_packed(packed);
}

eplb_status eplb_gzip_open(eplb_stream **stream, eplb_input *packed, eplb_error *error)
{
    gzip *self = eplb_alloc_zeroed(&packed->hooks, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->stream = (eplb_stream){.read = read_gzip, .close = close_gzip};
    self->packed = packed;
    self->in_member = true;
    self->decoder.zalloc = eplb_zlib_allocate;
    self->decoder.zfree = eplb_zlib_release;
    self->decoder.opaque = &packed->hooks;
    if (inflateInit2(&self->decoder, 16 + MAX_WBITS) != Z_OK) {
        eplb_free(&packed->hooks, self);
        return eplb_out_of_memory(error);
    }
    *stream = &self->stream;
    return EPLB_OK;
}
