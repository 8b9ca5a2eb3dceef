/* SPDX-License-Identifier: MIT */
/* What the fuzz targets share: an input as a file, memory that is counted, messages that are
 * checked. What must not be is reported on standard error and ends the program. */
#ifndef EPLB_TESTS_FUZZ_H
#define EPLB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

/* What libFuzzer, or replay.c, calls with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A line on standard error, and abort. */
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How many bytes an input may unpack to in memory: as many as it has, or 512 times as many and 1
 * MiB where it begins as something packed. */
size_t fuzz_worth(const uint8_t *data, size_t size);

/* Hooks that count. More than 16 bytes for each of the input and 1 MiB for each file, on top of
 * what is live already, is a failure: then a number in the file was believed. Third-party code that
 * does not use the hooks is not counted: cJSON's and libyaml's trees, minizip, and libzstd's
 * window, which is limited by itself.
 */
eplb_hooks fuzz_hooks(size_t input_size, int32_t files);

/* Fails when anything that was allocated through the hooks is left. */
void fuzz_expect_nothing_live(void);

/* A failed call must have left one line of UTF-8 with its status. */
void fuzz_expect_message(eplb_status status, const eplb_error *error);

/* A file with the bytes as its content; the path is valid until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);

/*
 * A directory with the files of a container, in which each file stands behind a line
 * `==> NAME <==`. The path is valid until the next call, which removes the directory, as the end of
 * the program does. `files` is how many there are.
 */
const char *fuzz_directory(const uint8_t *data, size_t size, int32_t *files);

/* Reads a file, or a directory, as counts of a format to the end or to the first error. */
void fuzz_read_counts(const char *path, const char *format, size_t size, int32_t files);

#endif
