/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "planner/rename.h"

#include "base/memory.h"
#include "base/sort.h"
#include "model/assignment.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/plan.h"

/* Above so many GPUs the best assignment takes too long. */
#define MOST_GPUS 256

/* Where a destination finds an expert. */
enum { ELSEWHERE = 0, ON_NODE = 1, ON_GPU = 2 };

/* GPUs that are assigned to each other. */
typedef struct gpu_group {
    const eplb_renaming *r;
    const int32_t *gpu;
    int32_t *source;
    int32_t count;
} gpu_group;

typedef struct scratch {
    double *key;     /* [gpus] */
    int32_t *ids;    /* [gpus] */
    int32_t *column; /* [side] */
    int64_t *cost;   /* [side][side] */
    uint8_t *where;  /* [experts] */
} scratch;

const int32_t *eplb_renaming_planned(const eplb_renaming *r, int32_t gpu)
{
    return eplb_placement_row(r->job->plan->placement, r->layer) +
           r->job->cluster->first_slot[r->job->shape.cluster_gpu[gpu]];
}

const int32_t *eplb_renaming_held(const eplb_renaming *r, int32_t gpu, int32_t *slots)
{
    const eplb_shape *shape = &r->job->shape;
    if (r->home != NULL) {
        *slots = shape->first_slot[gpu + 1] - shape->first_slot[gpu];
        return r->home + shape->first_slot[gpu];
    }
    const eplb_cluster *before = r->job->current->cluster;
    int32_t cluster_gpu = shape->cluster_gpu[gpu];
    *slots = before->gpu[cluster_gpu].slots;
    return eplb_placement_row(r->job->current, r->layer) + before->first_slot[cluster_gpu];
}

static int32_t node_of(const eplb_renaming *r, int32_t gpu)
{
    return r->job->cluster->gpu[r->job->shape.cluster_gpu[gpu]].node;
}

static void mark_gpu(const eplb_renaming *r, int32_t gpu, uint8_t value, uint8_t *where)
{
    int32_t slots;
    const int32_t *held = eplb_renaming_held(r, gpu, &slots);
    for (int32_t s = 0; s < slots; s++) {
        if (held[s] >= 0) {
            where[held[s]] = value;
        }
    }
}

static void mark_node(const eplb_renaming *r, int32_t node, uint8_t *where)
{
    memset(where, ELSEWHERE, (size_t)r->job->shape.experts * sizeof(*where));
    for (int32_t g = 0; g < r->job->shape.gpus; g++) {
        if (node_of(r, g) == node) {
            mark_gpu(r, g, ON_NODE, where);
        }
    }
}

/* Fewest copies, and among assignments with as few, fewest that come from other nodes: all of these
 * together are less than one copy. */
static void find_costs(const gpu_group *group, scratch *s)
{
    const eplb_renaming *r = group->r;
    int64_t price = (int64_t)group->count * r->slots + 1;
    int32_t node = -1;
    for (int32_t h = 0; h < group->count; h++) {
        if (node_of(r, group->gpu[h]) != node) {
            node = node_of(r, group->gpu[h]);
            mark_node(r, node, s->where);
        }
        mark_gpu(r, group->gpu[h], ON_GPU, s->where);
        for (int32_t g = 0; g < group->count; g++) {
            const int32_t *experts = eplb_renaming_planned(r, group->source[g]);
            int64_t cost = 0;
            for (int32_t i = 0; i < r->slots; i++) {
                uint8_t where = s->where[experts[i]];
                cost += where == ON_GPU ? 0 : price + (where == ELSEWHERE);
            }
            s->cost[(size_t)g * (size_t)group->count + (size_t)h] = cost;
        }
        mark_gpu(r, group->gpu[h], ON_NODE, s->where);
    }
}

static eplb_status assign(const gpu_group *group, scratch *s, eplb_error *error)
{
    find_costs(group, s);
    eplb_status status =
        eplb_assign(&group->r->job->hooks, group->count, s->cost, s->column, error);
    if (status == EPLB_OK) {
        size_t size = (size_t)group->count * sizeof(*s->ids);
        memcpy(s->ids, group->source, size);
        for (int32_t g = 0; g < group->count; g++) {
            group->source[s->column[g]] = s->ids[g];
        }
    }
    return status;
}

