/* SPDX-License-Identifier: MIT */
#include <eplb/placement.h>

#include <stdio.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"

typedef struct checker {
    const eplb_placement *placement;
    uint32_t flags;
    int (*visit)(void *context, const eplb_violation *violation);
    void *context;
    int64_t count;
    int stopped;
    int32_t *last_gpu; /* [experts]: the last GPU of this layer that held the expert, or -1 */
} checker;

static void report(checker *check, eplb_violation_kind kind, int32_t layer, int32_t gpu,
                   int32_t slot, int32_t expert)
{
    eplb_violation violation = {
        .kind = (int32_t)kind, .layer = layer, .gpu = gpu, .slot = slot, .expert = expert};
    check->count++;
    check->stopped = check->visit != NULL && check->visit(check->context, &violation) != 0;
}

static void check_slot(checker *check, int32_t layer, int32_t gpu, int32_t slot)
{
    int32_t expert = eplb_placement_row(check->placement, layer)[slot];
    if (!check->placement->cluster->gpu[gpu].alive) {
        if (expert >= 0) {
            report(check, EPLB_VIOLATION_DEAD_GPU, layer, gpu, slot, expert);
        }
        return;
    }
    if (slot >= eplb_placement_open_end(check->placement, layer, gpu)) {
        if (expert >= 0) {
            report(check, EPLB_VIOLATION_CLOSED_SLOT, layer, gpu, slot, expert);
        }
        return;
    }
    if (expert < 0) {
        if ((check->flags & EPLB_VALIDATE_ALLOW_EMPTY) == 0) {
            report(check, EPLB_VIOLATION_EMPTY_SLOT, layer, gpu, slot, -1);
        }
        return;
    }
    if (check->last_gpu[expert] == gpu && (check->flags & EPLB_VALIDATE_ALLOW_DUPLICATES) == 0) {
        report(check, EPLB_VIOLATION_DUPLICATE, layer, gpu, slot, expert);
    }
    check->last_gpu[expert] = gpu;
}

static void check_layer(checker *check, int32_t layer)
{
    const eplb_cluster *cluster = check->placement->cluster;
    for (int32_t e = 0; e < check->placement->experts; e++) {
        check->last_gpu[e] = -1;
    }
    for (int32_t g = 0; g < cluster->gpus; g++) {
        int32_t end = cluster->first_slot[g + 1];
        for (int32_t s = cluster->first_slot[g]; s < end && !check->stopped; s++) {
            check_slot(check, layer, g, s);
        }
    }
    for (int32_t e = 0; e < check->placement->experts && !check->stopped; e++) {
        if (check->last_gpu[e] < 0) {
            report(check, EPLB_VIOLATION_MISSING_EXPERT, layer, -1, -1, e);
        }
    }
}

eplb_status eplb_placement_check(const eplb_placement *placement, uint32_t flags,
                                 int (*visit)(void *context, const eplb_violation *violation),
                                 void *context, int64_t *count, eplb_error *error)
{
    if (placement == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "check: no placement");
    }
    checker check = {.placement = placement, .flags = flags, .visit = visit, .context = context};
    check.last_gpu =
        eplb_alloc(&placement->hooks, (size_t)placement->experts, sizeof(*check.last_gpu));
    if (check.last_gpu == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t l = 0; l < placement->layers && !check.stopped; l++) {
        check_layer(&check, l);
    }
    eplb_free(&placement->hooks, check.last_gpu);
    if (count != NULL) {
        *count = check.count;
    }
    return EPLB_OK;
}

