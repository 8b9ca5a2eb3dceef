/* SPDX-License-Identifier: MIT */
/*
 * FastDeploy's JSON of a rearrangement: counts, and the placement in three forms that must agree.
 *
 *     tokens_per_expert_stats_list  [layers][experts]
 *     ep_rank_to_expert_id_list     [layers][slots] experts
 *     expert_id_to_ep_rank_array    [layers][experts][most replicas] slots, filled up with -1
 *     expert_in_rank_num_list       [layers][experts] numbers of replicas
 */
#include "format/fastdeploy_lists.h"
#include "format/json_counts.h"
#include "format/json_tree.h"
#include "format/probe_json.h"

static const char counts_key[] = "tokens_per_expert_stats_list";
static const char map_key[] = "ep_rank_to_expert_id_list";
static const char numbers_key[] = "expert_in_rank_num_list";

/* Any of the lists: one of a real model is longer than what a probe sees, and hides those behind
 * it. */
static bool probe(const eplb_probe *probe)
{
    static const char *const keys[] = {counts_key, map_key, "expert_id_to_ep_rank_array",
                                       numbers_key};
    bool found = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !found; i++) {
        found = eplb_probe_json_key(probe, keys[i]);
    }
    return found;
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    return eplb_json_counts_open(reading, counts_key, numbers_key, false, error);
}

static eplb_status read_placement(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    cJSON *tree;
    const cJSON *rows;
    eplb_status status = eplb_json_read(reading, &tree, error);
    if (status != EPLB_OK) {
        return status;
    }
    status = eplb_json_list_member(tree, map_key, map->name, "the document", &rows, error);
    if (status == EPLB_OK) {
        status = eplb_json_rows(rows, &reading->options, map, error);
    }
    if (status == EPLB_OK) {
        status = eplb_fastdeploy_check_lists(tree, map, &reading->options, error);
    }
    cJSON_Delete(tree);
    return status;
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    eplb_text_add(text, "{\"");
    eplb_text_add(text, map_key);
    eplb_text_add(text, "\":[\n");
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        eplb_json_add_row(text, l == 0, eplb_placement_row(placement, l),
                          eplb_placement_slots(placement));
    }
    eplb_text_add(text, "\n],\n");
    eplb_status status = eplb_fastdeploy_add_lists(placement, text, error);
    eplb_text_add(text, "}\n");
    return status;
}

const eplb_format eplb_format_fastdeploy = {
    .name = "fastdeploy",
    .description = "FastDeploy: counts and placement of a rearrangement, JSON",
    .engine = "FastDeploy",
    .recognised = "JSON with tokens_per_expert_stats_list or ep_rank_to_expert_id_list",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT,
    .probe = probe,
    .counts = {.open = open_counts, .next = eplb_json_counts_next, .close = eplb_json_counts_close},
    .placement = {.read = read_placement, .write = write_placement},
};
