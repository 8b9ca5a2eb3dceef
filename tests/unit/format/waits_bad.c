/* SPDX-License-Identifier: MIT */
/* Files of wait times that must be refused: each with its status and the place its message names.
 */
#include <eplb/waits_file.h>

#include "bad.h"

#define OVERFLOW EPLB_ERROR_OVERFLOW

#define HEADER "step,layer,rank,wait_us\n"

/* Limits of these tests: 4 layers, 8 ranks. */
static const bad_file files[] = {
    {"", "", PARSE, "f: the file is empty"},
    {"", "\n", PARSE, "f:1: unknown column '': expected step, layer, rank, wait_us"},
    {"", "\xEF\xBB\xBF", PARSE, "f:1: unknown column ''"},
    {"", "0,3,1,5\n", PARSE, "f:1: unknown column '0': expected step, layer, rank, wait_us"},
    {"", "step,layer,expert,tokens\n0,0,0,1\n", PARSE, "f:1: unknown column 'expert'"},
    {"", "step,layer,rank,wait_ms\n", PARSE, "f:1: unknown column 'wait_ms'"},
    {"", "step,layer,rank,wait_us,\n", PARSE, "f:1: unknown column ''"},
    {"", "step;layer;rank;wait_us\n", PARSE, "f:1: unknown column 'step;layer;rank;wait_us'"},
    {"", "layer,rank,\"wait_us\"\n", PARSE,
     "unknown column '\"wait_us\"': expected step, layer, "
     "rank, wait_us, without quotes"},
    {"", "step,layer,wait_us\n", PARSE, "f:1: no column 'rank'"},
    {"", "step,rank,wait_us\n", PARSE, "f:1: no column 'layer'"},
    {"", "step,layer,rank\n", PARSE, "f:1: no column 'wait_us'"},
    {"", "step,layer,rank,rank,wait_us\n", PARSE, "f:1: second column 'rank'"},
    {"", HEADER, PARSE, "f:2: no waits behind the header"},
    {"", HEADER "\n \n", PARSE, "no waits behind the header"},
    {"", HEADER "0,1,2,3\n\n0,1,2,3\n", PARSE, "f:4: a line behind a blank line"},
    {"", HEADER "0,1,2\n", PARSE, "f:2: layer 1: fewer fields, expected 4"},
    {"", HEADER "0,1,2,3,4\n", PARSE, "f:2: layer 1: more fields, expected 4"},
    {"", HEADER "0,1,2,3,\n", PARSE, "f:2: layer 1: more fields, expected 4"},
    {"", HEADER "0,1,2,\n", PARSE, "f:2: layer 1: rank 2: wait_us '' is not a number"},
    {"", HEADER "0,1,,3\n", PARSE, "f:2: layer 1: rank '' is not a number"},
    {"", HEADER "0,,2,3\n", PARSE, "f:2: layer '' is not a number"},
    {"", HEADER ",1,2,3\n", PARSE, "f:2: step '' is not a number"},
    {"", HEADER "0,1,2,3 us\n", PARSE, "f:2: layer 1: rank 2: wait_us 3 us is not a number"},
    {"", HEADER "0,1,2,0x1p3\n", PARSE, "f:2: layer 1: rank 2: wait_us 0x1p3 is not a number"},
    {"", HEADER "0,1,2,+3\n", PARSE, "f:2: layer 1: rank 2: wait_us +3 is not a number"},
    {"", HEADER "0,1,2,3.\n", PARSE, "f:2: layer 1: rank 2: wait_us 3. is not a number"},
    {"", HEADER "0,1,2,\"3\"\n", PARSE, "f:2: layer 1: rank 2: wait_us is quoted"},
    {"", HEADER "0,1,2.0,3\n", PARSE, "f:2: layer 1: rank 2.0 is not an integer"},
    {"", HEADER "0,1e0,2,3\n", PARSE, "f:2: layer 1e0 is not an integer"},
    {"", HEADER "0.5,1,2,3\n", PARSE, "f:2: step 0.5 is not an integer"},
    {"", HEADER "0,1,2,-3.5\n", DATA, "f:2: layer 1: rank 2: wait_us -3.5 is negative"},
    {"", "wait_us,layer,rank\n-3.5,1,2\n", DATA, "f:2: wait_us -3.5 is negative"},
    {"", "wait_us,layer,rank\n3,1,2\n-3.5,1,2\n", DATA, "f:3: wait_us -3.5 is negative"},
    {"", HEADER "0,1,2,3\n0,1,2,nan\n", DATA, "f:3: layer 1: rank 2: wait_us nan is not a count"},
    {"", HEADER "0,1,2,inf\n", DATA, "f:2: layer 1: rank 2: wait_us inf is not a count"},
    {"", HEADER "0,1,2,1e400\n", OVERFLOW, "f:2: layer 1: rank 2: wait_us 1e400 is too large"},
    {"", HEADER "0,1,2,86400000001\n", DATA,
     "f:2: layer 1: rank 2: wait_us 86400000001 not in 0..86400000000"},
    {"", HEADER "0,1,2,1764486000123456.5\n", DATA,
     "f:2: layer 1: rank 2: wait_us 1764486000123456.5 not in 0..86400000000"},
    {"", HEADER "-1,1,2,3\n", DATA, "f:2: step -1 is negative"},
    {"", HEADER "0,-1,2,3\n", DATA, "f:2: layer -1 is negative"},
    {"", HEADER "0,1,-2,3\n", DATA, "f:2: layer 1: rank -2 is negative"},
    {"", HEADER "9007199254740993,1,2,3\n", OVERFLOW, "f:2: step 9007199254740993 is above 2^53"},
    {"", HEADER "0,4,2,3\n", LIMIT, "f:2: layer 4 not in 0..3"},
    {"", HEADER "0,1,8,3\n", LIMIT, "f:2: layer 1: rank 8 not in 0..7"},
    {"", HEADER "0,9999999999,8,3\n", LIMIT, "f:2: layer 9999999999 not in 0..3"},
    {"", HEADER "0,1,9999999999,-3\n", DATA, "f:2: layer 1: rank 9999999999: wait_us -3 is"},
    {"", HEADER "0,1,2,3\r0,1,2,4\n", PARSE, "f:2: layer 1: rank 2: wait_us 3?0 is not a number"},
};

