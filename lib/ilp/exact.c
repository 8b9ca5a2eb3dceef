/* SPDX-License-Identifier: MIT */
#include "ilp/exact.h"

#include <string.h>

#include "base/memory.h"
#include "ilp/exact_search.h"

/* The start is usually optimal, so most of the work is proof, and below a cutoff near the bound
 * there is much less of it: cutoffs rise from this part of the gap by doubling. Each that is
 * reached is a bound. */
#define FIRST_PART 0.0625

bool eplb_ilp_exact_fits(const eplb_refine_task *task)
{
    return task->experts <= 16 && task->slots <= 48;
}

/* Looks for all below the cutoff; false when the budget ended before. */
static bool search_below(eplb_exact *exact, double cutoff, double *bound)
{
    exact->cutoff = cutoff;
    exact->open = cutoff;
    if (eplb_exact_limit_counts(exact)) {
        eplb_exact_search_counts(exact);
    }
    double proven = exact->open < exact->cutoff ? exact->open : exact->cutoff;
    *bound = proven > *bound ? proven : *bound;
    return !exact->ended;
}

static bool is_proven(const eplb_exact *exact, double bound)
{
    return bound >= exact->value * (1.0 - 2.0 * EPLB_EXACT_ROUNDING);
}

static void search(eplb_exact *exact, eplb_ilp_exact_result *result)
{
    double bound = exact->task->lower_bound;
    double start = bound;
    double gap = exact->value - bound;
    for (double part = FIRST_PART; !is_proven(exact, bound); part *= 2.0) {
        double most = exact->value * (1.0 - EPLB_EXACT_ROUNDING);
        double cutoff = part < 1.0 ? start + part * gap : most;
        if (!search_below(exact, cutoff < most ? cutoff : most, &bound)) {
            break;
        }
    }
    result->proven = is_proven(exact, bound);
    result->value = exact->value;
    result->nodes = exact->nodes;
    double less = bound * (1.0 - EPLB_EXACT_ROUNDING); /* rounding in the bounds of nodes */
    double known =
        exact->task->lower_bound < exact->value ? exact->task->lower_bound : exact->value;
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
        search(&exact, result);
        memcpy(result->placement, exact.best, bytes);
        eplb_exact_free(&exact, hooks);
    }
    return status;
}
