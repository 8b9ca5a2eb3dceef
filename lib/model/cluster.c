/* SPDX-License-Identifier: MIT */
#include <eplb/cluster.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/cluster.h"

static eplb_status new_cluster(eplb_cluster **out, const eplb_hooks *hooks, int32_t gpus,
                               eplb_error *error)
{
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_cluster *cluster = eplb_alloc_zeroed(&resolved, 1, sizeof(*cluster));
    *out = cluster;
    if (cluster == NULL) {
        return eplb_out_of_memory(error);
    }
    cluster->hooks = resolved;
    cluster->gpus = gpus;
    cluster->gpu = eplb_alloc(&resolved, (size_t)gpus, sizeof(*cluster->gpu));
    cluster->first_slot = eplb_alloc(&resolved, (size_t)gpus + 1, sizeof(*cluster->first_slot));
    if (cluster->gpu == NULL || cluster->first_slot == NULL) {
        eplb_cluster_destroy(out);
        return eplb_out_of_memory(error);
    }
    return EPLB_OK;
}

static void number_slots(eplb_cluster *cluster)
{
    cluster->first_slot[0] = 0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        cluster->first_slot[g + 1] = cluster->first_slot[g] + cluster->gpu[g].slots;
    }
}

eplb_status eplb_cluster_create(eplb_cluster **out, const eplb_hooks *hooks, int32_t gpus,
                                int32_t slots_per_gpu, int32_t gpus_per_node, eplb_error *error)
{
    if (out == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "cluster: no output");
    }
    *out = NULL;
    eplb_status status =
        eplb_check_range("cluster", "number of GPUs", gpus, 1, EPLB_MAX_GPUS, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("cluster", "number of slots per GPU", slots_per_gpu, 1,
                                  EPLB_MAX_SLOTS / gpus, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_range("cluster", "number of GPUs per node", gpus_per_node, 0, INT32_MAX,
                                  error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_cluster *cluster;
    status = new_cluster(&cluster, hooks, gpus, error);
    if (status != EPLB_OK) {
        return status;
    }
    for (int32_t g = 0; g < gpus; g++) {
        cluster->gpu[g] = (eplb_gpu){
            .slots = slots_per_gpu, .node = gpus_per_node > 0 ? g / gpus_per_node : 0, .alive = 1};
    }
    number_slots(cluster);
    *out = cluster;
    return EPLB_OK;
}

eplb_status eplb_cluster_clone(eplb_cluster **out, const eplb_hooks *hooks,
                               const eplb_cluster *cluster, eplb_error *error)
{
    eplb_status status = new_cluster(out, hooks, cluster->gpus, error);
    if (status == EPLB_OK) {
        size_t gpus = (size_t)cluster->gpus;
        memcpy((*out)->gpu, cluster->gpu, gpus * sizeof(*cluster->gpu));
        memcpy((*out)->first_slot, cluster->first_slot, (gpus + 1) * sizeof(*cluster->first_slot));
    }
    return status;
}

eplb_status eplb_cluster_clone_with_slots(eplb_cluster **out, const eplb_hooks *hooks,
                                          const eplb_cluster *cluster, const int32_t *gpu_slots,
                                          eplb_error *error)
{
    int64_t slots = 0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        slots += gpu_slots[g];
    }
    *out = NULL;
    eplb_status status =
        eplb_check_range("cluster", "number of slots", slots, 0, EPLB_MAX_SLOTS, error);
    if (status == EPLB_OK) {
        status = eplb_cluster_clone(out, hooks, cluster, error);
    }
    for (int32_t g = 0; g < cluster->gpus && status == EPLB_OK; g++) {
        (*out)->gpu[g].slots = gpu_slots[g];
    }
    if (status == EPLB_OK) {
        number_slots(*out);
    }
    return status;
}

void eplb_cluster_destroy(eplb_cluster **cluster)
{
    if (cluster == NULL || *cluster == NULL) {
        return;
    }
    eplb_cluster *self = *cluster;
    eplb_hooks hooks = self->hooks;
    eplb_free(&hooks, self->gpu);
    eplb_free(&hooks, self->first_slot);
    eplb_free(&hooks, self);
    *cluster = NULL;
}

static bool has_gpu(const eplb_cluster *cluster, int32_t gpu)
{
    return gpu >= 0 && gpu < cluster->gpus;
}

static eplb_status check_change(const eplb_cluster *cluster, int32_t gpu, const char *what,
                                int32_t value, int32_t limit, eplb_error *error)
{
    eplb_status status = eplb_check_range("cluster", "GPU", gpu, 0, cluster->gpus - 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (value < 0 || value > limit) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "cluster: GPU %d: %s %d not in 0..%d",
                              gpu, what, value, limit);
    }
    return EPLB_OK;
}

