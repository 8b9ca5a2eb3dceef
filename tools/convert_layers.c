/* SPDX-License-Identifier: MIT */
/* How formats number layers, and how one numbering becomes another. */
#include <stdlib.h>

#include "convert.h"
#include "dense_layers.h"
#include "draft_layers.h"

/* The layers of the result: rows of the placement that is converted, and their numbers. */
typedef struct layer_map {
    const eplb_placement *from;
    const char *path;
    const id_list *dense;  /* items NULL: not known */
    int32_t config_layers; /* of the model, by --model; 0: not known */
    int32_t *rows;
    int32_t *ids;
    int32_t count;
    int32_t model_layers; /* with those of the draft model; 0: not known */
    int32_t draft_layers; /* of the last ones */
} layer_map;

static bool has(const eplb_format *format, uint32_t flag)
{
    return (eplb_format_flags(format) & flag) != 0;
}

static eplb_status check_model(const layer_map *self, eplb_error *error)
{
    int32_t last = self->count > 0 ? self->ids[self->count - 1] : -1;
    int32_t dense = self->dense->items != NULL ? last_dense_layer(self->dense) : -1;
    if (self->count == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: all of its layers are dense",
                              self->path);
    }
    int32_t own_layers = self->model_layers - self->draft_layers;
    if (self->config_layers > 0 && self->model_layers > 0 && own_layers != self->config_layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: of a model with %d layers, but --model says %d", self->path,
                              own_layers, self->config_layers);
    }
    if (self->model_layers > 0 && (last >= self->model_layers || dense >= self->model_layers)) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: layer %d is not one of %d layers",
                              self->path, last > dense ? last : dense, self->model_layers);
    }
    return EPLB_OK;
}

/* All model layers are there: those that are not dense. */
static void keep_moe_layers(layer_map *self)
{
    const int32_t *ids = eplb_placement_layer_ids(self->from);
    self->model_layers = self->count;
    self->count = 0;
    for (int32_t l = 0; l < self->model_layers; l++) {
        if (!is_dense_layer(self->dense, ids[l])) {
            self->rows[self->count] = l;
            self->ids[self->count++] = ids[l];
        }
    }
}

/* The numbers are of the model, and no layer is dense. */
static eplb_status keep_model_ids(layer_map *self, eplb_error *error)
{
    int32_t last = self->ids[self->count - 1];
    for (int32_t l = 0; l < self->count; l++) {
        if (is_dense_layer(self->dense, self->ids[l])) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "%s: layer %d has a row, so it is not dense", self->path,
                                  self->ids[l]);
        }
    }
    int32_t dense = last_dense_layer(self->dense);
    self->model_layers = self->config_layers > 0 ? self->config_layers + self->draft_layers
                                                 : (last > dense ? last : dense) + 1;
    return EPLB_OK;
}

static bool has_row(const layer_map *self, int32_t id)
{
    int32_t l = 0;
    while (l < self->count && self->ids[l] != id) {
        l++;
    }
    return l < self->count;
}

/* A MoE layer of the model without a row. */
static eplb_status refuse_missing(const layer_map *self, eplb_error *error)
{
    for (int32_t id = 0; id < self->model_layers; id++) {
        if (!is_dense_layer(self->dense, id) && !has_row(self, id)) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "%s: layer %d has no row, and is not dense", self->path, id);
        }
    }
    return EPLB_OK;
}

/* The rows are the MoE layers in order. */
static void number_moe_layers(layer_map *self)
{
    fill_moe_layer_ids(self->ids, self->count, self->dense);
    self->model_layers = self->count + self->dense->count;
}

static eplb_status not_known(const layer_map *self, const char *what, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "%s: %s, and nothing says which layers of the model are dense: "
                          "--dense-layers LIST, or none, or --model config.json does",
                          self->path, what);
}

