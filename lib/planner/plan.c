/* SPDX-License-Identifier: MIT */
#include <eplb/plan.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/hierarchy.h"
#include "planner/job.h"
#include "planner/plan.h"
#include "planner/threads.h"
#include "planner/traffic.h"

const char *eplb_stop_name(eplb_stop stop)
{
    switch (stop) {
    case EPLB_STOP_OPTIMAL:
        return "optimal";
    case EPLB_STOP_LOCAL_OPTIMUM:
        return "local_optimum";
    case EPLB_STOP_EFFORT:
        return "effort";
    case EPLB_STOP_COPIES:
        return "copies";
    case EPLB_STOP_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}

void eplb_plan_options_init(eplb_plan_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_plan_options){.struct_size = sizeof(*options),
                                   .algorithm = EPLB_ALGORITHM_SEARCH,
                                   .effort = 5,
                                   .threads = 1,
                                   .groups = 1,
                                   .objective = EPLB_OBJECTIVE_MEAN_OF_MAX,
                                   .min_replicas = 1,
                                   .max_replicas = -1,
                                   .node_cost = -1.0,
                                   .draft_layers = -1};
}

static eplb_status check_options(const eplb_plan_options *options, eplb_error *error)
{
    if (options->algorithm != EPLB_ALGORITHM_SEARCH && options->algorithm != EPLB_ALGORITHM_EPLB) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: unknown algorithm %d",
                              options->algorithm);
    }
    if (options->effort < 1 || options->effort > 9) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: effort %d not in 1..9",
                              options->effort);
    }
    if (options->threads < 1 || options->threads > EPLB_MAX_THREADS) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: %d threads not in 1..%d",
                              options->threads, EPLB_MAX_THREADS);
    }
    if (options->objective < EPLB_OBJECTIVE_MEAN_OF_MAX ||
        options->objective > EPLB_OBJECTIVE_SUM) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: unknown objective %d",
                              options->objective);
    }
    if (options->groups < 1) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: %d groups below 1",
                              options->groups);
    }
    return EPLB_OK;
}

static eplb_status check_rules(const eplb_plan_options *options, eplb_error *error)
{
    eplb_status status =
        eplb_check_range("plan", "min_replicas", options->min_replicas, 1, EPLB_MAX_GPUS, error);
    if (status == EPLB_OK && options->max_replicas != -1) {
        status = eplb_check_range("plan", "max_replicas", options->max_replicas, 1, EPLB_MAX_GPUS,
                                  error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("plan", "spread_nodes", options->spread_nodes, 0, 1, error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_check_range("plan", "number of pins", options->pin_count, 0, INT32_MAX, error);
    }
    if (status == EPLB_OK && options->pin_count > 0) {
        status = eplb_check_given("plan", "pins", options->pins, error);
    }
    return status;
}

static bool has_rules(const eplb_plan_options *options)
{
    return options->min_replicas != 1 || options->max_replicas != -1 ||
           options->spread_nodes != 0 || options->pin_count != 0;
}

/* The classical algorithm knows equal GPUs on equal nodes only, and so do groups. */
static eplb_status check_structure(const eplb_load *load, const eplb_cluster *cluster,
                                   const eplb_plan_options *options, eplb_error *error)
{
    bool is_classical = options->algorithm == EPLB_ALGORITHM_EPLB;
    if (!is_classical && options->groups == 1) {
        return EPLB_OK;
    }
    const char *what = is_classical ? "algorithm eplb" : "plan with groups";
    if (has_rules(options) || options->node_cost >= 0.0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: it knows no limits of replicas, pins or nodes, nor a price of "
                              "traffic",
                              what);
    }
    return eplb_hierarchy_check(what, cluster, eplb_load_experts(load), options->groups, error);
}

/* -1 or a price. */
static eplb_status check_node_cost(double cost, eplb_error *error)
{
    if (cost == -1.0 || (cost >= 0.0 && cost <= EPLB_MAX_NODE_COST)) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: node_cost %g not in 0..%g, or -1",
                          cost, EPLB_MAX_NODE_COST);
}

static eplb_status check_current(const eplb_load *load, const eplb_cluster *cluster,
                                 const eplb_placement *current, eplb_error *error)
{
    if (current == NULL) {
        return EPLB_OK;
    }
    if (current->layers != eplb_load_layers(load) || current->experts != eplb_load_experts(load) ||
        current->cluster->gpus != cluster->gpus) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "current placement of %d layers x %d experts on %d GPUs, expected %d "
                              "x %d on %d",
                              current->layers, current->experts, current->cluster->gpus,
                              eplb_load_layers(load), eplb_load_experts(load), cluster->gpus);
    }
    eplb_error reason;
    eplb_status status = eplb_placement_validate(
        current, EPLB_VALIDATE_ALLOW_EMPTY | EPLB_VALIDATE_ALLOW_DUPLICATES, &reason);
    if (status == EPLB_ERROR_NOMEM) {
        return eplb_out_of_memory(error);
    }
    if (status != EPLB_OK) {
        return eplb_error_set(error, status, "current placement: %s", reason.message);
    }
    return EPLB_OK;
}

