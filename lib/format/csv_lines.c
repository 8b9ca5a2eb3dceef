/* SPDX-License-Identifier: MIT */
#include "format/csv_lines.h"

#include <stdio.h>
#include <string.h>

#include "format/digits.h"
#include "format/quote.h"
#include "format/warn.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Narrows [*begin, *end) to what is between blanks. */
static void trim(const char **begin, const char **end)
{
    while (*begin < *end && is_blank(**begin)) {
        ++*begin;
    }
    while (*begin < *end && is_blank((*end)[-1])) {
        --*end;
    }
}

static const char *find_byte(const char *begin, const char *end, char byte)
{
    const char *found = begin < end ? memchr(begin, byte, (size_t)(end - begin)) : NULL;
    return found != NULL ? found : end;
}

/* The column that a header's field names; EPLB_CSV_COLUMNS when there is none. */
static eplb_csv_column find_column(const eplb_csv_table *table, const char *begin, const char *end)
{
    trim(&begin, &end);
    for (eplb_csv_column c = EPLB_CSV_STEP; c < EPLB_CSV_COLUMNS; c++) {
        size_t length = strlen(table->names[c]);
        if ((size_t)(end - begin) == length && memcmp(begin, table->names[c], length) == 0) {
            return c;
        }
    }
    return EPLB_CSV_COLUMNS;
}

/* Narrows [*begin, *end) to what is between quotes, if there are any. */
static void strip_quotes(const char **begin, const char **end)
{
    trim(begin, end);
    if (*end - *begin >= 2 && **begin == '"' && (*end)[-1] == '"') {
        ++*begin;
        --*end;
    }
}

int eplb_csv_known_columns(const eplb_csv_table *table, const char *text, size_t size)
{
    const char *next = text;
    const char *end = find_byte(next, text + size, '\n');
    int known = 0;
    while (next < end) {
        const char *comma = find_byte(next, end, ',');
        const char *begin = next;
        const char *field_end = comma;
        strip_quotes(&begin, &field_end);
        known += find_column(table, begin, field_end) < EPLB_CSV_COLUMNS ? 1 : 0;
        next = comma < end ? comma + 1 : end;
    }
    return known;
}

/* Finds the end of the line at the cursor, which is then in the buffer as a whole. */
static eplb_status find_line(eplb_csv_lines *self, const char **end, eplb_error *error)
{
    eplb_input *input = self->scanner.input;
    for (;;) {
        const char *newline = find_byte(input->cursor, input->limit, '\n');
        if (newline < input->limit || input->at_end) {
            *end = newline;
            return EPLB_OK;
        }
        if (eplb_input_unread(input) > EPLB_INPUT_PREFIX) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                                  "a line of more than %zu bytes", EPLB_INPUT_PREFIX);
        }
        eplb_status status = eplb_input_fill(input, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
}

/* Moves the cursor past the line that ends at `end`. */
static void leave_line(eplb_csv_lines *self, const char *end)
{
    eplb_input *input = self->scanner.input;
    input->cursor = end;
    if (end < input->limit) {
        eplb_input_newline(input, end);
        input->cursor++;
    }
}

static eplb_status add_column(eplb_csv_lines *self, const char *begin, const char *end,
                              eplb_error *error)
{
    const char *const *names = self->table->names;
    eplb_csv_column found = find_column(self->table, begin, end);
    trim(&begin, &end);
    if (found == EPLB_CSV_COLUMNS) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "unknown column '%s': expected %s, %s, %s, %s%s",
                              eplb_quote_bytes(begin, (size_t)(end - begin)).text, names[0],
                              names[1], names[2], names[3],
                              begin < end && *begin == '"' ? ", without quotes" : "");
    }
    for (int i = 0; i < self->columns; i++) {
        if (self->order[i] == found) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "second column '%s'",
                                  names[found]);
        }
    }
    self->order[self->columns++] = found;
    return EPLB_OK;
}

