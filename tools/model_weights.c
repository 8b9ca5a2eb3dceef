/* SPDX-License-Identifier: MIT */
/* The bytes of an expert, from the shape and the number format that a config.json gives. */
#include "model_weights.h"

#include <stdio.h>
#include <string.h>

#include "byte_size.h"

typedef struct number_format {
    const char *name;
    int32_t bits;
} number_format;

static const number_format dtypes[] = {{"bfloat16", 16},   {"float16", 16}, {"half", 16},
                                       {"float32", 32},    {"float", 32},   {"float8_e4m3fn", 8},
                                       {"float8_e5m2", 8}, {NULL, 0}};

/* Values of quant_method, or of modelopt's quant_algo, that say the bits by themselves. */
static const number_format methods[] = {{"fp8", 8},   {"fbgemm_fp8", 8}, {"experts_int8", 8},
                                        {"mxfp4", 4}, {"FP8", 8},        {"NVFP4", 4},
                                        {NULL, 0}};

/* 0: not one of them, or no text. */
static int32_t find_bits(const number_format *formats, const cJSON *name)
{
    const char *text = cJSON_IsString(name) ? name->valuestring : "";
    for (; formats->name != NULL; formats++) {
        if (strcmp(formats->name, text) == 0) {
            return formats->bits;
        }
    }
    return 0;
}

/* The bits that all groups of compressed-tensors have; 0: there are none, or they differ. */
static int32_t bits_of_groups(const cJSON *groups)
{
    int32_t all = 0;
    for (const cJSON *group = groups != NULL ? groups->child : NULL; group != NULL;
         group = group->next) {
        const cJSON *weights = cJSON_GetObjectItemCaseSensitive(group, "weights");
        int32_t bits;
        if (!config_is_count(cJSON_GetObjectItemCaseSensitive(weights, "num_bits"), 1, &bits) ||
            (all > 0 && bits != all)) {
            return 0;
        }
        all = bits;
    }
    return all;
}

/* Bits of a quantised weight; 0: it is not clear. */
static int32_t bits_of_quantisation(const cJSON *quantisation)
{
    int32_t bits =
        find_bits(methods, cJSON_GetObjectItemCaseSensitive(quantisation, "quant_method"));
    if (bits == 0) {
        bits = find_bits(methods, cJSON_GetObjectItemCaseSensitive(quantisation, "quant_algo"));
    }
    if (bits == 0) {
        bits = bits_of_groups(cJSON_GetObjectItemCaseSensitive(quantisation, "config_groups"));
    }
    if (bits > 0) {
        return bits;
    }
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(quantisation, "load_in_8bit"))) {
        return 8;
    }
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(quantisation, "load_in_4bit"))) {
        return 4;
    }
    (void)config_is_count(cJSON_GetObjectItemCaseSensitive(quantisation, "bits"), 1, &bits);
    return bits;
}

/* Bits of a weight; 0 and a reason in the config: it does not say it. */
static int32_t find_weight_bits(model_config *self, const config_json *config)
{
    static const char *const dtype_keys[] = {"torch_dtype", "dtype", NULL};
    const cJSON *quantisation = config_find(config, "quantization_config");
    const char *key = "quantization_config";
    int32_t bits = 0;
    if (quantisation != NULL) {
        bits = bits_of_quantisation(quantisation);
    } else {
        key = config_first_of(config, dtype_keys);
        bits = key != NULL ? find_bits(dtypes, config_find(config, key)) : 0;
    }
    if (key == NULL) {
        snprintf(self->no_expert_bytes, sizeof(self->no_expert_bytes),
                 "there is no 'torch_dtype' or 'dtype'");
    } else if (bits == 0 || bits > 64) {
        snprintf(self->no_expert_bytes, sizeof(self->no_expert_bytes),
                 "the bytes of a weight are not clear from '%s'", key);
        bits = 0;
    }
    return bits;
}

/* A size of the experts' matrices; 0 and a reason in the config: it is not there. */
static eplb_status read_size(model_config *self, const config_json *config, const char *key,
                             int32_t *size, eplb_error *error)
{
    const cJSON *item = config_find(config, key);
    *size = 0;
    if (item == NULL) {
        snprintf(self->no_expert_bytes, sizeof(self->no_expert_bytes), "there is no '%s'", key);
        return EPLB_OK;
    }
    return config_is_count(item, 1, size)
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_PARSE, "%s: '%s' is not a whole number above 0",
                                self->path, key);
}

eplb_status model_weights_read(model_config *self, const config_json *config, eplb_error *error)
{
    /* Where all layers have experts, intermediate_size can be theirs only. */
    bool all_have_experts = self->layers > 0 && self->layers == self->moe_layers;
    bool is_named = config_find(config, "moe_intermediate_size") != NULL;
    const char *key = all_have_experts && !is_named ? "intermediate_size" : "moe_intermediate_size";
    int32_t hidden;
    int32_t intermediate = 0;
    eplb_status status = read_size(self, config, "hidden_size", &hidden, error);
    if (status == EPLB_OK && hidden > 0) {
        status = read_size(self, config, key, &intermediate, error);
    }
    if (status != EPLB_OK || intermediate == 0) {
        return status;
    }
    int64_t weights = (int64_t)hidden * intermediate;
    int32_t bits = find_weight_bits(self, config);
    if (weights > LARGEST_SIZE / 3 / 64) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: 'hidden_size' %d x '%s' %d is too large", self->path, hidden,
                              key, intermediate);
    }
    self->expert_bytes = (3 * weights * bits + 7) / 8;
    return EPLB_OK;
}
