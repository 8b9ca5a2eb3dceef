/* SPDX-License-Identifier: MIT */
/* Arguments against their documented range, with a message that names the one that is wrong. */
#ifndef EPLB_BASE_RANGE_H
#define EPLB_BASE_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

static inline eplb_status eplb_check_range(const char *what, const char *name, int64_t value,
                                           int64_t low, int64_t high, eplb_error *error)
{
    if (value >= low && value <= high) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: %s %lld not in %lld..%lld", what, name,
                          (long long)value, (long long)low, (long long)high);
}

/* `name` is what is missing, such as "output". */
static inline eplb_status eplb_check_given(const char *what, const char *name, const void *pointer,
                                           eplb_error *error)
{
    return pointer != NULL ? EPLB_OK
                           : eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: no %s", what, name);
}

#endif