static bool has_column(const eplb_csv_lines *self, eplb_csv_column wanted)
{
    for (int i = 0; i < self->columns; i++) {
        if (self->order[i] == wanted) {
            return true;
        }
    }
    return false;
}

static eplb_status read_header(eplb_csv_lines *self, eplb_error *error)
{
    const char *end = NULL;
    eplb_status status = find_line(self, &end, error);
    const char *next = self->scanner.input->cursor;
    while (status == EPLB_OK && next <= end) {
        const char *comma = find_byte(next, end, ',');
        status = add_column(self, next, comma, error);
        next = comma + 1;
    }
    for (eplb_csv_column c = EPLB_CSV_LAYER; c < EPLB_CSV_COLUMNS && status == EPLB_OK; c++) {
        if (!has_column(self, c)) {
            status = eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "no column '%s'",
                                    self->table->names[c]);
        }
    }
    if (status == EPLB_OK) {
        leave_line(self, end);
    }
    return status;
}

eplb_status eplb_csv_open(eplb_csv_lines *self, const eplb_csv_table *table, eplb_input *input,
                          eplb_error *error)
{
    *self = (eplb_csv_lines){.table = table};
    eplb_status status = eplb_scanner_init(&self->scanner, input, error);
    self->scanner.one_line = true;
    if (status == EPLB_OK) {
        status = eplb_input_skip_bom(input, error);
    }
    return status == EPLB_OK ? read_header(self, error) : status;
}

void eplb_csv_close(eplb_csv_lines *self)
{
    eplb_scanner_close(&self->scanner);
}

/* What an error calls a field. */
typedef struct field_words {
    char text[64];
} field_words;

static field_words words_for(const eplb_csv_lines *self, eplb_csv_column which)
{
    field_words words;
    const char *const *names = self->table->names;
    if (which == EPLB_CSV_VALUE && self->item_known) {
        snprintf(words.text, sizeof(words.text), "%s %.0f: %s", names[EPLB_CSV_ITEM],
                 self->fields[EPLB_CSV_ITEM], names[which]);
    } else {
        snprintf(words.text, sizeof(words.text), "%s", names[which]);
    }
    return words;
}

/* Keeps what the errors of later fields name. */
static void place_errors(eplb_csv_lines *self, eplb_csv_column which)
{
    if (which == EPLB_CSV_LAYER && self->fields[which] <= INT32_MAX) {
        self->scanner.layer = (int32_t)self->fields[which];
    }
    self->item_known = self->item_known || which == EPLB_CSV_ITEM;
}

/* Reads a field that is not a short number between at most some spaces. */
static eplb_status read_any_field(eplb_csv_lines *self, eplb_csv_column which, const char *begin,
                                  const char *end, eplb_error *error)
{
    char text[EPLB_NUMBER_LENGTH + 1];
    trim(&begin, &end);
    size_t length = (size_t)(end - begin);
    if (length > 0 && *begin == '"') {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "%s is quoted: fields must be plain numbers",
                              words_for(self, which).text);
    }
    if (length > EPLB_NUMBER_LENGTH) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "%s has more than %d characters", words_for(self, which).text,
                              EPLB_NUMBER_LENGTH);
    }
    memcpy(text, begin, length);
    text[length] = '\0';
    bool integer = true;
    eplb_number_class number =
        eplb_number_parse(text, length, self->scanner.c_locale, &self->fields[which], &integer);
    if (number != EPLB_NUMBER_COUNT) {
        return eplb_scan_bad_number(&self->scanner, number, words_for(self, which).text,
                                    length > 0 ? text : "''", length > 0 ? length : 2, error);
    }
    if (!integer && which != EPLB_CSV_VALUE) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "%s %s is not an integer",
                              words_for(self, which).text, eplb_quote_bytes(text, length).text);
    }
    return EPLB_OK;
}

