/* SPDX-License-Identifier: MIT */
/* Files of counts, row by row. The formats append text; what they need of order, and of rows that
 * nobody gave, is here. */
#include <math.h>

#include <eplb/file.h>

#include "base/memory.h"
#include "base/range.h"
#include "format/format.h"
#include "format/number.h"
#include "format/standard_output.h"

#define FLUSH_SIZE ((size_t)65536)

struct eplb_counts_writer {
    eplb_hooks hooks;
    const eplb_format *format;
    eplb_counts_shape shape;
    int32_t *layer_ids;
    int32_t rows;           /* of a step, of formats with full steps */
    double *counts;         /* [experts] of the row that is written */
    double *zeros;          /* [experts] */
    eplb_file_writer *file; /* NULL: standard output */
    eplb_text text;         /* not written yet */
    int64_t steps;          /* begun so far */
    int64_t step;           /* the last one */
    int32_t layer;          /* index of the last row's layer */
    int32_t row;            /* the next one of the step, of formats with full steps */
    bool failed;
};

void eplb_counts_shape_init(eplb_counts_shape *shape)
{
    if (shape != NULL) {
        *shape = (eplb_counts_shape){.struct_size = sizeof(*shape), .steps = -1};
    }
}

static bool lists_model_layers(const eplb_counts_writer *self)
{
    return (self->format->flags & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
}

static eplb_status check_shape(const eplb_counts_shape *shape, const eplb_format *format,
                               eplb_error *error)
{
    eplb_status status =
        eplb_check_range("counts", "number of layers", shape->layers, 1, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("counts", "number of experts", shape->experts, 1,
                                  EPLB_MAX_EXPERTS, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("counts", "number of model layers", shape->model_layers, 0,
                                  EPLB_MAX_LAYERS, error);
    }
    if (status == EPLB_OK && (shape->steps < -1 || shape->steps == 0)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "counts: %lld steps to be written",
                              (long long)shape->steps);
    }
    if (status == EPLB_OK && format->counts.needs_steps && shape->steps < 0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "counts: %s needs the number of steps before the first row",
                              format->name);
    }
    return status;
}

/* Copies the ids and checks that they ascend within the model. */
static eplb_status take_layer_ids(eplb_counts_writer *self, eplb_error *error)
{
    eplb_counts_shape *shape = &self->shape;
    const int32_t *given = shape->layer_ids;
    for (int32_t l = 0; l < shape->layers; l++) {
        int32_t id = given != NULL ? given[l] : l;
        int32_t least = l > 0 ? self->layer_ids[l - 1] + 1 : 0;
        int32_t end = shape->model_layers > 0 ? shape->model_layers : EPLB_MAX_LAYERS;
        if (id < least || id >= end) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "counts: layer id %d at %d, expected %d to %d, ascending", id, l,
                                  least, end - 1);
        }
        self->layer_ids[l] = id;
    }
    shape->layer_ids = self->layer_ids;
    if (shape->model_layers == 0) {
        shape->model_layers = self->layer_ids[shape->layers - 1] + 1;
    }
    self->rows = lists_model_layers(self) ? shape->model_layers : shape->layers;
    return EPLB_OK;
}

static eplb_status begin(eplb_counts_writer *self, const char *path, eplb_error *error)
{
    const eplb_array arrays[] = {EPLB_ARRAY(self->layer_ids, (size_t)self->shape.layers),
                                 EPLB_ARRAY(self->counts, (size_t)self->shape.experts),
                                 EPLB_ARRAY(self->zeros, (size_t)self->shape.experts)};
    eplb_status status = eplb_alloc_arrays(&self->hooks, arrays, 3, error);
    if (status == EPLB_OK) {
        status = take_layer_ids(self, error);
    }
    if (status == EPLB_OK && strcmp(path, "-") != 0) {
        status = eplb_file_writer_create(&self->file, &self->hooks, path, error);
    }
    if (status == EPLB_OK) {
        self->format->counts.begin(&self->shape, &self->text);
    }
    return status;
}

eplb_status eplb_counts_writer_create(eplb_counts_writer **out, const eplb_hooks *hooks,
                                      const char *path, const eplb_format *format,
                                      const eplb_counts_shape *shape, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || path == NULL || path[0] == '\0' || format == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "counts: no output, no path or no format to write");
    }
    if ((format->flags & EPLB_FORMAT_WRITES_COUNTS) == 0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s has no counts to be written",
                              format->name);
    }
    eplb_counts_shape complete;
    eplb_counts_shape_init(&complete);
    if (shape == NULL || !eplb_struct_in(&complete, sizeof(complete), shape)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "counts: no shape, or one without struct_size: see "
                              "eplb_counts_shape_init");
    }
    eplb_status status = check_shape(&complete, format, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_counts_writer *self = eplb_alloc_zeroed(&resolved, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->hooks = self->text.hooks = resolved;
    self->format = format;
    self->shape = complete;
    status = begin(self, path, error);
    if (status != EPLB_OK) {
        eplb_counts_writer_destroy(&self);
        return status;
    }
    *out = self;
    return EPLB_OK;
}

static eplb_status flush(eplb_counts_writer *self, size_t least, eplb_error *error)
{
    if (self->text.failed) {
        return eplb_out_of_memory(error);
    }
    if (self->text.length < least) {
        return EPLB_OK;
    }
    eplb_status status =
        self->file != NULL
            ? eplb_file_writer_append(self->file, self->text.bytes, self->text.length, error)
            : eplb_write_standard_output(self->text.bytes, self->text.length, error);
    self->text.length = 0;
    return status;
}

static void write_row(eplb_counts_writer *self, int32_t layer, const double *counts)
{
    const eplb_written_row row = {.step = self->step,
                                  .step_index = self->steps - 1,
                                  .layer = layer,
                                  .row = self->row,
                                  .counts = counts};
    self->format->counts.write_row(&self->shape, &row, &self->text);
    self->row++;
}

/* Rows of the step that nobody gave, up to the next one that was. */
static eplb_status fill(eplb_counts_writer *self, int32_t end, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    while (self->format->counts.full_steps && self->row < end && status == EPLB_OK) {
        write_row(self, -1, self->zeros);
        status = flush(self, FLUSH_SIZE, error);
    }
    return status;
}

/* The place of a layer among those of the shape; -1: none. */
static int32_t find_layer(const eplb_counts_writer *self, int32_t id)
{
    for (int32_t l = 0; l < self->shape.layers; l++) {
        if (self->layer_ids[l] == id) {
            return l;
        }
    }
    return -1;
}

static eplb_status check_counts(const double *counts, int32_t length, eplb_error *error)
{
    for (int32_t e = 0; e < length; e++) {
        if (!(counts[e] >= 0.0) || isinf(counts[e])) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "expert %d: %.17g is not a count (finite, >= 0)", e, counts[e]);
        }
    }
    return EPLB_OK;
}

