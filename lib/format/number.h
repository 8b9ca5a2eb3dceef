/* SPDX-License-Identifier: MIT */
/* Decimal numbers in text, exact and the same in every locale of the host. */
#ifndef EPLB_FORMAT_NUMBER_H
#define EPLB_FORMAT_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

/* Largest integer up to which doubles hold all integers. */
#define EPLB_EXACT_INTEGER 9007199254740992

/* Longest number that is read. */
#define EPLB_NUMBER_LENGTH 511

typedef enum eplb_number_class {
    EPLB_NUMBER_COUNT = 0,  /* finite and >= 0 */
    EPLB_NUMBER_MALFORMED,  /* not a number as RFC 8259 writes them */
    EPLB_NUMBER_NOT_FINITE, /* NaN or infinity in words */
    EPLB_NUMBER_NEGATIVE,
    EPLB_NUMBER_INEXACT,   /* an integer above 2^53 */
    EPLB_NUMBER_TOO_LARGE, /* above the largest double */
} eplb_number_class;

/*
 * Reads a whole text of `length` bytes, text[length] being 0, with the grammar of JSON. A value is
 * given for EPLB_NUMBER_COUNT only; `integer` says whether it has neither fraction nor exponent.
 * `c_locale` is the "C" locale.
 */
eplb_number_class eplb_number_parse(const char *text, size_t length, locale_t c_locale,
                                    double *value, bool *integer);

/* Whether the text is a number with the grammar of JSON, whatever its value. */
bool eplb_number_check(const char *text, size_t length);

/* The status that a number which is no count gives, and the words after it: "is negative". */
eplb_status eplb_number_status(eplb_number_class number);
const char *eplb_number_words(eplb_number_class number);

/* 10^0 to 10^22: the powers that are exact doubles. */
extern const double eplb_powers_of_ten[23];

/* The digits of a non-negative integer of at most 15 digits at `text`, which ends in some other
 * byte. Returns the first byte behind it, or NULL when there is no such integer. */
static inline const char *eplb_number_digits(const char *text, uint64_t *value)
{
    const char *next = text;
    uint64_t sum = 0;
    unsigned digit;
    while ((digit = (unsigned)(unsigned char)*next - (unsigned)'0') <= 9) {
        sum = sum * 10 + digit;
        next++;
    }
    ptrdiff_t digits = next - text;
    if (digits == 0 || digits > 15 || (digits > 1 && *text == '0')) {
        return NULL;
    }
    *value = sum;
    return next;
}

/* The same for a number that may have a fraction, with at most 15 digits in all. */
static inline const char *eplb_number_plain(const char *text, double *value)
{
    uint64_t sum;
    const char *next = eplb_number_digits(text, &sum);
    if (next == NULL || *next != '.') {
        *value = next != NULL ? (double)sum : 0.0;
        return next;
    }
    const char *fraction = ++next;
    unsigned digit;
    while ((digit = (unsigned)(unsigned char)*next - (unsigned)'0') <= 9) {
        sum = sum * 10 + digit;
        next++;
    }
    if (next == fraction || next - text > 16) {
        return NULL;
    }
    *value = (double)sum / eplb_powers_of_ten[next - fraction];
    return next;
}

#endif
