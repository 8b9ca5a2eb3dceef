/* SPDX-License-Identifier: MIT */
#include <eplb/load.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/layer_ids.h"
#include "model/row.h"

typedef struct eplb_scenario {
    char *name;
    double weight;
} eplb_scenario;

struct eplb_load {
    eplb_hooks hooks;
    int32_t scenarios;
    int32_t layers;
    int32_t experts;
    eplb_layer_ids layer_ids;
    eplb_scenario *scenario; /* [scenarios] */
    double *values;          /* [scenarios][layers][experts] */
};

eplb_status eplb_row_check(const char *what, int32_t layer_id, const double *values, int32_t length,
                           eplb_error *error)
{
    char place[64] = "";
    double sum = 0.0;
    if (layer_id >= 0) {
        snprintf(place, sizeof(place), " layer %d:", layer_id);
    }
    for (int32_t e = 0; e < length; e++) {
        if (!isfinite(values[e]) || values[e] < 0.0) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "%s:%s expert %d: %g is not a load (finite, >= 0)", what, place,
                                  e, values[e]);
        }
        sum += values[e];
    }
    if (!isfinite(sum)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "%s:%s the sum of the loads is too large",
                              what, place);
    }
    return EPLB_OK;
}

static eplb_status check_shape(int32_t scenarios, int32_t layers, int32_t experts,
                               eplb_error *error)
{
    eplb_status status =
        eplb_check_range("load", "number of scenarios", scenarios, 1, EPLB_MAX_SCENARIOS, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("load", "number of layers", layers, 1, EPLB_MAX_LAYERS, error);
    }
    return status == EPLB_OK
               ? eplb_check_range("load", "number of experts", experts, 1, EPLB_MAX_EXPERTS, error)
               : status;
}

eplb_status eplb_load_create(eplb_load **out, const eplb_hooks *hooks, int32_t scenarios,
                             int32_t layers, int32_t experts, eplb_error *error)
{
    if (out == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "load: no output");
    }
    *out = NULL;
    eplb_status status = check_shape(scenarios, layers, experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t rows;
    size_t count;
    if (!eplb_size_mul((size_t)scenarios, (size_t)layers, &rows) ||
        !eplb_size_mul(rows, (size_t)experts, &count)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "load: its size overflows");
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_load *load = eplb_alloc_zeroed(&resolved, 1, sizeof(*load));
    if (load == NULL) {
        return eplb_out_of_memory(error);
    }
    load->hooks = resolved;
    load->scenarios = scenarios;
    load->layers = layers;
    load->experts = experts;
    load->scenario = eplb_alloc_zeroed(&resolved, (size_t)scenarios, sizeof(*load->scenario));
    load->values = eplb_alloc_zeroed(&resolved, count, sizeof(double));
    if (load->scenario == NULL || load->values == NULL ||
        eplb_layer_ids_init(&load->layer_ids, &resolved, layers) != EPLB_OK) {
        eplb_load_destroy(&load);
        return eplb_out_of_memory(error);
    }
    for (int32_t s = 0; s < scenarios; s++) {
        load->scenario[s].weight = 1.0;
    }
    *out = load;
    return EPLB_OK;
}

void eplb_load_destroy(eplb_load **load)
{
    if (load == NULL || *load == NULL) {
        return;
    }
    eplb_load *self = *load;
    eplb_hooks hooks = self->hooks;
    for (int32_t s = 0; self->scenario != NULL && s < self->scenarios; s++) {
        eplb_free(&hooks, self->scenario[s].name);
    }
    eplb_free(&hooks, self->scenario);
    eplb_free(&hooks, self->layer_ids.ids);
    eplb_free(&hooks, self->values);
    eplb_free(&hooks, self);
    *load = NULL;
}

int32_t eplb_load_scenarios(const eplb_load *load)
{
    return load->scenarios;
}

int32_t eplb_load_layers(const eplb_load *load)
{
    return load->layers;
}

int32_t eplb_load_experts(const eplb_load *load)
{
    return load->experts;
}

static eplb_status check_place(const eplb_load *load, int32_t scenario, int32_t layer,
                               eplb_error *error)
{
    eplb_status status =
        eplb_check_range("load row", "scenario", scenario, 0, load->scenarios - 1, error);
    return status == EPLB_OK
               ? eplb_check_range("load row", "layer", layer, 0, load->layers - 1, error)
               : status;
}

static double *row_of(const eplb_load *load, int32_t scenario, int32_t layer)
{
    size_t row = (size_t)scenario * (size_t)load->layers + (size_t)layer;
    return load->values + row * (size_t)load->experts;
}

