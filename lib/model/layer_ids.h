/* SPDX-License-Identifier: MIT */
/* The model layer ids that loads and placements carry alike. */
#ifndef EPLB_MODEL_LAYER_IDS_H
#define EPLB_MODEL_LAYER_IDS_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

typedef struct eplb_layer_ids {
    int32_t *ids; /* [layers] */
    int32_t model_layers;
} eplb_layer_ids;

/* Ids 0..layers-1, model layers unknown. EPLB_ERROR_NOMEM without a message. */
eplb_status eplb_layer_ids_init(eplb_layer_ids *self, const eplb_hooks *hooks, int32_t layers);

/* Checks as eplb_load_set_layer_ids says and copies. */
eplb_status eplb_layer_ids_set(eplb_layer_ids *self, int32_t layers, const int32_t *ids,
                               int32_t model_layers, eplb_error *error);

#endif
