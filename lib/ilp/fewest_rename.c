/* SPDX-License-Identifier: MIT */
/* Which GPU gets what another one has in a plan, so that most of it is there already. */
#include "ilp/fewest.h"

#include <string.h>

#include "base/memory.h"
#include "model/assignment.h"

/* Beyond this many GPUs the assignment would take longer than the search. */
#define MOST_GPUS 1024
/* More than any true sum of costs. */
#define NEVER ((int64_t)1 << 32)

static int32_t slots_of(const eplb_fewest_layer *layer, int32_t gpu)
{
    return layer->first[gpu + 1] - layer->first[gpu];
}

/* Copies that GPU `to` needs for what `from` has. */
static int64_t cost_of(const eplb_fewest_layer *layer, const int32_t *chosen, int32_t from,
                       int32_t to)
{
    if (slots_of(layer, from) != slots_of(layer, to)) {
        return NEVER;
    }
    int64_t copies = 0;
    for (int32_t s = layer->first[from]; s < layer->first[from + 1]; s++) {
        copies += eplb_fewest_is_home(layer, to, chosen[s]) ? 0 : 1;
    }
    return copies;
}

static void move(const eplb_fewest_layer *layer, const int32_t *to, int32_t *chosen, int32_t *old)
{
    memcpy(old, chosen, (size_t)layer->slots * sizeof(*chosen));
    for (int32_t g = 0; g < layer->gpus; g++) {
        memcpy(chosen + layer->first[to[g]], old + layer->first[g],
               (size_t)slots_of(layer, g) * sizeof(*chosen));
    }
}

eplb_status eplb_fewest_rename(const eplb_fewest_layer *layer, int32_t *chosen, eplb_error *error)
{
    if (layer->gpus > MOST_GPUS) {
        return EPLB_OK;
    }
    size_t gpus = (size_t)layer->gpus;
    int64_t *cost = eplb_alloc(&layer->hooks, gpus * gpus, sizeof(*cost));
    int32_t *to = eplb_alloc(&layer->hooks, gpus, sizeof(*to));
    int32_t *old = eplb_alloc(&layer->hooks, (size_t)layer->slots, sizeof(*old));
    eplb_status status = EPLB_OK;
    if (cost == NULL || to == NULL || old == NULL) {
        status = eplb_out_of_memory(error);
    } else {
        for (int32_t g = 0; g < layer->gpus; g++) {
            for (int32_t h = 0; h < layer->gpus; h++) {
                cost[(size_t)g * gpus + (size_t)h] = cost_of(layer, chosen, g, h);
            }
        }
        status = eplb_assign(&layer->hooks, layer->gpus, cost, to, error);
    }
    if (status == EPLB_OK) {
        move(layer, to, chosen, old);
    }
    eplb_free(&layer->hooks, cost);
    eplb_free(&layer->hooks, to);
    eplb_free(&layer->hooks, old);
    return status;
}
