/* SPDX-License-Identifier: MIT */
/* What all test programs share: assertions, hooks that count and fail, paths and small files. */
#ifndef EPLB_TESTS_SUPPORT_H
#define EPLB_TESTS_SUPPORT_H

#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

#include "shared.h"

/* The main function of a test program. Not CMocka's own exit code: 256 failures would be 0. */
#define TEST_MAIN(...)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;       \
    }

/* CMocka's own compares in single precision. */
#define assert_close(actual, expected, tolerance)                                                  \
    test_assert_close(actual, expected, tolerance, __FILE__, __LINE__)

static inline void test_assert_close(double actual, double expected, double tolerance,
                                     const char *file, int line)
{
    if (!(fabs(actual - expected) <= tolerance)) {
        print_error("%.17g is not within %g of %.17g\n", actual, tolerance, expected);
        _fail(file, line);
    }
}

/* A call's status; `error` is what the call was given. A failed call must have filled it. */
#define assert_status(status, expected, error)                                                     \
    test_assert_status(status, expected, error, __FILE__, __LINE__)
#define assert_ok(status, error) assert_status(status, EPLB_OK, error)

static inline void test_assert_status(eplb_status status, eplb_status expected,
                                      const eplb_error *error, const char *file, int line)
{
    if (status != expected) {
        print_error("status %d (%s), expected %d; message: %s\n", (int)status,
                    eplb_status_text(status), (int)expected,
                    status < 0 && error != NULL ? error->message : "");
        _fail(file, line);
    }
    if (status < 0 && error != NULL && (error->status != (int32_t)status || !error->message[0])) {
        print_error("status %d, but the error says %d: \"%s\"\n", (int)status, error->status,
                    error->message);
        _fail(file, line);
    }
}

/* A text that must contain a part, such as an error message its wrong value. */
#define assert_contains(text, part) test_assert_contains(text, part, __FILE__, __LINE__)

static inline void test_assert_contains(const char *text, const char *part, const char *file,
                                        int line)
{
    if (strstr(text, part) == NULL) {
        print_error("\"%s\" does not contain \"%s\"\n", text, part);
        _fail(file, line);
    }
}

/* Memory as hooks hand it out. Start with zeros, or with fail_at. */
typedef struct test_memory {
    int64_t live;     /* blocks not given back */
    int64_t requests; /* calls of allocate and reallocate */
    int64_t fail_at;  /* the request of this number, from 1, fails; 0: none does */
    size_t largest;   /* bytes of the largest request */
    pthread_t thread; /* the only one that may call them: that of test_hooks */
} test_memory;

/* No test needs more at once; asking for more fails as on a machine without memory. */
#define TEST_LARGEST_REQUEST ((size_t)1 << 30)

static inline bool test_memory_refuses(test_memory *memory, size_t size)
{
    assert_true(size > 0);
    assert_true(pthread_equal(memory->thread, pthread_self()));
    memory->requests++;
    memory->largest = size > memory->largest ? size : memory->largest;
    return memory->requests == memory->fail_at || size > TEST_LARGEST_REQUEST;
}

static inline void *test_allocate(void *context, size_t size)
{
    test_memory *memory = context;
    void *block = test_memory_refuses(memory, size) ? NULL : malloc(size);
    if (block != NULL) {
        memory->live++;
        memset(block, 0xa5, size); /* nobody may count on zeros */
    }
    return block;
}

static inline void *test_reallocate(void *context, void *block, size_t size)
{
    assert_non_null(block);
    return test_memory_refuses(context, size) ? NULL : realloc(block, size);
}

static inline void test_release(void *context, void *block)
{
    test_memory *memory = context;
    assert_non_null(block);
    assert_true(pthread_equal(memory->thread, pthread_self()));
    memory->live--;
    free(block);
}

static inline eplb_hooks test_hooks(test_memory *memory)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    memory->thread = pthread_self();
    hooks.allocate = test_allocate;
    hooks.reallocate = test_reallocate;
    hooks.release = test_release;
    hooks.memory_context = memory;
    return hooks;
}

/*
 * Runs `scenario` once for each allocation that it makes, with that one failing: each run must
 * return EPLB_ERROR_NOMEM, and the last, in which none fails, EPLB_OK; none may leave a block
 * behind. The scenario destroys all it made and returns its first status that is not EPLB_OK.
 */
static inline void test_each_failing_allocation(eplb_status (*scenario)(const eplb_hooks *hooks,
                                                                        void *context),
                                                void *context)
{
    test_memory memory;
    int64_t fail_at = 0;
    do {
        memory = (test_memory){.fail_at = ++fail_at};
        eplb_hooks hooks = test_hooks(&memory);
        eplb_status status = scenario(&hooks, context);
        assert_int_equal(memory.live, 0);
        assert_int_equal(status, memory.requests >= fail_at ? EPLB_ERROR_NOMEM : EPLB_OK);
    } while (memory.requests >= fail_at);
    assert_true(fail_at > 1);
}

typedef struct test_path {
    char text[4096];
} test_path;

/* directory/name */
static inline test_path test_join(const char *directory, const char *name)
{
    test_path path;
    int length = snprintf(path.text, sizeof(path.text), "%s/%s", directory, name);
    assert_true(length > 0 && (size_t)length < sizeof(path.text));
    return path;
}

/* A file of tests/data. */
static inline test_path test_data(const char *name)
{
    const char *directory = getenv("EPLB_TEST_DATA");
    assert_non_null(directory);
    return test_join(directory, name);
}

/* A file that lies beside a developer's checkout only; a test skips where it is missing. */
static inline test_path test_shared_or_skip(const char *name)
{
    test_path path = test_join(test_shared_directory(), name);
    if (access(path.text, R_OK) != 0) {
        skip();
    }
    return path;
}

/* Setup and teardown that give a test an empty directory of its own: its path is *state. */
static inline int test_directory_setup(void **state)
{
    const char *parent = getenv("TMPDIR");
    test_path path = test_join(parent != NULL ? parent : "/tmp", "eplb-test-XXXXXX");
    *state = mkdtemp(path.text) != NULL ? strdup(path.text) : NULL;
    return *state != NULL ? 0 : -1;
}

static inline int test_remove_entry(const char *path, const struct stat *entry, int type,
                                    struct FTW *place)
{
    (void)entry;
    (void)type;
    (void)place;
    return remove(path);
}

static inline int test_directory_teardown(void **state)
{
    int result = nftw(*state, test_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return result;
}

#define IN_DIRECTORY(test)                                                                         \
    cmocka_unit_test_setup_teardown(test, test_directory_setup, test_directory_teardown)

static inline void test_write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void test_write_text(const char *path, const char *text)
{
    test_write_file(path, text, strlen(text));
}

/* The whole file with a NUL behind it, to be freed. `size` may be NULL. */
static inline char *test_read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = NULL;
    size_t length = 0;
    size_t got;
    do {
        text = realloc(text, length + 4097);
        assert_non_null(text);
        got = fread(text + length, 1, 4096, file);
        length += got;
    } while (got > 0);
    assert_int_equal(ferror(file), 0);
    fclose(file);
    text[length] = '\0';
    if (size != NULL) {
        *size = length;
    }
    return text;
}

#endif
