/* SPDX-License-Identifier: MIT */
#include "format/mindie_ranks.h"

#include <stdio.h>

#include "base/memory.h"
#include "format/one_model.h"
#include "format/scan_token.h"
#include "format/warn.h"

bool eplb_mindie_rank_of(const char *name, const char *phase, int32_t *rank)
{
    char prefix[16];
    snprintf(prefix, sizeof(prefix), "%s_", phase);
    return eplb_listing_number(name, prefix, ".csv", rank);
}

eplb_status eplb_mindie_ranks_check(const eplb_reading *directory, const char *phase,
                                    eplb_error *error)
{
    const eplb_listing *listing = directory->listing;
    eplb_ranks ranks = {0};
    eplb_error inner;
    eplb_status status = EPLB_OK;
    for (int32_t i = 0; i < listing->count && status == EPLB_OK; i++) {
        int32_t rank;
        if (eplb_mindie_rank_of(listing->names[i], phase, &rank)) {
            status = eplb_ranks_add(&ranks, &directory->hooks, listing->names[i], rank, &inner);
        }
    }
    if (status == EPLB_OK) {
        status = eplb_ranks_check(&ranks, &inner);
    }
    eplb_ranks_clear(&ranks, &directory->hooks);
    return status == EPLB_OK
               ? status
               : eplb_error_set(error, status, "%s: %s", directory->input.name, inner.message);
}

static eplb_status open_file(eplb_mindie_ranks *self, const char *name, eplb_error *error)
{
    eplb_mindie_file *file = &self->files[self->count];
    eplb_status status = eplb_reading_open_child(self->directory, name, &file->reading, error);
    if (status != EPLB_OK) {
        return status;
    }
    self->count++;
    status = eplb_scanner_init(&file->scanner, &file->reading.input, error);
    file->scanner.one_line = true;
    return status == EPLB_OK ? eplb_input_skip_bom(&file->reading.input, error) : status;
}

/* The names of a listing are in the order of their numbers. */
eplb_status eplb_mindie_ranks_open(eplb_mindie_ranks *self, const eplb_reading *directory,
                                   const char *phase, eplb_error *error)
{
    const eplb_listing *listing = directory->listing;
    self->directory = directory;
    self->files = eplb_alloc(&directory->hooks, (size_t)listing->count, sizeof(*self->files));
    eplb_status status = self->files != NULL ? EPLB_OK : eplb_out_of_memory(error);
    for (int32_t i = 0; i < listing->count && status == EPLB_OK; i++) {
        int32_t rank;
        if (eplb_mindie_rank_of(listing->names[i], phase, &rank)) {
            status = open_file(self, listing->names[i], error);
        }
    }
    return status;
}

void eplb_mindie_ranks_close(eplb_mindie_ranks *self)
{
    for (int32_t f = 0; f < self->count; f++) {
        eplb_scanner_close(&self->files[f].scanner);
        eplb_reading_close(&self->files[f].reading);
    }
    if (self->directory != NULL) {
        const eplb_hooks *hooks = &self->directory->hooks;
        eplb_free(hooks, self->files);
        eplb_free(hooks, self->row.values);
        eplb_free(hooks, self->sums.values);
    }
    *self = (eplb_mindie_ranks){0};
}

static const char *name_of(const eplb_mindie_ranks *self, int32_t file)
{
    return self->files[file].reading.input.name;
}

/* Reads a number, most often a short one that is in the buffer with what follows it. */
static eplb_status read_number(eplb_scanner *scanner, double *value, eplb_error *error)
{
    const char *end = eplb_number_plain(scanner->input->cursor, value);
    if (end != NULL && (*end == ',' || *end == '\n')) {
        scanner->input->cursor = end;
        return EPLB_OK;
    }
    eplb_token token;
    bool integer;
    return eplb_scan_number(scanner, "", value, &integer, &token, error);
}

/* What came since the sum of the iteration before. A counter that fell was set back: what came
 * before and after that is not known. */
static eplb_status take_difference(eplb_mindie_ranks *self, const eplb_scanner *scanner,
                                   double *value, eplb_error *error)
{
    double sum = *value;
    double *before = &self->sums.values[self->sum++];
    if (sum < *before) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                              "%.17g, but %.17g in the iteration before: sums do not fall", sum,
                              *before);
    }
    *value = sum - *before;
    *before = sum;
    return EPLB_OK;
}

/* Appends the sum to those of the first iteration, which it begins from 0. */
static eplb_status keep_sum(eplb_mindie_ranks *self, double value, eplb_error *error)
{
    if (self->sums.length == INT32_MAX ||
        !eplb_counts_buffer_grow(&self->sums, &self->directory->hooks, INT32_MAX)) {
        return eplb_out_of_memory(error);
    }
    self->sums.values[self->sums.length++] = value;
    self->sum++;
    return EPLB_OK;
}

