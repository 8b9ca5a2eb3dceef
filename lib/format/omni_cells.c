/* SPDX-License-Identifier: MIT */
/*
 * The three forms of omni-infer's placement, each with a number 0 or 1 for every rank, layer and
 * expert: a NumPy array [ranks, layers, experts] of integers; three little-endian int32 ranks,
 * layers, experts and then one for each cell; a text with these three numbers on its first line and
 * the cells behind it.
 */
#include "format/omni_cells.h"

#include <stdio.h>

#include "base/memory.h"
#include "format/npy_header.h"
#include "format/quote.h"

#define BIN_ITEM ((size_t)4)
#define BIN_HEADER (3 * BIN_ITEM)

/* A file in memory, as far as its form is known. */
typedef struct omni {
    const char *name;
    const eplb_read_options *options;
    const char *data;
    size_t size;
    eplb_omni_cells *grid;
} omni;

static bool is_npy(const char *data, size_t size)
{
    return size >= EPLB_NPY_MAGIC_SIZE && memcmp(data, EPLB_NPY_MAGIC, EPLB_NPY_MAGIC_SIZE) == 0;
}

/* Three sizes, and cells as far as can be seen. */
static bool is_bin(const char *data, size_t size)
{
    for (size_t i = 0; i + BIN_ITEM <= size; i += BIN_ITEM) {
        uint64_t value = eplb_item_bits(data + i, BIN_ITEM, false);
        bool fits = i < BIN_HEADER ? value >= 1 && value <= EPLB_MAX_GPUS : value <= 1;
        if (!fits) {
            return false;
        }
    }
    return size >= BIN_HEADER + BIN_ITEM;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Steps over blanks, but not over the end of a line. */
static const char *skip_blanks(const char *text)
{
    while (is_space(*text) && *text != '\n') {
        text++;
    }
    return text;
}

/* Reads a size of up to nine digits and steps over it; false where there is none. */
static bool read_size(const char **text, size_t *size)
{
    const char *next = skip_blanks(*text);
    *size = 0;
    int digits = 0;
    while (*next >= '0' && *next <= '9' && digits < 9) {
        *size = *size * 10 + (size_t)(*next++ - '0');
        digits++;
    }
    *text = next;
    return digits > 0 && is_space(*next);
}

/* The first line of a text; *text is then behind it. */
static bool read_sizes(const char **text, size_t sizes[3])
{
    for (int i = 0; i < 3; i++) {
        if (!read_size(text, &sizes[i])) {
            return false;
        }
    }
    *text = skip_blanks(*text);
    return *(*text)++ == '\n';
}

static bool is_text(const char *data, size_t size)
{
    size_t sizes[3];
    const char *next = data;
    const char *end = data + size;
    if (!read_sizes(&next, sizes)) {
        return false;
    }
    while (next < end && (is_space(*next) || *next == '0' || *next == '1')) {
        next++;
    }
    return next == end;
}

bool eplb_omni_probe(const eplb_probe *probe)
{
    return is_npy(probe->data, probe->size) || is_bin(probe->data, probe->size) ||
           is_text(probe->data, probe->size);
}

static eplb_status check_shape(const omni *self, const size_t shape[3], size_t *count,
                               eplb_error *error)
{
    if (shape[0] == 0 || shape[1] == 0 || shape[2] == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %zu ranks, %zu layers, %zu experts: no placement", self->name,
                              shape[0], shape[1], shape[2]);
    }
    if (shape[0] > EPLB_MAX_GPUS || shape[1] > (size_t)self->options->max_layers ||
        shape[2] > (size_t)self->options->max_experts) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT,
                              "%s: %zu ranks, %zu layers, %zu experts, limits %d, %d and %d",
                              self->name, shape[0], shape[1], shape[2], EPLB_MAX_GPUS,
                              self->options->max_layers, self->options->max_experts);
    }
    if (!eplb_size_mul(shape[0], shape[1], count) || !eplb_size_mul(*count, shape[2], count)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "%s: %zu ranks, %zu layers, %zu experts: too large", self->name,
                              shape[0], shape[1], shape[2]);
    }
    return EPLB_OK;
}

