/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/status.h>

static const eplb_status all_statuses[] = {
    EPLB_OK,
    EPLB_END,
    EPLB_ERROR_ARGUMENT,
    EPLB_ERROR_NOMEM,
    EPLB_ERROR_OVERFLOW,
    EPLB_ERROR_DATA,
    EPLB_ERROR_INFEASIBLE,
    EPLB_ERROR_PARSE,
    EPLB_ERROR_UNSUPPORTED,
    EPLB_ERROR_LIMIT,
    EPLB_ERROR_IO,
};
#define STATUSES (sizeof(all_statuses) / sizeof(all_statuses[0]))

static void each_status_has_its_own_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        assert_true(strlen(eplb_status_text(all_statuses[i])) > 0);
        assert_string_not_equal(eplb_status_text(all_statuses[i]),
                                eplb_status_text((eplb_status)12345));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(eplb_status_text(all_statuses[i]),
                                    eplb_status_text(all_statuses[j]));
        }
    }
}

static void unknown_status_has_words_too(void **state)
{
    (void)state;
    assert_true(strlen(eplb_status_text((eplb_status)-1000)) > 0);
}

static void error_carries_status_and_values(void **state)
{
    (void)state;
    eplb_error error = {0};
    assert_int_equal(
        eplb_error_set(&error, EPLB_ERROR_PARSE, "%s:%d: layer %d", "counts.jsonl", 17, 3),
        EPLB_ERROR_PARSE);
    assert_int_equal(error.status, EPLB_ERROR_PARSE);
    assert_string_equal(error.message, "counts.jsonl:17: layer 3");
}

static void later_error_replaces_an_earlier_one(void **state)
{
    (void)state;
    eplb_error error;
    eplb_error_set(&error, EPLB_ERROR_IO, "a long message about a file");
    eplb_error_set(&error, EPLB_ERROR_DATA, "short");
    assert_int_equal(error.status, EPLB_ERROR_DATA);
    assert_string_equal(error.message, "short");
}

static void no_error_object_still_returns_the_status(void **state)
{
    (void)state;
    assert_int_equal(eplb_error_set(NULL, EPLB_ERROR_IO, "%d", 1), EPLB_ERROR_IO);
}

EPLB_PRINTF(2, 3) static eplb_status set_through_list(eplb_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    eplb_status status = eplb_error_set_va(error, EPLB_ERROR_LIMIT, format, arguments);
    va_end(arguments);
    return status;
}

static void argument_list_form_does_the_same(void **state)
{
    (void)state;
    eplb_error error;
    assert_int_equal(set_through_list(&error, "%d slots, %s", 288, "too many"), EPLB_ERROR_LIMIT);
    assert_int_equal(error.status, EPLB_ERROR_LIMIT);
    assert_string_equal(error.message, "288 slots, too many");
    assert_int_equal(set_through_list(NULL, "%d", 1), EPLB_ERROR_LIMIT);
}

static void long_message_is_cut_at_the_end(void **state)
{
    (void)state;
    char text[2 * EPLB_ERROR_MESSAGE_SIZE];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    eplb_error error;
    eplb_error_set(&error, EPLB_ERROR_IO, "%s", text);
    assert_int_equal(strlen(error.message), EPLB_ERROR_MESSAGE_SIZE - 1);
    assert_memory_equal(error.message, text, EPLB_ERROR_MESSAGE_SIZE - 1);
}

static void cut_message_ends_with_a_whole_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t c = 0; c < 3; c++) {
        for (size_t before = EPLB_ERROR_MESSAGE_SIZE - 5; before < EPLB_ERROR_MESSAGE_SIZE;
             before++) {
            char text[EPLB_ERROR_MESSAGE_SIZE + 8];
            memset(text, 'x', before);
            strcpy(text + before, characters[c]);
            eplb_error error;
            eplb_error_set(&error, EPLB_ERROR_IO, "%s", text);
            bool fits = strlen(text) < EPLB_ERROR_MESSAGE_SIZE;
            assert_int_equal(strlen(error.message), fits ? strlen(text) : before);
        }
    }
}

static void control_characters_cannot_get_out(void **state)
{
    (void)state;
    eplb_error error;
    eplb_error_set(&error, EPLB_ERROR_PARSE, "%s", "a\nb\tc\x1b[2Jd\x7f\r");
    assert_string_equal(error.message, "a?b?c?[2Jd??");
}

/* Overlong forms, surrogates, more than U+10FFFF, cut characters, and the controls of U+0080. */
static void what_is_no_utf8_cannot_get_out(void **state)
{
    (void)state;
    static const struct {
        const char *quoted;
        const char *shown;
    } texts[] = {
        {"a\xff", "a?"},
        {"a\x80z", "a?z"},
        {"\xc3z", "?z"},
        {"\xc3", "?"},
        {"\xe2\x82z", "??z"},
        {"\xc0\xaf", "??"},
        {"\xe0\x80\xaf", "???"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xf8\x90\x80\x80", "????"},
        {"\xc2\x9b"
         "2J",
         "??2J"},
        {"\xf7\xc3\xa9", "?\xc3\xa9"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        eplb_error error;
        eplb_error_set(&error, EPLB_ERROR_PARSE, "%s", texts[i].quoted);
        assert_string_equal(error.message, texts[i].shown);
    }
}

static void text_beyond_ascii_stays(void **state)
{
    (void)state;
    eplb_error error;
    eplb_error_set(&error, EPLB_ERROR_IO, "%s: missing",
                   "gr\xc3\xb6\xc3\x9f"
                   "e.csv");
    assert_string_equal(error.message, "gr\xc3\xb6\xc3\x9f"
                                       "e.csv: missing");
}

TEST_MAIN(cmocka_unit_test(each_status_has_its_own_words),
          cmocka_unit_test(unknown_status_has_words_too),
          cmocka_unit_test(error_carries_status_and_values),
          cmocka_unit_test(later_error_replaces_an_earlier_one),
          cmocka_unit_test(no_error_object_still_returns_the_status),
          cmocka_unit_test(argument_list_form_does_the_same),
          cmocka_unit_test(long_message_is_cut_at_the_end),
          cmocka_unit_test(cut_message_ends_with_a_whole_character),
          cmocka_unit_test(control_characters_cannot_get_out),
          cmocka_unit_test(what_is_no_utf8_cannot_get_out),
          cmocka_unit_test(text_beyond_ascii_stays))
