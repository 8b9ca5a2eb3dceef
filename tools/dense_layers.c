/* SPDX-License-Identifier: MIT */
#include "dense_layers.h"

#include <stdlib.h>

bool is_dense_layer(const id_list *dense, int32_t id)
{
    for (int32_t i = 0; i < dense->count && dense->items[i] <= id; i++) {
        if (dense->items[i] == id) {
            return true;
        }
    }
    return false;
}

int32_t last_dense_layer(const id_list *dense)
{
    return dense->count > 0 ? dense->items[dense->count - 1] : -1;
}

void fill_moe_layer_ids(int32_t *ids, int32_t count, const id_list *dense)
{
    int32_t id = 0;
    for (int32_t l = 0; l < count; id++) {
        if (!is_dense_layer(dense, id)) {
            ids[l++] = id;
        }
    }
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Copies the layers of `from` to those of `to` that have the same ids; others stay zero. */
static eplb_status copy_rows(eplb_load *to, const eplb_load *from, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t s = 0; s < eplb_load_scenarios(from) && status == EPLB_OK; s++) {
        status = eplb_load_set_scenario(to, s, eplb_load_scenario_name(from, s),
                                        eplb_load_scenario_weight(from, s), error);
        int32_t target = 0;
        for (int32_t l = 0; l < eplb_load_layers(from) && status == EPLB_OK; l++) {
            while (eplb_load_layer_ids(to)[target] != eplb_load_layer_ids(from)[l]) {
                target++;
            }
            status = eplb_load_set_row(to, s, target, eplb_load_row(from, s, l), error);
        }
    }
    return status;
}

/* Makes a load of all model layers but the listed ones: those of `load`, and zeros for those that
 * were left out when it was read. */
static eplb_status widen(eplb_load **out, const eplb_load *load, const id_list *dense,
                         const eplb_hooks *hooks, eplb_error *error)
{
    int32_t model_layers = eplb_load_model_layers(load);
    int32_t layers = model_layers - dense->count;
    int32_t *ids = calloc((size_t)layers, sizeof(*ids));
    eplb_status status = ids != NULL ? eplb_load_create(out, hooks, eplb_load_scenarios(load),
                                                        layers, eplb_load_experts(load), error)
                                     : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    if (status == EPLB_OK) {
        fill_moe_layer_ids(ids, layers, dense);
        status = eplb_load_set_layer_ids(*out, ids, model_layers, error);
    }
    if (status == EPLB_OK) {
        status = copy_rows(*out, load, error);
    }
    free(ids);
    return status;
}

static void replace(eplb_load **load, eplb_load *by)
{
    eplb_load_destroy(load);
    *load = by;
}

static eplb_status apply_to_all_model_layers(eplb_load **load, const id_list *dense,
                                             const eplb_hooks *hooks, eplb_error *error)
{
    int32_t model_layers = eplb_load_model_layers(*load);
    int32_t last = last_dense_layer(dense);
    if (last >= model_layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "--dense-layers: layer %d is not one of the model's %d layers", last,
                              model_layers);
    }
    eplb_load *without;
    eplb_status status =
        eplb_load_without_layers(&without, *load, dense->items, dense->count, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_load *widened = NULL;
    status = widen(&widened, without, dense, hooks, error);
    eplb_load_destroy(&without);
    if (status != EPLB_OK) {
        eplb_load_destroy(&widened);
        return status;
    }
    replace(load, widened);
    return EPLB_OK;
}

/* The ids stay; the model has at least the layers that the load or the list name. */
static eplb_status keep_ids(eplb_load *load, const id_list *dense, eplb_error *error)
{
    const int32_t *ids = eplb_load_layer_ids(load);
    int32_t last = larger(ids[eplb_load_layers(load) - 1], last_dense_layer(dense));
    return eplb_load_set_layer_ids(load, ids, last + 1, error);
}

