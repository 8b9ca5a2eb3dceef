/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <eplb/format.h>

#include "format/input.h"
#include "formats.h"

#define RUNS 5
#define BLOCK ((size_t)128 << 10) /* as the readers' */

typedef struct result {
    double sums[FORMATS_LAYERS][FORMATS_EXPERTS];
} result;

/* Reads all rows, and adds them up where `read` is given. */
static void read_counts(const formats_file *made, result *read)
{
    eplb_error error;
    eplb_counts_reader *reader;
    eplb_counts_row row;
    bench_check(eplb_counts_open(&reader, NULL, made->opened.text, NULL, &error), &error);
    eplb_status status;
    while ((status = eplb_counts_next(reader, &row, &error)) == EPLB_OK) {
        bench_require(row.layer < FORMATS_LAYERS && row.length <= FORMATS_EXPERTS, "a wrong shape");
        for (int32_t e = 0; read != NULL && e < row.length; e++) {
            read->sums[row.layer][e] += row.counts[e];
        }
    }
    bench_check(status == EPLB_END ? EPLB_OK : status, &error);
    eplb_counts_close(&reader);
}

/* What is packed is unpacked on a thread of its own, while it is parsed: the time on the wall. */
static clockid_t clock_of(const formats_log *log)
{
    return log->is_stream ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
}

static void check_counts(const formats_file *made)
{
    result *read = bench_alloc(1, sizeof(*read));
    read_counts(made, read);
    double tokens = 0.0;
    for (int i = 0; i < FORMATS_LAYERS * FORMATS_EXPERTS; i++) {
        tokens += read->sums[i / FORMATS_EXPERTS][i % FORMATS_EXPERTS];
    }
    bench_require(tokens == made->tokens, "the tokens read are not those written");
    free(read);
}

static double time_counts(const formats_log *log, const formats_file *made)
{
    double start = bench_seconds(clock_of(log));
    read_counts(made, NULL);
    return bench_seconds(clock_of(log)) - start;
}

static double time_bytes(const formats_file *made)
{
    char *block = bench_alloc(BLOCK, 1);
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    int file = open(made->file.text, O_RDONLY);
    bench_require(file >= 0, "cannot open a file");
    while (read(file, block, BLOCK) > 0) {
    }
    (void)close(file);
    double taken = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    free(block);
    return taken;
}

/* The stream of the codec, without a look at what it gives. */
static double time_unpacking(const formats_log *log, const formats_file *made)
{
    eplb_error error;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_input input;
    double start = bench_seconds(clock_of(log));
    bench_check(eplb_input_open(&input, &hooks, made->file.text, &error), &error);
    while (!input.at_end) {
        input.cursor = input.limit;
        bench_check(eplb_input_fill(&input, &error), &error);
    }
    eplb_input_close(&input);
    return bench_seconds(clock_of(log)) - start;
}

/* In turn, so that other work on the machine meets all alike. */
formats_times formats_measure(const formats_log *log, const formats_file *made)
{
    bool is_unpacked = log->is_stream;
    check_counts(made);
    formats_times best = {INFINITY, INFINITY, is_unpacked ? INFINITY : NAN};
    for (int run = 0; run < RUNS; run++) {
        best.counts = fmin(best.counts, time_counts(log, made));
        best.bytes = fmin(best.bytes, time_bytes(made));
        if (is_unpacked) {
            best.unpacking = fmin(best.unpacking, time_unpacking(log, made));
        }
    }
    return best;
}

static double peak_mebibytes(void)
{
    struct rusage usage;
    bench_require(getrusage(RUSAGE_SELF, &usage) == 0, "no resource usage");
    return (double)usage.ru_maxrss / 1024.0;
}

double formats_resident(const formats_file *made)
{
    int ends[2];
    bench_require(pipe(ends) == 0, "no pipe");
    (void)fflush(stdout);
    pid_t child = fork();
    bench_require(child >= 0, "no process");
    if (child == 0) {
        static result read; /* below, it is written to and so resident */
        for (int i = 0; i < FORMATS_LAYERS * FORMATS_EXPERTS; i++) {
            read.sums[i / FORMATS_EXPERTS][i % FORMATS_EXPERTS] = 1.0;
        }
        double before = peak_mebibytes();
        read_counts(made, &read);
        double beyond = peak_mebibytes() - before;
        _exit(write(ends[1], &beyond, sizeof(beyond)) == sizeof(beyond) ? 0 : 1);
    }
    (void)close(ends[1]);
    double beyond = NAN;
    ssize_t got = read(ends[0], &beyond, sizeof(beyond));
    (void)close(ends[0]);
    int status;
    bool ended = waitpid(child, &status, 0) == child && status == 0;
    bench_require(ended && got == sizeof(beyond), "reading in another process failed");
    return beyond;
}
