/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* In front of each block; as large as keeps the block aligned. */
typedef union prefix {
    size_t size;
    max_align_t alignment;
} prefix;

static size_t live;
static size_t allowed;

void fuzz_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

static void expect_allowed(size_t freed, size_t size)
{
    if (size > allowed || live - freed > allowed - size) {
        fuzz_fail("%zu bytes on top of %zu are more than the %zu that the input is worth", size,
                  live - freed, allowed);
    }
}

static void *allocate(void *context, size_t size)
{
    (void)context;
    expect_allowed(0, size);
    prefix *block = malloc(sizeof(*block) + size);
    if (block == NULL) {
        return NULL;
    }
    block->size = size;
    live += size;
    memset(block + 1, 0xa5, size); /* nobody may count on zeros */
    return block + 1;
}

static void release(void *context, void *memory)
{
    (void)context;
    prefix *block = (prefix *)memory - 1;
    live -= block->size;
    free(block);
}

/* Always to another place, so that old pointers are found. */
static void *reallocate(void *context, void *memory, size_t size)
{
    size_t old = ((prefix *)memory - 1)->size;
    expect_allowed(old, size);
    allowed += old;
    void *moved = allocate(context, size);
    allowed -= old;
    if (moved != NULL) {
        memcpy(moved, memory, old < size ? old : size);
        release(context, memory);
    }
    return moved;
}

static void expect_line(void *context, int32_t level, const char *message)
{
    (void)context;
    (void)level;
    if (message[0] == '\0' || strchr(message, '\n') != NULL) {
        fuzz_fail("the log has no line, but '%s'", message);
    }
}

size_t fuzz_worth(const uint8_t *data, size_t size)
{
    static const char *const magics[] = {"\x1f\x8b", "\x28\xb5\x2f\xfd", "PK"};
    for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
        size_t length = strlen(magics[i]);
        if (size >= length && memcmp(data, magics[i], length) == 0) {
            return 512 * size + ((size_t)1 << 20);
        }
    }
    return size;
}

eplb_hooks fuzz_hooks(size_t input_size, int32_t files)
{
    allowed = live + 16 * input_size + ((size_t)files << 20);
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.allocate = allocate;
    hooks.reallocate = reallocate;
    hooks.release = release;
    hooks.log = expect_line;
    return hooks;
}

void fuzz_expect_nothing_live(void)
{
    if (live != 0) {
        fuzz_fail("%zu bytes were not given back", live);
    }
}
