/* SPDX-License-Identifier: MIT */
/* Files of counts that must be refused: each with its status and the place its message names. */
#include "bad.h"

#define OVERFLOW EPLB_ERROR_OVERFLOW

static const bad_file json[] = {
    {"sglang", "[[1,2]]", PARSE, "f:1:1: expected '{', found '['"},
    {"sglang", "{", PARSE, "f:1:2: expected a string, found the end of the file"},
    {"sglang", "{}", PARSE, "f:1:2: no key 'logical_count'"},
    {"sglang", "{\"logical_count\"", PARSE, "expected ':' after a key, found the end of the file"},
    {"sglang", "{\"logical_count\":", PARSE,
     "f:1:18: expected '[': a list of layers, found the end"},
    {"", "{\"logical_count\":7}", PARSE, "f:1:18: expected '[': a list of layers, found '7'"},
    {"", "{\"logical_count\":[", PARSE, "f:1:19: expected '[': a list of counts or of layers"},
    {"", "{\"logical_count\":[]}", PARSE, "f:1:19: expected '[': a list of counts"},
    {"", "{\"logical_count\":[1,2]}", PARSE, "f:1:19: expected '[': a list of counts"},
    {"", "{\"logical_count\":[[]]}", PARSE, "layer 0: no counts"},
    {"", "{\"logical_count\":[[1,2],[]]}", PARSE, "layer 1: no counts"},
    {"", "{\"logical_count\":[[[]]]}", PARSE, "step 0: layer 0: no counts"},
    {"", "{\"logical_count\":[[[1],[2]],[]]}", PARSE, "step 1: layer 0: expected '['"},
    {"", "{\"logical_count\":[[1,2],[3,4", PARSE,
     "f:1:29: layer 1: expected ',' or ']', found the end of the file"},
    {"", "{\"logical_count\":[[1,2],[3,", PARSE,
     "layer 1: expert 1: expected a number, found the end"},
    {"", "{\"logical_count\":[[1,2],[3,4]", PARSE,
     "expected ',' or ']', found the end of the file"},
    {"", "{\"logical_count\":[[1,2],[3,4]]", PARSE,
     "expected ',' or '}', found the end of the file"},
    {"", "{\"logical_count\":[[1,2],[3]]}", PARSE, "f:1:27: layer 1: 1 counts, expected 2"},
    {"", "{\"logical_count\":[[1,2],\n[3,4,5]]}", PARSE, "f:2:7: layer 1: 3 counts, expected 2"},
    {"", "{\"logical_count\":[[[1,2],[3,4]],[[5,6]]]}", PARSE, "step 1: 1 layers, expected 2"},
    {"", "{\"logical_count\":[[[1,2]],[[5,6],[7,8]]]}", PARSE, "step 1: 2 layers, expected 1"},
    {"", "{\"logical_count\":[[[1,2]],[5,6]]}", PARSE, "step 1: layer 0: expected '['"},
    {"", "{\"logical_count\":[[1,2],[[5,6]]]}", PARSE,
     "layer 1: expert 0: expected a number, found '['"},
    {"", "{\"logical_count\":[[1,\"2\"]]}", PARSE, "f:1:22: layer 0: expert 1: expected a number"},
    {"", "{\"logical_count\":[[1,null]]}", PARSE, "layer 0: expert 1: null is not a number"},
    {"", "{\"logical_count\":[[1,]]}", PARSE, "layer 0: expert 1: expected a number, found ']'"},
    {"", "{\"logical_count\":[[,1]]}", PARSE, "layer 0: expert 0: expected a number, found ','"},
    {"", "{\"logical_count\":[[1 2]]}", PARSE, "f:1:22: layer 0: expected ',' or ']', found '2'"},
    {"", "{\"logical_count\":[[01]]}", PARSE, "layer 0: expert 0: 01 is not a number"},
    {"", "{\"logical_count\":[[01,2]]}", PARSE, "layer 0: expert 0: 01 is not a number"},
    {"", "{\"logical_count\":[[+1]]}", PARSE, "layer 0: expert 0: +1 is not a number"},
    {"", "{\"logical_count\":[[0x1]]}", PARSE, "layer 0: expert 0: 0x1 is not a number"},
    {"", "{\"logical_count\":[[1.]]}", PARSE, "layer 0: expert 0: 1. is not a number"},
    {"", "{\"logical_count\":[[.5]]}", PARSE, "layer 0: expert 0: .5 is not a number"},
    {"", "{\"logical_count\":[[1e]]}", PARSE, "layer 0: expert 0: 1e is not a number"},
    {"", "{\"logical_count\":[[1,NaN]]}", DATA, "f:1:22: layer 0: expert 1: NaN is not a count"},
    {"", "{\"logical_count\":[[Infinity]]}", DATA, "layer 0: expert 0: Infinity is not a count"},
    {"", "{\"logical_count\":[[1,2],[3,-Infinity]]}", DATA, "layer 1: expert 1: -Infinity is not"},
    {"", "{\"logical_count\":[[1,-5]]}", DATA, "layer 0: expert 1: -5 is negative"},
    {"", "{\"logical_count\":[[-1e-400]]}", DATA, "layer 0: expert 0: -1e-400 is negative"},
    {"", "{\"logical_count\":[[1e400]]}", OVERFLOW, "expert 0: 1e400 is too large for a double"},
    {"", "{\"logical_count\":[[9007199254740993]]}", OVERFLOW,
     "layer 0: expert 0: 9007199254740993 is above 2^53"},
    {"", "{\"logical_count\":[[18446744073709551617,1]]}", OVERFLOW,
     "18446744073709551617 is above 2^53"},
    {"", "{\"logical_count\":[[100000000000000000000000]]}", OVERFLOW, "is above 2^53"},
    {"", "{\"logical_count\":[[1]]} x", PARSE, "f:1:25: expected the end of the file, found 'x'"},
    {"", "{\"logical_count\":[[1]]}{\"logical_count\":[[1]]}", PARSE, "f:1:24: expected the end"},
    {"", "{\"logical_count\":[[1]],\"logical_count\":[[1]]}", PARSE, "second key 'logical_count'"},
    {"", "{\"logical_count\":[[\xff\x1b]]}", PARSE, "layer 0: expert 0: ?? is not a number"},
    {"", "{\"logical_count\":[[1]],\"a\":tru}", PARSE, "'tru' is not a value of JSON"},
    {"", "{\"logical_count\":[[1]],\"a\":[1,2}}", PARSE, "expected ',' or ']', found '}'"},
    {"", "{\"logical_count\":[[1]],\"a\":{\"b\" 1}}", PARSE, "expected ':' after a key, found '1'"},
    {"", "{\"logical_count\":[[1]],\"a\":[,1]}", PARSE, "expected a value, found ','"},
    {"", "{\"logical_count\":[[1]],}", PARSE, "f:1:24: expected a string, found '}'"},
    {"", "{\"logical_count\":[[1]],\"a\":\"\\x\"}", PARSE, "a string has an unknown escape"},
    {"", "{\"logical_count\":[[1]],\"a\":\"\\ud800\"}", PARSE, "half of a surrogate pair"},
    {"", "{\"logical_count\":[[1]],\"a\":\"\\u12g4\"}", PARSE, "without four hexadecimal digits"},
    {"", "{\"logical_count\":[[1]],\"a\":\"\t\"}", PARSE, "control character 0x09"},
    {"", "{\"logical_count\":[[1]],\"a\":\"b}", PARSE, "a string does not end"},
    {"", "{\"logical_count\":[[1],[1],[1],[1],[1]]}", LIMIT, "layer 4: more than 4 layers"},
    {"", "{\"logical_count\":[[1,1,1,1,1,1,1]]}", LIMIT, "layer 0: more than 6 counts in a row"},
    {"", "{\"logical_count\":[[1,1,1,1,1,1,1,1]]}", LIMIT, "layer 0: more than 6 counts in a row"},
};

