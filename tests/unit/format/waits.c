/* SPDX-License-Identifier: MIT */
/* Wait times from CSV: line by line, and whole files. */
#include <eplb/random.h>
#include <eplb/waits_file.h>

#include "support.h"

#define HEADER "step,layer,rank,wait_us\n"

static eplb_waits_read_options default_options(void)
{
    eplb_waits_read_options options;
    eplb_waits_read_options_init(&options);
    return options;
}

static eplb_waits_info info_of(const eplb_waits *waits)
{
    eplb_waits_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_waits_get_info(waits, &info, NULL), NULL);
    return info;
}

static eplb_waits *read_ok(const char *path, const eplb_waits_read_options *options)
{
    eplb_waits *waits;
    eplb_error error;
    assert_ok(eplb_waits_read(&waits, NULL, path, options, &error), &error);
    return waits;
}

/* What a file's lines are, one after the other: "step/layer/rank=wait " each. */
static eplb_status read_lines(const char *path, char *text, size_t size, eplb_error *error)
{
    eplb_waits_reader *reader;
    eplb_waits_row row;
    size_t used = 0;
    text[0] = '\0';
    eplb_status status = eplb_waits_open(&reader, NULL, path, NULL, error);
    while (status == EPLB_OK && (status = eplb_waits_next(reader, &row, error)) == EPLB_OK) {
        int wrote = snprintf(text + used, size - used, "%lld/%d/%d=%g ", (long long)row.step,
                             row.layer, row.rank, row.microseconds);
        used += (size_t)wrote;
        assert_true(used < size);
    }
    if (status == EPLB_END) {
        assert_int_equal(eplb_waits_next(reader, &row, error), EPLB_END);
    }
    eplb_waits_close(&reader);
    assert_null(reader);
    return status == EPLB_END ? EPLB_OK : status;
}

static void files_that_may_look_different_are_read(void **state)
{
    static const struct {
        const char *what;
        const char *content;
        const char *lines;
    } good[] = {
        {"plain", HEADER "7,3,1,4.5\n7,3,2,60\n", "7/3/1=4.5 7/3/2=60 "},
        {"no steps", "layer,rank,wait_us\n3,1,4.5\n", "0/3/1=4.5 "},
        {"any order", "wait_us, rank ,step,layer\n4.5,1,7,3\n", "7/3/1=4.5 "},
        {"CRLF", "step,layer,rank,wait_us\r\n7,3,1,4.5\r\n8,3,1,6\r\n", "7/3/1=4.5 8/3/1=6 "},
        {"BOM", "\xEF\xBB\xBFlayer,rank,wait_us\n3,1,4.5\n", "0/3/1=4.5 "},
        {"blank last lines", HEADER "7,3,1,4.5\n\n  \r\n\n", "7/3/1=4.5 "},
        {"spaces", HEADER " 7 , 3 ,\t1 , 4.5 \n", "7/3/1=4.5 "},
        {"numbers", HEADER "0,0,0,0\n0,0,0,1e3\n0,0,0,2.5E-1\n0,0,0,86400000000\n",
         "0/0/0=0 0/0/0=1000 0/0/0=0.25 0/0/0=8.64e+10 "},
        {"the same again", HEADER "7,3,1,4\n7,3,1,4\n6,3,1,9\n", "7/3/1=4 7/3/1=4 6/3/1=9 "},
        {"no last newline", HEADER "7,3,1,4", "7/3/1=4 "},
    };
    test_path path = test_join(*state, "waits.csv");
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        char lines[256];
        eplb_error error;
        test_write_text(path.text, good[i].content);
        eplb_status status = read_lines(path.text, lines, sizeof(lines), &error);
        if (status != EPLB_OK || strcmp(lines, good[i].lines) != 0) {
            print_error("%s: status %d, \"%s\"\n", good[i].what, (int)status, lines);
            fail();
        }
    }
}

