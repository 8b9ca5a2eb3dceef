/* SPDX-License-Identifier: MIT */
/* What a placement is worth, and the best so far. */
#include "ilp/fewest.h"

#include <string.h>

/* stop() is asked every so many nodes. */
#define NODES_PER_ASK 4096

int64_t eplb_fewest_count_copies(const eplb_fewest_layer *layer, const int32_t *chosen)
{
    int64_t copies = 0;
    for (int32_t g = 0; g < layer->gpus; g++) {
        for (int32_t s = layer->first[g]; s < layer->first[g + 1]; s++) {
            copies += eplb_fewest_is_home(layer, g, chosen[s]) ? 0 : 1;
        }
    }
    return copies;
}

int64_t eplb_fewest_least_copies(const eplb_fewest_layer *layer)
{
    int64_t unfilled = 0;
    int64_t homeless = layer->experts;
    memset(layer->counts, 0, (size_t)layer->experts * sizeof(*layer->counts));
    for (int32_t g = 0; g < layer->gpus; g++) {
        int32_t held = 0;
        for (int32_t e = 0; e < layer->experts; e++) {
            if (eplb_fewest_is_home(layer, g, e)) {
                held++;
                homeless -= layer->counts[e]++ == 0 ? 1 : 0;
            }
        }
        int32_t slots = layer->first[g + 1] - layer->first[g];
        unfilled += slots > held ? slots - held : 0;
    }
    return unfilled > homeless ? unfilled : homeless;
}

/* The slots of GPU g in the row. Experts that the current placement has in the same slot stay
 * there; layer->counts marks those that are still to be put somewhere. */
static void write_gpu(eplb_fewest_layer *layer, int32_t g, const int32_t *chosen)
{
    const eplb_fewest_task *task = layer->task;
    const eplb_cluster *from = eplb_placement_cluster(task->current);
    int32_t gpu = layer->cluster_gpu[g];
    int32_t slots = layer->first[g + 1] - layer->first[g];
    int32_t old_slots = eplb_cluster_gpu_slots(from, gpu);
    const int32_t *old =
        eplb_placement_row(task->current, task->current_row) + eplb_cluster_first_slot(from, gpu);
    int32_t *now = layer->row_slots + eplb_cluster_first_slot(task->cluster, gpu);
    for (int32_t s = layer->first[g]; s < layer->first[g + 1]; s++) {
        layer->counts[chosen[s]] = 1;
    }
    for (int32_t i = 0; i < slots; i++) {
        bool stays = i < old_slots && old[i] >= 0 && layer->counts[old[i]] != 0;
        now[i] = stays ? old[i] : -1;
        if (stays) {
            layer->counts[old[i]] = 0;
        }
    }
    int32_t i = 0;
    for (int32_t s = layer->first[g]; s < layer->first[g + 1]; s++) {
        if (layer->counts[chosen[s]] != 0) {
            while (now[i] >= 0) {
                i++;
            }
            now[i] = chosen[s];
            layer->counts[chosen[s]] = 0;
        }
    }
}

eplb_status eplb_fewest_write(eplb_fewest_layer *layer, const int32_t *chosen, eplb_error *error)
{
    for (int32_t s = 0; s < eplb_placement_slots(layer->row); s++) {
        layer->row_slots[s] = -1;
    }
    memset(layer->counts, 0, (size_t)layer->experts * sizeof(*layer->counts));
    for (int32_t g = 0; g < layer->gpus; g++) {
        write_gpu(layer, g, chosen);
    }
    return eplb_placement_set_row(layer->row, 0, layer->row_slots, error);
}

void eplb_fewest_choose_row(const eplb_fewest_layer *layer, const int32_t *row, int32_t *chosen)
{
    for (int32_t g = 0; g < layer->gpus; g++) {
        int32_t slot = eplb_cluster_first_slot(layer->task->cluster, layer->cluster_gpu[g]);
        for (int32_t s = layer->first[g]; s < layer->first[g + 1]; s++) {
            chosen[s] = row[slot++];
        }
    }
}

/* Within the limit only copies count, else the objective comes first. */
static bool is_better(const eplb_fewest_layer *layer, double value, int64_t copies)
{
    if (!layer->has_best) {
        return true;
    }
    bool reaches = value <= layer->limit;
    if (reaches != eplb_fewest_reached(layer)) {
        return reaches;
    }
    if (reaches && copies != layer->best_copies) {
        return copies < layer->best_copies;
    }
    return value < layer->best_value ||
           (!(value > layer->best_value) && copies < layer->best_copies);
}

eplb_status eplb_fewest_offer(eplb_fewest_layer *layer, const int32_t *chosen, double *value,
                              eplb_error *error)
{
    double measured;
    eplb_status status = eplb_fewest_write(layer, chosen, error);
    if (status == EPLB_OK) {
        status = eplb_placement_objective(layer->row, 0, layer->own_load, 0,
                                          (eplb_objective)layer->task->objective, &measured, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int64_t copies = eplb_fewest_count_copies(layer, chosen);
    if (is_better(layer, measured, copies)) {
        memmove(layer->best, chosen, (size_t)layer->slots * sizeof(*chosen));
        layer->has_best = true;
        layer->best_value = measured;
        layer->best_copies = copies;
    }
    if (value != NULL) {
        *value = measured;
    }
    return EPLB_OK;
}

bool eplb_fewest_spend(eplb_fewest_layer *layer, int64_t nodes)
{
    if (layer->cancelled || (layer->most_nodes >= 0 && layer->nodes >= layer->most_nodes)) {
        return false;
    }
    int64_t left = layer->most_nodes < 0 ? nodes : layer->most_nodes - layer->nodes;
    layer->nodes += nodes < left ? nodes : left;
    const eplb_fewest_task *task = layer->task;
    if (task->stop != NULL && layer->nodes >= layer->next_ask) {
        layer->next_ask = layer->nodes + NODES_PER_ASK;
        layer->cancelled = task->stop(task->stop_context) != 0;
    }
    return !layer->cancelled;
}
