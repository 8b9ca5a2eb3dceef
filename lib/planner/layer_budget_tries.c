/* SPDX-License-Identifier: MIT */
/* Layers planned with different numbers of slots, and the best choice among them. */
#include "planner/layer_budget.h"

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/knapsack.h"
#include "planner/plan.h"

/* A layer this near to 1 gains nothing from more slots, nor when this many tries one after the
 * other were not better by as much. */
#define NOTHING_LEFT 1e-3
#define PATIENCE 3

/* Slots from one try to the next are this part of the GPUs; nearby tries halve it, this often. */
#define STEP_PART 8
#define REFINEMENTS 3

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

static bool has_tried(const eplb_budget_layer *layer, int32_t slots)
{
    for (int32_t i = 0; i < layer->count; i++) {
        if (layer->tries[i].slots == slots) {
            return true;
        }
    }
    return false;
}

/* Equal layers come first, so that there is something to fall back on. */
static eplb_status try_uniform(eplb_budget_job *job, eplb_error *error)
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

/* Whether even more slots are worth a try, given the layer's last one. */
static void settle(eplb_budget_layer *layer, int32_t slots)
{
    if (layer->count == 0 || layer->tries[layer->count - 1].slots != slots) {
        return; /* its rules do not fit so few slots */
    }
    const eplb_budget_try *last = &layer->tries[layer->count - 1];
    bool better = layer->best <= 0.0 || last->value < layer->best * (1.0 - NOTHING_LEFT);
    layer->stale = better ? 0 : layer->stale + 1;
    layer->best = better ? last->value : layer->best;
    layer->settled = layer->best <= 1.0 + NOTHING_LEFT || layer->stale == PATIENCE;
}

/* Tries one number of slots for those layers that are not settled and have not had it. */
static eplb_status try_slots(eplb_budget_job *job, int32_t slots, eplb_error *error)
{
    int32_t count = 0;
    for (int32_t l = 0; l < job->layers; l++) {
        if (!job->layer[l].settled && !has_tried(&job->layer[l], slots)) {
            job->list[count++] = l;
        }
    }
    if (count == 0 ||
        !eplb_share_slots(job->room, job->gpus, slots, job->experts, &job->scratch, job->shares)) {
        return EPLB_OK;
    }
    eplb_status status = eplb_budget_try_layers(job, job->list, count, job->shares, error);
    for (int32_t i = 0; i < count && status == EPLB_OK; i++) {
        settle(&job->layer[job->list[i]], slots);
    }
    return status;
}

static bool all_have_tries(const eplb_budget_job *job)
{
    for (int32_t l = 0; l < job->layers; l++) {
        if (job->layer[l].count == 0) {
            return false;
        }
    }
    return true;
}

/* The most slots that a layer can have when all others have the fewest. */
static int64_t most_slots(const eplb_budget_job *job, int64_t fewest)
{
    int64_t most = job->capacity - (job->layers - 1) * fewest;
    int64_t distinct = 0;
    for (int32_t g = 0; g < job->gpus; g++) {
        distinct += job->room[g] < job->experts ? job->room[g] : job->experts;
    }
    most = most < distinct ? most : distinct;
    return most < EPLB_MAX_SLOTS ? most : EPLB_MAX_SLOTS;
}

static eplb_status try_rising(eplb_budget_job *job, int64_t fewest, int64_t step, eplb_error *error)
{
    int64_t most = most_slots(job, fewest);
    eplb_status status = EPLB_OK;
    for (int32_t i = 0; i < EPLB_BUDGET_RISES && status == EPLB_OK; i++) {
        int64_t slots = fewest + i * step;
        if (slots > most || (job->cancelled && all_have_tries(job))) {
            break;
        }
        status = try_slots(job, (int32_t)slots, error);
    }
    return status;
}

