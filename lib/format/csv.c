/* SPDX-License-Identifier: MIT */
/* Counts as CSV with the header `step,layer,expert,tokens`: `step` optional, columns in any order,
 * one expert a line. The lines of one step and layer that follow each other make one row. */
#include "format/csv_lines.h"
#include "format/csv_write.h"
#include "format/format.h"

static const eplb_csv_table table = {
    .names = {"step", "layer", "expert", "tokens"},
    .content = "counts",
};

typedef struct csv {
    eplb_csv_lines lines;   /* the line at the cursor is not yet in a row */
    eplb_counts_buffer row; /* -1 for an expert that no line has named */
    int32_t prepared;       /* values of the row that are, also behind its length */
} csv;

/* A header in quotes is recognised, too, for the reader to refuse with the reason. */
static bool probe(const eplb_probe *probe)
{
    return eplb_csv_known_columns(&table, probe->data, probe->size) >= 2;
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    csv *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    return eplb_csv_open(&self->lines, &table, &reading->input, error);
}

static eplb_status check_fields(csv *self, const eplb_read_options *options, eplb_error *error)
{
    eplb_csv_lines *lines = &self->lines;
    eplb_status status =
        eplb_csv_check_limit(lines, EPLB_CSV_LAYER, options->max_layers, EPLB_ERROR_LIMIT, error);
    if (status == EPLB_OK && options->experts > 0) {
        lines->scanner.layer = (int32_t)lines->fields[EPLB_CSV_LAYER];
        status =
            eplb_csv_check_limit(lines, EPLB_CSV_ITEM, options->experts, EPLB_ERROR_DATA, error);
    }
    return status == EPLB_OK ? eplb_csv_check_limit(lines, EPLB_CSV_ITEM, options->max_experts,
                                                    EPLB_ERROR_LIMIT, error)
                             : status;
}

static eplb_status read_line(csv *self, const eplb_read_options *options, eplb_error *error)
{
    eplb_status status = eplb_csv_read_line(&self->lines, error);
    return status == EPLB_OK && self->lines.has_line ? check_fields(self, options, error) : status;
}

/* Takes what follows the line that was left and is as plain. */
static void take_plain(csv *self, const eplb_read_options *options, const char *line)
{
    eplb_counts_buffer *row = &self->row;
    int32_t room =
        options->experts > 0 && options->experts < row->capacity ? options->experts : row->capacity;
    self->prepared = self->prepared > row->length ? self->prepared : row->length;
    while (self->prepared < room) {
        row->values[self->prepared++] = -1.0;
    }
    eplb_csv_take_plain(&self->lines, line, row->values, room, &row->length);
}

/* Puts the line at the cursor into the row and leaves it. */
static eplb_status add_to_row(csv *self, const eplb_hooks *hooks, const eplb_read_options *options,
                              eplb_error *error)
{
    eplb_counts_buffer *row = &self->row;
    const char *line = self->lines.scanner.input->cursor;
    int32_t expert = (int32_t)self->lines.fields[EPLB_CSV_ITEM];
    while (row->length <= expert) {
        if (!eplb_counts_buffer_grow(row, hooks, options->max_experts)) {
            return eplb_out_of_memory(error);
        }
        row->values[row->length++] = -1.0;
    }
    if (row->values[expert] >= 0.0) {
        self->lines.scanner.layer = (int32_t)self->lines.fields[EPLB_CSV_LAYER];
        return eplb_scan_fail(&self->lines.scanner, EPLB_ERROR_PARSE, error,
                              "expert %d a second time in step %.0f", expert,
                              self->lines.fields[EPLB_CSV_STEP]);
    }
    row->values[expert] = self->lines.fields[EPLB_CSV_VALUE];
    eplb_csv_leave_line(&self->lines);
    take_plain(self, options, line);
    return EPLB_OK;
}

static eplb_status read_row(csv *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_csv_lines *lines = &self->lines;
    double step = lines->fields[EPLB_CSV_STEP];
    double layer = lines->fields[EPLB_CSV_LAYER];
    eplb_status status = EPLB_OK;
    self->row.length = self->prepared = 0;
    while (status == EPLB_OK && lines->has_line && lines->fields[EPLB_CSV_STEP] == step &&
           lines->fields[EPLB_CSV_LAYER] == layer) {
        status = add_to_row(self, &reading->hooks, &reading->options, error);
        if (status == EPLB_OK) {
            status = read_line(self, &reading->options, error);
        }
    }
    for (int32_t e = 0; e < self->row.length; e++) {
        self->row.values[e] = self->row.values[e] < 0.0 ? 0.0 : self->row.values[e];
    }
    return status;
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    csv *self = reading->state;
    eplb_status status = self->lines.started ? EPLB_OK : read_line(self, &reading->options, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!self->lines.has_line) {
        return EPLB_END;
    }
    eplb_counts_row read = {.step = (int64_t)self->lines.fields[EPLB_CSV_STEP],
                            .layer = (int32_t)self->lines.fields[EPLB_CSV_LAYER]};
    status = read_row(self, reading, error);
    if (status == EPLB_OK) {
        read.length = self->row.length;
        read.counts = self->row.values;
        *row = read;
    }
    return status;
}

static void close_counts(eplb_reading *reading)
{
    csv *self = reading->state;
    if (self != NULL) {
        eplb_csv_close(&self->lines);
        eplb_free(&reading->hooks, self->row.values);
        eplb_free(&reading->hooks, self);
    }
}

const eplb_format eplb_format_csv = {
    .name = "csv",
    .description = "CSV with the header step,layer,expert,tokens (step optional)",
    .engine = "any",
    .recognised = "a header line with layer, expert and tokens",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_WRITES_COUNTS | EPLB_FORMAT_ANY_LAYER_IDS,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .begin = eplb_csv_begin,
               .write_row = eplb_csv_write_row,
               .end = eplb_csv_end,
               .short_rows = true},
};