/* Memory for the cells, once the file is known to be long enough for them. */
static eplb_status make_cells(const omni *self, const eplb_hooks *hooks, const size_t shape[3],
                              size_t count, eplb_error *error)
{
    self->grid->ranks = (int32_t)shape[0];
    self->grid->layers = (int32_t)shape[1];
    self->grid->experts = (int32_t)shape[2];
    self->grid->cells = eplb_alloc(hooks, count, 1);
    return self->grid->cells != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

/* Says where a cell is and what is wrong with it. */
static eplb_status cell_error(const omni *self, size_t cell, const char *what, eplb_error *error)
{
    size_t experts = (size_t)self->grid->experts;
    size_t layers = (size_t)self->grid->layers;
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: rank %zu: layer %zu: expert %zu: %s",
                          self->name, cell / experts / layers, cell / experts % layers,
                          cell % experts, what);
}

/* Where a cell is among the items of an array in Fortran order. */
static size_t fortran_index(const eplb_omni_cells *grid, size_t cell)
{
    size_t experts = (size_t)grid->experts;
    size_t layers = (size_t)grid->layers;
    size_t layer = cell / experts % layers;
    return cell / experts / layers + (size_t)grid->ranks * (layer + layers * (cell % experts));
}

/* Cells that are integers of `size` bytes. */
static eplb_status take_items(const omni *self, const eplb_npy_header *header, size_t count,
                              eplb_error *error)
{
    for (size_t cell = 0; cell < count; cell++) {
        size_t item = header->fortran_order ? fortran_index(self->grid, cell) : cell;
        uint64_t bits = eplb_item_bits(self->data + item * header->item.size, header->item.size,
                                       header->item.big_endian);
        if (bits > 1) {
            unsigned unused = 64 - 8 * (unsigned)header->item.size;
            int64_t value = (int64_t)(bits << unused) >> unused;
            char text[48];
            if (header->item.kind == 'u') {
                snprintf(text, sizeof(text), "%llu, expected 0 or 1", (unsigned long long)bits);
            } else {
                snprintf(text, sizeof(text), "%lld, expected 0 or 1", (long long)value);
            }
            return cell_error(self, cell, text, error);
        }
        self->grid->cells[cell] = (uint8_t)bits;
    }
    return EPLB_OK;
}

/* An array of `header` whose first item is data[0]. */
static eplb_status read_array(omni *self, const eplb_hooks *hooks, const eplb_npy_header *header,
                              eplb_error *error)
{
    size_t count;
    size_t bytes;
    eplb_status status = check_shape(self, header->shape, &count, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!eplb_size_mul(count, header->item.size, &bytes) || bytes != self->size) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %zu bytes of cells, expected %zu ranks x %zu layers x %zu "
                              "experts x %zu",
                              self->name, self->size, header->shape[0], header->shape[1],
                              header->shape[2], header->item.size);
    }
    status = make_cells(self, hooks, header->shape, count, error);
    return status == EPLB_OK ? take_items(self, header, count, error) : status;
}

static eplb_status read_bin(omni *self, const eplb_hooks *hooks, eplb_error *error)
{
    eplb_npy_header header = {.item = {.kind = 'i', .size = BIN_ITEM}, .dimensions = 3};
    for (size_t i = 0; i < 3; i++) {
        header.shape[i] = (size_t)eplb_item_bits(self->data + i * BIN_ITEM, BIN_ITEM, false);
    }
    self->data += BIN_HEADER;
    self->size -= BIN_HEADER;
    return read_array(self, hooks, &header, error);
}

