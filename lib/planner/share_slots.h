/* SPDX-License-Identifier: MIT */
#ifndef EPLB_PLANNER_SHARE_SLOTS_H
#define EPLB_PLANNER_SHARE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* Memory of a call: what it needs for each of `gpus` GPUs. */
typedef struct eplb_share_scratch {
    double *key;
    int32_t *order;
    int32_t *sorted;
} eplb_share_scratch;

/*
 * Shares a layer's slots among GPUs in proportion to their room: shares [gpus], each at most the
 * room of the GPU and `most`; a GPU gets at most one more than its part, and the larger remainders,
 * then the smaller GPUs, get that one. Where rooms differ by at most one, they still do so when the
 * shares are taken from them. room [gpus] sums to at most 2^48, slots are at most 2^20. False, and
 * shares of no use, when the slots do not fit.
 */
bool eplb_share_slots(const int64_t *room, int32_t gpus, int32_t slots, int32_t most,
                      const eplb_share_scratch *scratch, int32_t *shares);

#endif
