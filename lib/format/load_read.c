/* SPDX-License-Identifier: MIT */
/* Whole files of counts as a load. */
#include "base/memory.h"
#include "format/display_name.h"
#include "format/format.h"
#include "format/options.h"
#include "format/warn.h"

typedef struct load_reading {
    eplb_hooks hooks;
    const char *const *paths;
    int32_t count;
    eplb_read_options options;
    eplb_load_builder *builder;
    bool all_model_layers; /* every file so far lists them */
    int32_t width;         /* of every row of the files with full rows; 0: none yet */
    int32_t width_path;    /* the first such file */
    int64_t *layer_rows;   /* [options.max_layers], of the file that is being read */
} load_reading;

/* Two files of one load are of one model. */
static eplb_status check_width(load_reading *reading, int32_t path, const eplb_format *format,
                               const eplb_counts_row *row, eplb_error *error)
{
    if (format->counts.short_rows) {
        return EPLB_OK;
    }
    if (reading->width == 0) {
        reading->width = row->length;
        reading->width_path = path;
    }
    if (row->length != reading->width) {
        return eplb_error_set(
            error, EPLB_ERROR_DATA, "%s: layer %d: %d counts, but %d in %s: not of one model",
            eplb_display_name_of(reading->paths[path]).text, row->layer, row->length,
            reading->width, eplb_display_name_of(reading->paths[reading->width_path]).text);
    }
    return EPLB_OK;
}

/* The builder does not know files: says which one it speaks of. */
static eplb_status add_to_builder(const load_reading *reading, int32_t path,
                                  const eplb_counts_row *row, eplb_error *error)
{
    eplb_error inner;
    eplb_status status =
        eplb_load_builder_add(reading->builder, path, row->layer, row->counts, row->length, &inner);
    eplb_display_name name = eplb_display_name_of(reading->paths[path]);
    if (status == EPLB_ERROR_NOMEM) {
        return eplb_error_set(error, status, "%s: layer %d: %d counts: %s", name.text, row->layer,
                              row->length, inner.message);
    }
    return status == EPLB_OK ? EPLB_OK
                             : eplb_error_set(error, status, "%s: %s", name.text, inner.message);
}

static eplb_status add_row(load_reading *reading, int32_t path, const eplb_format *format,
                           const eplb_counts_row *row, eplb_error *error)
{
    eplb_status status = check_width(reading, path, format, row, error);
    reading->layer_rows[row->layer]++;
    return status == EPLB_OK ? add_to_builder(reading, path, row, error) : status;
}

/* A log that was cut between two lines lacks rows of its last step. */
static void warn_of_missing_rows(const load_reading *reading, int32_t path)
{
    const int64_t *rows = reading->layer_rows;
    int32_t first = -1;
    for (int32_t l = 0; l < reading->options.max_layers; l++) {
        if (rows[l] > 0 && first < 0) {
            first = l;
        } else if (rows[l] > 0 && rows[l] != rows[first]) {
            int32_t fewer = rows[l] < rows[first] ? l : first;
            int32_t more = fewer == l ? first : l;
            eplb_warn(&reading->hooks,
                      "%s: layer %d has %lld row%s, layer %d has %lld: is the file whole?",
                      eplb_display_name_of(reading->paths[path]).text, fewer,
                      (long long)rows[fewer], rows[fewer] == 1 ? "" : "s", more,
                      (long long)rows[more]);
            return;
        }
    }
}

