/* SPDX-License-Identifier: MIT */
#include "format/load_files.h"

#include "base/memory.h"
#include "format/display_name.h"
#include "format/warn.h"

/* What happens to the rows of a file. */
typedef struct file_pass {
    const char *path;
    bool lists_steps;
    const eplb_slices *slices; /* NULL: rows are not added */
    eplb_load_builder *builder;
} file_pass;

eplb_status eplb_load_files_init(eplb_load_files *self, const eplb_hooks *hooks,
                                 const eplb_read_options *options, eplb_error *error)
{
    size_t layers = (size_t)options->max_layers;
    *self = (eplb_load_files){.hooks = *hooks,
                              .options = *options,
                              .all_model_layers = true,
                              .are_logical = true,
                              .steps = {.hooks = *hooks},
                              .own_steps = {.hooks = *hooks}};
    self->has_layer = eplb_alloc_zeroed(hooks, layers, sizeof(*self->has_layer));
    self->layer_rows = eplb_alloc_zeroed(hooks, layers, sizeof(*self->layer_rows));
    if (self->has_layer == NULL || self->layer_rows == NULL) {
        eplb_load_files_clear(self);
        return eplb_out_of_memory(error);
    }
    return EPLB_OK;
}

void eplb_load_files_clear(eplb_load_files *self)
{
    eplb_free(&self->hooks, self->has_layer);
    eplb_free(&self->hooks, self->layer_rows);
    eplb_step_list_clear(&self->steps);
    eplb_step_list_clear(&self->own_steps);
    self->has_layer = NULL;
    self->layer_rows = NULL;
}

/* The builder does not know files: says which one it speaks of. */
static eplb_status add_to_builder(const file_pass *pass, const eplb_counts_row *row,
                                  eplb_error *error)
{
    eplb_error inner;
    const eplb_slices *slices = pass->slices;
    int32_t scenario = slices->first_scenario;
    scenario += slices->count > 1 ? eplb_slices_find(slices, row->step) : 0;
    eplb_status status = eplb_load_builder_add(pass->builder, scenario, row->layer, row->counts,
                                               row->length, &inner);
    if (status == EPLB_OK) {
        return EPLB_OK;
    }
    eplb_display_name name = eplb_display_name_of(pass->path);
    if (status == EPLB_ERROR_NOMEM) {
        return eplb_error_set(error, status, "%s: layer %d: %d counts: %s", name.text, row->layer,
                              row->length, inner.message);
    }
    return eplb_error_set(error, status, "%s: %s", name.text, inner.message);
}

static eplb_status take_row(eplb_load_files *self, const file_pass *pass, const eplb_format *format,
                            const eplb_counts_row *row, eplb_error *error)
{
    eplb_status status = eplb_row_width_check(&self->width, pass->path, format, row, error);
    self->layer_rows[row->layer]++;
    if (status == EPLB_OK && pass->lists_steps) {
        status = eplb_step_list_add(&self->own_steps, row, error);
    }
    return status == EPLB_OK && pass->slices != NULL ? add_to_builder(pass, row, error) : status;
}

/* A log that was cut between two lines lacks rows of its last step. */
static void warn_of_missing_rows(const eplb_load_files *self, const char *path)
{
    const int64_t *rows = self->layer_rows;
    int32_t first = -1;
    for (int32_t l = 0; l < self->options.max_layers; l++) {
        if (rows[l] > 0 && first < 0) {
            first = l;
        } else if (rows[l] > 0 && rows[l] != rows[first]) {
            int32_t fewer = rows[l] < rows[first] ? l : first;
            int32_t more = fewer == l ? first : l;
            eplb_warn(&self->hooks,
                      "%s: layer %d has %lld row%s, layer %d has %lld: is the file whole?",
                      eplb_display_name_of(path).text, fewer, (long long)rows[fewer],
                      rows[fewer] == 1 ? "" : "s", more, (long long)rows[more]);
            return;
        }
    }
}

/* A layer that is missing is not one without tokens. */
static eplb_status check_layers(eplb_load_files *self, const char *path, eplb_error *error)
{
    bool is_first = self->first_path == NULL;
    for (int32_t l = 0; l < self->options.max_layers; l++) {
        bool has = self->layer_rows[l] > 0;
        if (is_first) {
            self->has_layer[l] = has;
        } else if (has != self->has_layer[l]) {
            return eplb_file_lacks(has ? self->first_path : path, has ? path : self->first_path, -1,
                                   "layer", l, error);
        }
    }
    if (is_first) {
        self->first_path = path;
    }
    return EPLB_OK;
}