/* Reads a short number of the kind that the column has; NULL when there is none. */
static const char *read_plain_number(eplb_csv_column which, const char *text, double *value)
{
    if (which == EPLB_CSV_VALUE) {
        return eplb_number_plain(text, value);
    }
    uint64_t integer = 0;
    const char *stop = eplb_number_digits(text, &integer);
    *value = (double)integer;
    return stop;
}

/* Reads the field at *next; *next is then behind its comma, or at `end`. */
static eplb_status read_field(eplb_csv_lines *self, eplb_csv_column which, const char **next,
                              const char *end, eplb_error *error)
{
    const char *begin = *next;
    double value;
    while (*begin == ' ') {
        begin++;
    }
    const char *stop = read_plain_number(which, begin, &value);
    if (stop != NULL && (*stop == ',' || stop == end)) {
        self->fields[which] = value;
        *next = stop;
        return EPLB_OK;
    }
    *next = find_byte(*next, end, ',');
    return read_any_field(self, which, begin < end ? begin : end, *next, error);
}

eplb_status eplb_csv_beyond_limit(const eplb_csv_lines *self, eplb_csv_column which, int32_t limit,
                                  eplb_status status, eplb_error *error)
{
    return eplb_scan_fail(&self->scanner, status, error, "%s %.0f not in 0..%d",
                          self->table->names[which], self->fields[which], limit - 1);
}

static eplb_status read_fields(eplb_csv_lines *self, const char *end, eplb_error *error)
{
    const char *next = self->scanner.input->cursor;
    eplb_status status = EPLB_OK;
    self->item_known = false;
    for (int i = 0; i < self->columns && status == EPLB_OK; i++) {
        status = read_field(self, self->order[i], &next, end, error);
        bool last = i == self->columns - 1;
        if (status == EPLB_OK && last != (next >= end)) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "%s, expected %d",
                                  last ? "more fields" : "fewer fields", self->columns);
        }
        if (status == EPLB_OK && self->table->places_values) {
            place_errors(self, self->order[i]);
        }
        next++;
    }
    return status;
}

/* Leaves blank lines, which nothing but blank lines may follow, and finds what the next one has
 * between blanks: nothing at the end of the file. */
static eplb_status skip_blank_lines(eplb_csv_lines *self, const char **begin, const char **end,
                                    eplb_error *error)
{
    bool after_blank = false;
    for (;;) {
        eplb_status status = find_line(self, end, error);
        if (status != EPLB_OK) {
            return status;
        }
        const char *line_end = *end;
        self->line_end = line_end;
        *begin = self->scanner.input->cursor;
        bool at_end = *begin == line_end && line_end == self->scanner.input->limit;
        trim(begin, end);
        if (*begin < *end && after_blank) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                                  "a line behind a blank line");
        }
        if (*begin < *end || at_end) {
            return EPLB_OK;
        }
        after_blank = true;
        leave_line(self, line_end);
    }
}

/* Bytes in which a plain line lies, with 8 that can be loaded from each place. */
#define PLAIN_LINE ((size_t)(EPLB_DIGITS_BLOCK + 8))

/* Reads a line of nothing but integers of at most 8 digits. False for any other one, and one that
 * may be near the end of the buffer. */
static bool read_plain_line(eplb_csv_lines *self)
{
    const eplb_input *input = self->scanner.input;
    const char *line = input->cursor;
    if (eplb_input_unread(input) < PLAIN_LINE) {
        return false;
    }
    uint64_t ends = eplb_digits_block_ends(line);
    unsigned begin = 0;
    for (int i = 0; i < self->columns; i++, ends &= ends - 1) {
        unsigned end = ends != 0 ? (unsigned)__builtin_ctzll(ends) : begin;
        unsigned length = end - begin;
        bool has_zero_in_front = length > 1 && line[begin] == '0';
        if (length - 1 >= 8 || has_zero_in_front ||
            line[end] != (i < self->columns - 1 ? ',' : '\n')) {
            return false;
        }
        uint64_t word = eplb_digits_load(line + begin);
        self->fields[self->order[i]] = (double)eplb_digits_value(word, length);
        begin = end + 1;
    }
    self->line_end = line + begin - 1;
    return true;
}

