/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "format/engine.h"

static const char *const invariant_names[] = {
    [EPLB_VIOLATION_MISSING_EXPERT] = "missing_expert", [EPLB_VIOLATION_DUPLICATE] = "duplicate",
    [EPLB_VIOLATION_EMPTY_SLOT] = "empty_slot",         [EPLB_VIOLATION_DEAD_GPU] = "dead_gpu",
    [EPLB_VIOLATION_CLOSED_SLOT] = "closed_slot",
};

#define INVARIANTS ((int32_t)(sizeof(invariant_names) / sizeof(invariant_names[0])))

static const char *const rule_names[] = {
    "unreadable",   "layer_count", "missing_layer", "other_layer",
    "expert_limit", "slot_limit",  "uneven_slots",
};

#define RULES ((int32_t)(sizeof(rule_names) / sizeof(rule_names[0])))

const char *eplb_engine_violation_name(int32_t kind)
{
    if (kind >= EPLB_ENGINE_UNREADABLE) {
        int32_t rule = kind - EPLB_ENGINE_UNREADABLE;
        return rule < RULES ? rule_names[rule] : NULL;
    }
    return kind >= 0 && kind < INVARIANTS ? invariant_names[kind] : NULL;
}

static const char *plural(int32_t number)
{
    return number == 1 ? "" : "s";
}

/* The violations that eplb_placement_check finds, and kinds that are not known. */
static char *invariant_text(const eplb_placement *placement, const eplb_engine_violation *violation,
                            char *text, size_t size)
{
    eplb_violation invariant = {.kind = violation->kind,
                                .layer = violation->layer,
                                .gpu = violation->gpu,
                                .slot = violation->slot,
                                .expert = violation->expert};
    return eplb_violation_text(placement, &invariant, text, size);
}

char *eplb_engine_violation_text(const eplb_placement *placement,
                                 const eplb_engine_violation *violation, char *text, size_t size)
{
    int actual = violation->actual;
    int expected = violation->expected;
    switch (violation->kind) {
    case EPLB_ENGINE_LAYER_COUNT:
        snprintf(text, size, "%d layer%s, expected %d", actual, plural(actual), expected);
        return text;
    case EPLB_ENGINE_MISSING_LAYER:
        snprintf(text, size, "layer %d: no row for this MoE layer", violation->layer_id);
        return text;
    case EPLB_ENGINE_OTHER_LAYER:
        snprintf(text, size, "layer %d: a row, but the model has no experts there",
                 violation->layer_id);
        return text;
    case EPLB_ENGINE_EXPERT_LIMIT:
        snprintf(text, size, "%d experts, at most %d are possible", actual, expected);
        return text;
    case EPLB_ENGINE_SLOT_LIMIT:
        snprintf(text, size, "%d slots, at most %d are possible", actual, expected);
        return text;
    case EPLB_ENGINE_UNEVEN_SLOTS:
        snprintf(text, size, "layer %d: %d slot%s on GPU %d, %d on GPU 0", violation->layer_id,
                 actual, plural(actual), violation->gpu, expected);
        return text;
    default:
        return invariant_text(placement, violation, text, size);
    }
}