eplb_status eplb_load_set_row(eplb_load *load, int32_t scenario, int32_t layer,
                              const double *values, eplb_error *error)
{
    eplb_status status = check_place(load, scenario, layer, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("load row", "values", values, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    status = eplb_row_check("load", load->layer_ids.ids[layer], values, load->experts, error);
    if (status == EPLB_OK) {
        memcpy(row_of(load, scenario, layer), values, (size_t)load->experts * sizeof(*values));
    }
    return status;
}

const double *eplb_load_row(const eplb_load *load, int32_t scenario, int32_t layer)
{
    bool exists = check_place(load, scenario, layer, NULL) == EPLB_OK;
    return exists ? row_of(load, scenario, layer) : NULL;
}

eplb_status eplb_load_set_layer_ids(eplb_load *load, const int32_t *ids, int32_t model_layers,
                                    eplb_error *error)
{
    return eplb_layer_ids_set(&load->layer_ids, load->layers, ids, model_layers, error);
}

const int32_t *eplb_load_layer_ids(const eplb_load *load)
{
    return load->layer_ids.ids;
}

int32_t eplb_load_model_layers(const eplb_load *load)
{
    return load->layer_ids.model_layers;
}

eplb_status eplb_load_set_scenario(eplb_load *load, int32_t scenario, const char *name,
                                   double weight, eplb_error *error)
{
    eplb_status status =
        eplb_check_range("load", "scenario", scenario, 0, load->scenarios - 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!isfinite(weight) || weight <= 0.0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "load: scenario %d: weight %g is not a finite number above 0",
                              scenario, weight);
    }
    char *copy = NULL;
    if (name != NULL) {
        size_t size = strlen(name) + 1;
        copy = eplb_alloc(&load->hooks, 1, size);
        if (copy == NULL) {
            return eplb_out_of_memory(error);
        }
        memcpy(copy, name, size);
    }
    eplb_free(&load->hooks, load->scenario[scenario].name);
    load->scenario[scenario].name = copy;
    load->scenario[scenario].weight = weight;
    return EPLB_OK;
}

const char *eplb_load_scenario_name(const eplb_load *load, int32_t scenario)
{
    return scenario >= 0 && scenario < load->scenarios ? load->scenario[scenario].name : NULL;
}

double eplb_load_scenario_weight(const eplb_load *load, int32_t scenario)
{
    return scenario >= 0 && scenario < load->scenarios ? load->scenario[scenario].weight : 0.0;
}

/* Finds an expert of the layer that has tokens in some scenario. */
static bool find_tokens(const eplb_load *load, int32_t layer, int32_t *expert, double *tokens)
{
    for (int32_t s = 0; s < load->scenarios; s++) {
        const double *row = row_of(load, s, layer);
        for (int32_t e = 0; e < load->experts; e++) {
            if (row[e] > 0.0) {
                *expert = e;
                *tokens = row[e];
                return true;
            }
        }
    }
    return false;
}

int32_t eplb_load_layer_is_zero(const eplb_load *load, int32_t layer)
{
    int32_t expert;
    double tokens;
    return layer >= 0 && layer < load->layers && !find_tokens(load, layer, &expert, &tokens);
}

static bool contains(const int32_t *ids, int32_t count, int32_t id)
{
    for (int32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Copies the layers of `load` that `kept` lists, and everything else that belongs to them. */
static eplb_status copy_layers(eplb_load *to, const eplb_load *load, const int32_t *kept,
                               eplb_error *error)
{
    for (int32_t l = 0; l < to->layers; l++) {
        to->layer_ids.ids[l] = load->layer_ids.ids[kept[l]];
        for (int32_t s = 0; s < load->scenarios; s++) {
            memcpy(row_of(to, s, l), row_of(load, s, kept[l]),
                   (size_t)load->experts * sizeof(double));
        }
    }
    to->layer_ids.model_layers = load->layer_ids.model_layers;
    eplb_status status = EPLB_OK;
    for (int32_t s = 0; s < load->scenarios && status == EPLB_OK; s++) {
        status =
            eplb_load_set_scenario(to, s, load->scenario[s].name, load->scenario[s].weight, error);
    }
    return status;
}

eplb_status eplb_load_without_layers(eplb_load **out, const eplb_load *load, const int32_t *ids,
                                     int32_t count, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || load == NULL || count < 0 || (ids == NULL && count > 0)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "load without layers: no output, no load, or no ids");
    }
    int32_t *kept = eplb_alloc(&load->hooks, (size_t)load->layers, sizeof(*kept));
    if (kept == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = EPLB_OK;
    int32_t layers = 0;
    for (int32_t l = 0; l < load->layers && status == EPLB_OK; l++) {
        int32_t expert;
        double tokens;
        if (!contains(ids, count, load->layer_ids.ids[l])) {
            kept[layers++] = l;
        } else if (find_tokens(load, l, &expert, &tokens)) {
            status = eplb_error_set(error, EPLB_ERROR_DATA,
                                    "layer %d cannot be dense: expert %d has %g tokens",
                                    load->layer_ids.ids[l], expert, tokens);
        }
    }
    if (status == EPLB_OK && layers == 0) {
        status = eplb_error_set(error, EPLB_ERROR_DATA, "all %d layers are dense: nothing to plan",
                                load->layers);
    }
    eplb_load *result = NULL;
    if (status == EPLB_OK) {
        status =
            eplb_load_create(&result, &load->hooks, load->scenarios, layers, load->experts, error);
    }
    if (status == EPLB_OK) {
        status = copy_layers(result, load, kept, error);
    }
    eplb_free(&load->hooks, kept);
    if (status != EPLB_OK) {
        eplb_load_destroy(&result);
        return status;
    }
    *out = result;
    return EPLB_OK;
}
