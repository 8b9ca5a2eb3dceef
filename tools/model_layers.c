/* SPDX-License-Identifier: MIT */
/* The dense layers of a model, as its config.json describes them. */
#include "model_layers.h"

#include <stdio.h>
#include <stdlib.h>

#include <eplb/load.h>

/* What says which layers have experts. Layer i has some when all of it agrees. */
typedef struct layer_rule {
    int32_t first;           /* DeepSeek: i >= first */
    int32_t every;           /* DeepSeek: i a multiple of it */
    int32_t step;            /* Qwen: i + 1 a multiple of it */
    const cJSON *listed;     /* MiMo-V2: element i is not 0; NULL: no list */
    const cJSON *only_dense; /* Qwen: i is not in it; NULL: no list */
} layer_rule;

/* Other families' ways to say it: with one of these there, the rules above would guess. */
static const char *const other_rules[] = {
    "interleave_moe_layer_step", "moe_layers",         "moe_layers_enum",
    "expert_layer_period",       "moe_layer_interval", "moe_layer_start_index",
    "moe_layer_num_skipped",     "num_dense_layers",   NULL};

static eplb_status refuse(const model_config *self, const char *key, const char *what,
                          eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: '%s' is not %s", self->path, key, what);
}

static eplb_status read_number(const model_config *self, const config_json *config, const char *key,
                               int32_t low, int32_t *value, eplb_error *error)
{
    const cJSON *item = config_find(config, key);
    return item == NULL || config_is_count(item, low, value)
               ? EPLB_OK
               : refuse(self, key, low == 0 ? "a whole number" : "a whole number above 0", error);
}

static eplb_status read_list(const model_config *self, const config_json *config, const char *key,
                             const cJSON **list, eplb_error *error)
{
    *list = config_find(config, key);
    int32_t value;
    for (const cJSON *item = *list != NULL ? (*list)->child : NULL; item != NULL;
         item = item->next) {
        if (!config_is_count(item, 0, &value)) {
            return refuse(self, key, "a list of whole numbers", error);
        }
    }
    return *list == NULL || cJSON_IsArray(*list)
               ? EPLB_OK
               : refuse(self, key, "a list of whole numbers", error);
}

static eplb_status read_frequency(const model_config *self, const config_json *config,
                                  layer_rule *rule, eplb_error *error)
{
    static const char key[] = "moe_layer_freq";
    if (!cJSON_IsArray(config_find(config, key))) {
        return read_number(self, config, key, 1, &rule->every, error);
    }
    eplb_status status = read_list(self, config, key, &rule->listed, error);
    return status == EPLB_OK && cJSON_GetArraySize(rule->listed) != self->layers
               ? refuse(self, key, "a list with a number for each of 'num_hidden_layers'", error)
               : status;
}

static eplb_status read_rule(const model_config *self, const config_json *config, layer_rule *rule,
                             eplb_error *error)
{
    *rule = (layer_rule){.every = 1, .step = 1};
    eplb_status status = read_number(self, config, "first_k_dense_replace", 0, &rule->first, error);
    if (status == EPLB_OK) {
        status = read_frequency(self, config, rule, error);
    }
    if (status == EPLB_OK) {
        status = read_number(self, config, "decoder_sparse_step", 1, &rule->step, error);
    }
    return status == EPLB_OK ? read_list(self, config, "mlp_only_layers", &rule->only_dense, error)
                             : status;
}

static bool contains(const cJSON *list, int32_t value)
{
    for (const cJSON *item = list != NULL ? list->child : NULL; item != NULL; item = item->next) {
        if (item->valuedouble == (double)value) {
            return true;
        }
    }
    return false;
}

/* `listed` is the element of rule->listed for this layer. */
static bool is_dense(const layer_rule *rule, int32_t layer, const cJSON *listed)
{
    return layer < rule->first || layer % rule->every != 0 || (layer + 1) % rule->step != 0 ||
           (listed != NULL && listed->valuedouble == 0.0) || contains(rule->only_dense, layer);
}

static eplb_status list_dense_layers(model_config *self, const layer_rule *rule, eplb_error *error)
{
    id_list *dense = &self->dense_layers;
    dense->items = calloc((size_t)self->layers, sizeof(*dense->items));
    if (dense->items == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    const cJSON *listed = rule->listed != NULL ? rule->listed->child : NULL;
    for (int32_t l = 0; l < self->layers; l++) {
        if (is_dense(rule, l, listed)) {
            dense->items[dense->count++] = l;
        }
        listed = listed != NULL ? listed->next : NULL;
    }
    self->moe_layers = self->layers - dense->count;
    return self->moe_layers > 0
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_DATA, "%s: all of %d layers are dense",
                                self->path, self->layers);
}

/* Why the layers cannot be told; NULL: they can. */
static const char *find_gap(const config_json *config, char *text, size_t size)
{
    const char *other = config_first_of(config, other_rules);
    if (config_find(config, "num_hidden_layers") == NULL) {
        snprintf(text, size, "there is no 'num_hidden_layers'");
    } else if (other != NULL) {
        snprintf(text, size, "'%s' is not a way to tell dense layers that eplb knows", other);
    } else if (config_find(config, "n_routed_experts") != NULL &&
               config_find(config, "first_k_dense_replace") == NULL &&
               !cJSON_IsArray(config_find(config, "moe_layer_freq"))) {
        snprintf(text, size, "there is no 'first_k_dense_replace'");
    } else {
        return NULL;
    }
    return text;
}

eplb_status model_layers_read(model_config *self, const config_json *config, eplb_error *error)
{
    eplb_status status = read_number(self, config, "num_hidden_layers", 1, &self->layers, error);
    if (status == EPLB_OK && self->layers > EPLB_MAX_LAYERS) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: 'num_hidden_layers' %d is above %d",
                              self->path, self->layers, EPLB_MAX_LAYERS);
    }
    if (status != EPLB_OK || find_gap(config, self->no_layers, sizeof(self->no_layers)) != NULL) {
        return status;
    }
    layer_rule rule;
    status = read_rule(self, config, &rule, error);
    return status == EPLB_OK ? list_dense_layers(self, &rule, error) : status;
}
