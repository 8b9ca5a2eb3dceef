/* SPDX-License-Identifier: MIT */
/*
 * SGLang's recorder in the modes stat and stat_approx: `logical_count`, [steps][layers][experts]
 * summed over ranks, or [layers][experts]. Its buffer is written round and round, and steps that it
 * does not have yet are zeros: those are left out, and a step's number is its place in the buffer.
 */
#include "base/memory.h"
#include "format/options.h"
#include "format/sglang_pt.h"

static const char key[] = "key 'logical_count'";

static size_t row_offset(const eplb_sglang_pt *self, size_t step, int32_t layer)
{
    const eplb_tensor *tensor = &self->tensor;
    const size_t *stride = tensor->stride + (tensor->dimensions - 2);
    size_t offset = tensor->offset + (size_t)layer * stride[0];
    return tensor->dimensions == 3 ? offset + step * tensor->stride[0] : offset;
}

static bool has_tokens(const eplb_sglang_pt *self)
{
    for (int32_t e = 0; e < self->width; e++) {
        if (self->counts[e] > 0.0) {
            return true;
        }
    }
    return false;
}

static eplb_status read_layer(eplb_reading *reading, int32_t layer, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    return eplb_sglang_pt_read_row(reading, row_offset(self, self->step, layer),
                                   (int64_t)self->step, layer, "expert", error);
}

/* Reads a step up to its first row with tokens; *found is whether there is one. */
static eplb_status search_step(eplb_reading *reading, bool *found, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    *found = false;
    for (int32_t l = 0; l < self->layers && !*found; l++) {
        eplb_status status = read_layer(reading, l, error);
        if (status != EPLB_OK) {
            return status;
        }
        *found = has_tokens(self);
        self->read_layer = l;
    }
    return EPLB_OK;
}

/* On to the next step with tokens. Where no step has any, the last stands for all: a model without
 * traffic still has layers. */
static eplb_status find_step(eplb_reading *reading, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    while (!self->in_step && self->step < self->steps) {
        bool found;
        eplb_status status = search_step(reading, &found, error);
        if (status != EPLB_OK) {
            return status;
        }
        self->in_step = found || (!self->any_step && self->step + 1 == self->steps);
        self->step += self->in_step ? 0 : 1;
    }
    self->any_step = true;
    return self->in_step ? EPLB_OK : EPLB_END;
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    eplb_status status = self->in_step ? EPLB_OK : find_step(reading, error);
    if (status == EPLB_OK && self->layer > self->read_layer) {
        status = read_layer(reading, self->layer, error);
        self->read_layer = self->layer;
    }
    if (status != EPLB_OK) {
        return status;
    }
    *row = (eplb_counts_row){.step = (int64_t)self->step,
                             .layer = self->layer,
                             .length = self->width,
                             .counts = self->layer < self->read_layer ? self->other : self->counts};
    self->layer++;
    if (self->layer == self->layers) {
        self->layer = 0;
        self->step++;
        self->in_step = false;
    }
    return EPLB_OK;
}

eplb_status eplb_sglang_stat_open(eplb_reading *reading, const eplb_pickle_value *logical_count,
                                  eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    self->next = next_counts;
    eplb_status status = eplb_torch_tensor(&self->torch, logical_count, key, &self->tensor, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (self->tensor.dimensions < 2) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %s: %d dimension, expected [layers, experts] or [steps, layers, "
                              "experts]",
                              reading->input.name, key, self->tensor.dimensions);
    }
    const size_t *shape = self->tensor.shape + (self->tensor.dimensions - 2);
    self->steps = self->tensor.dimensions == 3 ? self->tensor.shape[0] : 1;
    if (reading->options.experts > 0 && shape[1] != (size_t)reading->options.experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %s: %zu counts a layer, expected %d, %s",
                              reading->input.name, key, shape[1], reading->options.experts,
                              eplb_words_for_width(&reading->options));
    }
    status =
        eplb_sglang_pt_shape(reading, key, shape[0], shape[1], reading->options.max_experts, error);
    if (status == EPLB_OK) {
        self->other = eplb_alloc_zeroed(&reading->hooks, shape[1], sizeof(*self->other));
    }
    return status == EPLB_OK && self->other == NULL ? eplb_out_of_memory(error) : status;
}
