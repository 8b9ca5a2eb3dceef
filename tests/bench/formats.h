/* SPDX-License-Identifier: MIT */
/* Logs of counts that the benchmark of the readers makes and reads. */
#ifndef EPLB_TESTS_BENCH_FORMATS_H
#define EPLB_TESTS_BENCH_FORMATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench.h"

enum { FORMATS_LAYERS = 58, FORMATS_EXPERTS = 256 };

typedef struct formats_log formats_log;

struct formats_log {
    const char *name;      /* of the file */
    const char *directory; /* in which it is, and which the reader opens; NULL: it opens the file */
    /* Writes steps until the file has `bytes` before it is packed. Returns the number of tokens. */
    double (*write)(const formats_log *log, FILE *out, int64_t bytes);
    const char *type; /* of the items of an array, as NumPy writes it */
    void (*pack)(const bench_path *plain, const bench_path *packed); /* NULL: it is not packed */
    bool is_stream;     /* what is packed is all of the file: gzip, zstd */
    const char *python; /* how Python reads it: a word of formats_python.c; NULL: it cannot */
};

/* All that this build reads, up to one without a name. */
extern const formats_log formats_logs[];

typedef struct formats_file {
    bench_path file;   /* with all the bytes */
    bench_path opened; /* by the reader */
    double megabytes;
    double tokens;
} formats_file;

/* Makes a log in a directory, and removes it. */
formats_file formats_make(const formats_log *log, const char *directory, int64_t bytes);
void formats_remove(const formats_log *log, const formats_file *made);

/* Packers, where the build has the libraries. */
void formats_pack_gzip(const bench_path *plain, const bench_path *packed);
void formats_pack_zstd(const bench_path *plain, const bench_path *packed);
void formats_pack_npz(const bench_path *plain, const bench_path *packed);

/* Processor seconds, best of several: reading the counts, the bytes as they lie, what they unpack
 * to. */
typedef struct formats_times {
    double counts;
    double bytes;
    double unpacking; /* NAN for a file that is not packed as a whole */
} formats_times;

formats_times formats_measure(const formats_log *log, const formats_file *made);

/* Peak resident memory in MiB beyond the result while the counts are read. */
double formats_resident(const formats_file *made);

/* Processor seconds of Python for the same; NAN where it cannot. */
double formats_python(const formats_log *log, const formats_file *made);

#endif
