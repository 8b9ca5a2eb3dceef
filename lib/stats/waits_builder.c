/* SPDX-License-Identifier: MIT */
#include "stats/waits.h"

#include "base/memory.h"
#include "base/range.h"

static const char what[] = "waits builder";

struct eplb_waits_builder {
    eplb_hooks hooks;
    int32_t max_layers;
    int32_t max_ranks;
    int32_t layers;         /* seen */
    int32_t ranks;          /* one more than the largest seen */
    eplb_wait_cell ***rows; /* [max_layers], by layer id; NULL, or [max_ranks] with a cell */
};

eplb_status eplb_waits_builder_create(eplb_waits_builder **out, const eplb_hooks *hooks,
                                      int32_t max_layers, int32_t max_ranks, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given(what, "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "limit of layers", max_layers, 1, EPLB_MAX_LAYERS, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "limit of ranks", max_ranks, 1, EPLB_MAX_RANKS, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_waits_builder *builder = eplb_alloc_zeroed(&resolved, 1, sizeof(*builder));
    if (builder == NULL) {
        return eplb_out_of_memory(error);
    }
    builder->hooks = resolved;
    builder->max_layers = max_layers;
    builder->max_ranks = max_ranks;
    builder->rows = eplb_alloc_zeroed(&resolved, (size_t)max_layers, sizeof(*builder->rows));
    if (builder->rows == NULL) {
        eplb_waits_builder_destroy(&builder);
        return eplb_out_of_memory(error);
    }
    *out = builder;
    return EPLB_OK;
}

void eplb_waits_builder_destroy(eplb_waits_builder **builder)
{
    if (builder == NULL || *builder == NULL) {
        return;
    }
    eplb_waits_builder *self = *builder;
    eplb_hooks hooks = self->hooks;
    for (int32_t id = 0; self->rows != NULL && id < self->max_layers; id++) {
        for (int32_t r = 0; self->rows[id] != NULL && r < self->ranks; r++) {
            eplb_free(&hooks, self->rows[id][r]);
        }
        eplb_free(&hooks, self->rows[id]);
    }
    eplb_free(&hooks, self->rows);
    eplb_free(&hooks, self);
    *builder = NULL;
}

/* Adds a wait to the row of a layer that was seen or is to be. */
static eplb_status add_to_row(eplb_waits_builder *builder, eplb_wait_cell **row, int32_t layer_id,
                              int32_t rank, double microseconds, eplb_error *error)
{
    eplb_status status =
        eplb_wait_cell_add(&row[rank], &builder->hooks, layer_id, rank, microseconds, error);
    if (status == EPLB_OK && rank >= builder->ranks) {
        builder->ranks = rank + 1;
    }
    return status;
}

static eplb_status add_row(eplb_waits_builder *builder, int32_t layer_id, int32_t rank,
                           double microseconds, eplb_error *error)
{
    eplb_wait_cell **row =
        eplb_alloc_zeroed(&builder->hooks, (size_t)builder->max_ranks, sizeof(*row));
    if (row == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = add_to_row(builder, row, layer_id, rank, microseconds, error);
    if (status != EPLB_OK) {
        eplb_free(&builder->hooks, row);
        return status;
    }
    builder->rows[layer_id] = row;
    builder->layers++;
    return EPLB_OK;
}

eplb_status eplb_waits_builder_add(eplb_waits_builder *builder, int32_t layer_id, int32_t rank,
                                   double microseconds, eplb_error *error)
{
    eplb_status status =
        eplb_check_range(what, "layer", layer_id, 0, builder->max_layers - 1, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "rank", rank, 0, builder->max_ranks - 1, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_wait_cell **row = builder->rows[layer_id];
    return row != NULL ? add_to_row(builder, row, layer_id, rank, microseconds, error)
                       : add_row(builder, layer_id, rank, microseconds, error);
}

/* Writes the layer ids that were seen, ascending. */
static void list_layers(const eplb_waits_builder *builder, int32_t *ids)
{
    int32_t layers = 0;
    for (int32_t id = 0; id < builder->max_layers; id++) {
        if (builder->rows[id] != NULL) {
            ids[layers++] = id;
        }
    }
}

/* Moves the cells of everything seen into waits of that shape. */
static void move_cells(eplb_waits_builder *builder, eplb_waits *waits)
{
    for (int32_t l = 0; l < waits->layers; l++) {
        int32_t id = waits->layer_ids.ids[l];
        for (int32_t r = 0; r < builder->ranks; r++) {
            *eplb_waits_at(waits, l, r) = builder->rows[id][r];
        }
        eplb_free(&builder->hooks, builder->rows[id]);
        builder->rows[id] = NULL;
    }
    builder->layers = 0;
    builder->ranks = 0;
}

/* Of a builder that has samples. */
static eplb_status finish(eplb_waits_builder *builder, eplb_waits **out, int32_t ranks,
                          eplb_error *error)
{
    int32_t *ids = eplb_alloc(&builder->hooks, (size_t)builder->layers, sizeof(*ids));
    if (ids == NULL) {
        return eplb_out_of_memory(error);
    }
    list_layers(builder, ids);
    eplb_waits *waits = NULL;
    eplb_status status =
        eplb_waits_make(&waits, &builder->hooks, builder->layers, ranks, ids, 0, error);
    eplb_free(&builder->hooks, ids);
    if (status == EPLB_OK) {
        move_cells(builder, waits);
        *out = waits;
    }
    return status;
}

eplb_status eplb_waits_builder_finish(eplb_waits_builder *builder, eplb_waits **out, int32_t ranks,
                                      eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given(what, "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "number of ranks", ranks, 0, EPLB_MAX_RANKS, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if (builder->layers == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: no waits at all", what);
    }
    if (ranks > 0 && builder->ranks > ranks) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: rank %d has waits, expected %d ranks",
                              what, builder->ranks - 1, ranks);
    }
    return finish(builder, out, ranks > 0 ? ranks : builder->ranks, error);
}