/* The first file of a source says which steps there are. */
static eplb_status check_steps(eplb_load_files *self, const char *path, const char *first_path,
                               eplb_error *error)
{
    eplb_step_list *own = &self->own_steps;
    eplb_step_list *steps = &self->steps;
    eplb_step_list_sort(own);
    if (path == first_path) {
        eplb_step_list other = *steps;
        *steps = *own;
        *own = other;
        own->count = 0;
        return EPLB_OK;
    }
    size_t i = eplb_step_list_difference(steps, own);
    if (i == SIZE_MAX) {
        for (size_t s = 0; s < steps->count; s++) {
            steps->items[s].tokens += own->items[s].tokens;
        }
        own->count = 0;
        return EPLB_OK;
    }
    bool lacks = i == own->count || (i < steps->count && steps->items[i].step < own->items[i].step);
    return eplb_file_lacks(lacks ? path : first_path, lacks ? first_path : path, -1, "step",
                           lacks ? steps->items[i].step : own->items[i].step, error);
}

static eplb_status read_rows(eplb_load_files *self, const file_pass *pass,
                             eplb_counts_reader *reader, eplb_error *error)
{
    const eplb_format *format = eplb_counts_format(reader);
    if ((format->flags & EPLB_FORMAT_ALL_MODEL_LAYERS) == 0) {
        self->all_model_layers = false;
    }
    self->are_logical = self->are_logical && eplb_counts_are_logical(reader) != 0;
    bool is_first = self->first_path == NULL;
    if (is_first || self->model_layers != eplb_counts_model_layers(reader)) {
        self->model_layers = is_first ? eplb_counts_model_layers(reader) : 0;
    }
    memset(self->layer_rows, 0, (size_t)self->options.max_layers * sizeof(*self->layer_rows));
    eplb_counts_row row;
    eplb_status status;
    while ((status = eplb_counts_next(reader, &row, error)) == EPLB_OK) {
        status = take_row(self, pass, format, &row, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    if (status == EPLB_END && !format->counts.short_rows) {
        warn_of_missing_rows(self, pass->path);
    }
    return status == EPLB_END ? EPLB_OK : status;
}

static eplb_status read_file(eplb_load_files *self, const file_pass *pass, eplb_error *error)
{
    eplb_counts_reader *reader;
    eplb_status status = eplb_counts_open(&reader, &self->hooks, pass->path, &self->options, error);
    if (status == EPLB_OK) {
        status =
            eplb_ranks_add(&self->ranks, &self->hooks, pass->path, eplb_counts_rank(reader), error);
        status = status == EPLB_OK ? read_rows(self, pass, reader, error) : status;
        eplb_counts_close(&reader);
    }
    return status == EPLB_OK ? check_layers(self, pass->path, error) : status;
}

static eplb_status read_files(eplb_load_files *self, const eplb_source_text *source,
                              file_pass *pass, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t f = 0; f < source->files && status == EPLB_OK; f++) {
        pass->path = source->paths[f];
        status = read_file(self, pass, error);
        if (status == EPLB_OK && pass->lists_steps) {
            status = check_steps(self, pass->path, source->paths[0], error);
        }
    }
    if (status == EPLB_OK) {
        status = eplb_ranks_check(&self->ranks, error);
    }
    if (status == EPLB_OK) {
        eplb_ranks_warn(&self->ranks, &self->hooks);
    }
    eplb_ranks_clear(&self->ranks, &self->hooks);
    return status;
}

eplb_status eplb_load_files_survey(eplb_load_files *self, const eplb_source_text *source,
                                   eplb_error *error)
{
    file_pass pass = {.lists_steps = true};
    return read_files(self, source, &pass, error);
}

/* What no row has is 0, in each slice. */
static eplb_status add_layers(const eplb_load_files *self, const eplb_slices *slices,
                              eplb_load_builder *builder, eplb_error *error)
{
    for (int32_t s = 0; s < slices->count; s++) {
        for (int32_t l = 0; l < self->options.max_layers; l++) {
            eplb_status status = EPLB_OK;
            if (self->has_layer[l]) {
                status =
                    eplb_load_builder_add(builder, slices->first_scenario + s, l, NULL, 0, error);
            }
            if (status != EPLB_OK) {
                return status;
            }
        }
    }
    return EPLB_OK;
}

eplb_status eplb_load_files_add(eplb_load_files *self, const eplb_source_text *source,
                                const eplb_slices *slices, eplb_load_builder *builder,
                                eplb_error *error)
{
    bool is_cut = slices->count > 1;
    file_pass pass = {
        .lists_steps = is_cut || source->files > 1, .slices = slices, .builder = builder};
    eplb_status status = is_cut ? add_layers(self, slices, builder, error) : EPLB_OK;
    if (status == EPLB_OK) {
        status = read_files(self, source, &pass, error);
    }
    if (status == EPLB_OK && is_cut && !eplb_slices_are_of(slices, &self->steps)) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: changed while it was read",
                              eplb_display_name_of(source->name).text);
    }
    return status;
}
