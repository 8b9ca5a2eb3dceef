/* SPDX-License-Identifier: MIT */
#include "report_verdict.h"

#include <math.h>

const char *verdict_name(verdict_kind kind)
{
    static const char *const names[VERDICT_KINDS] = {
        "no_load", "fine", "more_tokens", "rebalance", "replicate", "nothing_to_gain", "too_short",
    };
    return names[kind];
}

/* Standard error of the busiest GPU's share, in units of the mean GPU, as independent tokens have
 * it: sqrt(m (G - m) / N), with two tokens here and two elsewhere added (Agresti and Coull, 1998),
 * for a few tokens that are all on one GPU prove nothing. */
static double error_by_chance(const layer_facts *facts)
{
    double gpus = (double)facts->gpus;
    double all = facts->assignments * (double)facts->steps + 4.0;
    double share = (facts->persistent / gpus * (all - 4.0) + 2.0) / all;
    return gpus * sqrt(share * (1.0 - share) / all);
}

/* Steps until the standard error is KNOWN_ERROR: by the formula of eplb/split.h, or, where steps
 * resemble each other and so many were not enough, by the error that they left. */
static int64_t steps_to_know(const layer_facts *facts, double error)
{
    double dispersion = facts->dispersion > 0.0 ? facts->dispersion : 1.0;
    double m = facts->persistent;
    double assignments = dispersion * m * ((double)facts->gpus - m) / (KNOWN_ERROR * KNOWN_ERROR);
    double steps = ceil(assignments / facts->assignments);
    double seen = (double)facts->steps;
    double scale = error / KNOWN_ERROR;
    steps = steps > seen ? steps : ceil(seen * scale * scale);
    return steps < 1e15 ? (int64_t)steps : (int64_t)1e15;
}

static bool takes_most(const layer_facts *facts, double imbalance)
{
    return imbalance - 1.0 <= MOST * (facts->persistent - 1.0);
}

static bool is_worth_it(const layer_facts *facts, double imbalance)
{
    return facts->persistent - imbalance >= LEAST_GAIN;
}

/* The fewest spare slots for which `helps`; -1: none. */
static int32_t find_spare(const layer_facts *facts, bool (*helps)(const layer_facts *, double))
{
    for (int32_t i = 0; i < facts->spares; i++) {
        if (helps(facts, facts->spare[i].imbalance)) {
            return i;
        }
    }
    return -1;
}

/* For a persistent part that is there: the remedy that takes most of it, the cheaper first; else
 * the one that takes at least a part. */
static verdict_kind choose_remedy(const layer_facts *facts, int32_t *spare)
{
    bool (*const enough[])(const layer_facts *, double) = {takes_most, is_worth_it};
    for (int i = 0; i < 2; i++) {
        if (enough[i](facts, facts->planned)) {
            return VERDICT_REBALANCE;
        }
        *spare = find_spare(facts, enough[i]);
        if (*spare >= 0) {
            return VERDICT_REPLICATE;
        }
    }
    return VERDICT_NOTHING_TO_GAIN;
}

/* For an imbalance that is worth a look: is it persistent, noise, or not to be told? */
static verdict_kind explain(const layer_facts *facts, double error, int32_t *spare)
{
    double doubt = error > KNOWN_ERROR ? STANDARD_ERRORS * error : 0.0;
    if (facts->persistent - doubt >= FINE_IMBALANCE) {
        return choose_remedy(facts, spare);
    }
    double at_most = facts->persistent + doubt;
    bool noise_dominates = facts->seen - facts->persistent >= at_most - 1.0;
    return at_most < FINE_IMBALANCE || noise_dominates ? VERDICT_MORE_TOKENS : VERDICT_TOO_SHORT;
}

bool is_fine(const layer_facts *facts)
{
    return facts->seen < FINE_IMBALANCE && facts->padded < FINE_PADDING;
}

bool is_hopelessly_padded(const layer_facts *facts)
{
    return facts->padded >= HOPELESS_PADDING &&
           (facts->padded_ratio >= HOPELESS_PADDING || facts->padded_ratio >= MOST * facts->padded);
}

bool is_padding(const layer_facts *facts)
{
    return is_hopelessly_padded(facts) || facts->seen < FINE_IMBALANCE;
}

verdict judge(const layer_facts *facts)
{
    verdict result = {.kind = VERDICT_NO_LOAD, .certain = true, .spare = -1};
    if (facts->steps == 0) {
        return result;
    }
    result.error = facts->too_few_steps ? error_by_chance(facts) : facts->standard_error;
    bool known = result.error <= KNOWN_ERROR;
    result.is_sum = facts->steps == 1 && known;
    result.certain = known || !facts->too_few_steps;
    result.steps_needed = known ? 0 : steps_to_know(facts, result.error);
    if (is_fine(facts)) {
        result.kind = VERDICT_FINE;
    } else if (is_padding(facts)) {
        result.kind = VERDICT_MORE_TOKENS;
    } else {
        result.kind = explain(facts, result.error, &result.spare);
    }
    return result;
}

double verdict_gain(const layer_facts *facts, const verdict *judged)
{
    switch (judged->kind) {
    case VERDICT_NO_LOAD:
    case VERDICT_FINE:
        return 0.0;
    case VERDICT_MORE_TOKENS:
        return fmax(facts->seen - facts->persistent, 0.0);
    case VERDICT_REBALANCE:
        return facts->persistent - facts->planned;
    case VERDICT_REPLICATE:
        return facts->persistent - facts->spare[judged->spare].imbalance;
    case VERDICT_NOTHING_TO_GAIN:
        return facts->persistent - 1.0;
    case VERDICT_TOO_SHORT: /* may be there, where nothing of it was found */
        return fmax(facts->persistent - 1.0, judged->error);
    }
    return 0.0;
}
