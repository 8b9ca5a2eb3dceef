/* SPDX-License-Identifier: MIT */
#include "ilp/fewest_part.h"

#include <string.h>

#include "base/memory.h"

eplb_status eplb_fewest_state_init(eplb_fewest_state *state, const eplb_fewest_layer *layer,
                                   eplb_error *error)
{
    *state = (eplb_fewest_state){.layer = layer};
    size_t gpus = (size_t)layer->gpus;
    size_t experts = (size_t)layer->experts;
    size_t loads;
    if (!eplb_size_mul(gpus, (size_t)layer->scenarios, &loads)) {
        return eplb_out_of_memory(error);
    }
    const eplb_array arrays[] = {
        EPLB_ARRAY(state->chosen, (size_t)layer->slots), EPLB_ARRAY(state->count, experts),
        EPLB_ARRAY(state->load, loads),
        EPLB_ARRAY(state->holds, gpus * experts), /* as many as layer->home */
    };
    return eplb_alloc_arrays(&layer->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_fewest_state_free(eplb_fewest_state *state)
{
    const eplb_hooks *hooks = &state->layer->hooks;
    eplb_free(hooks, state->chosen);
    eplb_free(hooks, state->count);
    eplb_free(hooks, state->load);
    eplb_free(hooks, state->holds);
}

static double load_of(const eplb_fewest_state *state, int32_t gpu, int32_t scenario)
{
    const eplb_fewest_layer *layer = state->layer;
    const double *load = layer->load + (size_t)scenario * (size_t)layer->experts;
    double sum = 0.0;
    for (int32_t s = layer->first[gpu]; s < layer->first[gpu + 1]; s++) {
        sum += load[state->chosen[s]] / (double)state->count[state->chosen[s]];
    }
    return sum;
}

void eplb_fewest_state_index(eplb_fewest_state *state)
{
    const eplb_fewest_layer *layer = state->layer;
    size_t experts = (size_t)layer->experts;
    memset(state->count, 0, experts * sizeof(*state->count));
    memset(state->holds, 0, (size_t)layer->gpus * experts);
    for (int32_t g = 0; g < layer->gpus; g++) {
        for (int32_t s = layer->first[g]; s < layer->first[g + 1]; s++) {
            state->count[state->chosen[s]]++;
            state->holds[(size_t)g * experts + (size_t)state->chosen[s]] = 1;
        }
    }
    for (int32_t g = 0; g < layer->gpus; g++) {
        for (int32_t k = 0; k < layer->scenarios; k++) {
            state->load[(size_t)g * (size_t)layer->scenarios + (size_t)k] = load_of(state, g, k);
        }
    }
}

int32_t eplb_fewest_copies_on(const eplb_fewest_state *state, int32_t gpu)
{
    int32_t copies = 0;
    for (int32_t s = state->layer->first[gpu]; s < state->layer->first[gpu + 1]; s++) {
        copies += eplb_fewest_is_home(state->layer, gpu, state->chosen[s]) ? 0 : 1;
    }
    return copies;
}
