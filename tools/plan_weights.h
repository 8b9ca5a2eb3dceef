/* SPDX-License-Identifier: MIT */
/* Replicas with weights: placements that they balance, and the file that has them. */
#ifndef EPLB_TOOLS_PLAN_WEIGHTS_H
#define EPLB_TOOLS_PLAN_WEIGHTS_H

#include <eplb/load.h>
#include <eplb/placement.h>

#include "sink.h"

/*
 * Makes a placement that weights balance perfectly under the sum of the scenarios: `planned`, but
 * where weights do not balance that one's layer, one that they do. Layers without load stay as they
 * are.
 */
eplb_status plan_place_weighted(eplb_placement **out, const eplb_placement *planned,
                                const eplb_load *load, const eplb_hooks *hooks, eplb_error *error);

/* Writes the best weights of a placement for the sum of the scenarios as CSV: layer, slot, gpu,
 * expert, weight. A failure is also the sink's. */
eplb_status plan_write_weights(sink *out, const eplb_placement *placement, const eplb_load *load);

#endif
