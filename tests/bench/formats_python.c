/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "formats.h"

/* Larger files take Python more memory than a machine may have, and its rate stays the same. */
#define LARGEST_MEGABYTES 200.0

static const char script[] = "import csv, gzip, json, sys, time\n"
                             "way, path = sys.argv[1:]\n"
                             "if way == 'numpy':\n"
                             "    import numpy\n"
                             "start = time.process_time()\n"
                             "if way == 'numpy':\n"
                             "    array = numpy.load(path)\n"
                             "    array = array if path.endswith('.npy') else array['counts']\n"
                             "    array.sum(axis=0)\n"
                             "else:\n"
                             "    opened = gzip.open if path.endswith('.gz') else open\n"
                             "    with opened(path, 'rt') as file:\n"
                             "        if way == 'json':\n"
                             "            json.load(file)\n"
                             "        elif way == 'jsonl':\n"
                             "            for line in file:\n"
                             "                json.loads(line)\n"
                             "        else:\n"
                             "            next(file)\n"
                             "            for row in csv.reader(file):\n"
                             "                [int(field) for field in row]\n"
                             "print(time.process_time() - start)\n";

double formats_python(const formats_log *log, const formats_file *made)
{
    char command[8192];
    if (log->python == NULL || made->megabytes > LARGEST_MEGABYTES ||
        strchr(made->file.text, '"') != NULL) {
        return NAN;
    }
    int length = snprintf(command, sizeof(command), "python3 -c \"%s\" %s \"%s\" 2>/dev/null",
                          script, log->python, made->file.text);
    bench_require(length > 0 && (size_t)length < sizeof(command), "a path is too long");
    FILE *answer = popen(command, "r");
    bench_require(answer != NULL, "no process");
    double seconds;
    bool has = fscanf(answer, "%lf", &seconds) == 1;
    return pclose(answer) == 0 && has ? seconds : NAN;
}
