/* SPDX-License-Identifier: MIT */
/* zstd (RFC 8878): one frame behind another, by libzstd. */
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"
#include "format/codec.h"

/* A frame may ask for a window of 8 MiB, which RFC 8878 recommends to grant: a few bytes must not
 * cost more memory than that. Levels up to 19 need no more. */
#define WINDOW_LOG 23

typedef struct zstd {
    eplb_stream stream;
    eplb_input *packed;
    ZSTD_DCtx *decoder;
    bool in_frame; /* a frame has begun and not ended */
} zstd;

static eplb_status check_result(const zstd *self, size_t result, eplb_error *error)
{
    if (!ZSTD_isError(result)) {
        return EPLB_OK;
    }
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return eplb_out_of_memory(error);
    case ZSTD_error_frameParameter_windowTooLarge:
        return eplb_error_set(
            error, EPLB_ERROR_LIMIT,
            "%s: byte %llu of the zstd data: needs a window of more than %d MiB",
            self->packed->name,
            (unsigned long long)eplb_input_offset(self->packed, self->packed->cursor),
            1 << (WINDOW_LOG - 20));
    default:
        return eplb_codec_fail(self->packed, "zstd", ZSTD_getErrorName(result), error);
    }
}

/* Unpacks what is at hand; *more is false at the end. */
static eplb_status unpack_some(zstd *self, char *data, size_t size, size_t *got, bool *more,
                               eplb_error *error)
{
    eplb_input *packed = self->packed;
    eplb_status status = eplb_input_need(packed, 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (eplb_input_unread(packed) == 0 && !self->in_frame) {
        *more = false;
        return EPLB_OK;
    }
    ZSTD_inBuffer in = {.src = packed->cursor, .size = eplb_input_unread(packed)};
    ZSTD_outBuffer out = {.dst = data, .size = size};
    size_t result = ZSTD_decompressStream(self->decoder, &out, &in);
    packed->cursor += in.pos;
    *got = out.pos;
    status = check_result(self, result, error);
    self->in_frame = result != 0;
    if (status == EPLB_OK && in.size == 0 && out.pos == 0 && self->in_frame) {
        return eplb_codec_fail(packed, "zstd", "the file ends too early", error);
    }
    return status;
}

static eplb_status read_zstd(eplb_stream *stream, char *data, size_t size, size_t *got,
                             eplb_error *error)
{
    zstd *self = (zstd *)stream;
    eplb_status status = EPLB_OK;
    bool more = true;
    *got = 0;
    while (status == EPLB_OK && more && *got == 0) {
        status = unpack_some(self, data, size, got, &more, error);
    }
    self->stream.packed = eplb_input_offset(self->packed, self->packed->limit);
    return status;
}

static void close_zstd(eplb_stream *stream)
{
    zstd *self = (zstd *)stream;
    eplb_input *packed = self->packed;
    (void)ZSTD_freeDCtx(self->decoder);
    eplb_free(&packed->hooks, self);
    eplb_codec_close_packed(packed);
}

eplb_status eplb_zstd_open(eplb_stream **stream, eplb_input *packed, eplb_error *error)
{
    zstd *self = eplb_alloc_zeroed(&packed->hooks, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->stream = (eplb_stream){.read = read_zstd, .close = close_zstd};
    self->packed = packed;
    self->decoder = ZSTD_createDCtx();
    if (self->decoder == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(self->decoder, ZSTD_d_windowLogMax, WINDOW_LOG))) {
        (void)ZSTD_freeDCtx(self->decoder);
        eplb_free(&packed->hooks, self);
        return eplb_out_of_memory(error);
    }
    *stream = &self->stream;
    return EPLB_OK;
}
