/* SPDX-License-Identifier: MIT */
#include "reading.h"
#include "recording.h"

static eplb_load *load_of(const char *const *paths, int32_t count)
{
    eplb_error error;
    eplb_load *load;
    assert_ok(load_summed(&load, NULL, paths, count, NULL, &error), &error);
    return load;
}

static void assert_total(const eplb_load *load, int32_t scenario)
{
    assert_int_equal(eplb_load_layers(load), LAYERS);
    assert_int_equal(eplb_load_experts(load), EXPERTS);
    for (int l = 0; l < LAYERS; l++) {
        const double *row = eplb_load_row(load, scenario, l);
        assert_memory_equal(row, recorded_total[l], sizeof(recorded_total[l]));
    }
}

static void steps_are_summed(void **state)
{
    (void)state;
    static const char *const names[] = {"format/counts.csv", "format/counts.jsonl",
                                        "format/steps.npy", "format/steps_fortran.npy"};
    for (int i = 0; i < 4; i++) {
        test_path path = test_data(names[i]);
        const char *paths[] = {path.text};
        eplb_load *load = load_of(paths, 1);
        assert_total(load, 0);
        assert_int_equal(eplb_load_model_layers(load), 0);
        assert_int_equal(eplb_load_layer_ids(load)[2], 2);
        eplb_load_destroy(&load);
    }
}

static void dense_layers_of_sglang_are_left_out(void **state)
{
    (void)state;
    test_path path = test_data("format/sglang_logical_count.json");
    const char *paths[] = {path.text};
    eplb_load *load = load_of(paths, 1);
    assert_total(load, 0);
    assert_memory_equal(eplb_load_layer_ids(load), recorded_layer_ids, sizeof(recorded_layer_ids));
    assert_int_equal(eplb_load_model_layers(load), LAYERS + 1);
    assert_string_equal(eplb_load_scenario_name(load, 0), path.text);
    eplb_load_destroy(&load);
}

static void deepseek_v3_has_three_dense_layers_before_58_others(void **state)
{
    (void)state;
    test_path decode = test_shared_or_skip("data/deepseek_v3/decode_in1000out1000.json");
    test_path prefill = test_shared_or_skip("data/deepseek_v3/prefill_in1024.json");
    const char *paths[] = {decode.text, prefill.text};
    eplb_load *load = load_of(paths, 2);
    assert_int_equal(eplb_load_layers(load), 58);
    assert_int_equal(eplb_load_experts(load), 256);
    assert_int_equal(eplb_load_model_layers(load), 61);
    assert_int_equal(eplb_load_layer_ids(load)[0], 3);
    eplb_load_destroy(&load);
}

static void a_layer_with_tokens_in_one_file_is_not_dense(void **state)
{
    test_path first = test_join(*state, "first.json");
    test_path second = test_join(*state, "second.json");
    test_write_text(first.text, "{\"logical_count\":[[0,0],[1,2],[0,0]]}");
    test_write_text(second.text, "{\"logical_count\":[[0,0],[0,0],[0,3]]}");
    const char *paths[] = {first.text, second.text};
    eplb_load *load = load_of(paths, 2);
    assert_int_equal(eplb_load_layers(load), 2);
    assert_int_equal(eplb_load_layer_ids(load)[0], 1);
    assert_int_equal(eplb_load_model_layers(load), 3);
    assert_true(eplb_load_row(load, 1, 0)[1] == 0.0);
    assert_true(eplb_load_row(load, 1, 1)[1] == 3.0);
    assert_string_equal(eplb_load_scenario_name(load, 1), second.text);
    eplb_load_destroy(&load);
}

static void all_layers_are_kept_when_none_has_tokens(void **state)
{
    test_path path = test_join(*state, "zero.json");
    test_write_text(path.text, "{\"logical_count\":[[0,0],[0,0]]}");
    const char *paths[] = {path.text};
    eplb_load *load = load_of(paths, 1);
    assert_int_equal(eplb_load_layers(load), 2);
    assert_int_equal(eplb_load_model_layers(load), 2);
    eplb_load_destroy(&load);
}

static void zero_layers_of_other_formats_are_kept(void **state)
{
    test_path path = test_join(*state, "zero.csv");
    test_write_text(path.text, "layer,expert,tokens\n0,1,0\n1,0,4\n");
    const char *paths[] = {path.text};
    eplb_load *load = load_of(paths, 1);
    assert_int_equal(eplb_load_layers(load), 2);
    eplb_load_destroy(&load);
}

