/* SPDX-License-Identifier: MIT */
/* Overflow-checked size arithmetic: the only place where sizes from outside are multiplied. */
#ifndef EPLB_BASE_SIZE_H
#define EPLB_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

/* *result = a * b; false (and *result undefined) when it does not fit. */
static inline bool eplb_size_mul(size_t a, size_t b, size_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/* *result = a + b; false (and *result undefined) when it does not fit. */
static inline bool eplb_size_add(size_t a, size_t b, size_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

#endif
