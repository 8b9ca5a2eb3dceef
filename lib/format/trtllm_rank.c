/* SPDX-License-Identifier: MIT */
#include "format/trtllm_rank.h"

#include "format/one_model.h"
#include "format/options.h"

/* What the header's tensors are checked against. */
typedef struct heading {
    eplb_trtllm_rank *rank;
    const eplb_reading *reading;
} heading;

static bool parse_key(const char *name, uint64_t *iteration, uint64_t *layer)
{
    const char *end = eplb_number_digits(name, iteration);
    if (end == NULL || *end != '_') {
        return false;
    }
    end = eplb_number_digits(end + 1, layer);
    return end != NULL && *end == '\0';
}

bool eplb_trtllm_is_key(const char *name)
{
    uint64_t iteration;
    uint64_t layer;
    return parse_key(name, &iteration, &layer);
}

static eplb_status check_key(const eplb_scanner *scanner, const eplb_tensor_info *info,
                             int32_t max_layers, eplb_tensor *tensor, eplb_error *error)
{
    uint64_t iteration;
    uint64_t layer;
    if (!parse_key(info->name, &iteration, &layer)) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "its name is not <iteration>_<layer>");
    }
    if (layer >= (uint64_t)max_layers) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_LIMIT, error,
                                "layer %llu is above the limit %d", (unsigned long long)layer,
                                max_layers - 1);
    }
    tensor->number = (int64_t)iteration;
    tensor->layer = (int32_t)layer;
    return EPLB_OK;
}

static eplb_status check_shape(const eplb_scanner *scanner, const eplb_tensor_info *info,
                               const eplb_read_options *options, eplb_error *error)
{
    if (info->type.kind == 'f') {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "items are floats, expected integers");
    }
    if (info->dimensions != 1 || info->shape[0] == 0) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "its shape is not [experts]");
    }
    if (info->shape[0] > (uint64_t)options->max_experts) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_LIMIT, error, "%llu counts, limit %d",
                                (unsigned long long)info->shape[0], options->max_experts);
    }
    if (options->experts > 0 && info->shape[0] != (uint64_t)options->experts) {
        bool folds = options->counted_under != NULL;
        return eplb_tensor_fail(
            scanner, info, EPLB_ERROR_DATA, error, "%llu counts, expected %d, %s%s",
            (unsigned long long)info->shape[0], options->experts, eplb_words_for_width(options),
            folds ? "" : "; counts of slots need the placement that they were counted under");
    }
    return EPLB_OK;
}

static eplb_status take_tensor(void *context, const eplb_scanner *scanner,
                               const eplb_tensor_info *info, eplb_tensor *tensor, eplb_error *error)
{
    const heading *self = context;
    eplb_trtllm_rank *rank = self->rank;
    const eplb_read_options *options = &self->reading->options;
    eplb_status status = check_key(scanner, info, options->max_layers, tensor, error);
    if (status == EPLB_OK) {
        status = check_shape(scanner, info, options, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t experts = (int32_t)info->shape[0];
    if (rank->experts == 0) {
        rank->experts = experts;
        rank->type = info->type;
    }
    if (experts != rank->experts || info->type.kind != rank->type.kind ||
        info->type.size != rank->type.size) {
        return eplb_tensor_fail(scanner, info, EPLB_ERROR_PARSE, error,
                                "%d counts of %zu bytes, but %d of %zu bytes before it", experts,
                                info->type.size, rank->experts, rank->type.size);
    }
    return EPLB_OK;
}

/* How many layers the first iteration has. */
static size_t count_layers(const eplb_safetensors *file)
{
    size_t layers = 0;
    while (layers < file->count && file->tensors[layers].number == file->tensors[0].number) {
        layers++;
    }
    return layers;
}

/* Sets the error of a tensor that is not where the layers of the first iteration have it. */
static eplb_status misplaced(const eplb_safetensors *file, size_t index, int64_t step,
                             int32_t layer, eplb_error *error)
{
    const eplb_tensor *end = file->tensors + file->count;
    const eplb_tensor *found = file->tensors + index;
    const char *name = file->input->name;
    long long first = file->tensors[0].number;
    if (found < end && index > 0 && found->number == found[-1].number &&
        found->layer == found[-1].layer) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: step %lld: layer %d a second time",
                              name, (long long)found->number, found->layer);
    }
    if (found < end && (found->number < step || (found->number == step && found->layer < layer))) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: step %lld: layer %d, but there is none in step %lld", name,
                              (long long)found->number, found->layer, first);
    }
    if (found < end && found->number > step && found[-1].number < step) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: no step %lld between %lld and %lld",
                              name, (long long)step, (long long)found[-1].number,
                              (long long)found->number);
    }
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "%s: step %lld: no layer %d, but there is one in step %lld", name,
                          (long long)step, layer, first);
}

