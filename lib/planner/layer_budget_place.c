/* SPDX-License-Identifier: MIT */
/* From one number of slots for each layer to a plan: which GPUs have them, and what is in them. */
#include "planner/layer_budget.h"

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/layer.h"
#include "planner/plan.h"

bool eplb_budget_binds_gpus(const eplb_budget_job *job)
{
    return job->options->pin_count > 0 || job->options->spread_nodes != 0;
}

/* GPUs by their slots, most first. */
static void order_by_slots(eplb_budget_job *job, const int32_t *gpu_slots, int32_t *order)
{
    for (int32_t g = 0; g < job->gpus; g++) {
        job->scratch.key[g] = (double)gpu_slots[g];
        order[g] = g;
    }
    eplb_sort_descending(order, job->gpus, job->scratch.key, job->scratch.sorted);
}

/* Pairs the GPUs of a try with those of the slots that the layer gets, `from` with `to`. False when
 * they are not the same but for their order, or must keep it. */
static bool pair_gpus(eplb_budget_job *job, const eplb_budget_try *from, const int32_t *gpu_slots)
{
    const eplb_cluster *cluster = from->plan->placement->cluster;
    bool same = true;
    for (int32_t g = 0; g < job->gpus; g++) {
        job->shares[g] = cluster->gpu[g].slots;
        same = same && job->shares[g] == gpu_slots[g];
    }
    if (!same && eplb_budget_binds_gpus(job)) {
        return false;
    }
    order_by_slots(job, job->shares, job->from);
    order_by_slots(job, gpu_slots, job->to);
    for (int32_t i = 0; i < job->gpus; i++) {
        if (job->shares[job->from[i]] != gpu_slots[job->to[i]]) {
            return false;
        }
    }
    return true;
}

/* Plans a layer again where what was tried does not fit the slots that it gets. False when its
 * rules do not fit them. */
static eplb_status fit_layer(eplb_budget_job *job, int32_t index, const int32_t *gpu_slots,
                             bool *fits, eplb_error *error)
{
    eplb_budget_layer *layer = &job->layer[index];
    *fits = pair_gpus(job, &layer->tries[layer->chosen], gpu_slots);
    if (*fits) {
        return EPLB_OK;
    }
    int32_t count = layer->count;
    eplb_status status = eplb_budget_try_layers(job, &index, 1, gpu_slots, error);
    *fits = layer->count > count;
    layer->chosen = *fits ? count : layer->chosen;
    return status;
}

/* The slots of all layers: each takes its own where most of the budgets is left. False when GPUs
 * with room for more than each expert of the layers that are left keep too much of it. */
static bool share_all(const eplb_budget_job *job, int64_t *room, int64_t *usable, int32_t *shares)
{
    for (int32_t g = 0; g < job->gpus; g++) {
        room[g] = job->room[g];
    }
    for (int32_t l = 0; l < job->layers; l++) {
        int32_t *own = shares + (size_t)l * (size_t)job->gpus;
        int64_t most = (int64_t)job->experts * (job->layers - l);
        for (int32_t g = 0; g < job->gpus; g++) {
            usable[g] = room[g] < most ? room[g] : most;
        }
        int32_t slots = job->layer[l].tries[job->layer[l].chosen].slots;
        if (!eplb_share_slots(usable, job->gpus, slots, job->experts, &job->scratch, own)) {
            return false;
        }
        for (int32_t g = 0; g < job->gpus; g++) {
            room[g] -= own[g];
        }
    }
    return true;
}

/* Writes what a try has on its GPUs into the slots that the layer gets. */
static void write_row(eplb_budget_job *job, const eplb_budget_try *from, const int32_t *gpu_slots,
                      eplb_placement *placement, int32_t index)
{
    const int32_t *old_row = eplb_placement_row(from->plan->placement, from->row);
    const int32_t *old_first = from->plan->placement->cluster->first_slot;
    const int32_t *new_first = placement->cluster->first_slot;
    int32_t *new_row = eplb_placement_row_of(placement, index);
    (void)pair_gpus(job, from, gpu_slots);
    for (int32_t i = 0; i < job->gpus; i++) {
        memcpy(new_row + new_first[job->to[i]], old_row + old_first[job->from[i]],
               (size_t)gpu_slots[job->to[i]] * sizeof(*new_row));
    }
}

