/* SPDX-License-Identifier: MIT */
#include "plan_report.h"

#include <stdlib.h>
#include <string.h>

typedef struct measure {
    const eplb_load *load;
    const eplb_plan *plan;
    const eplb_placement *placement;
    const eplb_placement *current;
    eplb_placement *spread; /* one layer */
    double *sums;           /* [experts]: the planned objective */
} measure;

static eplb_status measure_row(const measure *self, int32_t layer, plan_row *row, eplb_error *error)
{
    eplb_plan_layer planned = {.struct_size = sizeof(planned)};
    eplb_status status = eplb_plan_get_layer(self->plan, layer, &planned, error);
    if (status != EPLB_OK) {
        return status;
    }
    *row = (plan_row){.layer_id = planned.layer_id,
                      .scored = planned.scored != 0,
                      .before = planned.imbalance_before,
                      .after = planned.imbalance_after,
                      .bound = planned.lower_bound};
    status = eplb_load_sum_row(self->load, layer, self->sums, NULL, error);
    if (status == EPLB_OK) {
        status = eplb_placement_imbalance(self->spread, 0, self->sums, &row->spread, error);
    }
    if (status == EPLB_OK && self->placement != eplb_plan_placement(self->plan)) {
        status = eplb_placement_imbalance(self->placement, layer, self->sums, &row->after, error);
    }
    if (status == EPLB_OK && self->current != NULL) {
        status = eplb_placement_copies(self->current, self->placement, layer, &row->copies, error);
    }
    return status;
}

static eplb_status measure_rows(measure *self, plan_report *report, eplb_error *error)
{
    int32_t experts = report->experts;
    self->sums = calloc((size_t)experts, sizeof(*self->sums));
    report->rows = calloc((size_t)report->layers, sizeof(*report->rows));
    if (self->sums == NULL || report->rows == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    eplb_status status = eplb_placement_create(
        &self->spread, NULL, eplb_placement_cluster(self->placement), 1, experts, error);
    if (status == EPLB_OK) {
        status = eplb_placement_spread(self->spread, 0, error);
    }
    for (int32_t l = 0; l < report->layers && status == EPLB_OK; l++) {
        status = measure_row(self, l, &report->rows[l], error);
    }
    return status;
}

static void add(plan_summary *summary, double imbalance)
{
    summary->mean += imbalance;
    summary->worst = imbalance > summary->worst ? imbalance : summary->worst;
}

static void summarise(plan_report *self)
{
    for (int32_t l = 0; l < self->layers; l++) {
        const plan_row *row = &self->rows[l];
        self->copies += row->copies;
        if (row->scored) {
            self->scored_layers++;
            add(&self->spread, row->spread);
            add(&self->before, row->before);
            add(&self->after, row->after);
            add(&self->bound, row->bound);
        }
    }
    plan_summary *summaries[] = {&self->spread, &self->before, &self->after, &self->bound};
    for (size_t i = 0; i < 4 && self->scored_layers > 0; i++) {
        summaries[i]->mean /= (double)self->scored_layers;
    }
}

/* Without a placement in force, any plan is news. */
static bool proposes_changes(const measure *self, const plan_report *report)
{
    return self->current == NULL || report->copies > 0 ||
           eplb_placement_slots(self->current) != eplb_placement_slots(self->placement);
}

eplb_status plan_report_create(plan_report *self, const eplb_load *load, const eplb_plan *plan,
                               const eplb_placement *placement, const eplb_placement *current,
                               eplb_error *error)
{
    *self = (plan_report){
        .layers = eplb_load_layers(load),
        .experts = eplb_load_experts(load),
        .gpus = eplb_cluster_gpus(eplb_placement_cluster(placement)),
        .slots = eplb_placement_slots(placement),
        .scenarios = eplb_load_scenarios(load),
        .has_current = current != NULL,
    };
    measure measured = {.load = load, .plan = plan, .placement = placement, .current = current};
    eplb_plan_info info = {.struct_size = sizeof(info)};
    eplb_status status = eplb_plan_get_info(plan, &info, error);
    if (status == EPLB_OK) {
        self->stop = (eplb_stop)info.stop;
        status = measure_rows(&measured, self, error);
    }
    eplb_placement_destroy(&measured.spread);
    free(measured.sums);
    if (status != EPLB_OK) {
        plan_report_destroy(self);
        return status;
    }
    summarise(self);
    self->proposes_changes = proposes_changes(&measured, self);
    eplb_error violation = {0};
    self->valid = eplb_placement_validate(placement, 0, &violation) == EPLB_OK;
    snprintf(self->violation, sizeof(self->violation), "%.150s", violation.message);
    return EPLB_OK;
}

void plan_report_destroy(plan_report *self)
{
    free(self->rows);
    self->rows = NULL;
}
