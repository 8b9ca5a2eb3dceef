/* SPDX-License-Identifier: MIT */
/* The public call: what is tried in which order, and what is then proven. */
#include <math.h>

#include "ilp/fewest.h"
#include "ilp/ilp.h"

#include "base/memory.h"
#include "base/range.h"

static const char what[] = "fewest copies";

/* Of the nodes, the part that a search through a small layer may take before neighbourhoods have
 * their turn. */
#define SEARCH_PART 2
/* And of these the part that the search for the best balance may take. */
#define BALANCE_PART 2

typedef struct finding {
    eplb_fewest_layer layer;
    double current_value; /* of the current placement, when any other one has copies; else 0 */
    int64_t least_copies;
    double least_imbalance;
    bool impossible;
} finding;

/* Whether a placement has the row, and as many experts and GPUs as the rest of the task. */
static eplb_status check_placement(const eplb_fewest_task *task, const char *name,
                                   const eplb_placement *placement, int32_t row, eplb_error *error)
{
    eplb_status status =
        eplb_check_range(what, name, row, 0, eplb_placement_layers(placement) - 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    int32_t experts = eplb_load_experts(task->load);
    int32_t gpus = eplb_cluster_gpus(task->cluster);
    int32_t own_experts = eplb_placement_experts(placement);
    int32_t own_gpus = eplb_cluster_gpus(eplb_placement_cluster(placement));
    return own_experts == experts && own_gpus == gpus
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                "%s: %s: %d experts on %d GPUs, expected %d on %d", what, name,
                                own_experts, own_gpus, experts, gpus);
}

static eplb_status check_start(const eplb_fewest_task *task, eplb_error *error)
{
    eplb_status status = check_placement(task, "start row", task->start, task->start_row, error);
    const eplb_cluster *cluster = eplb_placement_cluster(task->start);
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster) && status == EPLB_OK; g++) {
        int32_t slots = eplb_cluster_gpu_slots(cluster, g);
        int32_t expected = eplb_cluster_gpu_slots(task->cluster, g);
        if (slots != expected) {
            status = eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                    "%s: start: GPU %d has %d slots, expected %d", what, g, slots,
                                    expected);
        }
    }
    return status;
}

static eplb_status check_given(const eplb_fewest_task *task, eplb_error *error)
{
    const struct {
        const char *name;
        const void *pointer;
    } given[] = {
        {"current placement", task->current}, {"load", task->load}, {"cluster", task->cluster}};
    eplb_status status = EPLB_OK;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]) && status == EPLB_OK; i++) {
        status = eplb_check_given(what, given[i].name, given[i].pointer, error);
    }
    return status;
}

static eplb_status check(const eplb_fewest_task *task, eplb_error *error)
{
    eplb_status status = check_given(task, error);
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "objective", task->objective, EPLB_OBJECTIVE_MEAN_OF_MAX,
                                  EPLB_OBJECTIVE_SUM, error);
    }
    if (status == EPLB_OK && !(isfinite(task->target) && task->target >= 1.0)) {
        status =
            eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                           "%s: target %g is not a finite number from 1 on", what, task->target);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range(what, "layer", task->layer, 0, eplb_load_layers(task->load) - 1,
                                  error);
    }
    if (status == EPLB_OK) {
        status = check_placement(task, "current row", task->current, task->current_row, error);
    }
    return status == EPLB_OK && task->start != NULL ? check_start(task, error) : status;
}

/* The current placement itself, where it is full and has every expert. */
static eplb_status offer_current(finding *f, int32_t *chosen, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    int32_t slot = 0;
    int32_t missing = layer->experts;
    memset(layer->counts, 0, (size_t)layer->experts * sizeof(*layer->counts));
    for (int32_t g = 0; g < layer->gpus; g++) {
        for (int32_t e = 0; e < layer->experts; e++) {
            if (!eplb_fewest_is_home(layer, g, e)) {
                continue;
            }
            if (slot == layer->first[g + 1]) {
                return EPLB_OK;
            }
            chosen[slot++] = e;
            missing -= layer->counts[e]++ == 0 ? 1 : 0;
        }
        if (slot < layer->first[g + 1]) {
            return EPLB_OK;
        }
    }
    f->current_value = INFINITY;
    return missing == 0 ? eplb_fewest_offer(layer, chosen, &f->current_value, error) : EPLB_OK;
}

