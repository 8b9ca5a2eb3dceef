/* SPDX-License-Identifier: MIT */
/* What a window counts: the part of its options that its snapshots carry too. */
#ifndef EPLB_STATS_WINDOW_SHAPE_H
#define EPLB_STATS_WINDOW_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

typedef struct eplb_window_shape {
    int32_t layers;
    int32_t experts;
    int32_t rank;
    int32_t ranks;
    int32_t steps_per_bucket;
    int32_t model_layers;
    const int32_t *layer_ids; /* [layers] */
    const char *name;         /* or NULL */
} eplb_window_shape;

/* Copies a shape with what it points to; layer_ids NULL: ids equal the indices. Checks the ids. On
 * failure there is nothing to free. */
eplb_status eplb_window_shape_copy(eplb_window_shape *to, const eplb_hooks *hooks,
                                   const eplb_window_shape *from, eplb_error *error);

void eplb_window_shape_free(eplb_window_shape *shape, const eplb_hooks *hooks);

/* EPLB_ERROR_DATA with the first difference in layers, experts or layer ids; `what` begins the
 * message. */
eplb_status eplb_window_shape_match_layers(const char *what, const eplb_window_shape *a,
                                           const eplb_window_shape *b, eplb_error *error);

/* Words that tell the steps of one bucket: the number of its first step, then a bit for each step
 * that was counted. */
static inline size_t eplb_window_step_words(const eplb_window_shape *shape)
{
    return 1 + ((size_t)shape->steps_per_bucket + 63) / 64;
}

#endif
