/* SPDX-License-Identifier: MIT */
#include "format/json_counts.h"

#include "format/scanner.h"

/* Where the reader stands between two rows. */
typedef enum position {
    AT_FIRST_ROW, /* of a step, or of all */
    BEHIND_ROW,
    BEHIND_STEP,
    BEHIND_COUNTS,
} position;

typedef struct json_counts {
    eplb_scanner scanner;
    eplb_counts_buffer row;
    const char *key;       /* NULL: the document is the list */
    const char *width_key; /* of a list with rows as wide; NULL: none */
    position position;
    bool has_steps;
    bool in_row; /* the '[' of the first row was read, to see that there are no steps */
    int64_t step;
    int32_t layer;
    int32_t layers; /* of every step; 0 until one was read */
    int32_t width;  /* of every row; 0 until one was read */
} json_counts;

/* A list whose rows have a number for each expert: counts of slots would be wider. */
static eplb_status check_widths(json_counts *self, int32_t limit, eplb_error *error)
{
    eplb_scanner *scanner = &self->scanner;
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '[', "'[': a list of layers", error);
    scanner->layer = -1;
    while (status == EPLB_OK && more) {
        status = eplb_scan_more(scanner, ']', &first, &more, error);
        scanner->layer++;
        if (status == EPLB_OK && more) {
            status = eplb_scan_expect(scanner, '[', "'[': a list of numbers", error);
        }
        if (status == EPLB_OK && more) {
            status = eplb_scan_counts(scanner, &self->row, limit, error);
        }
        if (status == EPLB_OK && more) {
            self->width = self->width > 0 ? self->width : self->row.length;
        }
        if (status == EPLB_OK && more && self->row.length != self->width) {
            status = eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                                    "%d experts in '%s', but %d in the rows before",
                                    self->row.length, self->width_key, self->width);
        }
    }
    scanner->layer = -1;
    return status;
}

/* Steps over a member that is not the counts. */
static eplb_status pass_member(json_counts *self, const eplb_reading *reading, const char *key,
                               eplb_error *error)
{
    int next = 0;
    eplb_status status = eplb_scan_peek(&self->scanner, &next, error);
    bool is_checked = self->width_key != NULL && strcmp(key, self->width_key) == 0 && next == '[' &&
                      reading->options.counted_under == NULL;
    if (status != EPLB_OK) {
        return status;
    }
    return is_checked ? check_widths(self, reading->options.max_experts, error)
                      : eplb_scan_skip(&self->scanner, error);
}

/* Finds the list among the keys of the document. */
static eplb_status find_key(json_counts *self, const eplb_reading *reading, eplb_error *error)
{
    eplb_scanner *scanner = &self->scanner;
    char key[EPLB_KEY_SIZE] = "";
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '{', "'{'", error);
    while (status == EPLB_OK && strcmp(key, self->key) != 0) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status == EPLB_OK && !more) {
            return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key '%s'", self->key);
        }
        if (status == EPLB_OK && strcmp(key, self->key) != 0) {
            status = pass_member(self, reading, key, error);
        }
    }
    return status;
}

/* Reads the brackets in front of the first count, which tell the number of dimensions. */
static eplb_status enter_list(json_counts *self, bool may_have_steps, eplb_error *error)
{
    eplb_scanner *scanner = &self->scanner;
    eplb_status status = eplb_scan_expect(scanner, '[', "'[': a list of layers", error);
    if (status == EPLB_OK) {
        status = eplb_scan_expect(
            scanner, '[',
            may_have_steps ? "'[': a list of counts or of layers" : "'[': a list of counts", error);
    }
    int next = 0;
    if (status == EPLB_OK) {
        status = eplb_scan_peek(scanner, &next, error);
    }
    self->has_steps = may_have_steps && next == '[';
    self->in_row = !self->has_steps;
    return status;
}

