/* SPDX-License-Identifier: MIT */
#ifndef EPLB_MODEL_SUM_H
#define EPLB_MODEL_SUM_H

#include <eplb/load.h>

/* Sums one layer over the scenarios, each scaled by its weight, into row [experts]; a single
 * scenario is taken as it is. EPLB_ERROR_OVERFLOW when the row's total is not finite; otherwise
 * `total` gets it. */
eplb_status eplb_load_sum_row(const eplb_load *load, int32_t layer, double *row, double *total,
                              eplb_error *error);

#endif
