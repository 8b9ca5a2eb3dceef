/* SPDX-License-Identifier: MIT */
#include "plan_report.h"

#include <stdlib.h>

#include "memory.h"

/* What weights must gain, in units of imbalance, to be worth a line. */
#define LEAST_GAIN 1e-3

/* Spreads the experts evenly over the slots of a layer. */
static eplb_status spread_layer(const plan_subject *subject, eplb_placement *spread, int32_t layer,
                                eplb_error *error)
{
    const int32_t *slots = eplb_placement_layer_slots(subject->placement, layer);
    eplb_status status = eplb_placement_set_layer_slots(spread, 0, slots, error);
    return status == EPLB_OK ? eplb_placement_spread(spread, 0, error) : status;
}

/* The layers' results: what the plan says, and what the even spread and a repaired placement are
 * worth. */
static eplb_status measure_row(const plan_subject *subject, eplb_placement *spread, int32_t layer,
                               plan_row *row, eplb_error *error)
{
    eplb_plan_layer planned = {.struct_size = sizeof(planned)};
    eplb_status status = eplb_plan_get_layer(subject->plan, layer, &planned, error);
    if (status != EPLB_OK) {
        return status;
    }
    *row = (plan_row){.layer_id = planned.layer_id,
                      .slots = eplb_placement_open_slots(subject->placement, layer),
                      .scored = planned.scored != 0,
                      .before = planned.imbalance_before,
                      .after = planned.imbalance_after,
                      .bound = planned.lower_bound};
    status = spread_layer(subject, spread, layer, error);
    if (status == EPLB_OK) {
        status = eplb_placement_objective(spread, 0, subject->load, layer, subject->objective,
                                          &row->spread, error);
    }
    if (status == EPLB_OK && subject->placement != eplb_plan_placement(subject->plan)) {
        status = eplb_placement_objective(subject->placement, layer, subject->load, layer,
                                          subject->objective, &row->after, error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_weighted_objective(subject->placement, layer, subject->load, layer,
                                                   subject->objective, &row->weighted, error);
    }
    if (status == EPLB_OK && subject->current != NULL) {
        status =
            eplb_placement_copies(subject->current, subject->placement, layer, &row->copies, error);
    }
    return status;
}

static eplb_status measure_rows(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    eplb_placement *spread = NULL;
    const eplb_cluster *cluster = eplb_placement_cluster(subject->placement);
    eplb_status status = eplb_placement_create(&spread, NULL, cluster, 1, self->experts, error);
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        status = measure_row(subject, spread, l, &self->rows[l], error);
    }
    eplb_placement_destroy(&spread);
    return status;
}

static void summarise(plan_report *self)
{
    for (int32_t l = 0; l < self->layers; l++) {
        const plan_row *row = &self->rows[l];
        self->copies += row->copies;
        if (row->scored) {
            self->scored_layers++;
            summary_add(&self->spread, row->spread);
            summary_add(&self->before, row->before);
            summary_add(&self->after, row->after);
            summary_add(&self->weighted, row->weighted);
            summary_add(&self->bound, row->bound);
        }
    }
    summary *summaries[] = {&self->spread, &self->before, &self->after, &self->weighted,
                            &self->bound};
    for (size_t i = 0; i < sizeof(summaries) / sizeof(summaries[0]); i++) {
        summary_finish(summaries[i], self->scored_layers);
    }
    self->gains_by_weights = self->after.mean - self->weighted.mean >= LEAST_GAIN;
}

static bool has_other_slots(const plan_subject *subject, int32_t layers)
{
    for (int32_t l = 0; l < layers; l++) {
        if (eplb_placement_open_slots(subject->current, l) !=
            eplb_placement_open_slots(subject->placement, l)) {
            return true;
        }
    }
    return false;
}

/* Without a placement in force, any plan is news. */
static bool proposes_changes(const plan_subject *subject, const plan_report *report)
{
    return subject->current == NULL || report->copies > 0 ||
           has_other_slots(subject, report->layers);
}

/* One scenario in one layer; false: it has no load there. */
static eplb_status measure_scenario(const plan_subject *subject, int32_t k, int32_t layer,
                                    plan_scenario *scenario, eplb_error *error)
{
    double imbalance;
    const double *row = eplb_load_row(subject->load, k, layer);
    eplb_status status =
        eplb_placement_imbalance(subject->placement, layer, row, &imbalance, error);
    if (status != EPLB_OK || !(imbalance > 0.0)) {
        return status;
    }
    scenario->layers++;
    summary_add(&scenario->after, imbalance);
    if (subject->current != NULL) {
        status = eplb_placement_imbalance(subject->current, layer, row, &imbalance, error);
        summary_add(&scenario->before, imbalance);
    }
    return status;
}

static eplb_status measure_scenarios(plan_report *self, const plan_subject *subject,
                                     eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t k = 0; k < self->scenarios && status == EPLB_OK; k++) {
        plan_scenario *scenario = &self->scenario[k];
        const char *name = eplb_load_scenario_name(subject->load, k);
        scenario->name = name != NULL ? name : "";
        scenario->weight = eplb_load_scenario_weight(subject->load, k);
        for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
            status = measure_scenario(subject, k, l, scenario, error);
        }
        summary_finish(&scenario->after, scenario->layers);
        summary_finish(&scenario->before, scenario->layers);
    }
    return status;
}

