/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include <eplb/format.h>

#include "fuzz.h"

static void expect_counts(const eplb_counts_row *row, const eplb_read_options *options)
{
    if (row->step < 0 || row->layer < 0 || row->layer >= options->max_layers || row->length < 1 ||
        row->length > options->max_experts) {
        fuzz_fail("a row of step %lld, layer %d, with %d counts", (long long)row->step, row->layer,
                  row->length);
    }
    for (int32_t e = 0; e < row->length; e++) {
        if (!isfinite(row->counts[e]) || row->counts[e] < 0) {
            fuzz_fail("a count of %g", row->counts[e]);
        }
    }
}

void fuzz_read_counts(const char *path, const char *format, size_t size, int32_t files)
{
    eplb_hooks hooks = fuzz_hooks(size, files);
    eplb_read_options options;
    eplb_read_options_init(&options);
    options.format = eplb_format_find(format);
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    eplb_status status = eplb_counts_open(&reader, &hooks, path, &options, &error);
    while (status == EPLB_OK && (status = eplb_counts_next(reader, &row, &error)) == EPLB_OK) {
        expect_counts(&row, &options);
    }
    if (status != EPLB_END) {
        fuzz_expect_message(status, &error);
    }
    eplb_counts_close(&reader);
    fuzz_expect_nothing_live();
}
