/* SPDX-License-Identifier: MIT */
#ifndef EPLB_MODEL_ROW_H
#define EPLB_MODEL_ROW_H

#include <stdint.h>

#include <eplb/status.h>

/* EPLB_OK when every value of a row is a load and their sum is finite; else EPLB_ERROR_DATA or
 * EPLB_ERROR_OVERFLOW with `what`, the layer (unless it is negative) and the expert in the message.
 */
eplb_status eplb_row_check(const char *what, int32_t layer_id, const double *values, int32_t length,
                           eplb_error *error);

#endif
