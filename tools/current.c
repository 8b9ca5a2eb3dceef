/* SPDX-License-Identifier: MIT */
#include "current.h"

#include "draft_layers.h"

bool are_layer_indices(const int32_t *ids, int32_t layers)
{
    return ids[layers - 1] == layers - 1; /* ids ascend from 0 or more */
}

/* The row of the layer with this id; -1: none. */
static int32_t find_layer(const eplb_placement *placement, int32_t id)
{
    const int32_t *ids = eplb_placement_layer_ids(placement);
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        if (ids[l] == id) {
            return l;
        }
    }
    return -1;
}

/* A file with rows for all model layers, dense ones too: the load's ids must be of the model. */
static eplb_status check_model_ids(const eplb_placement *placement, const char *path,
                                   const eplb_load *load, eplb_error *error)
{
    int32_t rows = eplb_placement_layers(placement);
    int32_t model_layers = eplb_load_model_layers(load);
    int32_t layers = eplb_load_layers(load);
    const int32_t *ids = eplb_load_layer_ids(load);
    if (model_layers > 0 && model_layers != rows) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers, but the loads are of a model with %d", path, rows,
                              model_layers);
    }
    if (model_layers == 0 && ids[layers - 1] != rows - 1) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers, dense ones too, but the loads have layers %d to %d: "
                              "say which are dense with --dense-layers",
                              path, rows, ids[0], ids[layers - 1]);
    }
    return EPLB_OK;
}

/* A file with rows for MoE layers only: as many as the load has, the same ones as far as both
 * say. */
static eplb_status match_moe_layers(const eplb_placement *placement, const char *path,
                                    eplb_load *load, eplb_error *error)
{
    int32_t layers = eplb_load_layers(load);
    const int32_t *load_ids = eplb_load_layer_ids(load);
    const int32_t *ids = eplb_placement_layer_ids(placement);
    if (eplb_placement_layers(placement) != layers) {
        int32_t draft = eplb_placement_draft_layers(placement);
        char of_draft[48];
        return eplb_error_set(
            error, EPLB_ERROR_DATA, "%s: %d layers%s, but the loads have %d%s", path,
            eplb_placement_layers(placement), draft_layers_text(draft, of_draft, sizeof(of_draft)),
            layers, draft > 0 ? "; eplb convert --without-draft-layers leaves them out" : "");
    }
    if (are_layer_indices(ids, layers)) {
        return EPLB_OK;
    }
    if (are_layer_indices(load_ids, layers) && eplb_load_model_layers(load) == 0) {
        return eplb_load_set_layer_ids(load, ids, eplb_placement_model_layers(placement), error);
    }
    for (int32_t l = 0; l < layers; l++) {
        if (ids[l] != load_ids[l]) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "%s: layer %d where the loads have layer %d", path, ids[l],
                                  load_ids[l]);
        }
    }
    return EPLB_OK;
}

/* Copies the rows of the load's layers; `by_id`: those with the same ids, else in order. */
static eplb_status copy_rows(eplb_placement *to, const eplb_placement *from, const char *path,
                             bool by_id, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < eplb_placement_layers(to) && status == EPLB_OK; l++) {
        int32_t id = eplb_placement_layer_ids(to)[l];
        int32_t row = by_id ? find_layer(from, id) : l;
        if (row < 0) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "%s: layer %d is missing", path, id);
        }
        status =
            eplb_placement_set_layer_slots(to, l, eplb_placement_layer_slots(from, row), error);
        if (status == EPLB_OK) {
            status = eplb_placement_set_row(to, l, eplb_placement_row(from, row), error);
        }
    }
    return status;
}

eplb_status check_placement(const eplb_placement *placement, const char *path, uint32_t flags,
                            eplb_error *error)
{
    eplb_error violation;
    eplb_status status = eplb_placement_validate(placement, flags, &violation);
    return status == EPLB_OK ? EPLB_OK
                             : eplb_error_set(error, status, "%s: %.400s", path, violation.message);
}

static eplb_status align(eplb_placement **out, const eplb_placement *read, const char *path,
                         eplb_load *load, bool all_model_layers, const eplb_hooks *hooks,
                         eplb_error *error)
{
    eplb_status status = all_model_layers ? check_model_ids(read, path, load, error)
                                          : match_moe_layers(read, path, load, error);
    if (status == EPLB_OK) {
        status = eplb_placement_create(out, hooks, eplb_placement_cluster(read),
                                       eplb_load_layers(load), eplb_placement_experts(read), error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_set_layer_ids(*out, eplb_load_layer_ids(load),
                                              eplb_load_model_layers(load), error);
    }
    if (status == EPLB_OK) {
        status = copy_rows(*out, read, path, all_model_layers, error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_set_draft_layers(*out, eplb_placement_draft_layers(read), error);
    }
    return status == EPLB_OK
               ? check_placement(*out, path,
                                 EPLB_VALIDATE_ALLOW_EMPTY | EPLB_VALIDATE_ALLOW_DUPLICATES, error)
               : status;
}

eplb_status read_current(eplb_placement **out, const char *path, eplb_load *load,
                         const eplb_read_options *options, const eplb_hooks *hooks,
                         const eplb_format **format, eplb_error *error)
{
    *out = NULL;
    eplb_placement *read;
    const eplb_format *found;
    eplb_status status = eplb_placement_read(&read, hooks, path, options, &found, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (format != NULL) {
        *format = found;
    }
    bool all_model_layers = (eplb_format_flags(found) & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
    status = align(out, read, path, load, all_model_layers, hooks, error);
    eplb_placement_destroy(&read);
    if (status != EPLB_OK) {
        eplb_placement_destroy(out);
    }
    return status;
}
