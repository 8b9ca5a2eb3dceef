/* SPDX-License-Identifier: MIT */
/* The headers of safetensors, read as counts of TensorRT-LLM. */
#include <fcntl.h>

#include "tensors.h"

static const char two_steps[] = "{" VECTOR("0_1", 2, 0, 16) "," VECTOR("0_2", 2, 16, 32) "," VECTOR(
    "1_1", 2, 32, 48) "," VECTOR("1_2", 2, 48, 64) "}  ";

static void make_two_steps(tensor_file *file)
{
    begin_tensors(file, two_steps);
    for (int i = 0; i < 8; i++) {
        add_int64(file, 10 + i);
    }
}

#define TYPED(type) "{\"0_1\":{\"dtype\":" type ",\"shape\":[2],\"data_offsets\":[0,16]}}"
#define SHAPED(shape) "{\"0_1\":{\"dtype\":\"I64\",\"shape\":" shape ",\"data_offsets\":[0,16]}}"
#define PLACED(offsets) "{\"0_1\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":" offsets "}}"

static const bad_tensors headers[] = {
    {"", PARSE, "f:1:9: expected '{': the header, found the end of the file", {0}, 0},
    {"[]", PARSE, "f:1:9: expected '{': the header, found '['", {0}, 0},
    {"{", PARSE, "f:1:10: expected a string, found the end of the file", {0}, 0},
    {"{}", PARSE, "f: no tensors", {0}, 0},
    {"{\"__metadata__\":{\"a\":\"b\"}}", PARSE, "f: no tensors", {0}, 0},
    {"{\"0_1\"", PARSE, "expected ':' after a key, found the end of the file", {0}, 0},
    {"{\"0_1\":", PARSE, "expected '{': what a tensor is, found the end of the file", {0}, 0},
    {"{\"0_1\":7}", PARSE, "f:1:16: expected '{': what a tensor is, found '7'", {0}, 0},
    {"{\"0_1\":{}}", PARSE, "tensor '0_1': no key 'dtype', 'shape' or 'data_offsets'", {0}, 0},
    {"{\"0_1\":{\"dtype\":\"I64\",\"shape\":[2]}}", PARSE, "tensor '0_1': no key", {1, 2}, 2},
    {"{\"0_1\":{\"dtype\":\"I64\",\"data_offsets\":[0,16]}}", PARSE, "no key", {1, 2}, 2},
    {"{\"0_1\":{\"shape\":[2],\"data_offsets\":[0,16]}}", PARSE, "no key 'dtype'", {1, 2}, 2},
    {"{\"0_1\":{\"dtype\":\"I64\",\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]}}",
     PARSE,
     "tensor '0_1': a second key of one name",
     {1, 2},
     2},
    {"{\"0_1\":{\"shape\":[2],\"shape\":[2]}}", PARSE, "a second key of one name", {1, 2}, 2},
    {"{\"0_1\":{\"data_offsets\":[0,16],\"data_offsets\":[0,16]}}", PARSE, "second", {1, 2}, 2},
    {TYPED("64"), PARSE, "expected a string, found '6'", {1, 2}, 2},
    {TYPED("\"i64\""), UNSUPPORTED, "tensor '0_1': items of type 'i64', expected", {1, 2}, 2},
    {TYPED("\"F16\""), UNSUPPORTED, "tensor '0_1': items of type 'F16', expected", {1, 2}, 2},
    {TYPED("\"I64I64I64I64I64I64\""), UNSUPPORTED, "items of type 'I64I64I64I64I64I'", {1, 2}, 2},
    {TYPED("\"I32\""), PARSE, "[0, 16], but a shape of 2 items of 4 bytes", {1, 2}, 2},
    {SHAPED("2"), PARSE, "expected '[': a list of sizes, found '2'", {1, 2}, 2},
    {SHAPED("[2"), PARSE, "f:1:42: expected a number, found '\"", {1, 2}, 2},
    {SHAPED("[2.5]"), PARSE, "shape 2.5 is not an integer", {1, 2}, 2},
    {SHAPED("[-2]"), DATA, "shape -2 is negative", {1, 2}, 2},
    {SHAPED("[1e400]"), EPLB_ERROR_OVERFLOW, "shape 1e400 is too large", {1, 2}, 2},
    {SHAPED("[9007199254740993]"), EPLB_ERROR_OVERFLOW, "is above 2^53", {1, 2}, 2},
    {SHAPED("[9007199254740992,9007199254740992]"),
     PARSE,
     "tensor '0_1': a shape of too many items",
     {1, 2},
     2},
    {SHAPED("[2305843009213693954]"), EPLB_ERROR_OVERFLOW, "is above 2^53", {1, 2}, 2},
    {SHAPED("[1152921504606847]"), PARSE, "a shape of 1152921504606847 items", {1, 2}, 2},
    {SHAPED("[3]"), PARSE, "[0, 16], but a shape of 3 items of 8 bytes", {1, 2}, 2},
    {SHAPED("[]"), PARSE, "[0, 16], but a shape of 1 items of 8 bytes", {1, 2}, 2},
    {SHAPED("[2,0]"), PARSE, "[0, 16], but a shape of 0 items of 8 bytes", {1, 2}, 2},
    {PLACED("[0]"), PARSE, "tensor '0_1': data_offsets are not two", {1, 2}, 2},
    {PLACED("[]"), PARSE, "tensor '0_1': data_offsets are not two", {1, 2}, 2},
    {PLACED("[0,8,16]"), PARSE, "tensor '0_1': data_offsets are not two", {1, 2}, 2},
    {PLACED("[0,\"16\"]"), PARSE, "expected a number, found '\"'", {1, 2}, 2},
    {PLACED("[16,0]"), PARSE, "data_offsets [16, 0], not inside the 16 bytes of data", {1, 2}, 2},
    {PLACED("[0,16]"), PARSE, "data_offsets [0, 16], not inside the 8 bytes of data", {1}, 1},
    {PLACED("[8,24]"), PARSE, "data_offsets [8, 24], not inside the 16 bytes", {1, 2}, 2},
    {PLACED("[0,8]"), PARSE, "[0, 8], but a shape of 2 items of 8 bytes", {1, 2}, 2},
    {PLACED("[8,24]"), PARSE, "f: byte 65: data that are of no tensor", {1, 2, 3}, 3},
    {PLACED("[0,16]"), PARSE, "f: byte 81: data that are of no tensor", {1, 2, 3}, 3},
    {"{" VECTOR("0_1", 2, 0, 16) "," VECTOR("0_2", 2, 8, 24) "}",
     PARSE,
     "data of two tensors at one place",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 2, 0, 16) "," VECTOR("0_2", 2, 0, 16) "}",
     PARSE,
     "data of two tensors at one place",
     {1, 2, 3, 4},
     4},
    {"{" VECTOR("0_1", 1, 8, 16) "," VECTOR("0_2", 1, 24, 32) "," VECTOR("0_3", 1, 0, 8) "}",
     PARSE,
     "data that are of no tensor",
     {1, 2, 3, 4},
     4},
    {"{" VECTOR("0_1", 2, 0, 16) "," VECTOR("0_1", 2, 16, 32) "}",
     PARSE,
     "f: step 0: layer 1 a second time",
     {1, 2, 3, 4},
     4},
    {"{" VECTOR("0_1", 2, 0, 16) "} {}", PARSE, "expected white space up to the end", {1, 2}, 2},
    {"{" VECTOR("0_1", 2, 0, 16) ",}", PARSE, "expected a string, found '}'", {1, 2}, 2},
    {"{" VECTOR("", 2, 0, 16) "}", PARSE, "a tensor's name that is empty", {1, 2}, 2},
    {"{" VECTOR("0_1\\u0000", 2, 0, 16) "}", PARSE, "or has U+0000", {1, 2}, 2},
    {"{\"__metadata__\":[],\"0_1\":{}}", PARSE, "expected '{': metadata, found '['", {0}, 0},
    {"{\"__metadata__\":{\"a\":1}}", PARSE, "expected a string, found '1'", {0}, 0},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", PARSE, "second key '__metadata__'", {0}, 0},
    {"{\"__metadata__\":{\"version\":\"1\",\"version\":\"1\"}}", PARSE, "second key 'vers", {0}, 0},
};