/* A cell of a text; *next is then behind it and the blanks that follow. */
static eplb_status take_digit(const omni *self, size_t cell, const char **next, eplb_error *error)
{
    const char *digit = *next;
    if (digit == self->data + self->size) {
        return cell_error(self, cell, "the file ends too early", error);
    }
    if ((*digit != '0' && *digit != '1') ||
        (!is_space(digit[1]) && digit + 1 != self->data + self->size)) {
        size_t rest = (size_t)(self->data + self->size - digit);
        size_t length = 0;
        while (length < 12 && length < rest && !is_space(digit[length])) {
            length++;
        }
        char text[96];
        snprintf(text, sizeof(text), "'%s', expected 0 or 1", eplb_quote_bytes(digit, length).text);
        return cell_error(self, cell, text, error);
    }
    self->grid->cells[cell] = (uint8_t)(*digit++ - '0');
    while (is_space(*digit)) {
        digit++;
    }
    *next = digit;
    return EPLB_OK;
}

static eplb_status read_text(omni *self, const eplb_hooks *hooks, eplb_error *error)
{
    const char *next = self->data;
    size_t shape[3];
    if (!read_sizes(&next, shape)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s:1: expected the numbers of ranks, layers and experts",
                              self->name);
    }
    size_t count;
    eplb_status status = check_shape(self, shape, &count, error);
    size_t left = self->size - (size_t)(next - self->data);
    if (status == EPLB_OK && count / 2 > left) { /* each cell but the last has a blank behind it */
        status = eplb_error_set(error, EPLB_ERROR_PARSE,
                                "%s: %zu bytes behind the first line are too few for %zu cells",
                                self->name, left, count);
    }
    if (status == EPLB_OK) {
        status = make_cells(self, hooks, shape, count, error);
    }
    while (is_space(*next)) {
        next++;
    }
    for (size_t cell = 0; cell < count && status == EPLB_OK; cell++) {
        status = take_digit(self, cell, &next, error);
    }
    if (status == EPLB_OK && next != self->data + self->size) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: content behind the %zu cells",
                                self->name, count);
    }
    return status;
}

static eplb_status read_npy(omni *self, eplb_reading *reading, char **data, eplb_error *error)
{
    eplb_npy_header header;
    eplb_status status = eplb_npy_read_header(&reading->input, &header, error);
    if (status == EPLB_OK && (header.dimensions != 3 || header.item.kind == 'f')) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE,
                                "%s: header: %d dimensions of %s, expected integers [ranks, "
                                "layers, experts]",
                                self->name, header.dimensions,
                                header.item.kind == 'f' ? "floats" : "integers");
    }
    if (status == EPLB_OK) {
        status = eplb_reading_read_all(reading, data, &self->size, error);
    }
    self->data = *data;
    return status == EPLB_OK ? read_array(self, &reading->hooks, &header, error) : status;
}

eplb_status eplb_omni_read_cells(eplb_reading *reading, eplb_omni_cells *grid, eplb_error *error)
{
    omni self = {.name = reading->input.name, .options = &reading->options, .grid = grid};
    *grid = (eplb_omni_cells){0};
    char *data = NULL;
    eplb_status status = eplb_input_need(&reading->input, EPLB_NPY_MAGIC_SIZE, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (is_npy(reading->input.cursor, eplb_input_unread(&reading->input))) {
        status = read_npy(&self, reading, &data, error);
    } else {
        status = eplb_reading_read_all(reading, &data, &self.size, error);
        self.data = data;
        if (status == EPLB_OK) {
            /* What begins with a digit is no int32 below 2^28 ranks. */
            bool is_binary = self.size >= BIN_HEADER && self.data[3] == '\0';
            status = is_binary ? read_bin(&self, &reading->hooks, error)
                               : read_text(&self, &reading->hooks, error);
        }
    }
    eplb_free(&reading->hooks, data);
    return status;
}

void eplb_omni_free_cells(eplb_omni_cells *grid, const eplb_hooks *hooks)
{
    eplb_free(hooks, grid->cells);
    grid->cells = NULL;
}
