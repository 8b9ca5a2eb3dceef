/* SPDX-License-Identifier: MIT */
/* What placements can do: in the slots that are there, and with some spare ones. */
#include "report_plan.h"
#include "processors.h"
#include "progress.h"
#include "report.h"
#include "report_placement.h"

eplb_status plan_source(eplb_plan **plan, const report_source *source, const eplb_cluster *cluster,
                        eplb_error *error)
{
    progress shown;
    progress_begin(&shown);
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.threads = planning_threads(source->values->threads);
    planning.progress = progress_report;
    planning.progress_context = &shown;
    eplb_status status = eplb_plan_create(plan, &source->hooks, source->load, cluster,
                                          source->placement, &planning, error);
    progress_end(&shown);
    return status;
}

static eplb_status plan_same_slots(report *self, const report_source *source, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        report_row *row = &self->rows[l];
        eplb_plan_layer planned = {.struct_size = sizeof(planned)};
        status = eplb_plan_get_layer(source->plan, l, &planned, error);
        row->facts.planned = planned.imbalance_after;
        row->bound = planned.lower_bound;
        eplb_layer_stats steps = {.struct_size = sizeof(steps)};
        if (status == EPLB_OK) {
            status = eplb_step_stats_get_layer(source->replanned, l, &steps, error);
        }
        row->facts.seen_replanned = steps.imbalance_mean;
    }
    return status;
}

/* Whether no GPU has more slots than there are experts. */
static bool has_use(const eplb_cluster *cluster, int32_t experts)
{
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        if (eplb_cluster_gpu_alive(cluster, g) != 0 &&
            eplb_cluster_gpu_slots(cluster, g) > experts) {
            return false;
        }
    }
    return true;
}

static eplb_status plan_in(report *self, const report_source *source, const eplb_cluster *cluster,
                           int32_t more, eplb_error *error)
{
    eplb_plan *plan;
    eplb_status status = plan_source(&plan, source, cluster, error);
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        eplb_plan_layer planned = {.struct_size = sizeof(planned)};
        status = eplb_plan_get_layer(plan, l, &planned, error);
        layer_facts *facts = &self->rows[l].facts;
        facts->spare[facts->spares++] = (spare_slots){
            .slots = more, .imbalance = planned.imbalance_after, .bound = planned.lower_bound};
    }
    eplb_plan_destroy(&plan);
    if (status == EPLB_OK) {
        self->spare[self->spares++].slots = more;
    }
    return status;
}

static eplb_status plan_spare_slots(report *self, const report_source *source, int32_t more,
                                    eplb_error *error)
{
    eplb_cluster *cluster;
    eplb_status status = widen_cluster(&cluster, eplb_placement_cluster(source->placement), more,
                                       &source->hooks, error);
    if (status == EPLB_OK && has_use(cluster, self->experts)) {
        status = plan_in(self, source, cluster, more, error);
    }
    eplb_cluster_destroy(&cluster);
    return status;
}

eplb_status report_plan(report *self, const report_source *source, eplb_error *error)
{
    eplb_status status = plan_same_slots(self, source, error);
    const int32_t numbers[MOST_SPARES] = {(self->gpus + 3) / 4, (self->gpus + 1) / 2, self->gpus};
    for (int i = 0; i < MOST_SPARES && status == EPLB_OK; i++) {
        bool is_new = i == 0 || numbers[i] > numbers[i - 1];
        bool has_room = self->slots <= EPLB_MAX_SLOTS - numbers[i];
        if (self->gpus > 1 && is_new && has_room) {
            status = plan_spare_slots(self, source, numbers[i], error);
        }
    }
    return status;
}
