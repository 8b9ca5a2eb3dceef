/* SPDX-License-Identifier: MIT */
#include <eplb/price.h>

#include <inttypes.h>
#include <stdio.h>

char *eplb_bytes_text(int64_t bytes, char *text, size_t size)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, size, "%" PRId64 " B", bytes);
        return text;
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < sizeof(names) / sizeof(names[0])) {
        value /= 1024.0;
        unit++;
    }
    snprintf(text, size, "%.4g %s", value, names[unit]);
    return text;
}