/* The iterations follow each other, and each has the layers of the first one. */
static eplb_status check_steps(const eplb_safetensors *file, size_t layers, eplb_error *error)
{
    const eplb_tensor *tensors = file->tensors;
    if (file->count == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: no tensors", file->input->name);
    }
    for (size_t i = 0; i < file->count || i % layers != 0; i++) {
        int64_t step = tensors[0].number + (int64_t)(i / layers);
        int32_t layer = tensors[i % layers].layer;
        bool is_repeated = i > 0 && i < layers && tensors[i - 1].layer == layer;
        if (i >= file->count || tensors[i].number != step || tensors[i].layer != layer ||
            is_repeated) {
            return misplaced(file, i, step, layer, error);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_trtllm_rank_open(eplb_trtllm_rank *rank, const eplb_reading *reading,
                                  eplb_input *input, eplb_error *error)
{
    heading context = {.rank = rank, .reading = reading};
    *rank = (eplb_trtllm_rank){.experts = 0};
    eplb_status status =
        eplb_safetensors_open(&rank->file, &reading->hooks, input, take_tensor, &context, error);
    rank->layers = status == EPLB_OK ? count_layers(&rank->file) : 0;
    return status == EPLB_OK ? check_steps(&rank->file, rank->layers, error) : status;
}

void eplb_trtllm_rank_close(eplb_trtllm_rank *rank)
{
    eplb_safetensors_close(&rank->file);
}

/* Sets the error of the first tensor that only one of both has. */
static eplb_status differ(const eplb_safetensors *a, const eplb_safetensors *b, size_t index,
                          eplb_error *error)
{
    bool a_lacks = index >= a->count ||
                   (index < b->count && (b->tensors[index].number < a->tensors[index].number ||
                                         (b->tensors[index].number == a->tensors[index].number &&
                                          b->tensors[index].layer < a->tensors[index].layer)));
    const eplb_safetensors *has = a_lacks ? b : a;
    const eplb_safetensors *lacks = a_lacks ? a : b;
    const eplb_tensor *tensor = &has->tensors[index];
    bool begins_step = index == 0 || tensor[-1].number != tensor->number;
    bool lacks_step =
        begins_step && (index >= lacks->count || lacks->tensors[index].number != tensor->number);
    return eplb_file_lacks(lacks->input->name, has->input->name, lacks_step ? -1 : tensor->number,
                           lacks_step ? "step" : "layer",
                           lacks_step ? tensor->number : tensor->layer, error);
}

bool eplb_trtllm_rank_shares_layers(const eplb_trtllm_rank *rank, const eplb_trtllm_rank *other)
{
    const eplb_tensor *a = rank->file.tensors;
    const eplb_tensor *b = other->file.tensors;
    size_t i = 0;
    size_t j = 0;
    while (i < rank->layers && j < other->layers && a[i].layer != b[j].layer) {
        bool is_before = a[i].layer < b[j].layer;
        i += is_before ? 1 : 0;
        j += is_before ? 0 : 1;
    }
    return i < rank->layers && j < other->layers;
}

/* Both have the same iterations, which follow each other in each. */
static eplb_status compare_steps(const eplb_safetensors *a, const eplb_safetensors *b,
                                 eplb_error *error)
{
    int64_t first[] = {a->tensors[0].number, b->tensors[0].number};
    int64_t last[] = {a->tensors[a->count - 1].number, b->tensors[b->count - 1].number};
    if (first[0] == first[1] && last[0] == last[1]) {
        return EPLB_OK;
    }
    bool a_lacks = first[0] != first[1] ? first[0] > first[1] : last[0] < last[1];
    int64_t step = first[0] != first[1] ? first[a_lacks ? 1 : 0] : last[a_lacks ? 1 : 0];
    return eplb_file_lacks(a_lacks ? a->input->name : b->input->name,
                           a_lacks ? b->input->name : a->input->name, -1, "step", step, error);
}

eplb_status eplb_trtllm_rank_compare(const eplb_trtllm_rank *rank, const eplb_trtllm_rank *first,
                                     eplb_error *error)
{
    const eplb_safetensors *a = &rank->file;
    const eplb_safetensors *b = &first->file;
    if (rank->experts != first->experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: tensors of %d counts, but of %d in %s: not of one model",
                              a->input->name, rank->experts, first->experts, b->input->name);
    }
    if (!eplb_trtllm_rank_shares_layers(rank, first)) {
        return compare_steps(a, b, error);
    }
    size_t count = a->count < b->count ? a->count : b->count;
    size_t i = 0;
    while (i < count && a->tensors[i].number == b->tensors[i].number &&
           a->tensors[i].layer == b->tensors[i].layer) {
        i++;
    }
    return i == a->count && i == b->count ? EPLB_OK : differ(a, b, i, error);
}

eplb_status eplb_trtllm_rank_counts(eplb_trtllm_rank *rank, size_t tensor,
                                    const eplb_counts_row *row, double *counts, eplb_error *error)
{
    return eplb_safetensors_row(&rank->file, &rank->type, rank->file.tensors[tensor].begin, row,
                                counts, error);
}
