/* SPDX-License-Identifier: MIT */
/* What is done with a layer: which steps, in which order, with how much of the budget. */
#include <string.h>

#include "base/memory.h"
#include "ilp/exact.h"
#include "ilp/ilp.h"
#include "ilp/neighbourhood.h"
#include "ilp/pairs.h"

/* What is known of the layer so far. */
typedef struct refining {
    const eplb_ilp *ilp;
    eplb_refine_task task;      /* with the best placement, its value and bound so far */
    eplb_refine_result *result; /* the same, for the caller */
    int32_t *placement;         /* [slots] the task's */
} refining;

static int64_t nodes_left(const refining *self)
{
    int64_t nodes = self->ilp->options.nodes;
    if (nodes < 0) {
        return -1;
    }
    return nodes > self->result->nodes ? nodes - self->result->nodes : 0;
}

/* Steps begin where the one before ended. */
static void go_on(refining *self)
{
    memcpy(self->placement, self->result->placement,
           (size_t)self->task.slots * sizeof(*self->placement));
    if (self->result->lower_bound > self->task.lower_bound) {
        self->task.lower_bound = self->result->lower_bound;
    }
}

static eplb_status solve_whole(refining *self, bool *proven, eplb_error *error)
{
    eplb_ilp_exact_result exact = {.placement = self->result->placement};
    eplb_status status =
        eplb_ilp_exact(&self->ilp->hooks, &self->task, nodes_left(self), &exact, error);
    if (status != EPLB_OK) {
        return status;
    }
    *proven = exact.proven;
    self->result->nodes += exact.nodes;
    self->result->lower_bound = exact.lower_bound;
    self->task.value = exact.value;
    go_on(self);
    return EPLB_OK;
}

static eplb_status solve_parts(refining *self, eplb_error *error)
{
    eplb_status status = eplb_ilp_pairs(self->ilp, &self->task, self->result, error);
    if (status != EPLB_OK) {
        return status;
    }
    go_on(self);
    eplb_ilp_neighbourhood_options options;
    eplb_ilp_neighbourhood_options_init(&options);
    int64_t left = nodes_left(self);
    options.nodes = left >= 0 && left < options.nodes ? left : options.nodes;
    options.memory_bytes = self->ilp->options.memory_bytes;
    int64_t nodes = 0;
    status = eplb_ilp_neighbourhood(&self->ilp->hooks, &self->task, &options,
                                    self->result->placement, &nodes, error);
    self->result->nodes += nodes;
    return status;
}

static eplb_status refine(refining *self, eplb_error *error)
{
    bool everywhere = self->ilp->options.mode == EPLB_ILP_ON;
    bool proven = false;
    eplb_status status = EPLB_OK;
    if (everywhere || eplb_ilp_exact_fits(&self->task)) {
        status = solve_whole(self, &proven, error);
    }
    return status == EPLB_OK && everywhere && !proven ? solve_parts(self, error) : status;
}

eplb_status eplb_ilp_refine(void *context, const eplb_refine_task *task, eplb_refine_result *result,
                            eplb_error *error)
{
    const eplb_ilp *ilp = context;
    refining self = {.ilp = ilp, .task = *task, .result = result};
    self.placement = eplb_alloc(&ilp->hooks, (size_t)task->slots, sizeof(*self.placement));
    if (self.placement == NULL) {
        return eplb_out_of_memory(error);
    }
    self.task.placement = self.placement;
    memcpy(self.placement, task->placement, (size_t)task->slots * sizeof(*self.placement));
    eplb_status status = refine(&self, error);
    eplb_free(&ilp->hooks, self.placement);
    return status;
}
