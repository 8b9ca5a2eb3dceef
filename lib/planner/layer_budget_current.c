/* SPDX-License-Identifier: MIT */
/* The placement in force, kept as a whole where a plan is no better. */
#include "planner/layer_budget.h"

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/layer.h"
#include "planner/plan.h"
#include "planner/worker.h"

/* Fills shares with the slots of the current placement. False when they do not fit the budgets, or
 * it is no valid placement for the GPUs that live. */
static bool fits_budgets(eplb_budget_job *job, const eplb_placement *current, int32_t *shares)
{
    const eplb_cluster *cluster = current->cluster;
    for (int32_t g = 0; g < job->gpus; g++) {
        int64_t used = 0;
        for (int32_t l = 0; l < job->layers; l++) {
            const int32_t *row = eplb_placement_row(current, l);
            int32_t own = eplb_placement_open_slots_on(current, l, g);
            int32_t first = cluster->first_slot[g];
            own = job->cluster->gpu[g].alive && cluster->gpu[g].alive ? own : 0;
            for (int32_t s = first; s < cluster->first_slot[g + 1]; s++) {
                if ((row[s] >= 0) != (s < first + own)) {
                    return false;
                }
            }
            shares[(size_t)l * (size_t)job->gpus + (size_t)g] = own;
            used += own;
        }
        if (used > job->room[g]) {
            return false;
        }
    }
    return true;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* What is known of a planned layer, as far as it is true of the one that stays. */
static eplb_plan_layer describe_kept(const eplb_plan_layer *planned, bool same_slots)
{
    eplb_plan_layer layer = *planned;
    layer.imbalance_after = layer.imbalance_before;
    layer.imbalance_searched = layer.imbalance_before;
    layer.lower_bound = smaller(same_slots ? layer.lower_bound : 1.0, layer.imbalance_after);
    layer.bound_searched = smaller(same_slots ? layer.bound_searched : 1.0, layer.imbalance_after);
    eplb_worker_correct_stop(&layer);
    return layer;
}

/* The current placement as a plan. */
static eplb_status build_current(eplb_budget_job *job, const eplb_placement *current,
                                 const int32_t *shares, const eplb_plan *planned, eplb_plan **out,
                                 eplb_error *error)
{
    eplb_status status = eplb_budget_allocate_plan(job, shares, out, error);
    for (int32_t l = 0; l < job->layers && status == EPLB_OK; l++) {
        int32_t *row = eplb_placement_row_of((*out)->placement, l);
        const int32_t *own = shares + (size_t)l * (size_t)job->gpus;
        bool same_slots = true;
        for (int32_t g = 0; g < job->gpus; g++) {
            memcpy(row + (*out)->placement->cluster->first_slot[g],
                   eplb_placement_row(current, l) + current->cluster->first_slot[g],
                   (size_t)own[g] * sizeof(*row));
            same_slots =
                same_slots && eplb_placement_open_slots_on(planned->placement, l, g) == own[g];
        }
        (*out)->layers[l] = describe_kept(&planned->layers[l], same_slots);
    }
    if (status != EPLB_OK) {
        eplb_plan_destroy(out);
    }
    return status;
}

/* The sum of the current placement, whose imbalances the plan has. */
static double sum_before(const eplb_budget_job *job, const eplb_plan *plan)
{
    double sum = 0.0;
    for (int32_t l = 0; l < job->layers; l++) {
        sum += job->layer[l].weight * plan->layers[l].imbalance_before;
    }
    return sum;
}

eplb_status eplb_budget_keep_current(eplb_budget_job *job, const eplb_placement *current,
                                     eplb_plan **plan, eplb_error *error)
{
    bool has_rules = eplb_budget_binds_gpus(job) || job->options->min_replicas > 1 ||
                     job->options->max_replicas >= 0;
    if (has_rules || sum_before(job, *plan) > eplb_budget_sum(job) * (1.0 + EPLB_ROUNDING)) {
        return EPLB_OK;
    }
    eplb_status status = eplb_placement_validate(current, 0, NULL);
    if (status != EPLB_OK) {
        return status == EPLB_ERROR_NOMEM ? eplb_out_of_memory(error) : EPLB_OK;
    }
    int32_t *shares = NULL;
    eplb_plan *kept = NULL;
    status = eplb_budget_allocate_shares(job, &shares, error);
    if (status == EPLB_OK && fits_budgets(job, current, shares)) {
        status = build_current(job, current, shares, *plan, &kept, error);
    }
    eplb_free(&job->hooks, shares);
    if (kept != NULL) {
        eplb_plan_destroy(plan);
        *plan = kept;
    }
    return status;
}
