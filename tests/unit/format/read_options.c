/* SPDX-License-Identifier: MIT */
#include "reading.h"

static void init_writes_the_documented_defaults(void **state)
{
    (void)state;
    eplb_read_options options;
    memset(&options, 0xa5, sizeof(options));
    eplb_read_options_init(&options);
    assert_int_equal(options.struct_size, sizeof(options));
    assert_null(options.format);
    assert_int_equal(options.experts, 0);
    assert_int_equal(options.gpus, 0);
    assert_int_equal(options.gpus_per_node, 0);
    assert_int_equal(options.max_layers, 1024);
    assert_int_equal(options.max_experts, 4096);
    assert_int_equal(options.max_slots, 1048576);
    assert_int_equal(options.max_bytes, 268435456);
    eplb_read_options_init(NULL);
}

/* An older caller's struct ends before `experts`: what lies behind it is not looked at. */
static void a_shorter_struct_gets_defaults_for_the_rest(void **state)
{
    (void)state;
    test_path path = test_data("format/counts.csv");
    eplb_read_options options = options_for("csv");
    options.struct_size = offsetof(eplb_read_options, experts);
    options.experts = -1;
    options.max_layers = -1;
    eplb_error error;
    assert_ok(read_rows(path.text, &options, NULL, NULL, &error), &error);
    options.struct_size = offsetof(eplb_read_options, gpus);
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
}

static void assert_argument_error(const eplb_read_options *options, const char *part)
{
    test_path path = test_data("format/counts.csv");
    eplb_error error;
    assert_status(read_rows(path.text, options, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, part);
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_read_options options = options_for("");
    options.experts = 65537;
    assert_argument_error(&options, "65537 experts not in 0..65536");
    options = options_for("");
    options.gpus = -1;
    assert_argument_error(&options, "-1 GPUs not in");
    options = options_for("");
    options.gpus_per_node = -2;
    assert_argument_error(&options, "-2 GPUs per node");
    options = options_for("");
    options.max_layers = 0;
    assert_argument_error(&options, "0 layers");
    options = options_for("");
    options.max_bytes = 0;
    assert_argument_error(&options, "0 bytes");
}

static void limits_apply_to_every_format_of_counts(void **state)
{
    (void)state;
    static const char *const names[] = {"format/counts.csv", "format/counts.jsonl",
                                        "format/steps.npy", "format/sglang_logical_count.json"};
    for (int i = 0; i < 4; i++) {
        test_path path = test_data(names[i]);
        eplb_read_options options = options_for("");
        options.max_layers = 2;
        eplb_error error;
        assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_LIMIT, &error);
        options = options_for("");
        options.max_experts = 7;
        assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_LIMIT, &error);
        options.max_experts = 8;
        assert_ok(read_rows(path.text, &options, NULL, NULL, &error), &error);
    }
}

/* By default a small file cannot ask for much memory: 32 MiB a scenario. */
static void default_limits_bound_what_a_small_file_takes(void **state)
{
    static const struct {
        const char *line;
        eplb_status status;
        const char *part;
    } cases[] = {
        {"1023,4095,1\n", EPLB_OK, ""},
        {"1024,0,1\n", EPLB_ERROR_LIMIT, "layer 1024 not in 0..1023"},
        {"0,4096,1\n", EPLB_ERROR_LIMIT, "expert 4096 not in 0..4095"},
    };
    test_path path = test_join(*state, "sparse.csv");
    for (size_t i = 0; i < 3; i++) {
        char text[64];
        eplb_error error = {0};
        snprintf(text, sizeof(text), "layer,expert,tokens\n%s", cases[i].line);
        test_write_text(path.text, text);
        assert_status(read_rows(path.text, NULL, NULL, NULL, &error), cases[i].status, &error);
        assert_contains(error.message, cases[i].part);
    }
}

static void options_that_were_never_initialised_are_refused(void **state)
{
    (void)state;
    eplb_read_options options = {0};
    assert_argument_error(&options, "read options without struct_size");
}

static void limits_above_the_library_s_own_are_its_own(void **state)
{
    test_path path = test_join(*state, "deep.jsonl");
    test_write_text(path.text, "{\"layer\":70000,\"counts\":[1]}");
    eplb_read_options options = options_for("");
    options.max_layers = INT32_MAX;
    options.max_experts = INT32_MAX;
    eplb_error error;
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_LIMIT, &error);
    assert_contains(error.message, "layer 70000 is above the limit 65535");
}

TEST_MAIN(cmocka_unit_test(init_writes_the_documented_defaults),
          cmocka_unit_test(a_shorter_struct_gets_defaults_for_the_rest),
          cmocka_unit_test(values_out_of_range_are_refused),
          cmocka_unit_test(limits_apply_to_every_format_of_counts),
          cmocka_unit_test(options_that_were_never_initialised_are_refused),
          cmocka_unit_test_setup_teardown(default_limits_bound_what_a_small_file_takes,
                                          test_directory_setup, test_directory_teardown),
          cmocka_unit_test_setup_teardown(limits_above_the_library_s_own_are_its_own,
                                          test_directory_setup, test_directory_teardown))
