/* SPDX-License-Identifier: MIT */
/*
 * How fast the readers of counts are: logs of 58 layers x 256 experts, made in a temporary
 * directory, beside read() of the same bytes, the decoder of a packed file alone and Python in the
 * same run; and their peak resident memory, which fails above its bar.
 *
 *     bench-formats [MEGABYTES [NAME]]     only the logs with NAME in theirs
 */
#include <math.h>
#include <string.h>

#include "formats.h"

#define MEGABYTES 64
#define RESIDENT_BAR 64.0 /* MiB beyond the result */

/* Columns of one kind: a rate in MB/s, and how many times as fast the reader is. */
static void print_beside(double megabytes, double seconds, double reader)
{
    if (isnan(seconds)) {
        printf(" %9s %6s", "-", "");
    } else {
        printf(" %9.0f %6.2f", megabytes / seconds, seconds / reader);
    }
}

static double measure_log(const formats_log *log, const char *directory, int64_t bytes)
{
    formats_file made = formats_make(log, directory, bytes);
    formats_times times = formats_measure(log, &made);
    double resident = formats_resident(&made);
    double python = formats_python(log, &made);
    printf("%-18s %7.1f %9.0f", log->name, made.megabytes, made.megabytes / times.counts);
    print_beside(made.megabytes, times.bytes, times.counts);
    print_beside(made.megabytes, times.unpacking, times.counts);
    print_beside(made.megabytes, python, times.counts);
    printf(" %8.2f\n", resident);
    (void)fflush(stdout);
    formats_remove(log, &made);
    return resident;
}

static bench_path make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    bench_path directory;
    snprintf(directory.text, sizeof(directory.text), "%s/bench-formats-XXXXXX",
             parent != NULL ? parent : "/tmp");
    bench_require(mkdtemp(directory.text) != NULL, "cannot make a directory");
    return directory;
}

int main(int count, char **arguments)
{
    int64_t megabytes = count > 1 ? strtoll(arguments[1], NULL, 10) : MEGABYTES;
    const char *wanted = count > 2 ? arguments[2] : "";
    bench_require(megabytes > 0 && megabytes < 1 << 20, "bench-formats [MEGABYTES [NAME]]");
    bench_path directory = make_directory();
    printf("logs of %lld MB before packing, MB/s of the file by processor time, of gzip and zstd "
           "by the\n"
           "wall clock (they are unpacked on a thread of their own), best of 5 runs;\n"
           "x: how many times as fast the reader is\n",
           (long long)megabytes);
    printf("%-18s %7s %9s %9s %6s %9s %6s %9s %6s %8s\n", "", "MB", "reader", "read()", "x",
           "decoder", "x", "Python", "x", "MiB");
    double most = 0.0;
    for (const formats_log *log = formats_logs; log->name != NULL; log++) {
        if (strstr(log->name, wanted) != NULL) {
            most = fmax(most, measure_log(log, directory.text, megabytes * 1000000));
        }
    }
    (void)rmdir(directory.text);
    bench_require(most <= RESIDENT_BAR, "a reader takes more than 64 MiB");
    return EXIT_SUCCESS;
}
