/* SPDX-License-Identifier: MIT */
#include "sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "output.h"

void sink_open(sink *self, const char *path)
{
    self->writer = NULL;
    self->status = EPLB_OK;
    self->used = 0;
    if (strcmp(path, "-") != 0) {
        self->status = eplb_file_writer_create(&self->writer, NULL, path, &self->error);
    }
}

static void flush(sink *self)
{
    if (self->status == EPLB_OK && self->writer != NULL) {
        self->status =
            eplb_file_writer_append(self->writer, self->buffer, self->used, &self->error);
    } else if (self->status == EPLB_OK &&
               fwrite(self->buffer, 1, self->used, stdout) < self->used) {
        self->status = eplb_error_set(&self->error, EPLB_ERROR_IO,
                                      "standard output: cannot write: %s", strerror(errno));
    }
    self->used = 0;
}

static void append(sink *self, const char *text, size_t length)
{
    while (length > 0) {
        size_t room = sizeof(self->buffer) - self->used;
        size_t part = length < room ? length : room;
        memcpy(self->buffer + self->used, text, part);
        self->used += part;
        text += part;
        length -= part;
        if (self->used == sizeof(self->buffer)) {
            flush(self);
        }
    }
}

void sink_text(sink *self, const char *text)
{
    append(self, text, strlen(text));
}

void sink_integer(sink *self, int64_t value)
{
    char digits[32];
    int length = snprintf(digits, sizeof(digits), "%" PRId64, value);
    append(self, digits, (size_t)length);
}

int sink_close(sink *self)
{
    flush(self);
    if (self->status == EPLB_OK && self->writer == NULL) {
        return output_finish(EXIT_DONE);
    }
    if (self->status == EPLB_OK) {
        self->status = eplb_file_writer_commit(self->writer, &self->error);
    }
    eplb_file_writer_destroy(&self->writer);
    return self->status == EPLB_OK ? EXIT_DONE : fail(&self->error);
}

void sink_discard(sink *self)
{
    eplb_file_writer_destroy(&self->writer);
}
