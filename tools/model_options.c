/* SPDX-License-Identifier: MIT */
#include "model_options.h"

#include <stdio.h>
#include <string.h>

#include "draft_layers.h"
#include "message.h"

static eplb_status missing(const model_answers *self, const char *what, const char *remedy,
                           eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %s; --%s says it", self->config.path, what,
                          remedy);
}

static eplb_status answer_layers(model_answers *self, id_list *dense, eplb_error *error)
{
    if (dense->items != NULL) {
        return EPLB_OK;
    }
    if (self->config.dense_layers.items == NULL) {
        return missing(self, self->config.no_layers, "dense-layers", error);
    }
    *dense = self->config.dense_layers;
    self->config.dense_layers = (id_list){0};
    self->gave_layers = true;
    return EPLB_OK;
}

static eplb_status answer(model_answers *self, const model_questions *open, eplb_error *error)
{
    const model_config *config = &self->config;
    if (*open->experts == 0) {
        if (config->experts == 0) {
            return missing(self, config->no_experts, "experts", error);
        }
        *open->experts = config->experts;
        self->gave_experts = true;
    }
    if (open->topk != NULL && *open->topk == 0) {
        *open->topk = config->topk;
    }
    if (open->expert_bytes != NULL && *open->expert_bytes == 0) {
        if (config->expert_bytes == 0 && open->needs_expert_bytes) {
            return missing(self, config->no_expert_bytes, "expert-bytes", error);
        }
        *open->expert_bytes = config->expert_bytes;
    }
    return answer_layers(self, open->dense_layers, error);
}

int model_answer(model_answers *self, const char *path, const model_questions *open)
{
    *self = (model_answers){0};
    if (path == NULL) {
        return EXIT_DONE;
    }
    eplb_error error;
    eplb_status status = model_config_read(&self->config, path, &error);
    if (status == EPLB_OK) {
        status = answer(self, open, &error);
    }
    return status == EPLB_OK ? EXIT_DONE : fail(&error);
}

void model_answers_release(model_answers *self)
{
    model_config_release(&self->config);
}

eplb_status model_check_layers(const model_answers *self, const eplb_load *load,
                               int32_t draft_layers, bool is_final, eplb_error *error)
{
    const model_config *config = &self->config;
    int32_t draft = draft_layers > 0 ? draft_layers : 0;
    int32_t model_layers = eplb_load_model_layers(load);
    int32_t layers = eplb_load_layers(load);
    int32_t all = config->layers + draft;
    char of_draft[48];
    draft_layers_text(draft, of_draft, sizeof(of_draft));
    if (config->layers > 0 && !is_final && model_layers > 0 && model_layers != all) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "the loads are of a model with %d layers%s, but %s has %d",
                              model_layers, of_draft, config->path, config->layers);
    }
    int32_t last = eplb_load_layer_ids(load)[layers - 1];
    if (self->gave_layers && is_final && last >= all) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "the loads have a layer %d%s, but %s has %d",
                              last, of_draft, config->path, config->layers);
    }
    bool may_list_dense = !is_final && (model_layers > 0 || layers == all);
    if (self->gave_layers && layers != config->moe_layers + draft && !may_list_dense) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "the loads have %d layers%s, but %s has %d with experts (of %d)",
                              layers, of_draft, config->path, config->moe_layers, config->layers);
    }
    return EPLB_OK;
}

void model_explain(const model_answers *self, eplb_error *error)
{
    char exact[48];
    char at_most[48];
    snprintf(exact, sizeof(exact), "expected %d", self->config.experts);
    snprintf(at_most, sizeof(at_most), "expected at most %d", self->config.experts);
    eplb_error given = *error;
    if (self->gave_experts &&
        (strstr(given.message, exact) != NULL || strstr(given.message, at_most) != NULL)) {
        eplb_error_set(error, (eplb_status)given.status, "%.300s; %.180s has %d experts",
                       given.message, self->config.path, self->config.experts);
    }
}
