/* SPDX-License-Identifier: MIT */
/*
 * Whole-or-nothing file writing. Bytes go to a temporary file beside the target; commit flushes it
 * to the disk and renames it over the target. Whoever reads the target sees the old file or the new
 * one, never a part, whatever interrupts the writer.
 *
 * A target that exists and is not a regular file (a pipe, /dev/null) is written directly, and so is
 * an open file that is named by its descriptor: /dev/stdout, /dev/stderr, /dev/fd/N and
 * /proc/self/fd/N, where that file stands. A target that is a symbolic link keeps the link and
 * replaces what it points to. An existing file's permission bits are kept. Writing to a pipe that
 * nobody reads raises SIGPIPE, as write does.
 *
 * Threads: a writer belongs to one thread at a time.
 */
#ifndef EPLB_FILE_H
#define EPLB_FILE_H

#include <stddef.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_file_writer eplb_file_writer;

/* Opens a writer for the file at `path` (copied). Fails with EPLB_ERROR_IO when it cannot. */
EPLB_API eplb_status eplb_file_writer_create(eplb_file_writer **out, const eplb_hooks *hooks,
                                             const char *path, eplb_error *error);

/* Appends `size` bytes. After a failure every later call on the writer fails too. */
EPLB_API eplb_status eplb_file_writer_append(eplb_file_writer *writer, const void *data,
                                             size_t size, eplb_error *error);

/* Makes the file appear. Call it once; then only destroy is left to call. */
EPLB_API eplb_status eplb_file_writer_commit(eplb_file_writer *writer, eplb_error *error);

/* Frees the writer and sets the pointer to NULL. What was not committed is discarded. */
EPLB_API void eplb_file_writer_destroy(eplb_file_writer **writer);

/* Creates, appends `size` bytes and commits in one call. */
EPLB_API eplb_status eplb_file_write(const eplb_hooks *hooks, const char *path, const void *data,
                                     size_t size, eplb_error *error);

EPLB_END_DECLS

#endif