/* `layer`: its place; -1: none. */
static eplb_status check_row(const eplb_counts_writer *self, int64_t step, int32_t layer,
                             int32_t length, eplb_error *error)
{
    bool is_new = self->steps == 0 || step != self->step;
    if (layer < 0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "not one of the layers to be written");
    }
    if (length < 0 || length > self->shape.experts) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%d counts, expected at most %d", length,
                              self->shape.experts);
    }
    if (step > EPLB_EXACT_INTEGER) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "above 2^53, which no reader takes");
    }
    if (step < 0 || (self->steps > 0 && step < self->step) || (!is_new && layer <= self->layer)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "not behind the row before in the order of steps and layers");
    }
    if (is_new && self->shape.steps >= 0 && self->steps == self->shape.steps) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "more than the %lld steps promised",
                              (long long)self->shape.steps);
    }
    return EPLB_OK;
}

static eplb_status begin_step(eplb_counts_writer *self, int64_t step, eplb_error *error)
{
    if (self->steps > 0 && step == self->step) {
        return EPLB_OK;
    }
    eplb_status status = self->steps > 0 ? fill(self, self->rows, error) : EPLB_OK;
    self->steps++;
    self->step = step;
    self->row = 0;
    return status;
}

static eplb_status add(eplb_counts_writer *self, int64_t step, int32_t layer, const double *counts,
                       int32_t length, eplb_error *error)
{
    eplb_status status = begin_step(self, step, error);
    self->layer = layer;
    int32_t id = self->layer_ids[layer];
    if (status == EPLB_OK) {
        status = fill(self, lists_model_layers(self) ? id : layer, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    size_t size = (size_t)length * sizeof(*counts);
    memcpy(self->counts, counts, size);
    memset(self->counts + length, 0, (size_t)self->shape.experts * sizeof(*counts) - size);
    write_row(self, id, self->counts);
    return flush(self, FLUSH_SIZE, error);
}

eplb_status eplb_counts_writer_add(eplb_counts_writer *writer, int64_t step, int32_t layer,
                                   const double *counts, int32_t length, eplb_error *error)
{
    if (writer == NULL || counts == NULL || writer->failed) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "counts: no writer, one that has failed or is committed, or no "
                              "counts");
    }
    writer->failed = true;
    eplb_error inner;
    int32_t place = find_layer(writer, layer);
    eplb_status status = check_row(writer, step, place, length, &inner);
    if (status == EPLB_OK) {
        status = check_counts(counts, length, &inner);
    }
    if (status != EPLB_OK) {
        return eplb_error_set(error, status, "counts: step %lld: layer %d: %s", (long long)step,
                              layer, inner.message);
    }
    status = add(writer, step, place, counts, length, error);
    writer->failed = status != EPLB_OK;
    return status;
}

eplb_status eplb_counts_writer_commit(eplb_counts_writer *writer, eplb_error *error)
{
    if (writer == NULL || writer->failed) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "counts: no writer, or one that has failed or is committed");
    }
    writer->failed = true;
    int64_t promised = writer->shape.steps;
    if (writer->steps == 0 || (promised >= 0 && writer->steps < promised)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "counts: %lld steps were written, %lld promised",
                              (long long)writer->steps, (long long)(promised > 0 ? promised : 1));
    }
    eplb_status status = fill(writer, writer->rows, error);
    if (status == EPLB_OK) {
        writer->format->counts.end(&writer->shape, &writer->text);
        status = flush(writer, 1, error);
    }
    return status == EPLB_OK && writer->file != NULL ? eplb_file_writer_commit(writer->file, error)
                                                     : status;
}

void eplb_counts_writer_destroy(eplb_counts_writer **writer)
{
    if (writer == NULL || *writer == NULL) {
        return;
    }
    eplb_counts_writer *self = *writer;
    eplb_hooks hooks = self->hooks;
    eplb_file_writer_destroy(&self->file);
    eplb_text_clear(&self->text);
    eplb_free(&hooks, self->layer_ids);
    eplb_free(&hooks, self->counts);
    eplb_free(&hooks, self->zeros);
    eplb_free(&hooks, self);
    *writer = NULL;
}
