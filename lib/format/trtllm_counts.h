/* SPDX-License-Identifier: MIT */
/* Counts that TensorRT-LLM records: a directory with meta_info.json and rank<r>.safetensors of each
 * rank, or one such file. */
#ifndef EPLB_FORMAT_TRTLLM_COUNTS_H
#define EPLB_FORMAT_TRTLLM_COUNTS_H

#include "format/format.h"

bool eplb_trtllm_probe_counts(const eplb_probe *probe);
bool eplb_trtllm_probe_directory(const eplb_listing *listing);

eplb_status eplb_trtllm_open_counts(eplb_reading *reading, eplb_error *error);
eplb_status eplb_trtllm_next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error);
void eplb_trtllm_close_counts(eplb_reading *reading);

#endif
