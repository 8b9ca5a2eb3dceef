/* SPDX-License-Identifier: MIT */
/* vLLM's plain map of vllm-project/vllm#49572, which is not merged: a JSON list of the experts of
 * one layer's slots, or one such list for each MoE layer. */
#include "base/memory.h"
#include "format/json_tree.h"
#include "format/probe_json.h"

static eplb_status read_one_row(const cJSON *list, const eplb_read_options *options, eplb_map *map,
                                eplb_error *error)
{
    eplb_status status = eplb_map_shape(map, options, 1, eplb_json_length(list), error);
    return status == EPLB_OK ? eplb_json_integers(list, map->name, "layer 0", map->slots,
                                                  eplb_map_row(map, 0), error)
                             : status;
}

static eplb_status read_placement(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    cJSON *list;
    eplb_status status = eplb_json_read(reading, &list, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!cJSON_IsArray(list)) {
        status =
            eplb_error_set(error, EPLB_ERROR_PARSE, "%s: the document is not a list", map->name);
    } else if (cJSON_IsNumber(list->child)) {
        status = read_one_row(list, &reading->options, map, error);
    } else {
        status = eplb_json_rows(list, &reading->options, map, error);
    }
    cJSON_Delete(list);
    return status;
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    (void)error;
    eplb_text_add(text, "[\n");
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        eplb_json_add_row(text, l == 0, eplb_placement_row(placement, l),
                          eplb_placement_slots(placement));
    }
    eplb_text_add(text, "\n]\n");
    return EPLB_OK;
}

const eplb_format eplb_format_vllm = {
    .name = "vllm",
    .description = "vLLM's plain map: a JSON list of slots, or one for each MoE layer",
    .engine = "vLLM",
    .recognised = "a JSON list",
    .change = "vllm-project/vllm#49572",
    .flags = EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT | EPLB_FORMAT_OPEN,
    .probe = eplb_probe_json_list,
    .placement = {.read = read_placement, .write = write_placement},
};
