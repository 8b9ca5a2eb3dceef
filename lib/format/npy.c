/* SPDX-License-Identifier: MIT */
/* Counts as a NumPy array, [layers, experts] or [steps, layers, experts]. An array in C order
 * streams; one in Fortran order has the steps of each layer and expert together, so a window of
 * each of these lines is read at its place in the file, or all of it held where that cannot be
 * done. */
#include "base/memory.h"
#include "format/format.h"
#include "format/npy_header.h"
#include "format/npy_write.h"
#include "format/options.h"

/* Bytes of all windows together, and of one. */
#define WINDOWS_SIZE ((size_t)16 << 20)
#define WINDOW_SIZE ((size_t)4096)

typedef struct npy {
    eplb_npy_header header;
    int32_t layers;
    int32_t experts;
    size_t steps;
    size_t rows; /* steps * layers */
    size_t row;  /* the next one */
    double *counts;

    /* Fortran order only */
    char *windows; /* [experts][layers][window_steps] items */
    size_t window_steps;
    size_t window_start; /* the first step in the windows */
    size_t window_end;
} npy;

static bool probe(const eplb_probe *probe)
{
    return probe->size >= EPLB_NPY_MAGIC_SIZE &&
           memcmp(probe->data, EPLB_NPY_MAGIC, EPLB_NPY_MAGIC_SIZE) == 0;
}

static eplb_status check_shape(npy *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_npy_header *header = &self->header;
    const char *name = reading->input.name;
    if (header->dimensions != 2 && header->dimensions != 3) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: header: %d dimensions, expected [layers, experts] or [steps, "
                              "layers, experts]",
                              name, header->dimensions);
    }
    const size_t *shape = header->shape + (header->dimensions - 2);
    self->steps = header->dimensions == 3 ? header->shape[0] : 1;
    if (self->steps == 0 || shape[0] == 0 || shape[1] == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %zu steps, %zu layers, %zu experts: no counts", name,
                              self->steps, shape[0], shape[1]);
    }
    if (shape[0] > (size_t)reading->options.max_layers ||
        shape[1] > (size_t)reading->options.max_experts) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT,
                              "%s: %zu layers of %zu experts, limits %d and %d", name, shape[0],
                              shape[1], reading->options.max_layers, reading->options.max_experts);
    }
    self->layers = (int32_t)shape[0];
    self->experts = (int32_t)shape[1];
    if (reading->options.experts > 0 && self->experts != reading->options.experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %d counts a layer, expected %d, %s",
                              name, self->experts, reading->options.experts,
                              eplb_words_for_width(&reading->options));
    }
    size_t bytes;
    if (!eplb_size_mul(self->steps, shape[0], &self->rows) ||
        !eplb_size_mul(self->rows, shape[1], &bytes) ||
        !eplb_size_mul(bytes, header->item.size, &bytes)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "%s: %zu steps of %d layers of %d experts: too large", name,
                              self->steps, self->layers, self->experts);
    }
    return EPLB_OK;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static eplb_status check_size(const eplb_reading *reading, uint64_t size, uint64_t expected,
                              eplb_error *error)
{
    return size == expected
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %llu bytes, expected %llu",
                                reading->input.name, (unsigned long long)size,
                                (unsigned long long)expected);
}

/* Of a pipe, or what is unpacked, no part can be read again: one window of everything. */
static eplb_status hold_array(npy *self, eplb_reading *reading, uint64_t expected,
                              eplb_error *error)
{
    size_t size;
    eplb_status status = eplb_reading_read_all(reading, &self->windows, &size, error);
    self->window_steps = self->window_end = self->steps;
    return status == EPLB_OK ? check_size(reading, self->header.data_offset + size, expected, error)
                             : status;
}

