/* SPDX-License-Identifier: MIT */
#include "format/number.h"

#include <locale.h>

#include <eplb/random.h>

#include "support.h"

static eplb_number_class parse(const char *text, double *value, bool *integer)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    eplb_number_class result = eplb_number_parse(text, strlen(text), c_locale, value, integer);
    freelocale(c_locale);
    return result;
}

static void the_grammar_is_that_of_json(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",   "-0",    "7",    "10",  "0.0",     "1.50",
        "1e5", "1E+05", "1e-5", "0e0", "0.1e-10", "123456789012345678901234567890e-25"};
    static const char *const bad[] = {"",    "-",  "+1",    "01",    "-01", "00",   ".5",   "5.",
                                      "1.e", "1e", "1e+",   "0x1",   "1_0", "1,0",  "1 ",   " 1",
                                      "--1", "1f", "1e1.5", "1.2.3", "e5",  "true", "1e--5"};
    double value;
    bool integer;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(parse(good[i], &value, &integer), EPLB_NUMBER_COUNT);
        assert_true(value == strtod(good[i], NULL));
        assert_true(eplb_number_check(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(bad[i], &value, &integer), EPLB_NUMBER_MALFORMED);
        assert_false(eplb_number_check(bad[i], strlen(bad[i])));
    }
    assert_false(eplb_number_check("1\0002", 3));
}

static void what_is_no_count_is_told_apart(void **state)
{
    (void)state;
    double value = 5.0;
    bool integer = true;
    assert_int_equal(parse("NaN", &value, &integer), EPLB_NUMBER_NOT_FINITE);
    assert_int_equal(parse("-inf", &value, &integer), EPLB_NUMBER_NOT_FINITE);
    assert_int_equal(parse("Infinity", &value, &integer), EPLB_NUMBER_NOT_FINITE);
    assert_int_equal(parse("-1", &value, &integer), EPLB_NUMBER_NEGATIVE);
    assert_int_equal(parse("-1e-400", &value, &integer), EPLB_NUMBER_NEGATIVE);
    assert_int_equal(parse("1e309", &value, &integer), EPLB_NUMBER_TOO_LARGE);
    assert_int_equal(parse("1e99999999999999999999", &value, &integer), EPLB_NUMBER_TOO_LARGE);
    assert_int_equal(parse("9007199254740993", &value, &integer), EPLB_NUMBER_INEXACT);
    assert_int_equal(parse("20000000000000000000", &value, &integer), EPLB_NUMBER_INEXACT);
    assert_int_equal(parse("100000000000000000000000000", &value, &integer), EPLB_NUMBER_INEXACT);
    assert_true(value == 5.0 && integer);
}

static void fractions_and_exponents_are_no_integers(void **state)
{
    (void)state;
    double value;
    bool integer;
    assert_int_equal(parse("9007199254740992", &value, &integer), EPLB_NUMBER_COUNT);
    assert_true(integer && value == 9007199254740992.0);
    assert_int_equal(parse("3.0", &value, &integer), EPLB_NUMBER_COUNT);
    assert_false(integer);
    assert_int_equal(parse("1e3", &value, &integer), EPLB_NUMBER_COUNT);
    assert_false(integer);
    assert_int_equal(parse("1e300", &value, &integer), EPLB_NUMBER_COUNT);
    assert_true(value == 1e300);
    assert_int_equal(parse("1e-99999999999999999999", &value, &integer), EPLB_NUMBER_COUNT);
    assert_true(value == 0.0);
}

/* A random number of random length and exponent, in every form that the grammar has. */
static void random_number(eplb_random *random, char *text)
{
    size_t length = 0;
    uint64_t digits = 1 + eplb_random_below(random, 24);
    text[length++] = (char)('1' + eplb_random_below(random, 9));
    for (uint64_t i = 1; i < digits; i++) {
        text[length++] = (char)('0' + eplb_random_below(random, 10));
    }
    if (eplb_random_below(random, 2) == 0) {
        text[length++] = '.';
        for (uint64_t i = eplb_random_below(random, 24) + 1; i > 0; i--) {
            text[length++] = (char)('0' + eplb_random_below(random, 10));
        }
    }
    int exponent = (int)eplb_random_below(random, 620) - 310;
    if (eplb_random_below(random, 4) == 0) {
        exponent = (int)eplb_random_below(random, 60) - 30;
    }
    sprintf(text + length, "e%d", exponent);
}

static void decimals_are_rounded_as_strtod_does(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 20260911);
    for (int i = 0; i < 200000; i++) {
        char text[80];
        double value = -1.0;
        bool integer;
        random_number(&random, text);
        double expected = strtod(text, NULL);
        eplb_number_class number = parse(text, &value, &integer);
        if (!isfinite(expected)) {
            assert_int_equal(number, EPLB_NUMBER_TOO_LARGE);
            continue;
        }
        if (number != EPLB_NUMBER_COUNT || memcmp(&value, &expected, sizeof(value)) != 0) {
            print_error("%s: %.17g, expected %.17g\n", text, value, expected);
            fail();
        }
    }
}

static void halfway_cases_are_exact(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "9007199254740993.0",
        "9007199254740992.5e0",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "8.442911973260991817129021e-309",
        "0.1000000000000000055511151231257827021181583404541015625",
        "0.10000000000000000555111512312578270211815834045410156250000000000000000000000001"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double value;
        bool integer;
        assert_int_equal(parse(cases[i], &value, &integer), EPLB_NUMBER_COUNT);
        assert_true(value == strtod(cases[i], NULL));
    }
}

/* Makes a locale with a decimal comma the host's. False where the system cannot build one. */
static bool use_decimal_comma(const char *directory)
{
    char command[4200];
    snprintf(command, sizeof(command), "localedef -i de_DE -f ISO-8859-1 '%s/comma' >%s/log 2>&1",
             directory, directory);
    return system(command) == 0 && setenv("LOCPATH", directory, 1) == 0 &&
           setlocale(LC_ALL, "comma") != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
}

/* In such a locale strtod stops at the point. */
static void a_decimal_comma_of_the_host_changes_nothing(void **state)
{
    if (!use_decimal_comma(*state)) {
        skip();
    }
    char *end;
    double value = strtod("1.5", &end);
    bool stopped = *end == '.';
    bool integer;
    eplb_number_class number = parse("1234567890123456789.25e-3", &value, &integer);
    bool still = strcmp(localeconv()->decimal_point, ",") == 0;
    setlocale(LC_ALL, "C");
    assert_true(stopped);
    assert_int_equal(number, EPLB_NUMBER_COUNT);
    assert_true(value == 1234567890123456789.25e-3);
    assert_true(still);
}

TEST_MAIN(cmocka_unit_test(the_grammar_is_that_of_json),
          cmocka_unit_test(what_is_no_count_is_told_apart),
          cmocka_unit_test(fractions_and_exponents_are_no_integers),
          cmocka_unit_test(decimals_are_rounded_as_strtod_does),
          cmocka_unit_test(halfway_cases_are_exact),
          cmocka_unit_test_setup_teardown(a_decimal_comma_of_the_host_changes_nothing,
                                          test_directory_setup, test_directory_teardown))
