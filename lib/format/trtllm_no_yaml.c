/* SPDX-License-Identifier: MIT */
/* Stands in for trtllm_yaml.c where libyaml is missing. */
#include "format/trtllm_yaml.h"

eplb_status eplb_trtllm_read(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    (void)reading;
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                          "%s: trtllm cannot be read: built without libyaml", map->name);
}