/* Windows need a file of which any part can be read, and the right size. */
static eplb_status open_windows(npy *self, eplb_reading *reading, eplb_error *error)
{
    size_t item = self->header.item.size;
    size_t experts = (size_t)self->experts;
    uint64_t expected = self->header.data_offset + self->rows * experts * item;
    uint64_t size;
    if (!eplb_input_size(&reading->input, &size)) {
        return hold_array(self, reading, expected, error);
    }
    eplb_status status = check_size(reading, size, expected, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t lines = (size_t)self->layers * experts;
    size_t most = WINDOWS_SIZE / item / lines;
    most = self->steps > most ? smaller(WINDOW_SIZE / item, most) : most;
    self->window_steps = smaller(most > 0 ? most : 1, self->steps);
    self->windows = eplb_alloc(&reading->hooks, lines * self->window_steps, item);
    return self->windows != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    npy *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_npy_read_header(&reading->input, &self->header, error);
    if (status == EPLB_OK) {
        status = check_shape(self, reading, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    self->counts = eplb_alloc(&reading->hooks, (size_t)self->experts, sizeof(*self->counts));
    if (self->counts == NULL) {
        return eplb_out_of_memory(error);
    }
    return self->header.fortran_order ? open_windows(self, reading, error) : EPLB_OK;
}

static size_t step_of(const npy *self)
{
    return self->row / (size_t)self->layers;
}

static int32_t layer_of(const npy *self)
{
    return (int32_t)(self->row % (size_t)self->layers);
}

/* Takes an item as the count of an expert. */
static eplb_status take_item(npy *self, const eplb_reading *reading, int32_t expert,
                             const char *bytes, eplb_error *error)
{
    double value;
    eplb_number_class number = eplb_item_decode(&self->header.item, bytes, &value);
    self->counts[expert] = value;
    if (number == EPLB_NUMBER_COUNT) {
        return EPLB_OK;
    }
    return eplb_error_set(
        error, eplb_number_status(number), "%s: step %zu: layer %d: expert %d: %s %s",
        reading->input.name, step_of(self), layer_of(self), expert,
        eplb_item_show(&self->header.item, bytes).text, eplb_number_words(number));
}

/* Makes sure that the next item, which is of an expert, is in memory. */
static eplb_status hold_item(const npy *self, eplb_input *input, int32_t expert, eplb_error *error)
{
    size_t size = self->header.item.size;
    eplb_status status =
        eplb_input_unread(input) < size ? eplb_input_need(input, size, error) : EPLB_OK;
    if (status == EPLB_OK && eplb_input_unread(input) < size) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: byte %llu: step %zu: layer %d: expert %d: the file ends too "
                              "early",
                              input->name,
                              (unsigned long long)eplb_input_offset(input, input->limit),
                              step_of(self), layer_of(self), expert);
    }
    return status;
}

static eplb_status stream_row(npy *self, eplb_reading *reading, eplb_error *error)
{
    eplb_input *input = &reading->input;
    const eplb_item_type *type = &self->header.item;
    int32_t done = 0;
    while (done < self->experts) {
        eplb_status status = hold_item(self, input, done, error);
        if (status != EPLB_OK) {
            return status;
        }
        size_t items =
            smaller(eplb_input_unread(input) / type->size, (size_t)(self->experts - done));
        size_t good = eplb_item_counts(type, input->cursor, items, self->counts + done);
        input->cursor += good * type->size;
        done += (int32_t)good;
        if (good < items) {
            return take_item(self, reading, done, input->cursor, error);
        }
    }
    return EPLB_OK;
}

/* Reads the windows that begin with a step. When all steps fit, the lines follow each other. */
static eplb_status move_windows(npy *self, const eplb_reading *reading, size_t step,
                                eplb_error *error)
{
    size_t item = self->header.item.size;
    size_t steps = smaller(self->window_steps, self->steps - step);
    size_t lines = (size_t)self->layers * (size_t)self->experts;
    size_t parts = self->window_steps == self->steps ? 1 : lines;
    size_t size = lines / parts * steps * item;
    eplb_status status = EPLB_OK;
    for (size_t p = 0; p < parts && status == EPLB_OK; p++) {
        uint64_t offset = self->header.data_offset + (p * self->steps + step) * item;
        status = eplb_input_read_at(&reading->input, self->windows + p * self->window_steps * item,
                                    size, offset, error);
    }
    self->window_start = step;
    self->window_end = step + steps;
    return status;
}

static eplb_status gather_row(npy *self, const eplb_reading *reading, eplb_error *error)
{
    size_t line = self->window_steps * self->header.item.size;
    size_t step = step_of(self);
    eplb_status status =
        step == self->window_end ? move_windows(self, reading, step, error) : EPLB_OK;
    const char *place = self->windows + (size_t)layer_of(self) * line +
                        (step - self->window_start) * self->header.item.size;
    for (int32_t e = 0; e < self->experts && status == EPLB_OK; e++) {
        status = take_item(self, reading, e, place, error);
        place += (size_t)self->layers * line;
    }
    return status;
}

static eplb_status finish(const npy *self, eplb_reading *reading, eplb_error *error)
{
    eplb_input *input = &reading->input;
    if (self->header.fortran_order) {
        return EPLB_END;
    }
    eplb_status status = eplb_input_need(input, 1, error);
    if (status == EPLB_OK && eplb_input_unread(input) > 0) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %llu: bytes behind the array",
                                input->name,
                                (unsigned long long)eplb_input_offset(input, input->cursor));
    }
    return status == EPLB_OK ? EPLB_END : status;
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    npy *self = reading->state;
    if (self->row == self->rows) {
        return finish(self, reading, error);
    }
    eplb_status status = self->header.fortran_order ? gather_row(self, reading, error)
                                                    : stream_row(self, reading, error);
    if (status == EPLB_OK) {
        *row = (eplb_counts_row){.step = (int64_t)step_of(self),
                                 .layer = layer_of(self),
                                 .length = self->experts,
                                 .counts = self->counts};
        self->row++;
    }
    return status;
}

static void close_counts(eplb_reading *reading)
{
    npy *self = reading->state;
    if (self != NULL) {
        eplb_free(&reading->hooks, self->counts);
        eplb_free(&reading->hooks, self->windows);
        eplb_free(&reading->hooks, self);
    }
}

const eplb_format eplb_format_npy = {
    .name = "npy",
    .description = "NumPy array [layers, experts] or [steps, layers, experts]",
    .engine = "any (NumPy)",
    .recognised = "the magic of .npy",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_WRITES_COUNTS,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .begin = eplb_npy_begin,
               .write_row = eplb_npy_write_row,
               .end = eplb_npy_end,
               .needs_steps = true,
               .full_steps = true},
};
