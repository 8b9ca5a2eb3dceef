/* SPDX-License-Identifier: MIT */
/* How many experts of a layer the memory of a GPU holds. */
#include <eplb/cluster.h>
#include <eplb/load.h>

#include "base/range.h"

#define GIB 1073741824.0

static eplb_status check(int64_t gpu_bytes, int64_t reserve_bytes, int64_t expert_bytes,
                         int32_t layers, const int32_t *slots, eplb_error *error)
{
    static const char what[] = "slots from memory";
    eplb_status status = eplb_check_range(what, "memory of a GPU", gpu_bytes, 0, INT64_MAX, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "reserve", reserve_bytes, 0, INT64_MAX, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "bytes of an expert", expert_bytes, 1, INT64_MAX, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "number of layers", layers, 1, EPLB_MAX_LAYERS, error);
    }
    return status == EPLB_OK ? eplb_check_given(what, "output", slots, error) : status;
}

eplb_status eplb_slots_from_memory(int64_t gpu_bytes, int64_t reserve_bytes, int64_t expert_bytes,
                                   int32_t layers, int32_t *slots, eplb_error *error)
{
    eplb_status status = check(gpu_bytes, reserve_bytes, expert_bytes, layers, slots, error);
    if (status != EPLB_OK) {
        return status;
    }
    int64_t room = gpu_bytes > reserve_bytes ? gpu_bytes - reserve_bytes : 0;
    int64_t fit = room / expert_bytes / layers; /* equal to room / (expert_bytes * layers) */
    if (fit == 0) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%.4g GiB of a GPU less %.4g GiB in reserve do not hold one expert "
                              "of each of %d layers, %.4g GiB",
                              (double)gpu_bytes / GIB, (double)reserve_bytes / GIB, layers,
                              (double)expert_bytes * (double)layers / GIB);
    }
    *slots = fit < EPLB_MAX_SLOTS ? (int32_t)fit : EPLB_MAX_SLOTS;
    return EPLB_OK;
}
