/* SPDX-License-Identifier: MIT */
#include <eplb/split.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "stats/split.h"

/* A variance of a mean share that is nothing but rounding. */
#define NEGLIGIBLE 1e-24

typedef struct splitter {
    const eplb_step_stats *stats;
    eplb_split_runs runs;
    int32_t live;
    double *total;   /* [gpus + 1] of the runs */
    double *chosen;  /* [gpus] scratch */
    double *fold;    /* [gpus + 1] scratch */
    double *experts; /* [2 * experts] scratch */
} splitter;

/* Without libm, which would otherwise be needed for this alone. Newton's method from above falls
 * until it meets the root. */
static double square_root(double value)
{
    if (!(value > 0.0)) {
        return 0.0;
    }
    double root = value > 1.0 ? value : 1.0;
    for (double next = 0.5 * (root + value / root); next < root;) {
        root = next;
        next = 0.5 * (root + value / root);
    }
    return root;
}

static void sum_runs(splitter *s, eplb_split *split)
{
    int32_t gpus = s->runs.gpus;
    for (int32_t r = 0; r < s->runs.count; r++) {
        eplb_split_add_run(&s->runs, r, s->total);
    }
    int32_t busiest = 0;
    for (int32_t g = 1; g < gpus; g++) {
        busiest = s->total[g] > s->total[busiest] ? g : busiest;
    }
    double imbalance = s->total[busiest] / s->total[gpus] * s->live;
    split->busiest_gpu = busiest;
    split->uncorrected = imbalance > 1.0 ? imbalance : 1.0;
}

static void correct(splitter *s, eplb_split *split)
{
    double corrected = eplb_split_cross_validate(&s->runs, s->chosen, s->fold) * s->live;
    corrected = corrected < split->uncorrected ? corrected : split->uncorrected;
    split->persistent = corrected > 1.0 ? corrected : 1.0;
    double bias = split->uncorrected - split->persistent; /* at most, as a rule */
    double variance = bias * bias;
    for (int32_t g = 0; g < s->runs.gpus; g++) {
        if (s->chosen[g] > 0.0) {
            variance += s->chosen[g] * eplb_split_run_variance(&s->runs, g) * s->live * s->live;
        }
    }
    double count = s->runs.count;
    split->standard_error = square_root(variance * (count - 1.0) / (count - 3.0));
}

/* The two ratios of variances. */
static void compare_variances(splitter *s, eplb_split *split)
{
    const eplb_step_layer *layer = s->runs.layer;
    const eplb_placement *placement = s->stats->placement;
    double scatter = 0.0;
    for (int32_t g = 0; g < s->runs.gpus; g++) {
        scatter += layer->scatter[g];
    }
    double of_steps = scatter / (double)(layer->steps - 1); /* for each assignment of a step */
    double independent = eplb_split_independent_variance(
        layer, placement->cluster, placement->experts, s->stats->options.topk, s->experts);
    double of_mean = of_steps / layer->assignments;
    split->dispersion = independent > 0.0 ? of_steps / independent : 0.0;
    split->drift = of_mean > NEGLIGIBLE ? eplb_split_all_run_variance(&s->runs) / of_mean : 0.0;
}

static void split_layer(splitter *s, eplb_split *split)
{
    sum_runs(s, split);
    split->seen = s->runs.layer->imbalance / (double)split->steps;
    split->persistent = split->uncorrected;
    split->too_short = s->runs.count < EPLB_FOLDS;
    eplb_split_join(&s->runs);
    split->runs = s->runs.count;
    if (!split->too_short) {
        correct(s, split);
    }
    if (split->steps > 1) {
        compare_variances(s, split);
    }
    split->noise = split->seen - split->persistent;
}

static eplb_status split_with_scratch(splitter *s, eplb_split *split, eplb_error *error)
{
    size_t gpus = (size_t)s->runs.gpus;
    size_t experts = (size_t)s->stats->placement->experts;
    const eplb_hooks *hooks = &s->stats->hooks;
    double *scratch = eplb_alloc_zeroed(hooks, 3 * gpus + 2 + 2 * experts, sizeof(*scratch));
    if (scratch == NULL) {
        return eplb_out_of_memory(error);
    }
    s->total = scratch;
    s->runs.total = scratch;
    s->fold = s->total + gpus + 1;
    s->chosen = s->fold + gpus + 1;
    s->experts = s->chosen + gpus;
    split_layer(s, split);
    eplb_free(hooks, scratch);
    return EPLB_OK;
}

eplb_status eplb_step_stats_split(const eplb_step_stats *stats, int32_t layer, eplb_split *result,
                                  eplb_error *error)
{
    const eplb_placement *placement = stats->placement;
    eplb_status status = eplb_check_range("split", "layer", layer, 0, placement->layers - 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (result == NULL || result->struct_size < sizeof(result->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "split: no result with a struct_size");
    }
    const eplb_step_layer *from = &stats->layers[layer];
    splitter s = {
        .stats = stats,
        .runs = {.layer = from, .gpus = placement->cluster->gpus, .joined = 1, .count = from->runs},
        .live = eplb_cluster_live_gpus(placement->cluster),
    };
    eplb_split split = {
        .struct_size = sizeof(split),
        .layer_id = placement->layer_ids.ids[layer],
        .steps = from->steps,
        .busiest_gpu = -1,
    };
    if (split.steps > 0) {
        status = split_with_scratch(&s, &split, error);
    }
    if (status == EPLB_OK) {
        eplb_struct_out(result, &split, sizeof(split));
    }
    return status;
}
