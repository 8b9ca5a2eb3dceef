/* SPDX-License-Identifier: MIT */
/* SGLang's counts come as JSON, or as what torch.save writes. */
#ifndef EPLB_FORMAT_SGLANG_COUNTS_H
#define EPLB_FORMAT_SGLANG_COUNTS_H

#include "format/format.h"

/* What reading->state of either kind begins with. */
typedef struct eplb_sglang_state {
    eplb_status (*next)(eplb_reading *reading, eplb_counts_row *row, eplb_error *error);
    void (*close)(eplb_reading *reading);
} eplb_sglang_state;

eplb_status eplb_sglang_json_open(eplb_reading *reading, eplb_error *error);
eplb_status eplb_sglang_pt_open(eplb_reading *reading, eplb_error *error);

#endif
