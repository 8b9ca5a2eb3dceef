/* SPDX-License-Identifier: MIT */
/* One row into the sums of its layer. */
#include "stats/step_stats.h"

#include <math.h>
#include <string.h>

#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "model/row.h"
#include "stats/log_bins.h"

/* Loads as SGLang's utilisation adds them to both sides against a division by zero. */
#define SGLANG_EPSILON 1e-5

/* A hot expert may exceed the tokens of its step by this share: counts can be averages. */
#define ROUNDING 1e-9

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double whole_tiles(double rows, double tile)
{
    double tiles = rows / tile;
    if (tiles >= 0x1p53) {
        return rows;
    }
    double whole = (double)(int64_t)tiles;
    return (whole < tiles ? whole + 1.0 : whole) * tile;
}

static void add_padding(const eplb_step_stats *stats, eplb_step_layer *layer, const double *counts,
                        double total)
{
    const eplb_cluster *cluster = stats->placement->cluster;
    double all = 0.0;
    double most = 0.0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        double padded = 0.0;
        for (int32_t s = cluster->first_slot[g]; s < cluster->first_slot[g + 1]; s++) {
            int32_t e = layer->row[s];
            if (e >= 0) {
                padded += whole_tiles(counts[e] / layer->replicas[e], stats->options.tile);
            }
        }
        all += padded;
        most = larger(most, padded);
    }
    layer->padded += all / total;
    layer->padded_worst += most / total * eplb_cluster_live_gpus(cluster);
}

static void add_experts(const eplb_step_stats *stats, eplb_step_layer *layer, const double *counts,
                        double total)
{
    int32_t experts = stats->placement->experts;
    double room = stats->options.capacity_factor * (total / experts);
    double hottest = 0.0;
    int32_t touched = 0;
    for (int32_t e = 0; e < experts; e++) {
        layer->experts[e] += counts[e];
        layer->dropped += larger(counts[e] - room, 0.0);
        touched += counts[e] > 0.0;
        hottest = larger(hottest, counts[e]);
    }
    layer->touched += (double)touched / experts;
    layer->impossible_steps += hottest / total * stats->options.topk > 1.0 + ROUNDING;
}

static void count_in_histogram(eplb_step_layer *layer, int32_t bins, double imbalance)
{
    uint64_t bin = eplb_log_bin(imbalance, EPLB_BIN_BITS);
    uint64_t last = (uint64_t)bins - 1;
    layer->histogram[bin < last ? bin : last]++;
}

static void add_imbalance(const eplb_step_stats *stats, eplb_step_layer *layer, double imbalance,
                          double mean)
{
    int32_t live = eplb_cluster_live_gpus(stats->placement->cluster);
    layer->imbalance += imbalance;
    layer->imbalance_worst = larger(layer->imbalance_worst, imbalance);
    layer->idle += 1.0 - 1.0 / imbalance;
    if (live > 1) {
        double others = larger(live - imbalance, 0.0) / (live - 1); /* their mean / mean */
        layer->idle_others += 1.0 - others / imbalance;
    }
    layer->utilisation += (mean + SGLANG_EPSILON) / (mean * imbalance + SGLANG_EPSILON);
    count_in_histogram(layer, stats->bins, imbalance);
}

/* The mean and the variance of shares as they come (West, "Updating mean and variance estimates",
 * CACM 22, 1979). */
static void add_shares(eplb_step_layer *layer, const double *gpu_loads, int32_t gpus, double total)
{
    double weight = total / layer->assignments;
    for (int32_t g = 0; g < gpus; g++) {
        double share = gpu_loads[g] / total;
        double difference = share - layer->share[g];
        layer->share[g] += difference * weight;
        layer->scatter[g] += total * difference * (share - layer->share[g]);
    }
}

