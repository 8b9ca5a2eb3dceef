/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_CURRENT_H
#define EPLB_TOOLS_CURRENT_H

#include <stdbool.h>

#include <eplb/format.h>

/*
 * Reads the placement in force from the file at `path` and brings it into the layers of the load:
 * one row for each, with its ids. Where the load numbers its layers by MoE index and the file knows
 * their model layer ids, the load gets these. EPLB_ERROR_DATA when the layers cannot be matched or
 * the placement is not valid. `format` (may be NULL) gets that of the file.
 */
eplb_status read_current(eplb_placement **out, const char *path, eplb_load *load,
                         const eplb_read_options *options, const eplb_hooks *hooks,
                         const eplb_format **format, eplb_error *error);

/* Whether ascending layer ids are 0..layers-1: they may be those of MoE layers only. */
bool are_layer_indices(const int32_t *ids, int32_t layers);

/* As eplb_placement_validate, with the file in the message. */
eplb_status check_placement(const eplb_placement *placement, const char *path, uint32_t flags,
                            eplb_error *error);

#endif
