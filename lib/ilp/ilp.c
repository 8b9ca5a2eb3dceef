/* SPDX-License-Identifier: MIT */
#include "ilp/ilp.h"

#include "base/memory.h"

void eplb_ilp_options_init(eplb_ilp_options *options)
{
    if (options != NULL) {
        *options = (eplb_ilp_options){.struct_size = sizeof(*options),
                                      .mode = EPLB_ILP_AUTO,
                                      .nodes = 5000000,
                                      .memory_bytes = (int64_t)1 << 30};
    }
}

static eplb_status check(const eplb_ilp_options *options, eplb_error *error)
{
    if (options->mode != EPLB_ILP_AUTO && options->mode != EPLB_ILP_ON) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "ilp: unknown mode %d", options->mode);
    }
    if (options->nodes < -1 || options->memory_bytes < -1) {
        return eplb_error_set(
            error, EPLB_ERROR_ARGUMENT, "ilp: %s %lld below -1",
            options->nodes < -1 ? "nodes" : "memory_bytes",
            (long long)(options->nodes < -1 ? options->nodes : options->memory_bytes));
    }
    return EPLB_OK;
}

eplb_status eplb_ilp_create(eplb_ilp **out, const eplb_hooks *hooks,
                            const eplb_ilp_options *options, eplb_error *error)
{
    if (out == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "ilp: no output");
    }
    *out = NULL;
    eplb_ilp_options complete;
    eplb_ilp_options_init(&complete);
    if (options != NULL && !eplb_struct_in(&complete, sizeof(complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "ilp: options without struct_size: see eplb_ilp_options_init");
    }
    eplb_status status = check(&complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_ilp *ilp = eplb_alloc_zeroed(&resolved, 1, sizeof(*ilp));
    if (ilp == NULL) {
        return eplb_out_of_memory(error);
    }
    ilp->hooks = resolved;
    ilp->options = complete;
    ilp->refiner = (eplb_refiner){
        .struct_size = sizeof(ilp->refiner), .refine = eplb_ilp_refine, .context = ilp};
    ilp->finder = (eplb_fewest_finder){
        .struct_size = sizeof(ilp->finder), .find = eplb_ilp_find_fewest, .context = ilp};
    *out = ilp;
    return EPLB_OK;
}

void eplb_ilp_destroy(eplb_ilp **ilp)
{
    if (ilp != NULL && *ilp != NULL) {
        eplb_hooks hooks = (*ilp)->hooks;
        eplb_free(&hooks, *ilp);
        *ilp = NULL;
    }
}

const eplb_refiner *eplb_ilp_refiner(const eplb_ilp *ilp)
{
    return &ilp->refiner;
}

const eplb_fewest_finder *eplb_ilp_fewest_finder(const eplb_ilp *ilp)
{
    return &ilp->finder;
}