static void a_recording_names_the_waited_for_and_the_waiting_rank(void **state)
{
    (void)state;
    test_path path = test_data("format/waits.csv");
    eplb_waits *waits = read_ok(path.text, NULL);
    eplb_waits_info info = info_of(waits);
    assert_int_equal(info.layers, 2);
    assert_int_equal(info.ranks, 4);
    assert_int_equal(info.samples, 16);
    assert_int_equal(info.missing_ranks, 0);
    assert_int_equal(eplb_waits_layer_ids(waits)[0], 3);
    assert_int_equal(eplb_waits_layer_ids(waits)[1], 4);

    eplb_layer_waits layer = {.struct_size = sizeof(layer)};
    assert_ok(eplb_waits_get_layer(waits, 0, &layer, NULL), NULL);
    assert_int_equal(layer.least_rank, 1);
    assert_int_equal(layer.worst_rank, 0);
    assert_true(layer.worst == 121.0);
    assert_ok(eplb_waits_get_layer(waits, 1, &layer, NULL), NULL);
    assert_int_equal(layer.least_rank, 0);
    assert_int_equal(layer.worst_rank, 3);
    assert_true(layer.worst == 1900.5);

    eplb_rank_waits rank = {.struct_size = sizeof(rank)};
    assert_ok(eplb_waits_get_rank(waits, 1, &rank, NULL), NULL);
    assert_true(rank.step_wait == (4.5 + 5.25) / 2 + (88.5 + 84.0) / 2);
    assert_int_equal(info.least_rank, 1);
    assert_int_equal(info.worst_rank, 3);
    eplb_waits_destroy(&waits);
}

static void lines_of_one_step_layer_and_rank_are_several_samples(void **state)
{
    test_path path = test_join(*state, "waits.csv");
    test_write_text(path.text, HEADER "7,3,1,4\n7,3,1,4\n7,3,1,10\n");
    eplb_waits *waits = read_ok(path.text, NULL);
    eplb_wait_times times = {.struct_size = sizeof(times)};
    assert_ok(eplb_waits_get(waits, 0, 1, &times, NULL), NULL);
    assert_int_equal(times.samples, 3);
    assert_true(times.mean == 6.0);
    eplb_waits_destroy(&waits);
}

static void ranks_given_show_the_missing_ones(void **state)
{
    test_path path = test_join(*state, "waits.csv");
    test_write_text(path.text, HEADER "0,3,2,4\n0,3,0,4\n");
    eplb_waits *waits = read_ok(path.text, NULL);
    assert_int_equal(info_of(waits).ranks, 3);
    assert_int_equal(info_of(waits).missing_ranks, 1);
    eplb_waits_destroy(&waits);

    eplb_waits_read_options options = default_options();
    options.ranks = 4;
    waits = read_ok(path.text, &options);
    assert_int_equal(info_of(waits).ranks, 4);
    int32_t missing[4];
    assert_int_equal(eplb_waits_missing_ranks(waits, 0, missing, 4), 2);
    assert_int_equal(missing[0], 1);
    assert_int_equal(missing[1], 3);
    eplb_waits_destroy(&waits);

    eplb_error error;
    options.ranks = 2;
    assert_status(eplb_waits_read(&waits, NULL, path.text, &options, &error), EPLB_ERROR_DATA,
                  &error);
    assert_contains(error.message, "waits.csv:2: layer 3: rank 2 not in 0..1");
    assert_null(waits);
}

