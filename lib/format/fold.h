/* SPDX-License-Identifier: MIT */
/* Counts of slots as counts of logical experts. */
#ifndef EPLB_FORMAT_FOLD_H
#define EPLB_FORMAT_FOLD_H

#include <stdint.h>

#include <eplb/status.h>

/* Adds counts [slots] to `folded` [experts] as the slots' experts `map` [slots] say, each -1 for an
 * empty slot or below `experts`. Tokens in an empty slot are EPLB_ERROR_DATA, a sum that is not
 * finite EPLB_ERROR_OVERFLOW; both messages name the slot or expert, not file and layer. */
eplb_status eplb_fold_row(const int32_t *map, int32_t slots, const double *counts, double *folded,
                          eplb_error *error);

#endif
