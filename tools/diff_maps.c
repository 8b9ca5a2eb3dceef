/* SPDX-License-Identifier: MIT */
/* The two maps of `eplb diff`, read and brought into the same layers. */
#include <stdlib.h>

#include "current.h"
#include "diff.h"

typedef struct read_map {
    const char *path;
    eplb_placement *placement;
    const eplb_format *format;
} read_map;

static bool is_listed(const id_list *list, int32_t id)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (list->items[i] == id) {
            return true;
        }
    }
    return false;
}

/* Copies the rows of the layers that are not listed, with their ids; `ids` has room for them. */
static eplb_status copy_other_rows(eplb_placement *to, const eplb_placement *from,
                                   const id_list *dense, int32_t *ids, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    int32_t next = 0;
    for (int32_t l = 0; l < eplb_placement_layers(from) && status == EPLB_OK; l++) {
        if (!is_listed(dense, eplb_placement_layer_ids(from)[l])) {
            ids[next] = eplb_placement_layer_ids(from)[l];
            status = eplb_placement_set_row(to, next++, eplb_placement_row(from, l), error);
        }
    }
    return status == EPLB_OK
               ? eplb_placement_set_layer_ids(to, ids, eplb_placement_model_layers(from), error)
               : status;
}

/* Leaves the dense layers out of a map that lists all layers of the model. */
static eplb_status leave_out(read_map *map, const id_list *dense, const eplb_hooks *hooks,
                             eplb_error *error)
{
    int32_t rows = eplb_placement_layers(map->placement);
    int32_t kept = 0;
    for (int32_t l = 0; l < rows; l++) {
        kept += is_listed(dense, eplb_placement_layer_ids(map->placement)[l]) ? 0 : 1;
    }
    if (kept + dense->count != rows || kept == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %d layers, of which %d are to be dense, the last of them %d",
                              map->path, rows, dense->count, dense->items[dense->count - 1]);
    }
    eplb_placement *rest;
    int32_t *ids = calloc((size_t)kept, sizeof(*ids));
    if (ids == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    eplb_status status = eplb_placement_create(&rest, hooks, eplb_placement_cluster(map->placement),
                                               kept, eplb_placement_experts(map->placement), error);
    if (status == EPLB_OK) {
        status = copy_other_rows(rest, map->placement, dense, ids, error);
    }
    free(ids);
    eplb_placement_destroy(&map->placement);
    map->placement = rest;
    return status;
}

static eplb_status read_one(read_map *map, const diff_request *request, const eplb_hooks *hooks,
                            eplb_error *error)
{
    eplb_status status = eplb_placement_read(&map->placement, hooks, map->path, &request->reading,
                                             &map->format, error);
    if (status != EPLB_OK) {
        return status;
    }
    bool lists_all = (eplb_format_flags(map->format) & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
    return lists_all && request->dense_layers->count > 0
               ? leave_out(map, request->dense_layers, hooks, error)
               : EPLB_OK;
}

static eplb_status match_ids(eplb_placement *a, eplb_placement *b, const diff_request *request,
                             eplb_error *error)
{
    const int32_t *ids = eplb_placement_layer_ids(a);
    int32_t layers = eplb_placement_layers(a);
    if (are_layer_indices(eplb_placement_layer_ids(b), layers)) {
        return eplb_placement_set_layer_ids(b, ids, eplb_placement_model_layers(a), error);
    }
    if (are_layer_indices(ids, layers)) {
        return eplb_placement_set_layer_ids(a, eplb_placement_layer_ids(b),
                                            eplb_placement_model_layers(b), error);
    }
    for (int32_t l = 0; l < layers; l++) {
        if (ids[l] != eplb_placement_layer_ids(b)[l]) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "%s: layer %d where %s has layer %d",
                                  request->new_path, eplb_placement_layer_ids(b)[l],
                                  request->old_path, ids[l]);
        }
    }
    return EPLB_OK;
}

/* Where a format cannot say whose the last layers are, they are what they are in the other map. */
static eplb_status match_draft_layers(const read_map *a, const read_map *b, eplb_error *error)
{
    int32_t of_a = eplb_placement_draft_layers(a->placement);
    int32_t of_b = eplb_placement_draft_layers(b->placement);
    bool a_says = eplb_format_draft_layers(a->format) > 0;
    bool b_says = eplb_format_draft_layers(b->format) > 0;
    if (a_says && b_says && of_a != of_b) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%.180s: %d of its %d layers are the draft model's, but %d of %d in "
                              "%.180s",
                              b->path, of_b, eplb_placement_layers(b->placement), of_a,
                              eplb_placement_layers(a->placement), a->path);
    }
    return b_says ? eplb_placement_set_draft_layers(a->placement, of_b, error)
                  : eplb_placement_set_draft_layers(b->placement, of_a, error);
}

