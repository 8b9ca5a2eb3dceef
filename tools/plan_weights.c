/* SPDX-License-Identifier: MIT */
#include "plan_weights.h"

#include <stdio.h>
#include <stdlib.h>

#include <eplb/shares.h>

/* What eplb/shares.h promises. */
#define PERFECT (1.0 + 1e-9)

/* The sums [experts] and weights [slots] of one layer. */
typedef struct scratch {
    double *sums;
    double *weights;
} scratch;

static eplb_status scratch_init(scratch *self, const eplb_placement *placement, eplb_error *error)
{
    self->sums = calloc((size_t)eplb_placement_experts(placement), sizeof(*self->sums));
    self->weights = calloc((size_t)eplb_placement_slots(placement), sizeof(*self->weights));
    return self->sums != NULL && self->weights != NULL
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
}

static void scratch_release(scratch *self)
{
    free(self->sums);
    free(self->weights);
}

static eplb_status place_layer(eplb_placement *placement, const eplb_placement *planned,
                               const eplb_load *load, int32_t layer, scratch *s, eplb_error *error)
{
    double imbalance;
    if (eplb_load_layer_is_zero(load, layer)) {
        return EPLB_OK;
    }
    eplb_status status = eplb_load_sum_row(load, layer, s->sums, NULL, error);
    if (status == EPLB_OK) {
        status = eplb_shares_place(placement, layer, s->sums, NULL, error);
    }
    if (status == EPLB_OK) {
        status = eplb_shares_best(planned, layer, s->sums, s->weights, NULL, &imbalance, error);
    }
    return status == EPLB_OK && imbalance <= PERFECT
               ? eplb_placement_set_row(placement, layer, eplb_placement_row(planned, layer), error)
               : status;
}

eplb_status plan_place_weighted(eplb_placement **out, const eplb_placement *planned,
                                const eplb_load *load, const eplb_hooks *hooks, eplb_error *error)
{
    scratch s;
    eplb_status status = scratch_init(&s, planned, error);
    if (status == EPLB_OK) {
        status = eplb_placement_clone(out, hooks, planned, error);
    }
    for (int32_t l = 0; l < eplb_load_layers(load) && status == EPLB_OK; l++) {
        status = place_layer(*out, planned, load, l, &s, error);
    }
    scratch_release(&s);
    return status;
}

static void write_layer(sink *out, const eplb_placement *placement, int32_t layer,
                        const double *weights)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    const int32_t *row = eplb_placement_row(placement, layer);
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        int32_t first = eplb_cluster_first_slot(cluster, g);
        for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, g); s++) {
            char line[96];
            snprintf(line, sizeof(line), "%d,%d,%d,%d,%.12g\n",
                     eplb_placement_layer_ids(placement)[layer], s, g, row[s], weights[s]);
            sink_text(out, row[s] >= 0 ? line : "");
        }
    }
}

eplb_status plan_write_weights(sink *out, const eplb_placement *placement, const eplb_load *load)
{
    scratch s;
    eplb_error error;
    eplb_status status = scratch_init(&s, placement, &error);
    sink_text(out, "layer,slot,gpu,expert,weight\n");
    for (int32_t l = 0; l < eplb_load_layers(load) && status == EPLB_OK; l++) {
        status = eplb_load_sum_row(load, l, s.sums, NULL, &error);
        if (status == EPLB_OK) {
            status = eplb_shares_best(placement, l, s.sums, s.weights, NULL, NULL, &error);
        }
        if (status == EPLB_OK) {
            write_layer(out, placement, l, s.weights);
        }
    }
    if (status != EPLB_OK && out->status == EPLB_OK) {
        out->status = status;
        out->error = error;
    }
    scratch_release(&s);
    return out->status;
}
