/* SPDX-License-Identifier: MIT */
/* Buffered text to a file, which appears whole or not at all, or to standard output ("-"). */
#ifndef EPLB_TOOLS_SINK_H
#define EPLB_TOOLS_SINK_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/file.h>

typedef struct sink {
    eplb_file_writer *writer; /* NULL: standard output */
    eplb_status status;       /* of the first failure; later calls do nothing */
    eplb_error error;
    size_t used;
    char buffer[65536];
} sink;

void sink_open(sink *self, const char *path);
void sink_text(sink *self, const char *text);
void sink_integer(sink *self, int64_t value);

/* Makes the file appear and returns the exit code, with a message on failure. The sink is closed
 * whatever happened. */
int sink_close(sink *self);

/* Closes the sink; the file does not appear. */
void sink_discard(sink *self);

#endif