static eplb_status match(const read_map *a, const read_map *b, const diff_request *request,
                         eplb_error *error)
{
    const struct {
        const char *what;
        int32_t of_old;
        int32_t of_new;
    } numbers[] = {
        {"GPUs", eplb_cluster_gpus(eplb_placement_cluster(a->placement)),
         eplb_cluster_gpus(eplb_placement_cluster(b->placement))},
        {"experts", eplb_placement_experts(a->placement), eplb_placement_experts(b->placement)},
        {"layers", eplb_placement_layers(a->placement), eplb_placement_layers(b->placement)},
    };
    uint32_t differ = eplb_format_flags(a->format) ^ eplb_format_flags(b->format);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        bool may_be_dense = i == 2 && (differ & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
        if (numbers[i].of_old != numbers[i].of_new) {
            return eplb_error_set(error, EPLB_ERROR_DATA, "%.180s: %d %s, but %.180s has %d%s",
                                  b->path, numbers[i].of_new, numbers[i].what, a->path,
                                  numbers[i].of_old,
                                  may_be_dense ? ": say which are dense with --dense-layers" : "");
        }
    }
    eplb_status status = match_draft_layers(a, b, error);
    return status == EPLB_OK ? match_ids(a->placement, b->placement, request, error) : status;
}

static eplb_status read_by_themselves(diff_maps *self, const diff_request *request,
                                      const eplb_hooks *hooks, eplb_error *error)
{
    read_map first = {.path = request->old_path};
    read_map second = {.path = request->new_path};
    eplb_status status = read_one(&first, request, hooks, error);
    if (status == EPLB_OK) {
        status = read_one(&second, request, hooks, error);
    }
    if (status == EPLB_OK) {
        status = match(&first, &second, request, error);
    }
    if (status == EPLB_OK) {
        status = check_placement(first.placement, first.path,
                                 EPLB_VALIDATE_ALLOW_EMPTY | EPLB_VALIDATE_ALLOW_DUPLICATES, error);
    }
    *self = (diff_maps){.old_map = first.placement, .new_map = second.placement};
    return status;
}

static eplb_status match_aligned(const read_map *a, const read_map *b, eplb_error *error)
{
    int32_t before = eplb_cluster_gpus(eplb_placement_cluster(a->placement));
    int32_t after = eplb_cluster_gpus(eplb_placement_cluster(b->placement));
    return before == after
               ? match_draft_layers(a, b, error)
               : eplb_error_set(error, EPLB_ERROR_DATA, "%.180s: %d GPUs, but %.180s has %d",
                                b->path, after, a->path, before);
}

static eplb_status read_for_load(diff_maps *self, const diff_request *request, eplb_load *load,
                                 const eplb_hooks *hooks, eplb_error *error)
{
    read_map maps[] = {{.path = request->old_path}, {.path = request->new_path}};
    eplb_status status = EPLB_OK;
    for (int i = 0; i < 2 && status == EPLB_OK; i++) {
        status = read_current(&maps[i].placement, maps[i].path, load, &request->reading, hooks,
                              &maps[i].format, error);
    }
    if (status == EPLB_OK) {
        status = match_aligned(&maps[0], &maps[1], error);
    }
    *self = (diff_maps){.old_map = maps[0].placement, .new_map = maps[1].placement};
    return status;
}

eplb_status diff_maps_read(diff_maps *self, const diff_request *request, eplb_load *load,
                           const eplb_hooks *hooks, eplb_error *error)
{
    eplb_status status = load != NULL ? read_for_load(self, request, load, hooks, error)
                                      : read_by_themselves(self, request, hooks, error);
    return status == EPLB_OK
               ? check_placement(self->new_map, request->new_path, EPLB_VALIDATE_ALLOW_EMPTY, error)
               : status;
}

void diff_maps_release(diff_maps *self)
{
    eplb_placement_destroy(&self->old_map);
    eplb_placement_destroy(&self->new_map);
}
