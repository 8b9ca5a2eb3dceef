/* SPDX-License-Identifier: MIT */
/* A payoff in one line. */
#include "migration/price.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SECONDS_TEXT 32

/* "850 us", "12 ms", "3.4 s" */
static const char *seconds_text(double seconds, char text[SECONDS_TEXT])
{
    if (seconds < 0.9995e-3) {
        snprintf(text, SECONDS_TEXT, "%.3g us", seconds * 1e6);
    } else if (seconds < 0.9995) {
        snprintf(text, SECONDS_TEXT, "%.3g ms", seconds * 1e3);
    } else {
        snprintf(text, SECONDS_TEXT, seconds < 999.5 ? "%.3g s" : "%.0f s", seconds);
    }
    return text;
}

/* "14 copies (588 MiB, 12 ms)" */
static void describe_cost(const eplb_payoff *payoff, const eplb_price_options *options, char *text,
                          size_t size)
{
    char bytes[32];
    char seconds[SECONDS_TEXT];
    snprintf(text, size, "%" PRId64 " %s (%s, %s%s)", payoff->copies,
             payoff->copies == 1 ? "copy" : "copies",
             eplb_bytes_text(payoff->bytes, bytes, sizeof(bytes)),
             seconds_text(payoff->copy_seconds, seconds),
             options->stall == 0.0 ? " beside steps" : "");
}

/* The step in which it has paid. */
static double whole_steps(double steps)
{
    if (steps >= 1e15) {
        return steps;
    }
    double below = (double)(int64_t)steps;
    return steps > below ? below + 1.0 : below;
}

void eplb_payoff_describe(eplb_payoff *payoff, const eplb_price_options *options)
{
    char cost[128];
    const char *s = payoff->copies == 1 ? "s" : "";
    describe_cost(payoff, options, cost, sizeof(cost));
    if (payoff->copies == 0) {
        snprintf(payoff->text, sizeof(payoff->text), "no copies");
    } else if (isinf(payoff->break_even_steps)) {
        snprintf(payoff->text, sizeof(payoff->text), "%s gain%s nothing", cost, s);
    } else if (payoff->break_even_steps == 0.0) {
        snprintf(payoff->text, sizeof(payoff->text), "%s pay%s at once", cost, s);
    } else {
        double steps = whole_steps(payoff->break_even_steps);
        snprintf(payoff->text, sizeof(payoff->text),
                 "%s pay%s after %.10g step%s%s; the next rebalance is after %.10g", cost, s, steps,
                 steps == 1.0 ? "" : "s", payoff->pays != 0 ? "" : ", too late",
                 options->interval_steps);
    }
}
