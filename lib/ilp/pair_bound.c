/* SPDX-License-Identifier: MIT */
#include "ilp/pair_bound.h"

#include <math.h>

/* Options that cost so many slots more than the cheapest are left out at first; then those that
 * cost so many times as many. */
#define FIRST_WINDOW 0.25
#define WIDENING 4.0
#define LAST_WINDOW 4.0

eplb_status eplb_pair_refute(eplb_pair_program *program, bool *is_refuted, eplb_error *error)
{
    double limit = (double)program->options.task->slots * (1.0 + EPLB_PAIR_MARGIN);
    *is_refuted = eplb_pair_program_is_refuted(program);
    for (double window = FIRST_WINDOW; !*is_refuted && window <= LAST_WINDOW; window *= WIDENING) {
        double slots;
        eplb_status status = eplb_pair_program_solve(program, window, &slots, error);
        if (status != EPLB_OK) {
            return status;
        }
        *is_refuted = eplb_pair_program_is_refuted(program);
        if (slots <= limit) {
            break; /* more options would make it less */
        }
    }
    return EPLB_OK;
}

eplb_status eplb_pair_bound(eplb_pair_program *program, double low, double high, double tolerance,
                            double *bound, eplb_error *error)
{
    const eplb_refine_task *task = program->options.task;
    *bound = low;
    while (high - low > tolerance * low && task->stop(task->stop_context) == 0) {
        double load = low + (high - low) / 2.0;
        bool is_refuted = !eplb_pair_program_set(program, load);
        if (!is_refuted) {
            eplb_status status = eplb_pair_refute(program, &is_refuted, error);
            if (status != EPLB_OK) {
                return status;
            }
            eplb_pair_program_keep_prices(program);
        }
        if (is_refuted) {
            low = load;
            *bound = fmax(*bound, load * (1.0 - EPLB_PAIR_MARGIN));
        } else {
            high = load;
        }
    }
    return EPLB_OK;
}
