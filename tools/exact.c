/* SPDX-License-Identifier: MIT */
#include "exact.h"

#include <eplb/ilp.h>

eplb_status exact_open(exact **out, const eplb_hooks *hooks, bool everywhere, int32_t nodes,
                       eplb_error *error)
{
    eplb_ilp_options options;
    eplb_ilp_options_init(&options);
    options.mode = everywhere ? EPLB_ILP_ON : EPLB_ILP_AUTO;
    if (nodes >= 0) {
        options.nodes = nodes;
    }
    return eplb_ilp_create(out, hooks, &options, error);
}

const eplb_refiner *exact_refiner(const exact *self)
{
    return self != NULL ? eplb_ilp_refiner(self) : NULL;
}

const eplb_fewest_finder *exact_fewest_finder(const exact *self)
{
    return self != NULL ? eplb_ilp_fewest_finder(self) : NULL;
}

void exact_close(exact **self)
{
    eplb_ilp_destroy(self);
}
