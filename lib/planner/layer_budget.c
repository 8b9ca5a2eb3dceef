/* SPDX-License-Identifier: MIT */
/* The public calls, and what they prepare. */
#include "planner/layer_budget.h"

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"
#include "planner/plan.h"
#include "planner/rules.h"

/* Equal layers stay where less than this part of their sum would be gained: engines take them more
 * easily. */
#define WORTHWHILE 1e-4

static eplb_status check(const eplb_load *load, const eplb_cluster *cluster,
                         const int64_t *gpu_budget, const eplb_plan_options *options,
                         eplb_error *error)
{
    static const char what[] = "layer budget";
    eplb_status status = eplb_check_given(what, "budgets", gpu_budget, error);
    for (int32_t g = 0; g < cluster->gpus && status == EPLB_OK; g++) {
        status = eplb_check_range(what, "slots of a GPU", gpu_budget[g], 0, INT64_MAX, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if (options->algorithm != EPLB_ALGORITHM_SEARCH || options->groups > 1 ||
        options->node_cost >= 0.0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: layers with different numbers of slots go without %s", what,
                              options->algorithm != EPLB_ALGORITHM_SEARCH ? "algorithm eplb"
                              : options->groups > 1                       ? "groups"
                                                                          : "a node_cost");
    }
    return eplb_rules_check_pins(options, cluster, eplb_load_layers(load), eplb_load_experts(load),
                                 error);
}

static double tokens_of(const eplb_load *load, int32_t scenario, int32_t layer)
{
    const double *row = eplb_load_row(load, scenario, layer);
    double sum = 0.0;
    for (int32_t e = 0; e < eplb_load_experts(load); e++) {
        sum += row[e];
    }
    return sum;
}

/* Adds a scenario's part: each layer's tokens / the mean of the layers, times `weight`. Sums are
 * scaled by the largest, so that they stay finite. False when the scenario has no tokens. */
static bool add_scenario(eplb_budget_job *job, int32_t scenario, double weight)
{
    double largest = 0.0;
    for (int32_t l = 0; l < job->layers; l++) {
        double tokens = tokens_of(job->load, scenario, l);
        largest = tokens > largest ? tokens : largest;
    }
    if (!(largest > 0.0)) {
        return false;
    }
    double mean = 0.0;
    for (int32_t l = 0; l < job->layers; l++) {
        mean += tokens_of(job->load, scenario, l) / largest;
    }
    mean /= job->layers;
    for (int32_t l = 0; l < job->layers; l++) {
        job->layer[l].weight += weight * (tokens_of(job->load, scenario, l) / largest / mean);
    }
    return true;
}

/* What a layer's imbalance counts: 1 for each where all have equally many tokens. */
static void weigh_layers(eplb_budget_job *job)
{
    int32_t scenarios = eplb_load_scenarios(job->load);
    double most = 0.0;
    for (int32_t k = 0; k < scenarios; k++) {
        double weight = eplb_load_scenario_weight(job->load, k);
        most = weight > most ? weight : most;
    }
    double sum = 0.0;
    for (int32_t k = 0; k < scenarios; k++) {
        double weight = eplb_load_scenario_weight(job->load, k) / most;
        sum += add_scenario(job, k, weight) ? weight : 0.0;
    }
    for (int32_t l = 0; l < job->layers && sum > 0.0; l++) {
        job->layer[l].weight /= sum;
    }
}

/* What can be used of the budgets: no GPU has an expert of a layer twice. */
static void take_budgets(eplb_budget_job *job, const int64_t *gpu_budget)
{
    int64_t most = (int64_t)job->experts * job->layers;
    for (int32_t g = 0; g < job->gpus; g++) {
        int64_t room = gpu_budget[g] < most ? gpu_budget[g] : most;
        job->room[g] = job->cluster->gpu[g].alive ? room : 0;
        job->capacity += job->room[g];
        job->uniform[g] = (int32_t)(job->room[g] / job->layers);
    }
}

#define ARRAY(member, length) EPLB_ARRAY(job->member, length)

static eplb_status allocate(eplb_budget_job *job, eplb_error *error)
{
    size_t gpus = (size_t)job->gpus;
    size_t layers = (size_t)job->layers;
    const eplb_array arrays[] = {
        ARRAY(room, gpus),
        ARRAY(uniform, gpus),
        ARRAY(layer, layers),
        ARRAY(list, layers),
        ARRAY(shares, gpus),
        ARRAY(from, gpus),
        ARRAY(to, gpus),
        ARRAY(scratch.key, gpus),
        ARRAY(scratch.order, gpus),
        ARRAY(scratch.sorted, gpus),
    };
    return eplb_alloc_arrays(&job->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

static void release(eplb_budget_job *job)
{
    for (int32_t i = 0; i < job->plan_count; i++) {
        eplb_plan_destroy(&job->plans[i]);
    }
    void *const arrays[] = {job->plans,       job->room,          job->uniform,       job->layer,
                            job->list,        job->shares,        job->from,          job->to,
                            job->scratch.key, job->scratch.order, job->scratch.sorted};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(&job->hooks, arrays[i]);
    }
}

/* The better of what was chosen and of equal layers. */
static eplb_status make_plan(eplb_budget_job *job, eplb_plan **plan, bool *is_uniform,
                             eplb_error *error)
{
    eplb_status status = eplb_budget_place(job, plan, error);
    *is_uniform = false;
    if (status != EPLB_OK) {
        return status;
    }
    if (!job->has_uniform) {
        return *plan != NULL ? EPLB_OK
                             : eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                              "layer budget: no way was found to share the slots "
                                              "of all layers among the GPUs: %.300s",
                                              job->reason.message);
    }
    double uniform = 0.0;
    for (int32_t l = 0; l < job->layers; l++) {
        uniform += job->layer[l].weight * job->layer[l].tries[0].value;
    }
    *is_uniform = *plan == NULL || !(eplb_budget_sum(job) < uniform * (1.0 - WORTHWHILE));
    if (!*is_uniform) {
        return EPLB_OK;
    }
    eplb_plan_destroy(plan);
    return eplb_budget_place_uniform(job, plan, error);
}

/* What the current placement is worth. */
static eplb_status score_current(const eplb_budget_job *job, const eplb_placement *current,
                                 eplb_plan *plan, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < job->layers && status == EPLB_OK; l++) {
        status = eplb_placement_objective(current, l, job->load, l,
                                          (eplb_objective)job->options->objective,
                                          &plan->layers[l].imbalance_before, error);
    }
    return status;
}

