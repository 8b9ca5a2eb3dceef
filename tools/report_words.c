/* SPDX-License-Identifier: MIT */
/* Verdicts in words. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "line.h"
#include "message.h"
#include "report_verdict.h"

static void say_step_size(const layer_facts *facts, line *out)
{
    bool has_tokens = facts->tokens > 0.0;
    line_add_count(out, has_tokens ? facts->tokens : facts->assignments,
                   has_tokens ? "token" : "assignment");
}

/* As printed, so that the parts of a sum add up on paper. */
static double cents(double value)
{
    return floor(value * 100.0 + 0.5) / 100.0;
}

/* What was seen and what it is made of. */
static void say_split(const layer_facts *facts, const verdict *judged, line *out)
{
    if (judged->is_sum) {
        line_add(out, "%.2f persistent in one sum or step of ", facts->persistent);
        say_step_size(facts, out);
        line_add(out, " (chance explains +-%.3f)", STANDARD_ERRORS * judged->error);
    } else if (facts->too_few_steps) {
        line_add(out, "%.2f in %" PRId64 " step%s of ", facts->seen, facts->steps,
                 plural(facts->steps));
        say_step_size(facts, out);
        line_add(out, ", which cannot tell what lasts from noise");
    } else {
        double noise = cents(facts->seen) - cents(facts->persistent);
        line_add(out, "%.2f = %.2f persistent %s %.2f noise at ", facts->seen, facts->persistent,
                 noise < -0.001 ? "-" : "+", fabs(noise));
        say_step_size(facts, out);
        line_add(out, " a step");
    }
}

static void say_fine(const layer_facts *facts, const verdict *judged, line *out)
{
    line_add(out, "mean imbalance %.2f (< %.1f) and padding %.1fx (< %.0fx): look elsewhere",
             facts->seen, FINE_IMBALANCE, facts->padded, FINE_PADDING);
    if (judged->is_sum) {
        line_add(out, "; a single step, or a sum of many, which hides their noise and padding");
    } else if (!judged->certain) {
        line_add(out, ", if it lasts: %" PRId64 " step%s cannot tell", facts->steps,
                 plural(facts->steps));
    }
}

static void say_more_tokens(const layer_facts *facts, const verdict *judged, line *out)
{
    if (is_padding(facts)) {
        line_add(out, "rows padded %.1fx at ", facts->padded);
        say_step_size(facts, out);
        line_add(out, " a step, imbalance %.2f", facts->seen);
    } else {
        say_split(facts, judged, out);
    }
    line_add(out, ": %smore tokens a step, no placement will help",
             judged->certain ? "" : "if it lasts, ");
}

/* What a plan leaves may be worth spare slots: the fewest that take most of it. */
static void say_what_is_left(const layer_facts *facts, line *out)
{
    for (int32_t i = 0; facts->planned >= FINE_IMBALANCE && i < facts->spares; i++) {
        const spare_slots *spare = &facts->spare[i];
        if (spare->imbalance - 1.0 <= MOST * (facts->planned - 1.0)) {
            line_add(out, ", with %" PRId32 " spare slot%s to %.2f", spare->slots,
                     plural(spare->slots), spare->imbalance);
            return;
        }
    }
}

static void say_rebalance(const layer_facts *facts, const verdict *judged, line *out)
{
    line_add(out, "; %splacement can take %.2f to %.2f", judged->certain ? "" : "if it lasts, ",
             facts->persistent, facts->planned);
    if (!facts->too_few_steps && facts->seen_replanned - facts->planned >= 0.005) {
        line_add(out, " (these steps would show %.2f)", facts->seen_replanned);
    }
    say_what_is_left(facts, out);
    if (!facts->too_few_steps && facts->seen - facts->persistent >= 0.005) {
        line_add(out, "; only a larger batch takes the rest");
    }
}

/* The expert that the others wait for, and what a plan in the same slots is left with. */
static void say_hottest(const layer_facts *facts, line *out)
{
    bool is_hot =
        facts->hottest_expert >= 0 && facts->hottest_ratio >= HOT_EXPERT && facts->hottest_is_felt;
    if (is_hot) {
        line_add(out, "expert %" PRId32 " gets %.1f times its fair share and ",
                 facts->hottest_expert, facts->hottest_ratio);
    }
    line_add(out, "the slots there cannot take it down (%.2f after replanning)", facts->planned);
}

/* From the fewest spare slots that help, as long as more of them take more. */
static void say_spares(const layer_facts *facts, int32_t first, line *out)
{
    const spare_slots *spare = &facts->spare[first];
    line_add(out, "%" PRId32 " take%s it to %.2f", spare->slots, spare->slots == 1 ? "s" : "",
             spare->imbalance);
    for (int32_t i = first + 1; i < facts->spares; i++) {
        if (cents(facts->spare[i].imbalance) < cents(spare->imbalance)) {
            spare = &facts->spare[i];
            line_add(out, ", %" PRId32 " to %.2f", spare->slots, spare->imbalance);
        }
    }
}

static void say_replicate(const layer_facts *facts, const verdict *judged, line *out)
{
    line_add(out, "; %s", judged->certain ? "" : "if it lasts, replicate: ");
    say_hottest(facts, out);
    line_add(out, "%s: ", judged->certain ? "; replicate, spare slots can" : ", spare slots can");
    say_spares(facts, judged->spare, out);
}

static void say_nothing_to_gain(const layer_facts *facts, const verdict *judged, line *out)
{
    line_add(out, "; %sno other placement can take it (%.2f after replanning)",
             judged->certain ? "" : "if it lasts, ", facts->planned);
    if (facts->spares > 0) {
        const spare_slots *last = &facts->spare[facts->spares - 1];
        line_add(out, " and neither can spare slots (%.2f with %" PRId32 ")", last->imbalance,
                 last->slots);
    }
}

static void say_too_short(const layer_facts *facts, const verdict *judged, line *out)
{
    line_add(out,
             "%.2f seen, %.2f +- %.2f of it persistent (two standard errors): too short to tell; "
             "about %" PRId64 " steps like these are needed, %" PRId64 " %s there",
             facts->seen, facts->persistent, STANDARD_ERRORS * judged->error, judged->steps_needed,
             facts->steps, facts->steps == 1 ? "is" : "are");
}

char *verdict_words(const layer_facts *facts, const verdict *judged, char *text, size_t size)
{
    line out = line_begin(text, size);
    switch (judged->kind) {
    case VERDICT_NO_LOAD:
        line_add(&out, "nothing was routed");
        break;
    case VERDICT_FINE:
        say_fine(facts, judged, &out);
        break;
    case VERDICT_MORE_TOKENS:
        say_more_tokens(facts, judged, &out);
        break;
    case VERDICT_REBALANCE:
        say_split(facts, judged, &out);
        say_rebalance(facts, judged, &out);
        break;
    case VERDICT_REPLICATE:
        say_split(facts, judged, &out);
        say_replicate(facts, judged, &out);
        break;
    case VERDICT_NOTHING_TO_GAIN:
        say_split(facts, judged, &out);
        say_nothing_to_gain(facts, judged, &out);
        break;
    case VERDICT_TOO_SHORT:
        say_too_short(facts, judged, &out);
        break;
    }
    return text;
}
