/* SPDX-License-Identifier: MIT */
/* Bytes that come out of something else than a file as it lies on the disk: what a compressed file
 * or an entry of an archive unpacks to. */
#ifndef EPLB_FORMAT_STREAM_H
#define EPLB_FORMAT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

typedef struct eplb_stream eplb_stream;

struct eplb_stream {
    /* Writes the next bytes, at most `size` >= 1, to `data`; *got is their number, 0 at the end.
     * The end comes only when all that belongs to the stream was there and its checksums fit. */
    eplb_status (*read)(eplb_stream *stream, char *data, size_t size, size_t *got,
                        eplb_error *error);
    /* Frees it, and whatever it reads from. */
    void (*close)(eplb_stream *stream);
    /* Bytes of the file that were looked at for what was read; kept by `read`. */
    uint64_t packed;
};

#endif
