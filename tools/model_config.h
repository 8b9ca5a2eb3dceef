/* SPDX-License-Identifier: MIT */
/* A model's config.json as Hugging Face keeps it: what it says about experts. */
#ifndef EPLB_TOOLS_MODEL_CONFIG_H
#define EPLB_TOOLS_MODEL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

#include "options.h"

#define WHY_SIZE 192

/* What a config does not say is not guessed: it is 0 (a list's items: NULL), and the text beside it
 * says which key is missing or not understood. */
typedef struct model_config {
    const char *path;   /* borrowed; NULL: there is no config */
    int32_t experts;    /* routed ones, of a layer */
    int32_t topk;       /* of them that a token goes to */
    int32_t groups;     /* of experts, for routing; 1: none */
    int32_t layers;     /* hidden layers, dense ones too */
    int32_t moe_layers; /* of them */
    id_list dense_layers;
    int64_t expert_bytes; /* weights of one expert of one layer, without the scales of quantised
                           * ones */
    char no_experts[WHY_SIZE];
    char no_layers[WHY_SIZE];
    char no_expert_bytes[WHY_SIZE];
} model_config;

/* Reads the file. What it made is to be given to model_config_release even when it failed. */
eplb_status model_config_read(model_config *self, const char *path, eplb_error *error);

/* The same from memory: `text` has `length` bytes and a NUL behind them. */
eplb_status model_config_parse(model_config *self, const char *path, const char *text,
                               size_t length, eplb_error *error);

void model_config_release(model_config *self);

#endif
