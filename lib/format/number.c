/* SPDX-License-Identifier: MIT */
#include "format/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const double eplb_powers_of_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number taken apart: mantissa * 10^exponent, unless digits had to be left out. */
typedef struct decimal {
    uint64_t mantissa;
    int64_t exponent;
    int digits; /* significant ones in the mantissa */
    bool cut;   /* the mantissa lacks digits that are not 0 */
    bool minus;
    bool integer;
} decimal;

/* 19 digits always fit 64 bits. */
#define MAX_DIGITS 19

/* Exponents beyond this make any number of EPLB_NUMBER_LENGTH digits 0 or infinite. */
#define MAX_EXPONENT 100000

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add_digit(decimal *number, char digit, bool fraction)
{
    if (number->digits < MAX_DIGITS) {
        number->mantissa = number->mantissa * 10 + (uint64_t)(digit - '0');
        number->digits += number->mantissa > 0 ? 1 : 0;
        number->exponent -= fraction ? 1 : 0;
    } else {
        number->cut = number->cut || digit != '0';
        number->exponent += fraction ? 0 : 1;
    }
}

/* Reads one or more digits; NULL when there are none. */
static const char *take_digits(const char *next, decimal *number, bool fraction)
{
    if (!is_digit(*next)) {
        return NULL;
    }
    while (is_digit(*next)) {
        add_digit(number, *next++, fraction);
    }
    return next;
}

static const char *take_exponent(const char *next, decimal *number)
{
    bool minus = *next == '-';
    next += *next == '-' || *next == '+' ? 1 : 0;
    if (!is_digit(*next)) {
        return NULL;
    }
    int64_t exponent = 0;
    while (is_digit(*next)) {
        exponent = exponent < MAX_EXPONENT ? exponent * 10 + (*next - '0') : exponent;
        next++;
    }
    number->exponent += minus ? -exponent : exponent;
    return next;
}

/* RFC 8259, section 6. */
static bool take_apart(const char *text, size_t length, decimal *number)
{
    *number = (decimal){.integer = true};
    const char *next = text;
    if (*next == '-') {
        number->minus = true;
        next++;
    }
    bool zero = *next == '0';
    next = zero ? next + 1 : take_digits(next, number, false);
    if (next != NULL && *next == '.') {
        number->integer = false;
        next = take_digits(next + 1, number, true);
    }
    if (next != NULL && (*next == 'e' || *next == 'E')) {
        number->integer = false;
        next = take_exponent(next + 1, number);
    }
    return next == text + length;
}

bool eplb_number_check(const char *text, size_t length)
{
    decimal number;
    return take_apart(text, length, &number);
}

static double parse_slowly(const char *text, locale_t c_locale)
{
    locale_t before = uselocale(c_locale);
    double value = strtod(text, NULL);
    uselocale(before);
    return value;
}

/* A mantissa and a power of ten that are both exact doubles give an exactly rounded result with one
 * operation (Clinger, "How to read floating point numbers accurately", PLDI 1990). */
static double value_of(const decimal *number, const char *text, locale_t c_locale)
{
    int64_t exponent = number->exponent;
    if (number->mantissa == 0 && !number->cut) {
        return 0.0;
    }
    if (number->cut || number->mantissa > EPLB_EXACT_INTEGER || exponent < -22 || exponent > 22) {
        return parse_slowly(text, c_locale);
    }
    double mantissa = (double)number->mantissa;
    return exponent < 0 ? mantissa / eplb_powers_of_ten[-exponent]
                        : mantissa * eplb_powers_of_ten[exponent];
}

static bool is_not_finite(const char *text, locale_t c_locale)
{
    const char *word = *text == '-' || *text == '+' ? text + 1 : text;
    return strcasecmp_l(word, "nan", c_locale) == 0 || strcasecmp_l(word, "inf", c_locale) == 0 ||
           strcasecmp_l(word, "infinity", c_locale) == 0;
}

eplb_number_class eplb_number_parse(const char *text, size_t length, locale_t c_locale,
                                    double *value, bool *integer)
{
    decimal number;
    if (!take_apart(text, length, &number)) {
        bool words = strlen(text) == length && is_not_finite(text, c_locale);
        return words ? EPLB_NUMBER_NOT_FINITE : EPLB_NUMBER_MALFORMED;
    }
    double parsed = value_of(&number, text + (number.minus ? 1 : 0), c_locale);
    if (number.minus && (number.mantissa != 0 || number.cut)) {
        return EPLB_NUMBER_NEGATIVE;
    }
    if (!isfinite(parsed)) {
        return EPLB_NUMBER_TOO_LARGE;
    }
    if (number.integer &&
        (number.cut || number.exponent > 0 || number.mantissa > EPLB_EXACT_INTEGER)) {
        return EPLB_NUMBER_INEXACT;
    }
    *value = parsed;
    *integer = number.integer;
    return EPLB_NUMBER_COUNT;
}

eplb_status eplb_number_status(eplb_number_class number)
{
    switch (number) {
    case EPLB_NUMBER_COUNT:
        return EPLB_OK;
    case EPLB_NUMBER_MALFORMED:
        return EPLB_ERROR_PARSE;
    case EPLB_NUMBER_NOT_FINITE:
    case EPLB_NUMBER_NEGATIVE:
        return EPLB_ERROR_DATA;
    case EPLB_NUMBER_INEXACT:
    case EPLB_NUMBER_TOO_LARGE:
        return EPLB_ERROR_OVERFLOW;
    }
    return EPLB_ERROR_PARSE;
}

const char *eplb_number_words(eplb_number_class number)
{
    switch (number) {
    case EPLB_NUMBER_COUNT:
        return "is a count";
    case EPLB_NUMBER_MALFORMED:
        return "is not a number";
    case EPLB_NUMBER_NOT_FINITE:
        return "is not a count (finite, >= 0)";
    case EPLB_NUMBER_NEGATIVE:
        return "is negative";
    case EPLB_NUMBER_INEXACT:
        return "is above 2^53 and would not be exact";
    case EPLB_NUMBER_TOO_LARGE:
        return "is too large for a double";
    }
    return "is not a number";
}
