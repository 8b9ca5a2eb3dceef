/* SPDX-License-Identifier: MIT */
/*
 * Branch and bound for counts that keep two slots a GPU to a load: an expert whose options are
 * chosen in parts gets either at most or more than so many replicas. GLPK says which, and finds
 * prices; that a branch holds no counts is said by prices in own arithmetic only.
 */
#ifndef EPLB_ILP_PAIR_SEARCH_H
#define EPLB_ILP_PAIR_SEARCH_H

#include "ilp/pair_program.h"

/* Branches further down are given up. */
#define EPLB_PAIR_DEPTH 64

typedef enum eplb_pair_answer {
    EPLB_PAIR_REACHED = 0, /* by counts that were tried */
    EPLB_PAIR_NONE = 1,    /* no placement keeps to the load: proven */
    EPLB_PAIR_UNKNOWN = 2,
} eplb_pair_answer;

typedef struct eplb_pair_decision {
    int32_t expert;
    int32_t split;  /* the lower branch has counts up to this */
    bool is_upper;  /* this branch */
    bool is_second; /* the other one has been looked at */
    int32_t trail;  /* its length before this branch */
} eplb_pair_decision;

typedef struct eplb_pair_search {
    eplb_pair_program *program;
    int32_t *trail; /* [options] those that branches exclude, in that order */
    int32_t trail_length;
    eplb_pair_decision decision[EPLB_PAIR_DEPTH];
    int32_t depth;
    int32_t *count; /* [experts] to be tried */
    bool is_sure;   /* every branch that was left is proven to hold nothing */

    /* Tries counts: true when they keep to the load. */
    bool (*reach)(void *context, const int32_t *count);
    void *context;
} eplb_pair_search;

/* `reach` and `context` are the caller's to set. Free it in any case. */
eplb_status eplb_pair_search_init(eplb_pair_search *search, eplb_pair_program *program,
                                  eplb_error *error);
void eplb_pair_search_free(eplb_pair_search *search, const eplb_hooks *hooks);

/* Searches the load that the program is set to, with prices at hand, until the program's nodes are
 * `most_nodes`. */
eplb_status eplb_pair_search_run(eplb_pair_search *search, int64_t most_nodes,
                                 eplb_pair_answer *answer, eplb_error *error);

#endif
