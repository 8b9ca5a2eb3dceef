/* SPDX-License-Identifier: MIT */
#include <eplb/waits_file.h>

#include "base/memory.h"
#include "base/range.h"
#include "format/csv_lines.h"

static const char what[] = "waits read options";

static const eplb_csv_table table = {
    .names = {"step", "layer", "rank", "wait_us"},
    .content = "waits",
    .places_values = true,
};

struct eplb_waits_reader {
    eplb_hooks hooks;
    eplb_waits_read_options options;
    eplb_input input;
    eplb_csv_lines lines;
    eplb_status finished; /* EPLB_OK while rows may come */
};

void eplb_waits_read_options_init(eplb_waits_read_options *options)
{
    if (options != NULL) {
        *options = (eplb_waits_read_options){
            .struct_size = sizeof(*options), .max_layers = 1024, .max_ranks = 4096};
    }
}

static eplb_status resolve_options(const eplb_waits_read_options *options,
                                   eplb_waits_read_options *resolved, eplb_error *error)
{
    eplb_waits_read_options_init(resolved);
    if (options != NULL && !eplb_struct_in(resolved, sizeof(*resolved), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "%s without struct_size: see eplb_waits_read_options_init", what);
    }
    eplb_status status = eplb_check_range(what, "ranks", resolved->ranks, 0, EPLB_MAX_RANKS, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "limit of layers", resolved->max_layers, 1, EPLB_MAX_LAYERS,
                                  error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_check_range(what, "limit of ranks", resolved->max_ranks, 1, EPLB_MAX_RANKS, error);
    }
    return status;
}

static eplb_status open_input(eplb_waits_reader *reader, const char *path, eplb_error *error)
{
    eplb_input *input = &reader->input;
    eplb_status status = eplb_input_open(input, &reader->hooks, path, error);
    if (status == EPLB_OK) {
        status = eplb_input_need(input, 1, error);
    }
    if (status == EPLB_OK && eplb_input_unread(input) == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: the file is empty", input->name);
    }
    return status == EPLB_OK ? eplb_csv_open(&reader->lines, &table, input, error) : status;
}

eplb_status eplb_waits_open(eplb_waits_reader **out, const eplb_hooks *hooks, const char *path,
                            const eplb_waits_read_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || path == NULL || path[0] == '\0') {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "waits: no output or no path");
    }
    eplb_waits_read_options complete;
    eplb_status status = resolve_options(options, &complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_waits_reader *reader = eplb_alloc_zeroed(&resolved, 1, sizeof(*reader));
    if (reader == NULL) {
        return eplb_out_of_memory(error);
    }
    reader->hooks = resolved;
    reader->options = complete;
    status = open_input(reader, path, error);
    if (status != EPLB_OK) {
        eplb_waits_close(&reader);
        return status;
    }
    *out = reader;
    return EPLB_OK;
}

void eplb_waits_close(eplb_waits_reader **reader)
{
    if (reader == NULL || *reader == NULL) {
        return;
    }
    eplb_waits_reader *self = *reader;
    eplb_hooks hooks = self->hooks;
    eplb_csv_close(&self->lines);
    eplb_input_close(&self->input);
    eplb_free(&hooks, self);
    *reader = NULL;
}

static eplb_status check_fields(eplb_csv_lines *lines, const eplb_waits_read_options *options,
                                eplb_error *error)
{
    bool ranks_known = options->ranks > 0;
    lines->scanner.layer = -1;
    eplb_status status =
        eplb_csv_check_limit(lines, EPLB_CSV_LAYER, options->max_layers, EPLB_ERROR_LIMIT, error);
    if (status != EPLB_OK) {
        return status;
    }
    lines->scanner.layer = (int32_t)lines->fields[EPLB_CSV_LAYER];
    status = eplb_csv_check_limit(lines, EPLB_CSV_ITEM,
                                  ranks_known ? options->ranks : options->max_ranks,
                                  ranks_known ? EPLB_ERROR_DATA : EPLB_ERROR_LIMIT, error);
    double wait = lines->fields[EPLB_CSV_VALUE];
    if (status == EPLB_OK && wait > EPLB_MAX_WAIT_US) {
        return eplb_scan_fail(&lines->scanner, EPLB_ERROR_DATA, error,
                              "rank %.0f: wait_us %.17g not in 0..%.17g",
                              lines->fields[EPLB_CSV_ITEM], wait, EPLB_MAX_WAIT_US);
    }
    return status;
}

static eplb_status next_row(eplb_waits_reader *reader, eplb_waits_row *row, eplb_error *error)
{
    eplb_csv_lines *lines = &reader->lines;
    eplb_status status = eplb_csv_read_line(lines, error);
    if (status != EPLB_OK || !lines->has_line) {
        return status == EPLB_OK ? EPLB_END : status;
    }
    status = check_fields(lines, &reader->options, error);
    if (status == EPLB_OK) {
        *row = (eplb_waits_row){
            .step = (int64_t)lines->fields[EPLB_CSV_STEP],
            .layer = (int32_t)lines->fields[EPLB_CSV_LAYER],
            .rank = (int32_t)lines->fields[EPLB_CSV_ITEM],
            .microseconds = lines->fields[EPLB_CSV_VALUE],
        };
        eplb_csv_leave_line(lines);
    }
    return status;
}

eplb_status eplb_waits_next(eplb_waits_reader *reader, eplb_waits_row *row, eplb_error *error)
{
    if (reader == NULL || row == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "waits: no reader or no row");
    }
    if (reader->finished == EPLB_OK) {
        reader->finished = next_row(reader, row, error);
    } else if (reader->finished != EPLB_END) {
        return eplb_error_set(error, reader->finished, "%s: an earlier read failed",
                              reader->input.name);
    }
    return reader->finished;
}

/* Puts all rows into the builder. */
static eplb_status drain(eplb_waits_reader *reader, eplb_waits_builder *builder, eplb_error *error)
{
    eplb_waits_row row;
    eplb_status status;
    while ((status = eplb_waits_next(reader, &row, error)) == EPLB_OK) {
        status = eplb_waits_builder_add(builder, row.layer, row.rank, row.microseconds, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    return status == EPLB_END ? EPLB_OK : status;
}

eplb_status eplb_waits_read(eplb_waits **out, const eplb_hooks *hooks, const char *path,
                            const eplb_waits_read_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("waits", "output", out, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_waits_reader *reader = NULL;
    eplb_waits_builder *builder = NULL;
    status = eplb_waits_open(&reader, hooks, path, options, error);
    if (status == EPLB_OK) {
        const eplb_waits_read_options *known = &reader->options;
        int32_t ranks = known->ranks > 0 ? known->ranks : known->max_ranks;
        status = eplb_waits_builder_create(&builder, hooks, known->max_layers, ranks, error);
    }
    if (status == EPLB_OK) {
        status = drain(reader, builder, error);
    }
    if (status == EPLB_OK) {
        status = eplb_waits_builder_finish(builder, out, reader->options.ranks, error);
    }
    eplb_waits_builder_destroy(&builder);
    eplb_waits_close(&reader);
    return status;
}