static eplb_status choose(eplb_budget_job *job, eplb_error *error)
{
    size_t layers = (size_t)job->layers;
    eplb_choice *choices = eplb_alloc(&job->hooks, layers * EPLB_BUDGET_TRIES, sizeof(*choices));
    int32_t *first = eplb_alloc(&job->hooks, layers + 1, sizeof(*first));
    eplb_status status = choices != NULL && first != NULL ? EPLB_OK : eplb_out_of_memory(error);
    int32_t count = 0;
    for (int32_t l = 0; l < job->layers && status == EPLB_OK; l++) {
        const eplb_budget_layer *layer = &job->layer[l];
        first[l] = count;
        for (int32_t i = 0; i < layer->count; i++) {
            choices[count++] = (eplb_choice){.slots = layer->tries[i].slots,
                                             .cost = layer->weight * layer->tries[i].value};
        }
    }
    if (status == EPLB_OK) {
        first[job->layers] = count;
        status = eplb_knapsack_solve(&job->hooks, choices, first, job->layers, job->capacity,
                                     job->list, error);
    }
    for (int32_t l = 0; l < job->layers && status == EPLB_OK; l++) {
        job->layer[l].chosen = job->list[l];
    }
    eplb_free(&job->hooks, choices);
    eplb_free(&job->hooks, first);
    return status;
}

/* Whether a layer's choice is so many slots away, and the layer has not been tried there. */
static bool is_near(const eplb_budget_layer *layer, int32_t slots, int64_t step)
{
    int64_t away = layer->tries[layer->chosen].slots - (int64_t)slots;
    return (away == step || away == -step) && !has_tried(layer, slots);
}

/* The smallest number of slots above `after` that is near some layer's choice; 0: none. */
static int32_t next_near(const eplb_budget_job *job, int32_t after, int64_t step, int64_t most)
{
    int64_t least = 0;
    for (int32_t l = 0; l < job->layers; l++) {
        for (int64_t sign = -1; sign <= 1; sign += 2) {
            const eplb_budget_layer *layer = &job->layer[l];
            int64_t slots = layer->tries[layer->chosen].slots + sign * step;
            if (slots > after && slots <= most && (least == 0 || slots < least) &&
                is_near(layer, (int32_t)slots, step)) {
                least = slots;
            }
        }
    }
    return (int32_t)least;
}

/* Tries numbers of slots that are `step` away from those chosen. */
static eplb_status try_nearby(eplb_budget_job *job, int64_t fewest, int64_t step, eplb_error *error)
{
    int64_t most = most_slots(job, fewest);
    int32_t slots = (int32_t)fewest - 1;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && !job->cancelled &&
           (slots = next_near(job, slots, step, most)) > 0) {
        int32_t count = 0;
        for (int32_t l = 0; l < job->layers; l++) {
            if (is_near(&job->layer[l], slots, step)) {
                job->list[count++] = l;
            }
        }
        if (eplb_share_slots(job->room, job->gpus, slots, job->experts, &job->scratch,
                             job->shares)) {
            status = eplb_budget_try_layers(job, job->list, count, job->shares, error);
        }
    }
    return status;
}

eplb_status eplb_budget_search(eplb_budget_job *job, eplb_error *error)
{
    int64_t fewest = (int64_t)job->experts * job->options->min_replicas;
    int64_t step = (eplb_cluster_live_gpus(job->cluster) + STEP_PART - 1) / STEP_PART;
    if (fewest > job->capacity / job->layers) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "layer budget: %lld slots of all layers do not hold %d experts of "
                              "%d layers: they need %lld",
                              (long long)job->capacity, job->experts, job->layers,
                              (long long)fewest * job->layers);
    }
    eplb_status status = try_uniform(job, error);
    if (status == EPLB_OK && !(job->cancelled && job->has_uniform)) {
        status = try_rising(job, fewest, step, error);
    }
    if (status == EPLB_OK && !all_have_tries(job)) {
        status = eplb_error_set(error, EPLB_ERROR_INFEASIBLE, "layer budget: %.400s",
                                job->reason.message);
    }
    if (status == EPLB_OK) {
        status = choose(job, error);
    }
    for (int32_t i = 0; i < REFINEMENTS && step > 1 && status == EPLB_OK; i++) {
        step = (step + 1) / 2;
        status = try_nearby(job, fewest, step, error);
        if (status == EPLB_OK) {
            status = choose(job, error);
        }
    }
    return status;
}

double eplb_budget_sum(const eplb_budget_job *job)
{
    double sum = 0.0;
    for (int32_t l = 0; l < job->layers; l++) {
        const eplb_budget_layer *layer = &job->layer[l];
        sum += layer->weight * layer->tries[layer->chosen].value;
    }
    return sum;
}