static void assert_refused(const char *const *paths, int32_t count, int32_t experts,
                           eplb_status expected, const char *part)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_read_options options = options_for("");
    options.experts = experts;
    eplb_error error;
    eplb_load *load;
    assert_status(load_summed(&load, &hooks, paths, count, &options, &error), expected, &error);
    assert_contains(error.message, part);
    assert_null(load);
    assert_int_equal(memory.live, 0);
}

static void files_of_two_models_are_refused(void **state)
{
    test_path narrow = test_join(*state, "narrow.jsonl");
    test_path wide = test_join(*state, "wide.jsonl");
    test_path deep = test_join(*state, "deep.jsonl");
    test_write_text(narrow.text, "{\"layer\":0,\"counts\":[1,2]}\n");
    test_write_text(wide.text, "{\"layer\":0,\"counts\":[1,2,3]}\n");
    test_write_text(deep.text, "{\"layer\":0,\"counts\":[1,2]}\n{\"layer\":1,\"counts\":[1,2]}\n");
    const char *widths[] = {narrow.text, wide.text};
    assert_refused(widths, 2, 0, EPLB_ERROR_DATA, "wide.jsonl: layer 0: 3 counts, but 2 in ");
    const char *layers[] = {deep.text, narrow.text};
    assert_refused(layers, 2, 0, EPLB_ERROR_DATA, "narrow.jsonl: no layer 1, but there is one in ");
    const char *more_layers[] = {narrow.text, deep.text};
    assert_refused(more_layers, 2, 0, EPLB_ERROR_DATA, "narrow.jsonl: no layer 1, but");
    assert_refused(widths, 1, 4, EPLB_ERROR_DATA, "2 counts, expected 4");
}

static void experts_without_lines_in_csv_have_no_tokens(void **state)
{
    test_path path = test_join(*state, "short.csv");
    test_write_text(path.text, "layer,expert,tokens\n0,1,5\n");
    const char *paths[] = {path.text};
    eplb_read_options options = options_for("");
    options.experts = 4;
    eplb_error error;
    eplb_load *load;
    assert_ok(load_summed(&load, NULL, paths, 1, &options, &error), &error);
    assert_int_equal(eplb_load_experts(load), 4);
    assert_true(eplb_load_row(load, 0, 0)[1] == 5.0);
    assert_true(eplb_load_row(load, 0, 0)[3] == 0.0);
    eplb_load_destroy(&load);
}

static void a_sum_that_overflows_names_the_file(void **state)
{
    test_path path = test_join(*state, "huge.jsonl");
    test_write_text(path.text,
                    "{\"layer\":5,\"counts\":[1e308]}\n{\"layer\":5,\"counts\":[1e308]}\n");
    const char *paths[] = {path.text};
    assert_refused(paths, 1, 0, EPLB_ERROR_OVERFLOW, "huge.jsonl: layer 5: ");
}

static void a_row_that_cannot_be_added_names_its_file(void **state)
{
    test_path good = test_join(*state, "good.jsonl");
    test_path huge = test_join(*state, "huge.jsonl");
    test_write_text(good.text, "{\"layer\":5,\"counts\":[1,1]}\n");
    test_write_text(huge.text, "{\"layer\":5,\"counts\":[1e308,1e308]}\n");
    const char *paths[] = {good.text, huge.text};
    char start[4200];
    snprintf(start, sizeof(start), "%s: ", huge.text);
    assert_refused(paths, 2, 0, EPLB_ERROR_OVERFLOW, start);
    assert_refused(paths, 2, 0, EPLB_ERROR_OVERFLOW, "layer 5");
}

/* Of the allocations that can fail, one is for the builder's row and some are for the result. */
static void running_out_of_memory_names_the_file_and_the_row(void **state)
{
    test_path path = test_join(*state, "f");
    test_write_text(path.text, "{\"layer\":5,\"counts\":[1,2]}\n");
    const char *paths[] = {path.text};
    bool named_row = false;
    bool named_file = false;
    eplb_status status;
    test_memory memory = {0};
    do {
        memory = (test_memory){.fail_at = memory.fail_at + 1};
        eplb_hooks hooks = test_hooks(&memory);
        eplb_error error;
        eplb_load *load;
        status = load_summed(&load, &hooks, paths, 1, NULL, &error);
        eplb_load_destroy(&load);
        named_row = named_row || (status == EPLB_ERROR_NOMEM &&
                                  strstr(error.message, "f: layer 5: 2 counts: out of memory"));
        named_file =
            named_file || (status == EPLB_ERROR_NOMEM && strstr(error.message, "f: out of memory"));
    } while (status == EPLB_ERROR_NOMEM);
    assert_int_equal(status, EPLB_OK);
    assert_true(named_row);
    assert_true(named_file);
}

