/* SPDX-License-Identifier: MIT */
#include "format/counted_under.h"

#include "base/memory.h"
#include "format/fold.h"

/* The tokens of an expert without a slot were not counted, or the placement is another one. */
static eplb_status check_experts(const eplb_reading *reading, eplb_error *error)
{
    const eplb_placement *placement = reading->options.counted_under;
    int32_t experts = eplb_placement_experts(placement);
    int32_t *replicas = eplb_alloc(&reading->hooks, (size_t)experts, sizeof(*replicas));
    if (replicas == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < eplb_placement_layers(placement) && status == EPLB_OK; l++) {
        status = eplb_placement_replica_counts(placement, l, replicas, error);
        for (int32_t e = 0; e < experts && status == EPLB_OK; e++) {
            if (replicas[e] == 0) {
                status =
                    eplb_error_set(error, EPLB_ERROR_DATA,
                                   "%s: the placement that it was counted under: layer %d: "
                                   "expert %d has no slot",
                                   reading->input.name, eplb_placement_layer_ids(placement)[l], e);
            }
        }
    }
    eplb_free(&reading->hooks, replicas);
    return status;
}

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
    return check_experts(reading, error);
}

eplb_status eplb_counted_under_init(eplb_counted_under *self, const eplb_reading *reading,
                                    const eplb_format *format, eplb_error *error)
{
    *self = (eplb_counted_under){.format = format, .name = reading->input.name, .first = INT32_MAX};
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

static bool has_model_ids(const eplb_counted_under *self)
{
    return (self->format->flags & EPLB_FORMAT_MODEL_LAYER_IDS) != 0;
}

/* The placement's layer with this number; -1: none. */
static int32_t find_id(const eplb_counted_under *self, int32_t layer)
{
    int32_t layers = eplb_placement_layers(self->placement);
    const int32_t *ids = eplb_placement_layer_ids(self->placement);
    for (int32_t l = 0; l < layers; l++) {
        if (ids[l] == layer) {
            return l;
        }
    }
    return -1;
}

/* The placement's layer: by the model's number where the counts have it, else by the order of MoE
 * layers. -1: none. */
static int32_t find_layer(const eplb_counted_under *self, int32_t layer)
{
    if (!self->by_order) {
        return find_id(self, layer);
    }
    return layer < eplb_placement_layers(self->placement) ? layer : -1;
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
    if (self->layers == 0) {
        bool is_named =
            has_model_ids(self) || (self->format->flags & EPLB_FORMAT_ANY_LAYER_IDS) != 0;
        bool is_known = has_model_ids(self) || find_id(self, row->layer) >= 0;
        self->by_order = !(is_named && is_known);
    }
    if (row->layer < self->first && has_tokens(row)) {
        self->first = row->layer;
    }
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

/* Whether the one may number the layers of the model and the other MoE layers: a number would then
 * be that of another layer. Counts whose numbers may be of either kind are of the placement's where
 * they have its last one, and no placement of MoE layers has as many. */
static bool may_be_shifted(const eplb_counted_under *self)
{
    const eplb_placement *placement = self->placement;
    if (self->by_order || self->first == INT32_MAX) {
        return false;
    }
    if (!has_model_ids(self)) {
        return eplb_placement_layer_ids(placement)[0] > 0 &&
               self->layers <= eplb_placement_layers(placement);
    }
    return eplb_placement_layer_ids(placement)[0] == 0 &&
           eplb_placement_model_layers(placement) == 0 && self->first > 0;
}

/* Whether only a part of the layers came, in order, of a placement whose numbers are not that
 * order: it could be meant by either. */
static bool is_part(const eplb_counted_under *self)
{
    int32_t layers = eplb_placement_layers(self->placement);
    const int32_t *ids = eplb_placement_layer_ids(self->placement);
    return self->by_order && ids[layers - 1] != layers - 1 && self->known != layers;
}

/* Dense layers that only the placement lists would shift the numbers of all others. */
static bool lacks_dense(const eplb_counted_under *self)
{
    return !has_model_ids(self) && eplb_placement_model_layers(self->placement) > 0 &&
           self->layers != eplb_placement_layers(self->placement);
}

eplb_status eplb_counted_under_finish(const eplb_counted_under *self, eplb_error *error)
{
    if (self->placement == NULL) {
        return EPLB_END;
    }
    int32_t layers = eplb_placement_layers(self->placement);
    const int32_t *ids = eplb_placement_layer_ids(self->placement);
    if (is_part(self)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: not all of layers 0 to %d, which are layers %d to %d in the "
                              "placement that it was counted under",
                              self->name, layers - 1, ids[0], ids[layers - 1]);
    }
    if (lacks_dense(self)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers, but %d in the placement that it was counted under, "
                              "which lists dense layers, too: leave them out of it",
                              self->name, self->layers, layers);
    }
    if (may_be_shifted(self)) {
        return eplb_error_set(
            error, EPLB_ERROR_DATA,
            "%s: layers %d to %d, but %d to %d in the placement that it was "
            "counted under, and nothing says whether both number the layers of "
            "the model%s",
            self->name, self->first, self->layers - 1, ids[0], ids[layers - 1],
            has_model_ids(self) ? ": give a placement that lists all of them, such as sglang" : "");
    }
    return EPLB_END;
}
