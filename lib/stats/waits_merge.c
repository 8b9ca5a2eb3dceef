/* SPDX-License-Identifier: MIT */
#include "stats/waits.h"

#include "base/memory.h"

static eplb_status check_shape(const eplb_waits *into, const eplb_waits *from, eplb_error *error)
{
    if (into->layers != from->layers || into->ranks != from->ranks) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "merge: %d layers of %d ranks and %d layers of %d ranks",
                              into->layers, into->ranks, from->layers, from->ranks);
    }
    const eplb_layer_ids *a = &into->layer_ids;
    const eplb_layer_ids *b = &from->layer_ids;
    for (int32_t l = 0; l < into->layers; l++) {
        if (a->ids[l] != b->ids[l]) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "merge: row %d is layer %d and layer %d",
                                  l, a->ids[l], b->ids[l]);
        }
    }
    if (a->model_layers != b->model_layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "merge: %d model layers and %d model layers",
                              a->model_layers, b->model_layers);
    }
    return EPLB_OK;
}

/* Makes sure that one cell can be added, with memory for what it is added to. */
static eplb_status prepare(eplb_waits *into, const eplb_waits *from, int32_t layer, int32_t rank,
                           eplb_error *error)
{
    const eplb_wait_cell *more = *eplb_waits_at(from, layer, rank);
    eplb_wait_cell **cell = eplb_waits_at(into, layer, rank);
    if (more == NULL || more->samples == 0) {
        return EPLB_OK;
    }
    eplb_status status = eplb_wait_cell_take(cell, &into->hooks, error);
    if (status == EPLB_OK && (*cell)->samples + more->samples > UINT32_MAX) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "merge: layer %d: rank %d: %lld and %lld samples, together more than "
                              "%lld",
                              into->layer_ids.ids[layer], rank, (long long)(*cell)->samples,
                              (long long)more->samples, (long long)UINT32_MAX);
    }
    return status;
}

static void add_cell(eplb_wait_cell *into, const eplb_wait_cell *from)
{
    into->samples += from->samples;
    into->sum += from->sum;
    into->largest = from->largest > into->largest ? from->largest : into->largest;
    for (int32_t b = 0; b < EPLB_WAIT_BINS; b++) {
        into->histogram[b] += from->histogram[b];
    }
}

eplb_status eplb_waits_merge(eplb_waits *into, const eplb_waits *from, eplb_error *error)
{
    eplb_status status = check_shape(into, from, error);
    for (int32_t l = 0; l < into->layers && status == EPLB_OK; l++) {
        for (int32_t r = 0; r < into->ranks && status == EPLB_OK; r++) {
            status = prepare(into, from, l, r, error);
        }
    }
    if (status != EPLB_OK) {
        return status;
    }
    size_t cells = (size_t)into->layers * (size_t)into->ranks;
    for (size_t i = 0; i < cells; i++) {
        if (from->cells[i] != NULL && from->cells[i]->samples > 0) {
            add_cell(into->cells[i], from->cells[i]);
        }
    }
    return EPLB_OK;
}
