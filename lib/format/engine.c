/* SPDX-License-Identifier: MIT */
#include "format/engine.h"

#include <string.h>

/* Formats by name: a build may lack some. */
static const eplb_engine engines[] = {
    {.name = "sglang", .title = "SGLang", .formats = {"sglang"}, .rows = EPLB_ROWS_ALL_LAYERS},
    {.name = "trtllm",
     .title = "TensorRT-LLM",
     .formats = {"trtllm"},
     .rows = EPLB_ROWS_BY_ID,
     .max_experts = EPLB_TRTLLM_MAX_EXPERTS,
     .max_slots = EPLB_TRTLLM_MAX_SLOTS},
    {.name = "vllm",
     .title = "vLLM",
     .formats = {"vllm", "vllm_mapping"},
     .rows = EPLB_ROWS_OR_ONE,
     .flags = EPLB_VALIDATE_ALLOW_EMPTY},
    {.name = "ascend", .title = "vLLM-Ascend", .formats = {"ascend"}, .rows = EPLB_ROWS_MOE_LAYERS},
    {.name = "omni",
     .title = "omni-infer",
     .formats = {"omni"},
     .rows = EPLB_ROWS_MOE_LAYERS,
     .uneven_slots = true},
    {.name = "fastdeploy",
     .title = "FastDeploy",
     .formats = {"fastdeploy"},
     .rows = EPLB_ROWS_MOE_LAYERS},
};

#define FORMATS_OF_ENGINE (sizeof(engines[0].formats) / sizeof(engines[0].formats[0]))

const eplb_engine *eplb_engine_at(size_t index)
{
    return index < sizeof(engines) / sizeof(engines[0]) ? &engines[index] : NULL;
}

const eplb_engine *eplb_engine_find(const char *name)
{
    const eplb_engine *engine;
    for (size_t i = 0; name != NULL && (engine = eplb_engine_at(i)) != NULL; i++) {
        if (strcmp(engine->name, name) == 0) {
            return engine;
        }
    }
    return NULL;
}

const eplb_engine *eplb_engine_of_format(const eplb_format *format)
{
    const eplb_engine *engine;
    for (size_t i = 0; format != NULL && (engine = eplb_engine_at(i)) != NULL; i++) {
        for (size_t f = 0; f < FORMATS_OF_ENGINE && engine->formats[f] != NULL; f++) {
            if (strcmp(engine->formats[f], eplb_format_name(format)) == 0) {
                return engine;
            }
        }
    }
    return NULL;
}

const char *eplb_engine_name(const eplb_engine *engine)
{
    return engine->name;
}

const char *eplb_engine_title(const eplb_engine *engine)
{
    return engine->title;
}

const char *eplb_engine_format_name(const eplb_engine *engine)
{
    return engine->formats[0];
}
