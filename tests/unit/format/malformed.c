/* SPDX-License-Identifier: MIT */
/* The files that tests/data/malformed/make.py makes of good ones: expected.txt there says of each
 * how it is read, with what status that ends, and what the message says. */
#include <eplb/waits_file.h>

#include "reading.h"

enum { NAME, KIND, FORMAT, NEEDS, STATUS, MESSAGE, COLUMNS };

typedef struct expected_line {
    char text[512];
    char *columns[COLUMNS];
} expected_line;

/* The next line that is no comment, cut at its tabs. */
static bool next_line(FILE *list, expected_line *line)
{
    do {
        if (fgets(line->text, sizeof(line->text), list) == NULL) {
            return false;
        }
    } while (line->text[0] == '#');
    line->text[strcspn(line->text, "\n")] = '\0';
    char *next = line->text;
    for (int i = 0; i < COLUMNS; i++) {
        line->columns[i] = next;
        next += strcspn(next, "\t");
        if (*next == '\t') {
            *next++ = '\0';
        }
    }
    return true;
}

static eplb_status status_called(const char *name)
{
    static const struct {
        const char *name;
        eplb_status status;
    } words[] = {
        {"OK", EPLB_OK},
        {"PARSE", EPLB_ERROR_PARSE},
        {"DATA", EPLB_ERROR_DATA},
        {"IO", EPLB_ERROR_IO},
        {"OVERFLOW", EPLB_ERROR_OVERFLOW},
        {"LIMIT", EPLB_ERROR_LIMIT},
        {"UNSUPPORTED", EPLB_ERROR_UNSUPPORTED},
        {"ARGUMENT", EPLB_ERROR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].name, name) == 0) {
            return words[i].status;
        }
    }
    fail_msg("'%s' is no status", name);
    return EPLB_OK;
}

/* What this build lacks is refused with other words. */
static bool is_built(const char *library)
{
    static const char *const built[] = {
        "-",
#ifdef HAVE_YAML
        "yaml",
#endif
#ifdef HAVE_ZLIB
        "gzip",
#endif
#ifdef HAVE_ZSTD
        "zstd",
#endif
#ifdef HAVE_ZIP
        "zip",
#endif
    };
    for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++) {
        if (strcmp(built[i], library) == 0) {
            return true;
        }
    }
    return false;
}

/* The formats of maps that do not say how many GPUs there are get four. */
static eplb_status read_map(const char *path, eplb_read_options *options, eplb_error *error)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_placement *placement;
    const char *format = eplb_format_name(options->format);
    bool says_gpus = strcmp(format, "ascend") == 0 || strcmp(format, "omni") == 0;
    options->gpus = says_gpus ? 0 : 4;
    options->max_bytes = 1 << 20;
    eplb_status status = eplb_placement_read(&placement, &hooks, path, options, NULL, error);
    eplb_placement_destroy(&placement);
    assert_int_equal(memory.live, 0);
    return status;
}

static eplb_status read_waits(const char *path, eplb_error *error)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_waits *waits;
    eplb_status status = eplb_waits_read(&waits, &hooks, path, NULL, error);
    eplb_waits_destroy(&waits);
    assert_int_equal(memory.live, 0);
    return status;
}

static eplb_status read_as(const expected_line *line, eplb_error *error)
{
    const char *path = line->columns[NAME];
    const char *kind = line->columns[KIND];
    if (strcmp(kind, "waits") == 0) {
        return read_waits(path, error);
    }
    eplb_read_options options = options_for(line->columns[FORMAT]);
    return strcmp(kind, "counts") == 0 ? read_rows(path, &options, NULL, NULL, error)
                                       : read_map(path, &options, error);
}

/* Whether the message begins with the file's name and has the part, in one line. */
static bool names_the_place(const expected_line *line, const char *message)
{
    const char *name = line->columns[NAME];
    return strncmp(message, name, strlen(name)) == 0 && strchr(message, '\n') == NULL &&
           strstr(message, line->columns[MESSAGE]) != NULL;
}

static bool is_as_expected(const expected_line *line)
{
    eplb_error error = {.message = ""};
    eplb_status expected = status_called(line->columns[STATUS]);
    eplb_status status = read_as(line, &error);
    if (status == expected && (status == EPLB_OK || names_the_place(line, error.message))) {
        return true;
    }
    print_error("%s\n  status %d, expected %d\n  message: %s\n  expected: %s\n",
                line->columns[NAME], (int)status, (int)expected, error.message,
                line->columns[MESSAGE]);
    return false;
}

static FILE *open_list(void)
{
    test_path path = test_data("malformed/expected.txt");
    FILE *list = fopen(path.text, "r");
    assert_non_null(list);
    return list;
}

static void malformed_files_are_refused_with_their_place(void **state)
{
    (void)state;
    FILE *list = open_list();
    expected_line line;
    int failed = 0;
    while (next_line(list, &line)) {
        failed += is_built(line.columns[NEEDS]) && !is_as_expected(&line);
    }
    assert_int_equal(fclose(list), 0);
    assert_int_equal(failed, 0);
}

/* Both lists have the same order. */
static void each_file_that_is_made_is_expected(void **state)
{
    (void)state;
    FILE *list = open_list();
    FILE *made = fopen("../malformed.txt", "r");
    assert_non_null(made);
    expected_line line;
    char name[512];
    int count = 0;
    while (fgets(name, sizeof(name), made) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        assert_true(next_line(list, &line));
        assert_string_equal(line.columns[NAME], name);
        count++;
    }
    assert_false(next_line(list, &line));
    assert_true(count >= 150);
    assert_int_equal(fclose(made), 0);
    assert_int_equal(fclose(list), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_files_are_refused_with_their_place),
        cmocka_unit_test(each_file_that_is_made_is_expected),
    };
    const char *files = getenv("EPLB_TEST_MALFORMED");
    if (files == NULL || chdir(files) != 0) {
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
