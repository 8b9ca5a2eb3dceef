/* SPDX-License-Identifier: MIT */
/* Sources: the files of one text, read side by side, step by step. */
#include "base/memory.h"
#include "format/display_name.h"
#include "format/one_model.h"
#include "format/options.h"
#include "format/source_text.h"
#include "format/step_sums.h"

typedef struct source_file {
    eplb_counts_reader *reader;
    eplb_counts_row row; /* the next one, or the last */
    bool has_row;
} source_file;

struct eplb_source {
    eplb_hooks hooks;
    eplb_source_text text;
    source_file *files; /* [text.files] */
    eplb_row_width width;
    eplb_step_sums sums;
    bool started;         /* the first row of each file was read */
    eplb_status finished; /* EPLB_OK while steps may come */
};

static eplb_status open_files(eplb_source *self, const eplb_read_options *options,
                              eplb_error *error)
{
    self->files = eplb_alloc_zeroed(&self->hooks, (size_t)self->text.files, sizeof(*self->files));
    if (self->files == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = EPLB_OK;
    for (int32_t f = 0; f < self->text.files && status == EPLB_OK; f++) {
        status = eplb_counts_open(&self->files[f].reader, &self->hooks, self->text.paths[f],
                                  options, error);
    }
    return status;
}

static eplb_status check_ranks(const eplb_source *self, eplb_error *error)
{
    eplb_ranks ranks = {0};
    eplb_status status = EPLB_OK;
    for (int32_t f = 0; f < self->text.files && status == EPLB_OK; f++) {
        status = eplb_ranks_add(&ranks, &self->hooks, self->text.paths[f],
                                eplb_counts_rank(self->files[f].reader), error);
    }
    if (status == EPLB_OK) {
        status = eplb_ranks_check(&ranks, error);
    }
    if (status == EPLB_OK) {
        eplb_ranks_warn(&ranks, &self->hooks);
    }
    eplb_ranks_clear(&ranks, &self->hooks);
    return status;
}

eplb_status eplb_source_open(eplb_source **out, const eplb_hooks *hooks, const char *text,
                             const eplb_read_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || text == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "source: no output or no text");
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_read_options complete;
    eplb_status status = eplb_read_options_resolve(options, &complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_source *self = eplb_alloc_zeroed(&resolved, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->hooks = self->sums.hooks = resolved;
    self->sums.experts = complete.experts;
    status = eplb_source_text_parse(&self->text, &resolved, text, error);
    if (status == EPLB_OK) {
        status = open_files(self, &complete, error);
    }
    if (status == EPLB_OK) {
        status = check_ranks(self, error);
    }
    if (status != EPLB_OK) {
        eplb_source_close(&self);
        return status;
    }
    *out = self;
    return EPLB_OK;
}

void eplb_source_close(eplb_source **source)
{
    if (source == NULL || *source == NULL) {
        return;
    }
    eplb_source *self = *source;
    eplb_hooks hooks = self->hooks;
    for (int32_t f = 0; self->files != NULL && f < self->text.files; f++) {
        eplb_counts_close(&self->files[f].reader);
    }
    eplb_free(&hooks, self->files);
    eplb_step_sums_clear(&self->sums);
    eplb_source_text_clear(&self->text);
    eplb_free(&hooks, self);
    *source = NULL;
}

const char *eplb_source_name(const eplb_source *source)
{
    return source->text.name;
}

double eplb_source_weight(const eplb_source *source)
{
    return source->text.weight;
}

int32_t eplb_source_files(const eplb_source *source)
{
    return source->text.files;
}

const char *eplb_source_path(const eplb_source *source, int32_t file)
{
    return file >= 0 && file < source->text.files ? source->text.paths[file] : NULL;
}

/* Reads the row that is used next. */
static eplb_status read_ahead(eplb_source *self, int32_t f, eplb_error *error)
{
    source_file *file = &self->files[f];
    int64_t before = file->row.step;
    eplb_status status = eplb_counts_next(file->reader, &file->row, error);
    file->has_row = status == EPLB_OK;
    if (status != EPLB_OK) {
        return status == EPLB_END ? EPLB_OK : status;
    }
    if (file->row.step < before) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: layer %d: step %lld comes after step %lld: the rows are not in "
                              "the order of steps",
                              eplb_display_name_of(self->text.paths[f]).text, file->row.layer,
                              (long long)file->row.step, (long long)before);
    }
    return eplb_row_width_check(&self->width, self->text.paths[f], eplb_counts_format(file->reader),
                                &file->row, error);
}

