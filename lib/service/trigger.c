/* SPDX-License-Identifier: MIT */
#include <eplb/trigger.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/range.h"
#include "base/text.h"

/* The persistent part counts as far as it is known: less so many standard errors. */
#define STANDARD_ERRORS 2.0
/* An expert this far above its fair share is worth a word. */
#define HOT_EXPERT 2.0

struct eplb_trigger {
    eplb_hooks hooks;
    eplb_trigger_options options;
    double now;
    double since;      /* the imbalance counts since then; NAN: it does not */
    double last_round; /* of the last rebalance or rejected plan; NAN: none yet */
};

void eplb_trigger_options_init(eplb_trigger_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_trigger_options){.struct_size = sizeof(*options),
                                      .threshold = 1.10,
                                      .release = 1.05,
                                      .sustain_seconds = 60.0,
                                      .min_interval_seconds = 300.0,
                                      .min_gain = 0.01,
                                      .seconds_per_copy = 0.00088,
                                      .horizon_seconds = 300.0};
}

/* NaN is in no range. */
static eplb_status check_number(eplb_status failure, const char *name, double value, double low,
                                double high, eplb_error *error)
{
    if (value >= low && value <= high && isfinite(value)) {
        return EPLB_OK;
    }
    if (isfinite(high)) {
        return eplb_error_set(error, failure, "trigger: %s %g not in %g..%g", name, value, low,
                              high);
    }
    return eplb_error_set(error, failure, "trigger: %s %g is not a finite number >= %g", name,
                          value, low);
}

