/* SPDX-License-Identifier: MIT */
/* From the current placement to one in the limit: the GPU that is most above it and some of the
 * lightest share what they have, with as few copies as they can, until none is above. */
#include "ilp/fewest_part.h"

/* Other groups of light GPUs are tried so often. */
#define ATTEMPTS 4

/* The current placement in the cluster's shape, mended where it is not valid. */
static eplb_status start(eplb_fewest_layer *layer, eplb_fewest_state *state, eplb_error *error)
{
    const eplb_fewest_task *task = layer->task;
    const eplb_cluster *from = eplb_placement_cluster(task->current);
    const int32_t *old = eplb_placement_row(task->current, task->current_row);
    for (int32_t g = 0; g < eplb_cluster_gpus(task->cluster); g++) {
        int32_t slots = eplb_cluster_gpu_slots(task->cluster, g);
        int32_t old_slots = eplb_cluster_gpu_slots(from, g);
        int32_t slot = eplb_cluster_first_slot(task->cluster, g);
        int32_t old_slot = eplb_cluster_first_slot(from, g);
        for (int32_t i = 0; i < slots; i++) {
            layer->row_slots[slot + i] = i < old_slots ? old[old_slot + i] : -1;
        }
    }
    eplb_status status = eplb_placement_set_row(layer->row, 0, layer->row_slots, error);
    if (status == EPLB_OK) {
        status = eplb_placement_repair(layer->row, layer->own_load, NULL, error);
    }
    if (status == EPLB_OK) {
        eplb_fewest_choose_row(layer, eplb_placement_row(layer->row, 0), state->chosen);
        eplb_fewest_state_index(state);
    }
    return status;
}

/* How far a GPU is above the limit, in any scenario; below 0 when it is in it. */
static double excess_of(const eplb_fewest_state *state, int32_t gpu)
{
    double most = -state->layer->limit;
    for (int32_t k = 0; k < state->layer->scenarios; k++) {
        double excess = eplb_fewest_load(state, gpu, k) - state->layer->limit;
        most = excess > most ? excess : most;
    }
    return most;
}

static double excess_of_all(const eplb_fewest_state *state)
{
    double sum = 0.0;
    for (int32_t g = 0; g < state->layer->gpus; g++) {
        double excess = excess_of(state, g);
        sum += excess > 0.0 ? excess : 0.0;
    }
    return sum;
}

/* The GPU that is most above the limit; -1 when none is. */
static int32_t most_loaded(const eplb_fewest_state *state)
{
    int32_t most = -1;
    double excess = 0.0;
    for (int32_t g = 0; g < state->layer->gpus; g++) {
        double own = excess_of(state, g);
        if (own > excess) {
            most = g;
            excess = own;
        }
    }
    return most;
}

/* Adds the lightest GPUs that the part does not have, but for the first `skipped` ones. */
static void add_lightest(eplb_fewest_part *part, int32_t gpus, int32_t skipped)
{
    const eplb_fewest_state *state = part->state;
    int32_t own = part->gpu[0];
    double last = -state->layer->limit - 1.0;
    int32_t last_gpu = -1;
    for (int32_t n = 0; part->gpus < gpus && n < state->layer->gpus - 1; n++) {
        int32_t next = -1;
        double lightest = 0.0;
        for (int32_t g = 0; g < state->layer->gpus; g++) {
            double excess = excess_of(state, g);
            bool is_later = excess > last || (excess >= last && g > last_gpu);
            if (g != own && is_later && (next < 0 || excess < lightest)) {
                next = g;
                lightest = excess;
            }
        }
        last = lightest;
        last_gpu = next;
        if (n >= skipped) {
            part->gpu[part->gpus++] = next;
        }
    }
}

/* FOUND: the most loaded GPU is better off, and no other one is above the limit for it. */
static eplb_fewest_end relieve(eplb_fewest_part *part, eplb_fewest_layer *layer, int32_t gpu,
                               int64_t memory_bytes, eplb_error *error)
{
    eplb_fewest_state *state = part->state;
    int32_t gpus = eplb_fewest_part_gpus(layer);
    double before = excess_of_all(state);
    for (int32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        part->gpus = 1;
        part->gpu[0] = gpu;
        add_lightest(part, gpus, attempt * (gpus - 1));
        if (part->gpus < 2) {
            break;
        }
        eplb_fewest_part_choose_counts(part);
        layer->failure = eplb_fewest_part_build(part, layer->slots, error);
        if (layer->failure != EPLB_OK) {
            return EPLB_FEWEST_FAILED;
        }
        eplb_fewest_end end = eplb_fewest_part_solve(part, layer, memory_bytes, error);
        if (end != EPLB_FEWEST_NOTHING) {
            return end == EPLB_FEWEST_FOUND && !(excess_of_all(state) < before)
                       ? EPLB_FEWEST_NOTHING
                       : end;
        }
    }
    return EPLB_FEWEST_NOTHING;
}

static eplb_status construct(eplb_fewest_layer *layer, eplb_fewest_state *state,
                             int64_t memory_bytes, eplb_error *error)
{
    eplb_status status = start(layer, state, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_fewest_part part;
    status = eplb_fewest_part_init(&part, state, error);
    part.each_scenario = true;
    eplb_fewest_end end = EPLB_FEWEST_FOUND;
    int32_t gpu = most_loaded(state);
    while (status == EPLB_OK && end == EPLB_FEWEST_FOUND && gpu >= 0) {
        end = relieve(&part, layer, gpu, memory_bytes, error);
        status = end == EPLB_FEWEST_FAILED ? layer->failure : EPLB_OK;
        gpu = most_loaded(state);
    }
    eplb_fewest_part_free(&part);
    return status == EPLB_OK ? eplb_fewest_offer(layer, state->chosen, NULL, error) : status;
}

eplb_status eplb_fewest_construct(eplb_fewest_layer *layer, int64_t memory_bytes, eplb_error *error)
{
    if (eplb_fewest_part_gpus(layer) < 2) {
        return EPLB_OK;
    }
    eplb_fewest_state state;
    eplb_status status = eplb_fewest_state_init(&state, layer, error);
    if (status == EPLB_OK) {
        status = construct(layer, &state, memory_bytes, error);
    }
    eplb_fewest_state_free(&state);
    return status;
}
