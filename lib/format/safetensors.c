/* SPDX-License-Identifier: MIT */
#include "format/safetensors.h"

#include "base/memory.h"
#include "format/quote.h"

/* Bytes of the header's length, which the header follows. */
#define LENGTH_SIZE ((size_t)8)

#define METADATA "__metadata__"

static eplb_status fail_at(const eplb_safetensors *self, uint64_t offset, const char *problem,
                           eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %llu: %s", self->input->name,
                          (unsigned long long)offset, problem);
}

/* Where the data begin and end, as the length of the header and that of the file say. */
static eplb_status read_length(eplb_safetensors *self, eplb_error *error)
{
    eplb_input *input = self->input;
    uint64_t size;
    if (!eplb_input_size(input, &size)) {
        return eplb_input_refuse_stream(input, "a file of safetensors", error);
    }
    eplb_status status = eplb_input_need(input, LENGTH_SIZE, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (eplb_input_unread(input) < LENGTH_SIZE || size < LENGTH_SIZE) {
        return fail_at(self, size, "the file ends within the length of its header", error);
    }
    uint64_t length = eplb_item_bits(input->cursor, LENGTH_SIZE, false);
    if (length > size - LENGTH_SIZE) {
        return eplb_error_set(
            error, EPLB_ERROR_PARSE, "%s: byte 0: a header of %llu bytes, but only %llu follow",
            input->name, (unsigned long long)length, (unsigned long long)(size - LENGTH_SIZE));
    }
    input->cursor += LENGTH_SIZE;
    self->data_offset = LENGTH_SIZE + length;
    self->data_size = size - self->data_offset;
    return EPLB_OK;
}

/* Reads a key, at most so long as the name of a tensor may be, and the colon behind it. */
static eplb_status scan_name(eplb_scanner *scanner, char name[EPLB_TENSOR_NAME_SIZE],
                             eplb_error *error)
{
    size_t length = 0;
    eplb_status status = eplb_scan_string(scanner, name, EPLB_TENSOR_NAME_SIZE - 1, &length, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (length >= EPLB_TENSOR_NAME_SIZE) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error,
                              "a tensor's name of %zu bytes, at most %d", length,
                              EPLB_TENSOR_NAME_SIZE - 1);
    }
    name[length] = '\0';
    if (length == 0 || strlen(name) != length) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                              "a tensor's name that is empty or has U+0000");
    }
    return eplb_scan_expect(scanner, ':', "':' after a key", error);
}

/* The value of a member of the metadata. */
static eplb_status scan_text(eplb_scanner *scanner, char text[EPLB_KEY_SIZE], eplb_error *error)
{
    size_t length = 0;
    eplb_status status = eplb_scan_string(scanner, text, EPLB_KEY_SIZE - 1, &length, error);
    text[status == EPLB_OK && length < EPLB_KEY_SIZE ? length : 0] = '\0';
    return status;
}

static eplb_status scan_metadata(eplb_safetensors *self, eplb_scanner *scanner, bool *seen,
                                 eplb_error *error)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    bool has_version = false;
    size_t length;
    if (*seen) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "second key '" METADATA "'");
    }
    *seen = true;
    eplb_status status = eplb_scan_expect(scanner, '{', "'{': metadata", error);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status != EPLB_OK || !more) {
            break;
        }
        if (strcmp(key, "version") != 0) {
            status = eplb_scan_string(scanner, NULL, 0, &length, error);
        } else if (has_version) {
            status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "second key 'version'");
        } else {
            has_version = true;
            status = scan_text(scanner, self->version, error);
        }
    }
    return status;
}

static bool make_room(eplb_safetensors *self)
{
    if (self->count < self->capacity) {
        return true;
    }
    size_t capacity;
    if (!eplb_size_mul(self->capacity > 0 ? self->capacity : 8, 2, &capacity)) {
        return false;
    }
    eplb_tensor *tensors = eplb_realloc(&self->hooks, self->tensors, capacity, sizeof(*tensors));
    if (tensors == NULL) {
        return false;
    }
    self->tensors = tensors;
    self->capacity = capacity;
    return true;
}

static eplb_status scan_tensor(eplb_safetensors *self, eplb_scanner *scanner, const char *name,
                               eplb_tensor_visit visit, void *context, eplb_error *error)
{
    eplb_tensor_info info = {.name = name};
    eplb_status status = eplb_safetensors_scan_info(scanner, self->data_size, &info, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!make_room(self)) {
        return eplb_out_of_memory(error);
    }
    eplb_tensor *tensor = &self->tensors[self->count++];
    *tensor = (eplb_tensor){.begin = info.begin, .size = (uint32_t)(info.end - info.begin)};
    return visit(context, scanner, &info, tensor, error);
}