/* What reading a text as a load warns of; "" is nothing. */
static void assert_warning(const char *directory, const char *text, const char *expected)
{
    test_path path = test_join(directory, "f");
    char wanted[EPLB_ERROR_MESSAGE_SIZE] = "";
    test_warnings warnings = {0};
    eplb_hooks hooks = test_warning_hooks(&warnings);
    eplb_error error;
    test_write_text(path.text, text);
    const char *paths[] = {path.text};
    eplb_load *load;
    assert_ok(load_summed(&load, &hooks, paths, 1, NULL, &error), &error);
    eplb_load_destroy(&load);
    if (expected[0] != '\0') {
        snprintf(wanted, sizeof(wanted), "%.300s: %s", path.text, expected);
    }
    assert_string_equal(warnings.last, wanted);
}

static void csv_that_may_be_cut_within_a_number_is_warned_of(void **state)
{
    assert_warning(*state, "layer,expert,tokens\n0,0,1\n0,1,25",
                   "the last line has no newline: "
                   "is the file whole?");
    assert_warning(*state, "layer,expert,tokens\n0,0,1\n0,1,25\n", "");
    assert_warning(*state, "layer,expert,tokens\n0,0,1\n0,1,25\n\n ", "");
}

#define ROW(layer) "{\"layer\":" layer ",\"counts\":[1,2]}\n"

static void a_log_with_more_rows_of_one_layer_is_warned_of(void **state)
{
    assert_warning(*state, ROW("0") ROW("2") ROW("0"),
                   "layer 2 has 1 row, layer 0 has 2: is the file whole?");
    assert_warning(*state, ROW("3") ROW("4") ROW("5") ROW("4"),
                   "layer 3 has 1 row, layer 4 has 2: is the file whole?");
    assert_warning(*state, ROW("0") ROW("2") ROW("0") ROW("2") ROW("0"),
                   "layer 2 has 2 rows, layer 0 has 3: is the file whole?");
    assert_warning(*state, ROW("3") ROW("4") ROW("4") ROW("3"), "");
    assert_warning(*state, "layer,expert,tokens\n0,0,1\n1,0,1\n0,1,1\n", "");
}

/* The rows of each file are counted by themselves. */
static void only_the_file_that_lacks_rows_is_warned_of(void **state)
{
    test_path cut = test_join(*state, "cut");
    test_path whole = test_join(*state, "whole");
    test_write_text(cut.text, ROW("0") ROW("1") ROW("0"));
    test_write_text(whole.text, ROW("0") ROW("1"));
    const char *paths[] = {cut.text, whole.text};
    test_warnings warnings = {0};
    eplb_hooks hooks = test_warning_hooks(&warnings);
    eplb_error error;
    eplb_load *load;
    assert_ok(load_summed(&load, &hooks, paths, 2, NULL, &error), &error);
    eplb_load_destroy(&load);
    assert_contains(warnings.last, "cut: layer 1 has 1 row, layer 0 has 2");
}

static void nothing_to_read_is_an_argument_error(void **state)
{
    (void)state;
    eplb_error error;
    eplb_load *load;
    const char *paths[] = {""};
    assert_status(load_summed(&load, NULL, paths, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(load_summed(&load, NULL, NULL, 1, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(load_summed(&load, NULL, paths, 1, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(load_summed(NULL, NULL, paths, 1, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
}

TEST_MAIN(cmocka_unit_test(steps_are_summed), cmocka_unit_test(dense_layers_of_sglang_are_left_out),
          cmocka_unit_test(deepseek_v3_has_three_dense_layers_before_58_others),
          IN_DIRECTORY(a_layer_with_tokens_in_one_file_is_not_dense),
          IN_DIRECTORY(all_layers_are_kept_when_none_has_tokens),
          IN_DIRECTORY(zero_layers_of_other_formats_are_kept),
          IN_DIRECTORY(files_of_two_models_are_refused),
          IN_DIRECTORY(experts_without_lines_in_csv_have_no_tokens),
          IN_DIRECTORY(a_sum_that_overflows_names_the_file),
          IN_DIRECTORY(a_row_that_cannot_be_added_names_its_file),
          IN_DIRECTORY(running_out_of_memory_names_the_file_and_the_row),
          IN_DIRECTORY(csv_that_may_be_cut_within_a_number_is_warned_of),
          IN_DIRECTORY(a_log_with_more_rows_of_one_layer_is_warned_of),
          IN_DIRECTORY(only_the_file_that_lacks_rows_is_warned_of),
          cmocka_unit_test(nothing_to_read_is_an_argument_error))
