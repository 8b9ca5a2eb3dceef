/* SPDX-License-Identifier: MIT */
/* What waits amount to: of one rank in one layer, a layer, a rank, all. */
#include "stats/waits.h"

#include "base/memory.h"
#include "base/range.h"
#include "stats/log_bins.h"

static const char what[] = "waits";

/* Cells that are looked at together: every stride-th from the first one. */
typedef struct selection {
    eplb_wait_cell *const *first;
    size_t count;
    size_t stride;
} selection;

typedef struct summary {
    int64_t samples;
    double p50;
    double p99;
    double mean;
    double worst;
} summary;

static double value_of(int32_t bin)
{
    if (bin < EPLB_WAIT_LINEAR_BINS) {
        return (double)bin / EPLB_WAIT_LINEAR_BINS;
    }
    int32_t log_bin = bin - EPLB_WAIT_LINEAR_BINS;
    return (eplb_log_bin_edge(log_bin, EPLB_WAIT_BIN_BITS) +
            eplb_log_bin_edge(log_bin + 1, EPLB_WAIT_BIN_BITS)) /
           2.0;
}

static double percentile(const uint64_t *histogram, const summary *all, uint32_t percent)
{
    double value =
        value_of(eplb_percentile_bin(histogram, EPLB_WAIT_BINS, (uint64_t)all->samples, percent));
    return value < all->worst ? value : all->worst;
}

static summary summarise(selection cells)
{
    uint64_t histogram[EPLB_WAIT_BINS] = {0};
    summary all = {0};
    double sum = 0.0;
    for (size_t i = 0; i < cells.count; i++) {
        const eplb_wait_cell *cell = cells.first[i * cells.stride];
        if (cell == NULL) {
            continue;
        }
        all.samples += cell->samples;
        sum += cell->sum;
        all.worst = cell->largest > all.worst ? cell->largest : all.worst;
        for (int32_t b = 0; b < EPLB_WAIT_BINS; b++) {
            histogram[b] += cell->histogram[b];
        }
    }
    if (all.samples > 0) {
        all.mean = sum / (double)all.samples;
        all.p50 = percentile(histogram, &all, 50);
        all.p99 = percentile(histogram, &all, 99);
    }
    return all;
}

static summary summarise_cell(const eplb_waits *waits, int32_t layer, int32_t rank)
{
    return summarise((selection){eplb_waits_at(waits, layer, rank), 1, 1});
}

static bool has_samples(const eplb_waits *waits, int32_t layer, int32_t rank)
{
    const eplb_wait_cell *cell = *eplb_waits_at(waits, layer, rank);
    return cell != NULL && cell->samples > 0;
}

static eplb_status check_result(const uint32_t *struct_size, eplb_error *error)
{
    return struct_size != NULL && *struct_size >= sizeof(*struct_size)
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_ARGUMENT, "waits: no result with a struct_size");
}

