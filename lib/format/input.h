/* SPDX-License-Identifier: MIT */
/*
 * A file that is read once, front to back, through one buffer. Files are not mapped: one that
 * shrinks while it is read must give an error, not a signal.
 */
#ifndef EPLB_FORMAT_INPUT_H
#define EPLB_FORMAT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

#include "format/stream.h"

/* Bytes that can be looked at before reading starts, and the longest line or token that can be in
 * the buffer as a whole. */
#define EPLB_INPUT_PREFIX ((size_t)64 << 10)

typedef struct eplb_input {
    eplb_hooks hooks;
    char *name;          /* for messages, not for opening */
    char *buffer;        /* NULL: the bytes are the caller's and complete */
    eplb_stream *stream; /* the input's own, where its bytes come from; NULL: the file */
    int fd;
    bool owns_fd;
    bool at_end;        /* no byte follows `limit` */
    const char *start;  /* the first byte in memory; its offset in the file is start_offset */
    const char *cursor; /* the next byte to read */
    const char *limit;  /* the end of what is in memory; *limit is 0, so that loops stop there */
    uint64_t start_offset;
    uint64_t origin;      /* where a standard input that is a file began to be read */
    int64_t line;         /* of the cursor, from 1; kept by whoever moves it over a newline */
    uint64_t line_offset; /* where that line begins */
} eplb_input;

/* Opens a file read-only; "-" is standard input. What is compressed is unpacked (codec.h), and
 * offsets are those of the unpacked bytes. EPLB_ERROR_IO for what cannot be read. */
eplb_status eplb_input_open(eplb_input *input, const eplb_hooks *hooks, const char *path,
                            eplb_error *error);

/* Makes an input of bytes in memory, which must outlive it; data[size] must be 0. `name` too. */
void eplb_input_from_memory(eplb_input *input, char *name, const char *data, size_t size);

/* Makes an input of a stream, which it owns from then on, as it does `name`. On failure both are
 * still the caller's, and the input is as it was. */
eplb_status eplb_input_from_stream(eplb_input *input, const eplb_hooks *hooks, char *name,
                                   eplb_stream *stream, eplb_error *error);

void eplb_input_close(eplb_input *input);

/* Moves the unread bytes to the front of the buffer and reads more behind them, if there are any
 * and there is room. */
eplb_status eplb_input_fill(eplb_input *input, eplb_error *error);

/* Fills until `size` bytes (<= EPLB_INPUT_PREFIX) are unread in memory or the file ends. */
eplb_status eplb_input_need(eplb_input *input, size_t size, eplb_error *error);

/* Steps over a UTF-8 byte order mark; only before anything else is read. */
eplb_status eplb_input_skip_bom(eplb_input *input, eplb_error *error);

/* Size of the file in bytes; false when it is none that can be read at any place, as a pipe or a
 * compressed file. */
bool eplb_input_size(const eplb_input *input, uint64_t *size);

/* The error of what needs the size, such as "a zip archive", where eplb_input_size does not tell
 * it. */
eplb_status eplb_input_refuse_stream(const eplb_input *input, const char *what, eplb_error *error);

/* Moves the cursor to `offset`; what is in memory is not read again. Only where eplb_input_size
 * tells the size. Lines are not counted from then on. */
eplb_status eplb_input_seek(eplb_input *input, uint64_t offset, eplb_error *error);

/* Reads `size` bytes at `offset`, whatever the cursor. EPLB_ERROR_PARSE when the file is shorter.
 */
eplb_status eplb_input_read_at(const eplb_input *input, void *data, size_t size, uint64_t offset,
                               eplb_error *error);

static inline size_t eplb_input_unread(const eplb_input *input)
{
    return (size_t)(input->limit - input->cursor);
}

static inline uint64_t eplb_input_offset(const eplb_input *input, const char *place)
{
    return input->start_offset + (uint64_t)(place - input->start);
}

/* To be called for each newline that is read. */
static inline void eplb_input_newline(eplb_input *input, const char *newline)
{
    input->line++;
    input->line_offset = eplb_input_offset(input, newline) + 1;
}

#endif