static eplb_status skip_listed_ids(eplb_load *load, const id_list *dense, eplb_error *error)
{
    int32_t layers = eplb_load_layers(load);
    int32_t model_layers = layers + dense->count;
    int32_t last = last_dense_layer(dense);
    if (last >= model_layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "--dense-layers: layer %d is not one of %d layers (%d MoE, %d dense)",
                              last, model_layers, layers, dense->count);
    }
    int32_t *ids = calloc((size_t)layers, sizeof(*ids));
    if (ids == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    fill_moe_layer_ids(ids, layers, dense);
    eplb_status status = eplb_load_set_layer_ids(load, ids, model_layers, error);
    free(ids);
    return status;
}

/* Removes the listed layers that are there; with none of them the ids are of the model already. */
static eplb_status drop_listed(eplb_load **load, const id_list *dense, eplb_error *error)
{
    eplb_load *without;
    eplb_status status =
        eplb_load_without_layers(&without, *load, dense->items, dense->count, error);
    if (status == EPLB_OK) {
        replace(load, without);
        status = keep_ids(*load, dense, error);
    }
    return status;
}

eplb_status apply_dense_layers(eplb_load **load, const id_list *dense, const eplb_hooks *hooks,
                               eplb_error *error)
{
    if (eplb_load_model_layers(*load) > 0) {
        return apply_to_all_model_layers(load, dense, hooks, error);
    }
    const int32_t *ids = eplb_load_layer_ids(*load);
    int32_t layers = eplb_load_layers(*load);
    int32_t present = 0;
    int32_t loaded = 0;
    int32_t first_loaded = 0;
    for (int32_t l = layers - 1; l >= 0; l--) {
        if (is_dense_layer(dense, ids[l])) {
            present++;
            if (!eplb_load_layer_is_zero(*load, l)) {
                loaded++;
                first_loaded = ids[l];
            }
        }
    }
    if (loaded == 0) {
        return drop_listed(load, dense, error);
    }
    bool are_indices = ids[layers - 1] == layers - 1;
    if (are_indices && loaded == present) {
        return skip_listed_ids(*load, dense, error);
    }
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "--dense-layers: layer %d has tokens, so it is not dense, and %s",
                          first_loaded,
                          are_indices ? "others listed have none, so layers are not MoE indices"
                                      : "layers are not numbered 0, 1, 2, ... as MoE indices are");
}

bool needs_every_layer(const eplb_format *format)
{
    uint32_t flags = eplb_format_flags(format);
    return (flags & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0 ||
           (flags & (EPLB_FORMAT_MODEL_LAYER_IDS | EPLB_FORMAT_ANY_LAYER_IDS)) == 0;
}

/* -1: none. */
static int32_t missing_moe_layer(const eplb_load *load, const id_list *dense)
{
    const int32_t *ids = eplb_load_layer_ids(load);
    int32_t layers = eplb_load_layers(load);
    int32_t model_layers = eplb_load_model_layers(load);
    bool knows_dense = dense->items != NULL;
    if (!knows_dense && model_layers > 0) {
        return -1;
    }
    int32_t row = 0;
    int32_t end = model_layers > 0 ? model_layers : ids[layers - 1];
    for (int32_t id = knows_dense ? 0 : ids[0]; id < end; id++) {
        if (row < layers && ids[row] == id) {
            row++;
        } else if (!is_dense_layer(dense, id)) {
            return id;
        }
    }
    return -1;
}

eplb_status check_every_layer(const eplb_load *load, const id_list *dense, const char *whose,
                              const eplb_format *format, eplb_error *error)
{
    bool is_known = dense->items != NULL;
    int32_t missing = missing_moe_layer(load, dense);
    return missing < 0
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_DATA,
                                "%.200s no layer %d, and %s: %s needs every MoE layer%s", whose,
                                missing,
                                is_known ? "it is not dense" : "nothing says that it is dense",
                                eplb_format_name(format),
                                is_known ? "" : "; --dense-layers LIST, or --model says it");
}
