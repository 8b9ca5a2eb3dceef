/* SPDX-License-Identifier: MIT */
/* zlib's memory from the caller's hooks: `opaque` of its streams is a const eplb_hooks. */
#ifndef EPLB_FORMAT_ZLIB_MEMORY_H
#define EPLB_FORMAT_ZLIB_MEMORY_H

#include <zlib.h>

#include "base/memory.h"

static inline void *eplb_zlib_allocate(void *hooks, unsigned count, unsigned size)
{
    return eplb_alloc(hooks, count, size);
}

static inline void eplb_zlib_release(void *hooks, void *memory)
{
    eplb_free(hooks, memory);
}

#endif
