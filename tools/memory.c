/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdio.h>

#include <eplb/price.h>

#include "message.h"

/* Slots of one GPU; an error names it where GPUs differ. */
static eplb_status slots_of(const gpu_memory *memory, int32_t gpu, int32_t layers, int32_t *slots,
                            eplb_error *error)
{
    bool differ = memory->sizes->count > 1;
    eplb_error inner;
    eplb_status status =
        eplb_slots_from_memory(memory->sizes->items[differ ? gpu : 0], memory->reserve,
                               memory->expert_bytes, layers, slots, &inner);
    if (status == EPLB_OK) {
        return EPLB_OK;
    }
    return differ ? eplb_error_set(error, status, "GPU %d: %.400s", gpu, inner.message)
                  : eplb_error_set(error, status, "%s", inner.message);
}

static eplb_status fill(eplb_cluster *cluster, const gpu_memory *memory, int32_t layers,
                        int32_t experts, int32_t *cut, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    *cut = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster) && status == EPLB_OK; g++) {
        int32_t slots;
        status = slots_of(memory, g, layers, &slots, error);
        if (status == EPLB_OK) {
            *cut += slots > experts ? 1 : 0;
            status = eplb_cluster_set_slots(cluster, g, slots < experts ? slots : experts, error);
        }
    }
    return status;
}

static eplb_status check_room(const eplb_cluster *cluster, const gpu_memory *memory, int32_t layers,
                              int32_t experts, eplb_error *error)
{
    int32_t gpus = eplb_cluster_gpus(cluster);
    int32_t slots = eplb_cluster_slots(cluster);
    if (slots >= experts) {
        return EPLB_OK;
    }
    int64_t needed = 0;
    int32_t each = (experts + gpus - 1) / gpus;
    eplb_status status = weight_bytes(&needed, memory->expert_bytes, each, layers, error);
    if (status != EPLB_OK) {
        return status;
    }
    char text[32];
    return eplb_error_set(
        error, EPLB_ERROR_INFEASIBLE,
        "the memory of %d GPUs holds %d slots of a layer for %d experts: %d slots "
        "a GPU need %s beyond the reserve",
        gpus, slots, experts, each, eplb_bytes_text(needed, text, sizeof(text)));
}

eplb_status memory_cluster(eplb_cluster **out, const gpu_memory *memory, int32_t gpus,
                           int32_t gpus_per_node, int32_t layers, int32_t experts,
                           const eplb_hooks *hooks, eplb_error *error)
{
    int32_t cut = 0;
    eplb_status status = eplb_cluster_create(out, hooks, gpus, 1, gpus_per_node, error);
    if (status == EPLB_OK) {
        status = fill(*out, memory, layers, experts, &cut, error);
    }
    if (status == EPLB_OK) {
        status = check_room(*out, memory, layers, experts, error);
    }
    if (status != EPLB_OK) {
        eplb_cluster_destroy(out);
    } else if (cut > 0) {
        fprintf(stderr,
                "eplb: the memory of %d GPU%s holds more than one of each of %d experts: %d slots "
                "there\n",
                cut, plural(cut), experts, experts);
    }
    return status;
}

eplb_status memory_budget(int64_t *budget, const gpu_memory *memory, int32_t gpus,
                          eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t g = 0; g < gpus && status == EPLB_OK; g++) {
        int32_t slots = 0;
        status = slots_of(memory, g, 1, &slots, error);
        budget[g] = slots;
    }
    return status;
}

eplb_status weight_bytes(int64_t *bytes, int64_t expert_bytes, int64_t slots, int32_t layers,
                         eplb_error *error)
{
    int64_t of_layer;
    if (__builtin_mul_overflow(expert_bytes, slots, &of_layer) ||
        __builtin_mul_overflow(of_layer, layers, bytes)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "%lld bytes of an expert x %lld x %d layers do not fit 64 bits",
                              (long long)expert_bytes, (long long)slots, layers);
    }
    return EPLB_OK;
}
