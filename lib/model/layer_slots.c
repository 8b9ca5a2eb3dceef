/* SPDX-License-Identifier: MIT */
/* Slots that a layer of a placement has, and those that it closes. */
#include <eplb/placement.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/placement.h"

/* Makes the numbers of all layers: until now they have all slots. */
static eplb_status count_open_slots(eplb_placement *placement, eplb_error *error)
{
    size_t gpus = (size_t)placement->cluster->gpus;
    size_t count;
    if (!eplb_size_mul((size_t)placement->layers, gpus, &count)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "placement: its size overflows");
    }
    placement->open = eplb_alloc(&placement->hooks, count, sizeof(*placement->open));
    if (placement->open == NULL) {
        return eplb_out_of_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        placement->open[i] = placement->cluster->gpu[i % gpus].slots;
    }
    return EPLB_OK;
}

static eplb_status check_slots(const eplb_placement *placement, int32_t layer,
                               const int32_t *gpu_slots, eplb_error *error)
{
    for (int32_t g = 0; gpu_slots != NULL && g < placement->cluster->gpus; g++) {
        if (gpu_slots[g] < 0 || gpu_slots[g] > placement->cluster->gpu[g].slots) {
            return eplb_error_set(
                error, EPLB_ERROR_ARGUMENT, "layer %d: %d slots on GPU %d, which has %d",
                placement->layer_ids.ids[layer], gpu_slots[g], g, placement->cluster->gpu[g].slots);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_placement_set_layer_slots(eplb_placement *placement, int32_t layer,
                                           const int32_t *gpu_slots, eplb_error *error)
{
    eplb_status status =
        eplb_check_range("placement", "layer", layer, 0, placement->layers - 1, error);
    if (status == EPLB_OK) {
        status = check_slots(placement, layer, gpu_slots, error);
    }
    if (status == EPLB_OK && gpu_slots != NULL && placement->open == NULL) {
        status = count_open_slots(placement, error);
    }
    if (status != EPLB_OK || placement->open == NULL) {
        return status;
    }
    int32_t gpus = placement->cluster->gpus;
    int32_t *open = placement->open + (size_t)layer * (size_t)gpus;
    for (int32_t g = 0; g < gpus; g++) {
        open[g] = gpu_slots != NULL ? gpu_slots[g] : placement->cluster->gpu[g].slots;
    }
    return EPLB_OK;
}

const int32_t *eplb_placement_layer_slots(const eplb_placement *placement, int32_t layer)
{
    bool exists = placement->open != NULL && layer >= 0 && layer < placement->layers;
    return exists ? placement->open + (size_t)layer * (size_t)placement->cluster->gpus : NULL;
}

int32_t eplb_placement_open_slots_on(const eplb_placement *placement, int32_t layer, int32_t gpu)
{
    bool exists =
        layer >= 0 && layer < placement->layers && gpu >= 0 && gpu < placement->cluster->gpus;
    return exists ? eplb_placement_open_end(placement, layer, gpu) -
                        placement->cluster->first_slot[gpu]
                  : 0;
}

int32_t eplb_placement_open_slots(const eplb_placement *placement, int32_t layer)
{
    int32_t slots = 0;
    for (int32_t g = 0; g < placement->cluster->gpus; g++) {
        slots += eplb_placement_open_slots_on(placement, layer, g);
    }
    return slots;
}
