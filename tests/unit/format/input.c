/* SPDX-License-Identifier: MIT */
#include "format/input.h"
#include "format/display_name.h"

#include "support.h"

static void open_input(eplb_input *input, const char *path)
{
    eplb_hooks hooks;
    eplb_error error;
    eplb_hooks_init(&hooks);
    assert_ok(eplb_input_open(input, &hooks, path, &error), &error);
}

/* Byte i of the test file. */
static char byte_at(size_t i)
{
    return (char)('a' + i * 7 % 23);
}

static void make_file(const char *path, size_t size)
{
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(i);
    }
    test_write_file(path, bytes, size);
    free(bytes);
}

static void unread_bytes_stay_over_a_fill(void **state)
{
    enum { SIZE = 500000 };
    test_path path = test_join(*state, "f");
    make_file(path.text, SIZE);
    eplb_input input;
    open_input(&input, path.text);
    size_t offset = 0;
    while (offset < SIZE) {
        assert_ok(eplb_input_need(&input, 1000, NULL), NULL);
        assert_int_equal(eplb_input_offset(&input, input.cursor), offset);
        assert_int_equal(*input.limit, 0);
        size_t step = eplb_input_unread(&input) < 997 ? eplb_input_unread(&input) : 997;
        assert_true(step > 0);
        for (size_t i = 0; i < step; i++) {
            assert_int_equal(input.cursor[i], byte_at(offset + i));
        }
        input.cursor += step;
        offset += step;
    }
    assert_ok(eplb_input_need(&input, 1, NULL), NULL);
    assert_true(input.at_end);
    assert_int_equal(eplb_input_unread(&input), 0);
    eplb_input_close(&input);
}

static void the_prefix_can_be_seen_before_reading(void **state)
{
    test_path path = test_join(*state, "f");
    make_file(path.text, 2 * EPLB_INPUT_PREFIX);
    eplb_input input;
    open_input(&input, path.text);
    assert_ok(eplb_input_need(&input, EPLB_INPUT_PREFIX, NULL), NULL);
    assert_true(eplb_input_unread(&input) >= EPLB_INPUT_PREFIX);
    assert_int_equal(eplb_input_offset(&input, input.cursor), 0);
    eplb_input_close(&input);
}

static void a_file_that_shrinks_is_an_error(void **state)
{
    test_path path = test_join(*state, "f");
    make_file(path.text, 100);
    eplb_input input;
    eplb_error error;
    char bytes[60];
    open_input(&input, path.text);
    uint64_t size = 0;
    assert_true(eplb_input_size(&input, &size));
    assert_int_equal(size, 100);
    assert_ok(eplb_input_read_at(&input, bytes, 60, 40, &error), &error);
    assert_int_equal(bytes[0], byte_at(40));
    assert_int_equal(truncate(path.text, 70), 0);
    assert_status(eplb_input_read_at(&input, bytes, 60, 40, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "byte 70: the file ends too early");
    eplb_input_close(&input);
}

static void inputs_are_opened_read_only(void **state)
{
    test_path path = test_join(*state, "f");
    make_file(path.text, 10);
    eplb_input input;
    open_input(&input, path.text);
    assert_int_equal(write(input.fd, "x", 1), -1);
    eplb_input_close(&input);
}

static void a_byte_order_mark_is_only_skipped_when_whole(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_input input;
    test_write_text(path.text, "\xEF\xBB\xBFx");
    open_input(&input, path.text);
    assert_ok(eplb_input_skip_bom(&input, NULL), NULL);
    assert_int_equal(*input.cursor, 'x');
    assert_int_equal(input.line_offset, 3);
    eplb_input_close(&input);
    test_write_text(path.text, "\xEF\xBB");
    open_input(&input, path.text);
    assert_ok(eplb_input_skip_bom(&input, NULL), NULL);
    assert_int_equal(eplb_input_unread(&input), 2);
    eplb_input_close(&input);
}

static void assert_shown_as(const char *path, const char *expected)
{
    eplb_display_name name = eplb_display_name_of(path);
    assert_string_equal(name.text, expected);
}

static void long_names_are_shortened_in_the_middle(void **state)
{
    (void)state;
    char path[2000];
    char expected[2000];
    assert_shown_as("-", "standard input");
    snprintf(path, sizeof(path), "%0191d", 7);
    assert_shown_as(path, path);
    snprintf(path, sizeof(path), "%080d%0900d/%099d", 1, 2, 3);
    snprintf(expected, sizeof(expected), "%080d.../%099d", 1, 3);
    assert_shown_as(path, expected);
}

/* The bytes at which the name is cut are inside of characters. */
static void long_names_are_cut_between_characters(void **state)
{
    (void)state;
    char path[2000];
    char expected[2000];
    snprintf(path, sizeof(path), "%079d\xc3\xa9%0100d\xe2\x82\xac%098d", 1, 2, 3);
    snprintf(expected, sizeof(expected), "%079d...%098d", 1, 3);
    assert_shown_as(path, expected);
}

static void a_long_path_leaves_room_for_what_is_wrong(void **state)
{
    char name[3000];
    snprintf(name, sizeof(name), "%02000d", 0);
    test_path path = test_join(*state, name);
    eplb_hooks hooks;
    eplb_input input;
    eplb_error error;
    eplb_hooks_init(&hooks);
    assert_status(eplb_input_open(&input, &hooks, path.text, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "...0");
    assert_contains(error.message, ": cannot open: File name too long");
}

TEST_MAIN(IN_DIRECTORY(unread_bytes_stay_over_a_fill),
          IN_DIRECTORY(the_prefix_can_be_seen_before_reading),
          IN_DIRECTORY(a_file_that_shrinks_is_an_error), IN_DIRECTORY(inputs_are_opened_read_only),
          IN_DIRECTORY(a_byte_order_mark_is_only_skipped_when_whole),
          cmocka_unit_test(long_names_are_shortened_in_the_middle),
          cmocka_unit_test(long_names_are_cut_between_characters),
          IN_DIRECTORY(a_long_path_leaves_room_for_what_is_wrong))
