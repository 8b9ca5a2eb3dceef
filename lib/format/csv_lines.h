/* SPDX-License-Identifier: MIT */
/*
 * Lines of CSV that say a number about something in a layer of a step: the header names the columns
 * (`step` optional, in any order), each other line has a number in each. Blank lines may only end
 * the file.
 */
#ifndef EPLB_FORMAT_CSV_LINES_H
#define EPLB_FORMAT_CSV_LINES_H

#include "format/scanner.h"

typedef enum eplb_csv_column {
    EPLB_CSV_STEP,
    EPLB_CSV_LAYER,
    EPLB_CSV_ITEM, /* what the number is about: an expert, a rank */
    EPLB_CSV_VALUE,
    EPLB_CSV_COLUMNS
} eplb_csv_column;

/* The columns of one kind of file. Constant. */
typedef struct eplb_csv_table {
    const char *names[EPLB_CSV_COLUMNS]; /* all but the value are integers */
    const char *content;                 /* what the values are, for errors: "counts" */
    bool places_values; /* errors in a value name the layer and the item that stand before it */
} eplb_csv_table;

typedef struct eplb_csv_lines {
    const eplb_csv_table *table;
    eplb_scanner scanner;
    eplb_csv_column order[EPLB_CSV_COLUMNS]; /* of the file */
    int columns;
    double fields[EPLB_CSV_COLUMNS]; /* of the line at the cursor; >= 0, a missing step is 0 */
    const char *line_end; /* of the line at the cursor: its newline, or the end of the file */
    bool started;         /* the first line behind the header was read */
    bool has_line;        /* `fields` are valid */
    bool item_known;      /* errors in the value name the item */
} eplb_csv_lines;

/* How many fields of the first line of a text are columns of the table, in quotes or not. */
int eplb_csv_known_columns(const eplb_csv_table *table, const char *text, size_t size);

/* Reads the header. To be closed whether it fails or not. */
eplb_status eplb_csv_open(eplb_csv_lines *self, const eplb_csv_table *table, eplb_input *input,
                          eplb_error *error);
void eplb_csv_close(eplb_csv_lines *self);

/* Reads the line at the cursor into `fields`, without leaving it; at the end of the file has_line
 * is false. A file without any line behind its header is an error. */
eplb_status eplb_csv_read_line(eplb_csv_lines *self, eplb_error *error);

/* Moves on to the next line. A last line without a newline is a warning: a number may have been cut
 * and still be one. */
void eplb_csv_leave_line(eplb_csv_lines *self);

/*
 * Takes the lines behind `line`, which was just left, as long as they begin as it does, up to the
 * last two fields, and these are an item and a value of at most 7 digits each: the value goes to
 * values[item]. Stops before any other line, an item of `room` or above, and one whose value is not
 * negative: it has one already. *end becomes larger than each item.
 */
void eplb_csv_take_plain(eplb_csv_lines *self, const char *line, double *values, int32_t room,
                         int32_t *end);

/* The error of a field that is not below `limit`. */
eplb_status eplb_csv_beyond_limit(const eplb_csv_lines *self, eplb_csv_column which, int32_t limit,
                                  eplb_status status, eplb_error *error);

/* Makes sure that a field is below `limit`, else fails with `status`. */
static inline eplb_status eplb_csv_check_limit(const eplb_csv_lines *self, eplb_csv_column which,
                                               int32_t limit, eplb_status status, eplb_error *error)
{
    return self->fields[which] < (double)limit
               ? EPLB_OK
               : eplb_csv_beyond_limit(self, which, limit, status, error);
}

#endif
