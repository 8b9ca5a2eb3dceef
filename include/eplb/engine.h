/* SPDX-License-Identifier: MIT */
/*
 * What serving engines ask of a placement file, beyond what eplb_placement_validate asks of every
 * placement, and what they do with one that breaks a rule. This is part of libeplb-format.
 *
 * The rules are those of the engines' own start-up checks, and of what they rely on without a
 * check. What stands in the file and is no part of a placement, such as its keys, their types and
 * the order of its lists, is checked when the file is read.
 *
 * Threads: engines are constant; many threads may check one placement at once.
 */
#ifndef EPLB_ENGINE_H
#define EPLB_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/format.h>
#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

/* A serving engine. Static, never freed. */
typedef struct eplb_engine eplb_engine;

/* The engines in a fixed order; NULL past the end. */
EPLB_API const eplb_engine *eplb_engine_at(size_t index);

/* The engine called `name`, such as "sglang"; NULL when there is none. */
EPLB_API const eplb_engine *eplb_engine_find(const char *name);

/* The engine that loads placements of a format; NULL when none does. */
EPLB_API const eplb_engine *eplb_engine_of_format(const eplb_format *format);

EPLB_API const char *eplb_engine_name(const eplb_engine *engine);

/* As its makers write it, such as "TensorRT-LLM". */
EPLB_API const char *eplb_engine_title(const eplb_engine *engine);

/* The name of the format that it loads; where it loads several, of the first. */
EPLB_API const char *eplb_engine_format_name(const eplb_engine *engine);

/* What is wrong with a placement for an engine, beside the eplb_violation_kind values, which an
 * eplb_engine_violation has, too. */
typedef enum eplb_engine_violation_kind {
    EPLB_ENGINE_UNREADABLE = 100, /* the file is not of the form that its format has; of no
                                   * placement: for eplb_engine_explain only */
    EPLB_ENGINE_LAYER_COUNT,      /* actual, expected: rows of layers */
    EPLB_ENGINE_MISSING_LAYER,    /* layer_id: an MoE layer without a row */
    EPLB_ENGINE_OTHER_LAYER,      /* layer, layer_id: a row of a layer that has no experts */
    EPLB_ENGINE_EXPERT_LIMIT,     /* actual, expected: experts, and the most that it can have */
    EPLB_ENGINE_SLOT_LIMIT,       /* actual, expected: slots of a layer, and the most */
    EPLB_ENGINE_UNEVEN_SLOTS,     /* layer, gpu: it has `actual` slots, GPU 0 has `expected` */
} eplb_engine_violation_kind;

/* `layer`, `layer_id`, `gpu`, `slot` and `expert` are -1 where they do not apply, `actual` and
 * `expected` are 0. */
typedef struct eplb_engine_violation {
    int32_t kind;     /* an eplb_violation_kind or an eplb_engine_violation_kind */
    int32_t layer;    /* row of the placement */
    int32_t layer_id; /* its number */
    int32_t gpu;
    int32_t slot;
    int32_t expert;
    int32_t actual;
    int32_t expected;
} eplb_engine_violation;

/* What is known of the model that the placement is for. */
typedef struct eplb_engine_model {
    uint32_t struct_size; /* sizeof(eplb_engine_model), written by eplb_engine_model_init */

    int32_t layers;              /* all hidden layers, without those of a draft model; 0
                                  * (default): not known, and layers are not checked */
    int32_t dense_count;         /* of them that have no experts; default 0 */
    const int32_t *dense_layers; /* [dense_count] their numbers, ascending, below `layers` */
} eplb_engine_model;

/* Writes the defaults. */
EPLB_API void eplb_engine_model_init(eplb_engine_model *model);

/*
 * Calls `visit` for each violation of the engine's rules and of eplb_placement_check's, until it
 * returns non-zero or none is left: first what is wrong with the whole, then layer by layer. Empty
 * slots are no violation for an engine that knows them (vLLM). engine NULL: eplb_placement_check's
 * rules alone. model NULL: nothing is known of it. `count` (may be NULL) gets the number of
 * violations visited. EPLB_ERROR_ARGUMENT without a placement, or for a model whose numbers do not
 * fit each other. Cost: O(layers x (slots + experts + GPUs)).
 */
EPLB_API eplb_status eplb_engine_check(const eplb_engine *engine, const eplb_placement *placement,
                                       const eplb_engine_model *model,
                                       int (*visit)(void *context,
                                                    const eplb_engine_violation *violation),
                                       void *context, int64_t *count, eplb_error *error);

/* Writes a line such as "layer 3: expert 7 twice on GPU 2 (slot 21)" for a violation. `text` holds
 * `size` bytes; a longer line is cut. Returns `text`. */
EPLB_API char *eplb_engine_violation_text(const eplb_placement *placement,
                                          const eplb_engine_violation *violation, char *text,
                                          size_t size);

/* The name of a kind, such as "missing_expert"; NULL when there is no such kind. */
EPLB_API const char *eplb_engine_violation_name(int32_t kind);

/* What the engine does with a file that has a violation of this kind, in one or two sentences that
 * cite public trackers where they say it; NULL where it is not known. */
EPLB_API const char *eplb_engine_explain(const eplb_engine *engine, int32_t kind);

EPLB_END_DECLS

#endif
