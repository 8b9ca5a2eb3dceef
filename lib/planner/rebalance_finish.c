/* SPDX-License-Identifier: MIT */
/* What the searches of all layers found becomes the plan. */
#include "planner/rebalance.h"

#include <string.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/plan.h"

void eplb_rebalance_write_row(const eplb_rebalance_job *job, int32_t layer)
{
    const eplb_shape *shape = &job->shape;
    int32_t *row = eplb_placement_row_of(job->plan->placement, layer);
    for (int32_t g = 0; g < shape->gpus; g++) {
        size_t count = (size_t)(shape->first_slot[g + 1] - shape->first_slot[g]);
        memcpy(row + job->cluster->first_slot[shape->cluster_gpu[g]],
               job->traces[layer].row + shape->first_slot[g], count * sizeof(*row));
    }
}

/* What ended the search of a layer. */
static int32_t stop_of(const eplb_rebalance_job *job, const eplb_rebalance_trace *trace,
                       const eplb_plan_layer *layer)
{
    if (layer->imbalance_after <= layer->lower_bound * (1.0 + EPLB_ROUNDING)) {
        return EPLB_STOP_OPTIMAL;
    }
    if (atomic_load(&job->cancelled)) {
        return EPLB_STOP_CANCELLED;
    }
    bool is_done = trace->result.target_reached == 1 ||
                   trace->value <= trace->result.fresh_imbalance + job->options->tolerance;
    return is_done ? EPLB_STOP_EFFORT : EPLB_STOP_COPIES;
}

static eplb_status finish_layer(eplb_rebalance_job *job, int32_t l, eplb_error *error)
{
    eplb_plan *plan = job->plan;
    const eplb_rebalance_trace *trace = &job->traces[l];
    eplb_plan_layer *layer = &plan->layers[l];
    eplb_objective objective = (eplb_objective)job->planning->objective;
    eplb_rebalance_write_row(job, l);
    layer->moves += trace->moves;
    plan->rebalance_layers[l] = trace->result;
    if (!trace->scored) {
        return EPLB_OK;
    }
    eplb_status status = eplb_placement_objective(plan->placement, l, job->load, l, objective,
                                                  &layer->imbalance_after, error);
    if (status != EPLB_OK) {
        return status;
    }
    /* A placement that lacks an expert has no imbalance. */
    if (eplb_placement_objective(job->current, l, job->load, l, objective, &layer->imbalance_before,
                                 NULL) != EPLB_OK) {
        layer->imbalance_before = 0.0;
    }
    layer->imbalance_searched = trace->searched > 0.0 ? trace->searched : layer->imbalance_after;
    if (layer->lower_bound > layer->imbalance_after) {
        layer->lower_bound = layer->imbalance_after;
    }
    layer->stop = stop_of(job, trace, layer);
    return EPLB_OK;
}

static void sum_up(eplb_rebalance_job *job)
{
    eplb_plan *plan = job->plan;
    eplb_rebalance_info *info = &plan->rebalance;
    bool has_target = job->options->target_imbalance > 0.0;
    info->struct_size = sizeof(*info);
    for (int32_t l = 0; l < plan->info.layers; l++) {
        const eplb_rebalance_layer *layer = &plan->rebalance_layers[l];
        info->layers_missed += layer->target_reached == 0;
        info->layers_changed += plan->layers[l].copies > 0;
        info->copies_required += layer->copies_required;
        info->fresh_copies += layer->fresh_copies;
        info->layers_proven += layer->verdict == EPLB_FEWEST_PROVEN;
        info->layers_impossible += layer->verdict == EPLB_FEWEST_IMPOSSIBLE;
        info->copies_searched += layer->copies_searched;
        if (plan->layers[l].scored) {
            info->fresh_mean += layer->fresh_imbalance / plan->info.scored_layers;
            info->fresh_worst = layer->fresh_imbalance > info->fresh_worst ? layer->fresh_imbalance
                                                                           : info->fresh_worst;
        }
    }
    info->target_reached = !has_target ? -1 : info->layers_missed == 0;
}

eplb_status eplb_rebalance_finish(eplb_rebalance_job *job, eplb_error *error)
{
    eplb_plan *plan = job->plan;
    size_t layers = (size_t)plan->info.layers;
    plan->rebalance_layers =
        eplb_alloc_zeroed(&plan->hooks, layers, sizeof(*plan->rebalance_layers));
    eplb_status status = plan->rebalance_layers != NULL ? EPLB_OK : eplb_out_of_memory(error);
    for (int32_t l = 0; l < plan->info.layers && status == EPLB_OK; l++) {
        status = finish_layer(job, l, error);
    }
    if (status == EPLB_OK) {
        int32_t count = plan->info.layers;
        plan->info =
            (eplb_plan_info){.struct_size = sizeof(plan->info), .layers = count, .has_current = 1};
        status = eplb_plan_summarise(plan, job->current, error);
    }
    if (status == EPLB_OK) {
        sum_up(job);
        status = eplb_rebalance_keep_curves(plan, job->traces, error);
    }
    return status;
}