static eplb_status find_losses(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    const eplb_cluster *cluster = eplb_placement_cluster(subject->placement);
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK && subject->current != NULL; l++) {
        plan_loss *loss = &self->loss[self->losses];
        int32_t count;
        status = eplb_placement_lost_experts(subject->current, cluster, l, NULL, 0, &count, error);
        if (status != EPLB_OK || count == 0) {
            continue;
        }
        loss->experts = calloc((size_t)count, sizeof(*loss->experts));
        if (loss->experts == NULL) {
            return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
        }
        loss->layer_id = eplb_load_layer_ids(subject->load)[l];
        self->losses++;
        status = eplb_placement_lost_experts(subject->current, cluster, l, loss->experts, count,
                                             &loss->count, error);
    }
    return status;
}

static eplb_status find_fragile_layer(plan_report *self, const plan_subject *subject,
                                      eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        int32_t lost;
        int32_t gpu;
        status = eplb_placement_single_failure(subject->placement, l, &lost, &gpu, error);
        if (status == EPLB_OK && lost > self->fragile) {
            self->fragile = lost;
            self->fragile_layer_id = eplb_load_layer_ids(subject->load)[l];
            self->fragile_gpu = gpu;
        }
    }
    return status;
}

static eplb_status measure(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    eplb_plan_info info = {.struct_size = sizeof(info)};
    eplb_status status = eplb_plan_get_info(subject->plan, &info, error);
    self->stop = (eplb_stop)info.stop;
    eplb_status (*const parts[])(plan_report *, const plan_subject *, eplb_error *) = {
        measure_rows,       measure_scenarios,       find_losses,        find_fragile_layer,
        plan_nodes_measure, plan_refinement_measure, plan_budget_measure};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == EPLB_OK; i++) {
        status = parts[i](self, subject, error);
    }
    return status;
}

/* Slots of each GPU, in each layer and in all of them. */
static void find_slots_of_gpus(plan_report *self, const eplb_placement *placement)
{
    self->layers_differ = eplb_placement_layer_slots(placement, 0) != NULL;
    self->fewest_slots = INT32_MAX;
    self->fewest_sum = INT64_MAX;
    for (int32_t g = 0; g < self->gpus; g++) {
        int64_t sum = 0;
        for (int32_t l = 0; l < self->layers; l++) {
            int32_t slots = eplb_placement_open_slots_on(placement, l, g);
            self->fewest_slots = slots < self->fewest_slots ? slots : self->fewest_slots;
            self->most_slots = slots > self->most_slots ? slots : self->most_slots;
            sum += slots;
        }
        self->fewest_sum = sum < self->fewest_sum ? sum : self->fewest_sum;
        self->most_sum = sum > self->most_sum ? sum : self->most_sum;
    }
    self->least_slots = INT32_MAX;
    for (int32_t l = 0; l < self->layers; l++) {
        int32_t slots = eplb_placement_open_slots(placement, l);
        self->least_slots = slots < self->least_slots ? slots : self->least_slots;
        self->slots = slots > self->slots ? slots : self->slots;
    }
}

static eplb_status weigh(plan_report *self, eplb_error *error)
{
    int64_t bytes = self->expert_bytes;
    bool differ = self->layers_differ;
    int32_t layers = differ ? 1 : self->layers;
    int64_t fewest = differ ? self->fewest_sum : self->fewest_slots;
    int64_t most = differ ? self->most_sum : self->most_slots;
    eplb_status status = weight_bytes(&self->fewest_bytes, bytes, fewest, layers, error);
    if (status == EPLB_OK) {
        status = weight_bytes(&self->most_bytes, bytes, most, layers, error);
    }
    return status == EPLB_OK ? weight_bytes(&self->bytes_to_copy, bytes, self->copies, 1, error)
                             : status;
}

eplb_status plan_report_create(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    const eplb_cluster *cluster = eplb_placement_cluster(subject->placement);
    *self = (plan_report){
        .layers = eplb_load_layers(subject->load),
        .draft_layers = eplb_placement_draft_layers(subject->placement),
        .experts = eplb_load_experts(subject->load),
        .gpus = eplb_cluster_gpus(cluster),
        .live_gpus = eplb_cluster_live_gpus(cluster),
        .scenarios = eplb_load_scenarios(subject->load),
        .objective = subject->objective,
        .has_current = subject->current != NULL,
        .expert_bytes = subject->expert_bytes,
    };
    find_slots_of_gpus(self, subject->placement);
    self->rows = calloc((size_t)self->layers, sizeof(*self->rows));
    self->scenario = calloc((size_t)self->scenarios, sizeof(*self->scenario));
    self->loss = calloc((size_t)self->layers, sizeof(*self->loss));
    bool has_memory = self->rows != NULL && self->scenario != NULL && self->loss != NULL;
    eplb_status status = has_memory ? measure(self, subject, error)
                                    : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    if (status != EPLB_OK) {
        plan_report_destroy(self);
        return status;
    }
    summarise(self);
    status = weigh(self, error);
    if (status == EPLB_OK) {
        status = plan_rebalance_measure(self, subject, error);
    }
    if (status != EPLB_OK) {
        plan_report_destroy(self);
        return status;
    }
    self->proposes_changes = proposes_changes(subject, self);
    eplb_error violation = {0};
    self->valid = eplb_placement_validate(subject->placement, 0, &violation) == EPLB_OK;
    snprintf(self->violation, sizeof(self->violation), "%.150s", violation.message);
    return EPLB_OK;
}

void plan_report_destroy(plan_report *self)
{
    for (int32_t i = 0; i < self->losses; i++) {
        free(self->loss[i].experts);
    }
    free(self->rebalance.curve);
    free(self->loss);
    free(self->scenario);
    free(self->rows);
    *self = (plan_report){0};
}

char *lost_list(const int32_t *some, int32_t count, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < count && i < LOST_SHOWN && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%d", i > 0 ? ", " : "", some[i]);
    }
    if (count > LOST_SHOWN && used < size) {
        snprintf(text + used, size - used, " and %d more", count - LOST_SHOWN);
    }
    return text;
}
