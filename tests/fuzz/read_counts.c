/* SPDX-License-Identifier: MIT */
/* A file of counts of the format FUZZ_FORMAT. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_counts(fuzz_file(data, size), FUZZ_FORMAT, fuzz_worth(data, size), 1);
    return 0;
}