static void bad_headers_are_refused(void **state)
{
    eplb_read_options options = options_for("trtllm");
    assert_tensors_refused(*state, ALL_OF(headers), &options, false);
}

static void every_truncated_file_is_refused(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_read_options options = options_for("trtllm");
    tensor_file file;
    eplb_error error;
    make_two_steps(&file);
    for (size_t size = 0; size < file.size; size++) {
        test_write_file(path.text, file.bytes, size);
        assert_status(read_rows(path.text, &options, NULL, NULL, &error), PARSE, &error);
    }
    write_tensors(path.text, &file);
    assert_ok(read_rows(path.text, &options, NULL, NULL, &error), &error);
    file.bytes[file.size++] = 0;
    write_tensors(path.text, &file);
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), PARSE, &error);
    assert_contains(error.message, "data that are of no tensor");
}

static void the_length_of_the_header_is_checked(void **state)
{
    static const struct {
        uint64_t length;
        const char *message;
    } lengths[] = {
        {UINT64_MAX, "f: byte 0: a header of 18446744073709551615 bytes, but only 72 follow"},
        {UINT64_C(1) << 60, "f: byte 0: a header of 1152921504606846976 bytes, but only"},
        {73, "f: byte 0: a header of 73 bytes, but only 72 follow"},
        {57, "f: byte 64: expected white space up to the end of the header"},
        {55, "f: byte 63: the header goes on behind its length"},
        {0, "f: byte 8: the header goes on behind its length"},
    };
    test_path path = test_join(*state, "f");
    eplb_read_options options = options_for("trtllm");
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        tensor_file file;
        eplb_error error;
        begin_tensors_as(&file, "{" VECTOR("0_1", 1, 0, 8) "}", lengths[i].length);
        assert_int_equal(file.size, 8 + 56);
        for (int k = 0; k < 2; k++) {
            add_int64(&file, 1);
        }
        write_tensors(path.text, &file);
        assert_status(read_rows(path.text, &options, NULL, NULL, &error), PARSE, &error);
        assert_contains(error.message, lengths[i].message);
    }
}

