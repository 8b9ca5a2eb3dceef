/* SPDX-License-Identifier: MIT */
/*
 * When to rebalance. A trigger watches how unevenly GPUs are loaded under the placement in force
 * and says, with a reason in words, whether that is worth a new placement: it asks for one when the
 * persistent imbalance (what the expected loads explain, see eplb/split.h) stays above a threshold
 * for a time, at most once in an interval; and it judges a proposed plan by what it gains against
 * what its copies cost. It does not plan.
 *
 * Noise alone never fires it: the persistent part counts only as far as it is known, less two
 * standard errors. Nor does a hot expert by itself: in real layers the hottest expert always
 * has 2.6 to 13 times its fair share, and what matters is whether its GPU feels it. It only chooses
 * the words.
 *
 * Time is the caller's: seconds from any start, never falling. So a trigger can be run on logs.
 *
 * Threads: a trigger belongs to one thread at a time.
 */
#ifndef EPLB_TRIGGER_H
#define EPLB_TRIGGER_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_trigger_options {
    uint32_t struct_size; /* sizeof(eplb_trigger_options), written by eplb_trigger_options_init */
    int32_t reserved;     /* 0 */

    double threshold; /* persistent imbalance, >= 1, above which it counts; default 1.10 */
    double release;   /* 1..threshold: it counts on until it falls to this; default 1.05 */
    double
        sustain_seconds; /* >= 0: how long it must count before a plan is asked for; default 60 */
    double
        min_interval_seconds; /* >= 0, between two rebalances, or two rejected plans; default 300 */

    /* Judging a plan. */
    double min_gain;         /* >= 0: imbalance that a plan must take away; default 0.01 */
    double seconds_per_copy; /* >= 0: serving time that each copy costs; default 0.00088: 44 MB at
                              * 50 GB/s */
    double horizon_seconds;  /* > 0: how long the plan is expected to serve; default 300 */
} eplb_trigger_options;

/* Writes the defaults. */
EPLB_API void eplb_trigger_options_init(eplb_trigger_options *options);

typedef struct eplb_trigger eplb_trigger;

/* Makes a trigger that has seen nothing; `options` NULL: the defaults. EPLB_ERROR_ARGUMENT for
 * options out of range. */
EPLB_API eplb_status eplb_trigger_create(eplb_trigger **out, const eplb_hooks *hooks,
                                         const eplb_trigger_options *options, eplb_error *error);

/* Frees the trigger and sets the pointer to NULL. */
EPLB_API void eplb_trigger_destroy(eplb_trigger **trigger);

typedef enum eplb_decision {
    EPLB_DECISION_NOTHING = 0, /* balanced, only noise, or a plan that does not pay */
    EPLB_DECISION_WAIT = 1,    /* uneven, but not for long enough or too soon after the last time */
    EPLB_DECISION_REBALANCE = 2, /* make a plan; of a plan: carry it out */
} eplb_decision;

/* The name, such as "rebalance". A static string. */
EPLB_API const char *eplb_decision_name(eplb_decision decision);

#define EPLB_REASON_SIZE 256

typedef struct eplb_verdict {
    uint32_t struct_size;          /* set by the caller: how much may be written */
    int32_t decision;              /* an eplb_decision */
    char reason[EPLB_REASON_SIZE]; /* one line, such as "layer 3: persistent imbalance 1.42 (1.60
                                    * seen) for 75 s" */
} eplb_verdict;

/* The state of the layer that is worst off, or of all layers together. */
typedef struct eplb_observation {
    uint32_t struct_size;   /* sizeof(eplb_observation) */
    int32_t layer_id;       /* -1: all layers */
    double persistent;      /* imbalance, >= 1 */
    double standard_error;  /* of it, >= 0 */
    double seen;            /* mean imbalance of steps, >= 1; 0: unknown */
    double hottest_ratio;   /* tokens of the hottest expert / the fair share; 0: unknown */
    int32_t hottest_expert; /* -1: unknown */
    int32_t reserved;       /* 0 */
} eplb_observation;

/*
 * Takes an observation made at `now` and says what to do. Errors, which leave the trigger as it
 * was: EPLB_ERROR_ARGUMENT for a time before the last one, EPLB_ERROR_DATA for numbers out of their
 * range.
 */
EPLB_API eplb_status eplb_trigger_observe(eplb_trigger *trigger, double now,
                                          const eplb_observation *observation,
                                          eplb_verdict *verdict, eplb_error *error);

/*
 * Judges a plan: from imbalance `before` to `after` (both >= 1) with so many copies. It pays when
 * it takes min_gain away and saves more serving time until the horizon, horizon_seconds * (1 -
 * after / before), than its copies cost. One that does not pay starts the interval too: no other
 * plan is asked for before its end. Errors as for eplb_trigger_observe.
 */
EPLB_API eplb_status eplb_trigger_judge(eplb_trigger *trigger, double now, double before,
                                        double after, int64_t copies, eplb_verdict *verdict,
                                        eplb_error *error);

/* Says that another placement is in force since `now`: what was observed before does not count any
 * more, and the interval starts. */
EPLB_API eplb_status eplb_trigger_rebalanced(eplb_trigger *trigger, double now, eplb_error *error);

EPLB_END_DECLS

#endif
