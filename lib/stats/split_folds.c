/* SPDX-License-Identifier: MIT */
/* The maximum of means that are known from a window only, by cross-validation. */
#include "stats/split.h"

#include <string.h>

#include <eplb/random.h>

/* Ways of dealing the runs out to the folds, and what they are drawn from: any constant would do.
 */
#define DEALS 64
#define SEED 20240229

static void shuffle(int32_t *order, int32_t count, eplb_random *random)
{
    for (int32_t i = count - 1; i > 0; i--) {
        int32_t other = (int32_t)eplb_random_below(random, (uint64_t)i + 1);
        int32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static int32_t busiest_without(const double *total, const double *fold, int32_t gpus)
{
    int32_t busiest = 0;
    for (int32_t g = 1; g < gpus; g++) {
        if (total[g] - fold[g] > total[busiest] - fold[busiest]) {
            busiest = g;
        }
    }
    return busiest;
}

double eplb_split_cross_validate(const eplb_split_runs *runs, double *chosen, double *fold)
{
    int32_t gpus = runs->gpus;
    const double *total = runs->total;
    int32_t order[EPLB_MOST_RUNS];
    for (int32_t r = 0; r < runs->count; r++) {
        order[r] = r;
    }
    memset(chosen, 0, (size_t)gpus * sizeof(*chosen));
    eplb_random random;
    eplb_random_seed(&random, SEED);
    double sum = 0.0;
    for (int32_t deal = 0; deal < DEALS; deal++) {
        shuffle(order, runs->count, &random);
        for (int32_t f = 0; f < EPLB_FOLDS; f++) {
            memset(fold, 0, ((size_t)gpus + 1) * sizeof(*fold));
            int32_t end = (f + 1) * runs->count / EPLB_FOLDS;
            for (int32_t i = f * runs->count / EPLB_FOLDS; i < end; i++) {
                eplb_split_add_run(runs, order[i], fold);
            }
            int32_t busiest = busiest_without(total, fold, gpus);
            sum += fold[busiest] / total[gpus];
            chosen[busiest] += fold[gpus] / total[gpus] / DEALS;
        }
    }
    return sum / DEALS;
}
