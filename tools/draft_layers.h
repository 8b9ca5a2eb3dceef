/* SPDX-License-Identifier: MIT */
/* Layers of the draft model of speculative decoding, which are the last ones of loads and maps. */
#ifndef EPLB_TOOLS_DRAFT_LAYERS_H
#define EPLB_TOOLS_DRAFT_LAYERS_H

#include <stddef.h>

#include <eplb/placement.h>

/* How many a placement file has; -1: there is none (path NULL), its format cannot say it, or the
 * file cannot be read twice, or not at all, which is for who reads it next to tell. */
int32_t draft_layers_of(const char *path);

/* EPLB_ERROR_DATA when the last `count` of ascending layer ids cannot be the draft model's: there
 * is no other layer, or the last one of the model (model_layers > 0: known) is not among them. */
eplb_status check_draft_layers(int32_t count, const int32_t *ids, int32_t layers,
                               int32_t model_layers, const char *path, eplb_error *error);

/* " (1 of the draft model)", or "". Returns `text`. */
char *draft_layers_text(int32_t count, char *text, size_t size);

#endif
