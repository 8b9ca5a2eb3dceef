/* SPDX-License-Identifier: MIT */
/* Reading for tests: whole files of counts, with hooks that count what is live. */
#ifndef EPLB_TESTS_FORMAT_READING_H
#define EPLB_TESTS_FORMAT_READING_H

#include <eplb/source.h>

#include "support.h"

/* A test that works in an empty directory of its own, so that the paths of its files are short. */
#define INSIDE(test) cmocka_unit_test_setup_teardown(test, test_enter, test_leave)

static inline int test_enter(void **state)
{
    return test_directory_setup(state) == 0 ? chdir(*state) : -1;
}

static inline int test_leave(void **state)
{
    return chdir("/") == 0 ? test_directory_teardown(state) : -1;
}

/* What was warned of. */
typedef struct test_warnings {
    int count;
    char last[EPLB_ERROR_MESSAGE_SIZE]; /* "": nothing */
} test_warnings;

static inline void test_keep_warning(void *context, int32_t level, const char *message)
{
    test_warnings *self = context;
    assert_int_equal(level, EPLB_LOG_WARNING);
    snprintf(self->last, sizeof(self->last), "%s", message);
    self->count++;
}

/* Hooks that keep warnings, which start as zeros. */
static inline eplb_hooks test_warning_hooks(test_warnings *warnings)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = test_keep_warning;
    hooks.log_context = warnings;
    return hooks;
}

/* Options that name a format; "" leaves it to be recognised. */
static inline eplb_read_options options_for(const char *format)
{
    eplb_read_options options;
    eplb_read_options_init(&options);
    if (format[0] != '\0') {
        options.format = eplb_format_find(format);
        assert_non_null(options.format);
    }
    return options;
}

/* Calls `visit` for each row of a file. Returns the status that ended it: EPLB_OK for the end of a
 * whole file. Nothing may be live afterwards. */
static inline eplb_status read_rows(const char *path, const eplb_read_options *options,
                                    void (*visit)(void *context, const eplb_counts_row *row),
                                    void *context, eplb_error *error)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_counts_reader *reader = NULL;
    eplb_counts_row row;
    eplb_status status = eplb_counts_open(&reader, &hooks, path, options, error);
    while (status == EPLB_OK && (status = eplb_counts_next(reader, &row, error)) == EPLB_OK) {
        if (visit != NULL) {
            visit(context, &row);
        }
    }
    if (reader != NULL) {
        eplb_counts_close(&reader);
    }
    assert_null(reader);
    assert_int_equal(memory.live, 0);
    return status == EPLB_END ? EPLB_OK : status;
}

/* Reads all rows of the file whose path is the context: for test_each_failing_allocation. */
static inline eplb_status read_counts(const eplb_hooks *hooks, void *context)
{
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_status status = eplb_counts_open(&reader, hooks, context, NULL, NULL);
    while (status == EPLB_OK) {
        status = eplb_counts_next(reader, &row, NULL);
    }
    eplb_counts_close(&reader);
    return status == EPLB_END ? EPLB_OK : status;
}

/* Reads sources into a load with one scenario for each. */
static inline eplb_status load_summed(eplb_load **load, const eplb_hooks *hooks,
                                      const char *const *texts, int32_t count,
                                      const eplb_read_options *options, eplb_error *error)
{
    eplb_source_load_options whole;
    eplb_source_load_options_init(&whole);
    whole.slices = 1;
    return eplb_source_load(load, hooks, texts, count, options, &whole, error);
}

#endif
