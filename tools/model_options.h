/* SPDX-License-Identifier: MIT */
/* What --model does for a command: it answers what other options left open. */
#ifndef EPLB_TOOLS_MODEL_OPTIONS_H
#define EPLB_TOOLS_MODEL_OPTIONS_H

#include <eplb/load.h>

#include "model_config.h"

/* Help of --model and --expert-bytes. */
#define MODEL_HELP                                                                                 \
    "config.json of the model (Hugging Face): says the experts, the dense layers and the bytes "   \
    "of "                                                                                          \
    "an expert; options win over it; files that contradict it are refused"
#define EXPERT_BYTES_HELP "weights of one expert of one layer, such as 42MiB"

/* The options that a config answers where the user did not. */
typedef struct model_questions {
    int32_t *experts;        /* 0: open */
    id_list *dense_layers;   /* items NULL: open */
    int32_t *topk;           /* 0: open; NULL: the command has no such option */
    int64_t *expert_bytes;   /* 0: open; NULL: the command has no such option */
    bool needs_expert_bytes; /* else it is good to know */
} model_questions;

/* What a config answered, to be held against the files. */
typedef struct model_answers {
    model_config config;
    bool gave_experts;
    bool gave_layers;
} model_answers;

/* Reads the config at `path` (NULL: none, and nothing happens) and answers what is open. Returns an
 * exit code, with a message. To be given to model_answers_release in any case. */
int model_answer(model_answers *self, const char *path, const model_questions *open);
void model_answers_release(model_answers *self);

/* EPLB_ERROR_DATA when the layers of a load are not those of the model and `draft_layers` (-1: none
 * known) of its draft model, as far as the config was asked. `is_final`: dense layers are left out,
 * and the ids are those of the model. */
eplb_status model_check_layers(const model_answers *self, const eplb_load *load,
                               int32_t draft_layers, bool is_final, eplb_error *error);

/* Where files were refused because of a number of experts that came from the config, makes the
 * message say so. */
void model_explain(const model_answers *self, eplb_error *error);

#endif
