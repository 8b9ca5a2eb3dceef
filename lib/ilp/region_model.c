/* SPDX-License-Identifier: MIT */
/*
 * Columns: for each guest and each count that it may have whether it has that count (none where
 * there is one), and for each free GPU whether it has a replica there and that count; for each
 * scenario the largest load of all GPUs and of the free ones. Taking the replicas apart by counts
 * makes shares constants and the relaxation tight.
 */
#include <math.h>
#include <string.h>

#include <eplb/plan.h>

#include "ilp/region.h"

/* What the free GPUs' largest load costs, as a part of what the largest of all costs: it falls
 * below GPUs that stay, for the next region's sake. */
#define INNER_COST 0.01

static double share(const eplb_ilp_region *region, const eplb_ilp_guest *guest, int32_t choice,
                    int32_t scenario)
{
    const eplb_refine_task *task = region->task;
    double load = task->loads[(size_t)scenario * (size_t)task->experts + (size_t)guest->expert];
    return load / (double)guest->count[choice];
}

static double share_now(const eplb_ilp_region *region, const eplb_ilp_guest *guest,
                        int32_t scenario)
{
    const eplb_refine_task *task = region->task;
    double load = task->loads[(size_t)scenario * (size_t)task->experts + (size_t)guest->expert];
    return load / (double)region->count[guest->expert];
}

/* One column more than the scenarios need where the worst of them counts. */
static void add_largest(eplb_ilp_region *region, eplb_ilp_model *model)
{
    const eplb_refine_task *task = region->task;
    bool is_worst = task->objective == EPLB_OBJECTIVE_MAX_OF_MAX;
    for (int32_t k = 0; k < task->scenarios; k++) {
        double cost = is_worst ? 1.0 : task->weights[k];
        if (is_worst && k > 0) {
            region->largest_of[k] = region->largest_of[0];
            region->inner_of[k] = region->inner_of[0];
            continue;
        }
        region->largest_of[k] = eplb_ilp_add_column(model, 0.0, INFINITY, cost);
        region->inner_of[k] = eplb_ilp_add_column(model, 0.0, INFINITY, INNER_COST * cost);
        int32_t row = eplb_ilp_add_row(model, 0.0, INFINITY);
        eplb_ilp_add_entry(model, row, region->largest_of[k], 1.0);
        eplb_ilp_add_entry(model, row, region->inner_of[k], -1.0);
    }
}

static void add_guest_columns(eplb_ilp_region *region, eplb_ilp_model *model, eplb_ilp_guest *guest)
{
    for (int32_t i = 0; i < guest->counts; i++) {
        guest->chosen[i] = guest->counts > 1 ? eplb_ilp_add_binary(model, 0.0) : -1;
        guest->first[i] = -1;
        for (int32_t g = 0; guest->count[i] > guest->outside && g < region->free_gpus; g++) {
            int32_t column = eplb_ilp_add_binary(model, 0.0);
            guest->first[i] = g == 0 ? column : guest->first[i];
        }
    }
}

/* Exactly one count, as many replicas as it says, none with another one: that follows for integers,
 * but makes the relaxation tighter. */
static void add_guest_rows(const eplb_ilp_region *region, eplb_ilp_model *model,
                           const eplb_ilp_guest *guest)
{
    int32_t one = guest->counts > 1 ? eplb_ilp_add_row(model, 1.0, 1.0) : -1;
    for (int32_t i = 0; i < guest->counts; i++) {
        int32_t chosen = guest->chosen[i];
        if (chosen >= 0) {
            eplb_ilp_add_entry(model, one, chosen, 1.0);
        }
        if (guest->first[i] < 0) {
            continue;
        }
        double wanted = (double)(guest->count[i] - guest->outside);
        int32_t all = chosen < 0 ? eplb_ilp_add_row(model, wanted, wanted)
                                 : eplb_ilp_add_row(model, 0.0, 0.0);
        for (int32_t g = 0; g < region->free_gpus; g++) {
            eplb_ilp_add_entry(model, all, guest->first[i] + g, 1.0);
        }
        if (chosen < 0) {
            continue;
        }
        eplb_ilp_add_entry(model, all, chosen, -wanted);
        for (int32_t g = 0; wanted > 1.0 && g < region->free_gpus; g++) {
            int32_t only_then = eplb_ilp_add_row(model, -INFINITY, 0.0);
            eplb_ilp_add_entry(model, only_then, guest->first[i] + g, 1.0);
            eplb_ilp_add_entry(model, only_then, chosen, -1.0);
        }
    }
}

