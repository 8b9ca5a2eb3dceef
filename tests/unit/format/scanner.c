/* SPDX-License-Identifier: MIT */
#include "format/scanner.h"

#include <eplb/random.h>

#include "support.h"

static char name[] = "text";

/* Skips one value and checks that nothing follows. */
static eplb_status skip_all(const char *text, eplb_error *error)
{
    eplb_input input;
    eplb_scanner scanner;
    eplb_input_from_memory(&input, name, text, strlen(text));
    assert_ok(eplb_scanner_init(&scanner, &input, error), error);
    eplb_status status = eplb_scan_skip(&scanner, error);
    if (status == EPLB_OK) {
        status = eplb_scan_finish(&scanner, error);
    }
    eplb_scanner_close(&scanner);
    return status;
}

static void values_of_every_kind_are_skipped(void **state)
{
    (void)state;
    static const char *const good[] = {"1",
                                       " -2.5e+3 ",
                                       "true",
                                       "false",
                                       "null",
                                       "\"\"",
                                       "\"a\\\"\\u00e9\\ud83d\\ude00\"",
                                       "[]",
                                       "{}",
                                       "[[],{}]",
                                       "[1,[2,[3]],{\"a\":{\"b\":[]}}]",
                                       "{\"a\":1,\"b\":[1,2],\"c\":{}}",
                                       "[ { } , [ ] ]"};
    static const char *const bad[] = {"",
                                      "[",
                                      "]",
                                      "{",
                                      "}",
                                      "[1",
                                      "[1,",
                                      "[1,]",
                                      "[,",
                                      "[1 2]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{1:2}",
                                      "{\"a\":1 \"b\":2}",
                                      "[1}",
                                      "{\"a\":[}",
                                      "[]]",
                                      "1 2",
                                      "tru",
                                      "nul",
                                      "NaN",
                                      "01",
                                      "'a'",
                                      "\"",
                                      "\"\\",
                                      "\"\\u00",
                                      "\"\\udc00\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\n\"",
                                      "[\"a\":1]",
                                      "{\"a\",1}"};
    eplb_error error;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_ok(skip_all(good[i], &error), &error);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(skip_all(bad[i], &error), EPLB_ERROR_PARSE, &error);
        assert_contains(error.message, "text:");
    }
}

