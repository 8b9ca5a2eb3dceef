/* SPDX-License-Identifier: MIT */
/* What the benchmarks share. */
#ifndef EPLB_TESTS_BENCH_H
#define EPLB_TESTS_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <eplb/random.h>
#include <eplb/status.h>

#include "../shared.h"

#define BENCH_SKIPPED 77 /* the exit code of a benchmark whose data are not there */

static inline void bench_check(eplb_status status, const eplb_error *error)
{
    if (status != EPLB_OK) {
        fprintf(stderr, "bench: %s\n", error->message);
        exit(EXIT_FAILURE);
    }
}

static inline void bench_require(int holds, const char *what_is_wrong)
{
    if (!holds) {
        fprintf(stderr, "bench: %s\n", what_is_wrong);
        exit(EXIT_FAILURE);
    }
}

/* Zeroed, to be freed. */
static inline void *bench_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    bench_require(memory != NULL, "out of memory");
    return memory;
}

static inline double bench_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Near enough to normal for a benchmark: twelve uniform numbers. */
static inline double bench_normal(eplb_random *random)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += eplb_random_unit(random);
    }
    return sum;
}

typedef struct bench_path {
    char text[4096];
} bench_path;

/* A file below the directory of shared data. */
static inline bench_path bench_shared(const char *name)
{
    bench_path path;
    snprintf(path.text, sizeof(path.text), "%s/data/%s", test_shared_directory(), name);
    return path;
}

static inline int bench_is_there(const bench_path *path)
{
    return access(path->text, R_OK) == 0;
}

#endif
