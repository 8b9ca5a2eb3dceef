/* SPDX-License-Identifier: MIT */
/*
 * Public structs that start with struct_size and may grow: an older caller's struct is shorter, a
 * newer caller's longer than the library's.
 */
#ifndef EPLB_BASE_ABI_H
#define EPLB_BASE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Lays what the caller's struct has over the defaults in `to` (size bytes, struct_size first).
 * False, and `to` unchanged, when the caller's struct_size does not even hold itself: it was never
 * set. */
static inline bool eplb_struct_in(void *to, size_t size, const void *from)
{
    uint32_t given;
    memcpy(&given, from, sizeof(given));
    if (given < sizeof(given)) {
        return false;
    }
    uint32_t own = (uint32_t)size;
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &own, sizeof(own));
    return true;
}

/* Copies the results in `from` (size bytes) into the caller's struct as far as it goes; what a
 * newer caller has beyond is zero. */
static inline void eplb_struct_out(void *to, const void *from, size_t size)
{
    uint32_t given;
    memcpy(&given, to, sizeof(given));
    memset(to, 0, given);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &given, sizeof(given));
}

#endif
