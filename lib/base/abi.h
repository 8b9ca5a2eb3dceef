/* SPDX-License-Identifier: MIT */
/*
 * Public structs that start with struct_size and may grow: an older caller's struct is shorter, a
 * newer caller's longer than the library's.
 */
#ifndef EPLB_BASE_ABI_H
#define EPLB_BASE_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Lays what the caller's struct has over the defaults in `to` (size bytes, struct_size first). */
static inline void eplb_struct_in(void *to, size_t size, const void *from)
{
    uint32_t given;
    memcpy(&given, from, sizeof(given));
    uint32_t own = (uint32_t)size;
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &own, sizeof(own));
}

/* Copies the results in `from` (size bytes) into the caller's struct as far as it goes. */
static inline void eplb_struct_out(void *to, const void *from, size_t size)
{
    uint32_t given;
    memcpy(&given, to, sizeof(given));
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &given, sizeof(given));
}

#endif
