/* SPDX-License-Identifier: MIT */
/* A source is read twice: the second time its rows must find the layers that the first has made. */
#include "file_layers.h"

#include <stdlib.h>
#include <string.h>

#include "dense_layers.h"

static eplb_status keep_ids(int32_t **file_ids, const eplb_load *load, eplb_error *error)
{
    size_t bytes = (size_t)eplb_load_layers(load) * sizeof(**file_ids);
    free(*file_ids);
    *file_ids = malloc(bytes);
    if (*file_ids == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    memcpy(*file_ids, eplb_load_layer_ids(load), bytes);
    return EPLB_OK;
}

/* --dense-layers gives layers other numbers than the files only where these have MoE indices, and
 * then it leaves all layers in. */
static eplb_status apply_dense(eplb_load **load, int32_t **file_ids, const id_list *dense,
                               const eplb_hooks *hooks, eplb_error *error)
{
    if (dense->items == NULL) {
        return EPLB_OK;
    }
    int32_t layers = eplb_load_layers(*load);
    bool may_be_indices = eplb_load_model_layers(*load) == 0;
    eplb_status status = apply_dense_layers(load, dense, hooks, error);
    bool may_be_renumbered = may_be_indices && eplb_load_layers(*load) == layers;
    return status == EPLB_OK && !may_be_renumbered ? keep_ids(file_ids, *load, error) : status;
}

eplb_status name_file_layers(eplb_load **load, int32_t **file_ids, const id_list *dense,
                             int32_t draft_layers, const model_answers *model,
                             const eplb_hooks *hooks, eplb_error *error)
{
    *file_ids = NULL;
    eplb_status status = keep_ids(file_ids, *load, error);
    if (status == EPLB_OK) {
        status = model_check_layers(model, *load, draft_layers, false, error);
    }
    if (status == EPLB_OK) {
        status = apply_dense(load, file_ids, dense, hooks, error);
    }
    return status == EPLB_OK ? model_check_layers(model, *load, draft_layers, true, error) : status;
}
