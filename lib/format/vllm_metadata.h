/* SPDX-License-Identifier: MIT */
/* What the metadata of a vLLM dump say of the shape of its snapshots. */
#ifndef EPLB_FORMAT_VLLM_METADATA_H
#define EPLB_FORMAT_VLLM_METADATA_H

#include "format/slot_step.h"

/* Starts as zeros; 0: they do not say, as none of these can be 0. */
typedef struct eplb_vllm_metadata {
    int64_t gpus;
    int64_t layers;
    int64_t slots;
    int64_t experts; /* logical ones */
} eplb_vllm_metadata;

/* Reads the object; keys that are not of the shape are skipped. */
eplb_status eplb_vllm_metadata_read(eplb_vllm_metadata *self, eplb_scanner *scanner,
                                    eplb_error *error);

/* Sets *experts, if they say it, to the number of logical experts. Another one than the caller of
 * the library expects is an error. */
eplb_status eplb_vllm_metadata_experts(const eplb_vllm_metadata *self, const eplb_scanner *scanner,
                                       const eplb_reading *reading, int32_t *experts,
                                       eplb_error *error);

/* Makes sure that they fit a snapshot. */
eplb_status eplb_vllm_metadata_check(const eplb_vllm_metadata *self, const eplb_scanner *scanner,
                                     const eplb_slot_step *step, eplb_error *error);

#endif
