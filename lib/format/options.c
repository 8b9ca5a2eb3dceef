/* SPDX-License-Identifier: MIT */
#include "format/options.h"

#include <string.h>

#include "base/abi.h"

void eplb_read_options_init(eplb_read_options *options)
{
    if (options == NULL) {
        return;
    }
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    options->max_layers = 1024;
    options->max_experts = 4096;
    options->max_slots = EPLB_MAX_SLOTS;
    options->max_bytes = INT64_C(256) << 20;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

eplb_status eplb_read_options_resolve(const eplb_read_options *options, eplb_read_options *resolved,
                                      eplb_error *error)
{
    eplb_read_options_init(resolved);
    if (options != NULL && !eplb_struct_in(resolved, sizeof(*resolved), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "read options without struct_size: see eplb_read_options_init");
    }
    if (resolved->experts < 0 || resolved->experts > EPLB_MAX_EXPERTS || resolved->gpus < 0 ||
        resolved->gpus > EPLB_MAX_GPUS || resolved->gpus_per_node < 0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "read options: %d experts not in 0..%d, %d GPUs not in 0..%d, or %d "
                              "GPUs per node below 0",
                              resolved->experts, EPLB_MAX_EXPERTS, resolved->gpus, EPLB_MAX_GPUS,
                              resolved->gpus_per_node);
    }
    if (resolved->max_layers < 1 || resolved->max_experts < 1 || resolved->max_slots < 1 ||
        resolved->max_bytes < 1) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "read options: a limit below 1: %d layers, %d experts, %d slots, "
                              "%lld bytes",
                              resolved->max_layers, resolved->max_experts, resolved->max_slots,
                              (long long)resolved->max_bytes);
    }
    resolved->max_layers = smaller(resolved->max_layers, EPLB_MAX_LAYERS);
    resolved->max_experts = smaller(resolved->max_experts, EPLB_MAX_EXPERTS);
    resolved->max_slots = smaller(resolved->max_slots, EPLB_MAX_SLOTS);
    return EPLB_OK;
}

const char *eplb_words_for_width(const eplb_read_options *options)
{
    return options->counted_under != NULL
               ? "the slots of the placement that they were counted under"
               : "the number of experts given";
}
