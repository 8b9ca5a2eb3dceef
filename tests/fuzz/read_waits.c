/* SPDX-License-Identifier: MIT */
/* A CSV of wait times, line by line and as a whole. */
#include <math.h>

#include <eplb/waits_file.h>

#include "fuzz.h"

static eplb_status read_lines(const char *path, const eplb_hooks *hooks, eplb_error *error)
{
    eplb_waits_reader *reader;
    eplb_waits_row row;
    eplb_status status = eplb_waits_open(&reader, hooks, path, NULL, error);
    while (status == EPLB_OK && (status = eplb_waits_next(reader, &row, error)) == EPLB_OK) {
        if (row.step < 0 || row.layer < 0 || row.rank < 0 || !isfinite(row.microseconds) ||
            row.microseconds < 0) {
            fuzz_fail("step %lld, layer %d, rank %d: %g microseconds", (long long)row.step,
                      row.layer, row.rank, row.microseconds);
        }
    }
    eplb_waits_close(&reader);
    return status == EPLB_END ? EPLB_OK : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    eplb_hooks hooks = fuzz_hooks(fuzz_worth(data, size), 1);
    eplb_error error;
    eplb_status status = read_lines(path, &hooks, &error);
    fuzz_expect_nothing_live();
    if (status != EPLB_OK) {
        fuzz_expect_message(status, &error);
        return 0;
    }
    eplb_waits *waits;
    status = eplb_waits_read(&waits, &hooks, path, NULL, &error);
    if (status != EPLB_OK) {
        fuzz_expect_message(status, &error);
    }
    eplb_waits_destroy(&waits);
    fuzz_expect_nothing_live();
    return 0;
}
