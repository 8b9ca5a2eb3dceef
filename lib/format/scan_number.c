/* SPDX-License-Identifier: MIT */
/* Numbers of JSON, one by one and whole rows of counts. */
#include "format/quote.h"
#include "format/scan_token.h"

#include <string.h>

/* Bytes that end a number or a word. */
static const bool ends_token[256] = {
    [' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, [','] = true, [':'] = true,
    ['['] = true, [']'] = true,  ['{'] = true,  ['}'] = true,  ['"'] = true,
};

eplb_status eplb_scan_token(eplb_scanner *scanner, eplb_token *token, eplb_error *error)
{
    eplb_input *input = scanner->input;
    eplb_status status = EPLB_OK;
    token->length = 0;
    do {
        const char *next = input->cursor;
        while (next < input->limit && !ends_token[(unsigned char)*next]) {
            next++;
        }
        size_t length = (size_t)(next - input->cursor);
        if (length > EPLB_NUMBER_LENGTH - token->length) {
            return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                  "a number or word of more than %d characters",
                                  EPLB_NUMBER_LENGTH);
        }
        memcpy(token->text + token->length, input->cursor, length);
        token->length += length;
        token->text[token->length] = '\0';
        input->cursor = next;
        if (next < input->limit) {
            return EPLB_OK;
        }
        status = eplb_input_fill(input, error);
    } while (status == EPLB_OK && eplb_input_unread(input) > 0);
    return status;
}

eplb_status eplb_scan_bad_number(const eplb_scanner *scanner, eplb_number_class number,
                                 const char *words, const char *text, size_t length,
                                 eplb_error *error)
{
    return eplb_scan_fail(scanner, eplb_number_status(number), error, "%s%s%s %s", words,
                          words[0] != '\0' ? " " : "", eplb_quote_bytes(text, length).text,
                          eplb_number_words(number));
}

eplb_status eplb_scan_number(eplb_scanner *scanner, const char *words, double *value, bool *integer,
                             eplb_token *token, eplb_error *error)
{
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    if (status == EPLB_OK) {
        status = eplb_scan_token(scanner, token, error);
    }
    if (status == EPLB_OK && token->length == 0) {
        return eplb_scan_unexpected(scanner, next, "a number", error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_number_class number =
        eplb_number_parse(token->text, token->length, scanner->c_locale, value, integer);
    return number == EPLB_NUMBER_COUNT
               ? EPLB_OK
               : eplb_scan_bad_number(scanner, number, words, token->text, token->length, error);
}

eplb_status eplb_scan_integer(eplb_scanner *scanner, const char *words, int64_t largest,
                              int64_t *value, eplb_error *error)
{
    eplb_token token;
    double number;
    bool integer;
    eplb_status status = eplb_scan_number(scanner, words, &number, &integer, &token, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!integer) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%s %s is not an integer", words,
                              eplb_quote_bytes(token.text, token.length).text);
    }
    if (number > (double)largest) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error, "%s %s is above the limit %lld",
                              words, eplb_quote_bytes(token.text, token.length).text,
                              (long long)largest);
    }
    *value = (int64_t)number;
    return EPLB_OK;
}

/* Reads short numbers that are in the buffer with the comma behind them. Stops before anything
 * else; returns how many it read. */
static int32_t scan_plain_counts(eplb_input *input, double *values, int32_t room)
{
    const char *next = input->cursor;
    int32_t count = 0;
    while (count < room) {
        double value;
        const char *end = eplb_number_plain(next, &value);
        if (end == NULL) {
            break;
        }
        while (*end == ' ') {
            end++;
        }
        if (*end != ',') {
            break;
        }
        do {
            end++;
        } while (*end == ' ');
        values[count++] = value;
        next = end;
    }
    input->cursor = next;
    return count;
}

static eplb_status too_many_counts(eplb_scanner *scanner, int32_t limit, eplb_error *error)
{
    return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error, "more than %d counts in a row", limit);
}

/* Reads one count that scan_plain_counts left, and what follows it. */
static eplb_status scan_any_count(eplb_scanner *scanner, eplb_counts_buffer *row, bool *more,
                                  eplb_error *error)
{
    eplb_token token;
    bool integer;
    scanner->expert = row->length;
    eplb_status status =
        eplb_scan_number(scanner, "", &row->values[row->length], &integer, &token, error);
    scanner->expert = -1;
    if (status == EPLB_OK) {
        row->length++;
        status = eplb_scan_either(scanner, ',', ']', more, error);
    }
    return status;
}

eplb_status eplb_scan_counts(eplb_scanner *scanner, eplb_counts_buffer *row, int32_t limit,
                             eplb_error *error)
{
    row->length = 0;
    bool more = true;
    while (more) {
        int next;
        eplb_status status = eplb_scan_peek(scanner, &next, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (next == ']' && row->length == 0) {
            scanner->input->cursor++;
            return EPLB_OK;
        }
        if (row->length == limit) {
            return too_many_counts(scanner, limit, error);
        }
        if (!eplb_counts_buffer_grow(row, &scanner->input->hooks, limit)) {
            return eplb_out_of_memory(error);
        }
        int32_t plain = scan_plain_counts(scanner->input, row->values + row->length,
                                          row->capacity - row->length);
        row->length += plain;
        if (plain == 0) {
            status = scan_any_count(scanner, row, &more, error);
        }
        if (status != EPLB_OK) {
            return status;
        }
    }
    return EPLB_OK;
}

eplb_status eplb_scan_check_width(const eplb_scanner *scanner, int32_t length, int32_t experts,
                                  int32_t *width, eplb_error *error)
{
    if (length == 0) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no counts");
    }
    if (experts > 0 && length != experts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                              "%d counts, expected %d, the number of experts given", length,
                              experts);
    }
    if (*width > 0 && length != *width) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%d counts, expected %d", length,
                              *width);
    }
    *width = length;
    return EPLB_OK;
}