/* A refiner knows imbalance and what makes a placement valid, limits of replicas and pins. */
static eplb_status check_refiner(const eplb_plan_options *options, eplb_error *error)
{
    const eplb_refiner *refiner = options->refiner;
    if (refiner == NULL) {
        return EPLB_OK;
    }
    if (refiner->struct_size < sizeof(*refiner) || refiner->refine == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "plan: a refiner without struct_size or function");
    }
    if (options->algorithm == EPLB_ALGORITHM_EPLB || options->groups > 1 ||
        options->spread_nodes != 0 || options->node_cost >= 0.0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "plan: no refiner with %s: it knows the balance of GPUs only",
                              options->algorithm == EPLB_ALGORITHM_EPLB ? "algorithm eplb"
                              : options->groups > 1                     ? "groups"
                              : options->spread_nodes != 0              ? "spread_nodes"
                                                                        : "a node_cost");
    }
    return EPLB_OK;
}

eplb_status eplb_plan_find_draft_layers(const eplb_load *load, const eplb_placement *current,
                                        eplb_plan_options *options, eplb_error *error)
{
    int32_t known = current != NULL ? current->draft_layers : 0;
    options->draft_layers = options->draft_layers == -1 ? known : options->draft_layers;
    if (current != NULL && options->draft_layers != known) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "plan: draft_layers %d, but %d in the current placement",
                              options->draft_layers, known);
    }
    return eplb_check_range("plan", "draft_layers", options->draft_layers, 0,
                            eplb_load_layers(load) - 1, error);
}