static const bad_file jsonl[] = {
    {"jsonl", "\n \n", PARSE, "f:3: no counts in the file"},
    {"jsonl", "[1]\n", PARSE, "f:1: expected '{', found '['"},
    {"", "{\"layer\":0}\n", PARSE, "f:1: layer 0: no key 'counts'"},
    {"", "{\"step\":3,\"layer\":0,\"counts\":[1]}\n{\"layer\":1,\"counts\":[1]}\n", PARSE,
     "f:2: layer 1: no key 'step', but the lines before have one"},
    {"", "{\"layer\":0,\"counts\":[1]}\n{\"step\":3,\"layer\":1,\"counts\":[1]}\n", PARSE,
     "f:2: layer 1: key 'step', but the lines before have none"},
    {"", "{\"counts\":[1]}\n", PARSE, "f:1: no key 'layer'"},
    {"", "{\"layer\":0,\"counts\":[]}\n", PARSE, "f:1: layer 0: no counts"},
    {"", "{\"layer\":0,\"counts\":7}\n", PARSE, "f:1: layer 0: expected '[': a list of counts"},
    {"", "{\"layer\":0,\"counts\":[1,2]}\n{\"layer\":3,\"counts\":[1]}\n", PARSE,
     "f:2: layer 3: 1 counts, expected 2"},
    {"", "{\"layer\":0,\"counts\":[1,2]}\n{\"counts\":[1],\"layer\":3}", PARSE,
     "f:2: layer 3: 1 counts, expected 2"},
    {"", "{\"layer\":0,\"counts\":[1,2\n{\"layer\":1,\"counts\":[1,2]}\n", PARSE,
     "f:1: layer 0: expected ',' or ']', found the end of the line"},
    {"", "{\"layer\":0,\"counts\":[1,2]\n", PARSE,
     "f:1: layer 0: expected ',' or '}', found the end of the line"},
    {"", "{\"layer\":0,\"counts\":[1,2]} {\"layer\":1,\"counts\":[1,2]}\n", PARSE,
     "f:1: layer 0: expected the end of the line, found '{'"},
    {"", "{\"layer\":0,\"layer\":1,\"counts\":[1]}\n", PARSE, "second key 'layer'"},
    {"", "{\"layer\":0,\"counts\":[1],\"counts\":[1]}\n", PARSE, "second key 'counts'"},
    {"", "{\"layer\":0,\"step\":1,\"step\":2,\"counts\":[1]}\n", PARSE, "second key 'step'"},
    {"", "{\"layer\":0.5,\"counts\":[1]}\n", PARSE, "f:1: layer 0.5 is not an integer"},
    {"", "{\"layer\":\"0\",\"counts\":[1]}\n", PARSE, "expected a number, found '\"'"},
    {"", "{\"layer\":-1,\"counts\":[1]}\n", DATA, "f:1: layer -1 is negative"},
    {"", "{\"layer\":4,\"counts\":[1]}\n", LIMIT, "f:1: layer 4 is above the limit 3"},
    {"", "{\"step\":1e3,\"layer\":0,\"counts\":[1]}\n", PARSE, "f:1: step 1e3 is not an integer"},
    {"", "{\"step\":9007199254740993,\"layer\":0,\"counts\":[1]}\n", OVERFLOW,
     "f:1: step 9007199254740993 is above 2^53"},
    {"", "{\"layer\":0,\"counts\":[1]}\n\n{\"layer\":1,\"counts\":[nan]}\n", DATA,
     "f:3: layer 1: expert 0: nan is not a count"},
    {"", "{\"layer\":1,\"counts\":[1,1,1,1,1,1,1]}\n", LIMIT, "f:1: layer 1: more than 6 counts"},
};

