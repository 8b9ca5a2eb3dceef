/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_CURRENT_H
#define EPLB_TOOLS_CURRENT_H

#include <eplb/format.h>

/*
 * Reads the placement in force from the file at `path` and brings it into the layers of the load:
 * one row for each, with its ids. Where the load numbers its layers by MoE index and the file knows
 * their model layer ids, the load gets these. EPLB_ERROR_DATA when the layers cannot be matched or
 * the placement is not valid.
 */
eplb_status read_current(eplb_placement **out, const char *path, eplb_load *load,
                         const eplb_read_options *options, const eplb_hooks *hooks,
                         eplb_error *error);

#endif
