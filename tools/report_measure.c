/* SPDX-License-Identifier: MIT */
/* What the steps look like: the numbers of the layers, and their order. */
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Worst first; equally bad layers in order. */
static int compare_rows(const void *a, const void *b)
{
    const report_row *first = *(const report_row *const *)a;
    const report_row *second = *(const report_row *const *)b;
    if (first->split.persistent != second->split.persistent) {
        return first->split.persistent > second->split.persistent ? -1 : 1;
    }
    if (first->split.seen != second->split.seen) {
        return first->split.seen > second->split.seen ? -1 : 1;
    }
    return first->layer_id < second->layer_id ? -1 : first->layer_id > second->layer_id;
}

static int descending(const void *a, const void *b)
{
    double first = *(const double *)a;
    double second = *(const double *)b;
    return first > second ? -1 : first < second;
}

/* The class of an expert with this many times its fair share. */
static int ratio_class(double ratio)
{
    int class = 1;
    for (double limit = 0.125; class < RATIO_CLASSES - 1 && ratio >= limit; limit *= 2.0) {
        class ++;
    }
    return ratio > 0.0 ? class : 0;
}

/* `loads` [experts] descend and sum to `total` > 0. */
static void describe_spread(token_spread *spread, const double *loads, int32_t experts,
                            double total)
{
    double taken = 0.0;
    int next = 0; /* share to fill */
    for (int32_t e = 0; e < experts; e++) {
        taken += loads[e];
        if (e + 1 == 1 << next || e + 1 == experts) {
            spread->shares[next++] = taken / total;
        }
        spread->by_ratio[ratio_class(loads[e] / total * (double)experts)] += 1.0;
    }
}

/* Whether the GPU holds a replica of the expert. */
static bool holds(const eplb_placement *placement, int32_t layer, int32_t gpu, int32_t expert)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    const int32_t *row = eplb_placement_row(placement, layer);
    int32_t first = eplb_cluster_first_slot(cluster, gpu);
    for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, gpu); s++) {
        if (row[s] == expert) {
            return true;
        }
    }
    return false;
}

static void gather_facts(const report *self, const report_source *source, int32_t layer,
                         report_row *row)
{
    const eplb_layer_stats *stats = &row->stats;
    const eplb_split *split = &row->split;
    row->facts = (layer_facts){
        .steps = split->steps,
        .too_few_steps = split->too_short != 0,
        .gpus = self->gpus,
        .assignments = stats->assignments,
        .tokens = stats->tokens > 0.0 ? stats->tokens : (double)self->values->tokens,
        .seen = split->seen,
        .persistent = split->persistent,
        .standard_error = split->standard_error,
        .dispersion = split->dispersion,
        .padded = stats->padded_worst_rank,
        .padded_ratio = stats->padded_ratio,
        .hottest_expert = stats->hottest_experts[0],
        .hottest_ratio = stats->hottest_ratios[0],
        .hottest_is_felt = split->steps > 0 && holds(source->placement, layer, split->busiest_gpu,
                                                     stats->hottest_experts[0]),
    };
}

static eplb_status measure_row(report *self, const report_source *source, int32_t layer,
                               double *loads, eplb_error *error)
{
    report_row *row = &self->rows[layer];
    row->layer_id = eplb_load_layer_ids(source->load)[layer];
    row->excess = source->excesses[layer];
    row->stats.struct_size = sizeof(row->stats);
    row->split.struct_size = sizeof(row->split);
    eplb_status status = eplb_step_stats_get_layer(source->stats, layer, &row->stats, error);
    if (status == EPLB_OK) {
        status = eplb_step_stats_split(source->stats, layer, &row->split, error);
    }
    double total = 0.0;
    if (status == EPLB_OK) {
        status = eplb_load_sum_row(source->load, layer, loads, &total, error);
    }
    if (status == EPLB_OK && row->split.steps > 0) {
        qsort(loads, (size_t)self->experts, sizeof(*loads), descending);
        describe_spread(&row->spread, loads, self->experts, total);
    }
    gather_facts(self, source, layer, row);
    return status;
}

static void sort_rows(report *self)
{
    for (int32_t l = 0; l < self->layers; l++) {
        self->worst[l] = &self->rows[l];
        self->scored_layers += self->rows[l].split.steps > 0 ? 1 : 0;
    }
    qsort(self->worst, (size_t)self->layers, sizeof(*self->worst), compare_rows);
}

eplb_status report_measure(report *self, const report_source *source, eplb_error *error)
{
    self->rows = calloc((size_t)self->layers, sizeof(*self->rows));
    self->worst = calloc((size_t)self->layers, sizeof(*self->worst));
    double *loads = calloc((size_t)self->experts, sizeof(*loads));
    self->engines.struct_size = sizeof(self->engines);
    eplb_status status = self->rows != NULL && self->worst != NULL && loads != NULL
                             ? eplb_step_stats_get_info(source->stats, &self->engines, error)
                             : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        status = measure_row(self, source, l, loads, error);
    }
    free(loads);
    if (status == EPLB_OK) {
        sort_rows(self);
    }
    return status;
}
