/* SPDX-License-Identifier: MIT */
#include "stats/step_stats.h"

#include <math.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"

void eplb_step_stats_options_init(eplb_step_stats_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_step_stats_options){
        .struct_size = sizeof(*options), .topk = 0, .tile = 64, .capacity_factor = 1.25};
}

static eplb_status check_options(const eplb_step_stats_options *options, int32_t experts,
                                 eplb_error *error)
{
    eplb_status status =
        eplb_check_range("step statistics", "top-k", options->topk, 0, experts, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("step statistics", "tile", options->tile, 1, INT32_MAX, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("step statistics", "reserved", options->reserved, 0, 0, error);
    }
    if (status == EPLB_OK &&
        !(isfinite(options->capacity_factor) && options->capacity_factor > 0.0)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "step statistics: capacity factor %g is not above 0 and finite",
                              options->capacity_factor);
    }
    return status;
}

/* Whether a violation leaves tokens without a GPU. */
static bool is_loss(const eplb_violation *violation)
{
    return violation->kind == EPLB_VIOLATION_MISSING_EXPERT ||
           violation->kind == EPLB_VIOLATION_DEAD_GPU;
}

/* Keeps the first of those. */
static int keep_loss(void *context, const eplb_violation *violation)
{
    *(eplb_violation *)context = *violation;
    return is_loss(violation);
}

static eplb_status check_placement(const eplb_placement *placement, eplb_error *error)
{
    eplb_violation loss = {0};
    eplb_status status =
        eplb_placement_check(placement, EPLB_VALIDATE_ALLOW_EMPTY, keep_loss, &loss, NULL, error);
    if (status == EPLB_OK && is_loss(&loss)) {
        char text[EPLB_ERROR_MESSAGE_SIZE];
        return eplb_error_set(error, EPLB_ERROR_DATA, "step statistics: %s",
                              eplb_violation_text(placement, &loss, text, sizeof(text)));
    }
    return status;
}

/* Bins that hold 1..gpus. */
static int32_t bins_for(int32_t gpus)
{
    int32_t octaves = 1;
    for (; gpus > 1; gpus /= 2) {
        octaves++;
    }
    return octaves << EPLB_BIN_BITS;
}

static size_t values_of_a_layer(const eplb_placement *placement)
{
    size_t gpus = (size_t)placement->cluster->gpus;
    return (size_t)placement->experts + 2 * gpus + EPLB_MOST_RUNS * (gpus + 1);
}

static eplb_status allocate(eplb_step_stats *stats, const eplb_placement *placement)
{
    const eplb_hooks *hooks = &stats->hooks;
    size_t layers = (size_t)placement->layers;
    size_t counts;
    size_t values;
    size_t bins;
    if (!eplb_size_mul(layers, (size_t)placement->experts, &counts) ||
        !eplb_size_mul(layers, values_of_a_layer(placement), &values) ||
        !eplb_size_mul(layers, (size_t)stats->bins, &bins)) {
        return EPLB_ERROR_NOMEM;
    }
    stats->layers = eplb_alloc_zeroed(hooks, layers, sizeof(*stats->layers));
    stats->replicas = eplb_alloc(hooks, counts, sizeof(*stats->replicas));
    stats->values = eplb_alloc_zeroed(hooks, values, sizeof(*stats->values));
    stats->histograms = eplb_alloc_zeroed(hooks, bins, sizeof(*stats->histograms));
    stats->gpu_loads = eplb_alloc(hooks, (size_t)placement->cluster->gpus, sizeof(double));
    return stats->layers != NULL && stats->replicas != NULL && stats->values != NULL &&
                   stats->histograms != NULL && stats->gpu_loads != NULL
               ? EPLB_OK
               : EPLB_ERROR_NOMEM;
}

static eplb_status start_layer(eplb_step_stats *stats, int32_t index, eplb_error *error)
{
    const eplb_placement *placement = stats->placement;
    size_t l = (size_t)index;
    size_t experts = (size_t)placement->experts;
    size_t gpus = (size_t)placement->cluster->gpus;
    int32_t *replicas = stats->replicas + l * experts;
    double *values = stats->values + l * values_of_a_layer(placement);
    stats->layers[l] = (eplb_step_layer){
        .last_step = -1,
        .row = eplb_placement_row(placement, index),
        .replicas = replicas,
        .experts = values,
        .share = values + experts,
        .scatter = values + experts + gpus,
        .run = values + experts + 2 * gpus,
        .histogram = stats->histograms + l * (size_t)stats->bins,
        .run_length = 1,
    };
    return eplb_placement_replica_counts(placement, index, replicas, error);
}

static eplb_status make(eplb_step_stats *stats, const eplb_placement *placement, eplb_error *error)
{
    stats->step = -1;
    stats->bins = bins_for(eplb_cluster_live_gpus(placement->cluster));
    eplb_status status = eplb_placement_clone(&stats->placement, &stats->hooks, placement, error);
    if (status == EPLB_OK && allocate(stats, placement) != EPLB_OK) {
        status = eplb_out_of_memory(error);
    }
    for (int32_t l = 0; l < placement->layers && status == EPLB_OK; l++) {
        status = start_layer(stats, l, error);
    }
    return status;
}

eplb_status eplb_step_stats_create(eplb_step_stats **out, const eplb_hooks *hooks,
                                   const eplb_placement *placement,
                                   const eplb_step_stats_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || placement == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "step statistics: no output or no placement");
    }
    eplb_step_stats_options complete;
    eplb_step_stats_options_init(&complete);
    if (options != NULL && !eplb_struct_in(&complete, sizeof(complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "step statistics: options without struct_size: see "
                              "eplb_step_stats_options_init");
    }
    eplb_status status = check_options(&complete, placement->experts, error);
    if (status == EPLB_OK) {
        status = check_placement(placement, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_step_stats *stats = eplb_alloc_zeroed(&resolved, 1, sizeof(*stats));
    if (stats == NULL) {
        return eplb_out_of_memory(error);
    }
    stats->hooks = resolved;
    stats->options = complete;
    status = make(stats, placement, error);
    if (status != EPLB_OK) {
        eplb_step_stats_destroy(&stats);
        return status;
    }
    *out = stats;
    return EPLB_OK;
}

void eplb_step_stats_destroy(eplb_step_stats **stats)
{
    if (stats == NULL || *stats == NULL) {
        return;
    }
    eplb_step_stats *self = *stats;
    eplb_hooks hooks = self->hooks;
    eplb_placement_destroy(&self->placement);
    eplb_free(&hooks, self->layers);
    eplb_free(&hooks, self->replicas);
    eplb_free(&hooks, self->values);
    eplb_free(&hooks, self->histograms);
    eplb_free(&hooks, self->gpu_loads);
    eplb_free(&hooks, self);
    *stats = NULL;
}