/* The ranks given are a promise of the caller's, not what a file asks for. */
static void ranks_given_go_beyond_the_limit_of_ranks(void **state)
{
    test_path path = test_join(*state, "waits.csv");
    test_write_text(path.text, HEADER "0,3,5000,4\n");
    eplb_waits *waits;
    eplb_error error;
    assert_status(eplb_waits_read(&waits, NULL, path.text, NULL, &error), EPLB_ERROR_LIMIT, &error);
    assert_contains(error.message, "rank 5000 not in 0..4095");
    eplb_waits_read_options options = default_options();
    options.ranks = 6000;
    waits = read_ok(path.text, &options);
    assert_int_equal(info_of(waits).ranks, 6000);
    eplb_waits_destroy(&waits);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    const struct {
        eplb_waits_read_options options;
        const char *message;
    } bad[] = {
        {{.struct_size = 0, .max_layers = 1, .max_ranks = 1}, "struct_size"},
        {{.struct_size = sizeof(eplb_waits_read_options), .max_layers = 0, .max_ranks = 1},
         "limit of layers 0"},
        {{.struct_size = sizeof(eplb_waits_read_options), .max_layers = 65537, .max_ranks = 1},
         "limit of layers 65537"},
        {{.struct_size = sizeof(eplb_waits_read_options), .max_layers = 1, .max_ranks = 0},
         "limit of ranks 0"},
        {{.struct_size = sizeof(eplb_waits_read_options),
          .max_layers = 1,
          .max_ranks = 1,
          .ranks = -1},
         "ranks -1 not in 0..65536"},
        {{.struct_size = sizeof(eplb_waits_read_options),
          .max_layers = 1,
          .max_ranks = 1,
          .ranks = 65537},
         "ranks 65537 not in 0..65536"},
    };
    test_path path = test_data("format/waits.csv");
    eplb_waits *waits;
    eplb_waits_reader *reader;
    eplb_waits_row row;
    eplb_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(eplb_waits_read(&waits, NULL, path.text, &bad[i].options, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, bad[i].message);
    }
    assert_status(eplb_waits_read(NULL, NULL, path.text, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_waits_read(&waits, NULL, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_open(NULL, NULL, path.text, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_waits_open(&reader, NULL, "", NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_null(reader);
    assert_status(eplb_waits_next(NULL, &row, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_waits_read_options_init(NULL);
    eplb_waits_close(NULL);
}

static void an_older_callers_options_have_default_limits(void **state)
{
    (void)state;
    test_path path = test_data("format/waits.csv");
    eplb_waits_read_options options = {.struct_size = offsetof(eplb_waits_read_options, max_layers),
                                       .ranks = 4};
    eplb_waits *waits = read_ok(path.text, &options);
    assert_int_equal(info_of(waits).ranks, 4);
    eplb_waits_destroy(&waits);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    test_path path = test_join(*state, "none.csv");
    eplb_waits *waits;
    eplb_error error;
    assert_status(eplb_waits_read(&waits, NULL, path.text, NULL, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "none.csv: cannot open: ");
    assert_status(eplb_waits_read(&waits, NULL, *state, NULL, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "cannot read: ");
}

static void a_failed_reader_stays_failed(void **state)
{
    test_path path = test_join(*state, "waits.csv");
    test_write_text(path.text, HEADER "0,3,1,x\n0,3,1,1\n");
    eplb_waits_reader *reader;
    eplb_waits_row row;
    eplb_error error;
    assert_ok(eplb_waits_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_status(eplb_waits_next(reader, &row, &error), EPLB_ERROR_PARSE, &error);
    assert_status(eplb_waits_next(reader, &row, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "waits.csv: an earlier read failed");
    assert_status(eplb_waits_next(reader, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_waits_close(&reader);
}

static void count_warnings(void *context, int32_t level, const char *message)
{
    assert_int_equal(level, EPLB_LOG_WARNING);
    assert_contains(message, "waits.csv: the last line has no newline");
    ++*(int *)context;
}

/* A good file cut anywhere: whole at the ends of lines; elsewhere an error, or a warning where the
 * last line could be whole. */
static void a_cut_file_is_an_error_or_a_warning_but_at_line_ends(void **state)
{
    test_path path = test_join(*state, "waits.csv");
    size_t size;
    char *text = test_read_file(test_data("format/waits.csv").text, &size);
    size_t header = (size_t)(strchr(text, '\n') - text) + 1;
    int errors = 0;
    int warned = 0;
    for (size_t cut = 0; cut <= size; cut++) {
        int warnings = 0;
        eplb_hooks hooks;
        eplb_hooks_init(&hooks);
        hooks.log = count_warnings;
        hooks.log_context = &warnings;
        test_write_file(path.text, text, cut);
        eplb_waits *waits;
        eplb_error error = {0};
        eplb_status status = eplb_waits_read(&waits, &hooks, path.text, NULL, &error);
        bool line_end = cut > header && text[cut - 1] == '\n';
        assert_true(!line_end || (status == EPLB_OK && warnings == 0));
        assert_true(line_end || status == EPLB_ERROR_PARSE || (status == EPLB_OK && warnings == 1));
        assert_true((waits != NULL) == (status == EPLB_OK));
        errors += status == EPLB_OK ? 0 : 1;
        warned += warnings;
        eplb_waits_destroy(&waits);
    }
    assert_true(errors > (int)header && warned >= 16);
    free(text);
}

/* Bytes of a good file replaced at random: whatever comes of it is a status and, when it fails, a
 * message that names the file. */
static void random_damage_never_goes_unnamed(void **state)
{
    test_path path = test_join(*state, "waits.csv");
    static const char bytes[] = "0123456789,,..--eE\n\r \t\"x\0\xff";
    size_t size;
    char *text = test_read_file(test_data("format/waits.csv").text, &size);
    char *damaged = malloc(size);
    assert_non_null(damaged);
    eplb_random random;
    eplb_random_seed(&random, 11);
    for (int i = 0; i < 2000; i++) {
        memcpy(damaged, text, size);
        for (uint64_t n = 1 + eplb_random_below(&random, 4); n > 0; n--) {
            damaged[eplb_random_below(&random, size)] =
                bytes[eplb_random_below(&random, sizeof(bytes) - 1)];
        }
        test_write_file(path.text, damaged, size);
        test_memory memory = {0};
        eplb_hooks hooks = test_hooks(&memory);
        eplb_waits *waits;
        eplb_error error = {0};
        eplb_status status = eplb_waits_read(&waits, &hooks, path.text, NULL, &error);
        assert_true((waits != NULL) == (status == EPLB_OK));
        assert_true(status == EPLB_OK || strstr(error.message, "waits.csv:") != NULL);
        eplb_waits_destroy(&waits);
        assert_int_equal(memory.live, 0);
    }
    free(damaged);
    free(text);
}

/* Many more bytes than the buffer has, and no more memory than for one line of each pair. */
static void a_long_file_streams(void **state)
{
    enum { STEPS = 20000 };
    test_path path = test_join(*state, "waits.csv");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    fputs(HEADER, file);
    double sum = 0.0;
    for (int s = 0; s < STEPS; s++) {
        fprintf(file, "%d,%d,%d,%d.5\n", s, s % 2, s / 2 % 3, s);
        sum += s + 0.5;
    }
    assert_int_equal(fclose(file), 0);
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_waits *waits;
    eplb_error error;
    assert_ok(eplb_waits_read(&waits, &hooks, path.text, NULL, &error), &error);
    assert_true(memory.requests < 30);
    assert_int_equal(info_of(waits).samples, STEPS);
    assert_close(info_of(waits).mean, sum / STEPS, 1e-9);
    eplb_waits_destroy(&waits);
    assert_int_equal(memory.live, 0);
}

static eplb_status read_with_hooks(const eplb_hooks *hooks, void *context)
{
    eplb_waits *waits;
    eplb_status status = eplb_waits_read(&waits, hooks, context, NULL, NULL);
    assert_true((waits != NULL) == (status == EPLB_OK));
    eplb_waits_destroy(&waits);
    return status;
}

static void reading_survives_each_failing_allocation(void **state)
{
    (void)state;
    test_path path = test_data("format/waits.csv");
    test_each_failing_allocation(read_with_hooks, path.text);
}

TEST_MAIN(IN_DIRECTORY(files_that_may_look_different_are_read),
          cmocka_unit_test(a_recording_names_the_waited_for_and_the_waiting_rank),
          IN_DIRECTORY(lines_of_one_step_layer_and_rank_are_several_samples),
          IN_DIRECTORY(ranks_given_show_the_missing_ones),
          IN_DIRECTORY(ranks_given_go_beyond_the_limit_of_ranks),
          cmocka_unit_test(bad_options_are_refused),
          cmocka_unit_test(an_older_callers_options_have_default_limits),
          IN_DIRECTORY(a_file_that_cannot_be_read_is_named),
          IN_DIRECTORY(a_failed_reader_stays_failed),
          IN_DIRECTORY(a_cut_file_is_an_error_or_a_warning_but_at_line_ends),
          IN_DIRECTORY(random_damage_never_goes_unnamed), IN_DIRECTORY(a_long_file_streams),
          cmocka_unit_test(reading_survives_each_failing_allocation))