/* Adds the row that was read ahead. */
static eplb_status add_row(eplb_source *self, int32_t f, eplb_error *error)
{
    const eplb_counts_row *row = &self->files[f].row;
    const char *path = self->text.paths[f];
    eplb_error inner;
    bool is_new;
    eplb_status status = eplb_step_sums_add(&self->sums, f, row, &is_new, &inner);
    if (status != EPLB_OK) {
        return eplb_error_set(error, status, "%s: %s", eplb_display_name_of(path).text,
                              inner.message);
    }
    return is_new && f > 0
               ? eplb_file_lacks(self->text.paths[0], path, row->step, "layer", row->layer, error)
               : EPLB_OK;
}

/* Adds all rows that a file has of this step. */
static eplb_status add_file(eplb_source *self, int32_t f, int64_t step, eplb_error *error)
{
    const source_file *file = &self->files[f];
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && file->has_row && file->row.step == step) {
        status = add_row(self, f, error);
        if (status == EPLB_OK) {
            status = read_ahead(self, f, error);
        }
    }
    int32_t lacking = status == EPLB_OK ? eplb_step_sums_lacking(&self->sums, f) : -1;
    return lacking < 0 ? status
                       : eplb_file_lacks(self->text.paths[f], self->text.paths[0], step, "layer",
                                         lacking, error);
}

/* The file whose next step is the earliest; -1 when no file has any. */
static int32_t earliest(const eplb_source *self)
{
    int32_t found = -1;
    for (int32_t f = 0; f < self->text.files; f++) {
        const source_file *file = &self->files[f];
        if (file->has_row && (found < 0 || file->row.step < self->files[found].row.step)) {
            found = f;
        }
    }
    return found;
}

static eplb_status next_step(eplb_source *self, eplb_source_step *next, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t f = 0; f < self->text.files && !self->started && status == EPLB_OK; f++) {
        status = read_ahead(self, f, error);
    }
    self->started = true;
    int32_t first = earliest(self);
    if (status != EPLB_OK || first < 0) {
        return status != EPLB_OK ? status : EPLB_END;
    }
    int64_t step = self->files[first].row.step;
    eplb_step_sums_begin(&self->sums);
    for (int32_t f = 0; f < self->text.files && status == EPLB_OK; f++) {
        bool has = self->files[f].has_row && self->files[f].row.step == step;
        status = has ? add_file(self, f, step, error)
                     : eplb_file_lacks(self->text.paths[f], self->text.paths[first], -1, "step",
                                       step, error);
    }
    *next = (eplb_source_step){.rows = self->sums.rows,
                               .step = step,
                               .experts = self->sums.experts,
                               .layer_ids = self->sums.layer_ids,
                               .counts = self->sums.counts};
    return status;
}

eplb_status eplb_source_next(eplb_source *source, eplb_source_step *step, eplb_error *error)
{
    if (source == NULL || step == NULL || step->struct_size < sizeof(step->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "source: no source, no step, or one without struct_size");
    }
    if (source->finished < 0) {
        return eplb_error_set(error, source->finished, "%s: an earlier read failed",
                              eplb_display_name_of(source->text.name).text);
    }
    eplb_source_step next;
    if (source->finished == EPLB_OK) {
        source->finished = next_step(source, &next, error);
    }
    if (source->finished == EPLB_OK) {
        eplb_struct_out(step, &next, sizeof(next));
    }
    return source->finished;
}