static eplb_status map_layers(layer_map *self, const eplb_format *from, const eplb_format *to,
                              eplb_error *error)
{
    bool all = has(from, EPLB_FORMAT_ALL_MODEL_LAYERS);
    bool by_id = has(from, EPLB_FORMAT_MODEL_LAYER_IDS);
    bool knows_dense = self->dense->items != NULL;
    if (all && !knows_dense && !has(to, EPLB_FORMAT_ALL_MODEL_LAYERS)) {
        return not_known(self, "lists all layers, dense ones, too", error);
    }
    if (!by_id && !knows_dense && has(to, EPLB_FORMAT_MODEL_LAYER_IDS)) {
        return not_known(self, "numbers MoE layers only", error);
    }
    if (!knows_dense) {
        bool has_gap = self->ids[self->count - 1] - self->ids[0] >= self->count;
        return has_gap && needs_every_layer(to)
                   ? not_known(self, "layers are missing between others", error)
                   : EPLB_OK;
    }
    eplb_status status = EPLB_OK;
    if (all) {
        keep_moe_layers(self);
    } else if (by_id) {
        status = keep_model_ids(self, error);
        if (status == EPLB_OK && needs_every_layer(to)) {
            status = refuse_missing(self, error);
        }
    } else {
        number_moe_layers(self);
    }
    return status == EPLB_OK ? check_model(self, error) : status;
}

static eplb_status copy_rows(eplb_placement *to, const layer_map *map, eplb_error *error)
{
    eplb_status status = eplb_placement_set_layer_ids(to, map->ids, map->model_layers, error);
    for (int32_t l = 0; l < map->count && status == EPLB_OK; l++) {
        const int32_t *slots = eplb_placement_layer_slots(map->from, map->rows[l]);
        status = eplb_placement_set_layer_slots(to, l, slots, error);
        if (status == EPLB_OK) {
            status =
                eplb_placement_set_row(to, l, eplb_placement_row(map->from, map->rows[l]), error);
        }
    }
    return status == EPLB_OK ? eplb_placement_set_draft_layers(to, map->draft_layers, error)
                             : status;
}

/* Which of the file's layers are the draft model's, and whether they stay. */
static eplb_status choose_draft_layers(layer_map *self, const convert_values *values,
                                       eplb_error *error)
{
    self->count = eplb_placement_layers(self->from);
    self->model_layers = eplb_placement_model_layers(self->from);
    self->draft_layers = values->draft_layers != NOT_GIVEN
                             ? values->draft_layers
                             : eplb_placement_draft_layers(self->from);
    eplb_status status =
        check_draft_layers(self->draft_layers, eplb_placement_layer_ids(self->from), self->count,
                           self->model_layers, self->path, error);
    if (status == EPLB_OK && values->without_draft_layers) {
        self->count -= self->draft_layers;
        self->model_layers -= self->model_layers > 0 ? self->draft_layers : 0;
        self->draft_layers = 0;
    }
    return status;
}

/* As the file has them. */
static eplb_status begin(layer_map *self, eplb_error *error)
{
    self->rows = calloc((size_t)self->count, sizeof(*self->rows));
    self->ids = calloc((size_t)self->count, sizeof(*self->ids));
    if (self->rows == NULL || self->ids == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    for (int32_t l = 0; l < self->count; l++) {
        self->rows[l] = l;
        self->ids[l] = eplb_placement_layer_ids(self->from)[l];
    }
    return EPLB_OK;
}

eplb_status convert_layers(eplb_placement **out, const conversion *self,
                           const eplb_placement *placement, const eplb_format *from,
                           eplb_error *error)
{
    *out = NULL;
    layer_map map = {.from = placement,
                     .path = self->values->files.items[0],
                     .dense = &self->values->dense_layers,
                     .config_layers = self->model.gave_layers ? self->model.config.layers : 0};
    eplb_status status = choose_draft_layers(&map, self->values, error);
    if (status == EPLB_OK) {
        status = begin(&map, error);
    }
    if (status == EPLB_OK) {
        status = map_layers(&map, from, self->to, error);
    }
    if (status == EPLB_OK) {
        status = check_draft_layers(map.draft_layers, map.ids, map.count, map.model_layers,
                                    map.path, error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_create(out, &self->hooks, eplb_placement_cluster(placement),
                                       map.count, eplb_placement_experts(placement), error);
    }
    if (status == EPLB_OK) {
        status = copy_rows(*out, &map, error);
    }
    free(map.rows);
    free(map.ids);
    if (status != EPLB_OK) {
        eplb_placement_destroy(out);
    }
    return status;
}