static eplb_status scan_members(eplb_safetensors *self, eplb_scanner *scanner,
                                eplb_tensor_visit visit, void *context, eplb_error *error)
{
    char name[EPLB_TENSOR_NAME_SIZE];
    bool first = true;
    bool more = true;
    bool has_metadata = false;
    eplb_status status = eplb_scan_expect(scanner, '{', "'{': the header", error);
    while (status == EPLB_OK) {
        status = eplb_scan_more(scanner, '}', &first, &more, error);
        if (status != EPLB_OK || !more) {
            break;
        }
        status = scan_name(scanner, name, error);
        if (status == EPLB_OK) {
            status = strcmp(name, METADATA) == 0
                         ? scan_metadata(self, scanner, &has_metadata, error)
                         : scan_tensor(self, scanner, name, visit, context, error);
        }
    }
    return status;
}

/* The header is as long as the file says, and filled up with white space. */
static eplb_status check_end(eplb_safetensors *self, eplb_error *error)
{
    eplb_input *input = self->input;
    uint64_t offset;
    while ((offset = eplb_input_offset(input, input->cursor)) < self->data_offset) {
        eplb_status status = eplb_input_need(input, 1, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (eplb_input_unread(input) == 0 || strchr(" \t\r\n", *input->cursor) == NULL ||
            *input->cursor == '\0') {
            return fail_at(self, offset, "expected white space up to the end of the header", error);
        }
        input->cursor++;
    }
    return offset == self->data_offset
               ? EPLB_OK
               : fail_at(self, self->data_offset, "the header goes on behind its length", error);
}

typedef bool (*tensor_order)(const eplb_tensor *a, const eplb_tensor *b);

static bool is_before_in_data(const eplb_tensor *a, const eplb_tensor *b)
{
    return a->begin != b->begin ? a->begin < b->begin : a->size < b->size;
}

static bool is_before_in_number(const eplb_tensor *a, const eplb_tensor *b)
{
    return a->number != b->number ? a->number < b->number : a->layer < b->layer;
}

/* Moves the tensor at `root` down to its place in a heap with the last one on top. */
static void sift(eplb_tensor *tensors, size_t root, size_t count, tensor_order is_before)
{
    eplb_tensor tensor = tensors[root];
    size_t child;
    while ((child = 2 * root + 1) < count) {
        child += child + 1 < count && is_before(&tensors[child], &tensors[child + 1]) ? 1 : 0;
        if (!is_before(&tensor, &tensors[child])) {
            break;
        }
        tensors[root] = tensors[child];
        root = child;
    }
    tensors[root] = tensor;
}

/* qsort may allocate. */
static void sort(eplb_safetensors *self, tensor_order is_before)
{
    eplb_tensor *tensors = self->tensors;
    size_t sorted = 1;
    while (sorted < self->count && !is_before(&tensors[sorted], &tensors[sorted - 1])) {
        sorted++;
    }
    if (sorted >= self->count) {
        return;
    }
    for (size_t root = self->count / 2; root-- > 0;) {
        sift(tensors, root, self->count, is_before);
    }
    for (size_t end = self->count; end-- > 1;) {
        eplb_tensor last = tensors[0];
        tensors[0] = tensors[end];
        tensors[end] = last;
        sift(tensors, 0, end, is_before);
    }
}

/* Each byte of the data is of one tensor. The tensors come in the order of their data. */
static eplb_status check_data(const eplb_safetensors *self, eplb_error *error)
{
    uint64_t end = 0;
    for (size_t i = 0; i < self->count; i++) {
        const eplb_tensor *tensor = &self->tensors[i];
        if (tensor->begin < end) {
            return fail_at(self, self->data_offset + tensor->begin,
                           "data of two tensors at one place", error);
        }
        if (tensor->begin > end) {
            break;
        }
        end += tensor->size;
    }
    return end == self->data_size
               ? EPLB_OK
               : fail_at(self, self->data_offset + end, "data that are of no tensor", error);
}

eplb_status eplb_safetensors_open(eplb_safetensors *self, const eplb_hooks *hooks,
                                  eplb_input *input, eplb_tensor_visit visit, void *context,
                                  eplb_error *error)
{
    *self = (eplb_safetensors){.hooks = *hooks, .input = input};
    eplb_scanner scanner;
    eplb_status status = read_length(self, error);
    if (status != EPLB_OK) {
        return status;
    }
    status = eplb_scanner_init(&scanner, input, error);
    if (status == EPLB_OK) {
        status = scan_members(self, &scanner, visit, context, error);
    }
    eplb_scanner_close(&scanner);
    if (status == EPLB_OK) {
        status = check_end(self, error);
    }
    if (status == EPLB_OK) {
        sort(self, is_before_in_data);
        status = check_data(self, error);
        sort(self, is_before_in_number);
    }
    return status;
}

void eplb_safetensors_close(eplb_safetensors *self)
{
    eplb_free(&self->hooks, self->tensors);
    self->tensors = NULL;
}
