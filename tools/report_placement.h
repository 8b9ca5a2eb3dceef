/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_REPORT_PLACEMENT_H
#define EPLB_TOOLS_REPORT_PLACEMENT_H

#include <eplb/placement.h>

#include "report_options.h"

/* Reads the file of --current, or spreads the load's experts over --gpus in order, where the first
 * GPUs get one slot more than the others if slots are not a multiple of GPUs. The placement has the
 * load's layers; the load may get the layer ids that the file knows (see current.h). */
eplb_status read_report_placement(eplb_placement **out, const report_values *values,
                                  eplb_load *load, const eplb_hooks *hooks, eplb_error *error);

/* Makes a cluster with the GPUs of `base` and `more` slots more, shared by the first live GPUs as
 * evenly as it goes. */
eplb_status widen_cluster(eplb_cluster **out, const eplb_cluster *base, int32_t more,
                          const eplb_hooks *hooks, eplb_error *error);

#endif
