/* SPDX-License-Identifier: MIT */
/* What to do about a layer, from what was measured of it. Pure functions of numbers. */
#ifndef EPLB_TOOLS_REPORT_VERDICT_H
#define EPLB_TOOLS_REPORT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The thresholds. Imbalance below 1.1 and padding below twofold cost less than what else a serving
 * step waits for. From tenfold padding on nine of ten rows that are multiplied are filling, and no
 * placement matters; unless padding comes from imbalance, as where one expert gets all tokens: what
 * is left of it when every rank has as many padded rows as another must be tenfold by itself, or
 * most of it. Real layers
 * always have a hottest expert of 2.6 times the fair share or more, so that alone is no reason: its
 * GPU must feel it.
 */
#define FINE_IMBALANCE 1.1
#define FINE_PADDING 2.0
#define HOPELESS_PADDING 10.0
#define HOT_EXPERT 2.0
#define STANDARD_ERRORS 2.0 /* what must be beyond doubt is so by as many */
#define KNOWN_ERROR 0.01    /* below it the persistent part is known: see eplb/split.h */
#define MOST 0.5            /* a remedy that takes this share of the excess takes most of it */
#define LEAST_GAIN 0.05     /* of imbalance; less is not worth any copies */

typedef enum verdict_kind {
    VERDICT_NO_LOAD,
    VERDICT_FINE,
    VERDICT_MORE_TOKENS,     /* padding or noise: only more tokens in a step help */
    VERDICT_REBALANCE,       /* another placement in the same slots helps */
    VERDICT_REPLICATE,       /* only spare slots help */
    VERDICT_NOTHING_TO_GAIN, /* persistent, and neither helps */
    VERDICT_TOO_SHORT,       /* the window is too short to tell */
} verdict_kind;

#define VERDICT_KINDS 7

/* The name in tables and JSON, such as "more_tokens". */
const char *verdict_name(verdict_kind kind);

/* What a plan with so many more slots can do. */
typedef struct spare_slots {
    int32_t slots;
    double imbalance;
    double bound;
} spare_slots;

#define MOST_SPARES 3

/* One layer, or the means over several. */
typedef struct layer_facts {
    int64_t steps;
    bool too_few_steps; /* to find the standard error from them: see eplb_split */
    int32_t gpus;
    double assignments; /* of a step */
    double tokens;      /* of a step; 0: unknown */
    double seen;
    double persistent;
    double standard_error;  /* meaningless with too few steps */
    double dispersion;      /* 0: unknown */
    double padded;          /* rows of the worst rank / mean useful rows */
    double padded_ratio;    /* all padded rows / all useful rows */
    double planned;         /* imbalance that a plan in the same slots has */
    double seen_replanned;  /* mean imbalance of the same steps under that plan */
    int32_t hottest_expert; /* -1: not said */
    double hottest_ratio;
    bool hottest_is_felt; /* the busiest GPU holds it */
    int32_t spares;
    spare_slots spare[MOST_SPARES]; /* ascending slots */
} layer_facts;

typedef struct verdict {
    verdict_kind kind;
    bool certain;         /* false: so it is if what was seen lasts */
    bool is_sum;          /* one step of so many tokens that chance plays no part */
    double error;         /* standard error of the persistent part */
    int64_t steps_needed; /* to know the persistent part; 0: it is known */
    int32_t spare;        /* the fewest spare slots that help, an index; -1: none do */
} verdict;

verdict judge(const layer_facts *facts);

/* Whether neither imbalance nor padding is worth a look. */
bool is_fine(const layer_facts *facts);

/* Whether rows are padded so much that no placement matters. */
bool is_hopelessly_padded(const layer_facts *facts);

/* Whether that or other padding is what more tokens are asked for, and not noise. */
bool is_padding(const layer_facts *facts);

/* What acting on the verdict would take away, in units of imbalance. Padding is not in it: all
 * layers of a step have about as much. */
double verdict_gain(const layer_facts *facts, const verdict *judged);

/* Says it in words, without a full stop. Returns `text`, which holds `size` bytes. */
char *verdict_words(const layer_facts *facts, const verdict *judged, char *text, size_t size);

#endif
