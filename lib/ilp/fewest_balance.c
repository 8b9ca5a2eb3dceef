/* SPDX-License-Identifier: MIT */
/* The best balance of a small layer, whatever it copies. */
#include "ilp/fewest.h"

#include "base/memory.h"
#include "ilp/exact.h"

static int ask_stop(void *context)
{
    eplb_fewest_layer *layer = context;
    const eplb_fewest_task *task = layer->task;
    if (task->stop != NULL && task->stop(task->stop_context) != 0) {
        layer->cancelled = true;
    }
    return layer->cancelled ? 1 : 0;
}

eplb_status eplb_fewest_balance(eplb_fewest_layer *layer, int64_t nodes, double *least,
                                eplb_error *error)
{
    eplb_refine_task task = {
        .struct_size = sizeof(task),
        .experts = layer->experts,
        .gpus = layer->gpus,
        .slots = layer->slots,
        .scenarios = layer->scenarios,
        .objective = layer->by_mean ? EPLB_OBJECTIVE_MEAN_OF_MAX : EPLB_OBJECTIVE_MAX_OF_MAX,
        .min_replicas = 1,
        .max_replicas = layer->gpus,
        .first_slot = layer->first,
        .loads = layer->load,
        .weights = layer->weight,
        .placement = layer->best,
        .value = layer->best_value,
        .lower_bound = *least,
        .stop = ask_stop,
        .stop_context = layer,
    };
    eplb_ilp_exact_result result = {
        .placement = eplb_alloc(&layer->hooks, (size_t)layer->slots, sizeof(*result.placement))};
    if (result.placement == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_ilp_exact(&layer->hooks, &task, nodes, &result, error);
    if (status == EPLB_OK) {
        layer->nodes += result.nodes;
        *least = result.lower_bound;
        status = eplb_fewest_offer(layer, result.placement, NULL, error);
    }
    eplb_free(&layer->hooks, result.placement);
    return status;
}
