/* SPDX-License-Identifier: MIT */
#include "stats/step_stats.h"

#include "base/memory.h"
#include "base/range.h"
#include "model/placement.h"
#include "stats/log_bins.h"

/* The lower edge of the bin that holds the least value that `percent` of the steps keep. */
static double percentile(const eplb_step_layer *layer, int32_t bins, uint32_t percent)
{
    int32_t bin = eplb_percentile_bin(layer->histogram, bins, (uint64_t)layer->steps, percent);
    return eplb_log_bin_edge(bin, EPLB_BIN_BITS);
}

/* Inserts an expert into the list, which is sorted by falling ratio. */
static void rank(eplb_layer_stats *result, int32_t expert, double ratio)
{
    int32_t place = EPLB_HOTTEST_EXPERTS;
    while (place > 0 && ratio > result->hottest_ratios[place - 1]) {
        place--;
    }
    for (int32_t i = EPLB_HOTTEST_EXPERTS - 1; i > place; i--) {
        result->hottest_experts[i] = result->hottest_experts[i - 1];
        result->hottest_ratios[i] = result->hottest_ratios[i - 1];
    }
    if (place < EPLB_HOTTEST_EXPERTS) {
        result->hottest_experts[place] = expert;
        result->hottest_ratios[place] = ratio;
    }
}

static void find_hottest(eplb_layer_stats *result, const eplb_step_layer *layer, int32_t experts)
{
    for (int32_t i = 0; i < EPLB_HOTTEST_EXPERTS; i++) {
        result->hottest_experts[i] = -1;
        result->hottest_ratios[i] = -1.0; /* so that an expert without tokens is hotter than none */
    }
    for (int32_t e = 0; e < experts && layer->steps > 0; e++) {
        rank(result, e, layer->experts[e] / layer->assignments * experts);
    }
    for (int32_t i = 0; i < EPLB_HOTTEST_EXPERTS; i++) {
        result->hottest_ratios[i] =
            result->hottest_experts[i] < 0 ? 0.0 : result->hottest_ratios[i];
    }
}

static void take_means(eplb_layer_stats *result, const eplb_step_layer *layer,
                       const eplb_step_stats *stats)
{
    double steps = (double)layer->steps;
    result->assignments = layer->assignments / steps;
    result->tokens = stats->options.topk > 0 ? result->assignments / stats->options.topk : 0.0;
    result->imbalance_mean = layer->imbalance / steps;
    result->imbalance_p50 = percentile(layer, stats->bins, 50);
    result->imbalance_p99 = percentile(layer, stats->bins, 99);
    result->imbalance_worst = layer->imbalance_worst;
    result->idle_share = layer->idle / steps;
    result->idle_others = layer->idle_others / steps;
    result->experts_touched = layer->touched / steps;
    result->padded_worst_rank = layer->padded_worst / steps;
    result->padded_ratio = layer->padded / steps;
    result->dropped = layer->dropped / layer->assignments;
    result->sglang_utilisation = layer->utilisation / steps;
    result->trtllm_imbalance = result->imbalance_mean - 1.0;
}

eplb_status eplb_step_stats_get_layer(const eplb_step_stats *stats, int32_t layer,
                                      eplb_layer_stats *result, eplb_error *error)
{
    eplb_status status =
        eplb_check_range("step statistics", "layer", layer, 0, stats->placement->layers - 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (result == NULL || result->struct_size < sizeof(result->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "step statistics: no result with a struct_size");
    }
    const eplb_step_layer *from = &stats->layers[layer];
    eplb_layer_stats own = {
        .struct_size = sizeof(own),
        .layer_id = stats->placement->layer_ids.ids[layer],
        .steps = from->steps,
        .skipped = from->skipped,
        .impossible_steps = from->impossible_steps,
    };
    find_hottest(&own, from, stats->placement->experts);
    if (from->steps > 0) {
        take_means(&own, from, stats);
    }
    eplb_struct_out(result, &own, sizeof(own));
    return EPLB_OK;
}

/* vLLM's metric over the steps that are closed and the one that is being added. */
static double balancedness(const eplb_step_stats *stats)
{
    double sum = stats->balancedness;
    int64_t steps = stats->whole_steps;
    if (stats->step_busiest > 0.0) {
        sum += stats->step_mean / stats->step_busiest;
        steps++;
    }
    return steps > 0 && !stats->scattered ? sum / (double)steps : 0.0;
}

/* Sums over layers; means are taken by the caller. */
static int64_t add_layers(eplb_step_stats_info *info, const eplb_step_stats *stats)
{
    int64_t steps = 0;
    for (int32_t l = 0; l < stats->placement->layers; l++) {
        const eplb_step_layer *layer = &stats->layers[l];
        info->rows += layer->steps + layer->skipped;
        info->skipped += layer->skipped;
        if (layer->steps == 0) {
            continue;
        }
        double mean = layer->imbalance / (double)layer->steps;
        steps += layer->steps;
        info->scored_layers++;
        info->imbalance_mean += mean;
        info->imbalance_worst = mean > info->imbalance_worst ? mean : info->imbalance_worst;
        info->sglang_utilisation += layer->utilisation;
        info->trtllm_imbalance += layer->imbalance - (double)layer->steps;
    }
    return steps;
}

eplb_status eplb_step_stats_get_info(const eplb_step_stats *stats, eplb_step_stats_info *info,
                                     eplb_error *error)
{
    if (info == NULL || info->struct_size < sizeof(info->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "step statistics: no result with a struct_size");
    }
    eplb_step_stats_info own = {.struct_size = sizeof(own), .layers = stats->placement->layers};
    int64_t steps = add_layers(&own, stats);
    if (steps > 0) {
        own.imbalance_mean /= own.scored_layers;
        own.sglang_utilisation /= (double)steps;
        own.trtllm_imbalance /= (double)steps;
        own.vllm_balancedness = balancedness(stats);
    }
    eplb_struct_out(info, &own, sizeof(own));
    return EPLB_OK;
}

const double *eplb_step_stats_experts(const eplb_step_stats *stats, int32_t layer)
{
    return layer >= 0 && layer < stats->placement->layers ? stats->layers[layer].experts : NULL;
}
