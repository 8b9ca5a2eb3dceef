/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON (RFC 8259) from an input token by token, in constant memory and without recursion, and
 * rows of counts fast. It also knows the place that errors of all text formats name.
 */
#ifndef EPLB_FORMAT_SCANNER_H
#define EPLB_FORMAT_SCANNER_H

#include <eplb/format.h>

#include "format/counts_buffer.h"
#include "format/input.h"
#include "format/number.h"

/* What eplb_scan_peek gives at the end of the input. */
#define EPLB_SCAN_END (-1)

/* Deepest nesting of values that are skipped. */
#define EPLB_SCAN_DEPTH 64

/* Room for a key; a longer one is none that any format knows. */
#define EPLB_KEY_SIZE 64

typedef struct eplb_scanner {
    eplb_input *input;
    locale_t c_locale;
    bool one_line;         /* a newline ends the document: JSON lines, CSV */
    bool for_cjson;        /* refuse what cJSON would misread: see eplb_json_read */
    uint64_t token_offset; /* where the last token began */
    int64_t step;          /* what errors name; -1: nothing */
    int32_t layer;
    int32_t expert;
    const char *item; /* what `expert` counts: "expert", or "slot" */
} eplb_scanner;

eplb_status eplb_scanner_init(eplb_scanner *scanner, eplb_input *input, eplb_error *error);
void eplb_scanner_close(eplb_scanner *scanner);

/* Sets an error that begins with the place: `file:line:` or `file:line:column:`, step, layer and
 * expert. Returns `status`. */
eplb_status eplb_scan_fail(const eplb_scanner *scanner, eplb_status status, eplb_error *error,
                           const char *format, ...) EPLB_PRINTF(4, 5);

/* Skips white space and looks at the next byte: its value, or EPLB_SCAN_END. */
eplb_status eplb_scan_peek(eplb_scanner *scanner, int *next, eplb_error *error);

/* "expected X, found Y", with the byte that eplb_scan_peek gave. */
eplb_status eplb_scan_unexpected(const eplb_scanner *scanner, int found, const char *expected,
                                 eplb_error *error);

/* Reads one byte that must be `wanted`; `words` name it in the error. */
eplb_status eplb_scan_expect(eplb_scanner *scanner, char wanted, const char *words,
                             eplb_error *error);

/* Whether the next byte is `wanted`; if so it is read. If not it must be `otherwise`, which is read
 * too. */
eplb_status eplb_scan_either(eplb_scanner *scanner, char wanted, char otherwise, bool *is_wanted,
                             eplb_error *error);

/* Reads a string. Its first `size` bytes go to `text` (NULL with size 0: none), without a NUL;
 * `length` gets the length of all of it. */
eplb_status eplb_scan_string(eplb_scanner *scanner, char *text, size_t size, size_t *length,
                             eplb_error *error);

/* Reads a key and the colon behind it; "" when it does not fit `key`. */
eplb_status eplb_scan_key(eplb_scanner *scanner, char key[EPLB_KEY_SIZE], eplb_error *error);

/* Reads what stands before the next value of a list, or member of an object: nothing behind its
 * beginning (*first: true), then ','. *more is false at its `end`, ']' or '}', which is read. */
eplb_status eplb_scan_more(eplb_scanner *scanner, char end, bool *first, bool *more,
                           eplb_error *error);

/* Reads the members of an object from its beginning ('{' read: *first true) or between members to
 * the next key; *more is false at its end. */
eplb_status eplb_scan_next_key(eplb_scanner *scanner, bool *first, char key[EPLB_KEY_SIZE],
                               bool *more, eplb_error *error);

/* Reads and checks one value of any kind. */
eplb_status eplb_scan_skip(eplb_scanner *scanner, eplb_error *error);

/* Reads an integer in 0..largest; `words` name it in errors: "layer". Above: EPLB_ERROR_LIMIT. */
eplb_status eplb_scan_integer(eplb_scanner *scanner, const char *words, int64_t largest,
                              int64_t *value, eplb_error *error);

/* Sets the error for a text of `length` bytes that is no count. Returns its status. */
eplb_status eplb_scan_bad_number(const eplb_scanner *scanner, eplb_number_class number,
                                 const char *words, const char *text, size_t length,
                                 eplb_error *error);

/* Reads the counts of a JSON array whose '[' was read, through its ']'. More than `limit`:
 * EPLB_ERROR_LIMIT. */
eplb_status eplb_scan_counts(eplb_scanner *scanner, eplb_counts_buffer *row, int32_t limit,
                             eplb_error *error);

/* Makes sure that the row is as wide as those before (*width), or as options->experts, if that is
 * known, and has counts at all. 0 is an unknown width. */
eplb_status eplb_scan_check_width(const eplb_scanner *scanner, int32_t length,
                                  const eplb_read_options *options, int32_t *width,
                                  eplb_error *error);

/* Reads a row of a map in the same way: ids below `experts`, or -1 for an empty slot. An id beyond
 * is `beyond`. */
eplb_status eplb_scan_ids(eplb_scanner *scanner, eplb_counts_buffer *row, int32_t limit,
                          int32_t experts, eplb_status beyond, eplb_error *error);

/* Notes that a key was read; a second time is an error. */
eplb_status eplb_scan_first_time(const eplb_scanner *scanner, bool *has, const char *key,
                                 eplb_error *error);

/* For documents of one line each. Steps over line ends: *next is the first byte of the next line
 * with content, or the end. */
eplb_status eplb_scan_next_line(eplb_scanner *scanner, int *next, eplb_error *error);

/* Makes sure that nothing else is on the line. */
eplb_status eplb_scan_line_end(eplb_scanner *scanner, eplb_error *error);

/* Makes sure that nothing but white space follows. */
eplb_status eplb_scan_finish(eplb_scanner *scanner, eplb_error *error);

#endif
