/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_MODEL_WEIGHTS_H
#define EPLB_TOOLS_MODEL_WEIGHTS_H

#include "config_json.h"
#include "model_config.h"

/* Finds out how many bytes the weights of one expert of one layer have: three matrices of
 * hidden_size x moe_intermediate_size. Needs the dense layers. */
eplb_status model_weights_read(model_config *self, const config_json *config, eplb_error *error);

#endif
