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
    size_t layers = (size_t)eplb_placement_layers(self->placement);
    self->seen = eplb_alloc_zeroed(&reading->hooks, layers, sizeof(*self->seen));
    return self->counts != NULL && self->seen != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

void eplb_counted_under_clear(eplb_counted_under *self, const eplb_hooks *hooks)
{
    eplb_free(hooks, self->seen);
    eplb_free(hooks, self->counts);
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
        self->known += self->seen[layer] ? 0 : 1;
        self->seen[layer] = true;
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

/* A placement with model layer ids that are not their order: a part of the layers could be meant by
 * either. */
static eplb_status check_order(const eplb_counted_under *self, int32_t layers, eplb_error *error)
{
    const int32_t *ids = eplb_placement_layer_ids(self->placement);
    return self->known == layers
               ? EPLB_END
               : eplb_error_set(error, EPLB_ERROR_DATA,
                                "%s: not all of layers 0 to %d, which are layers %d to %d in the "
                                "placement that it was counted under",
                                self->name, layers - 1, ids[0], ids[layers - 1]);
}

eplb_status eplb_counted_under_finish(const eplb_counted_under *self, eplb_error *error)
{
    if (self->placement == NULL || (self->format->flags & EPLB_FORMAT_MODEL_LAYER_IDS) != 0) {
        return EPLB_END;
    }
    int32_t layers = eplb_placement_layers(self->placement);
    if (eplb_placement_layer_ids(self->placement)[layers - 1] != layers - 1) {
        return check_order(self, layers, error);
    }
    /* Dense layers that only the placement lists would shift the numbers of all others. */
    if (eplb_placement_model_layers(self->placement) > 0 && self->layers != layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers, but %d in the placement that it was counted under, "
                              "which lists dense layers, too: leave them out of it",
                              self->name, self->layers, layers);
    }
    return EPLB_END;
}
