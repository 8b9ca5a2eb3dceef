/* SPDX-License-Identifier: MIT */
#include "exact.h"

#include "message.h"

eplb_status exact_open(exact **out, const eplb_hooks *hooks, bool everywhere, int32_t nodes,
                       eplb_error *error)
{
    (void)hooks;
    (void)nodes;
    *out = NULL;
    if (everywhere) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "--ilp on: this eplb was built without GLPK");
    }
    print_warning(NULL, EPLB_LOG_WARNING,
                  "--ilp auto does nothing: this eplb was built without GLPK");
    return EPLB_OK;
}

const eplb_refiner *exact_refiner(const exact *self)
{
    (void)self;
    return NULL;
}

const eplb_fewest_finder *exact_fewest_finder(const exact *self)
{
    (void)self;
    return NULL;
}

void exact_close(exact **self)
{
    *self = NULL;
}
