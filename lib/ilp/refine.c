/* SPDX-License-Identifier: MIT */
/* What is done with a layer: which of the steps, in which order, with how much of the budget. */
#include "ilp/ilp.h"

eplb_status eplb_ilp_refine(void *context, const eplb_refine_task *task, eplb_refine_result *result,
                            eplb_error *error)
{
    (void)context;
    (void)task;
    (void)result;
    (void)error;
    return EPLB_OK;
}
