/* SPDX-License-Identifier: MIT */
#include <eplb/hooks.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

static void *default_allocate(void *memory_context, size_t size)
{
    (void)memory_context;
    return malloc(size);
}

static void *default_reallocate(void *memory_context, void *memory, size_t size)
{
    (void)memory_context;
    return realloc(memory, size);
}

static void default_release(void *memory_context, void *memory)
{
    (void)memory_context;
    free(memory);
}

void eplb_hooks_init(eplb_hooks *hooks)
{
    if (hooks == NULL) {
        return;
    }
    memset(hooks, 0, sizeof(*hooks));
    hooks->struct_size = sizeof(*hooks);
    hooks->allocate = default_allocate;
    hooks->reallocate = default_reallocate;
    hooks->release = default_release;
}

void eplb_log(const eplb_hooks *hooks, eplb_log_level level, const char *format, ...)
{
    if (hooks->log == NULL) {
        return;
    }
    char line[EPLB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    eplb_format_line(line, sizeof(line), format, arguments);
    va_end(arguments);
    hooks->log(hooks->log_context, (int32_t)level, line);
}