static const bad_file csv[] = {
    {"csv", "0,0,1,5\n", PARSE, "f:1: unknown column '0': expected step, layer, expert, tokens"},
    {"", "step,layer,expert\n", PARSE, "f:1: no column 'tokens'"},
    {"", "step,layer,layer,tokens\n", PARSE, "f:1: second column 'layer'"},
    {"", "step,layer,expert,tokens,\n", PARSE, "f:1: unknown column ''"},
    {"", "step,Layer,expert,tokens\n", PARSE, "f:1: unknown column 'Layer'"},
    {"", "layer,expert,\"tokens\"\n", PARSE,
     "unknown column '\"tokens\"': expected step, layer, expert, tokens, without quotes"},
    {"", "\"step\", \"layer\",\"expert\",\"tokens\"\r\n0,0,1,5\n", PARSE,
     "unknown column '\"step\"': expected step, layer, expert, tokens, without quotes"},
    {"", "layer,expert,tokens\n", PARSE, "f:2: no counts behind the header"},
    {"", "layer,expert,tokens\n\n\n", PARSE, "no counts behind the header"},
    {"", "layer,expert,tokens\n0,0\n", PARSE, "f:2: fewer fields, expected 3"},
    {"", "layer,expert,tokens\n0,0,1,2\n", PARSE, "f:2: more fields, expected 3"},
    {"", "layer,expert,tokens\n0,0,1,\n", PARSE, "f:2: more fields, expected 3"},
    {"", "layer,expert,tokens\n0,0,\n", PARSE, "f:2: tokens '' is not a number"},
    {"", "layer,expert,tokens\n0,,1\n", PARSE, "f:2: expert '' is not a number"},
    {"", "layer,expert,tokens\n0,0,\"1\"\n", PARSE, "f:2: tokens is quoted"},
    {"", "layer,expert,tokens\n0,0,1\n\n0,1,1\n", PARSE, "f:4: a line behind a blank line"},
    {"", "layer,expert,tokens\n0,0,1\n0,0,2\n", PARSE, "f:3: layer 0: expert 0 a second time"},
    {"", "step,layer,expert,tokens\n3,1,0,1\n3,1,0,1\n", PARSE, "expert 0 a second time in step 3"},
    {"", "layer,expert,tokens\n0,0,1;5\n", PARSE, "f:2: tokens 1;5 is not a number"},
    {"", "layer,expert,tokens\n0,0,1 5\n", PARSE, "f:2: tokens 1 5 is not a number"},
    {"", "layer,expert,tokens\n0,1.0,1\n", PARSE, "f:2: expert 1.0 is not an integer"},
    {"", "layer,expert,tokens\n0,0,-1\n", DATA, "f:2: tokens -1 is negative"},
    {"", "layer,expert,tokens\n-1,0,1\n", DATA, "f:2: layer -1 is negative"},
    {"", "layer,expert,tokens\n0,0,inf\n", DATA, "f:2: tokens inf is not a count"},
    {"", "layer,expert,tokens\n0,0,1e400\n", OVERFLOW, "f:2: tokens 1e400 is too large"},
    {"", "layer,expert,tokens\n0,0,9007199254740993\n", OVERFLOW,
     "f:2: tokens 9007199254740993 is"},
    {"", "layer,expert,tokens\n4,0,1\n", LIMIT, "f:2: layer 4 not in 0..3"},
    {"", "layer,expert,tokens\n0,6,1\n", LIMIT, "f:2: expert 6 not in 0..5"},
    {"", "layer,expert,tokens\n0,99999999999999,1\n", LIMIT, "expert 99999999999999 not in 0..5"},
};

