/* SPDX-License-Identifier: MIT */
/* SGLang's expert_distribution_recorder_*.pt: a dictionary with `logical_count` in the modes stat
 * and stat_approx (sglang_stat.c), with `records` in the mode per_pass (sglang_passes.c). */
#include "format/sglang_pt.h"

#include "base/memory.h"

eplb_status eplb_sglang_pt_next(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    return ((eplb_sglang_pt *)reading->state)->next(reading, row, error);
}

void eplb_sglang_pt_close(eplb_reading *reading)
{
    eplb_sglang_pt *self = reading->state;
    if (self == NULL) {
        return;
    }
    eplb_torch_close(&self->torch);
    eplb_free(&reading->hooks, self->counts);
    eplb_free(&reading->hooks, self->other);
    eplb_free(&reading->hooks, self->map);
    eplb_free(&reading->hooks, self);
}

/* The value of a key; NULL when there is none. */
static eplb_status find_key(const eplb_reading *reading, const char *key,
                            const eplb_pickle_value **value, eplb_error *error)
{
    const eplb_sglang_pt *self = reading->state;
    int32_t found = eplb_pickle_find(&self->torch.pickle, self->torch.pickle.root, key, value);
    return found < 2 ? EPLB_OK
                     : eplb_error_set(error, EPLB_ERROR_PARSE, "%s: data.pkl: second key '%s'",
                                      reading->input.name, key);
}

static eplb_status open_mode(eplb_reading *reading, eplb_error *error)
{
    const eplb_pickle_value *counts;
    const eplb_pickle_value *records;
    const eplb_pickle_value *map;
    eplb_status status = find_key(reading, "logical_count", &counts, error);
    if (status == EPLB_OK) {
        status = find_key(reading, "records", &records, error);
    }
    if (status == EPLB_OK) {
        status = find_key(reading, "last_physical_to_logical_map", &map, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if ((counts == NULL) == (records == NULL)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: data.pkl: %s 'logical_count' %s 'records'", reading->input.name,
                              counts == NULL ? "no key" : "both keys",
                              counts == NULL ? "or" : "and");
    }
    return counts != NULL ? eplb_sglang_stat_open(reading, counts, error)
                          : eplb_sglang_passes_open(reading, records, map, error);
}

eplb_status eplb_sglang_pt_open(eplb_reading *reading, eplb_error *error)
{
    eplb_sglang_pt *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->torch.hooks = reading->hooks;
    eplb_status status = eplb_torch_open(&self->torch, &reading->hooks, &reading->input,
                                         reading->options.max_bytes, error);
    return status == EPLB_OK ? open_mode(reading, error) : status;
}

eplb_status eplb_sglang_pt_shape(eplb_reading *reading, const char *what, size_t layers,
                                 size_t width, int32_t max_width, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    if (layers > (size_t)reading->options.max_layers || width > (size_t)max_width) {
        return eplb_error_set(
            error, EPLB_ERROR_LIMIT, "%s: %s: %zu layers of %zu counts, limits %d and %d",
            reading->input.name, what, layers, width, reading->options.max_layers, max_width);
    }
    self->layers = (int32_t)layers;
    self->width = (int32_t)width;
    self->counts = eplb_alloc(&reading->hooks, width, sizeof(*self->counts));
    return self->counts != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

eplb_status eplb_sglang_pt_read_row(eplb_reading *reading, size_t offset, int64_t step,
                                    int32_t layer, const char *unit, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    size_t width = (size_t)self->width;
    size_t read;
    eplb_number_class number;
    eplb_status status = eplb_torch_read(&self->torch, &self->tensor, offset,
                                         self->tensor.stride[self->tensor.dimensions - 1], width,
                                         self->counts, &read, &number, error);
    if (status == EPLB_OK && read < width) {
        return eplb_error_set(
            error, eplb_number_status(number), "%s: step %lld: layer %d: %s %zu: %s %s",
            reading->input.name, (long long)step, layer, unit, read,
            eplb_item_show(&self->tensor.type, self->torch.bad).text, eplb_number_words(number));
    }
    return status;
}
