/* SPDX-License-Identifier: MIT */
#ifndef EPLB_MODEL_ASSIGNMENT_H
#define EPLB_MODEL_ASSIGNMENT_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

/*
 * Gives each of n rows a column of its own so that the sum of costs is the smallest: cost [n][n] by
 * rows, each within +-1e12; `column` [n] gets the choice. Of choices that cost the same it is
 * always the same one. O(n^3), by shortest augmenting paths (Jonker and Volgenant 1987).
 */
eplb_status eplb_assign(const eplb_hooks *hooks, int32_t n, const int64_t *cost, int32_t *column,
                        eplb_error *error);

#endif
