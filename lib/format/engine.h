/* SPDX-License-Identifier: MIT */
/* What the library knows of an engine. A new one is a line in the table of engine.c, and what it
 * does with broken files in engine_explain.c. */
#ifndef EPLB_FORMAT_ENGINE_H
#define EPLB_FORMAT_ENGINE_H

#include <stdbool.h>

#include <eplb/engine.h>

/* TensorRT-LLM's own limits; slot ids have 16 bits. */
#define EPLB_TRTLLM_MAX_EXPERTS 1024
#define EPLB_TRTLLM_MAX_SLOTS 65536

/* How rows and layers of the model belong together. */
typedef enum eplb_engine_rows {
    EPLB_ROWS_ALL_LAYERS, /* one for each hidden layer, dense ones too */
    EPLB_ROWS_BY_ID,      /* one for each MoE layer, with the layer's number */
    EPLB_ROWS_MOE_LAYERS, /* one for each MoE layer, in order */
    EPLB_ROWS_OR_ONE,     /* the same, or one for all MoE layers */
} eplb_engine_rows;

struct eplb_engine {
    const char *name;
    const char *title;
    const char *formats[2]; /* names; the second may be NULL */
    eplb_engine_rows rows;
    uint32_t flags;      /* EPLB_VALIDATE_... */
    int32_t max_experts; /* 0: no limit */
    int32_t max_slots;   /* 0: no limit */
    bool uneven_slots;   /* GPUs and layers may have different numbers of slots */
};

#endif
