/* SPDX-License-Identifier: MIT */
/* Replica counts, place by place, and what they say about every packing. */
#include "ilp/exact_search.h"

/* Counts near those that the task starts from go first: they are soon better. */
static void choose_count(eplb_exact *exact, int32_t place, int32_t slots)
{
    if (place == exact->experts) {
        eplb_exact_pack(exact);
        return;
    }
    int32_t low = slots - exact->most_sum[place + 1];
    int32_t high = slots - exact->fewest_sum[place + 1];
    low = low > exact->fewest[place] ? low : exact->fewest[place];
    high = high < exact->most[place] ? high : exact->most[place];
    if ((exact->twins >> place & 1u) != 0 && high > exact->count[place - 1]) {
        high = exact->count[place - 1];
    }
    for (int32_t i = 0; i <= 2 * exact->gpus; i++) {
        int32_t c = exact->usual[place] + (i % 2 == 0 ? -i / 2 : (i + 1) / 2);
        if (c < low || c > high) {
            continue;
        }
        exact->count[place] = c;
        eplb_exact_spend(exact, exact->bound_nodes);
        int32_t spare = slots - c - exact->fewest_sum[place + 1];
        if (eplb_exact_enter(exact, eplb_exact_count_bound(exact, place + 1, spare))) {
            choose_count(exact, place + 1, slots - c);
        }
    }
}

void eplb_exact_search_counts(eplb_exact *exact)
{
    choose_count(exact, 0, exact->task->slots);
}
