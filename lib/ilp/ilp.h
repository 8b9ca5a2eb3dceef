/* SPDX-License-Identifier: MIT */
#ifndef EPLB_ILP_ILP_H
#define EPLB_ILP_ILP_H

#include <eplb/ilp.h>

struct eplb_ilp {
    eplb_hooks hooks;
    eplb_ilp_options options;
    eplb_refiner refiner;
    eplb_fewest_finder finder;
};

/* An eplb_refiner's function; `context` is an eplb_ilp. */
eplb_status eplb_ilp_refine(void *context, const eplb_refine_task *task, eplb_refine_result *result,
                            eplb_error *error);

/* An eplb_fewest_finder's function; `context` is an eplb_ilp. */
eplb_status eplb_ilp_find_fewest(void *context, eplb_placement **out, const eplb_fewest_task *task,
                                 eplb_fewest_result *result, eplb_error *error);

#endif