static void merge_runs(eplb_step_layer *layer, int32_t gpus)
{
    for (int32_t r = 0; r < EPLB_MOST_RUNS / 2; r++) {
        double *to = eplb_step_run(layer, r, gpus);
        const double *first = eplb_step_run(layer, 2 * r, gpus);
        const double *second = eplb_step_run(layer, 2 * r + 1, gpus);
        for (int32_t i = 0; i <= gpus; i++) {
            to[i] = first[i] + second[i];
        }
    }
    layer->runs = EPLB_MOST_RUNS / 2;
    layer->run_length *= 2;
}

static void add_to_run(eplb_step_layer *layer, const double *gpu_loads, int32_t gpus, double total)
{
    if (layer->runs == 0 || layer->filled == layer->run_length) {
        if (layer->runs == EPLB_MOST_RUNS) {
            merge_runs(layer, gpus);
        }
        layer->filled = 0;
        memset(eplb_step_run(layer, layer->runs++, gpus), 0, ((size_t)gpus + 1) * sizeof(double));
    }
    double *run = eplb_step_run(layer, layer->runs - 1, gpus);
    for (int32_t g = 0; g < gpus; g++) {
        run[g] += gpu_loads[g];
    }
    run[gpus] += total;
    layer->filled++;
}

/* Closes the step that was being added when another one comes. */
static void enter_step(eplb_step_stats *stats, int64_t step)
{
    if (step == stats->step) {
        return;
    }
    stats->scattered |= step < stats->step;
    if (stats->step_busiest > 0.0) {
        stats->balancedness += stats->step_mean / stats->step_busiest;
        stats->whole_steps++;
    }
    stats->step = step;
    stats->step_mean = 0.0;
    stats->step_busiest = 0.0;
}

static void add_row(eplb_step_stats *stats, eplb_step_layer *layer, const double *counts,
                    double total)
{
    const eplb_cluster *cluster = stats->placement->cluster;
    int32_t experts = stats->placement->experts;
    eplb_gpu_loads(cluster, layer->row, layer->replicas, counts, stats->gpu_loads);
    double imbalance = eplb_imbalance_of(cluster, counts, experts, stats->gpu_loads);
    double mean = total / eplb_cluster_live_gpus(cluster);
    layer->steps++;
    layer->assignments += total;
    add_imbalance(stats, layer, imbalance, mean);
    add_experts(stats, layer, counts, total);
    add_padding(stats, layer, counts, total);
    add_shares(layer, stats->gpu_loads, cluster->gpus, total);
    add_to_run(layer, stats->gpu_loads, cluster->gpus, total);
    stats->step_mean += mean;
    stats->step_busiest += mean * imbalance;
}

static eplb_status check_row(const eplb_step_stats *stats, int64_t step, int32_t layer,
                             const double *counts, eplb_error *error)
{
    eplb_status status = eplb_check_given("step statistics", "counts", counts, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("step statistics", "layer", layer, 0,
                                  stats->placement->layers - 1, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("step statistics", "step", step, 0, INT64_MAX, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t layer_id = stats->placement->layer_ids.ids[layer];
    int64_t last = stats->layers[layer].last_step;
    if (step <= last) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "layer %d: step %lld after step %lld; steps must ascend, and rows of "
                              "several ranks be summed",
                              layer_id, (long long)step, (long long)last);
    }
    return eplb_row_check("step statistics", layer_id, counts, stats->placement->experts, error);
}

eplb_status eplb_step_stats_add(eplb_step_stats *stats, int64_t step, int32_t layer,
                                const double *counts, eplb_error *error)
{
    eplb_status status = check_row(stats, step, layer, counts, error);
    if (status != EPLB_OK) {
        return status;
    }
    double total = 0.0;
    for (int32_t e = 0; e < stats->placement->experts; e++) {
        total += counts[e];
    }
    eplb_step_layer *to = &stats->layers[layer];
    if (!isfinite(to->assignments + total)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                              "layer %d: the sum of the loads up to step %lld is too large",
                              stats->placement->layer_ids.ids[layer], (long long)step);
    }
    to->last_step = step;
    enter_step(stats, step);
    if (total > 0.0) {
        add_row(stats, to, counts, total);
    } else {
        to->skipped++;
    }
    return EPLB_OK;
}
