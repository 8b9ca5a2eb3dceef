/* SPDX-License-Identifier: MIT */
/* Numbers of JSON, one by one and whole rows of counts. */
#include "format/digits.h"
#include "format/options.h"
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

/* Where short integers are read to. */
typedef struct integer_run {
    const char *next; /* the first byte that was not read */
    double *values;
    int32_t count;
    int32_t room;
} integer_run;

/* Reads the integers that end in a block at the places `ends`. False at the first thing that is not
 * a short integer with a comma behind it, or a space before it, and when there is no more room. */
static bool take_block(integer_run *run, const char *block, uint64_t ends)
{
    for (; ends != 0; ends &= ends - 1) {
        const char *end = block + __builtin_ctzll(ends);
        size_t length = (size_t)(end - run->next);
        if (length == 0 && *end == ' ') {
            run->next = end + 1;
            continue;
        }
        bool is_plain = *end == ',' && length - 1 < 8 && (length == 1 || *run->next != '0');
        if (!is_plain || run->count == run->room) {
            return false;
        }
        uint64_t digits = eplb_digits_load(run->next);
        run->values[run->count++] = (double)eplb_digits_value(digits, (unsigned)length);
        run->next = end + 1;
    }
    return true;
}

/* Reads short integers that are in the buffer with the comma behind them. The ends of numbers are
 * found block by block, so that no number waits for the one before it. */
static void scan_short_integers(integer_run *run, const char *limit)
{
    const char *block = run->next;
    /* Of a number that ends in the block, 8 bytes can be loaded. */
    while (limit - block >= EPLB_DIGITS_BLOCK + 8 &&
           take_block(run, block, eplb_digits_block_ends(block))) {
        block += EPLB_DIGITS_BLOCK;
    }
}

/* Reads short numbers that are in the buffer with the comma behind them. Stops before anything
 * else; returns how many it read. */
static int32_t scan_plain_counts(eplb_input *input, double *values, int32_t room)
{
    integer_run run = {.next = input->cursor, .values = values, .room = room};
    scan_short_integers(&run, input->limit);
    const char *next = run.next;
    int32_t count = run.count;
    while (count < room) {
        double value;
        while (*next == ' ') {
            next++;
        }
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
        values[count++] = value;
        next = end + 1;
    }
    input->cursor = next;
    return count;
}

static eplb_status too_many(eplb_scanner *scanner, bool ids, int32_t limit, eplb_error *error)
{
    return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error, "more than %d %s in a row", limit,
                          ids ? "slots" : "counts");
}

/* Reads "-1" if that is next, a slot without an expert. */
static eplb_status scan_empty_slot(eplb_scanner *scanner, bool *found, eplb_error *error)
{
    eplb_input *input = scanner->input;
    eplb_status status = eplb_input_need(input, 3, error);
    size_t unread = eplb_input_unread(input);
    *found = status == EPLB_OK && unread >= 2 && memcmp(input->cursor, "-1", 2) == 0 &&
             (unread == 2 || ends_token[(unsigned char)input->cursor[2]]);
    input->cursor += *found ? 2 : 0;
    return status;
}

/* Reads one number that scan_plain_counts left, and what follows it. */
static eplb_status scan_any_count(eplb_scanner *scanner, eplb_counts_buffer *row, bool ids,
                                  bool *more, eplb_error *error)
{
    eplb_token token;
    bool integer;
    bool empty = false;
    double *value = &row->values[row->length];
    scanner->expert = row->length;
    eplb_status status = ids ? scan_empty_slot(scanner, &empty, error) : EPLB_OK;
    if (empty) {
        *value = -1.0;
    } else if (status == EPLB_OK) {
        status = eplb_scan_number(scanner, "", value, &integer, &token, error);
    }
    scanner->expert = -1;
    if (status == EPLB_OK) {
        row->length++;
        status = eplb_scan_either(scanner, ',', ']', more, error);
    }
    return status;
}

static eplb_status scan_row(eplb_scanner *scanner, eplb_counts_buffer *row, int32_t limit, bool ids,
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
            return too_many(scanner, ids, limit, error);
        }
        if (!eplb_counts_buffer_grow(row, &scanner->input->hooks, limit)) {
            return eplb_out_of_memory(error);
        }
        int32_t plain = scan_plain_counts(scanner->input, row->values + row->length,
                                          row->capacity - row->length);
        row->length += plain;
        if (plain == 0) {
            status = scan_any_count(scanner, row, ids, &more, error);
        }
        if (status != EPLB_OK) {
            return status;
        }
    }
    return EPLB_OK;
}

eplb_status eplb_scan_counts(eplb_scanner *scanner, eplb_counts_buffer *row, int32_t limit,
                             eplb_error *error)
{
    return scan_row(scanner, row, limit, false, error);
}

eplb_status eplb_scan_ids(eplb_scanner *scanner, eplb_counts_buffer *row, int32_t limit,
                          int32_t experts, eplb_status beyond, eplb_error *error)
{
    eplb_status status = scan_row(scanner, row, limit, true, error);
    for (int32_t s = 0; s < row->length && status == EPLB_OK; s++) {
        double id = row->values[s];
        bool is_beyond = id >= experts;
        if (is_beyond || id != (double)(int32_t)id) {
            status = eplb_scan_fail(scanner, is_beyond ? beyond : EPLB_ERROR_PARSE, error,
                                    "%s %d: expert %.17g not in 0..%d (or -1 for an empty slot)",
                                    scanner->item, s, id, experts - 1);
        }
    }
    return status;
}

eplb_status eplb_scan_check_width(const eplb_scanner *scanner, int32_t length,
                                  const eplb_read_options *options, int32_t *width,
                                  eplb_error *error)
{
    if (length == 0) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no counts");
    }
    if (options->experts > 0 && length != options->experts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error, "%d counts, expected %d, %s", length,
                              options->experts, eplb_words_for_width(options));
    }
    if (*width > 0 && length != *width) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%d counts, expected %d", length,
                              *width);
    }
    *width = length;
    return EPLB_OK;
}
