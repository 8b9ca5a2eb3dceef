/* SPDX-License-Identifier: MIT */
/* vLLM's cumulative load: safetensors with an array of floats for each model. */
#include "recording.h"
#include "tensors.h"

static void check_row(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    assert_int_equal(row->step, 0);
    assert_int_equal(row->layer, *rows);
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        assert_true(row->counts[e] == recorded_total[row->layer][e]);
    }
    ++*rows;
}

static void the_recorded_total_is_read(void **state)
{
    (void)state;
    test_path path = test_data("format/vllm_load.safetensors");
    int rows = 0;
    eplb_error error;
    eplb_counts_reader *reader;
    assert_ok(read_rows(path.text, NULL, check_row, &rows, &error), &error);
    assert_int_equal(rows, LAYERS);
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_string_equal(eplb_format_name(eplb_counts_format(reader)), "vllm_load");
    eplb_counts_close(&reader);
}

#define METADATA "\"__metadata__\":{\"version\":\"1\"}"
#define ARRAY(name, shape, begin, end)                                                             \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void check_second_model(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    assert_int_equal(row->length, 2);
    assert_true(row->counts[0] == 7.5 + 2 * *rows && row->counts[1] == 8.5 + 2 * *rows);
    ++*rows;
}

static void one_of_several_models_is_read_by_its_name(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_read_options options = options_for("");
    eplb_error error;
    tensor_file file;
    begin_tensors(&file, "{" METADATA "," ARRAY("a/model", "[1,1]", 0,
                                                4) "," ARRAY("another", "[2,2]", 4, 20) "}");
    add_float(&file, 1.0F);
    for (int i = 0; i < 4; i++) {
        add_float(&file, 7.5F + (float)i);
    }
    write_tensors(path.text, &file);
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "f: 2 arrays, say which one: 'a/model' 'another'");
    options.array = "other";
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "f: no array 'other' among 'a/model' 'another'");
    options.array = "another";
    int rows = 0;
    assert_ok(read_rows(path.text, &options, check_second_model, &rows, &error), &error);
    assert_int_equal(rows, 2);
}

/* Local paths are names of models, too. */
static void long_names_are_names(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_read_options options = options_for("");
    eplb_error error;
    tensor_file file;
    char header[2048];
    for (int length = 1023; length <= 1024; length++) {
        snprintf(header, sizeof(header), "{" METADATA "," ARRAY("%0*d", "[1,1]", 0, 4) "}", length,
                 0);
        begin_tensors(&file, header);
        add_float(&file, 1.0F);
        write_tensors(path.text, &file);
        assert_status(read_rows(path.text, &options, NULL, NULL, &error),
                      length == 1023 ? EPLB_OK : LIMIT, &error);
    }
    assert_contains(error.message, "a tensor's name of 1024 bytes, at most 1023");
}

/* Limits of this test: 4 layers, 6 experts. */
static const bad_tensors files[] = {
    {"{" ARRAY("m", "[1,1]", 0, 4) "}",
     UNSUPPORTED,
     "f: version '' in its metadata, known is '1'",
     {1},
     1},
    {"{\"__metadata__\":{\"version\":\"2\"}," ARRAY("m", "[1,1]", 0, 4) "}",
     UNSUPPORTED,
     "f: version '2' in its metadata",
     {1},
     1},
    {"{\"__metadata__\":{\"version\":1}," ARRAY("m", "[1,1]", 0, 4) "}",
     PARSE,
     "expected a string, found '1'",
     {1},
     1},
    {"{" METADATA "}", PARSE, "f: no tensors", {0}, 0},
    {"{" METADATA "," ARRAY("m", "[1]", 0, 4) "}",
     PARSE,
     "tensor 'm': expected floats [layers, experts]",
     {1},
     1},
    {"{" METADATA "," ARRAY("m", "[1,1,1]", 0, 4) "}", PARSE, "expected floats [layers", {1}, 1},
    {"{" METADATA ",\"m\":{\"dtype\":\"I32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}",
     PARSE,
     "tensor 'm': expected floats [layers, experts]",
     {1},
     1},
    {"{" METADATA "," ARRAY("m", "[0,1]", 0, 0) "}",
     PARSE,
     "f: 'm': 0 layers, 1 experts: no counts",
     {0},
     0},
    {"{" METADATA "," ARRAY("m", "[1,0]", 0, 0) "}", PARSE, "1 layers, 0 experts", {0}, 0},
    {"{" METADATA "," ARRAY("m", "[5,1]", 0, 20) "}",
     LIMIT,
     "f: 'm': 5 layers of 1 experts, limits 4 and 6",
     {1, 2, 3, 4, 5},
     5},
    {"{" METADATA "," ARRAY("m", "[1,7]", 0, 28) "}",
     LIMIT,
     "1 layers of 7 experts, limits",
     {1, 2, 3, 4, 5, 6, 7},
     7},
    {"{" METADATA
     "," ARRAY("m", "[1,1]", 0, 4) "," ARRAY("n", "[1,1]", 4, 8) "," ARRAY("m", "[1,1]", 8, 12) "}",
     PARSE,
     "f: two tensors 'm'",
     {1, 2, 3},
     3},
    {"{" METADATA "," ARRAY("m", "[2,2]", 0, 16) "}",
     DATA,
     "f: step 0: layer 1: expert 0: nan is not a count",
     {1, 2, NAN, 4},
     4},
    {"{" METADATA "," ARRAY("m", "[2,2]", 0, 16) "}",
     DATA,
     "f: step 0: layer 0: expert 1: inf is not a count",
     {1, INFINITY, 3, 4},
     4},
    {"{" METADATA "," ARRAY("m", "[2,2]", 0, 16) "}",
     DATA,
     "f: step 0: layer 1: expert 1: -0.5 is negative",
     {1, 2, 3, -0.5},
     4},
};

static void bad_files_are_refused(void **state)
{
    eplb_read_options options = options_for("vllm_load");
    options.max_layers = 4;
    options.max_experts = 6;
    assert_tensors_refused(*state, ALL_OF(files), &options, true);
}

static void experts_that_differ_from_those_given_are_refused(void **state)
{
    (void)state;
    test_path path = test_data("format/vllm_load.safetensors");
    eplb_read_options options = options_for("");
    eplb_error error;
    options.experts = 9;
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), DATA, &error);
    assert_contains(error.message, "'toy-moe': 8 counts a layer, expected 9");
}

/* Weights are safetensors, too, and so are other recordings. */
static void other_safetensors_are_not_recognised(void **state)
{
    static const char *const headers[] = {
        "{\"__metadata__\":{\"format\":\"pt\"}," ARRAY("model.weight", "[1,1]", 0, 4) "}",
        "{" ARRAY("layers.0_1", "[1,1]", 0, 4) "}",
        "{}",
    };
    test_path path = test_join(*state, "f");
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        tensor_file file;
        eplb_error error;
        begin_tensors(&file, headers[i]);
        add_float(&file, 1.0F);
        write_tensors(path.text, &file);
        assert_status(read_rows(path.text, NULL, NULL, NULL, &error), PARSE, &error);
        assert_contains(error.message, "the content is of no known format of counts");
    }
}

TEST_MAIN(cmocka_unit_test(the_recorded_total_is_read),
          IN_DIRECTORY(one_of_several_models_is_read_by_its_name),
          IN_DIRECTORY(long_names_are_names), IN_DIRECTORY(bad_files_are_refused),
          cmocka_unit_test(experts_that_differ_from_those_given_are_refused),
          IN_DIRECTORY(other_safetensors_are_not_recognised))
