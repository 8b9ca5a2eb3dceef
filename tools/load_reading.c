/* SPDX-License-Identifier: MIT */
#include "load_reading.h"

#include <eplb/source.h>

#include "dense_layers.h"

const char *const objective_choices[] = {"mean-of-max", "max-of-max", "sum", NULL};

static eplb_status name_layers(eplb_load **load, const load_request *request,
                               const eplb_hooks *hooks, eplb_error *error)
{
    eplb_status status =
        model_check_layers(request->model, *load, request->draft_layers, false, error);
    if (status == EPLB_OK && request->dense_layers->items != NULL) {
        status = apply_dense_layers(load, request->dense_layers, hooks, error);
    }
    return status == EPLB_OK
               ? model_check_layers(request->model, *load, request->draft_layers, true, error)
               : status;
}

static eplb_status read_folded(eplb_load **load, const load_request *request,
                               const eplb_placement *counted_under, int32_t *are_logical,
                               const eplb_hooks *hooks, eplb_error *error)
{
    eplb_read_options reading =
        counting_reading(request->counting, counted_under, request->from, request->experts);
    eplb_source_load_options cutting;
    eplb_source_load_options_init(&cutting);
    cutting.slices = request->slices;
    cutting.are_logical = are_logical;
    eplb_status status = eplb_source_load(load, hooks, request->sources->items,
                                          request->sources->count, &reading, &cutting, error);
    if (status != EPLB_OK) {
        counting_explain(request->counting, request->model, request->experts, error);
    }
    return status;
}

eplb_status read_scenarios(eplb_load **load, const load_request *request, bool *assumed,
                           const eplb_hooks *hooks, eplb_error *error)
{
    eplb_placement *counted_under;
    int32_t are_logical = 0;
    eplb_status status =
        counting_open(&counted_under, request->counting, request->experts, hooks, error);
    if (status == EPLB_OK) {
        status = read_folded(load, request, counted_under, &are_logical, hooks, error);
        eplb_placement_destroy(&counted_under);
    }
    if (status != EPLB_OK) {
        return status;
    }
    *assumed = are_logical == 0 && request->experts == 0 && request->current == NULL;
    return name_layers(load, request, hooks, error);
}
