/* SPDX-License-Identifier: MIT */
/* Which node each group of experts goes to, all ways tried: exact where groups are few. */
#ifndef EPLB_PLANNER_GROUP_SEARCH_H
#define EPLB_PLANNER_GROUP_SEARCH_H

#include "planner/joint.h"

typedef struct eplb_group_search {
    int32_t groups;
    int32_t nodes; /* each takes groups / nodes of them */
    int32_t scenarios;
    const double *load;      /* [scenarios][groups] */
    const eplb_joint *joint; /* whose objective counts; NULL: the largest load of one scenario */

    int32_t *node;     /* [groups] the way at hand */
    int32_t *best;     /* [groups] the best so far; set by the caller to start from */
    int32_t *room;     /* [nodes] */
    double *node_load; /* [nodes][scenarios] */
    double *saved;     /* [groups][scenarios] loads of a node before the group came */
    double *largest;   /* [scenarios] */
    double value;      /* of the best */
    int64_t tries;     /* left */
} eplb_group_search;

/* Scratch for so many scenarios. */
eplb_status eplb_group_search_init(eplb_group_search *search, const eplb_hooks *hooks,
                                   int32_t groups, int32_t nodes, int32_t scenarios,
                                   eplb_error *error);
void eplb_group_search_free(eplb_group_search *search, const eplb_hooks *hooks);

/* Improves `best`. True: nothing is better than it. */
bool eplb_group_search_run(eplb_group_search *search);

#endif
