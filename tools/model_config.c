/* SPDX-License-Identifier: MIT */
#include "model_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/load.h>

#include "config_json.h"
#include "model_layers.h"
#include "model_weights.h"

/* Real ones have a few KiB; quantised models list their modules. */
#define LARGEST_CONFIG ((size_t)16 << 20)

/* DeepSeek, GLM-4.x and Kimi-K2; Qwen; Mixtral and gpt-oss. */
static const char *const experts_keys[] = {"n_routed_experts", "num_experts", "num_local_experts",
                                           NULL};
static const char *const topk_keys[] = {"num_experts_per_tok", "experts_per_token", NULL};
static const char *const group_keys[] = {"n_group", NULL};

/* The first of the keys that is there, a whole number in 1..high; 0: none is there. */
static eplb_status read_count(const config_json *config, const char *path, const char *const *keys,
                              int32_t high, int32_t *count, eplb_error *error)
{
    const char *key = config_first_of(config, keys);
    *count = 0;
    if (key == NULL || (config_is_count(config_find(config, key), 1, count) && *count <= high)) {
        return EPLB_OK;
    }
    *count = 0;
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: '%s' is not a whole number in 1..%d", path,
                          key, high);
}

static eplb_status read_experts(model_config *self, const config_json *config, eplb_error *error)
{
    eplb_status status =
        read_count(config, self->path, experts_keys, EPLB_MAX_EXPERTS, &self->experts, error);
    if (status == EPLB_OK && self->experts == 0) {
        snprintf(self->no_experts, sizeof(self->no_experts),
                 "there is no 'n_routed_experts', 'num_experts' or 'num_local_experts'");
    }
    if (status == EPLB_OK) {
        status = read_count(config, self->path, topk_keys, EPLB_MAX_EXPERTS, &self->topk, error);
    }
    return status == EPLB_OK
               ? read_count(config, self->path, group_keys, EPLB_MAX_EXPERTS, &self->groups, error)
               : status;
}

eplb_status model_config_parse(model_config *self, const char *path, const char *text,
                               size_t length, eplb_error *error)
{
    *self = (model_config){.path = path};
    config_json config;
    eplb_status status = config_json_parse(&config, path, text, length, error);
    if (status == EPLB_OK) {
        status = read_experts(self, &config, error);
    }
    if (status == EPLB_OK) {
        status = model_layers_read(self, &config, error);
    }
    if (status == EPLB_OK) {
        status = model_weights_read(self, &config, error);
    }
    config_json_release(&config);
    return status;
}

static eplb_status read_text(FILE *file, const char *path, char *text, size_t *length,
                             eplb_error *error)
{
    *length = fread(text, 1, LARGEST_CONFIG, file);
    if (ferror(file) != 0) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    if (*length == LARGEST_CONFIG) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: %zu bytes or more are no config", path,
                              LARGEST_CONFIG);
    }
    text[*length] = '\0';
    return EPLB_OK;
}

eplb_status model_config_read(model_config *self, const char *path, eplb_error *error)
{
    *self = (model_config){.path = path};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    size_t length = 0;
    char *text = malloc(LARGEST_CONFIG);
    eplb_status status = text != NULL ? read_text(file, path, text, &length, error)
                                      : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    if (status == EPLB_OK) {
        status = model_config_parse(self, path, text, length, error);
    }
    free(text);
    fclose(file);
    return status;
}

void model_config_release(model_config *self)
{
    free(self->dense_layers.items);
    self->dense_layers = (id_list){0};
}
