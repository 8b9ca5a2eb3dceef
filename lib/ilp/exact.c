/* SPDX-License-Identifier: MIT */
#include "ilp/exact.h"

#include <string.h>

#include "base/memory.h"
#include "ilp/exact_search.h"

/* Whether the bound is the value, but for rounding. */
static bool is_proven(const eplb_exact *exact, double bound)
{
    return bound >= exact->value * (1.0 - 2.0 * EPLB_EXACT_ROUNDING);
}

/* Looks for all that is below the known value; returns the bound that this proves. */
static double search(eplb_exact *exact)
{
    if (is_proven(exact, exact->task->lower_bound)) {
        return exact->task->lower_bound;
    }
    exact->cutoff = exact->value * (1.0 - EPLB_EXACT_ROUNDING);
    exact->open = exact->cutoff;
    if (eplb_exact_limit_counts(exact)) {
        eplb_exact_search_counts(exact);
    }
    return exact->open < exact->cutoff ? exact->open : exact->cutoff;
}

static void report(const eplb_exact *exact, double bound, eplb_ilp_exact_result *result)
{
    result->proven = is_proven(exact, bound);
    result->value = exact->value;
    result->nodes = exact->nodes;
    double known =
        exact->task->lower_bound < exact->value ? exact->task->lower_bound : exact->value;
    double less = bound * (1.0 - EPLB_EXACT_ROUNDING); /* rounding in the bounds of nodes */
    result->lower_bound = result->proven ? exact->value : less > known ? less : known;
}

eplb_status eplb_ilp_exact(const eplb_hooks *hooks, const eplb_refine_task *task, int64_t nodes,
                           eplb_ilp_exact_result *result, eplb_error *error)
{
    size_t bytes = (size_t)task->slots * sizeof(*result->placement);
    memcpy(result->placement, task->placement, bytes);
    result->value = task->value;
    result->lower_bound = task->lower_bound;
    result->proven = false;
    result->nodes = 0;
    if (task->experts > EPLB_EXACT_EXPERTS || task->slots > EPLB_EXACT_SLOTS ||
        task->scenarios > EPLB_EXACT_SCENARIOS) {
        return EPLB_OK;
    }
    eplb_exact exact;
    eplb_status status = eplb_exact_init(&exact, hooks, task, error);
    if (status == EPLB_OK) {
        exact.budget = nodes < 0 ? INT64_MAX : nodes;
        report(&exact, search(&exact), result);
        memcpy(result->placement, exact.best, bytes);
        eplb_exact_free(&exact, hooks);
    }
    return status;
}
