/* SPDX-License-Identifier: MIT */
/* Tables of files that must be refused. */
#ifndef EPLB_TESTS_FORMAT_BAD_H
#define EPLB_TESTS_FORMAT_BAD_H

#include "reading.h"

typedef struct bad_file {
    const char *format; /* "": recognised by its content */
    const char *content;
    eplb_status status;
    const char *message; /* a part, which may begin with the file's name "f" */
} bad_file;

#define PARSE EPLB_ERROR_PARSE
#define DATA EPLB_ERROR_DATA
#define LIMIT EPLB_ERROR_LIMIT

#define ALL_OF(files) files, sizeof(files) / sizeof((files)[0])

/* Reads every file of a table, each as "f" in `directory`: each must give its status, and a message
 * that begins with the path and has its part. */
static inline void assert_all_refused(const char *directory, const bad_file *files, size_t count,
                                      eplb_status (*read)(const char *path, const char *format,
                                                          eplb_error *error))
{
    test_path path = test_join(directory, "f");
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        eplb_error error = {0};
        test_write_text(path.text, files[i].content);
        eplb_status status = read(path.text, files[i].format, &error);
        if (status != files[i].status || strstr(error.message, files[i].message) == NULL ||
            strncmp(error.message, path.text, strlen(path.text)) != 0) {
            print_error("%s\n  status %d, expected %d\n  message: %s\n  expected: %s\n",
                        files[i].content, (int)status, (int)files[i].status, error.message,
                        files[i].message);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

/* Reads a placement that is not kept. Nothing may be live afterwards. */
static inline eplb_status read_map(const char *path, const eplb_read_options *options,
                                   eplb_error *error)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_placement *placement;
    eplb_status status = eplb_placement_read(&placement, &hooks, path, options, NULL, error);
    assert_true((placement != NULL) == (status == EPLB_OK));
    eplb_placement_destroy(&placement);
    assert_int_equal(memory.live, 0);
    return status;
}

/* Limits of the tables: 4 layers, 8 slots, 6 experts. Placements are for 2 GPUs. */
static inline eplb_read_options bad_limits(const char *format)
{
    eplb_read_options options = options_for(format);
    options.gpus = 2;
    options.max_layers = 4;
    options.max_slots = 8;
    options.max_experts = 6;
    return options;
}

/* For assert_all_refused: counts, however far they are read, and placements. */
static inline eplb_status read_bad_counts(const char *path, const char *format, eplb_error *error)
{
    eplb_read_options options = bad_limits(format);
    return read_rows(path, &options, NULL, NULL, error);
}

static inline eplb_status read_bad_placement(const char *path, const char *format,
                                             eplb_error *error)
{
    eplb_read_options options = bad_limits(format);
    return read_map(path, &options, error);
}

#endif
