/* SPDX-License-Identifier: MIT */
/* Variance between runs, which need not be independent to begin with. */
#include "stats/split.h"

/* Joined runs are not fewer: a variance from few runs is worth little. */
#define FEWEST_RUNS 8

/* Runs are taken to be independent when pairs of them do not show a larger variance of the window's
 * mean than this. If each were like the next, pairs would show twice as much. */
#define MOST_GROWTH 1.25

void eplb_split_add_run(const eplb_split_runs *runs, int32_t run, double *sum)
{
    int32_t first = run * runs->joined;
    int32_t end = first + runs->joined;
    end = end < runs->layer->runs ? end : runs->layer->runs;
    for (int32_t r = first; r < end; r++) {
        const double *loads = eplb_step_run(runs->layer, r, runs->gpus);
        for (int32_t g = 0; g <= runs->gpus; g++) {
            sum[g] += loads[g];
        }
    }
}

double eplb_split_run_variance(const eplb_split_runs *runs, int32_t gpu)
{
    double all = runs->total[runs->gpus];
    double share = runs->total[gpu] / all;
    double sum = 0.0;
    double difference = 0.0;
    for (int32_t r = 0; r < runs->layer->runs; r++) {
        const double *loads = eplb_step_run(runs->layer, r, runs->gpus);
        difference += loads[gpu] / all - loads[runs->gpus] / all * share;
        if ((r + 1) % runs->joined == 0 || r + 1 == runs->layer->runs) {
            sum += difference * difference;
            difference = 0.0;
        }
    }
    return sum * runs->count / (runs->count - 1);
}

double eplb_split_all_run_variance(const eplb_split_runs *runs)
{
    double sum = 0.0;
    for (int32_t g = 0; g < runs->gpus; g++) {
        sum += eplb_split_run_variance(runs, g);
    }
    return sum;
}

void eplb_split_join(eplb_split_runs *runs)
{
    eplb_split_runs wider = *runs;
    wider.joined *= 2;
    wider.count = (runs->count + 1) / 2;
    while (wider.count >= FEWEST_RUNS &&
           eplb_split_all_run_variance(&wider) > MOST_GROWTH * eplb_split_all_run_variance(runs)) {
        *runs = wider;
        wider.joined *= 2;
        wider.count = (runs->count + 1) / 2;
    }
}
