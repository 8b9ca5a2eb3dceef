/* SPDX-License-Identifier: MIT */
#include "format/counted_under.h"

#include "base/memory.h"
#include "format/fold.h"

eplb_status eplb_counted_under_resolve(eplb_reading *reading, eplb_error *error)
{
    eplb_read_options *options = &reading->options;
    if (options->counted_under == NULL) {
        return EPLB_OK;
    }
    int32_t experts = eplb_placement_experts(options->counted_under);
    int32_t slots = eplb_placement_slots(options->counted_under);
    if (options->experts > 0 && options->experts != experts) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "%s: the placement that it was counted under has %d experts, not %d",
                              reading->input.name, experts, options->experts);
    }
    reading->logical_experts = experts;
    options->experts = slots;
    options->max_experts = slots > options->max_experts ? slots : options->max_experts;
    return EPLB_OK;
}

eplb_status eplb_counted_under_init(eplb_counted_under *self, const eplb_reading *reading,
                                    const eplb_format *format, eplb_error *error)
{
    *self = (eplb_counted_under){.format = format, .name = reading->input.name};
    if (reading->options.counted_under == NULL || reading->is_folded) {
        return EPLB_OK;
    }
    self->placement = reading->options.counted_under;
    self->counts = eplb_alloc(&reading->hooks, (size_t)eplb_placement_experts(self->placement),
                              sizeof(*self->counts));
    return self->counts != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

/* The placement's layer: by the model's number where the counts have it, else by the order of MoE
 * layers. -1: none. */
static int32_t find_layer(const eplb_counted_under *self, int32_t layer)
{
    int32_t layers = eplb_placement_layers(self->placement);
    if ((self->format->flags & EPLB_FORMAT_MODEL_LAYER_IDS) == 0) {
        return layer < layers ? layer : -1;
    }
    const int32_t *ids = eplb_placement_layer_ids(self->placement);
    for (int32_t l = 0; l < layers; l++) {
        if (ids[l] == layer) {
            return l;
        }
    }
    return -1;
}

static bool has_tokens(const eplb_counts_row *row)
{
    for (int32_t i = 0; i < row->length; i++) {
        if (row->counts[i] > 0.0) {
            return true;
        }
    }
    return false;
}

eplb_status eplb_counted_under_fold(eplb_counted_under *self, eplb_counts_row *row,
                                    eplb_error *error)
{
    if (self->placement == NULL) {
        return EPLB_OK;
    }
    int32_t experts = eplb_placement_experts(self->placement);
    int32_t layer = find_layer(self, row->layer);
    self->layers = row->layer >= self->layers ? row->layer + 1 : self->layers;
    memset(self->counts, 0, (size_t)experts * sizeof(*self->counts));
    eplb_error inner = {0};
    eplb_status status = EPLB_OK;
    if (layer >= 0) {
        status = eplb_fold_row(eplb_placement_row(self->placement, layer), row->length, row->counts,
                               self->counts, &inner);
    } else if (has_tokens(row)) { /* a dense layer has none */
        status = eplb_error_set(&inner, EPLB_ERROR_DATA,
                                "not in the placement that it was counted under");
    }
    if (status != EPLB_OK) {
        return eplb_error_set(error, status, "%s: step %lld: layer %d: %s", self->name,
                              (long long)row->step, row->layer, inner.message);
    }
    row->length = experts;
    row->counts = self->counts;
    return EPLB_OK;
}

eplb_status eplb_counted_under_finish(const eplb_counted_under *self, eplb_error *error)
{
    /* Dense layers that only the placement lists would shift the numbers of all others. */
    bool by_order = self->placement != NULL &&
                    (self->format->flags & EPLB_FORMAT_MODEL_LAYER_IDS) == 0 &&
                    eplb_placement_model_layers(self->placement) > 0;
    if (by_order && self->layers != eplb_placement_layers(self->placement)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers, but %d in the placement that it was counted under, "
                              "which lists dense layers, too: leave them out of it",
                              self->name, self->layers, eplb_placement_layers(self->placement));
    }
    return EPLB_END;
}
