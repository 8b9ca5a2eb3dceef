/* SPDX-License-Identifier: MIT */
/* What `eplb report` tells about one source, for people and as JSON. */
#ifndef EPLB_TOOLS_REPORT_H
#define EPLB_TOOLS_REPORT_H

#include <cjson/cJSON.h>

#include <eplb/waits.h>

#include "report_source.h"
#include "report_verdict.h"
#include "summary.h"

#define REPORT_LINE 512

/* Shares of the hottest 1, 2, 4, ... experts, and of all: enough for EPLB_MAX_EXPERTS. */
#define MOST_SHARES 17

/* Experts by their tokens / the fair share: none, below 1/8, below 1/4, ... below 8, and above. */
#define RATIO_CLASSES 9

typedef struct token_spread {
    double shares[MOST_SHARES];     /* of all tokens; [i]: the hottest 2^i experts, or all */
    double by_ratio[RATIO_CLASSES]; /* experts */
} token_spread;

typedef struct report_row {
    int32_t layer_id;
    eplb_layer_stats stats;
    eplb_split split;
    double bound; /* of any placement in the same slots */
    layer_facts facts;
    verdict verdict;
    char words[REPORT_LINE];
    token_spread spread;
    excess excess;
} report_row;

typedef struct report_spare {
    int32_t slots;
    summary after;
    summary bound;
} report_spare;

/* Whether the rank that the others wait for is the busiest GPU. */
typedef enum wait_agreement {
    WAITS_UNKNOWN, /* GPUs too even to name one, ranks missing, or no such layer */
    WAITS_AGREE,
    WAITS_DISAGREE,
} wait_agreement;

typedef struct report_wait_row {
    eplb_layer_waits waits;
    int32_t busiest_gpu; /* -1: the load has no such layer, or no tokens in it */
    wait_agreement agreement;
} report_wait_row;

/* Measured waits; no layers when none were given. */
typedef struct report_waits {
    int32_t layers;
    report_wait_row *rows; /* [layers], in the order of their ids */
    eplb_waits_info info;
    int32_t unknown;  /* layers that the load does not have, or without tokens */
    int32_t agreeing; /* layers */
    int32_t disagreeing;
} report_waits;

typedef enum report_hint_kind {
    HINT_TOKENS_DISAGREE,
    HINT_WEIGHT_REUSE,
    HINT_TENSOR_PARALLELISM,
    HINT_SMALLER_GROUP,
    HINT_LOADS_WANDER,
    HINT_STEPS_DIFFER,
    HINT_WAITS_DISAGREE,
} report_hint_kind;

#define MOST_HINTS 7

typedef struct report_hint {
    report_hint_kind kind;
    char text[REPORT_LINE];
} report_hint;

typedef struct report {
    const report_values *values;
    const char *name;
    int32_t layers;
    int32_t scored_layers; /* with tokens */
    int32_t experts;
    int32_t gpus; /* live ones */
    int32_t slots;
    int64_t steps;
    eplb_step_stats_info engines;
    report_row *rows;         /* [layers] */
    const report_row **worst; /* [layers], the worst first; those without tokens last */
    summary seen;
    summary persistent;
    summary planned;
    summary seen_replanned;
    summary bound;
    summary padded;
    int32_t spares;
    report_spare spare[MOST_SPARES];
    token_spread spread; /* mean over the layers with tokens */
    excess excess;       /* all layers' steps, and the worst of them */
    layer_facts facts;   /* means over the layers with tokens */
    verdict verdict;
    int32_t verdicts[VERDICT_KINDS]; /* layers */
    char words[REPORT_LINE];
    int32_t hints;
    report_hint hint[MOST_HINTS];
    report_waits waits;
    char next_step[32 * REPORT_LINE]; /* holds any paths */
} report;

/* Fills a report, which is to be given to report_release even when that failed. */
eplb_status report_fill(report *self, const report_source *source, eplb_error *error);
void report_release(report *self);

/* The parts of that: each needs what those before it have filled. */
eplb_status report_measure(report *self, const report_source *source, eplb_error *error);
eplb_status report_plan(report *self, const report_source *source, eplb_error *error);
eplb_status report_compare_waits(report *self, eplb_error *error);
void report_conclude(report *self);
void report_give_hints(report *self);
void report_say_next_step(report *self, const char *source);

bool report_has_hint(const report *self, report_hint_kind kind);

/* The name of a hint in JSON, such as "weight_reuse". */
const char *report_hint_name(report_hint_kind kind);

/* One line about the worst step in which an expert got too many tokens. Returns `text`. */
char *report_excess_words(const excess *worst, char *text, size_t size);

/* Prints it as text; `styled`: with colours and a bar, for a terminal. */
void report_print(const report *self, bool styled, FILE *out);

/* Adds it to the list of sources. */
void report_add_json(const report *self, cJSON *sources);

#endif
