/* SPDX-License-Identifier: MIT */
/* What a pickle says of a tensor, against what the file has. */
#include "base/memory.h"
#include "format/quote.h"
#include "format/torch.h"

#define STORAGE_FIELDS 5 /* 'storage', type, key, device, number of items */
#define TENSOR_FIELDS 6  /* storage, offset, shape, strides, requires_grad, hooks */

/* Newer versions have more fields, which say nothing of the items. */
#define MOST_FIELDS 8

static eplb_status fail(const eplb_torch *self, const char *what, const char *problem,
                        eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s: %s", self->input->name, what, problem);
}

/* The items of a value, which has `least` to MOST_FIELDS of them. */
static bool list_fields(const eplb_torch *self, const eplb_pickle_value *value, uint32_t least,
                        const eplb_pickle_value *fields[MOST_FIELDS])
{
    if (value->length < least || value->length > MOST_FIELDS) {
        return false;
    }
    const eplb_pickle_cell *cell = eplb_pickle_first(&self->pickle, value);
    for (int i = 0; cell != NULL; i++) {
        fields[i] = eplb_pickle_item(&self->pickle, cell);
        cell = eplb_pickle_following(&self->pickle, cell);
    }
    return true;
}

static eplb_status read_type(const eplb_torch *self, const eplb_pickle_value *value,
                             const char *what, eplb_item_type *type, eplb_error *error)
{
    static const struct {
        const char *name;
        eplb_item_type type;
    } known[] = {
        {"ByteStorage", {'u', 1, false}},   {"CharStorage", {'i', 1, false}},
        {"ShortStorage", {'i', 2, false}},  {"IntStorage", {'i', 4, false}},
        {"LongStorage", {'i', 8, false}},   {"FloatStorage", {'f', 4, false}},
        {"DoubleStorage", {'f', 8, false}},
    };
    if (value->kind != EPLB_PICKLED_STORAGE_TYPE) {
        return fail(self, what, "a storage without a type", error);
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (eplb_pickle_text_is(value, known[i].name)) {
            *type = known[i].type;
            return EPLB_OK;
        }
    }
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                          "%s: %s: torch.%s, expected integers of 8 to 64 bits or floats of 32 or "
                          "64",
                          self->input->name, what,
                          eplb_quote_bytes(value->as.text, value->length).text);
}

/* The archive's entry of a storage; NULL: there is none. */
static const eplb_zip_entry *find_storage(eplb_torch *self, const eplb_pickle_value *key)
{
    char name[EPLB_TORCH_NAME_ROOM] = "/data/";
    size_t length = strlen(name);
    if (key->kind != EPLB_PICKLED_TEXT || key->length >= sizeof(name) - length ||
        memchr(key->as.text, '\0', key->length) != NULL) {
        return NULL;
    }
    memcpy(name + length, key->as.text, key->length);
    return eplb_torch_entry(self, name);
}

static eplb_status check_storage_size(const eplb_torch *self, const eplb_zip_entry *entry,
                                      const eplb_pickle_value *items, const char *what, size_t size,
                                      eplb_error *error)
{
    int64_t count = items->kind == EPLB_PICKLED_INTEGER ? items->as.integer : -1;
    if (count >= 0 && entry->size % size == 0 && entry->size / size == (uint64_t)count) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_PARSE,
                          "%s: %s: storage of %lld items of %zu bytes, but entry '%s' has %llu "
                          "bytes",
                          self->input->name, what, (long long)count, size,
                          eplb_quote_bytes(entry->name, strlen(entry->name)).text,
                          (unsigned long long)entry->size);
}

/* Finds the bytes of a storage; *items is how many it has. */
static eplb_status read_storage(eplb_torch *self, const eplb_pickle_value *value, const char *what,
                                eplb_tensor *tensor, size_t *items, eplb_error *error)
{
    const eplb_pickle_value *fields[MOST_FIELDS];
    if (value->kind != EPLB_PICKLED_STORAGE || !list_fields(self, value, STORAGE_FIELDS, fields) ||
        !eplb_pickle_text_is(fields[0], "storage")) {
        return fail(self, what, "a tensor without a storage", error);
    }
    eplb_status status = read_type(self, fields[1], what, &tensor->type, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_zip_entry *entry = find_storage(self, fields[2]);
    if (entry == NULL) {
        return fail(self, what, "the archive has no entry with its storage", error);
    }
    status = check_storage_size(self, entry, fields[4], what, tensor->type.size, error);
    *items = (size_t)(entry->size / tensor->type.size);
    return status == EPLB_OK ? eplb_zip_locate(&self->zip, entry, &tensor->start, error) : status;
}

/* Reads a tuple of sizes; *count is how many it has. */
static bool read_sizes(const eplb_torch *self, const eplb_pickle_value *value,
                       size_t sizes[EPLB_TENSOR_DIMENSIONS], int *count)
{
    const eplb_pickle_value *fields[MOST_FIELDS];
    if (value->kind != EPLB_PICKLED_TUPLE || value->length > EPLB_TENSOR_DIMENSIONS ||
        !list_fields(self, value, 1, fields)) {
        return false;
    }
    *count = (int)value->length;
    for (int i = 0; i < *count; i++) {
        if (fields[i]->kind != EPLB_PICKLED_INTEGER || fields[i]->as.integer < 0) {
            return false;
        }
        sizes[i] = (size_t)fields[i]->as.integer;
    }
    return true;
}

/* All items of a view must be in the storage, and no more than those: views that show items many
 * times are no counts. */
static eplb_status check_view(const eplb_torch *self, const eplb_tensor *tensor, size_t items,
                              const char *what, eplb_error *error)
{
    size_t count = 1;
    size_t last = tensor->offset;
    bool fits = true;
    for (int i = 0; i < tensor->dimensions; i++) {
        size_t step;
        size_t size = tensor->shape[i];
        if (size == 0) {
            return fail(self, what, "a tensor without items", error);
        }
        fits = fits && eplb_size_mul(count, size, &count) &&
               eplb_size_mul(size - 1, tensor->stride[i], &step) &&
               eplb_size_add(last, step, &last);
    }
    if (!fits || count > items || last >= items) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %s: a tensor that reaches beyond its storage of %zu items",
                              self->input->name, what, items);
    }
    return EPLB_OK;
}

eplb_status eplb_torch_tensor(eplb_torch *torch, const eplb_pickle_value *value, const char *what,
                              eplb_tensor *tensor, eplb_error *error)
{
    const eplb_pickle_value *fields[MOST_FIELDS];
    *tensor = (eplb_tensor){.dimensions = 0};
    if (value->kind != EPLB_PICKLED_TENSOR || !list_fields(torch, value, TENSOR_FIELDS, fields)) {
        return fail(torch, what, "not a tensor", error);
    }
    int strides = 0;
    size_t items = 0;
    eplb_status status = read_storage(torch, fields[0], what, tensor, &items, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (fields[1]->kind != EPLB_PICKLED_INTEGER || fields[1]->as.integer < 0) {
        return fail(torch, what, "the offset of a tensor is no size", error);
    }
    tensor->offset = (size_t)fields[1]->as.integer;
    if (!read_sizes(torch, fields[2], tensor->shape, &tensor->dimensions) ||
        !read_sizes(torch, fields[3], tensor->stride, &strides) || strides != tensor->dimensions) {
        return fail(torch, what,
                    "its shape and strides are not tuples of as many sizes, 1 to 3 and none "
                    "negative",
                    error);
    }
    return check_view(torch, tensor, items, what, error);
}
