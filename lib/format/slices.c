/* SPDX-License-Identifier: MIT */
#include "format/slices.h"

#include <math.h>

#include "base/memory.h"

/* The number of steps with tokens, and the tokens of all. */
static size_t count_steps(const eplb_step_list *steps, double *total)
{
    size_t count = 0;
    *total = 0.0;
    for (size_t i = 0; i < steps->count; i++) {
        count += steps->items[i].tokens > 0.0 ? 1 : 0;
        *total += steps->items[i].tokens;
    }
    return count;
}

/* Goes through the `filled` steps with tokens. The distance from what a cut wants falls, then
 * rises: the first place where the next one is no nearer is the best. */
static void place_cuts(eplb_slices *slices, const eplb_step_list *steps, size_t filled,
                       double total)
{
    int32_t cut = 1;
    size_t in_slice = 0;
    double before = 0.0;
    for (size_t i = 0; i < steps->count && cut < slices->count; i++) {
        const eplb_step_tokens *item = &steps->items[i];
        if (item->tokens <= 0.0) {
            continue;
        }
        double wanted = total * ((double)cut / slices->count);
        bool near = fabs(before - wanted) <= fabs(before + item->tokens - wanted);
        bool must = filled == (size_t)(slices->count - cut);
        if (in_slice > 0 && (near || must)) {
            slices->starts[cut++] = item->step;
            in_slice = 0;
        }
        in_slice++;
        filled--;
        before += item->tokens;
    }
}

eplb_status eplb_slices_cut(eplb_slices *slices, const eplb_step_list *steps, int32_t wanted,
                            eplb_error *error)
{
    double total;
    size_t filled = count_steps(steps, &total);
    if (!isfinite(total)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "the sum of all counts is too large to be cut into slices");
    }
    slices->steps = steps->count;
    slices->tokens = total;
    slices->count = filled < (size_t)wanted ? (int32_t)filled : wanted;
    slices->count = slices->count > 0 ? slices->count : 1;
    if (slices->count == 1) {
        return EPLB_OK;
    }
    slices->starts = eplb_alloc(&steps->hooks, (size_t)slices->count, sizeof(*slices->starts));
    if (slices->starts == NULL) {
        return eplb_out_of_memory(error);
    }
    slices->starts[0] = 0;
    place_cuts(slices, steps, filled, total);
    return EPLB_OK;
}

/* Sums of large or broken numbers depend on their order, which is that of the rows only as far as
 * memory for the list of steps goes. */
#define SAME_SUM 1e-9

bool eplb_slices_are_of(const eplb_slices *slices, const eplb_step_list *steps)
{
    double total;
    (void)count_steps(steps, &total);
    return steps->count == slices->steps &&
           fabs(total - slices->tokens) <= SAME_SUM * slices->tokens;
}

int32_t eplb_slices_find(const eplb_slices *slices, int64_t step)
{
    int32_t low = 0;
    int32_t high = slices->count - 1;
    while (low < high) {
        int32_t middle = high - (high - low) / 2;
        if (slices->starts[middle] <= step) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}
