/* SPDX-License-Identifier: MIT */
/* Compressed files are recognised by their first bytes and unpacked while they are read. */
#ifndef EPLB_FORMAT_CODEC_H
#define EPLB_FORMAT_CODEC_H

#include "format/input.h"

/* Turns an input that was just opened, and whose bytes are compressed with gzip or zstd, into one
 * of what they unpack to. Others stay as they are. On failure the input is still to be closed.
 * EPLB_ERROR_UNSUPPORTED when this build lacks the codec. */
eplb_status eplb_codec_wrap(eplb_input *input, eplb_error *error);

/* The codecs: a stream that unpacks what `packed` reads, and owns it from then on. */
eplb_status eplb_gzip_open(eplb_stream **stream, eplb_input *packed, eplb_error *error);
eplb_status eplb_zstd_open(eplb_stream **stream, eplb_input *packed, eplb_error *error);

/* Closes a packed input that is in memory of its own, and frees that. */
void eplb_codec_close_packed(eplb_input *packed);

/* The error of compressed bytes that end too early, or are wrong: "byte 17 of the gzip data". */
eplb_status eplb_codec_fail(const eplb_input *packed, const char *codec, const char *what,
                            eplb_error *error);

#endif