static eplb_status add_number(eplb_mindie_ranks *self, eplb_scanner *scanner, bool first_iteration,
                              eplb_error *error)
{
    eplb_counts_buffer *row = &self->row;
    int32_t limit = self->directory->options.max_experts;
    if (row->length == limit) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error,
                              "more than %d counts in a row of all ranks", limit);
    }
    if (!eplb_counts_buffer_grow(row, &self->directory->hooks, limit)) {
        return eplb_out_of_memory(error);
    }
    double *value = &row->values[row->length];
    scanner->expert = row->length;
    eplb_status status = read_number(scanner, value, error);
    if (status == EPLB_OK && self->is_cumulative) {
        status = first_iteration ? keep_sum(self, *value, error)
                                 : take_difference(self, scanner, value, error);
    }
    scanner->expert = -1;
    row->length++;
    return status;
}

/* Reads what stands behind a number. *more: another one must follow. */
static eplb_status read_separator(eplb_scanner *scanner, bool *more, eplb_error *error)
{
    eplb_input *input = scanner->input;
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (next != ',' && next != '\n' && next != EPLB_SCAN_END) {
        return eplb_scan_unexpected(scanner, next, "',' or the end of the line", error);
    }
    *more = next == ',';
    if (next == EPLB_SCAN_END) {
        eplb_warn(&input->hooks, "%s: the last line has no newline: is the file whole?",
                  input->name);
    } else if (*more) {
        input->cursor++;
    }
    return EPLB_OK;
}

static void leave_line(eplb_input *input)
{
    if (input->cursor < input->limit) {
        eplb_input_newline(input, input->cursor);
        input->cursor++;
    }
}

static eplb_status wrong_columns(const eplb_mindie_ranks *self, int32_t f, const char *more,
                                 int32_t columns, eplb_error *error)
{
    return eplb_scan_fail(&self->files[f].scanner, EPLB_ERROR_DATA, error,
                          "%s%d columns, but %d in %s", more, columns, self->columns,
                          f > 0 ? name_of(self, 0) : "the lines before");
}

/* Appends the numbers of the line at the cursor to the row. */
static eplb_status read_line(eplb_mindie_ranks *self, int32_t f, bool first_iteration,
                             eplb_error *error)
{
    eplb_scanner *scanner = &self->files[f].scanner;
    int32_t columns = 0;
    bool more = true;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && more) {
        if (self->columns > 0 && columns == self->columns) {
            return wrong_columns(self, f, "more than ", columns, error);
        }
        status = add_number(self, scanner, first_iteration, error);
        columns++;
        if (status == EPLB_OK) {
            status = read_separator(scanner, &more, error);
        }
    }
    if (status == EPLB_OK && self->columns > 0 && columns != self->columns) {
        status = wrong_columns(self, f, "", columns, error);
    }
    if (status == EPLB_OK) {
        self->columns = columns;
        leave_line(scanner->input);
    }
    return status;
}

/* Whether a line follows. Blank lines may only end the file. */
static eplb_status find_line(eplb_scanner *scanner, bool *found, eplb_error *error)
{
    bool after_blank = false;
    int next;
    eplb_status status;
    while ((status = eplb_scan_peek(scanner, &next, error)) == EPLB_OK && next == '\n') {
        leave_line(scanner->input);
        after_blank = true;
    }
    *found = status == EPLB_OK && next != EPLB_SCAN_END;
    if (*found && after_blank) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "a line behind a blank line");
    }
    return status;
}

/* The first file ended: the others must, too. */
static eplb_status check_end(eplb_mindie_ranks *self, eplb_error *error)
{
    if (self->rows == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: no counts in the file",
                              name_of(self, 0));
    }
    for (int32_t f = 1; f < self->count; f++) {
        bool found;
        eplb_status status = find_line(&self->files[f].scanner, &found, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (found) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "%s: more than the %lld rows of %s",
                                  name_of(self, f), (long long)self->rows, name_of(self, 0));
        }
    }
    return EPLB_END;
}

eplb_status eplb_mindie_ranks_next(eplb_mindie_ranks *self, int64_t step, int32_t layer,
                                   eplb_error *error)
{
    self->row.length = 0;
    self->sum = layer == 0 ? 0 : self->sum;
    bool first_iteration = self->rows <= layer;
    for (int32_t f = 0; f < self->count; f++) {
        eplb_scanner *scanner = &self->files[f].scanner;
        bool found;
        scanner->step = self->is_cumulative ? step : -1;
        scanner->layer = layer;
        eplb_status status = find_line(scanner, &found, error);
        if (status == EPLB_OK && !found) {
            return f == 0
                       ? check_end(self, error)
                       : eplb_error_set(error, EPLB_ERROR_DATA, "%s: %lld rows, but more in %s",
                                        name_of(self, f), (long long)self->rows, name_of(self, 0));
        }
        if (status == EPLB_OK) {
            status = read_line(self, f, first_iteration, error);
        }
        if (status != EPLB_OK) {
            return status;
        }
    }
    self->rows++;
    return EPLB_OK;
}