/* However far it is read. */
static eplb_status read_bad(const char *path, const char *format, eplb_error *error)
{
    (void)format;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_waits_read_options options;
    eplb_waits_read_options_init(&options);
    options.max_layers = 4;
    options.max_ranks = 8;
    eplb_waits *waits;
    eplb_status status = eplb_waits_read(&waits, &hooks, path, &options, error);
    assert_null(waits);
    assert_int_equal(memory.live, 0);
    return status;
}

static void bad_waits_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(files), read_bad);
}

static void a_line_without_an_end_is_refused(void **state)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 1);
    assert_non_null(text);
    memset(text, '1', SIZE);
    text[SIZE] = '\0';
    memcpy(text, HEADER, strlen(HEADER));
    test_path path = test_join(*state, "f");
    test_write_text(path.text, text);
    eplb_error error;
    assert_status(read_bad(path.text, "", &error), PARSE, &error);
    assert_contains(error.message, "f:2: a line of more than 65536 bytes");
    free(text);
}

static void a_zero_byte_is_refused(void **state)
{
    static const char text[] = HEADER "0,1,2,3\0\n";
    test_path path = test_join(*state, "f");
    test_write_file(path.text, text, sizeof(text) - 1);
    eplb_error error;
    assert_status(read_bad(path.text, "", &error), PARSE, &error);
    assert_contains(error.message, "f:2: layer 1: rank 2: wait_us 3? is not a number");
}

TEST_MAIN(IN_DIRECTORY(bad_waits_are_refused), IN_DIRECTORY(a_line_without_an_end_is_refused),
          IN_DIRECTORY(a_zero_byte_is_refused))
