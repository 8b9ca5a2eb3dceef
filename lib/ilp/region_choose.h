/* SPDX-License-Identifier: MIT */
#ifndef EPLB_ILP_REGION_CHOOSE_H
#define EPLB_ILP_REGION_CHOOSE_H

#include <eplb/random.h>

#include "ilp/region.h"

/*
 * Chooses the free GPUs and their guests: the GPU that is the largest in a scenario, the scenarios
 * in turn by `turn`; those of an expert that may give a replica away; and others that are drawn
 * with an eye to light ones. As many as keep the program small; false when there are no two, or
 * they are too large.
 */
bool eplb_ilp_region_choose(eplb_ilp_region *region, int64_t turn, eplb_random *random);

#endif
