/* SPDX-License-Identifier: MIT */
/* Counts as JSON lines: {"step":t,"layer":l,"counts":[experts]}, keys in any order, `step`
 * optional in all lines, other keys ignored. */
#include "format/jsonl_write.h"
#include "format/probe_json.h"
#include "format/scanner.h"

typedef struct jsonl {
    eplb_scanner scanner;
    eplb_counts_buffer row;
    int32_t width;  /* of every row; 0 until one was read */
    bool has_steps; /* every row */
} jsonl;

/* What one line says. */
typedef struct record {
    int64_t step;
    int64_t layer;
    bool has_step;
    bool has_layer;
    bool has_counts;
} record;

static bool probe(const eplb_probe *probe)
{
    return eplb_probe_json_key(probe, "counts") || eplb_probe_json_key(probe, "layer");
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    jsonl *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_scanner_init(&self->scanner, &reading->input, error);
    self->scanner.one_line = true;
    return status == EPLB_OK ? eplb_input_skip_bom(&reading->input, error) : status;
}

static eplb_status read_layer(eplb_scanner *scanner, int32_t max_layers, record *line,
                              eplb_error *error)
{
    eplb_status status = eplb_scan_first_time(scanner, &line->has_layer, "layer", error);
    if (status == EPLB_OK) {
        status = eplb_scan_integer(scanner, "layer", max_layers - 1, &line->layer, error);
    }
    if (status == EPLB_OK) {
        scanner->layer = (int32_t)line->layer;
    }
    return status;
}

static eplb_status read_counts(jsonl *self, int32_t max_experts, record *line, eplb_error *error)
{
    eplb_status status = eplb_scan_first_time(&self->scanner, &line->has_counts, "counts", error);
    if (status == EPLB_OK) {
        status = eplb_scan_expect(&self->scanner, '[', "'[': a list of counts", error);
    }
    return status == EPLB_OK ? eplb_scan_counts(&self->scanner, &self->row, max_experts, error)
                             : status;
}

static eplb_status read_member(jsonl *self, const eplb_read_options *options, const char *key,
                               record *line, eplb_error *error)
{
    if (strcmp(key, "counts") == 0) {
        return read_counts(self, options->max_experts, line, error);
    }
    if (strcmp(key, "layer") == 0) {
        return read_layer(&self->scanner, options->max_layers, line, error);
    }
    if (strcmp(key, "step") == 0) {
        eplb_status status = eplb_scan_first_time(&self->scanner, &line->has_step, key, error);
        return status == EPLB_OK ? eplb_scan_integer(&self->scanner, "step", EPLB_EXACT_INTEGER,
                                                     &line->step, error)
                                 : status;
    }
    return eplb_scan_skip(&self->scanner, error);
}

static eplb_status read_object(jsonl *self, const eplb_read_options *options, record *line,
                               eplb_error *error)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(&self->scanner, '{', "'{'", error);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(&self->scanner, &first, key, &more, error);
        if (status == EPLB_OK && more) {
            status = read_member(self, options, key, line, error);
        }
    }
    return status;
}

/* A line without a step among others with one would count in step 0. */
static eplb_status check_step(jsonl *self, const record *line, eplb_error *error)
{
    if (self->width > 0 && line->has_step != self->has_steps) {
        return eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                              self->has_steps ? "no key 'step', but the lines before have one"
                                              : "key 'step', but the lines before have none");
    }
    self->has_steps = line->has_step;
    return EPLB_OK;
}

/* What is not wrong with a single key: a missing one, the width, what follows on the line. */
static eplb_status check_line(jsonl *self, const eplb_read_options *options, const record *line,
                              eplb_error *error)
{
    const eplb_scanner *scanner = &self->scanner;
    if (!line->has_layer || !line->has_counts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key '%s'",
                              line->has_layer ? "counts" : "layer");
    }
    eplb_status status =
        eplb_scan_check_width(scanner, self->row.length, options, &self->width, error);
    return status == EPLB_OK ? eplb_scan_line_end(&self->scanner, error) : status;
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    jsonl *self = reading->state;
    self->scanner.layer = -1;
    int next;
    eplb_status status = eplb_scan_next_line(&self->scanner, &next, error);
    if (status == EPLB_OK && next == EPLB_SCAN_END) {
        return self->width > 0 ? EPLB_END
                               : eplb_scan_fail(&self->scanner, EPLB_ERROR_PARSE, error,
                                                "no counts in the file");
    }
    record line = {0};
    if (status == EPLB_OK) {
        status = read_object(self, &reading->options, &line, error);
    }
    if (status == EPLB_OK) {
        status = check_step(self, &line, error);
    }
    if (status == EPLB_OK) {
        status = check_line(self, &reading->options, &line, error);
    }
    if (status == EPLB_OK) {
        *row = (eplb_counts_row){.step = line.step,
                                 .layer = (int32_t)line.layer,
                                 .length = self->row.length,
                                 .counts = self->row.values};
    }
    return status;
}

static void close_counts(eplb_reading *reading)
{
    jsonl *self = reading->state;
    if (self != NULL) {
        eplb_scanner_close(&self->scanner);
        eplb_free(&reading->hooks, self->row.values);
        eplb_free(&reading->hooks, self);
    }
}

const eplb_format eplb_format_jsonl = {
    .name = "jsonl",
    .description = "JSON lines {\"step\":t,\"layer\":l,\"counts\":[...]}",
    .engine = "any",
    .recognised = "JSON lines that begin with counts or layer",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_WRITES_COUNTS | EPLB_FORMAT_ANY_LAYER_IDS,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .begin = eplb_jsonl_begin,
               .write_row = eplb_jsonl_write_row,
               .end = eplb_jsonl_end},
};
