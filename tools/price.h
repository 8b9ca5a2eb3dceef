/* SPDX-License-Identifier: MIT */
/* What copies cost and when they have paid: the options that say it, and the answer. */
#ifndef EPLB_TOOLS_PRICE_H
#define EPLB_TOOLS_PRICE_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include <eplb/price.h>

#include "options.h"

typedef struct price_values {
    size_list bandwidth; /* within a node, between nodes */
    int32_t interval;    /* 0: the library's default, like the others */
    double step_time;
    double stall; /* NOT_GIVEN: the default */
} price_values;

/* Help texts of the options that say it. */
#define BANDWIDTH_HELP                                                                             \
    "bytes per second that a GPU gets from its own node and from others, while it sends as many "  \
    "(default 400G,50G); without --gpus-per-node all are others"
#define INTERVAL_HELP                                                                              \
    "steps until the next rebalance, in which copies have to pay for themselves (default 3000)"
#define STEP_TIME_HELP                                                                             \
    "seconds that the MoE layers of a step take, all together (default 0.0005 for each)"
#define STALL_HELP                                                                                 \
    "share of the time of copies that steps wait, from 0 (copies run beside them) to 1 (default)"

/* The name of one of these options that was given; NULL: none was. */
const char *price_option_given(const price_values *self);

/* What each option alone cannot tell, for the command of that name. Returns an exit code, with a
 * message. */
int price_values_check(const price_values *self, const char *name);

/* How copies are judged. */
typedef struct price_terms {
    eplb_price_options options;
    bool assumes_bytes; /* nothing says how large an expert is */
} price_terms;

/* expert_bytes 0: not known. has_nodes: something says which GPUs share a node; else every copy
 * counts as one between nodes. */
price_terms price_terms_make(const price_values *values, int64_t expert_bytes, int32_t layers,
                             bool has_nodes);

/* The price of a copy in units of a layer's imbalance, for a cluster. */
eplb_status price_of_copy(const price_terms *self, const eplb_cluster *cluster, double *price,
                          eplb_error *error);

/* Judges what the schedule of a change costs and gains: `layers` with load go from a mean imbalance
 * to another. copies [gpus] gets who sends and receives. */
eplb_status price_judge(const price_terms *self, const eplb_migration *migration, int32_t layers,
                        double before, double after, eplb_gpu_copies *copies, eplb_payoff *payoff,
                        eplb_error *error);

/* "14 copies (588 MiB, 12 ms) pay after ..." and a full stop. */
void price_print(const price_terms *self, const eplb_payoff *payoff, FILE *out);

/* Adds an object `name`, or null where `payoff` is NULL. */
void json_add_payoff(cJSON *object, const char *name, const price_terms *terms,
                     const eplb_payoff *payoff);

#endif
