/* SPDX-License-Identifier: MIT */
/* A plan from nothing does not care which GPU is which: those that already hold most of it. */
#include <string.h>

#include "planner/rebalance.h"

#include "base/memory.h"
#include "model/assignment.h"
#include "model/placement.h"
#include "planner/plan.h"

/* Above so many GPUs of a kind the best assignment takes too long: they keep their numbers. */
#define MOST_GPUS 256

/* GPUs that may be exchanged: as many slots. */
typedef struct renaming {
    int32_t *gpu;    /* [gpus] of the kind at hand */
    int32_t *column; /* [gpus] */
    int64_t *cost;   /* [gpus][gpus] pairs that are new */
    bool *has;       /* [experts] */
} renaming;

/* Pairs of a planned GPU that a GPU does not have now. */
static void mark(const eplb_rebalance_job *job, int32_t layer, int32_t gpu, bool value, bool *has)
{
    const eplb_cluster *before = job->current->cluster;
    int32_t cluster_gpu = job->shape.cluster_gpu[gpu];
    const int32_t *row = eplb_placement_row(job->current, layer);
    for (int32_t s = before->first_slot[cluster_gpu]; s < before->first_slot[cluster_gpu + 1];
         s++) {
        if (row[s] >= 0) {
            has[row[s]] = value;
        }
    }
}

static const int32_t *planned(const eplb_rebalance_job *job, int32_t layer, int32_t gpu)
{
    return eplb_placement_row(job->plan->placement, layer) +
           job->cluster->first_slot[job->shape.cluster_gpu[gpu]];
}

static void find_costs(const eplb_rebalance_job *job, int32_t layer, renaming *r, int32_t count,
                       int32_t slots)
{
    for (int32_t h = 0; h < count; h++) {
        mark(job, layer, r->gpu[h], true, r->has);
        for (int32_t g = 0; g < count; g++) {
            const int32_t *experts = planned(job, layer, r->gpu[g]);
            int64_t cost = 0;
            for (int32_t i = 0; i < slots; i++) {
                cost += !r->has[experts[i]];
            }
            r->cost[(size_t)g * (size_t)count + (size_t)h] = cost;
        }
        mark(job, layer, r->gpu[h], false, r->has);
    }
}

static eplb_status rename_kind(eplb_rebalance_job *job, int32_t layer, renaming *r, int32_t slots,
                               eplb_error *error)
{
    const eplb_shape *shape = &job->shape;
    int32_t count = 0;
    for (int32_t g = 0; g < shape->gpus; g++) {
        if (shape->first_slot[g + 1] - shape->first_slot[g] == slots) {
            r->gpu[count++] = g;
        }
    }
    bool may = count <= MOST_GPUS && shape->rules == NULL;
    if (may) {
        find_costs(job, layer, r, count, slots);
        eplb_status status = eplb_assign(&job->hooks, count, r->cost, r->column, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    for (int32_t g = 0; g < count; g++) {
        int32_t to = r->gpu[may ? r->column[g] : g];
        memcpy(job->traces[layer].fresh + shape->first_slot[to], planned(job, layer, r->gpu[g]),
               (size_t)slots * sizeof(int32_t));
    }
    return EPLB_OK;
}

eplb_status eplb_rebalance_rename(eplb_rebalance_job *job, int32_t layer, eplb_error *error)
{
    const eplb_shape *shape = &job->shape;
    renaming r = {.gpu = NULL};
    size_t gpus = (size_t)shape->gpus;
    size_t side = gpus < MOST_GPUS ? gpus : MOST_GPUS;
    const eplb_array arrays[] = {
        EPLB_ARRAY(r.gpu, gpus),
        EPLB_ARRAY(r.column, gpus),
        EPLB_ARRAY(r.cost, side * side),
        EPLB_ARRAY(r.has, (size_t)shape->experts),
    };
    eplb_status status =
        eplb_alloc_arrays(&job->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    int32_t done = -1; /* kinds are taken in the order of their slots */
    while (status == EPLB_OK) {
        int32_t slots = INT32_MAX;
        for (int32_t g = 0; g < shape->gpus; g++) {
            int32_t other = shape->first_slot[g + 1] - shape->first_slot[g];
            slots = other > done && other < slots ? other : slots;
        }
        if (slots == INT32_MAX) {
            break;
        }
        status = rename_kind(job, layer, &r, slots, error);
        done = slots;
    }
    eplb_free(&job->hooks, r.gpu);
    eplb_free(&job->hooks, r.column);
    eplb_free(&job->hooks, r.cost);
    eplb_free(&job->hooks, r.has);
    return status;
}
