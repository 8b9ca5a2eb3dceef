/* SPDX-License-Identifier: MIT */
#include "ilp/region.h"

#include <eplb/plan.h>

#include "base/memory.h"

eplb_status eplb_ilp_region_init(eplb_ilp_region *region, const eplb_hooks *hooks,
                                 const eplb_refine_task *task, const int32_t *placement,
                                 eplb_error *error)
{
    *region = (eplb_ilp_region){.task = task};
    size_t gpus = (size_t)task->gpus;
    size_t experts = (size_t)task->experts;
    size_t scenarios = (size_t)task->scenarios;
    size_t loads;
    if (!eplb_size_mul(gpus, scenarios, &loads)) {
        return eplb_out_of_memory(error);
    }
    const eplb_array arrays[] = {
        EPLB_ARRAY(region->placement, (size_t)task->slots),
        EPLB_ARRAY(region->count, experts),
        EPLB_ARRAY(region->load, loads),
        EPLB_ARRAY(region->largest, scenarios),
        EPLB_ARRAY(region->is_free, gpus),
        EPLB_ARRAY(region->guest_of, experts),
        EPLB_ARRAY(region->kept, scenarios),
        EPLB_ARRAY(region->largest_of, scenarios),
        EPLB_ARRAY(region->inner_of, scenarios),
    };
    eplb_status status =
        eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status == EPLB_OK) {
        memcpy(region->placement, placement, (size_t)task->slots * sizeof(int32_t));
        eplb_ilp_region_score(region);
    }
    return status;
}

void eplb_ilp_region_free(eplb_ilp_region *region, const eplb_hooks *hooks)
{
    void *arrays[] = {region->placement, region->count,      region->load,
                      region->largest,   region->is_free,    region->guest_of,
                      region->kept,      region->largest_of, region->inner_of};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    *region = (eplb_ilp_region){0};
}

static void score_gpu(eplb_ilp_region *region, int32_t gpu, int32_t scenario)
{
    const eplb_refine_task *task = region->task;
    const double *loads = task->loads + (size_t)scenario * (size_t)task->experts;
    double sum = 0.0;
    for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
        int32_t expert = region->placement[s];
        sum += loads[expert] / (double)region->count[expert];
    }
    region->load[(size_t)gpu * (size_t)task->scenarios + (size_t)scenario] = sum;
    if (sum > region->largest[scenario]) {
        region->largest[scenario] = sum;
    }
}

void eplb_ilp_region_score(eplb_ilp_region *region)
{
    const eplb_refine_task *task = region->task;
    memset(region->count, 0, (size_t)task->experts * sizeof(int32_t));
    for (int32_t s = 0; s < task->slots; s++) {
        region->count[region->placement[s]]++;
    }
    double mean = 0.0;
    double worst = 0.0;
    for (int32_t k = 0; k < task->scenarios; k++) {
        region->largest[k] = 0.0;
        for (int32_t g = 0; g < task->gpus; g++) {
            score_gpu(region, g, k);
        }
        mean += task->weights[k] * region->largest[k];
        worst = region->largest[k] > worst ? region->largest[k] : worst;
    }
    region->value =
        task->objective == EPLB_OBJECTIVE_MAX_OF_MAX || task->scenarios == 1 ? worst : mean;
}

static int32_t inside(const eplb_ilp_region *region, int32_t expert)
{
    const eplb_refine_task *task = region->task;
    int32_t found = 0;
    for (int32_t i = 0; i < region->free_gpus; i++) {
        int32_t gpu = region->gpu[i];
        for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
            found += region->placement[s] == expert ? 1 : 0;
        }
    }
    return found;
}

static bool add_guest(eplb_ilp_region *region, int32_t expert, bool moves_counts)
{
    const eplb_refine_task *task = region->task;
    if (region->guest_of[expert] >= 0) {
        return true;
    }
    if (region->guests == EPLB_ILP_REGION_EXPERTS) {
        return false;
    }
    int32_t now = region->count[expert];
    eplb_ilp_guest guest = {.expert = expert, .inside = inside(region, expert)};
    guest.outside = now - guest.inside;
    int32_t fewest = now > 1 && now > task->min_replicas && guest.inside > 0 ? now - 1 : now;
    int32_t most = now < task->max_replicas && guest.inside < region->free_gpus ? now + 1 : now;
    fewest = moves_counts ? fewest : now;
    most = moves_counts ? most : now;
    for (int32_t c = fewest; c <= most; c++) {
        guest.count[guest.counts++] = c;
    }
    region->guest_of[expert] = region->guests;
    region->guest[region->guests++] = guest;
    return true;
}

bool eplb_ilp_region_invite(eplb_ilp_region *region, const int32_t *movers, int32_t count)
{
    const eplb_refine_task *task = region->task;
    region->guests = 0;
    memset(region->is_free, 0, (size_t)task->gpus);
    for (int32_t e = 0; e < task->experts; e++) {
        region->guest_of[e] = -1;
    }
    bool fits = true;
    for (int32_t i = 0; i < count; i++) {
        fits = fits && add_guest(region, movers[i], true);
    }
    for (int32_t i = 0; i < region->free_gpus; i++) {
        int32_t gpu = region->gpu[i];
        region->is_free[gpu] = 1;
        for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
            fits = fits && add_guest(region, region->placement[s], false);
        }
    }
    return fits;
}
