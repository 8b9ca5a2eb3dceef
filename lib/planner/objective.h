/* SPDX-License-Identifier: MIT */
#ifndef EPLB_PLANNER_OBJECTIVE_H
#define EPLB_PLANNER_OBJECTIVE_H

#include <eplb/load.h>

/* The largest weight of the scenarios that have load in a layer (its index); 0 when none has. Only
 * ratios of weights matter, and beside the largest one no sum of them overflows. */
double eplb_largest_weight(const eplb_load *load, int32_t layer);

#endif