/* A free GPU's slots and loads. */
static void add_gpu_rows(const eplb_ilp_region *region, eplb_ilp_model *model, int32_t place)
{
    const eplb_refine_task *task = region->task;
    int32_t gpu = region->gpu[place];
    double slots = (double)(task->first_slot[gpu + 1] - task->first_slot[gpu]);
    int32_t full = eplb_ilp_add_row(model, slots, slots);
    for (int32_t k = -1; k < task->scenarios; k++) {
        int32_t row = k < 0 ? full : eplb_ilp_add_row(model, -INFINITY, 0.0);
        for (int32_t j = 0; j < region->guests; j++) {
            const eplb_ilp_guest *guest = &region->guest[j];
            for (int32_t i = 0; i < guest->counts; i++) {
                if (guest->first[i] >= 0) {
                    eplb_ilp_add_entry(model, row, guest->first[i] + place,
                                       k < 0 ? 1.0 : share(region, guest, i, k));
                }
            }
        }
        if (k >= 0) {
            eplb_ilp_add_entry(model, row, region->inner_of[k], -1.0);
        }
    }
}

/* Whether a guest's count may change whose share is part of the load of a GPU that stays. */
static bool may_change(const eplb_ilp_region *region, int32_t gpu)
{
    const eplb_refine_task *task = region->task;
    for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
        int32_t guest = region->guest_of[region->placement[s]];
        if (guest >= 0 && region->guest[guest].counts > 1) {
            return true;
        }
    }
    return false;
}

/* The load of a GPU that stays, with what changes of counts add to it. */
static void add_kept_row(const eplb_ilp_region *region, eplb_ilp_model *model, int32_t gpu,
                         int32_t scenario)
{
    const eplb_refine_task *task = region->task;
    double load = region->load[(size_t)gpu * (size_t)task->scenarios + (size_t)scenario];
    double most = load;
    for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
        int32_t j = region->guest_of[region->placement[s]];
        if (j >= 0) {
            const eplb_ilp_guest *guest = &region->guest[j];
            most +=
                fmax(0.0, share(region, guest, 0, scenario) - share_now(region, guest, scenario));
        }
    }
    if (most <= region->kept[scenario]) {
        return; /* another that stays has more in any case */
    }
    int32_t row = eplb_ilp_add_row(model, load, INFINITY);
    eplb_ilp_add_entry(model, row, region->largest_of[scenario], 1.0);
    for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
        int32_t j = region->guest_of[region->placement[s]];
        for (int32_t i = 0; j >= 0 && i < region->guest[j].counts; i++) {
            const eplb_ilp_guest *guest = &region->guest[j];
            double more = share(region, guest, i, scenario) - share_now(region, guest, scenario);
            if (guest->chosen[i] >= 0 && more != 0.0) {
                eplb_ilp_add_entry(model, row, guest->chosen[i], -more);
            }
        }
    }
}

static void add_kept_rows(eplb_ilp_region *region, eplb_ilp_model *model)
{
    const eplb_refine_task *task = region->task;
    for (int32_t k = 0; k < task->scenarios; k++) {
        region->kept[k] = 0.0;
        for (int32_t g = 0; g < task->gpus; g++) {
            double load = region->load[(size_t)g * (size_t)task->scenarios + (size_t)k];
            if (!region->is_free[g] && load > region->kept[k] && !may_change(region, g)) {
                region->kept[k] = load;
            }
        }
        eplb_ilp_column *largest = &model->columns[region->largest_of[k]];
        largest->lower = fmax(largest->lower, region->kept[k]);
    }
    for (int32_t g = 0; g < task->gpus; g++) {
        for (int32_t k = 0; !region->is_free[g] && may_change(region, g) && k < task->scenarios;
             k++) {
            add_kept_row(region, model, g, k);
        }
    }
}

static bool is_pinned(const eplb_ilp_region *region, int32_t slot)
{
    return region->task->pinned != NULL && region->task->pinned[slot] != 0;
}

/* What is on a GPU must stay on it, whatever its count. */
static void hold(const eplb_ilp_region *region, eplb_ilp_model *model, int32_t expert,
                 int32_t place)
{
    const eplb_ilp_guest *guest = &region->guest[region->guest_of[expert]];
    int32_t row = eplb_ilp_add_row(model, 1.0, 1.0);
    for (int32_t i = 0; i < guest->counts; i++) {
        if (guest->first[i] >= 0) {
            eplb_ilp_add_entry(model, row, guest->first[i] + place, 1.0);
        }
    }
}

/* Pins; and where free GPUs could change their names, the hottest expert that must have a replica
 * on them keeps one in its place. */
