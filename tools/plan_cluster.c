/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "message.h"
#include "plan_job.h"

/* Slots per GPU. When --redundant was given the error must say so: it speaks of slots. */
static eplb_status share_slots(const plan_job *self, int32_t *slots_per_gpu, eplb_error *error)
{
    const plan_values *values = self->values;
    int32_t experts = eplb_load_experts(self->load);
    if (values->slots != NOT_GIVEN) {
        return eplb_slots_per_gpu(experts, values->gpus, values->slots, slots_per_gpu, error);
    }
    eplb_error inner;
    int32_t slots = experts + values->redundant;
    eplb_status status = eplb_slots_per_gpu(experts, values->gpus, slots, slots_per_gpu, &inner);
    return status == EPLB_OK ? EPLB_OK
                             : eplb_error_set(error, status, "%d redundant experts: %.400s",
                                              values->redundant, inner.message);
}

static eplb_status make_even_cluster(plan_job *self, eplb_error *error)
{
    int32_t slots_per_gpu;
    eplb_status status = share_slots(self, &slots_per_gpu, error);
    return status == EPLB_OK
               ? eplb_cluster_create(&self->cluster, &self->hooks, self->values->gpus,
                                     slots_per_gpu, self->values->gpus_per_node, error)
               : status;
}

/* The slots that the layers share, and GPUs without any of their own. */
static eplb_status make_budget(plan_job *self, const gpu_memory *memory, eplb_error *error)
{
    const plan_values *values = self->values;
    self->budget = calloc((size_t)values->gpus, sizeof(*self->budget));
    if (self->budget == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    eplb_status status = EPLB_OK;
    if (memory->sizes->items != NULL) {
        status = memory_budget(self->budget, memory, values->gpus, error);
    } else {
        for (int32_t g = 0; g < values->gpus; g++) {
            self->budget[g] = (int64_t)values->slots * eplb_load_layers(self->load) / values->gpus;
        }
    }
    return status == EPLB_OK ? eplb_cluster_create(&self->cluster, &self->hooks, values->gpus, 1,
                                                   values->gpus_per_node, error)
                             : status;
}

static eplb_status make_live_cluster(plan_job *self, eplb_error *error)
{
    const plan_values *values = self->values;
    const gpu_memory memory = {.sizes = &values->gpu_memory,
                               .reserve = values->reserve,
                               .expert_bytes = values->expert_bytes};
    if (values->layer_budget == BUDGET_ADAPTIVE) {
        return make_budget(self, &memory, error);
    }
    return values->gpu_memory.items == NULL
               ? make_even_cluster(self, error)
               : memory_cluster(&self->cluster, &memory, values->gpus, values->gpus_per_node,
                                eplb_load_layers(self->load), eplb_load_experts(self->load),
                                &self->hooks, error);
}

/* Experts of the current placement that only dead GPUs have. */
static eplb_status check_lost_experts(plan_job *self, eplb_error *error)
{
    if (self->current == NULL || self->values->lost_experts != LOST_FAIL) {
        return EPLB_OK;
    }
    for (int32_t l = 0; l < eplb_load_layers(self->load); l++) {
        int32_t some[LOST_SHOWN];
        int32_t count;
        eplb_status status = eplb_placement_lost_experts(self->current, self->cluster, l, some,
                                                         LOST_SHOWN, &count, error);
        if (status == EPLB_OK && count > 0) {
            char list[16 * LOST_SHOWN];
            status = eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                    "layer %d: with the dead GPUs the last copies of experts %s "
                                    "are lost; --lost-experts load plans with weights from storage",
                                    eplb_load_layer_ids(self->load)[l],
                                    lost_list(some, count, list, sizeof(list)));
        }
        if (status != EPLB_OK) {
            return status;
        }
    }
    return EPLB_OK;
}

eplb_status plan_make_cluster(plan_job *self, eplb_error *error)
{
    eplb_status status = make_live_cluster(self, error);
    const id_list *dead = &self->values->dead_gpus;
    for (int32_t i = 0; i < dead->count && status == EPLB_OK; i++) {
        status = eplb_cluster_set_alive(self->cluster, dead->items[i], 0, error);
    }
    return status == EPLB_OK ? check_lost_experts(self, error) : status;
}
