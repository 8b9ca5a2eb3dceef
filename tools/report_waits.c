/* SPDX-License-Identifier: MIT */
/* Measured waits beside what the placement predicts. Rank r is GPU r. */
#include <stdlib.h>

#include <eplb/waits_file.h>

#include "message.h"
#include "report.h"

/* The row of the layer with this id; NULL: none with tokens. */
static const report_row *find_row(const report *self, int32_t layer_id)
{
    for (int32_t l = 0; l < self->layers; l++) {
        if (self->rows[l].layer_id == layer_id && self->rows[l].split.steps > 0) {
            return &self->rows[l];
        }
    }
    return NULL;
}

/* Where GPUs are about even, chance names the busiest. */
static wait_agreement compare(const report_row *predicted, const eplb_layer_waits *waits)
{
    if (predicted == NULL || predicted->split.persistent < FINE_IMBALANCE ||
        waits->least_rank < 0 || waits->missing_ranks > 0) {
        return WAITS_UNKNOWN;
    }
    return waits->least_rank == predicted->split.busiest_gpu ? WAITS_AGREE : WAITS_DISAGREE;
}

static eplb_status compare_layer(report *self, const eplb_waits *waits, int32_t layer,
                                 eplb_error *error)
{
    report_wait_row *row = &self->waits.rows[layer];
    row->waits.struct_size = sizeof(row->waits);
    eplb_status status = eplb_waits_get_layer(waits, layer, &row->waits, error);
    if (status == EPLB_OK) {
        const report_row *predicted = find_row(self, row->waits.layer_id);
        row->busiest_gpu = predicted != NULL ? predicted->split.busiest_gpu : -1;
        row->agreement = compare(predicted, &row->waits);
        self->waits.unknown += predicted == NULL ? 1 : 0;
        self->waits.agreeing += row->agreement == WAITS_AGREE ? 1 : 0;
        self->waits.disagreeing += row->agreement == WAITS_DISAGREE ? 1 : 0;
    }
    return status;
}

static eplb_status compare_layers(report *self, const eplb_waits *waits, eplb_error *error)
{
    self->waits.info.struct_size = sizeof(self->waits.info);
    eplb_status status = eplb_waits_get_info(waits, &self->waits.info, error);
    if (status != EPLB_OK) {
        return status;
    }
    self->waits.rows = calloc((size_t)self->waits.info.layers, sizeof(*self->waits.rows));
    if (self->waits.rows == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    self->waits.layers = self->waits.info.layers;
    for (int32_t l = 0; l < self->waits.layers && status == EPLB_OK; l++) {
        status = compare_layer(self, waits, l, error);
    }
    return status;
}

eplb_status report_compare_waits(report *self, eplb_error *error)
{
    if (self->values->waits == NULL) {
        return EPLB_OK;
    }
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = print_warning;
    eplb_waits_read_options reading;
    eplb_waits_read_options_init(&reading);
    reading.ranks = self->gpus;
    eplb_waits *waits;
    eplb_status status = eplb_waits_read(&waits, &hooks, self->values->waits, &reading, error);
    if (status == EPLB_OK) {
        status = compare_layers(self, waits, error);
        eplb_waits_destroy(&waits);
    }
    return status;
}
