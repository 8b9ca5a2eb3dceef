/* SPDX-License-Identifier: MIT */
/* Allocation through the caller's hooks, with checked sizes. Inline, so that libeplb-format uses it
 * without libeplb exporting it. */
#ifndef EPLB_BASE_MEMORY_H
#define EPLB_BASE_MEMORY_H

#include <string.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

#include "base/abi.h"
#include "base/size.h"

/* A complete copy of the caller's hooks: defaults for NULL and for what an older caller's shorter
 * struct lacks. */
static inline eplb_hooks eplb_hooks_resolve(const eplb_hooks *hooks)
{
    eplb_hooks resolved;
    eplb_hooks_init(&resolved);
    if (hooks != NULL) {
        eplb_hooks defaults = resolved;
        (void)eplb_struct_in(&resolved, sizeof(resolved), hooks);
        if (resolved.allocate == NULL || resolved.reallocate == NULL || resolved.release == NULL) {
            resolved.allocate = defaults.allocate;
            resolved.reallocate = defaults.reallocate;
            resolved.release = defaults.release;
        }
    }
    return resolved;
}

/* NULL when the hook fails or count * size overflows. A zero size is rounded up to one byte, so
 * that NULL always means failure. */
static inline void *eplb_alloc(const eplb_hooks *hooks, size_t count, size_t size)
{
    size_t bytes;
    if (!eplb_size_mul(count, size, &bytes)) {
        return NULL;
    }
    return hooks->allocate(hooks->memory_context, bytes > 0 ? bytes : 1);
}

static inline void *eplb_alloc_zeroed(const eplb_hooks *hooks, size_t count, size_t size)
{
    void *memory = eplb_alloc(hooks, count, size);
    if (memory != NULL) {
        memset(memory, 0, count * size);
    }
    return memory;
}

/* As realloc: on failure NULL, and `memory` (may be NULL) stays as it was. */
static inline void *eplb_realloc(const eplb_hooks *hooks, void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (!eplb_size_mul(count, size, &bytes)) {
        return NULL;
    }
    bytes = bytes > 0 ? bytes : 1;
    return memory == NULL ? hooks->allocate(hooks->memory_context, bytes)
                          : hooks->reallocate(hooks->memory_context, memory, bytes);
}

static inline void eplb_free(const eplb_hooks *hooks, void *memory)
{
    if (memory != NULL) {
        hooks->release(hooks->memory_context, memory);
    }
}

/* The one message for every failed allocation. */
static inline eplb_status eplb_out_of_memory(eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
}

/* A member of an object that becomes an array of zeros. */
typedef struct eplb_array {
    void **memory;
    size_t count;
    size_t size;
} eplb_array;

#define EPLB_ARRAY(member, length)                                                                 \
    {                                                                                              \
        (void **)&(member), length, sizeof(*(member))                                              \
    }

/* Makes all of them. On failure those made are left to the object's free function. */
static inline eplb_status eplb_alloc_arrays(const eplb_hooks *hooks, const eplb_array *arrays,
                                            size_t count, eplb_error *error)
{
    for (size_t i = 0; i < count; i++) {
        *arrays[i].memory = eplb_alloc_zeroed(hooks, arrays[i].count, arrays[i].size);
        if (*arrays[i].memory == NULL) {
            return eplb_out_of_memory(error);
        }
    }
    return EPLB_OK;
}

#endif