static void names_and_data_come_in_any_order(void **state)
{
    test_path path = test_join(*state, "f");
    tensor_file file;
    begin_tensors(&file, "{" VECTOR("10_2", 1, 0, 8) "," VECTOR("9_10", 1, 8, 16) "," VECTOR(
                             "10_10", 1, 24,
                             32) ",\"__metadata__\":{\"format\":\"x\"},\n" VECTOR("9_2", 1, 16,
                                                                                  24) "}\t\r\n ");
    for (int i = 0; i < 4; i++) {
        add_int64(&file, i);
    }
    write_tensors(path.text, &file);
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    static const int expected[4][3] = {{9, 2, 2}, {9, 10, 1}, {10, 2, 0}, {10, 10, 3}};
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    for (int i = 0; i < 4; i++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_int_equal(row.step, expected[i][0]);
        assert_int_equal(row.layer, expected[i][1]);
        assert_true(row.length == 1 && row.counts[0] == expected[i][2]);
    }
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);
}

static void a_pipe_is_refused_and_a_redirected_file_read(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_read_options options = options_for("trtllm");
    eplb_error error;
    int ends[2];
    tensor_file file;
    make_two_steps(&file);
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDIN_FILENO);
    assert_true(saved >= 0 && dup2(ends[0], STDIN_FILENO) >= 0);
    assert_int_equal(write(ends[1], file.bytes, file.size), file.size);
    close(ends[1]);
    assert_status(read_rows("-", &options, NULL, NULL, &error), UNSUPPORTED, &error);
    assert_contains(error.message,
                    "a file of safetensors cannot be read from a pipe: give it as a file");

    write_tensors(path.text, &file);
    int fd = open(path.text, O_RDONLY);
    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) >= 0);
    assert_ok(read_rows("-", &options, NULL, NULL, &error), &error);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    close(saved);
    close(fd);
    close(ends[0]);
}

/* Opens a whole file, and cuts or fills it before the first row is read. */
static void a_file_that_shrinks_is_an_error(void **state)
{
    test_path path = test_join(*state, "f");
    enum { EXPERTS = 65536 };
    char header[200];
    tensor_file file;
    eplb_read_options options = options_for("trtllm");
    options.max_experts = EXPERTS;
    snprintf(header, sizeof(header), "{" VECTOR("0_1", % d, 0, % d) "}", EXPERTS, 8 * EXPERTS);
    begin_tensors(&file, header);
    write_tensors(path.text, &file);
    assert_int_equal(truncate(path.text, (off_t)(file.size + 8 * EXPERTS)), 0);
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, &options, &error), &error);
    assert_int_equal(truncate(path.text, (off_t)(file.size + 8 * 60000)), 0);
    assert_status(eplb_counts_next(reader, &row, &error), PARSE, &error);
    assert_contains(error.message, "f: step 0: layer 1: expert 60000: the file ends too early");
    eplb_counts_close(&reader);
}

TEST_MAIN(IN_DIRECTORY(bad_headers_are_refused), IN_DIRECTORY(every_truncated_file_is_refused),
          IN_DIRECTORY(the_length_of_the_header_is_checked),
          IN_DIRECTORY(names_and_data_come_in_any_order),
          IN_DIRECTORY(a_pipe_is_refused_and_a_redirected_file_read),
          IN_DIRECTORY(a_file_that_shrinks_is_an_error))
