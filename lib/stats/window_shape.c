/* SPDX-License-Identifier: MIT */
#include "stats/window_shape.h"

#include "base/memory.h"
#include "model/layer_ids.h"

static eplb_status copy_layer_ids(eplb_window_shape *to, const eplb_hooks *hooks,
                                  const eplb_window_shape *from, eplb_error *error)
{
    eplb_layer_ids ids;
    eplb_status status = eplb_layer_ids_init(&ids, hooks, from->layers);
    if (status != EPLB_OK) {
        return eplb_out_of_memory(error);
    }
    status =
        eplb_layer_ids_set(&ids, from->layers, from->layer_ids != NULL ? from->layer_ids : ids.ids,
                           from->model_layers, error);
    if (status != EPLB_OK) {
        eplb_free(hooks, ids.ids);
        return status;
    }
    to->layer_ids = ids.ids;
    return EPLB_OK;
}

eplb_status eplb_window_shape_copy(eplb_window_shape *to, const eplb_hooks *hooks,
                                   const eplb_window_shape *from, eplb_error *error)
{
    *to = *from;
    to->layer_ids = NULL;
    to->name = NULL;
    eplb_status status = copy_layer_ids(to, hooks, from, error);
    if (status != EPLB_OK || from->name == NULL) {
        return status;
    }
    size_t size = strlen(from->name) + 1;
    char *name = eplb_alloc(hooks, 1, size);
    if (name == NULL) {
        eplb_window_shape_free(to, hooks);
        return eplb_out_of_memory(error);
    }
    memcpy(name, from->name, size);
    to->name = name;
    return EPLB_OK;
}

void eplb_window_shape_free(eplb_window_shape *shape, const eplb_hooks *hooks)
{
    eplb_free(hooks, (void *)shape->layer_ids);
    eplb_free(hooks, (void *)shape->name);
    shape->layer_ids = NULL;
    shape->name = NULL;
}

eplb_status eplb_window_shape_match_layers(const char *what, const eplb_window_shape *a,
                                           const eplb_window_shape *b, eplb_error *error)
{
    if (a->layers != b->layers || a->experts != b->experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers of %d experts and %d layers of %d experts", what,
                              a->layers, a->experts, b->layers, b->experts);
    }
    for (int32_t l = 0; l < a->layers; l++) {
        if (a->layer_ids[l] != b->layer_ids[l]) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "%s: row %d is layer %d and layer %d",
                                  what, l, a->layer_ids[l], b->layer_ids[l]);
        }
    }
    if (a->model_layers != b->model_layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %d model layers and %d model layers",
                              what, a->model_layers, b->model_layers);
    }
    return EPLB_OK;
}