static void place_plain_line(eplb_csv_lines *self)
{
    self->item_known = false;
    for (int i = 0; i < self->columns && self->table->places_values; i++) {
        place_errors(self, self->order[i]);
    }
}

eplb_status eplb_csv_read_line(eplb_csv_lines *self, eplb_error *error)
{
    const char *begin = NULL;
    const char *end = NULL;
    bool first = !self->started;
    self->started = true;
    self->has_line = false;
    self->scanner.layer = -1;
    if (read_plain_line(self)) {
        self->has_line = true;
        place_plain_line(self);
        return EPLB_OK;
    }
    eplb_status status = skip_blank_lines(self, &begin, &end, error);
    if (status == EPLB_OK && begin < end) {
        self->has_line = true;
        return read_fields(self, end, error);
    }
    return status == EPLB_OK && first
               ? eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "no %s behind the header",
                                self->table->content)
               : status;
}

void eplb_csv_leave_line(eplb_csv_lines *self)
{
    const eplb_input *input = self->scanner.input;
    if (self->line_end == input->limit) {
        eplb_warn(&input->hooks, "%s: the last line has no newline: is the file whole?",
                  input->name);
    }
    leave_line(self, self->line_end);
}

/* The longest beginning that match_prefix compares. */
#define LONGEST_PREFIX 16

/* Bytes of the fields before the last two, if these are the item and the value. */
static size_t prefix_length(const eplb_csv_lines *self, const char *line)
{
    const char *next = line;
    if (self->columns < 3 || self->order[self->columns - 2] != EPLB_CSV_ITEM ||
        self->order[self->columns - 1] != EPLB_CSV_VALUE) {
        return SIZE_MAX;
    }
    for (int i = 0; i < self->columns - 2; i++) {
        next = find_byte(next, self->line_end, ',') + 1;
    }
    return (size_t)(next - line);
}

/* Whether two lines have the same first 1 to LONGEST_PREFIX bytes. */
static bool match_prefix(const char *a, const char *b, size_t length)
{
    uint64_t first = eplb_digits_load(a) ^ eplb_digits_load(b);
    uint64_t second = eplb_digits_load(a + 8) ^ eplb_digits_load(b + 8);
    return length <= 8 ? first << (64 - 8 * length) == 0
                       : (first | second << (128 - 8 * length)) == 0;
}

/* Reads up to 7 digits with `end` behind them; *next is then behind that, too. */
static bool take_digits(const char **next, char end, uint64_t *value)
{
    uint64_t word = eplb_digits_load(*next);
    uint64_t ends = eplb_digits_ends(word);
    unsigned length = ends != 0 ? (unsigned)__builtin_ctzll(ends) / 8 : 0;
    if (length == 0 || (length > 1 && **next == '0') || (*next)[length] != end) {
        return false;
    }
    *value = eplb_digits_value(word, length);
    *next += length + 1;
    return true;
}

void eplb_csv_take_plain(eplb_csv_lines *self, const char *line, double *values, int32_t room,
                         int32_t *end)
{
    eplb_input *input = self->scanner.input;
    size_t prefix = prefix_length(self, line);
    while (prefix <= LONGEST_PREFIX && eplb_input_unread(input) >= PLAIN_LINE &&
           match_prefix(line, input->cursor, prefix)) {
        const char *next = input->cursor + prefix;
        uint64_t item;
        uint64_t value;
        if (!take_digits(&next, ',', &item) || item >= (uint64_t)room || values[item] >= 0.0 ||
            !take_digits(&next, '\n', &value)) {
            break;
        }
        values[item] = (double)value;
        *end = (int32_t)item >= *end ? (int32_t)item + 1 : *end;
        eplb_input_newline(input, next - 1);
        input->cursor = next;
    }
}
