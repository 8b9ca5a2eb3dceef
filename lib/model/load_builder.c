/* SPDX-License-Identifier: MIT */
#include <eplb/load.h>

#include <math.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/row.h"

/* The sum of the rows of one layer. Only experts that were seen take memory. */
typedef struct summed_row {
    double *values; /* [capacity]; NULL: the layer was not seen */
    int32_t length;
    int32_t capacity;
} summed_row;

typedef struct scenario_sums {
    summed_row *rows; /* [layers], by layer id */
    int32_t layers;
} scenario_sums;

struct eplb_load_builder {
    eplb_hooks hooks;
    int32_t scenarios;
    scenario_sums *sums; /* [scenarios] */
};

eplb_status eplb_load_builder_create(eplb_load_builder **out, const eplb_hooks *hooks,
                                     int32_t scenarios, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("load builder", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("load builder", "number of scenarios", scenarios, 1,
                                  EPLB_MAX_SCENARIOS, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_load_builder *builder = eplb_alloc_zeroed(&resolved, 1, sizeof(*builder));
    if (builder == NULL) {
        return eplb_out_of_memory(error);
    }
    builder->hooks = resolved;
    builder->scenarios = scenarios;
    builder->sums = eplb_alloc_zeroed(&resolved, (size_t)scenarios, sizeof(*builder->sums));
    if (builder->sums == NULL) {
        eplb_load_builder_destroy(&builder);
        return eplb_out_of_memory(error);
    }
    *out = builder;
    return EPLB_OK;
}

void eplb_load_builder_destroy(eplb_load_builder **builder)
{
    if (builder == NULL || *builder == NULL) {
        return;
    }
    eplb_load_builder *self = *builder;
    eplb_hooks hooks = self->hooks;
    for (int32_t s = 0; self->sums != NULL && s < self->scenarios; s++) {
        for (int32_t l = 0; l < self->sums[s].layers; l++) {
            eplb_free(&hooks, self->sums[s].rows[l].values);
        }
        eplb_free(&hooks, self->sums[s].rows);
    }
    eplb_free(&hooks, self->sums);
    eplb_free(&hooks, self);
    *builder = NULL;
}

/* At least `wanted`, growing by half so that appending costs O(1) each. */
static int32_t grown(int32_t capacity, int32_t wanted, int32_t limit)
{
    int32_t next = capacity + capacity / 2 + 8;
    next = next < wanted ? wanted : next;
    return next < limit ? next : limit;
}

static bool make_room_for_layer(const eplb_hooks *hooks, scenario_sums *sums, int32_t layer_id)
{
    if (layer_id < sums->layers) {
        return true;
    }
    int32_t layers = grown(sums->layers, layer_id + 1, EPLB_MAX_LAYERS);
    summed_row *rows = eplb_realloc(hooks, sums->rows, (size_t)layers, sizeof(*rows));
    if (rows == NULL) {
        return false;
    }
    memset(rows + sums->layers, 0, (size_t)(layers - sums->layers) * sizeof(*rows));
    sums->rows = rows;
    sums->layers = layers;
    return true;
}

static bool make_room_for_experts(const eplb_hooks *hooks, summed_row *row, int32_t length)
{
    if (row->values != NULL && length <= row->capacity) {
        return true;
    }
    int32_t capacity = grown(row->capacity, length, EPLB_MAX_EXPERTS);
    double *values = eplb_realloc(hooks, row->values, (size_t)capacity, sizeof(*values));
    if (values == NULL) {
        return false;
    }
    row->values = values;
    row->capacity = capacity;
    return true;
}

static eplb_status check_arguments(const eplb_load_builder *builder, int32_t scenario,
                                   int32_t layer_id, const double *counts, int32_t length,
                                   eplb_error *error)
{
    static const char what[] = "load builder";
    eplb_status status =
        eplb_check_range(what, "scenario", scenario, 0, builder->scenarios - 1, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "layer", layer_id, 0, EPLB_MAX_LAYERS - 1, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "number of counts", length, 0, EPLB_MAX_EXPERTS, error);
    }
    if (status == EPLB_OK && length > 0) {
        status = eplb_check_given(what, "counts", counts, error);
    }
    return status;
}

eplb_status eplb_load_builder_add(eplb_load_builder *builder, int32_t scenario, int32_t layer_id,
                                  const double *counts, int32_t length, eplb_error *error)
{
    eplb_status status = check_arguments(builder, scenario, layer_id, counts, length, error);
    if (status == EPLB_OK) {
        status = eplb_row_check("counts", layer_id, counts, length, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    scenario_sums *sums = &builder->sums[scenario];
    if (!make_room_for_layer(&builder->hooks, sums, layer_id)) {
        return eplb_out_of_memory(error);
    }
    summed_row *row = &sums->rows[layer_id];
    if (!make_room_for_experts(&builder->hooks, row, length)) {
        return eplb_out_of_memory(error);
    }
    for (int32_t e = row->length; e < length; e++) {
        row->values[e] = 0.0;
    }
    row->length = row->length > length ? row->length : length;
    for (int32_t e = 0; e < length; e++) {
        row->values[e] += counts[e];
    }
    return EPLB_OK;
}

static bool seen(const eplb_load_builder *builder, int32_t scenario, int32_t layer_id)
{
    const scenario_sums *sums = &builder->sums[scenario];
    return layer_id < sums->layers && sums->rows[layer_id].values != NULL;
}

/* Finds the layer ids of scenario 0 into `ids` and makes sure that the others have the same. */
static eplb_status collect_layers(const eplb_load_builder *builder, int32_t *ids, int32_t *layers,
                                  eplb_error *error)
{
    int32_t end = 0;
    for (int32_t s = 0; s < builder->scenarios; s++) {
        end = builder->sums[s].layers > end ? builder->sums[s].layers : end;
    }
    *layers = 0;
    for (int32_t id = 0; id < end; id++) {
        for (int32_t s = 1; s < builder->scenarios; s++) {
            if (seen(builder, s, id) != seen(builder, 0, id)) {
                return eplb_error_set(error, EPLB_ERROR_DATA,
                                      "layer %d is in scenario %d and missing in scenario %d", id,
                                      seen(builder, 0, id) ? 0 : s, seen(builder, 0, id) ? s : 0);
            }
        }
        if (seen(builder, 0, id)) {
            if (ids != NULL) {
                ids[*layers] = id;
            }
            *layers += 1;
        }
    }
    if (*layers == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "no counts at all");
    }
    return EPLB_OK;
}

static eplb_status find_experts(const eplb_load_builder *builder, int32_t *experts,
                                eplb_error *error)
{
    int32_t longest = 0;
    for (int32_t s = 0; s < builder->scenarios; s++) {
        for (int32_t id = 0; id < builder->sums[s].layers; id++) {
            int32_t length = builder->sums[s].rows[id].length;
            if (*experts > 0 && length > *experts) {
                return eplb_error_set(error, EPLB_ERROR_DATA,
                                      "layer %d: %d counts, expected at most %d", id, length,
                                      *experts);
            }
            longest = length > longest ? length : longest;
        }
    }
    if (*experts == 0) {
        *experts = longest;
    }
    return *experts > 0 ? EPLB_OK : eplb_error_set(error, EPLB_ERROR_DATA, "no experts at all");
}

/* Sums over steps can overflow although each row did not. */
static eplb_status check_sum(const summed_row *sum, int32_t layer_id, eplb_error *error)
{
    for (int32_t e = 0; e < sum->length; e++) {
        if (!isfinite(sum->values[e])) {
            return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                                  "layer %d: expert %d: the sum over its rows is too large",
                                  layer_id, e);
        }
    }
    return EPLB_OK;
}

static eplb_status fill(const eplb_load_builder *builder, eplb_load *load, const int32_t *ids,
                        double *row, eplb_error *error)
{
    size_t bytes = (size_t)eplb_load_experts(load) * sizeof(*row);
    eplb_status status = eplb_load_set_layer_ids(load, ids, 0, error);
    for (int32_t s = 0; s < builder->scenarios && status == EPLB_OK; s++) {
        for (int32_t l = 0; l < eplb_load_layers(load) && status == EPLB_OK; l++) {
            const summed_row *sum = &builder->sums[s].rows[ids[l]];
            memset(row, 0, bytes);
            memcpy(row, sum->values, (size_t)sum->length * sizeof(*row));
            status = check_sum(sum, ids[l], error);
            if (status == EPLB_OK) {
                status = eplb_load_set_row(load, s, l, row, error);
            }
        }
    }
    return status;
}

eplb_status eplb_load_builder_finish(const eplb_load_builder *builder, eplb_load **out,
                                     int32_t experts, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("load builder", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("load builder", "number of experts", experts, 0, EPLB_MAX_EXPERTS,
                                  error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t layers;
    status = collect_layers(builder, NULL, &layers, error);
    if (status == EPLB_OK) {
        status = find_experts(builder, &experts, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_load *load = NULL;
    int32_t *ids = eplb_alloc(&builder->hooks, (size_t)layers, sizeof(*ids));
    double *row = eplb_alloc(&builder->hooks, (size_t)experts, sizeof(*row));
    if (ids == NULL || row == NULL) {
        status = eplb_out_of_memory(error);
    }
    if (status == EPLB_OK) {
        status = collect_layers(builder, ids, &layers, error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_load_create(&load, &builder->hooks, builder->scenarios, layers, experts, error);
    }
    if (status == EPLB_OK) {
        status = fill(builder, load, ids, row, error);
    }
    eplb_free(&builder->hooks, ids);
    eplb_free(&builder->hooks, row);
    if (status != EPLB_OK) {
        eplb_load_destroy(&load);
        return status;
    }
    *out = load;
    return EPLB_OK;
}