char *eplb_violation_text(const eplb_placement *placement, const eplb_violation *violation,
                          char *text, size_t size)
{
    bool known = violation->layer >= 0 && violation->layer < placement->layers;
    int layer = known ? placement->layer_ids.ids[violation->layer] : violation->layer;
    snprintf(text, size, "layer %d: unknown violation %d", layer, violation->kind);
    switch ((eplb_violation_kind)violation->kind) {
    case EPLB_VIOLATION_MISSING_EXPERT:
        snprintf(text, size, "layer %d: expert %d has no replica", layer, violation->expert);
        break;
    case EPLB_VIOLATION_DUPLICATE:
        snprintf(text, size, "layer %d: expert %d twice on GPU %d (slot %d)", layer,
                 violation->expert, violation->gpu, violation->slot);
        break;
    case EPLB_VIOLATION_EMPTY_SLOT:
        snprintf(text, size, "layer %d: slot %d of GPU %d is empty", layer, violation->slot,
                 violation->gpu);
        break;
    case EPLB_VIOLATION_DEAD_GPU:
        snprintf(text, size, "layer %d: expert %d on dead GPU %d (slot %d)", layer,
                 violation->expert, violation->gpu, violation->slot);
        break;
    case EPLB_VIOLATION_CLOSED_SLOT:
        snprintf(text, size, "layer %d: expert %d in slot %d of GPU %d, which the layer closes",
                 layer, violation->expert, violation->slot, violation->gpu);
        break;
    }
    return text;
}

static int keep_first(void *context, const eplb_violation *violation)
{
    *(eplb_violation *)context = *violation;
    return 1;
}

eplb_status eplb_placement_validate(const eplb_placement *placement, uint32_t flags,
                                    eplb_error *error)
{
    eplb_violation first;
    int64_t count = 0;
    eplb_status status = eplb_placement_check(placement, flags, keep_first, &first, &count, error);
    if (status != EPLB_OK || count == 0) {
        return status;
    }
    char text[128];
    return eplb_error_set(error, EPLB_ERROR_DATA, "%s",
                          eplb_violation_text(placement, &first, text, sizeof(text)));
}

/* Number of experts that `to` has on a GPU and `from` has not. `stamp` [experts] holds no value of
 * this call's GPUs yet. */
static int64_t copies_to_gpu(const eplb_placement *from, const eplb_placement *to, int32_t layer,
                             int32_t gpu, int32_t *stamp)
{
    const int32_t *old_row = eplb_placement_row(from, layer);
    const int32_t *new_row = eplb_placement_row(to, layer);
    for (int32_t s = from->cluster->first_slot[gpu]; s < from->cluster->first_slot[gpu + 1]; s++) {
        if (old_row[s] >= 0) {
            stamp[old_row[s]] = gpu;
        }
    }
    int64_t copies = 0;
    for (int32_t s = to->cluster->first_slot[gpu]; s < to->cluster->first_slot[gpu + 1]; s++) {
        int32_t expert = new_row[s];
        if (expert >= 0 && stamp[expert] != gpu) {
            stamp[expert] = gpu; /* a second replica on the GPU is copied from the first */
            copies++;
        }
    }
    return copies;
}

eplb_status eplb_placement_copies(const eplb_placement *from, const eplb_placement *to,
                                  int32_t layer, int64_t *copies, eplb_error *error)
{
    if (from == NULL || to == NULL || copies == NULL || layer < 0 || layer >= from->layers ||
        layer >= to->layers) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "copies: no placement, no output or no layer %d", layer);
    }
    if (from->experts != to->experts || from->cluster->gpus != to->cluster->gpus) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "copies: %d experts on %d GPUs against %d experts on %d GPUs",
                              from->experts, from->cluster->gpus, to->experts, to->cluster->gpus);
    }
    int32_t *stamp = eplb_alloc(&to->hooks, (size_t)to->experts, sizeof(*stamp));
    if (stamp == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t e = 0; e < to->experts; e++) {
        stamp[e] = -1;
    }
    *copies = 0;
    for (int32_t g = 0; g < to->cluster->gpus; g++) {
        *copies += copies_to_gpu(from, to, layer, g, stamp);
    }
    eplb_free(&to->hooks, stamp);
    return EPLB_OK;
}
