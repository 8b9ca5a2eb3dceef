/* SPDX-License-Identifier: MIT */
/* Which numbers of slots are tried, and the best choice among them. */
#include "planner/layer_budget.h"

#include <stdio.h>

#include "base/memory.h"
#include "planner/knapsack.h"

/* A layer this near to 1 gains nothing from more slots, nor when this many tries one after the
 * other were not better by as much. */
#define NOTHING_LEFT 1e-3
#define PATIENCE 3

/* Slots from one try to the next are this part of the GPUs; nearby tries halve it, this often. */
#define STEP_PART 8
#define REFINEMENTS 3

static bool has_tried(const eplb_budget_layer *layer, int32_t slots)
{
    for (int32_t i = 0; i < layer->count; i++) {
        if (layer->tries[i].slots == slots) {
            return true;
        }
    }
    return false;
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
        char replicas[40] = "";
        if (job->options->min_replicas > 1) {
            snprintf(replicas, sizeof(replicas), "%d replicas of each of ",
                     job->options->min_replicas);
        }
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "layer budget: %lld slots of all layers do not hold %s%d experts of "
                              "%d layers: they need %lld",
                              (long long)job->capacity, replicas, job->experts, job->layers,
                              (long long)fewest * job->layers);
    }
    eplb_status status = eplb_budget_try_uniform(job, error);
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
