/* SPDX-License-Identifier: MIT */
/* The arithmetic of `eplb sweep`. */
#ifndef EPLB_TOOLS_SWEEP_KNEE_H
#define EPLB_TOOLS_SWEEP_KNEE_H

#include <stdbool.h>
#include <stdint.h>

/* What is left to gain at the knee, at most: this part of the gain of the whole range, or, where
 * that is less, this much imbalance, which is below what a run of a serving engine shows. */
#define KNEE_SHARE 0.1
#define KNEE_LEAST 0.005

/*
 * The fewest slots, equally many on each GPU, that hold the experts and `redundant` more:
 * *slots_per_gpu. False: there are no such, since each expert would be on every GPU already, or a
 * cluster cannot have that many.
 */
bool sweep_fit(int32_t experts, int32_t gpus, int32_t redundant, int32_t *slots_per_gpu);

/* The knee of imbalances [count > 0] for ascending numbers of redundant experts: the first from
 * which the best of all is not further away than KNEE_SHARE and KNEE_LEAST say. */
int32_t sweep_knee(const double *imbalances, int32_t count);

/* How much better than the one at `index` the best of those behind it is; 0: none is better. */
double sweep_gain_behind(const double *imbalances, int32_t count, int32_t index);

#endif