static void add_pins(const eplb_ilp_region *region, eplb_ilp_model *model)
{
    const eplb_refine_task *task = region->task;
    int32_t hottest = -1;
    int32_t place = -1;
    double most = -1.0;
    int32_t slots = task->first_slot[region->gpu[0] + 1] - task->first_slot[region->gpu[0]];
    bool alike = true;
    for (int32_t g = 0; g < region->free_gpus; g++) {
        int32_t gpu = region->gpu[g];
        alike = alike && task->first_slot[gpu + 1] - task->first_slot[gpu] == slots;
        for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
            const eplb_ilp_guest *guest = &region->guest[region->guest_of[region->placement[s]]];
            if (is_pinned(region, s)) {
                hold(region, model, guest->expert, g);
                alike = false;
            }
            if (guest->count[0] > guest->outside && share_now(region, guest, 0) > most) {
                most = share_now(region, guest, 0);
                hottest = guest->expert;
                place = g;
            }
        }
    }
    if (alike && hottest >= 0) {
        hold(region, model, hottest, place);
    }
}

void eplb_ilp_region_model(eplb_ilp_region *region, eplb_ilp_model *model)
{
    add_largest(region, model);
    for (int32_t j = 0; j < region->guests; j++) {
        add_guest_columns(region, model, &region->guest[j]);
    }
    for (int32_t j = 0; j < region->guests; j++) {
        add_guest_rows(region, model, &region->guest[j]);
    }
    for (int32_t g = 0; g < region->free_gpus; g++) {
        add_gpu_rows(region, model, g);
    }
    if (!model->out_of_memory) {
        add_kept_rows(region, model);
        add_pins(region, model);
    }
}

/* Which of a guest's choices is its count now. */
static int32_t choice_now(const eplb_ilp_region *region, const eplb_ilp_guest *guest)
{
    int32_t choice = 0;
    while (guest->count[choice] != region->count[guest->expert]) {
        choice++;
    }
    return choice;
}

void eplb_ilp_region_start(const eplb_ilp_region *region, const eplb_ilp_model *model,
                           double *values)
{
    const eplb_refine_task *task = region->task;
    memset(values, 0, (size_t)model->column_count * sizeof(double));
    for (int32_t j = 0; j < region->guests; j++) {
        const eplb_ilp_guest *guest = &region->guest[j];
        int32_t choice = choice_now(region, guest);
        if (guest->chosen[choice] >= 0) {
            values[guest->chosen[choice]] = 1.0;
        }
    }
    for (int32_t g = 0; g < region->free_gpus; g++) {
        int32_t gpu = region->gpu[g];
        for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
            const eplb_ilp_guest *guest = &region->guest[region->guest_of[region->placement[s]]];
            values[guest->first[choice_now(region, guest)] + g] = 1.0;
        }
        for (int32_t k = 0; k < task->scenarios; k++) {
            double load = region->load[(size_t)gpu * (size_t)task->scenarios + (size_t)k];
            double *inner = &values[region->inner_of[k]];
            *inner = fmax(*inner, load);
        }
    }
    for (int32_t k = 0; k < task->scenarios; k++) {
        double *largest = &values[region->largest_of[k]];
        *largest = fmax(*largest, region->largest[k]);
    }
}

static bool is_on(const eplb_ilp_guest *guest, const double *values, int32_t place)
{
    for (int32_t i = 0; i < guest->counts; i++) {
        if (guest->first[i] >= 0 && values[guest->first[i] + place] > 0.5) {
            return true;
        }
    }
    return false;
}

void eplb_ilp_region_apply(eplb_ilp_region *region, const double *values)
{
    const eplb_refine_task *task = region->task;
    for (int32_t g = 0; g < region->free_gpus; g++) {
        int32_t end = task->first_slot[region->gpu[g] + 1];
        bool has[EPLB_ILP_REGION_EXPERTS] = {false};
        for (int32_t s = task->first_slot[region->gpu[g]]; s < end; s++) {
            int32_t j = region->guest_of[region->placement[s]];
            has[j] = is_on(&region->guest[j], values, g);
            region->placement[s] = has[j] ? region->placement[s] : -1;
        }
        int32_t s = task->first_slot[region->gpu[g]];
        for (int32_t j = 0; j < region->guests; j++) {
            if (has[j] || !is_on(&region->guest[j], values, g)) {
                continue;
            }
            while (s < end && region->placement[s] >= 0) {
                s++;
            }
            if (s < end) {
                region->placement[s] = region->guest[j].expert;
            }
        }
    }
    eplb_ilp_region_score(region);
}
