/* SPDX-License-Identifier: MIT */
#include "ilp/neighbourhood.h"

#include "base/memory.h"
#include "ilp/region_choose.h"
#include "ilp/runner.h"

/* Nodes of one program: what can be gained is found early or costs more than the next program. */
#define NODES_PER_PROGRAM 20

/* What counts as an improvement, relatively. */
#define GAIN 1e-12

#define SEED 0x6e656967u

typedef struct search {
    const eplb_hooks *hooks;
    eplb_ilp_neighbourhood_options options;
    eplb_ilp_region region;
    eplb_ilp_model model;
    double *values; /* [value_capacity] */
    int32_t value_capacity;
    int32_t *before; /* [slots] */
    eplb_random random;
    int64_t work; /* nodes, at least one for each program */
    int64_t nodes;
} search;

void eplb_ilp_neighbourhood_options_init(eplb_ilp_neighbourhood_options *options)
{
    *options = (eplb_ilp_neighbourhood_options){
        .nodes = 2000, .memory_bytes = (int64_t)1 << 30, .gap = 1e-4, .idle = 60};
}

static eplb_status make_room(search *self, eplb_error *error)
{
    eplb_status status = eplb_ilp_model_status(&self->model, error);
    int32_t columns = self->model.column_count;
    if (status != EPLB_OK || columns <= self->value_capacity) {
        return status;
    }
    double *larger = eplb_realloc(self->hooks, self->values, (size_t)columns, sizeof(double));
    if (larger == NULL) {
        return eplb_out_of_memory(error);
    }
    self->values = larger;
    self->value_capacity = columns;
    return EPLB_OK;
}

/* GPUs at the largest load of a scenario, over all of them. */
static int32_t count_hot(const eplb_ilp_region *region)
{
    int32_t hot = 0;
    const eplb_refine_task *task = region->task;
    for (int32_t g = 0; g < task->gpus; g++) {
        for (int32_t k = 0; k < task->scenarios; k++) {
            double load = region->load[(size_t)g * (size_t)task->scenarios + (size_t)k];
            hot += load >= region->largest[k] * (1.0 - GAIN) ? 1 : 0;
        }
    }
    return hot;
}

/* Takes the values over where they make the placement better, or leave fewer GPUs to mend. */
static bool accept(search *self)
{
    eplb_ilp_region *region = &self->region;
    size_t bytes = (size_t)region->task->slots * sizeof(int32_t);
    double value = region->value;
    int32_t hot = count_hot(region);
    memcpy(self->before, region->placement, bytes);
    eplb_ilp_region_apply(region, self->values);
    if (region->value < value * (1.0 - GAIN)) {
        return true;
    }
    if (region->value <= value && count_hot(region) < hot) {
        return true;
    }
    memcpy(region->placement, self->before, bytes);
    eplb_ilp_region_score(region);
    return false;
}

/* One program; `gained` says whether it has helped, `stopped` whether to end. */
static eplb_status solve_one(search *self, bool *gained, bool *stopped, eplb_error *error)
{
    eplb_ilp_region *region = &self->region;
    eplb_ilp_model_clear(&self->model);
    eplb_ilp_region_model(region, &self->model);
    eplb_status status = make_room(self, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_ilp_region_start(region, &self->model, self->values);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    int64_t left = self->options.nodes - self->work;
    limits.nodes = left < NODES_PER_PROGRAM ? left : NODES_PER_PROGRAM;
    limits.memory_bytes = self->options.memory_bytes;
    limits.stop = region->task->stop;
    limits.stop_context = region->task->stop_context;
    eplb_ilp_solution solution = {.values = self->values, .has_values = true};
    status = eplb_ilp_solve(&self->model, &limits, &solution, error);
    if (status == EPLB_OK) {
        self->nodes += solution.nodes;
        self->work += solution.nodes > 0 ? solution.nodes : 1;
        *gained = solution.has_values && accept(self);
        *stopped = solution.outcome == EPLB_ILP_STOPPED;
    }
    return status;
}

static eplb_status improve(search *self, eplb_error *error)
{
    const eplb_refine_task *task = self->region.task;
    double enough = task->lower_bound * (1.0 + self->options.gap);
    int32_t idle = 0;
    bool stopped = false;
    for (int64_t turn = 0; !stopped && idle < self->options.idle && self->region.value > enough &&
                           self->work < self->options.nodes;
         turn++) {
        if (!eplb_ilp_region_choose(&self->region, turn, &self->random)) {
            break;
        }
        bool gained = false;
        eplb_status status = solve_one(self, &gained, &stopped, error);
        if (status != EPLB_OK) {
            return status;
        }
        idle = gained ? 0 : idle + 1;
    }
    return EPLB_OK;
}

eplb_status eplb_ilp_neighbourhood(const eplb_hooks *hooks, const eplb_refine_task *task,
                                   const eplb_ilp_neighbourhood_options *options,
                                   int32_t *placement, int64_t *nodes, eplb_error *error)
{
    search *self = eplb_alloc_zeroed(hooks, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    self->hooks = hooks;
    self->options = *options;
    eplb_random_seed(&self->random, SEED);
    eplb_ilp_model_init(&self->model, hooks);
    const eplb_array before = EPLB_ARRAY(self->before, (size_t)task->slots);
    eplb_status status = eplb_ilp_region_init(&self->region, hooks, task, placement, error);
    if (status == EPLB_OK) {
        status = eplb_alloc_arrays(hooks, &before, 1, error);
    }
    if (status == EPLB_OK) {
        status = improve(self, error);
    }
    if (status == EPLB_OK) {
        memcpy(placement, self->region.placement, (size_t)task->slots * sizeof(int32_t));
        *nodes = self->nodes;
    }
    eplb_ilp_region_free(&self->region, hooks);
    eplb_ilp_model_free(&self->model);
    eplb_free(hooks, self->values);
    eplb_free(hooks, self->before);
    eplb_free(hooks, self);
    return status;
}
