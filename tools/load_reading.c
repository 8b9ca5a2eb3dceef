/* SPDX-License-Identifier: MIT */
#include "load_reading.h"

#include <eplb/source.h>

#include "dense_layers.h"
#include "formats.h"

const char *const objective_choices[] = {"mean-of-max", "max-of-max", "sum", NULL};

static eplb_status name_layers(eplb_load **load, const load_request *request,
                               const eplb_hooks *hooks, eplb_error *error)
{
    eplb_status status = model_check_layers(request->model, *load, false, error);
    if (status == EPLB_OK && request->dense_layers->items != NULL) {
        status = apply_dense_layers(load, request->dense_layers, hooks, error);
    }
    return status == EPLB_OK ? model_check_layers(request->model, *load, true, error) : status;
}

eplb_status read_scenarios(eplb_load **load, const load_request *request, bool *assumed,
                           const eplb_hooks *hooks, eplb_error *error)
{
    eplb_read_options reading = reading_options(request->from, request->experts);
    eplb_source_load_options cutting;
    eplb_source_load_options_init(&cutting);
    cutting.slices = request->slices;
    eplb_status status = eplb_source_load(load, hooks, request->sources->items,
                                          request->sources->count, &reading, &cutting, error);
    if (status != EPLB_OK) {
        model_explain(request->model, error);
        return status;
    }
    *assumed = assumes_experts(*load, request->experts, request->current);
    return name_layers(load, request, hooks, error);
}
