/* SPDX-License-Identifier: MIT */
/* A directory that is one recording of the format FUZZ_FORMAT. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t files;
    const char *path = fuzz_directory(data, size, &files);
    fuzz_read_counts(path, FUZZ_FORMAT, size, files + 1);
    return 0;
}