static eplb_status offer_start(eplb_fewest_layer *layer, int32_t *chosen, eplb_error *error)
{
    const int32_t *row = eplb_placement_row(layer->task->start, layer->task->start_row);
    eplb_status status = eplb_placement_set_row(layer->row, 0, row, error);
    if (status == EPLB_OK) {
        status = eplb_placement_validate(layer->row, 0, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_fewest_choose_row(layer, row, chosen);
    return eplb_fewest_offer(layer, chosen, NULL, error);
}

static int ask_stop(void *context, int32_t layers_done, int32_t layers)
{
    const eplb_fewest_task *task = context;
    (void)layers_done;
    (void)layers;
    return task->stop != NULL ? task->stop(task->stop_context) : 0;
}

/* A plan from nothing, and its bound. */
static eplb_status offer_plan(finding *f, int32_t *chosen, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    eplb_fewest_task task = *layer->task;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.objective = task.objective;
    options.progress = ask_stop;
    options.progress_context = &task;
    eplb_plan *plan;
    eplb_status status = eplb_plan_create(&plan, &layer->hooks, layer->own_load, task.cluster, NULL,
                                          &options, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_plan_layer info = {.struct_size = sizeof(info)};
    status = eplb_plan_get_layer(plan, 0, &info, error);
    if (status == EPLB_OK && info.lower_bound > f->least_imbalance) {
        f->least_imbalance = info.lower_bound;
    }
    eplb_fewest_choose_row(layer, eplb_placement_row(eplb_plan_placement(plan), 0), chosen);
    eplb_plan_destroy(&plan);
    if (status == EPLB_OK) {
        status = eplb_fewest_rename(layer, chosen, error);
    }
    return status == EPLB_OK ? eplb_fewest_offer(layer, chosen, NULL, error) : status;
}

/* What there is to begin with. */
static eplb_status offer_starts(finding *f, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    int32_t *chosen = eplb_alloc(&layer->hooks, (size_t)layer->slots, sizeof(*chosen));
    if (chosen == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = offer_current(f, chosen, error);
    if (status == EPLB_OK && layer->task->start != NULL) {
        status = offer_start(layer, chosen, error);
    }
    if (status == EPLB_OK && !eplb_fewest_reached(layer)) {
        status = offer_plan(f, chosen, error);
    }
    eplb_free(&layer->hooks, chosen);
    return status;
}

static bool is_best_known(const finding *f)
{
    return f->layer.best_value <= f->least_imbalance * (1.0 + EPLB_FEWEST_ROUNDING);
}

/* One copy more at a time. */
static eplb_fewest_end search_copies(finding *f, eplb_fewest_search *search, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    eplb_fewest_end end = EPLB_FEWEST_NOTHING;
    while (end == EPLB_FEWEST_NOTHING && f->least_copies < layer->best_copies) {
        end = eplb_fewest_search_run(search, f->least_copies, error);
        f->least_copies += end == EPLB_FEWEST_NOTHING ? 1 : 0;
    }
    return end;
}

/* From here on the best imbalance that is known will do, where the target is not reached. When a
 * current placement without an empty slot will not do, there is a copy. */
static void settle(finding *f)
{
    eplb_fewest_layer *layer = &f->layer;
    if (!eplb_fewest_reached(layer)) {
        layer->limit = layer->best_value * (1.0 + EPLB_FEWEST_ROUNDING);
    }
    if (f->current_value > layer->limit && f->least_copies < 1) {
        f->least_copies = 1;
    }
}

/* The best balance that there is, unless the target is reached already. */
static eplb_status search_balance(finding *f, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    int64_t nodes = layer->most_nodes > 0 ? layer->most_nodes / BALANCE_PART : layer->most_nodes;
    if (eplb_fewest_reached(layer) || is_best_known(f)) {
        return EPLB_OK;
    }
    eplb_status status = eplb_fewest_balance(layer, nodes, &f->least_imbalance, error);
    f->impossible = !eplb_fewest_reached(layer) && f->least_imbalance > layer->limit;
    return status;
}

static eplb_status search_through(finding *f, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    eplb_status status = search_balance(f, error);
    if (status != EPLB_OK || !(eplb_fewest_reached(layer) || is_best_known(f))) {
        return status;
    }
    settle(f);
    eplb_fewest_search *search;
    status = eplb_fewest_search_create(&search, layer, error);
    if (status == EPLB_OK) {
        eplb_fewest_end end = search_copies(f, search, error);
        status = end == EPLB_FEWEST_FAILED ? layer->failure : EPLB_OK;
        eplb_fewest_search_destroy(&search);
    }
    return status;
}

/* Neighbourhoods, where there is no proof; without a start, from the current placement as well. */
static eplb_status search_parts(finding *f, int64_t memory_bytes, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    eplb_status status = EPLB_OK;
    if (f->impossible) {
        settle(f);
    }
    if (layer->task->start == NULL || !eplb_fewest_reached(layer)) {
        status = eplb_fewest_construct(layer, memory_bytes, error);
    }
    settle(f);
    return status == EPLB_OK && f->least_copies < layer->best_copies
               ? eplb_fewest_improve(layer, memory_bytes, error)
               : status;
}

static eplb_status find(finding *f, const eplb_ilp *ilp, eplb_error *error)
{
    eplb_fewest_layer *layer = &f->layer;
    f->least_copies = eplb_fewest_least_copies(layer);
    f->least_imbalance = layer->scenarios > 0 ? 1.0 : 0.0;
    layer->limit = layer->task->target * (1.0 + EPLB_FEWEST_ROUNDING);
    eplb_status status = offer_starts(f, error);
    if (status != EPLB_OK) {
        return status;
    }
    f->impossible = f->least_imbalance > layer->limit;
    if (eplb_fewest_is_small(layer)) {
        int64_t nodes = ilp->options.nodes;
        layer->most_nodes = nodes > 0 ? nodes / SEARCH_PART : nodes;
        status = search_through(f, error);
    }
    layer->most_nodes = ilp->options.nodes;
    if (status == EPLB_OK && f->least_copies < layer->best_copies) {
        status = search_parts(f, ilp->options.memory_bytes, error);
    }
    return status;
}

static eplb_fewest_verdict verdict_of(const finding *f, bool reached)
{
    if (f->impossible) {
        return EPLB_FEWEST_IMPOSSIBLE;
    }
    if (!reached) {
        return EPLB_FEWEST_NOT_REACHED;
    }
    return f->layer.best_copies <= f->least_copies ? EPLB_FEWEST_PROVEN : EPLB_FEWEST_REACHED;
}

static eplb_stop stop_of(const finding *f, bool reached)
{
    const eplb_fewest_layer *layer = &f->layer;
    bool is_balanced = reached || (f->impossible && is_best_known(f));
    if (is_balanced && layer->best_copies <= f->least_copies) {
        return EPLB_STOP_OPTIMAL;
    }
    if (layer->cancelled) {
        return EPLB_STOP_CANCELLED;
    }
    return layer->most_nodes >= 0 && layer->nodes >= layer->most_nodes ? EPLB_STOP_EFFORT
                                                                       : EPLB_STOP_LOCAL_OPTIMUM;
}

static void report(const finding *f, eplb_fewest_result *result)
{
    const eplb_fewest_layer *layer = &f->layer;
    double target = layer->task->target * (1.0 + EPLB_FEWEST_ROUNDING);
    bool reached = layer->best_value <= target;
    double least = f->least_imbalance;
    eplb_fewest_result own = {
        .struct_size = sizeof(own),
        .verdict = (int32_t)verdict_of(f, reached),
        .stop = (int32_t)stop_of(f, reached),
        .copies = layer->best_copies,
        .copies_at_least = f->least_copies,
        .imbalance = layer->best_value,
        .imbalance_at_least = least < layer->best_value ? least : layer->best_value,
        .nodes = layer->nodes,
    };
    eplb_struct_out(result, &own, sizeof(own));
}

/* Finds, and takes the placement out of the layer. */
static eplb_status solve(finding *f, const eplb_ilp *ilp, const eplb_fewest_task *task,
                         eplb_placement **out, eplb_error *error)
{
    eplb_status status = eplb_fewest_layer_init(&f->layer, &ilp->hooks, task, error);
    if (status != EPLB_OK) {
        return status;
    }
    status = eplb_placement_spread(f->layer.row, 0, error); /* says what does not fit */
    if (status == EPLB_OK) {
        status = find(f, ilp, error);
    }
    if (status == EPLB_OK) {
        status = eplb_fewest_write(&f->layer, f->layer.best, error);
    }
    if (status == EPLB_OK) {
        *out = f->layer.row;
        f->layer.row = NULL;
    }
    return status;
}

eplb_status eplb_ilp_fewest_copies(const eplb_ilp *ilp, eplb_placement **out,
                                   const eplb_fewest_task *task, eplb_fewest_result *result,
                                   eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (ilp == NULL || out == NULL || task == NULL || result == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: no eplb_ilp, output or task", what);
    }
    eplb_fewest_task complete;
    eplb_fewest_task_init(&complete);
    if (!eplb_struct_in(&complete, sizeof(complete), task) ||
        result->struct_size < sizeof(result->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "%s: a task or result without struct_size", what);
    }
    eplb_status status = check(&complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    finding f = {0};
    status = solve(&f, ilp, &complete, out, error);
    if (status == EPLB_OK) {
        report(&f, result);
    }
    eplb_fewest_layer_free(&f.layer);
    return status;
}

eplb_status eplb_ilp_find_fewest(void *context, eplb_placement **out, const eplb_fewest_task *task,
                                 eplb_fewest_result *result, eplb_error *error)
{
    return eplb_ilp_fewest_copies(context, out, task, result, error);
}