eplb_status eplb_cluster_set_slots(eplb_cluster *cluster, int32_t gpu, int32_t slots,
                                   eplb_error *error)
{
    int32_t others = has_gpu(cluster, gpu)
                         ? eplb_cluster_slots(cluster) - eplb_cluster_gpu_slots(cluster, gpu)
                         : 0;
    eplb_status status = check_change(cluster, gpu, "slots", slots, EPLB_MAX_SLOTS - others, error);
    if (status == EPLB_OK) {
        cluster->gpu[gpu].slots = slots;
        number_slots(cluster);
    }
    return status;
}

eplb_status eplb_cluster_set_node(eplb_cluster *cluster, int32_t gpu, int32_t node,
                                  eplb_error *error)
{
    eplb_status status = check_change(cluster, gpu, "node", node, EPLB_MAX_GPUS - 1, error);
    if (status == EPLB_OK) {
        cluster->gpu[gpu].node = node;
    }
    return status;
}

eplb_status eplb_cluster_set_alive(eplb_cluster *cluster, int32_t gpu, int32_t alive,
                                   eplb_error *error)
{
    eplb_status status = check_change(cluster, gpu, "alive", alive, 1, error);
    if (status == EPLB_OK) {
        cluster->gpu[gpu].alive = alive;
    }
    return status;
}

int32_t eplb_cluster_gpus(const eplb_cluster *cluster)
{
    return cluster->gpus;
}

int32_t eplb_cluster_live_gpus(const eplb_cluster *cluster)
{
    int32_t live = 0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        live += cluster->gpu[g].alive;
    }
    return live;
}

int32_t eplb_cluster_nodes(const eplb_cluster *cluster)
{
    int32_t last = 0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        last = cluster->gpu[g].node > last ? cluster->gpu[g].node : last;
    }
    return last + 1;
}

int32_t eplb_cluster_slots(const eplb_cluster *cluster)
{
    return cluster->first_slot[cluster->gpus];
}

int32_t eplb_cluster_live_slots(const eplb_cluster *cluster)
{
    int32_t live = 0;
    for (int32_t g = 0; g < cluster->gpus; g++) {
        live += cluster->gpu[g].alive ? cluster->gpu[g].slots : 0;
    }
    return live;
}

int32_t eplb_cluster_uniform_slots(const eplb_cluster *cluster)
{
    for (int32_t g = 1; g < cluster->gpus; g++) {
        if (cluster->gpu[g].slots != cluster->gpu[0].slots) {
            return 0;
        }
    }
    return cluster->gpu[0].slots;
}

int32_t eplb_cluster_first_slot(const eplb_cluster *cluster, int32_t gpu)
{
    return has_gpu(cluster, gpu) ? cluster->first_slot[gpu] : 0;
}

int32_t eplb_cluster_gpu_slots(const eplb_cluster *cluster, int32_t gpu)
{
    return has_gpu(cluster, gpu) ? cluster->gpu[gpu].slots : 0;
}

int32_t eplb_cluster_gpu_node(const eplb_cluster *cluster, int32_t gpu)
{
    return has_gpu(cluster, gpu) ? cluster->gpu[gpu].node : 0;
}

int32_t eplb_cluster_gpu_alive(const eplb_cluster *cluster, int32_t gpu)
{
    return has_gpu(cluster, gpu) ? cluster->gpu[gpu].alive : 0;
}
