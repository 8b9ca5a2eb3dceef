/* SPDX-License-Identifier: MIT */
/* Counts as CSV with the header `step,layer,expert,tokens`: `step` optional, columns in any order,
 * one expert a line. The lines of one step and layer that follow each other make one row. */
#include "format/format.h"
#include "format/quote.h"
#include "format/scanner.h"
#include "format/warn.h"

#include <string.h>

typedef enum column { STEP, LAYER, EXPERT, TOKENS, COLUMNS } column;

static const char *const column_names[COLUMNS] = {"step", "layer", "expert", "tokens"};

typedef struct csv {
    eplb_scanner scanner;
    eplb_counts_buffer row; /* -1 for an expert that no line has named */
    column order[COLUMNS];  /* of the file */
    int columns;
    double fields[COLUMNS]; /* of the line at the cursor */
    bool has_line;          /* `fields` are valid and not yet in a row */
    bool has_rows;          /* the first line behind the header was read */
} csv;

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

/* The column that a header's field names; COLUMNS when there is none. */
static column find_column(const char *begin, const char *end)
{
    trim(&begin, &end);
    for (column c = STEP; c < COLUMNS; c++) {
        size_t length = strlen(column_names[c]);
        if ((size_t)(end - begin) == length && memcmp(begin, column_names[c], length) == 0) {
            return c;
        }
    }
    return COLUMNS;
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

/* A header in quotes is recognised, too, for the reader to refuse with the reason. */
static bool probe(const eplb_probe *probe)
{
    const char *next = probe->data;
    const char *end = find_byte(next, probe->data + probe->size, '\n');
    int known = 0;
    while (next < end) {
        const char *comma = find_byte(next, end, ',');
        const char *begin = next;
        const char *field_end = comma;
        strip_quotes(&begin, &field_end);
        known += find_column(begin, field_end) < COLUMNS ? 1 : 0;
        next = comma < end ? comma + 1 : end;
    }
    return known >= 2;
}

/* Finds the end of the line at the cursor, which is then in the buffer as a whole. */
static eplb_status find_line(csv *self, const char **end, eplb_error *error)
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
static void leave_line(csv *self, const char *end)
{
    eplb_input *input = self->scanner.input;
    input->cursor = end;
    if (end < input->limit) {
        eplb_input_newline(input, end);
        input->cursor++;
    }
}

static eplb_status add_column(csv *self, const char *begin, const char *end, eplb_error *error)
{
    column found = find_column(begin, end);
    trim(&begin, &end);
    if (found == COLUMNS) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "unknown column '%s': expected step, layer, expert, tokens%s",
                              eplb_quote_bytes(begin, (size_t)(end - begin)).text,
                              begin < end && *begin == '"' ? ", without quotes" : "");
    }
    for (int i = 0; i < self->columns; i++) {
        if (self->order[i] == found) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "second column '%s'",
                                  column_names[found]);
        }
    }
    self->order[self->columns++] = found;
    return EPLB_OK;
}

static bool has_column(const csv *self, column wanted)
{
    for (int i = 0; i < self->columns; i++) {
        if (self->order[i] == wanted) {
            return true;
        }
    }
    return false;
}

static eplb_status read_header(csv *self, eplb_error *error)
{
    const char *end = NULL;
    eplb_status status = find_line(self, &end, error);
    const char *next = self->scanner.input->cursor;
    while (status == EPLB_OK && next <= end) {
        const char *comma = find_byte(next, end, ',');
        status = add_column(self, next, comma, error);
        next = comma + 1;
    }
    for (column c = LAYER; c < COLUMNS && status == EPLB_OK; c++) {
        if (!has_column(self, c)) {
            status = eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "no column '%s'",
                                    column_names[c]);
        }
    }
    if (status == EPLB_OK) {
        leave_line(self, end);
    }
    return status;
}

