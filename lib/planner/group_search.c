/* SPDX-License-Identifier: MIT */
#include "planner/group_search.h"

#include "base/memory.h"

/* A group put on a node is one try: 8 groups on 4 nodes take some hundred. */
#define MOST_TRIES 20000
/* More groups are not tried: recursion is as deep as they are many. */
#define MOST_GROUPS 64

eplb_status eplb_group_search_init(eplb_group_search *search, const eplb_hooks *hooks,
                                   int32_t groups, int32_t nodes, int32_t scenarios,
                                   eplb_error *error)
{
    size_t items = (size_t)groups;
    size_t bins = (size_t)nodes;
    size_t count = (size_t)scenarios; /* at most 2^12, the others at most 2^16: no overflow */
    *search = (eplb_group_search){.groups = groups, .nodes = nodes};
    search->node = eplb_alloc(hooks, items, sizeof(*search->node));
    search->best = eplb_alloc(hooks, items, sizeof(*search->best));
    search->room = eplb_alloc(hooks, bins, sizeof(*search->room));
    search->node_load = eplb_alloc(hooks, bins * count, sizeof(*search->node_load));
    search->saved = eplb_alloc(hooks, items * count, sizeof(*search->saved));
    search->largest = eplb_alloc(hooks, count, sizeof(*search->largest));
    if (search->node == NULL || search->best == NULL || search->room == NULL ||
        search->node_load == NULL || search->saved == NULL || search->largest == NULL) {
        eplb_group_search_free(search, hooks);
        return eplb_out_of_memory(error);
    }
    return EPLB_OK;
}

void eplb_group_search_free(eplb_group_search *search, const eplb_hooks *hooks)
{
    eplb_free(hooks, search->node);
    eplb_free(hooks, search->best);
    eplb_free(hooks, search->room);
    eplb_free(hooks, search->node_load);
    eplb_free(hooks, search->saved);
    eplb_free(hooks, search->largest);
    *search = (eplb_group_search){0};
}

static void clear(eplb_group_search *search)
{
    for (int32_t n = 0; n < search->nodes; n++) {
        search->room[n] = search->groups / search->nodes;
        for (int32_t k = 0; k < search->scenarios; k++) {
            search->node_load[n * search->scenarios + k] = 0.0;
        }
    }
}

static void put(eplb_group_search *search, int32_t group, int32_t node)
{
    double *load = search->node_load + (size_t)node * (size_t)search->scenarios;
    double *saved = search->saved + (size_t)group * (size_t)search->scenarios;
    for (int32_t k = 0; k < search->scenarios; k++) {
        saved[k] = load[k];
        load[k] += search->load[(size_t)k * (size_t)search->groups + (size_t)group];
    }
    search->node[group] = node;
    search->room[node]--;
}

static void take_back(eplb_group_search *search, int32_t group)
{
    int32_t node = search->node[group];
    memcpy(search->node_load + (size_t)node * (size_t)search->scenarios,
           search->saved + (size_t)group * (size_t)search->scenarios,
           (size_t)search->scenarios * sizeof(double));
    search->room[node]++;
}

/* The objective of the nodes' loads: it only grows as groups are put on them. */
static double value_of(eplb_group_search *search)
{
    for (int32_t k = 0; k < search->scenarios; k++) {
        double largest = 0.0;
        for (int32_t n = 0; n < search->nodes; n++) {
            double load = search->node_load[n * search->scenarios + k];
            largest = load > largest ? load : largest;
        }
        search->largest[k] = largest;
    }
    return search->joint != NULL ? eplb_joint_value(search->joint, search->largest)
                                 : search->largest[0];
}

/* Tries all ways for this group and those after it. Nodes are alike: of the empty ones only the
 * first is tried. False when tries ran out. */
static bool try_from(eplb_group_search *search, int32_t group)
{
    if (group == search->groups) {
        search->value = value_of(search);
        memcpy(search->best, search->node, (size_t)search->groups * sizeof(*search->best));
        return true;
    }
    bool seen_empty = false;
    for (int32_t n = 0; n < search->nodes && !seen_empty; n++) {
        if (search->room[n] == 0) {
            continue;
        }
        seen_empty = search->room[n] == search->groups / search->nodes;
        if (search->tries-- <= 0) {
            return false;
        }
        put(search, group, n);
        bool complete = value_of(search) >= search->value || try_from(search, group + 1);
        take_back(search, group);
        if (!complete) {
            return false;
        }
    }
    return true;
}

bool eplb_group_search_run(eplb_group_search *search)
{
    clear(search);
    for (int32_t group = 0; group < search->groups; group++) {
        put(search, group, search->best[group]);
    }
    search->value = value_of(search);
    search->tries = MOST_TRIES;
    clear(search);
    return search->groups <= MOST_GROUPS && try_from(search, 0);
}