static void bad_sglang_counts_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(json), read_bad_counts);
}

static void bad_json_lines_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(jsonl), read_bad_counts);
}

static void bad_csv_is_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(csv), read_bad_counts);
}

static void assert_text_refused(const char *directory, const char *format, const char *content,
                                int32_t experts, eplb_status expected, const char *part)
{
    test_path path = test_join(directory, "f");
    eplb_read_options options = options_for(format);
    options.experts = experts;
    eplb_error error;
    test_write_text(path.text, content);
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), expected, &error);
    assert_contains(error.message, part);
}

static void counts_that_contradict_the_experts_given_are_refused(void **state)
{
    assert_text_refused(*state, "", "{\"logical_count\":[[1,2,3]]}", 2, DATA,
                        "layer 0: 3 counts, expected 2, the number of experts given");
    assert_text_refused(*state, "", "{\"layer\":1,\"counts\":[1,2,3]}", 4, DATA,
                        "f:1: layer 1: 3 counts, expected 4");
    assert_text_refused(*state, "", "layer,expert,tokens\n1,2,1\n", 2, DATA,
                        "f:2: layer 1: expert 2 not in 0..1");
}

static void nesting_is_limited(void **state)
{
    char brackets[66];
    char text[400];
    memset(brackets, '[', 65);
    brackets[65] = '\0';
    snprintf(text, sizeof(text), "{\"a\":%s", brackets);
    assert_text_refused(*state, "sglang", text, 0, PARSE,
                        "f:1:70: values are nested deeper than 64");

    char closing[65];
    memset(closing, ']', 64);
    closing[64] = '\0';
    snprintf(text, sizeof(text), "{\"a\":%s%s,\"logical_count\":[[1]]}", brackets + 1, closing);
    test_path path = test_join(*state, "deep");
    eplb_error error;
    test_write_text(path.text, text);
    assert_ok(read_rows(path.text, NULL, NULL, NULL, &error), &error);
}