static eplb_status open_counts(eplb_source *source, eplb_error *error)
{
    csv *self = eplb_alloc_zeroed(&source->hooks, 1, sizeof(*self));
    source->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_scanner_init(&self->scanner, &source->input, error);
    self->scanner.one_line = true;
    if (status == EPLB_OK) {
        status = eplb_input_skip_bom(&source->input, error);
    }
    return status == EPLB_OK ? read_header(self, error) : status;
}

/* Reads a field that is not a short integer between at most some spaces. */
static eplb_status read_any_field(csv *self, column which, const char *begin, const char *end,
                                  eplb_error *error)
{
    char text[EPLB_NUMBER_LENGTH + 1];
    trim(&begin, &end);
    size_t length = (size_t)(end - begin);
    if (length > 0 && *begin == '"') {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "%s is quoted: fields must be plain numbers", column_names[which]);
    }
    if (length > EPLB_NUMBER_LENGTH) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "%s has more than %d characters", column_names[which],
                              EPLB_NUMBER_LENGTH);
    }
    memcpy(text, begin, length);
    text[length] = '\0';
    bool integer = true;
    eplb_number_class number =
        eplb_number_parse(text, length, self->scanner.c_locale, &self->fields[which], &integer);
    if (number != EPLB_NUMBER_COUNT) {
        return eplb_scan_bad_number(&self->scanner, number, column_names[which],
                                    length > 0 ? text : "''", length > 0 ? length : 2, error);
    }
    if (!integer && which != TOKENS) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "%s %s is not an integer",
                              column_names[which], eplb_quote_bytes(text, length).text);
    }
    return EPLB_OK;
}

/* Reads the field at *next; *next is then behind its comma, or at `end`. */
static eplb_status read_field(csv *self, column which, const char **next, const char *end,
                              eplb_error *error)
{
    const char *begin = *next;
    uint64_t value;
    while (*begin == ' ') {
        begin++;
    }
    const char *stop = eplb_number_digits(begin, &value);
    if (stop != NULL && (*stop == ',' || stop == end)) {
        self->fields[which] = (double)value;
        *next = stop;
        return EPLB_OK;
    }
    *next = find_byte(*next, end, ',');
    return read_any_field(self, which, begin < end ? begin : end, *next, error);
}

static eplb_status check_limit(csv *self, column which, int32_t limit, eplb_status status,
                               eplb_error *error)
{
    if (self->fields[which] < (double)limit) {
        return EPLB_OK;
    }
    return eplb_scan_fail(&self->scanner, status, error, "%s %.0f not in 0..%d",
                          column_names[which], self->fields[which], limit - 1);
}

static eplb_status check_fields(csv *self, const eplb_read_options *options, eplb_error *error)
{
    eplb_status status = check_limit(self, LAYER, options->max_layers, EPLB_ERROR_LIMIT, error);
    if (status == EPLB_OK && options->experts > 0) {
        self->scanner.layer = (int32_t)self->fields[LAYER];
        status = check_limit(self, EXPERT, options->experts, EPLB_ERROR_DATA, error);
    }
    return status == EPLB_OK
               ? check_limit(self, EXPERT, options->max_experts, EPLB_ERROR_LIMIT, error)
               : status;
}

static eplb_status read_fields(csv *self, const eplb_read_options *options, const char *end,
                               eplb_error *error)
{
    const char *next = self->scanner.input->cursor;
    eplb_status status = EPLB_OK;
    self->scanner.layer = -1;
    for (int i = 0; i < self->columns && status == EPLB_OK; i++) {
        status = read_field(self, self->order[i], &next, end, error);
        bool last = i == self->columns - 1;
        if (status == EPLB_OK && last != (next >= end)) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "%s, expected %d",
                                  last ? "more fields" : "fewer fields", self->columns);
        }
        next++;
    }
    return status == EPLB_OK ? check_fields(self, options, error) : status;
}

/* Reads the line at the cursor into `fields`, without leaving it. Blank lines may only end the
 * file. */
