/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_DENSE_LAYERS_H
#define EPLB_TOOLS_DENSE_LAYERS_H

#include <eplb/format.h>
#include <eplb/load.h>

#include "options.h"

/* Whether a layer is in the list. */
bool is_dense_layer(const id_list *dense, int32_t id);

/* The largest listed id; -1 for an empty list. */
int32_t last_dense_layer(const id_list *dense);

/* Writes the `count` smallest layer ids that are not listed. */
void fill_moe_layer_ids(int32_t *ids, int32_t count, const id_list *dense);

/*
 * Applies --dense-layers: the list says which model layers are dense, so that the load's layers get
 * the right model layer ids. What it means depends on what the files say:
 * - they list all model layers: the list replaces the choice that was made when they were read, and
 *   a layer without tokens that is not listed is an MoE layer that nothing was routed to;
 * - their ids contain no listed layer: they are model layer ids already;
 * - the listed layers are there and have no tokens: they are left out;
 * - they are numbered from 0 without gaps and the listed layers have tokens: the numbers are MoE
 *   indices and get the ids that skip the listed layers.
 * Anything else is EPLB_ERROR_DATA. *load is replaced where needed.
 */
eplb_status apply_dense_layers(eplb_load **load, const id_list *dense, const eplb_hooks *hooks,
                               eplb_error *error);

/* Whether a format would make something else of a MoE layer that is missing: without numbers of
 * layers those behind it would get wrong ones, and with all layers it would be dense. */
bool needs_every_layer(const eplb_format *format);

/*
 * EPLB_ERROR_DATA when a load lacks a MoE layer between its others, or, where the list of dense
 * layers is known (items not NULL), at all, for `format`, which needs every one. Layers that files
 * of all model layers have without tokens are dense. The message begins with `whose`, such as "the
 * loads have".
 */
eplb_status check_every_layer(const eplb_load *load, const id_list *dense, const char *whose,
                              const eplb_format *format, eplb_error *error);

#endif
