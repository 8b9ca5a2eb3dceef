/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_TRTLLM_YAML_H
#define EPLB_FORMAT_TRTLLM_YAML_H

#include "format/format.h"

/* Reads TensorRT-LLM's placement; without libyaml EPLB_ERROR_UNSUPPORTED. */
eplb_status eplb_trtllm_read(eplb_reading *reading, eplb_map *map, eplb_error *error);

#endif
