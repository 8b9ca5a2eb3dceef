/* SPDX-License-Identifier: MIT */
/* vLLM's cumulative load of a change that is not merged: safetensors with an array of floats
 * [layers, experts] for each model, by its name. */
#include <stdlib.h>

#include "base/memory.h"
#include "format/options.h"
#include "format/quote.h"
#include "format/safetensors.h"

#define VERSION "1"

typedef struct vllm_load {
    eplb_safetensors file;
    char **names; /* [capacity] of the models, in the order of the header */
    size_t count;
    size_t capacity;
    eplb_tensor_info load; /* of the model that is read */
    size_t fitting;        /* models that are asked for */
    char list[150];        /* of names, for messages */
    int32_t layer;         /* the next one */
    double *counts;        /* [experts] */
} vllm_load;

typedef struct heading {
    vllm_load *self;
    const eplb_reading *reading;
} heading;

static bool probe(const eplb_probe *probe)
{
    eplb_safetensors_start start;
    return eplb_safetensors_probe(probe, &start) && start.has_version;
}

static bool keep_name(vllm_load *self, const eplb_hooks *hooks, const char *name)
{
    if (self->count == self->capacity) {
        size_t capacity = self->capacity > 0 ? 2 * self->capacity : 4;
        char **names = eplb_realloc(hooks, self->names, capacity, sizeof(*names));
        if (names == NULL) {
            return false;
        }
        self->names = names;
        self->capacity = capacity;
    }
    size_t size = strlen(name) + 1;
    char *copy = eplb_alloc(hooks, size, 1);
    if (copy == NULL) {
        return false;
    }
    self->names[self->count++] = memcpy(copy, name, size);
    return true;
}

static eplb_status take_tensor(void *context, const eplb_scanner *scanner,
                               const eplb_tensor_info *info, eplb_tensor *tensor, eplb_error *error)
{
    const heading *check = context;
    vllm_load *self = check->self;
    const char *wanted = check->reading->options.array;
    if (info->type.kind != 'f' || info->dimensions != 2) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "expected floats [layers, experts]");
    }
    tensor->number = (int64_t)self->count;
    if (!keep_name(self, &check->reading->hooks, info->name)) {
        return eplb_out_of_memory(error);
    }
    eplb_quote_append(self->list, sizeof(self->list), info->name, strlen(info->name));
    if (wanted == NULL || strcmp(wanted, info->name) == 0) {
        self->load = *info;
        self->load.name = self->names[self->count - 1];
        self->fitting++;
    }
    return EPLB_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static eplb_status refuse_repeated(vllm_load *self, eplb_error *error)
{
    if (self->count > 1) {
        qsort(self->names, self->count, sizeof(*self->names), compare_names);
    }
    for (size_t i = 1; i < self->count; i++) {
        const char *name = self->names[i];
        if (strcmp(name, self->names[i - 1]) == 0) {
            return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: two tensors '%s'",
                                  self->file.input->name,
                                  eplb_quote_bytes(name, strlen(name)).text);
        }
    }
    return EPLB_OK;
}

static eplb_status check_version(const vllm_load *self, eplb_error *error)
{
    const char *version = self->file.version;
    if (strcmp(version, VERSION) == 0) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                          "%s: version '%s' in its metadata, known is '" VERSION "'",
                          self->file.input->name, eplb_quote_bytes(version, strlen(version)).text);
}

/* There must be one model that is asked for. */
static eplb_status check_choice(const vllm_load *self, const eplb_reading *reading,
                                eplb_error *error)
{
    const char *wanted = reading->options.array;
    const char *name = reading->input.name;
    if (self->fitting == 1) {
        return EPLB_OK;
    }
    if (self->count == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: no tensors", name);
    }
    return wanted != NULL
               ? eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: no array '%s' among%s", name,
                                eplb_quote_bytes(wanted, strlen(wanted)).text, self->list)
               : eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: %zu arrays, say which one:%s",
                                name, self->count, self->list);
}

static eplb_status check_shape(const vllm_load *self, const eplb_reading *reading,
                               eplb_error *error)
{
    const eplb_read_options *options = &reading->options;
    unsigned long long layers = self->load.shape[0];
    unsigned long long experts = self->load.shape[1];
    eplb_quote model = eplb_quote_bytes(self->load.name, strlen(self->load.name));
    const char *name = reading->input.name;
    if (layers == 0 || experts == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: '%s': %llu layers, %llu experts: no counts", name, model.text,
                              layers, experts);
    }
    if (layers > (uint64_t)options->max_layers || experts > (uint64_t)options->max_experts) {
        return eplb_error_set(
            error, EPLB_ERROR_LIMIT, "%s: '%s': %llu layers of %llu experts, limits %d and %d",
            name, model.text, layers, experts, options->max_layers, options->max_experts);
    }
    if (options->experts > 0 && experts != (uint64_t)options->experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: '%s': %llu counts a layer, expected %d, %s", name, model.text,
                              experts, options->experts, eplb_words_for_width(options));
    }
    return EPLB_OK;
}

static eplb_status read_header(vllm_load *self, eplb_reading *reading, eplb_error *error)
{
    heading context = {.self = self, .reading = reading};
    eplb_status status = eplb_safetensors_open(&self->file, &reading->hooks, &reading->input,
                                               take_tensor, &context, error);
    if (status == EPLB_OK) {
        status = check_version(self, error);
    }
    if (status == EPLB_OK) {
        status = refuse_repeated(self, error);
    }
    if (status == EPLB_OK) {
        status = check_choice(self, reading, error);
    }
    return status == EPLB_OK ? check_shape(self, reading, error) : status;
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    vllm_load *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = read_header(self, reading, error);
    if (status != EPLB_OK) {
        return status;
    }
    self->counts = eplb_alloc(&reading->hooks, (size_t)self->load.shape[1], sizeof(*self->counts));
    return self->counts != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    vllm_load *self = reading->state;
    const eplb_tensor_info *load = &self->load;
    if ((uint64_t)self->layer == load->shape[0]) {
        return EPLB_END;
    }
    *row = (eplb_counts_row){
        .layer = self->layer++, .length = (int32_t)load->shape[1], .counts = self->counts};
    uint64_t offset = load->begin + (uint64_t)row->layer * load->shape[1] * load->type.size;
    return eplb_safetensors_row(&self->file, &load->type, offset, row, self->counts, error);
}

static void close_counts(eplb_reading *reading)
{
    vllm_load *self = reading->state;
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->count; i++) {
        eplb_free(&reading->hooks, self->names[i]);
    }
    eplb_safetensors_close(&self->file);
    eplb_free(&reading->hooks, self->names);
    eplb_free(&reading->hooks, self->counts);
    eplb_free(&reading->hooks, self);
}

const eplb_format eplb_format_vllm_load = {
    .name = "vllm_load",
    .description = "vLLM's cumulative load: safetensors with [layers, experts] of each model",
    .engine = "vLLM",
    .recognised = "safetensors with a version in its metadata",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_OPEN,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .names_arrays = true},
};