/* Too many GPUs at once: a greedy choice among all is made better within each node. */
static eplb_status rename_many(eplb_renaming *r, scratch *s, eplb_error *error)
{
    for (int32_t i = 0; i < r->count; i++) {
        s->key[r->gpu[i]] = -node_of(r, r->gpu[i]);
    }
    eplb_sort_descending(r->gpu, r->count, s->key, s->ids);
    eplb_status status = eplb_renaming_match(r, error);
    int32_t end;
    for (int32_t i = 0; i < r->count && status == EPLB_OK; i = end) {
        end = i + 1;
        while (end < r->count && node_of(r, r->gpu[end]) == node_of(r, r->gpu[i])) {
            end++;
        }
        if (end - i > 1 && end - i <= MOST_GPUS) {
            const gpu_group node = {r, r->gpu + i, r->source + i, end - i};
            status = assign(&node, s, error);
        }
    }
    return status;
}

/* The GPUs with as many slots. */
static eplb_status rename_kind(eplb_renaming *r, scratch *s, eplb_error *error)
{
    const eplb_shape *shape = &r->job->shape;
    r->count = 0;
    for (int32_t g = 0; g < shape->gpus; g++) {
        if (shape->first_slot[g + 1] - shape->first_slot[g] == r->slots) {
            r->gpu[r->count] = g;
            r->source[r->count++] = g;
        }
    }
    eplb_status status = EPLB_OK;
    if (shape->rules == NULL && r->count > MOST_GPUS) {
        r->job->traces[r->layer].is_fresh_greedy = true;
        status = rename_many(r, s, error);
    } else if (shape->rules == NULL) {
        const gpu_group all = {r, r->gpu, r->source, r->count};
        status = assign(&all, s, error);
    }
    for (int32_t i = 0; i < r->count && status == EPLB_OK; i++) {
        memcpy(r->job->traces[r->layer].fresh + shape->first_slot[r->gpu[i]],
               eplb_renaming_planned(r, r->source[i]), (size_t)r->slots * sizeof(int32_t));
    }
    return status;
}

static eplb_status rename_kinds(eplb_renaming *r, scratch *s, eplb_error *error)
{
    const eplb_shape *shape = &r->job->shape;
    eplb_status status = EPLB_OK;
    r->slots = -1; /* kinds are taken in the order of their slots */
    while (status == EPLB_OK) {
        int32_t next = INT32_MAX;
        for (int32_t g = 0; g < shape->gpus; g++) {
            int32_t other = shape->first_slot[g + 1] - shape->first_slot[g];
            next = other > r->slots && other < next ? other : next;
        }
        if (next == INT32_MAX) {
            break;
        }
        r->slots = next;
        status = rename_kind(r, s, error);
    }
    return status;
}

eplb_status eplb_rebalance_rename(eplb_rebalance_job *job, int32_t layer, const int32_t *home,
                                  eplb_error *error)
{
    eplb_renaming r = {.job = job, .layer = layer, .home = home};
    scratch s = {.key = NULL};
    size_t gpus = (size_t)job->shape.gpus;
    size_t side = gpus < MOST_GPUS ? gpus : MOST_GPUS;
    const eplb_array arrays[] = {
        EPLB_ARRAY(r.gpu, gpus),
        EPLB_ARRAY(r.source, gpus),
        EPLB_ARRAY(s.key, gpus),
        EPLB_ARRAY(s.ids, gpus),
        EPLB_ARRAY(s.column, side),
        EPLB_ARRAY(s.cost, side * side),
        EPLB_ARRAY(s.where, (size_t)job->shape.experts),
    };
    size_t count = sizeof(arrays) / sizeof(arrays[0]);
    eplb_status status = eplb_alloc_arrays(&job->hooks, arrays, count, error);
    if (status == EPLB_OK) {
        status = rename_kinds(&r, &s, error);
    }
    for (size_t i = 0; i < count; i++) {
        eplb_free(&job->hooks, *arrays[i].memory);
    }
    return status;
}
