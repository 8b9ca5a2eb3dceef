/* SPDX-License-Identifier: MIT */
/* Lower bounds from replica counts, chosen or limited, before anything is packed. */
#include "ilp/exact_search.h"

/* Sums of the smallest shares. */
static void sum_least(eplb_exact *exact, const int32_t *sorted)
{
    exact->least[0] = 0.0;
    for (int32_t m = 0; m < exact->most_room; m++) {
        exact->least[m + 1] = exact->least[m] + exact->low[sorted[exact->experts - 1 - m]];
    }
}

/* By insertion: the order is nearly that of the call before, and needs no scratch. */
static void sort_falling(int32_t *sorted, int32_t count, const double *key)
{
    for (int32_t i = 1; i < count; i++) {
        int32_t item = sorted[i];
        int32_t j = i;
        for (; j > 0 && key[sorted[j - 1]] < key[item]; j--) {
            sorted[j] = sorted[j - 1];
        }
        sorted[j] = item;
    }
}

/* Least load beside a replica of an expert with so many: one of them is on a GPU with at least as
 * many slots as the GPU at that place of all, sorted. */
static double load_beside(const eplb_exact *exact, int32_t copies)
{
    return exact->least[exact->room_rising[copies - 1] - 1];
}

/* Of the n g + 1 largest replicas on g GPUs, n + 1 different ones are on the same GPU. */
static double crowded_load(const eplb_exact *exact, const int32_t *sorted)
{
    double largest = 0.0;
    int32_t replicas = 0;
    int32_t n = 1;
    for (int32_t i = 0; i < exact->experts; i++) {
        replicas += exact->copies[sorted[i]];
        for (; replicas > n * exact->gpus; n++) {
            double load = 0.0;
            for (int32_t j = 0; j <= n; j++) {
                load += exact->low[sorted[i - j]];
            }
            int32_t others = exact->room_rising[0] - n - 1;
            load += others > 0 ? exact->least[others] : 0.0;
            largest = load > largest ? load : largest;
        }
    }
    return largest;
}

/* Least largest load of a scenario, given what shares and replicas are at least. */
static double bound_scenario(eplb_exact *exact, int32_t scenario)
{
    int32_t *sorted = exact->sorted + (size_t)scenario * (size_t)exact->experts;
    sort_falling(sorted, exact->experts, exact->low);
    sum_least(exact, sorted);
    double bound = exact->mean[scenario];
    for (int32_t p = 0; p < exact->experts; p++) {
        double load = exact->low[p] + load_beside(exact, exact->copies[p]);
        bound = load > bound ? load : bound;
    }
    double crowded = crowded_load(exact, sorted);
    return crowded > bound ? crowded : bound;
}

double eplb_exact_count_bound(eplb_exact *exact, int32_t chosen, int32_t spare)
{
    double value = 0.0;
    for (int32_t k = 0; k < exact->scenarios; k++) {
        const double *load = exact->load + k;
        for (int32_t p = 0; p < exact->experts; p++, load += exact->scenarios) {
            int32_t fewest = p < chosen ? exact->count[p] : exact->fewest[p];
            int32_t most = p < chosen ? fewest : fewest + spare;
            most = most < exact->most[p] ? most : exact->most[p];
            exact->copies[p] = fewest;
            exact->low[p] = *load / (double)most;
        }
        exact->floor[k] = bound_scenario(exact, k);
        value = eplb_exact_add(exact, value, k, exact->floor[k]);
    }
    return value;
}

/* Least objective when the expert at a place has so many replicas; others as many as they may. */
static double bound_with(eplb_exact *exact, int32_t place, int32_t count)
{
    double value = 0.0;
    for (int32_t k = 0; k < exact->scenarios; k++) {
        const double *load = exact->load + k;
        for (int32_t p = 0; p < exact->experts; p++, load += exact->scenarios) {
            exact->low[p] = *load / (double)(p == place ? count : exact->most[p]);
        }
        int32_t *sorted = exact->sorted + (size_t)k * (size_t)exact->experts;
        sort_falling(sorted, exact->experts, exact->low);
        sum_least(exact, sorted);
        double bound = exact->low[place] + load_beside(exact, count);
        bound = bound > exact->mean[k] ? bound : exact->mean[k];
        value = eplb_exact_add(exact, value, k, bound);
    }
    return value;
}

/* Sums the limits from each place on. */
static void sum_limits(eplb_exact *exact)
{
    exact->fewest_sum[exact->experts] = 0;
    exact->most_sum[exact->experts] = 0;
    for (int32_t p = exact->experts - 1; p >= 0; p--) {
        exact->fewest_sum[p] = exact->fewest_sum[p + 1] + exact->fewest[p];
        exact->most_sum[p] = exact->most_sum[p + 1] + exact->most[p];
    }
}

/* Takes away from the most replicas what the fewest of the others need. */
static bool limit_most(eplb_exact *exact)
{
    sum_limits(exact);
    int32_t spare = exact->task->slots - exact->fewest_sum[0];
    bool changed = false;
    for (int32_t p = 0; p < exact->experts; p++) {
        if (exact->most[p] > exact->fewest[p] + spare) {
            exact->most[p] = exact->fewest[p] + spare;
            changed = true;
        }
    }
    return changed;
}

static bool raise_fewest(eplb_exact *exact)
{
    bool changed = false;
    for (int32_t p = 0; p < exact->experts; p++) {
        while (exact->fewest[p] <= exact->most[p] &&
               bound_with(exact, p, exact->fewest[p]) >= exact->cutoff) {
            exact->fewest[p]++;
            changed = true;
        }
    }
    return changed;
}

static bool can_fill(const eplb_exact *exact)
{
    for (int32_t p = 0; p < exact->experts; p++) {
        if (exact->fewest[p] > exact->most[p]) {
            return false;
        }
    }
    return exact->fewest_sum[0] <= exact->task->slots && exact->most_sum[0] >= exact->task->slots;
}

bool eplb_exact_limit_counts(eplb_exact *exact)
{
    int32_t most = exact->task->max_replicas;
    for (int32_t p = 0; p < exact->experts; p++) {
        exact->fewest[p] = exact->required[p];
        exact->most[p] = most < exact->gpus ? most : exact->gpus;
    }
    bool changed;
    do {
        changed = limit_most(exact);
        changed = can_fill(exact) && (raise_fewest(exact) || changed);
    } while (changed);
    sum_limits(exact);
    return can_fill(exact);
}
