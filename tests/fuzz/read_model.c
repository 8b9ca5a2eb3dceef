/* SPDX-License-Identifier: MIT */
/* A model's config.json, as the command's --model reads it. */
#include <stdlib.h>
#include <string.h>

#include <eplb/load.h>

#include "fuzz.h"
#include "model_config.h"

static void expect_model(const model_config *config)
{
    if (config->experts < 0 || config->experts > EPLB_MAX_EXPERTS || config->topk < 0 ||
        config->layers < 0 || config->moe_layers < 0 || config->moe_layers > config->layers ||
        config->expert_bytes < 0) {
        fuzz_fail("%d experts, %d a token, %d of %d layers, %lld bytes", config->experts,
                  config->topk, config->moe_layers, config->layers,
                  (long long)config->expert_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    model_config config;
    eplb_error error;
    eplb_status status = model_config_parse(&config, "config.json", text, size, &error);
    if (status == EPLB_OK) {
        expect_model(&config);
    } else {
        fuzz_expect_message(status, &error);
    }
    model_config_release(&config);
    free(text);
    return 0;
}