static eplb_status add_file(load_reading *reading, int32_t path, eplb_error *error)
{
    eplb_counts_reader *reader;
    eplb_status status =
        eplb_counts_open(&reader, &reading->hooks, reading->paths[path], &reading->options, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_format *format = eplb_counts_format(reader);
    if ((format->flags & EPLB_FORMAT_ALL_MODEL_LAYERS) == 0) {
        reading->all_model_layers = false;
    }
    memset(reading->layer_rows, 0,
           (size_t)reading->options.max_layers * sizeof(*reading->layer_rows));
    eplb_counts_row row;
    while ((status = eplb_counts_next(reader, &row, error)) == EPLB_OK) {
        status = add_row(reading, path, format, &row, error);
        if (status != EPLB_OK) {
            break;
        }
    }
    if (status == EPLB_END && !format->counts.short_rows) {
        warn_of_missing_rows(reading, path);
    }
    eplb_counts_close(&reader);
    return status == EPLB_END ? EPLB_OK : status;
}

/* Replaces a load of all hidden layers by one of those that are not dense. */
static eplb_status remove_dense(const eplb_hooks *hooks, eplb_load **load, eplb_error *error)
{
    int32_t layers = eplb_load_layers(*load);
    const int32_t *ids = eplb_load_layer_ids(*load);
    int32_t *dense = eplb_alloc(hooks, (size_t)layers, sizeof(*dense));
    if (dense == NULL) {
        return eplb_out_of_memory(error);
    }
    int32_t count = 0;
    for (int32_t l = 0; l < layers; l++) {
        if (eplb_load_layer_is_zero(*load, l)) {
            dense[count++] = ids[l];
        }
    }
    eplb_load *sparse = NULL;
    eplb_status status = eplb_load_set_layer_ids(*load, ids, ids[layers - 1] + 1, error);
    if (status == EPLB_OK && count > 0 && count < layers) {
        status = eplb_load_without_layers(&sparse, *load, dense, count, error);
    }
    eplb_free(hooks, dense);
    if (sparse != NULL) {
        eplb_load_destroy(load);
        *load = sparse;
    }
    return status;
}

/* The builder knows scenarios, not files: says which files it speaks of. */
static eplb_status name_files(const load_reading *reading, eplb_status status, eplb_error *error)
{
    if (error == NULL || status == EPLB_OK) {
        return status;
    }
    eplb_error inner = *error;
    eplb_display_name first = eplb_display_name_of(reading->paths[0]);
    if (reading->count == 1) {
        return eplb_error_set(error, status, "%s: %s", first.text, inner.message);
    }
    return eplb_error_set(error, status, "%s and %d more (scenarios 0 to %d): %s", first.text,
                          reading->count - 1, reading->count - 1, inner.message);
}

static eplb_status finish(const load_reading *reading, eplb_load **out, eplb_error *error)
{
    eplb_load *load = NULL;
    eplb_status status =
        eplb_load_builder_finish(reading->builder, &load, reading->options.experts, error);
    status = name_files(reading, status, error);
    if (status == EPLB_OK && reading->all_model_layers) {
        status = remove_dense(&reading->hooks, &load, error);
    }
    for (int32_t i = 0; i < reading->count && status == EPLB_OK; i++) {
        status = eplb_load_set_scenario(load, i, reading->paths[i], 1.0, error);
    }
    if (status != EPLB_OK) {
        eplb_load_destroy(&load);
        return status;
    }
    *out = load;
    return EPLB_OK;
}

eplb_status eplb_load_read(eplb_load **out, const eplb_hooks *hooks, const char *const *paths,
                           int32_t count, const eplb_read_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || paths == NULL || count < 1) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "load: no output or no paths");
    }
    load_reading reading = {.hooks = eplb_hooks_resolve(hooks),
                            .paths = paths,
                            .count = count,
                            .all_model_layers = true};
    eplb_status status = eplb_read_options_resolve(options, &reading.options, error);
    if (status == EPLB_OK) {
        status = eplb_load_builder_create(&reading.builder, &reading.hooks, count, error);
    }
    if (status == EPLB_OK) {
        reading.layer_rows = eplb_alloc(&reading.hooks, (size_t)reading.options.max_layers,
                                        sizeof(*reading.layer_rows));
        status = reading.layer_rows != NULL ? EPLB_OK : eplb_out_of_memory(error);
    }
    for (int32_t i = 0; i < count && status == EPLB_OK; i++) {
        status = add_file(&reading, i, error);
    }
    if (status == EPLB_OK) {
        status = finish(&reading, out, error);
    }
    eplb_free(&reading.hooks, reading.layer_rows);
    eplb_load_builder_destroy(&reading.builder);
    return status;
}
