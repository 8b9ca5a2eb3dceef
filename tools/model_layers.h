/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_MODEL_LAYERS_H
#define EPLB_TOOLS_MODEL_LAYERS_H

#include "config_json.h"
#include "model_config.h"

/* Finds out which layers of the model are dense. */
eplb_status model_layers_read(model_config *self, const config_json *config, eplb_error *error);

#endif
