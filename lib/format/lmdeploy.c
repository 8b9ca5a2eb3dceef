/* SPDX-License-Identifier: MIT */
/* lmdeploy's counts: a JSON list of rows, [layers][experts]. */
#include "format/json_counts.h"
#include "format/probe_json.h"

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    return eplb_json_counts_open(reading, NULL, NULL, false, error);
}

const eplb_format eplb_format_lmdeploy = {
    .name = "lmdeploy",
    .description = "lmdeploy: a JSON list of counts for each MoE layer",
    .engine = "lmdeploy",
    .recognised = "a JSON list of lists",
    .flags = EPLB_FORMAT_READS_COUNTS,
    .probe = eplb_probe_json_rows,
    .counts = {.open = open_counts, .next = eplb_json_counts_next, .close = eplb_json_counts_close},
};