/* Fills what is told about the budget. */
static eplb_status describe(const eplb_budget_job *job, bool is_uniform, eplb_plan *plan,
                            eplb_error *error)
{
    eplb_layer_budget_info *info = &plan->budget;
    *info = (eplb_layer_budget_info){.struct_size = sizeof(*info),
                                     .has_uniform = job->has_uniform,
                                     .is_uniform = is_uniform,
                                     .fewest_slots = INT32_MAX,
                                     .budget = job->capacity};
    plan->budget_layers =
        eplb_alloc_zeroed(&job->hooks, (size_t)job->layers, sizeof(*plan->budget_layers));
    if (plan->budget_layers == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t g = 0; g < job->gpus && job->has_uniform; g++) {
        info->uniform_slots += job->uniform[g];
    }
    for (int32_t l = 0; l < job->layers; l++) {
        const eplb_budget_layer *from = &job->layer[l];
        eplb_layer_budget_layer *layer = &plan->budget_layers[l];
        *layer = (eplb_layer_budget_layer){.struct_size = sizeof(*layer),
                                           .slots = eplb_placement_open_slots(plan->placement, l),
                                           .weight = from->weight,
                                           .imbalance_uniform =
                                               job->has_uniform ? from->tries[0].value : 0.0};
        info->fewest_slots = layer->slots < info->fewest_slots ? layer->slots : info->fewest_slots;
        info->most_slots = layer->slots > info->most_slots ? layer->slots : info->most_slots;
        info->used += layer->slots;
        info->sum += layer->weight * plan->layers[l].imbalance_after;
        info->sum_uniform += layer->weight * layer->imbalance_uniform;
    }
    return EPLB_OK;
}

