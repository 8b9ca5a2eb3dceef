/* SPDX-License-Identifier: MIT */
#include "stats/waits.h"

#include "base/memory.h"
#include "base/range.h"
#include "stats/log_bins.h"

static const char what[] = "waits";

void eplb_waits_options_init(eplb_waits_options *options)
{
    if (options != NULL) {
        *options = (eplb_waits_options){.struct_size = sizeof(*options), .rank = -1};
    }
}

static eplb_status check_options(const eplb_waits_options *options, eplb_error *error)
{
    eplb_status status =
        eplb_check_range(what, "number of layers", options->layers, 1, EPLB_MAX_LAYERS, error);
    if (status == EPLB_OK) {
        status =
            eplb_check_range(what, "number of ranks", options->ranks, 1, EPLB_MAX_RANKS, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "rank", options->rank, -1, options->ranks - 1, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "reserved", options->reserved, 0, 0, error);
    }
    return status;
}

/* Fills waits that have nothing but their shape. */
static eplb_status fill(eplb_waits *waits, const int32_t *layer_ids, int32_t model_layers,
                        eplb_error *error)
{
    size_t cells;
    if (!eplb_size_mul((size_t)waits->layers, (size_t)waits->ranks, &cells) ||
        eplb_layer_ids_init(&waits->layer_ids, &waits->hooks, waits->layers) != EPLB_OK) {
        return eplb_out_of_memory(error);
    }
    waits->cells = eplb_alloc_zeroed(&waits->hooks, cells, sizeof(eplb_wait_cell *));
    if (waits->cells == NULL) {
        return eplb_out_of_memory(error);
    }
    return eplb_layer_ids_set(&waits->layer_ids, waits->layers,
                              layer_ids != NULL ? layer_ids : waits->layer_ids.ids, model_layers,
                              error);
}

eplb_status eplb_waits_make(eplb_waits **out, const eplb_hooks *hooks, int32_t layers,
                            int32_t ranks, const int32_t *layer_ids, int32_t model_layers,
                            eplb_error *error)
{
    eplb_waits *waits = eplb_alloc_zeroed(hooks, 1, sizeof(*waits));
    if (waits == NULL) {
        return eplb_out_of_memory(error);
    }
    waits->hooks = *hooks;
    waits->layers = layers;
    waits->ranks = ranks;
    eplb_status status = fill(waits, layer_ids, model_layers, error);
    if (status != EPLB_OK) {
        eplb_waits_destroy(&waits);
        return status;
    }
    *out = waits;
    return EPLB_OK;
}

static eplb_status take_memory(eplb_waits *waits, int32_t rank, eplb_error *error)
{
    int32_t first = rank >= 0 ? rank : 0;
    int32_t last = rank >= 0 ? rank : waits->ranks - 1;
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < waits->layers; l++) {
        for (int32_t r = first; r <= last && status == EPLB_OK; r++) {
            status = eplb_wait_cell_take(eplb_waits_at(waits, l, r), &waits->hooks, error);
        }
    }
    return status;
}

eplb_status eplb_waits_create(eplb_waits **out, const eplb_hooks *hooks,
                              const eplb_waits_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || options == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "waits: no output or no options");
    }
    eplb_waits_options complete;
    eplb_waits_options_init(&complete);
    if (!eplb_struct_in(&complete, sizeof(complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "waits: options without struct_size: see eplb_waits_options_init");
    }
    eplb_status status = check_options(&complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_waits *waits = NULL;
    status = eplb_waits_make(&waits, &resolved, complete.layers, complete.ranks, complete.layer_ids,
                             complete.model_layers, error);
    if (status == EPLB_OK) {
        status = take_memory(waits, complete.rank, error);
    }
    if (status != EPLB_OK) {
        eplb_waits_destroy(&waits);
        return status;
    }
    *out = waits;
    return EPLB_OK;
}

void eplb_waits_destroy(eplb_waits **waits)
{
    if (waits == NULL || *waits == NULL) {
        return;
    }
    eplb_waits *self = *waits;
    eplb_hooks hooks = self->hooks;
    for (int32_t l = 0; self->cells != NULL && l < self->layers; l++) {
        for (int32_t r = 0; r < self->ranks; r++) {
            eplb_free(&hooks, *eplb_waits_at(self, l, r));
        }
    }
    eplb_free(&hooks, self->cells);
    eplb_free(&hooks, self->layer_ids.ids);
    eplb_free(&hooks, self);
    *waits = NULL;
}

eplb_status eplb_wait_cell_take(eplb_wait_cell **cell, const eplb_hooks *hooks, eplb_error *error)
{
    if (*cell == NULL) {
        *cell = eplb_alloc_zeroed(hooks, 1, sizeof(**cell));
    }
    return *cell != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static int32_t bin_of(double microseconds)
{
    return microseconds < 1.0
               ? (int32_t)(microseconds * EPLB_WAIT_LINEAR_BINS)
               : EPLB_WAIT_LINEAR_BINS + (int32_t)eplb_log_bin(microseconds, EPLB_WAIT_BIN_BITS);
}

eplb_status eplb_wait_cell_add(eplb_wait_cell **cell, const eplb_hooks *hooks, int32_t layer_id,
                               int32_t rank, double microseconds, eplb_error *error)
{
    if (!(microseconds >= 0.0 && microseconds <= EPLB_MAX_WAIT_US)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "layer %d: rank %d: a wait of %.17g us is not in 0..%.17g", layer_id,
                              rank, microseconds, EPLB_MAX_WAIT_US);
    }
    eplb_status status = eplb_wait_cell_take(cell, hooks, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_wait_cell *to = *cell;
    if (to->samples == UINT32_MAX) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "layer %d: rank %d: more than %lld samples", layer_id, rank,
                              (long long)UINT32_MAX);
    }
    to->samples++;
    to->sum += microseconds;
    to->largest = microseconds > to->largest ? microseconds : to->largest;
    to->histogram[bin_of(microseconds)]++;
    return EPLB_OK;
}

eplb_status eplb_waits_add(eplb_waits *waits, int32_t layer, int32_t rank, double microseconds,
                           eplb_error *error)
{
    eplb_status status = eplb_check_range(what, "layer", layer, 0, waits->layers - 1, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "rank", rank, 0, waits->ranks - 1, error);
    }
    return status == EPLB_OK
               ? eplb_wait_cell_add(eplb_waits_at(waits, layer, rank), &waits->hooks,
                                    waits->layer_ids.ids[layer], rank, microseconds, error)
               : status;
}

const int32_t *eplb_waits_layer_ids(const eplb_waits *waits)
{
    return waits->layer_ids.ids;
}
