/* SPDX-License-Identifier: MIT */
/* SGLang: counts as JSON, an object with `logical_count`, [layers][experts] or
 * [steps][layers][experts], or as .pt (sglang_pt.c), and the placement of --init-expert-location, a
 * JSON object with the one key `physical_to_logical_map`, [layers][slots]. Rows are all hidden
 * layers. */
#include "base/memory.h"
#include "format/json_counts.h"
#include "format/json_tree.h"
#include "format/probe_json.h"
#include "format/probe_zip.h"
#include "format/quote.h"
#include "format/sglang_pt.h"
#include "format/sglang_write.h"
#include "format/zip.h"

static const char counts_key[] = "logical_count";
static const char map_key[] = "physical_to_logical_map";

static bool probe(const eplb_probe *probe)
{
    if (probe->wanted != EPLB_FORMAT_READS_COUNTS) {
        return eplb_probe_json_key(probe, map_key);
    }
    return eplb_probe_zip_entry(probe, "/data.pkl") || eplb_probe_json_key(probe, counts_key);
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    eplb_input *input = &reading->input;
    eplb_status status = eplb_input_need(input, EPLB_ZIP_MAGIC_SIZE, error);
    if (status != EPLB_OK) {
        return status;
    }
    reading->is_archive = eplb_input_unread(input) >= EPLB_ZIP_MAGIC_SIZE &&
                          memcmp(input->cursor, EPLB_ZIP_MAGIC, EPLB_ZIP_MAGIC_SIZE) == 0;
    return reading->is_archive ? eplb_sglang_pt_open(reading, error)
                               : eplb_json_counts_open(reading, counts_key, NULL, true, error);
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    return reading->is_archive ? eplb_sglang_pt_next(reading, row, error)
                               : eplb_json_counts_next(reading, row, error);
}

static void close_counts(eplb_reading *reading)
{
    if (reading->is_archive) {
        eplb_sglang_pt_close(reading);
    } else {
        eplb_json_counts_close(reading);
    }
}

/* SGLang hands the keys on as arguments: it fails at one that it does not know. */
static eplb_status check_keys(const cJSON *tree, const char *name, eplb_error *error)
{
    for (const cJSON *child = tree->child; child != NULL; child = child->next) {
        if (child->string != NULL && strcmp(child->string, map_key) != 0) {
            return eplb_error_set(
                error, EPLB_ERROR_PARSE, "%s: key '%s' beside '%s', which must be the only one",
                name, eplb_quote_bytes(child->string, strlen(child->string)).text, map_key);
        }
    }
    return EPLB_OK;
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
        status = check_keys(tree, map->name, error);
    }
    if (status == EPLB_OK) {
        status = eplb_json_rows(rows, &reading->options, map, error);
        map->model_layers = map->layers;
    }
    cJSON_Delete(tree);
    return status;
}

/* One layer of the same cluster in an even spread: the row of every layer without MoE. */
static eplb_status make_spread(const eplb_placement *placement, const eplb_hooks *hooks,
                               eplb_placement **spread, eplb_error *error)
{
    eplb_status status = eplb_placement_create(spread, hooks, eplb_placement_cluster(placement), 1,
                                               eplb_placement_experts(placement), error);
    return status == EPLB_OK ? eplb_placement_spread(*spread, 0, error) : status;
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    const int32_t *ids = eplb_placement_layer_ids(placement);
    int32_t layers = eplb_placement_layers(placement);
    int32_t model_layers = eplb_placement_model_layers(placement);
    model_layers = model_layers > 0 ? model_layers : ids[layers - 1] + 1;
    eplb_placement *spread = NULL;
    eplb_status status =
        layers < model_layers ? make_spread(placement, &text->hooks, &spread, error) : EPLB_OK;
    eplb_text_add(text, "{\"physical_to_logical_map\":[\n");
    int32_t layer = 0;
    for (int32_t id = 0; id < model_layers && status == EPLB_OK; id++) {
        bool planned = layer < layers && ids[layer] == id;
        eplb_json_add_row(text, id == 0,
                          planned ? eplb_placement_row(placement, layer)
                                  : eplb_placement_row(spread, 0),
                          eplb_placement_slots(placement));
        layer += planned ? 1 : 0;
    }
    eplb_text_add(text, "\n]}\n");
    eplb_placement_destroy(&spread);
    return status;
}

const eplb_format eplb_format_sglang = {
    .name = "sglang",
    .description = "SGLang: logical_count as JSON, recordings as .pt, and --init-expert-location",
    .engine = "SGLang",
    .recognised = "JSON with logical_count or physical_to_logical_map, or a .pt with counts",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_WRITES_COUNTS | EPLB_FORMAT_READS_PLACEMENT |
             EPLB_FORMAT_WRITES_PLACEMENT | EPLB_FORMAT_ALL_MODEL_LAYERS |
             EPLB_FORMAT_MODEL_LAYER_IDS,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .begin = eplb_sglang_begin,
               .write_row = eplb_sglang_write_row,
               .end = eplb_sglang_end,
               .full_steps = true},
    .placement = {.read = read_placement, .write = write_placement},
};