/* Whether each layer has the slots that equal layers get. */
static bool has_equal_layers(const eplb_budget_job *job, const eplb_placement *placement)
{
    for (int32_t l = 0; l < job->layers; l++) {
        for (int32_t g = 0; g < job->gpus; g++) {
            if (eplb_placement_open_slots_on(placement, l, g) != job->uniform[g]) {
                return false;
            }
        }
    }
    return job->has_uniform;
}

static eplb_status finish(eplb_budget_job *job, const eplb_placement *current, eplb_plan **plan,
                          eplb_error *error)
{
    bool is_uniform;
    eplb_status status = make_plan(job, plan, &is_uniform, error);
    if (status == EPLB_OK && current != NULL) {
        const eplb_plan *planned = *plan;
        status = score_current(job, current, *plan, error);
        if (status == EPLB_OK) {
            status = eplb_budget_keep_current(job, current, plan, error);
        }
        is_uniform = *plan == planned ? is_uniform : has_equal_layers(job, (*plan)->placement);
    }
    if (status == EPLB_OK) {
        status = describe(job, is_uniform, *plan, error);
    }
    if (status == EPLB_OK) {
        status = eplb_plan_summarise(*plan, current, error);
    }
    if (status == EPLB_OK && job->cancelled) {
        (*plan)->info.stop = EPLB_STOP_CANCELLED;
    }
    return status;
}

static eplb_status run(eplb_budget_job *job, const int64_t *gpu_budget,
                       const eplb_placement *current, eplb_plan **plan, eplb_error *error)
{
    eplb_status status = allocate(job, error);
    if (status == EPLB_OK) {
        take_budgets(job, gpu_budget);
        weigh_layers(job);
        status = eplb_budget_search(job, error);
    }
    if (status == EPLB_OK) {
        status = finish(job, current, plan, error);
    }
    if (status == EPLB_OK && job->options->progress != NULL) {
        (void)job->options->progress(job->options->progress_context, job->layers, job->layers);
    }
    return status;
}

eplb_status eplb_plan_create_in_budget(eplb_plan **out, const eplb_hooks *hooks,
                                       const eplb_load *load, const eplb_cluster *cluster,
                                       const int64_t *gpu_budget, const eplb_placement *current,
                                       const eplb_plan_options *options, eplb_error *error)
{
    if (out == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: no output");
    }
    *out = NULL;
    eplb_plan_options complete;
    eplb_status status = eplb_plan_check(load, cluster, current, options, &complete, error);
    if (status == EPLB_OK) {
        status = eplb_plan_find_draft_layers(load, current, &complete, error);
    }
    if (status == EPLB_OK) {
        status = check(load, cluster, gpu_budget, &complete, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_budget_job job = {.hooks = eplb_hooks_resolve(hooks),
                           .load = load,
                           .cluster = cluster,
                           .options = &complete,
                           .layers = eplb_load_layers(load),
                           .experts = eplb_load_experts(load),
                           .gpus = eplb_cluster_gpus(cluster)};
    eplb_plan *plan = NULL;
    status = run(&job, gpu_budget, current, &plan, error);
    release(&job);
    if (status != EPLB_OK) {
        eplb_plan_destroy(&plan);
        return status;
    }
    *out = plan;
    return EPLB_OK;
}

eplb_status eplb_plan_get_layer_budget(const eplb_plan *plan, eplb_layer_budget_info *info,
                                       eplb_error *error)
{
    if (plan == NULL || plan->budget_layers == NULL || info == NULL ||
        info->struct_size < sizeof(info->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "layer budget: no plan in a budget, or no output");
    }
    eplb_struct_out(info, &plan->budget, sizeof(plan->budget));
    return EPLB_OK;
}

eplb_status eplb_plan_get_budget_layer(const eplb_plan *plan, int32_t layer,
                                       eplb_layer_budget_layer *result, eplb_error *error)
{
    if (plan == NULL || plan->budget_layers == NULL || result == NULL ||
        result->struct_size < sizeof(result->struct_size) || layer < 0 ||
        layer >= plan->info.layers) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "layer budget: no plan in a budget, no output or no layer %d", layer);
    }
    eplb_struct_out(result, &plan->budget_layers[layer], sizeof(plan->budget_layers[layer]));
    return EPLB_OK;
}