eplb_status eplb_json_counts_open(eplb_reading *reading, const char *key, const char *width_key,
                                  bool may_have_steps, eplb_error *error)
{
    json_counts *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->key = key;
    self->width_key = width_key;
    eplb_status status = eplb_scanner_init(&self->scanner, &reading->input, error);
    if (status == EPLB_OK) {
        status = eplb_input_skip_bom(&reading->input, error);
    }
    if (status == EPLB_OK && key != NULL) {
        status = find_key(self, reading, error);
    }
    return status == EPLB_OK ? enter_list(self, may_have_steps, error) : status;
}

static eplb_status read_row(json_counts *self, const eplb_read_options *options,
                            eplb_counts_row *row, eplb_error *error)
{
    eplb_scanner *scanner = &self->scanner;
    scanner->layer = self->layer;
    scanner->step = self->has_steps ? self->step : -1;
    if (self->layer == options->max_layers) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error, "more than %d layers",
                              options->max_layers);
    }
    eplb_status status = EPLB_OK;
    if (!self->in_row) {
        status = eplb_scan_expect(scanner, '[', "'[': a list of counts", error);
    }
    self->in_row = false;
    if (status == EPLB_OK) {
        status = eplb_scan_counts(scanner, &self->row, options->max_experts, error);
    }
    if (status == EPLB_OK) {
        status = eplb_scan_check_width(scanner, self->row.length, options, &self->width, error);
    }
    if (status == EPLB_OK) {
        *row = (eplb_counts_row){.step = self->step,
                                 .layer = self->layer,
                                 .length = self->row.length,
                                 .counts = self->row.values};
        self->layer++;
        self->position = BEHIND_ROW;
    }
    return status;
}

/* All steps have as many layers as the first. */
static eplb_status end_step(json_counts *self, eplb_error *error)
{
    self->scanner.layer = -1;
    if (self->layers > 0 && self->layer != self->layers) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error, "%d layers, expected %d",
                              self->layer, self->layers);
    }
    self->layers = self->layer;
    self->position = self->has_steps ? BEHIND_STEP : BEHIND_COUNTS;
    return EPLB_OK;
}

/* Behind a row: on to the next one of the step, or past the step's end. */
static eplb_status leave_row(json_counts *self, bool *row_follows, eplb_error *error)
{
    eplb_status status = eplb_scan_either(&self->scanner, ',', ']', row_follows, error);
    return status == EPLB_OK && !*row_follows ? end_step(self, error) : status;
}

static eplb_status leave_step(json_counts *self, bool *row_follows, eplb_error *error)
{
    eplb_status status = eplb_scan_either(&self->scanner, ',', ']', row_follows, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!*row_follows) {
        self->position = BEHIND_COUNTS;
        return EPLB_OK;
    }
    self->step++;
    self->layer = 0;
    self->scanner.step = self->step;
    return eplb_scan_expect(&self->scanner, '[', "'[': a list of layers", error);
}

/* Checks the rest of the document. */
static eplb_status finish(json_counts *self, const eplb_reading *reading, eplb_error *error)
{
    eplb_scanner *scanner = &self->scanner;
    scanner->step = -1;
    char key[EPLB_KEY_SIZE];
    bool first = false;
    bool more = self->key != NULL;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status != EPLB_OK || !more) {
            break;
        }
        status = strcmp(key, self->key) == 0 ? eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                                              "second key '%s'", self->key)
                                             : pass_member(self, reading, key, error);
    }
    if (status == EPLB_OK) {
        status = eplb_scan_finish(scanner, error);
    }
    return status == EPLB_OK ? EPLB_END : status;
}

eplb_status eplb_json_counts_next(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    json_counts *self = reading->state;
    bool row_follows = self->position == AT_FIRST_ROW;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && !row_follows && self->position != BEHIND_COUNTS) {
        status = self->position == BEHIND_ROW ? leave_row(self, &row_follows, error)
                                              : leave_step(self, &row_follows, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    return row_follows ? read_row(self, &reading->options, row, error)
                       : finish(self, reading, error);
}

void eplb_json_counts_close(eplb_reading *reading)
{
    json_counts *self = reading->state;
    if (self != NULL) {
        eplb_scanner_close(&self->scanner);
        eplb_free(&reading->hooks, self->row.values);
        eplb_free(&reading->hooks, self);
    }
}