static void a_megabyte_of_brackets_is_refused(void **state)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 1);
    assert_non_null(text);
    memset(text, '[', SIZE);
    text[SIZE] = '\0';
    memcpy(text, "{\"a\":", 5);
    assert_text_refused(*state, "sglang", text, 0, PARSE, "nested deeper");
    free(text);
}

static void a_word_of_a_megabyte_is_refused(void **state)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 1);
    assert_non_null(text);
    memset(text, '1', SIZE);
    text[SIZE] = '\0';
    memcpy(text, "{\"logical_count\":[[", 19);
    assert_text_refused(*state, "sglang", text, 0, PARSE, "more than 511 characters");
    memcpy(text, "layer,expert,tokens\n", 20);
    assert_text_refused(*state, "csv", text, 0, PARSE, "f:2: a line of more than");
    free(text);
}

/* Cut off before its exponent, such a number would be another one. */
static void a_number_is_never_read_in_part(void **state)
{
    char text[700];
    snprintf(text, sizeof(text), "layer,expert,tokens\n0,0,1.%0600de9\n", 0);
    assert_text_refused(*state, "", text, 0, PARSE, "f:2: tokens has more than 511 characters");
    snprintf(text, sizeof(text), "{\"logical_count\":[[1.%0600de9]]}", 0);
    assert_text_refused(*state, "", text, 0, PARSE, "layer 0: expert 0: a number or word of more");
}

static void a_zero_byte_is_no_end(void **state)
{
    static const char json_text[] = "{\"logical_count\":[[1\0,2]]}";
    static const char csv_text[] = "layer,expert,tokens\n0,0,1\0\n";
    test_path path = test_join(*state, "f");
    eplb_error error;
    test_write_file(path.text, json_text, sizeof(json_text) - 1);
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), PARSE, &error);
    test_write_file(path.text, csv_text, sizeof(csv_text) - 1);
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), PARSE, &error);
    test_write_file(path.text, "{\"logical_count\":[[1]]}\0", 24);
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), PARSE, &error);
    assert_contains(error.message, "f:1:24: expected the end of the file, found byte 0x00");
}

TEST_MAIN(IN_DIRECTORY(bad_sglang_counts_are_refused), IN_DIRECTORY(bad_json_lines_are_refused),
          IN_DIRECTORY(bad_csv_is_refused),
          IN_DIRECTORY(counts_that_contradict_the_experts_given_are_refused),
          IN_DIRECTORY(nesting_is_limited), IN_DIRECTORY(a_megabyte_of_brackets_is_refused),
          IN_DIRECTORY(a_word_of_a_megabyte_is_refused),
          IN_DIRECTORY(a_number_is_never_read_in_part), IN_DIRECTORY(a_zero_byte_is_no_end))
