/* SPDX-License-Identifier: MIT */
/* omni-infer's placement: 0 or 1 for each rank, layer and expert (see omni_cells.c). Layers may
 * have different numbers of slots, ranks too; the order of the slots of a rank is that of their
 * experts. Written as .npy of int32. */
#include <stdio.h>

#include "base/memory.h"
#include "format/format.h"
#include "format/npy_header.h"
#include "format/omni_cells.h"

static int32_t count_experts(const uint8_t *cells, int32_t experts)
{
    int32_t count = 0;
    for (int32_t e = 0; e < experts; e++) {
        count += cells[e];
    }
    return count;
}

static eplb_status count_slots(const eplb_omni_cells *grid, eplb_map *map, eplb_error *error)
{
    size_t ranks = (size_t)grid->ranks;
    size_t count = (size_t)grid->layers * ranks; /* not more than the cells */
    map->gpu_slots = eplb_alloc(&map->hooks, count, sizeof(*map->gpu_slots));
    map->most_slots = eplb_alloc_zeroed(&map->hooks, ranks, sizeof(*map->most_slots));
    if (map->gpu_slots == NULL || map->most_slots == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t r = 0; r < grid->ranks; r++) {
        for (int32_t l = 0; l < grid->layers; l++) {
            int32_t slots = count_experts(eplb_omni_row(grid, r, l), grid->experts);
            map->gpu_slots[(size_t)l * ranks + (size_t)r] = slots;
            map->most_slots[r] = slots > map->most_slots[r] ? slots : map->most_slots[r];
        }
    }
    return EPLB_OK;
}

/* Fills one layer: each rank's experts, and nothing in the slots that other layers have beyond. */
static void fill_row(const eplb_omni_cells *grid, int32_t layer, eplb_map *map)
{
    int32_t *row = eplb_map_row(map, layer);
    for (int32_t s = 0; s < map->slots; s++) {
        row[s] = -1;
    }
    for (int32_t r = 0; r < grid->ranks; r++) {
        const uint8_t *cells = eplb_omni_row(grid, r, layer);
        int32_t *slot = row;
        for (int32_t e = 0; e < grid->experts; e++) {
            if (cells[e] != 0) {
                *slot++ = e;
            }
        }
        row += map->most_slots[r];
    }
}

static eplb_status fill_map(const eplb_omni_cells *grid, const eplb_read_options *options,
                            eplb_map *map, eplb_error *error)
{
    map->gpus = grid->ranks;
    map->width = grid->experts;
    map->layers = grid->layers;
    eplb_status status = count_slots(grid, map, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t slots = 0;
    for (int32_t r = 0; r < grid->ranks; r++) {
        slots += (size_t)map->most_slots[r];
    }
    status = eplb_map_shape(map, options, (size_t)grid->layers, slots, error);
    for (int32_t l = 0; l < grid->layers && status == EPLB_OK; l++) {
        fill_row(grid, l, map);
    }
    return status;
}

static eplb_status read_placement(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    eplb_omni_cells grid;
    eplb_status status = eplb_omni_read_cells(reading, &grid, error);
    if (status == EPLB_OK) {
        status = fill_map(&grid, &reading->options, map, error);
    }
    eplb_omni_free_cells(&grid, &reading->hooks);
    return status;
}

static void add_header(eplb_text *text, const eplb_placement *placement)
{
    char dictionary[EPLB_NPY_DICTIONARY_SIZE];
    snprintf(dictionary, sizeof(dictionary),
             "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d, %d), }",
             eplb_cluster_gpus(eplb_placement_cluster(placement)), eplb_placement_layers(placement),
             eplb_placement_experts(placement));
    eplb_npy_add_header(text, dictionary);
}

static bool holds(const int32_t *slots, int32_t count, int32_t expert)
{
    for (int32_t s = 0; s < count; s++) {
        if (slots[s] == expert) {
            return true;
        }
    }
    return false;
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    (void)error;
    static const char cells[2][4] = {{0, 0, 0, 0}, {1, 0, 0, 0}};
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    add_header(text, placement);
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
            const int32_t *slots =
                eplb_placement_row(placement, l) + eplb_cluster_first_slot(cluster, g);
            int32_t count = eplb_placement_open_slots_on(placement, l, g);
            for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
                eplb_text_add_bytes(text, cells[holds(slots, count, e) ? 1 : 0], sizeof(cells[0]));
            }
        }
    }
    return EPLB_OK;
}

const eplb_format eplb_format_omni = {
    .name = "omni",
    .description = "omni-infer's placement: 0 or 1 for [ranks, layers, experts], .npy, .bin or "
                   ".txt; written as .npy",
    .engine = "omni-infer",
    .recognised = ".npy of 3 dimensions, or its .txt or .bin",
    .flags = EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT | EPLB_FORMAT_UNEVEN_SLOTS,
    .probe = eplb_omni_probe,
    .placement = {.read = read_placement, .write = write_placement},
};
