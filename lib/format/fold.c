/* SPDX-License-Identifier: MIT */
#include "format/fold.h"

#include <math.h>

eplb_status eplb_fold_row(const int32_t *map, int32_t slots, const double *counts, double *folded,
                          eplb_error *error)
{
    for (int32_t s = 0; s < slots; s++) {
        int32_t e = map[s];
        if (e < 0 && counts[s] > 0.0) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "slot %d: %.17g tokens, but the map says that it is empty", s,
                                  counts[s]);
        }
        if (e < 0) {
            continue;
        }
        folded[e] += counts[s];
        if (!isfinite(folded[e])) {
            return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                                  "expert %d: the sum of its counts is too large", e);
        }
    }
    return EPLB_OK;
}
