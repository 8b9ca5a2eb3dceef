/* SPDX-License-Identifier: MIT */
#include "planner/refine.h"

#include "base/memory.h"
#include "model/placement.h"

eplb_status eplb_refining_init(eplb_refining *refining, const eplb_hooks *hooks,
                               const eplb_shape *shape, eplb_error *error)
{
    *refining = (eplb_refining){.before = NULL};
    size_t slots = (size_t)shape->slots;
    const eplb_array arrays[] = {
        EPLB_ARRAY(refining->before, slots),
        EPLB_ARRAY(refining->after, slots),
        EPLB_ARRAY(refining->pinned, slots),
        EPLB_ARRAY(refining->loads, (size_t)shape->experts),
    };
    return eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_refining_free(eplb_refining *refining, const eplb_hooks *hooks)
{
    eplb_free(hooks, refining->before);
    eplb_free(hooks, refining->after);
    eplb_free(hooks, refining->pinned);
    eplb_free(hooks, refining->loads);
}

/* Progress is the only way that a caller has to stop a plan. */
static int asks_to_stop(void *context)
{
    eplb_run *r = context;
    if (!atomic_load(&r->cancelled)) {
        eplb_run_report(r, r->reported);
    }
    return atomic_load(&r->cancelled) ? 1 : 0;
}

/* Loads and weights of the layer: those of a single scenario, or sums, are scaled here. */
static void describe_loads(eplb_refine_task *task, eplb_refining *refining, const eplb_worker *w,
                           double total)
{
    static const double whole = 1.0;
    if (w->run->is_joint) {
        task->scenarios = w->joint.scenarios;
        task->loads = w->joint.load;
        task->weights = w->joint.weight;
        return;
    }
    for (int32_t e = 0; e < task->experts; e++) {
        refining->loads[e] = w->layer.load[e] / total * task->gpus;
    }
    task->scenarios = 1;
    task->loads = refining->loads;
    task->weights = &whole;
}

static void mark_pins(const eplb_layer *layer, uint8_t *pinned)
{
    for (int32_t s = 0; s < layer->shape->slots; s++) {
        pinned[s] = eplb_layer_pins(layer, layer->shape->slot_gpu[s], layer->slot_expert[s]);
    }
}

static eplb_refine_task describe(eplb_refining *refining, eplb_worker *w, int32_t index,
                                 double total)
{
    eplb_run *r = w->run;
    const eplb_shape *shape = &r->shape;
    const eplb_plan_layer *result = &r->job->layers[index];
    int32_t objective = r->job->options->objective;
    eplb_refine_task task = {
        .struct_size = sizeof(task),
        .layer = index,
        .experts = shape->experts,
        .gpus = shape->gpus,
        .slots = shape->slots,
        .objective =
            objective == EPLB_OBJECTIVE_SUM ? (int32_t)EPLB_OBJECTIVE_MEAN_OF_MAX : objective,
        .min_replicas = shape->rules != NULL ? shape->rules->min_replicas : 1,
        .max_replicas = shape->rules != NULL ? shape->rules->max_replicas : shape->gpus,
        .first_slot = shape->first_slot,
        .placement = refining->before,
        .pinned = shape->rules != NULL ? refining->pinned : NULL,
        .value = result->imbalance_after,
        .lower_bound = result->lower_bound,
        .stop = asks_to_stop,
        .stop_context = r};
    describe_loads(&task, refining, w, total);
    return task;
}

bool eplb_refine_is_valid(eplb_layer *layer, const int32_t *slots)
{
    const eplb_shape *shape = layer->shape;
    memset(layer->holds, 0, (size_t)shape->gpus * (size_t)layer->words * sizeof(*layer->holds));
    memset(layer->count, 0, (size_t)shape->experts * sizeof(*layer->count));
    for (int32_t s = 0; s < shape->slots; s++) {
        int32_t expert = slots[s];
        if (expert < 0 || expert >= shape->experts ||
            eplb_layer_holds(layer, shape->slot_gpu[s], expert)) {
            return false;
        }
        eplb_layer_flip(layer, shape->slot_gpu[s], expert);
        layer->count[expert]++;
    }
    for (int32_t e = 0; e < shape->experts; e++) {
        if (layer->count[e] == 0) {
            return false;
        }
    }
    return shape->rules == NULL || eplb_rules_hold(layer);
}

/* Makes slots the layer's placement and row. */
static void take(eplb_worker *w, const int32_t *slots, int32_t *row)
{
    memcpy(w->layer.slot_expert, slots, (size_t)w->run->shape.slots * sizeof(*slots));
    eplb_layer_index(&w->layer);
    eplb_worker_write(w, row);
}

/* Keeps the refiner's placement where it is better, else the one there was. */
static void judge(eplb_refining *refining, eplb_worker *w, int32_t index)
{
    const eplb_plan_job *job = w->run->job;
    eplb_plan_layer *result = &job->layers[index];
    if (!eplb_refine_is_valid(&w->layer, refining->after)) {
        return;
    }
    int32_t *row = eplb_placement_row_of(job->placement, index);
    take(w, refining->after, row);
    double value = eplb_worker_score(w, job->cluster, row, index);
    if (value < result->imbalance_after * (1.0 - EPLB_ROUNDING)) {
        result->imbalance_after = value;
    } else {
        take(w, refining->before, row);
    }
}

eplb_status eplb_refine_layer(eplb_refining *refining, eplb_worker *w, int32_t index, double total,
                              double *bound, eplb_error *error)
{
    const eplb_plan_job *job = w->run->job;
    const eplb_refiner *refiner = job->options->refiner;
    size_t bytes = (size_t)w->run->shape.slots * sizeof(*refining->before);
    eplb_worker_take_row(w, eplb_placement_row(job->placement, index));
    memcpy(refining->before, w->layer.slot_expert, bytes);
    memcpy(refining->after, refining->before, bytes);
    if (w->run->shape.rules != NULL) {
        mark_pins(&w->layer, refining->pinned);
    }
    eplb_refine_task task = describe(refining, w, index, total);
    eplb_refine_result answer = {.struct_size = sizeof(answer),
                                 .placement = refining->after,
                                 .lower_bound = task.lower_bound};
    eplb_status status = refiner->refine(refiner->context, &task, &answer, error);
    if (status != EPLB_OK) {
        return status;
    }
    job->layers[index].refine_nodes = answer.nodes > 0 ? answer.nodes : 0;
    *bound = answer.lower_bound > *bound ? answer.lower_bound : *bound;
    judge(refining, w, index);
    return EPLB_OK;
}
