/* SPDX-License-Identifier: MIT */
/* A placement as a file states it, before it is known whether it can be one. */
#ifndef EPLB_FORMAT_MAP_H
#define EPLB_FORMAT_MAP_H

#include <eplb/format.h>

typedef struct eplb_map {
    eplb_hooks hooks;
    const char *name; /* of the file, for messages */
    int32_t layers;
    int32_t slots;
    int32_t gpus;         /* 0: the file does not say */
    int32_t model_layers; /* 0: the file does not say */
    int32_t draft_layers; /* of the last layers: the draft model's */
    int32_t *layer_ids;   /* [layers]; they are 0..layers-1 unless the reader changes them */
    int32_t *experts;     /* [layers][slots] */
    int32_t width;        /* logical experts; 0: one more than the largest id */
    int32_t *gpu_slots;   /* [layers][gpus] slots that are not closed; NULL: each GPU has equally
                           * many */
    int32_t *most_slots;  /* [gpus] with gpu_slots: the slots of a GPU, the most of any layer */
} eplb_map;

/* Gives the map its shape and memory. EPLB_ERROR_LIMIT beyond the limits of the options. */
eplb_status eplb_map_shape(eplb_map *map, const eplb_read_options *options, size_t layers,
                           size_t slots, eplb_error *error);

int32_t *eplb_map_row(const eplb_map *map, int32_t layer);

/* Makes the placement that the map and the options state together. */
eplb_status eplb_map_finish(const eplb_map *map, const eplb_read_options *options,
                            eplb_placement **out, eplb_error *error);

void eplb_map_clear(eplb_map *map);

#endif
