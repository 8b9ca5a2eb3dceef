/* SPDX-License-Identifier: MIT */
/* Runs the eplb command and catches what it says. */
#ifndef EPLB_TESTS_CLI_RUN_H
#define EPLB_TESTS_CLI_RUN_H

#include "../support.h"

/* A test that gets an empty directory of its own. */
typedef struct run_result {
    int exit_code; /* -1: killed by a signal */
    char *out;     /* NUL-terminated, as err */
    size_t out_size;
    char *err;
} run_result;

/* Runs `eplb` with arguments that end with NULL, in `directory`. */
run_result run_arguments(const char *directory, const char *const *arguments);

/* The same with the words of one line as arguments; words hold no spaces. */
run_result run_line(const char *directory, const char *line);

/* The same with standard output going to an existing file such as /dev/full; out is empty. */
run_result run_line_into(const char *directory, const char *line, const char *output);

void run_release(run_result *result);

/* Runs a line that must exit with 0 and forgets what it said. */
void run_ok(const char *directory, const char *line);

/* A command line that must be refused. */
typedef struct run_refusal {
    const char *line;
    int exit_code;
    const char *message; /* a part of it */
} run_refusal;

/* Runs the line; whether it says one line, nothing on standard output, and makes no file. What else
 * it does is printed. */
bool run_is_refused(const char *directory, const run_refusal *expected);

/* Whether a file is in the directory. */
bool has_file(const char *directory, const char *name);

/* Number of files in the directory. */
int count_files(const char *directory);

/* Whether two files of the directory hold the same bytes. */
bool same_files(const char *directory, const char *first, const char *second);

#endif
