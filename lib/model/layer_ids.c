/* SPDX-License-Identifier: MIT */
#include "model/layer_ids.h"

#include <eplb/load.h>

#include "base/memory.h"
#include "base/range.h"

eplb_status eplb_layer_ids_init(eplb_layer_ids *self, const eplb_hooks *hooks, int32_t layers)
{
    self->model_layers = 0;
    self->ids = eplb_alloc(hooks, (size_t)layers, sizeof(int32_t));
    if (self->ids == NULL) {
        return EPLB_ERROR_NOMEM;
    }
    for (int32_t l = 0; l < layers; l++) {
        self->ids[l] = l;
    }
    return EPLB_OK;
}

eplb_status eplb_layer_ids_set(eplb_layer_ids *self, int32_t layers, const int32_t *ids,
                               int32_t model_layers, eplb_error *error)
{
    eplb_status status = eplb_check_given("layer ids", "ids", ids, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("layer ids", "number of model layers", model_layers, 0,
                                  EPLB_MAX_LAYERS, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t end = model_layers > 0 ? model_layers : EPLB_MAX_LAYERS;
    for (int32_t l = 0; l < layers; l++) {
        if (ids[l] < 0 || ids[l] >= end) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "layer ids: row %d: id %d not in 0..%d", l, ids[l], end - 1);
        }
        if (l > 0 && ids[l] <= ids[l - 1]) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "layer ids: row %d: id %d does not follow id %d in order", l,
                                  ids[l], ids[l - 1]);
        }
    }
    memcpy(self->ids, ids, (size_t)layers * sizeof(*ids));
    self->model_layers = model_layers;
    return EPLB_OK;
}
