/* SPDX-License-Identifier: MIT */
#include "byte_size.h"

#include <stdlib.h>
#include <string.h>

typedef struct byte_unit {
    const char *name;
    double bytes;
} byte_unit;

static const byte_unit units[] = {
    {"k", 1e3}, {"K", 1e3},     {"M", 1e6},        {"G", 1e9},           {"T", 1e12},
    {"", 1.0},  {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0},
};

/* The bytes of a unit that is the text up to `end`; 0: there is no such unit. */
static double find_unit(const char *text, const char *end)
{
    if (end > text && end[-1] == 'B') {
        end--;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i].name);
        if (length == (size_t)(end - text) && memcmp(text, units[i].name, length) == 0) {
            return units[i].bytes;
        }
    }
    return 0.0;
}

bool parse_byte_size(const char *text, const char *end, int64_t *bytes)
{
    char *stop;
    double number = strtod(text, &stop);
    size_t decimal = strspn(text, "0123456789.e+");
    if (*text < '0' || *text > '9' || (size_t)(stop - text) > decimal) {
        return false;
    }
    double product = number * find_unit(stop, end);
    if (!(product >= 1.0 || number == 0.0) || product > (double)LARGEST_SIZE ||
        !(find_unit(stop, end) > 0.0)) {
        return false;
    }
    *bytes = (int64_t)product;
    return true;
}
