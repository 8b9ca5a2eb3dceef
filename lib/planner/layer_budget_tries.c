/* SPDX-License-Identifier: MIT */
/* Some layers planned with the slots given, all in one plan. */
#include "planner/layer_budget.h"

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/plan.h"

/* Its layers done are those whose slots are settled, but not all before the end. */
static int report_progress(void *context, int32_t layers_done, int32_t layers)
{
    (void)layers_done;
    (void)layers;
    eplb_budget_job *job = context;
    int32_t settled = 0;
    for (int32_t l = 0; l < job->layers; l++) {
        settled += job->layer[l].settled ? 1 : 0;
    }
    settled = settled < job->layers ? settled : job->layers - 1;
    int stop = job->options->progress(job->options->progress_context, settled, job->layers);
    job->cancelled = job->cancelled || stop != 0;
    return job->cancelled ? 1 : 0;
}

static eplb_status pick_layers(const eplb_budget_job *job, const int32_t *layers, int32_t count,
                               eplb_load **picked, eplb_error *error)
{
    const eplb_load *load = job->load;
    int32_t *ids = eplb_alloc(&job->hooks, (size_t)count, sizeof(*ids));
    if (ids == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_load_create(picked, &job->hooks, eplb_load_scenarios(load), count,
                                          job->experts, error);
    for (int32_t k = 0; status == EPLB_OK && k < eplb_load_scenarios(load); k++) {
        status =
            eplb_load_set_scenario(*picked, k, NULL, eplb_load_scenario_weight(load, k), error);
        for (int32_t i = 0; i < count && status == EPLB_OK; i++) {
            status = eplb_load_set_row(*picked, k, i, eplb_load_row(load, k, layers[i]), error);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        ids[i] = eplb_load_layer_ids(load)[layers[i]];
    }
    if (status == EPLB_OK) {
        status = eplb_load_set_layer_ids(*picked, ids, eplb_load_model_layers(load), error);
    }
    eplb_free(&job->hooks, ids);
    return status;
}

/* The pins of the layers picked, with the numbers that they have there. */
static eplb_status pick_pins(const eplb_budget_job *job, const int32_t *layers, int32_t count,
                             eplb_pin **pins, int32_t *pin_count, eplb_error *error)
{
    const eplb_plan_options *options = job->options;
    *pin_count = 0;
    *pins = eplb_alloc(&job->hooks, (size_t)options->pin_count, sizeof(**pins));
    if (*pins == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t p = 0; p < options->pin_count; p++) {
        int32_t at = 0;
        while (at < count && options->pins[p].layer != layers[at]) {
            at++;
        }
        if (options->pins[p].layer < 0 || at < count) {
            (*pins)[*pin_count] = options->pins[p];
            (*pins)[(*pin_count)++].layer = options->pins[p].layer < 0 ? -1 : at;
        }
    }
    return EPLB_OK;
}

/* Takes a plan over, whether there is room for it or not. */
static eplb_status own_plan(eplb_budget_job *job, eplb_plan *plan, eplb_error *error)
{
    if (job->plan_count == job->plan_capacity) {
        int32_t capacity = job->plan_capacity > 0 ? 2 * job->plan_capacity : 64;
        void *plans = eplb_realloc(&job->hooks, job->plans, (size_t)capacity, sizeof(eplb_plan *));
        if (plans == NULL) {
            eplb_plan_destroy(&plan);
            return eplb_out_of_memory(error);
        }
        job->plans = plans;
        job->plan_capacity = capacity;
    }
    job->plans[job->plan_count++] = plan;
    return EPLB_OK;
}

static eplb_status plan_picked(eplb_budget_job *job, const eplb_load *load,
                               const int32_t *gpu_slots, const eplb_plan_options *options,
                               eplb_error *error)
{
    eplb_cluster *cluster;
    eplb_plan *plan = NULL;
    eplb_status status =
        eplb_cluster_clone_with_slots(&cluster, &job->hooks, job->cluster, gpu_slots, error);
    if (status == EPLB_OK) {
        status = eplb_plan_create(&plan, &job->hooks, load, cluster, NULL, options, error);
        eplb_cluster_destroy(&cluster);
    }
    return status == EPLB_OK ? own_plan(job, plan, error) : status;
}

/* Plans some layers. The plan is the job's last one. */
static eplb_status plan_layers(eplb_budget_job *job, const int32_t *layers, int32_t count,
                               const int32_t *gpu_slots, eplb_error *error)
{
    eplb_plan_options options = *job->options;
    eplb_load *load = NULL;
    eplb_pin *pins = NULL;
    options.draft_layers = 0; /* the layers picked need not be the last */
    options.progress_context = job;
    options.progress = options.progress != NULL ? report_progress : NULL;
    eplb_status status = pick_layers(job, layers, count, &load, error);
    if (status == EPLB_OK) {
        status = pick_pins(job, layers, count, &pins, &options.pin_count, error);
        options.pins = pins;
    }
    if (status == EPLB_OK) {
        status = plan_picked(job, load, gpu_slots, &options, error);
    }
    eplb_free(&job->hooks, pins);
    eplb_load_destroy(&load);
    return status;
}

static void note_tries(eplb_budget_job *job, const int32_t *layers, int32_t count)
{
    const eplb_plan *plan = job->plans[job->plan_count - 1];
    for (int32_t i = 0; i < count; i++) {
        eplb_budget_layer *layer = &job->layer[layers[i]];
        layer->tries[layer->count++] =
            (eplb_budget_try){.slots = eplb_cluster_live_slots(plan->placement->cluster),
                              .value = plan->layers[i].imbalance_after,
                              .plan = plan,
                              .row = i};
    }
}

eplb_status eplb_budget_try_layers(eplb_budget_job *job, const int32_t *layers, int32_t count,
                                   const int32_t *gpu_slots, eplb_error *error)
{
    eplb_status status = plan_layers(job, layers, count, gpu_slots, &job->reason);
    if (status == EPLB_OK) {
        note_tries(job, layers, count);
        return EPLB_OK;
    }
    if (status != EPLB_ERROR_INFEASIBLE) {
        return eplb_error_set(error, status, "%s", job->reason.message);
    }
    status = EPLB_OK;
    for (int32_t i = 0; i < count && count > 1 && status == EPLB_OK; i++) {
        status = eplb_budget_try_layers(job, &layers[i], 1, gpu_slots, error);
    }
    return status;
}

eplb_status eplb_budget_try_uniform(eplb_budget_job *job, eplb_error *error)
{
    for (int32_t l = 0; l < job->layers; l++) {
        job->list[l] = l;
    }
    eplb_status status = plan_layers(job, job->list, job->layers, job->uniform, &job->reason);
    if (status == EPLB_OK) {
        job->has_uniform = true;
        note_tries(job, job->list, job->layers);
    }
    return status == EPLB_OK || status == EPLB_ERROR_INFEASIBLE
               ? EPLB_OK
               : eplb_error_set(error, status, "%s", job->reason.message);
}