eplb_status eplb_budget_allocate_plan(eplb_budget_job *job, const int32_t *shares, eplb_plan **plan,
                                      eplb_error *error)
{
    size_t gpus = (size_t)job->gpus;
    for (size_t g = 0; g < gpus; g++) {
        job->shares[g] = 0;
        for (size_t l = 0; l < (size_t)job->layers; l++) {
            int32_t own = shares[l * gpus + g];
            job->shares[g] = own > job->shares[g] ? own : job->shares[g];
        }
    }
    eplb_cluster *cluster;
    eplb_status status =
        eplb_cluster_clone_with_slots(&cluster, &job->hooks, job->cluster, job->shares, error);
    if (status == EPLB_OK) {
        status = eplb_plan_allocate(plan, &job->hooks, job->load, cluster, job->options, error);
        eplb_cluster_destroy(&cluster);
    }
    bool differ = false;
    for (size_t i = 0; i < (size_t)job->layers * gpus; i++) {
        differ = differ || shares[i] != job->shares[i % gpus];
    }
    for (int32_t l = 0; l < job->layers && differ && status == EPLB_OK; l++) {
        status =
            eplb_placement_set_layer_slots((*plan)->placement, l, shares + (size_t)l * gpus, error);
    }
    return status;
}

/* Makes the plan of the tries chosen, which fit the shares [layers][gpus]. */
static eplb_status build(eplb_budget_job *job, const int32_t *shares, eplb_plan **plan,
                         eplb_error *error)
{
    eplb_status status = eplb_budget_allocate_plan(job, shares, plan, error);
    for (int32_t l = 0; l < job->layers && status == EPLB_OK; l++) {
        const eplb_budget_try *from = &job->layer[l].tries[job->layer[l].chosen];
        write_row(job, from, shares + (size_t)l * (size_t)job->gpus, (*plan)->placement, l);
        (*plan)->layers[l] = from->plan->layers[from->row];
    }
    if (status != EPLB_OK) {
        eplb_plan_destroy(plan);
    }
    return status;
}

eplb_status eplb_budget_allocate_shares(const eplb_budget_job *job, int32_t **shares,
                                        eplb_error *error)
{
    size_t count;
    if (!eplb_size_mul((size_t)job->layers, (size_t)job->gpus, &count)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "layer budget: its size overflows");
    }
    *shares = eplb_alloc(&job->hooks, count, sizeof(**shares));
    return *shares != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static eplb_status share_and_build(eplb_budget_job *job, int32_t *shares, eplb_plan **out,
                                   eplb_error *error)
{
    size_t gpus = (size_t)job->gpus;
    int64_t *room = eplb_alloc(&job->hooks, gpus, sizeof(*room));
    int64_t *usable = eplb_alloc(&job->hooks, gpus, sizeof(*usable));
    bool has_memory = room != NULL && usable != NULL;
    bool fits = has_memory && share_all(job, room, usable, shares);
    eplb_free(&job->hooks, room);
    eplb_free(&job->hooks, usable);
    eplb_status status = has_memory ? EPLB_OK : eplb_out_of_memory(error);
    for (int32_t l = 0; l < job->layers && fits && status == EPLB_OK; l++) {
        status = fit_layer(job, l, shares + (size_t)l * gpus, &fits, error);
    }
    return status == EPLB_OK && fits ? build(job, shares, out, error) : status;
}

eplb_status eplb_budget_place(eplb_budget_job *job, eplb_plan **out, eplb_error *error)
{
    int32_t *shares = NULL;
    *out = NULL;
    eplb_status status = eplb_budget_allocate_shares(job, &shares, error);
    if (status == EPLB_OK) {
        status = share_and_build(job, shares, out, error);
    }
    eplb_free(&job->hooks, shares);
    return status;
}

eplb_status eplb_budget_place_uniform(eplb_budget_job *job, eplb_plan **out, eplb_error *error)
{
    int32_t *shares = NULL;
    *out = NULL;
    eplb_status status = eplb_budget_allocate_shares(job, &shares, error);
    for (int32_t l = 0; l < job->layers && status == EPLB_OK; l++) {
        job->layer[l].chosen = 0;
        memcpy(shares + (size_t)l * (size_t)job->gpus, job->uniform,
               (size_t)job->gpus * sizeof(*shares));
    }
    if (status == EPLB_OK) {
        status = build(job, shares, out, error);
    }
    eplb_free(&job->hooks, shares);
    return status;
}