static eplb_status check_options(const eplb_trigger_options *o, eplb_error *error)
{
    const struct {
        const char *name;
        double value;
        double low;
        double high;
    } ranges[] = {
        {"threshold", o->threshold, 1.0, INFINITY},
        {"release", o->release, 1.0, o->threshold},
        {"sustain_seconds", o->sustain_seconds, 0.0, INFINITY},
        {"min_interval_seconds", o->min_interval_seconds, 0.0, INFINITY},
        {"min_gain", o->min_gain, 0.0, INFINITY},
        {"seconds_per_copy", o->seconds_per_copy, 0.0, INFINITY},
        {"horizon_seconds", o->horizon_seconds, 0.0, INFINITY},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        eplb_status status = check_number(EPLB_ERROR_ARGUMENT, ranges[i].name, ranges[i].value,
                                          ranges[i].low, ranges[i].high, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    if (o->horizon_seconds <= 0.0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "trigger: horizon_seconds is not above 0");
    }
    return eplb_check_range("trigger", "reserved", o->reserved, 0, 0, error);
}

eplb_status eplb_trigger_create(eplb_trigger **out, const eplb_hooks *hooks,
                                const eplb_trigger_options *options, eplb_error *error)
{
    eplb_status status = eplb_check_given("trigger", "output", out, error);
    if (status != EPLB_OK) {
        return status;
    }
    *out = NULL;
    eplb_trigger_options complete;
    eplb_trigger_options_init(&complete);
    if (options != NULL && !eplb_struct_in(&complete, sizeof(complete), options)) {
        return eplb_error_set(
            error, EPLB_ERROR_ARGUMENT,
            "trigger: options without struct_size: see eplb_trigger_options_init");
    }
    status = check_options(&complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_trigger *trigger = eplb_alloc_zeroed(&resolved, 1, sizeof(*trigger));
    if (trigger == NULL) {
        return eplb_out_of_memory(error);
    }
    trigger->hooks = resolved;
    trigger->options = complete;
    trigger->now = -INFINITY;
    trigger->since = NAN;
    trigger->last_round = NAN;
    *out = trigger;
    return EPLB_OK;
}

void eplb_trigger_destroy(eplb_trigger **trigger)
{
    if (trigger != NULL && *trigger != NULL) {
        eplb_hooks hooks = (*trigger)->hooks;
        eplb_free(&hooks, *trigger);
        *trigger = NULL;
    }
}

const char *eplb_decision_name(eplb_decision decision)
{
    switch (decision) {
    case EPLB_DECISION_NOTHING:
        return "nothing";
    case EPLB_DECISION_WAIT:
        return "wait";
    case EPLB_DECISION_REBALANCE:
        return "rebalance";
    }
    return "unknown";
}

static void decide(eplb_verdict *verdict, eplb_decision decision, const char *format, ...)
    EPLB_PRINTF(3, 4);

static void decide(eplb_verdict *verdict, eplb_decision decision, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    verdict->decision = (int32_t)decision;
    eplb_format_line(verdict->reason, sizeof(verdict->reason), format, arguments);
    va_end(arguments);
}

static eplb_status check_time(const eplb_trigger *trigger, double now, eplb_error *error)
{
    if (isfinite(now) && now >= trigger->now) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "trigger: time %g is before %g", now,
                          trigger->now);
}

static eplb_status check_observation(const eplb_observation *o, eplb_error *error)
{
    eplb_status status =
        check_number(EPLB_ERROR_DATA, "persistent imbalance", o->persistent, 1.0, INFINITY, error);
    if (status == EPLB_OK) {
        status = check_number(EPLB_ERROR_DATA, "standard error", o->standard_error, 0.0, INFINITY,
                              error);
    }
    if (status == EPLB_OK && o->seen != 0.0) {
        status = check_number(EPLB_ERROR_DATA, "seen imbalance", o->seen, 1.0, INFINITY, error);
    }
    return status == EPLB_OK ? check_number(EPLB_ERROR_DATA, "ratio of the hottest expert",
                                            o->hottest_ratio, 0.0, INFINITY, error)
                             : status;
}

/* "layer 3: persistent imbalance 1.42 (1.60 seen)" */
static void describe(const eplb_observation *o, char *text, size_t size)
{
    char layer[32] = "";
    char seen[48] = "";
    if (o->layer_id >= 0) {
        snprintf(layer, sizeof(layer), "layer %d: ", o->layer_id);
    }
    if (o->seen > 0.0) {
        snprintf(seen, sizeof(seen), " (%.2f seen)", o->seen);
    }
    snprintf(text, size, "%spersistent imbalance %.2f%s", layer, o->persistent, seen);
}

/* What to say of the hottest expert to one who is about to plan. */
static void advise(const eplb_observation *o, char *text, size_t size)
{
    text[0] = '\0';
    if (o->hottest_ratio >= HOT_EXPERT && o->hottest_expert >= 0) {
        snprintf(text, size, "; expert %d has %.1f times its fair share: give it replicas",
                 o->hottest_expert, o->hottest_ratio);
    }
}

/* Seconds until the interval since the last round ends. */
static double interval_left(const eplb_trigger *trigger, double now)
{
    if (isnan(trigger->last_round)) {
        return 0.0;
    }
    double left = trigger->last_round + trigger->options.min_interval_seconds - now;
    return left > 0.0 ? left : 0.0;
}

/* Whether the imbalance counts, with hysteresis: it starts above the threshold and ends at the
 * release, each as far as it is known. */
static bool counts(const eplb_trigger *trigger, const eplb_observation *o)
{
    double known = o->persistent - STANDARD_ERRORS * o->standard_error;
    return isnan(trigger->since) ? known > trigger->options.threshold
                                 : known > trigger->options.release;
}

static void judge_observation(const eplb_trigger *trigger, double now, const eplb_observation *o,
                              eplb_verdict *verdict)
{
    char state[128];
    char advice[96];
    describe(o, state, sizeof(state));
    advise(o, advice, sizeof(advice));
    if (isnan(trigger->since)) {
        bool unsure = o->persistent > trigger->options.threshold;
        decide(verdict, EPLB_DECISION_NOTHING, "%s: %s %.2f", state,
               unsure ? "not surely above" : "not above", trigger->options.threshold);
        return;
    }
    double lasted = now - trigger->since;
    double left = interval_left(trigger, now);
    if (lasted < trigger->options.sustain_seconds) {
        decide(verdict, EPLB_DECISION_WAIT, "%s for %.0f s, not yet for %.0f s", state, lasted,
               trigger->options.sustain_seconds);
    } else if (left > 0.0) {
        decide(verdict, EPLB_DECISION_WAIT, "%s for %.0f s, %.0f s left of the interval", state,
               lasted, left);
    } else {
        decide(verdict, EPLB_DECISION_REBALANCE, "%s for %.0f s%s", state, lasted, advice);
    }
}

/* The caller's verdict, as a complete struct of this library's to be filled. */
static eplb_status check_verdict(const eplb_verdict *verdict, eplb_error *error)
{
    if (verdict == NULL || verdict->struct_size < sizeof(verdict->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "trigger: no verdict with a struct_size");
    }
    return EPLB_OK;
}

eplb_status eplb_trigger_observe(eplb_trigger *trigger, double now,
                                 const eplb_observation *observation, eplb_verdict *verdict,
                                 eplb_error *error)
{
    eplb_observation complete = {
        .struct_size = sizeof(complete), .layer_id = -1, .persistent = 1.0, .hottest_expert = -1};
    eplb_status status = check_verdict(verdict, error);
    if (status == EPLB_OK) {
        status = check_time(trigger, now, error);
    }
    if (status == EPLB_OK &&
        (observation == NULL || !eplb_struct_in(&complete, sizeof(complete), observation))) {
        status = eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                "trigger: no observation with a struct_size");
    }
    if (status == EPLB_OK) {
        status = check_observation(&complete, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    trigger->now = now;
    if (!counts(trigger, &complete)) {
        trigger->since = NAN;
    } else if (isnan(trigger->since)) {
        trigger->since = now;
    }
    eplb_verdict decided = {.struct_size = sizeof(decided)};
    judge_observation(trigger, now, &complete, &decided);
    eplb_struct_out(verdict, &decided, sizeof(decided));
    return EPLB_OK;
}

static void judge_plan(const eplb_trigger_options *o, double before, double after, int64_t copies,
                       eplb_verdict *verdict)
{
    double saved = o->horizon_seconds * (1.0 - after / before);
    double cost = (double)copies * o->seconds_per_copy;
    if (before - after < o->min_gain) {
        decide(verdict, EPLB_DECISION_NOTHING, "%.3f instead of %.3f: less than %.3f to gain",
               after, before, o->min_gain);
    } else if (saved <= cost) {
        decide(verdict, EPLB_DECISION_NOTHING,
               "%.3f instead of %.3f saves %.1f s in %.0f s, but %lld copies cost %.1f s", after,
               before, saved, o->horizon_seconds, (long long)copies, cost);
    } else {
        decide(verdict, EPLB_DECISION_REBALANCE,
               "%.3f instead of %.3f saves %.1f s in %.0f s, %lld copies cost %.1f s", after,
               before, saved, o->horizon_seconds, (long long)copies, cost);
    }
}

eplb_status eplb_trigger_judge(eplb_trigger *trigger, double now, double before, double after,
                               int64_t copies, eplb_verdict *verdict, eplb_error *error)
{
    eplb_status status = check_verdict(verdict, error);
    if (status == EPLB_OK) {
        status = check_time(trigger, now, error);
    }
    if (status == EPLB_OK) {
        status = check_number(EPLB_ERROR_DATA, "imbalance before", before, 1.0, INFINITY, error);
    }
    if (status == EPLB_OK) {
        status = check_number(EPLB_ERROR_DATA, "imbalance after", after, 1.0, INFINITY, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("trigger", "number of copies", copies, 0, INT64_MAX, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    trigger->now = now;
    eplb_verdict decided = {.struct_size = sizeof(decided)};
    judge_plan(&trigger->options, before, after, copies, &decided);
    if (decided.decision == EPLB_DECISION_NOTHING) {
        trigger->last_round = now;
    }
    eplb_struct_out(verdict, &decided, sizeof(decided));
    return EPLB_OK;
}

eplb_status eplb_trigger_rebalanced(eplb_trigger *trigger, double now, eplb_error *error)
{
    eplb_status status = check_time(trigger, now, error);
    if (status == EPLB_OK) {
        trigger->now = now;
        trigger->since = NAN;
        trigger->last_round = now;
    }
    return status;
}