static eplb_status read_line(csv *self, const eplb_read_options *options, eplb_error *error)
{
    bool after_blank = false;
    self->has_line = false;
    for (;;) {
        const char *end = NULL;
        eplb_status status = find_line(self, &end, error);
        if (status != EPLB_OK) {
            return status;
        }
        const char *begin = self->scanner.input->cursor;
        if (begin == end && end == self->scanner.input->limit) {
            return EPLB_OK;
        }
        const char *last = end;
        trim(&begin, &last);
        if (begin < last && after_blank) {
            return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                                  "a line behind a blank line");
        }
        if (begin < last) {
            self->has_line = true;
            return read_fields(self, options, last, error);
        }
        after_blank = true;
        leave_line(self, end);
    }
}

/* Puts the line at the cursor into the row and leaves it. */
static eplb_status add_to_row(csv *self, const eplb_hooks *hooks, int32_t max_experts,
                              eplb_error *error)
{
    eplb_counts_buffer *row = &self->row;
    int32_t expert = (int32_t)self->fields[EXPERT];
    while (row->length <= expert) {
        if (!eplb_counts_buffer_grow(row, hooks, max_experts)) {
            return eplb_out_of_memory(error);
        }
        row->values[row->length++] = -1.0;
    }
    if (row->values[expert] >= 0.0) {
        self->scanner.layer = (int32_t)self->fields[LAYER];
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              "expert %d a second time in step %.0f", expert, self->fields[STEP]);
    }
    row->values[expert] = self->fields[TOKENS];
    const eplb_input *input = self->scanner.input;
    const char *end = find_byte(input->cursor, input->limit, '\n');
    if (end == input->limit) { /* a number may have been cut and still be one */
        eplb_warn(hooks, "%s: the last line has no newline: is the file whole?", input->name);
    }
    leave_line(self, end);
    return EPLB_OK;
}

static eplb_status read_row(csv *self, const eplb_source *source, eplb_error *error)
{
    double step = self->fields[STEP];
    double layer = self->fields[LAYER];
    eplb_status status = EPLB_OK;
    self->row.length = 0;
    while (status == EPLB_OK && self->has_line && self->fields[STEP] == step &&
           self->fields[LAYER] == layer) {
        status = add_to_row(self, &source->hooks, source->options.max_experts, error);
        if (status == EPLB_OK) {
            status = read_line(self, &source->options, error);
        }
    }
    for (int32_t e = 0; e < self->row.length; e++) {
        self->row.values[e] = self->row.values[e] < 0.0 ? 0.0 : self->row.values[e];
    }
    return status;
}

/* Reads the line behind the header, which there must be. */
static eplb_status read_first_line(csv *self, const eplb_read_options *options, eplb_error *error)
{
    eplb_status status = read_line(self, options, error);
    if (status == EPLB_OK && !self->has_line) {
        status =
            eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "no counts behind the header");
    }
    self->has_rows = true;
    return status;
}

static eplb_status next_counts(eplb_source *source, eplb_counts_row *row, eplb_error *error)
{
    csv *self = source->state;
    eplb_status status = self->has_rows ? EPLB_OK : read_first_line(self, &source->options, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!self->has_line) {
        return EPLB_END;
    }
    eplb_counts_row read = {.step = (int64_t)self->fields[STEP],
                            .layer = (int32_t)self->fields[LAYER]};
    status = read_row(self, source, error);
    if (status == EPLB_OK) {
        read.length = self->row.length;
        read.counts = self->row.values;
        *row = read;
    }
    return status;
}

static void close_counts(eplb_source *source)
{
    csv *self = source->state;
    if (self != NULL) {
        eplb_scanner_close(&self->scanner);
        eplb_free(&source->hooks, self->row.values);
        eplb_free(&source->hooks, self);
    }
}

const eplb_format eplb_format_csv = {
    .name = "csv",
    .description = "CSV with the header step,layer,expert,tokens (step optional)",
    .flags = EPLB_FORMAT_READS_COUNTS,
    .probe = probe,
    .counts = {.open = open_counts, .next = next_counts, .close = close_counts, .short_rows = true},
};
