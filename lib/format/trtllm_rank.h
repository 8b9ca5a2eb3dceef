/* SPDX-License-Identifier: MIT */
/* The counts of one rank as TensorRT-LLM writes them: a tensor of integers <iteration>_<layer> for
 * each iteration and layer, whose iterations follow each other and have the same layers. */
#ifndef EPLB_FORMAT_TRTLLM_RANK_H
#define EPLB_FORMAT_TRTLLM_RANK_H

#include "format/safetensors.h"

typedef struct eplb_trtllm_rank {
    eplb_safetensors file; /* tensors have the number of their iteration */
    eplb_item_type type;
    int32_t experts; /* or slots: the length of each tensor */
    size_t layers;   /* of each iteration: its first tensors are those of the first one */
} eplb_trtllm_rank;

/* Whether the name of a tensor is <iteration>_<layer>. */
bool eplb_trtllm_is_key(const char *name);

/* Reads the header of a file, whose options are the reading's. To be closed after a failure, too.
 */
eplb_status eplb_trtllm_rank_open(eplb_trtllm_rank *rank, const eplb_reading *reading,
                                  eplb_input *input, eplb_error *error);
void eplb_trtllm_rank_close(eplb_trtllm_rank *rank);

/* Whether there are counts of one layer in both. */
bool eplb_trtllm_rank_shares_layers(const eplb_trtllm_rank *rank, const eplb_trtllm_rank *other);

/* Makes sure that both ranks have the same experts, iterations and layers. Layers may be others
 * when they share none: those of another pipeline stage. */
eplb_status eplb_trtllm_rank_compare(const eplb_trtllm_rank *rank, const eplb_trtllm_rank *first,
                                     eplb_error *error);

/* Reads the counts of a tensor, which the row is of. */
eplb_status eplb_trtllm_rank_counts(eplb_trtllm_rank *rank, size_t tensor,
                                    const eplb_counts_row *row, double *counts, eplb_error *error);

#endif
