/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_FILE_LAYERS_H
#define EPLB_TOOLS_FILE_LAYERS_H

#include "model_options.h"

/*
 * Gives the layers of a load the numbers of the model, as far as --dense-layers (`dense`) and
 * --model say them, and checks them; `draft_layers` of them are known to be the draft model's (-1:
 * none). *file_ids becomes the numbers that its layers have in the files, one for each,
 * to be freed whether the call fails or not.
 */
eplb_status name_file_layers(eplb_load **load, int32_t **file_ids, const id_list *dense,
                             int32_t draft_layers, const model_answers *model,
                             const eplb_hooks *hooks, eplb_error *error);

#endif