eplb_status eplb_waits_get(const eplb_waits *waits, int32_t layer, int32_t rank,
                           eplb_wait_times *result, eplb_error *error)
{
    eplb_status status = eplb_check_range(what, "layer", layer, 0, waits->layers - 1, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "rank", rank, 0, waits->ranks - 1, error);
    }
    if (status == EPLB_OK) {
        status = check_result((const uint32_t *)result, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    summary cell = summarise_cell(waits, layer, rank);
    eplb_wait_times own = {
        .struct_size = sizeof(own),
        .layer_id = waits->layer_ids.ids[layer],
        .samples = cell.samples,
        .p50 = cell.p50,
        .p99 = cell.p99,
        .mean = cell.mean,
        .worst = cell.worst,
    };
    eplb_struct_out(result, &own, sizeof(own));
    return EPLB_OK;
}

/* Takes a rank into the comparison of the ranks of a layer. */
static void compare_rank(eplb_layer_waits *layer, int32_t rank, const summary *cell)
{
    if (layer->worst_rank < 0 || cell->p99 > layer->worst_rank_p99) {
        layer->worst_rank = rank;
        layer->worst_rank_p50 = cell->p50;
        layer->worst_rank_p99 = cell->p99;
    }
    if (layer->least_rank < 0 || cell->p50 < layer->least_rank_p50) {
        layer->least_rank = rank;
        layer->least_rank_p50 = cell->p50;
        layer->least_rank_p99 = cell->p99;
    }
}

eplb_status eplb_waits_get_layer(const eplb_waits *waits, int32_t layer, eplb_layer_waits *result,
                                 eplb_error *error)
{
    eplb_status status = eplb_check_range(what, "layer", layer, 0, waits->layers - 1, error);
    if (status == EPLB_OK) {
        status = check_result((const uint32_t *)result, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    summary all = summarise((selection){eplb_waits_at(waits, layer, 0), (size_t)waits->ranks, 1});
    eplb_layer_waits own = {
        .struct_size = sizeof(own),
        .layer_id = waits->layer_ids.ids[layer],
        .samples = all.samples,
        .p50 = all.p50,
        .p99 = all.p99,
        .mean = all.mean,
        .worst = all.worst,
        .worst_rank = -1,
        .least_rank = -1,
    };
    for (int32_t r = 0; r < waits->ranks; r++) {
        if (has_samples(waits, layer, r)) {
            summary cell = summarise_cell(waits, layer, r);
            compare_rank(&own, r, &cell);
            own.sampled_ranks++;
        }
    }
    own.missing_ranks = waits->ranks - own.sampled_ranks;
    eplb_struct_out(result, &own, sizeof(own));
    return EPLB_OK;
}

static bool layer_has_samples(const eplb_waits *waits, int32_t layer)
{
    for (int32_t r = 0; r < waits->ranks; r++) {
        if (has_samples(waits, layer, r)) {
            return true;
        }
    }
    return false;
}

/* Layers with samples of a rank, and the sum of its means over them. */
static double step_wait(const eplb_waits *waits, int32_t rank, int32_t *layers)
{
    double sum = 0.0;
    *layers = 0;
    for (int32_t l = 0; l < waits->layers; l++) {
        if (has_samples(waits, l, rank)) {
            const eplb_wait_cell *cell = *eplb_waits_at(waits, l, rank);
            sum += cell->sum / (double)cell->samples;
            *layers += 1;
        }
    }
    return sum;
}

static int32_t count_sampled_layers(const eplb_waits *waits)
{
    int32_t layers = 0;
    for (int32_t l = 0; l < waits->layers; l++) {
        layers += layer_has_samples(waits, l) ? 1 : 0;
    }
    return layers;
}

eplb_status eplb_waits_get_rank(const eplb_waits *waits, int32_t rank, eplb_rank_waits *result,
                                eplb_error *error)
{
    eplb_status status = eplb_check_range(what, "rank", rank, 0, waits->ranks - 1, error);
    if (status == EPLB_OK) {
        status = check_result((const uint32_t *)result, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    summary all = summarise(
        (selection){eplb_waits_at(waits, 0, rank), (size_t)waits->layers, (size_t)waits->ranks});
    eplb_rank_waits own = {
        .struct_size = sizeof(own),
        .samples = all.samples,
        .p50 = all.p50,
        .p99 = all.p99,
        .mean = all.mean,
        .worst = all.worst,
    };
    own.step_wait = step_wait(waits, rank, &own.sampled_layers);
    own.missing_layers = count_sampled_layers(waits) - own.sampled_layers;
    eplb_struct_out(result, &own, sizeof(own));
    return EPLB_OK;
}

static void compare_ranks(eplb_waits_info *info, const eplb_waits *waits)
{
    for (int32_t r = 0; r < waits->ranks; r++) {
        int32_t layers;
        double wait = step_wait(waits, r, &layers);
        if (layers < info->sampled_layers || layers == 0) {
            info->missing_ranks += layers == 0 ? 1 : 0;
            info->partial_ranks += layers == 0 ? 0 : 1;
            continue;
        }
        if (info->worst_rank < 0 || wait > info->worst_rank_step_wait) {
            info->worst_rank = r;
            info->worst_rank_step_wait = wait;
        }
        if (info->least_rank < 0 || wait < info->least_rank_step_wait) {
            info->least_rank = r;
            info->least_rank_step_wait = wait;
        }
    }
}

eplb_status eplb_waits_get_info(const eplb_waits *waits, eplb_waits_info *info, eplb_error *error)
{
    eplb_status status = check_result((const uint32_t *)info, error);
    if (status != EPLB_OK) {
        return status;
    }
    summary all =
        summarise((selection){waits->cells, (size_t)waits->layers * (size_t)waits->ranks, 1});
    eplb_waits_info own = {
        .struct_size = sizeof(own),
        .layers = waits->layers,
        .ranks = waits->ranks,
        .sampled_layers = count_sampled_layers(waits),
        .samples = all.samples,
        .p50 = all.p50,
        .p99 = all.p99,
        .mean = all.mean,
        .worst = all.worst,
        .worst_rank = -1,
        .least_rank = -1,
    };
    compare_ranks(&own, waits);
    eplb_struct_out(info, &own, sizeof(own));
    return EPLB_OK;
}

static bool is_missing(const eplb_waits *waits, int32_t layer, int32_t rank)
{
    int32_t first = layer >= 0 ? layer : 0;
    int32_t last = layer >= 0 ? layer : waits->layers - 1;
    for (int32_t l = first; l <= last; l++) {
        if (has_samples(waits, l, rank)) {
            return false;
        }
    }
    return true;
}

int32_t eplb_waits_missing_ranks(const eplb_waits *waits, int32_t layer, int32_t *missing,
                                 int32_t capacity)
{
    if (layer < -1 || layer >= waits->layers) {
        return 0;
    }
    int32_t count = 0;
    for (int32_t r = 0; r < waits->ranks; r++) {
        if (!is_missing(waits, layer, r)) {
            continue;
        }
        if (missing != NULL && count < capacity) {
            missing[count] = r;
        }
        count++;
    }
    return count;
}