static void nesting_of_64_levels_is_the_limit(void **state)
{
    (void)state;
    char text[400] = "";
    eplb_error error;
    for (int i = 0; i < 64; i++) {
        strcat(text, i % 2 == 0 ? "[" : "{\"\":");
    }
    for (int i = 63; i >= 0; i--) {
        strcat(text, i % 2 == 0 ? "]" : (i == 63 ? "0}" : "}"));
    }
    assert_ok(skip_all(text, &error), &error);
    memset(text, 0, sizeof(text));
    memset(text, '[', 65);
    assert_status(skip_all(text, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "text:1:65: values are nested deeper than 64 levels");
}

static void strings_are_decoded(void **state)
{
    (void)state;
    static const char text[] = " \"a\\n\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\/\"";
    char decoded[32];
    size_t length;
    eplb_error error;
    eplb_input input;
    eplb_scanner scanner;
    eplb_input_from_memory(&input, name, text, strlen(text));
    assert_ok(eplb_scanner_init(&scanner, &input, &error), &error);
    assert_ok(eplb_scan_string(&scanner, decoded, sizeof(decoded), &length, &error), &error);
    eplb_scanner_close(&scanner);
    static const char expected[] = "a\nA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80/";
    assert_int_equal(length, sizeof(expected) - 1);
    assert_memory_equal(decoded, expected, length);
}

static void a_key_that_does_not_fit_is_no_known_key(void **state)
{
    (void)state;
    char text[200];
    char key[EPLB_KEY_SIZE];
    eplb_error error;
    for (int length = EPLB_KEY_SIZE - 1; length <= EPLB_KEY_SIZE; length++) {
        memset(text, 'k', sizeof(text));
        text[0] = '"';
        strcpy(text + 1 + length, "\":");
        eplb_input input;
        eplb_scanner scanner;
        eplb_input_from_memory(&input, name, text, strlen(text));
        assert_ok(eplb_scanner_init(&scanner, &input, &error), &error);
        assert_ok(eplb_scan_key(&scanner, key, &error), &error);
        eplb_scanner_close(&scanner);
        assert_int_equal(strlen(key), length < EPLB_KEY_SIZE ? length : 0);
    }
}

static void places_are_lines_and_columns(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(skip_all("[1,\n 2,\n\n  x]", &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "text:4:3: 'x' is not a value of JSON");
}

/* What cJSON would misread is refused where it is going to read. */
static void documents_for_cjson_are_stricter(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\"a\\u0000b\"", "1000000000000000000000000000000000000000000000000000000000000000"};
    eplb_error error;
    for (int i = 0; i < 2; i++) {
        assert_ok(skip_all(texts[i], &error), &error);
        eplb_input input;
        eplb_scanner scanner;
        eplb_input_from_memory(&input, name, texts[i], strlen(texts[i]));
        assert_ok(eplb_scanner_init(&scanner, &input, &error), &error);
        scanner.for_cjson = true;
        assert_status(eplb_scan_skip(&scanner, &error), EPLB_ERROR_PARSE, &error);
        eplb_scanner_close(&scanner);
    }
}

/* Numbers of a row, short and long, in every form, with their separators. */
static void random_row(eplb_random *random, char *text, int numbers)
{
    size_t length = 0;
    for (int i = 0; i < numbers; i++) {
        length += (size_t)sprintf(text + length, "%s",
                                  i > 0 ? (eplb_random_below(random, 2) ? ", " : ",") : "");
        length += (size_t)sprintf(text + length, "%llu",
                                  (unsigned long long)eplb_random_next(random) >>
                                      (11 + eplb_random_below(random, 53)));
        if (eplb_random_below(random, 2) == 0) {
            length += (size_t)sprintf(text + length, ".%llu",
                                      (unsigned long long)eplb_random_next(random) >>
                                          eplb_random_below(random, 64));
        }
        if (eplb_random_below(random, 8) == 0) {
            length +=
                (size_t)sprintf(text + length, "e%d", (int)eplb_random_below(random, 40) - 20);
        }
    }
    strcpy(text + length, "]");
}

static void counts_are_rounded_as_strtod_does(void **state)
{
    (void)state;
    enum { NUMBERS = 40, LIMIT = 64 };
    static char text[NUMBERS * 64];
    eplb_random random;
    eplb_random_seed(&random, 53);
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_counts_buffer row = {0};
    for (int i = 0; i < 5000; i++) {
        random_row(&random, text, NUMBERS);
        eplb_input input;
        eplb_scanner scanner;
        eplb_error error;
        eplb_input_from_memory(&input, name, text, strlen(text));
        input.hooks = hooks;
        assert_ok(eplb_scanner_init(&scanner, &input, &error), &error);
        assert_ok(eplb_scan_counts(&scanner, &row, LIMIT, &error), &error);
        eplb_scanner_close(&scanner);
        assert_int_equal(row.length, NUMBERS);
        char *next = text;
        for (int k = 0; k < NUMBERS; k++) {
            assert_true(row.values[k] == strtod(next, &next));
            next++;
        }
    }
    eplb_free(&hooks, row.values);
}

TEST_MAIN(cmocka_unit_test(counts_are_rounded_as_strtod_does),
          cmocka_unit_test(values_of_every_kind_are_skipped),
          cmocka_unit_test(nesting_of_64_levels_is_the_limit),
          cmocka_unit_test(strings_are_decoded),
          cmocka_unit_test(a_key_that_does_not_fit_is_no_known_key),
          cmocka_unit_test(places_are_lines_and_columns),
          cmocka_unit_test(documents_for_cjson_are_stricter))
