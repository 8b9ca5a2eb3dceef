/* SPDX-License-Identifier: MIT */
/*
 * What the library needs from its host: memory, and a place for log lines. An eplb_hooks is passed
 * when an object is made (NULL: malloc and silence) and is copied into it; an object made from
 * others uses the hooks it was given itself.
 *
 * Threads: an object calls its hooks only from the thread that is calling the library, never from
 * the library's own worker threads. Two objects may call the same hooks at the same time.
 */
#ifndef EPLB_HOOKS_H
#define EPLB_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/export.h>

EPLB_BEGIN_DECLS

typedef enum eplb_log_level {
    EPLB_LOG_DEBUG = 0,
    EPLB_LOG_INFO = 1,
    EPLB_LOG_WARNING = 2, /* the call goes on, but a person should know */
} eplb_log_level;

typedef struct eplb_hooks {
    uint32_t struct_size; /* sizeof(eplb_hooks), written by eplb_hooks_init */

    /*
     * As malloc, realloc and free, with memory_context first. `allocate` and `reallocate` are never
     * asked for 0 bytes and may return NULL; memory must be aligned as malloc's. `release` is never
     * called with NULL. Replace all three together: where one is NULL, malloc is used.
     */
    void *(*allocate)(void *memory_context, size_t size);
    void *(*reallocate)(void *memory_context, void *memory, size_t size);
    void (*release)(void *memory_context, void *memory);
    void *memory_context;

    /* One line of text without a newline; NULL (the default): nothing is logged. */
    void (*log)(void *log_context, int32_t level, const char *message);
    void *log_context;
} eplb_hooks;

/* Writes the defaults: malloc, realloc, free, no log. */
EPLB_API void eplb_hooks_init(eplb_hooks *hooks);

EPLB_END_DECLS

#endif