static eplb_status check_inputs(const eplb_load *load, const eplb_cluster *cluster,
                                const eplb_placement *current, const eplb_plan_options *options,
                                eplb_error *error)
{
    if (load == NULL || cluster == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan: no load or no cluster");
    }
    eplb_status status = check_options(options, error);
    if (status == EPLB_OK) {
        status = check_rules(options, error);
    }
    if (status == EPLB_OK) {
        status = check_node_cost(options->node_cost, error);
    }
    if (status == EPLB_OK) {
        status = check_refiner(options, error);
    }
    if (status == EPLB_OK) {
        status = check_structure(load, cluster, options, error);
    }
    if (status == EPLB_OK) {
        status = check_current(load, cluster, current, error);
    }
    return status;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

eplb_status eplb_plan_summarise(eplb_plan *plan, const eplb_placement *current, eplb_error *error)
{
    eplb_plan_info *info = &plan->info;
    info->has_current = current != NULL;
    int32_t known_before = 0;
    for (int32_t l = 0; l < info->layers; l++) {
        eplb_plan_layer *layer = &plan->layers[l];
        if (current != NULL) {
            eplb_status status =
                eplb_placement_copies(current, plan->placement, l, &layer->copies, error);
            if (status != EPLB_OK) {
                return status;
            }
        }
        info->copies += layer->copies;
        info->moves += layer->moves;
        info->refine_nodes += layer->refine_nodes;
        info->stop = layer->stop > info->stop ? layer->stop : info->stop;
        if (!layer->scored) {
            continue;
        }
        info->scored_layers++;
        info->imbalance_before_mean += layer->imbalance_before;
        known_before += layer->imbalance_before > 0.0;
        info->imbalance_after_mean += layer->imbalance_after;
        info->lower_bound_mean += layer->lower_bound;
        info->imbalance_searched_mean += layer->imbalance_searched;
        info->bound_searched_mean += layer->bound_searched;
        info->imbalance_before_worst =
            larger(info->imbalance_before_worst, layer->imbalance_before);
        info->imbalance_after_worst = larger(info->imbalance_after_worst, layer->imbalance_after);
    }
    if (info->scored_layers > 0) {
        info->imbalance_before_mean /= known_before > 0 ? known_before : 1;
        info->imbalance_after_mean /= info->scored_layers;
        info->lower_bound_mean /= info->scored_layers;
        info->imbalance_searched_mean /= info->scored_layers;
        info->bound_searched_mean /= info->scored_layers;
    }
    eplb_status status = eplb_placement_validate(plan->placement, 0, NULL);
    info->valid = status == EPLB_OK; /* not so is no error of the call */
    return status == EPLB_ERROR_NOMEM ? eplb_out_of_memory(error) : EPLB_OK;
}

eplb_status eplb_plan_allocate(eplb_plan **out, const eplb_hooks *hooks, const eplb_load *load,
                               const eplb_cluster *cluster, const eplb_plan_options *options,
                               eplb_error *error)
{
    eplb_plan *plan = eplb_alloc_zeroed(hooks, 1, sizeof(*plan));
    *out = plan;
    if (plan == NULL) {
        return eplb_out_of_memory(error);
    }
    plan->hooks = *hooks;
    plan->info.struct_size = sizeof(plan->info);
    plan->info.layers = eplb_load_layers(load);
    size_t layers = (size_t)plan->info.layers;
    bool has_choices = options->node_cost >= 0.0;
    plan->layers = eplb_alloc_zeroed(hooks, layers, sizeof(*plan->layers));
    if (has_choices) {
        plan->choices =
            eplb_alloc_zeroed(hooks, layers * EPLB_NODE_CHOICES, sizeof(*plan->choices));
    }
    if (plan->layers == NULL || (has_choices && plan->choices == NULL)) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_placement_create(&plan->placement, hooks, cluster, plan->info.layers,
                                               eplb_load_experts(load), error);
    if (status == EPLB_OK) {
        status = eplb_placement_set_layer_ids(plan->placement, eplb_load_layer_ids(load),
                                              eplb_load_model_layers(load), error);
    }
    return status == EPLB_OK
               ? eplb_placement_set_draft_layers(plan->placement, options->draft_layers, error)
               : status;
}

eplb_status eplb_plan_check(const eplb_load *load, const eplb_cluster *cluster,
                            const eplb_placement *current, const eplb_plan_options *options,
                            eplb_plan_options *complete, eplb_error *error)
{
    eplb_plan_options_init(complete);
    if (options != NULL && !eplb_struct_in(complete, sizeof(*complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "plan: options without struct_size: see eplb_plan_options_init");
    }
    return check_inputs(load, cluster, current, complete, error);
}

eplb_status eplb_plan_create(eplb_plan **out, const eplb_hooks *hooks, const eplb_load *load,
                             const eplb_cluster *cluster, const eplb_placement *current,
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
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_plan *plan;
    status = eplb_plan_allocate(&plan, &resolved, load, cluster, &complete, error);
    if (status == EPLB_OK) {
        eplb_plan_job job = {.load = load,
                             .cluster = cluster,
                             .current = current,
                             .options = &complete,
                             .placement = plan->placement,
                             .layers = plan->layers,
                             .choices = plan->choices};
        status = eplb_plan_job_run(&job, &resolved, error);
    }
    if (status == EPLB_OK) {
        status = eplb_plan_summarise(plan, current, error);
    }
    if (status != EPLB_OK) {
        eplb_plan_destroy(&plan);
        return status;
    }
    *out = plan;
    return EPLB_OK;
}

void eplb_plan_destroy(eplb_plan **plan)
{
    if (plan == NULL || *plan == NULL) {
        return;
    }
    eplb_plan *self = *plan;
    eplb_hooks hooks = self->hooks;
    eplb_placement_destroy(&self->placement);
    eplb_free(&hooks, self->layers);
    eplb_free(&hooks, self->choices);
    eplb_free(&hooks, self->rebalance_layers);
    eplb_free(&hooks, self->curve_first);
    eplb_free(&hooks, self->curve);
    eplb_free(&hooks, self->budget_layers);
    eplb_free(&hooks, self);
    *plan = NULL;
}

const eplb_placement *eplb_plan_placement(const eplb_plan *plan)
{
    return plan->placement;
}

eplb_status eplb_plan_get_info(const eplb_plan *plan, eplb_plan_info *info, eplb_error *error)
{
    if (plan == NULL || info == NULL || info->struct_size < sizeof(info->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "plan info: no plan or no output");
    }
    eplb_struct_out(info, &plan->info, sizeof(plan->info));
    return EPLB_OK;
}

eplb_status eplb_plan_get_layer(const eplb_plan *plan, int32_t layer, eplb_plan_layer *result,
                                eplb_error *error)
{
    if (plan == NULL || result == NULL || result->struct_size < sizeof(result->struct_size) ||
        layer < 0 || layer >= plan->info.layers) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "plan layer: no plan, no output or no layer %d", layer);
    }
    eplb_struct_out(result, &plan->layers[layer], sizeof(plan->layers[layer]));
    return EPLB_OK;
}

static eplb_node_choice sum_up_choice(const eplb_plan *plan, int32_t choice)
{
    double tolerance = eplb_traffic_tolerance(choice);
    eplb_node_choice sum = {
        .struct_size = sizeof(sum), .exchanges = choice > 0, .tolerance = tolerance};
    for (int32_t l = 0; l < plan->info.layers; l++) {
        const eplb_plan_choice *c = &plan->choices[l * EPLB_NODE_CHOICES + choice];
        if (plan->layers[l].scored) {
            sum.imbalance_mean += c->imbalance / plan->info.scored_layers;
            sum.imbalance_worst = larger(sum.imbalance_worst, c->imbalance);
            sum.cross_node += c->cross_node / plan->info.scored_layers;
        }
    }
    return sum;
}

eplb_status eplb_plan_get_node_choice(const eplb_plan *plan, int32_t choice,
                                      eplb_node_choice *result, eplb_error *error)
{
    if (plan == NULL || result == NULL || result->struct_size < sizeof(result->struct_size) ||
        plan->choices == NULL || choice < 0 || choice >= EPLB_NODE_CHOICES) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "node choice: no plan with a node_cost, no output or no choice %d",
                              choice);
    }
    eplb_node_choice sum = sum_up_choice(plan, choice);
    eplb_struct_out(result, &sum, sizeof(sum));
    return EPLB_OK;
}
