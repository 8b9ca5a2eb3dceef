/* SPDX-License-Identifier: MIT */
#include "report_placement.h"

#include "current.h"
#include "formats.h"

static eplb_status copy_gpu(eplb_cluster *to, const eplb_cluster *from, int32_t gpu, int32_t more,
                            eplb_error *error)
{
    int32_t slots = eplb_cluster_gpu_slots(from, gpu) + more;
    eplb_status status = eplb_cluster_set_slots(to, gpu, slots, error);
    if (status == EPLB_OK) {
        status = eplb_cluster_set_node(to, gpu, eplb_cluster_gpu_node(from, gpu), error);
    }
    return status == EPLB_OK
               ? eplb_cluster_set_alive(to, gpu, eplb_cluster_gpu_alive(from, gpu), error)
               : status;
}

eplb_status widen_cluster(eplb_cluster **out, const eplb_cluster *base, int32_t more,
                          const eplb_hooks *hooks, eplb_error *error)
{
    int32_t gpus = eplb_cluster_gpus(base);
    int32_t live = eplb_cluster_live_gpus(base);
    eplb_status status = eplb_cluster_create(out, hooks, gpus, 1, 0, error);
    int32_t seen = 0; /* live GPUs */
    for (int32_t g = 0; g < gpus && status == EPLB_OK; g++) {
        bool alive = eplb_cluster_gpu_alive(base, g) != 0;
        int32_t share = alive ? more / live + (seen < more % live ? 1 : 0) : 0;
        seen += alive ? 1 : 0;
        status = copy_gpu(*out, base, g, share, error);
    }
    if (status != EPLB_OK) {
        eplb_cluster_destroy(out);
    }
    return status;
}

static eplb_status make_cluster(eplb_cluster **out, const report_values *values, int32_t experts,
                                const eplb_hooks *hooks, eplb_error *error)
{
    int32_t gpus = values->gpus;
    int32_t slots = values->slots > 0 ? values->slots : experts + values->redundant;
    if (slots < gpus) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%d slots do not give each of %d GPUs one: --slots %d is the least",
                              slots, gpus, gpus > experts ? gpus : experts);
    }
    eplb_cluster *even;
    eplb_status status =
        eplb_cluster_create(&even, hooks, gpus, slots / gpus, values->gpus_per_node, error);
    if (status == EPLB_OK) {
        status = widen_cluster(out, even, slots % gpus, hooks, error);
        eplb_cluster_destroy(&even);
    }
    return status;
}

static eplb_status fill(eplb_placement *placement, const eplb_load *load, eplb_error *error)
{
    eplb_status status = eplb_placement_set_layer_ids(placement, eplb_load_layer_ids(load),
                                                      eplb_load_model_layers(load), error);
    for (int32_t l = 0; l < eplb_load_layers(load) && status == EPLB_OK; l++) {
        status = eplb_placement_spread(placement, l, error);
    }
    return status;
}

static eplb_status spread(eplb_placement **out, const report_values *values, const eplb_load *load,
                          const eplb_hooks *hooks, eplb_error *error)
{
    int32_t experts = eplb_load_experts(load);
    eplb_cluster *cluster = NULL;
    eplb_status status = make_cluster(&cluster, values, experts, hooks, error);
    if (status == EPLB_OK) {
        status = eplb_placement_create(out, hooks, cluster, eplb_load_layers(load), experts, error);
    }
    eplb_cluster_destroy(&cluster);
    return status == EPLB_OK ? fill(*out, load, error) : status;
}

/* Plans of a report are for equal layers: beside others they would have more slots than there are.
 */
static eplb_status check_alike(const eplb_placement *placement, const char *path, eplb_error *error)
{
    return eplb_placement_layer_slots(placement, 0) == NULL
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                "%s: its layers have different numbers of slots: eplb report "
                                "knows equal layers only",
                                path);
}

eplb_status read_report_placement(eplb_placement **out, const report_values *values,
                                  eplb_load *load, const eplb_hooks *hooks, eplb_error *error)
{
    if (values->current == NULL) {
        return spread(out, values, load, hooks, error);
    }
    eplb_read_options reading = reading_options(NULL, eplb_load_experts(load));
    reading.gpus = values->gpus;
    reading.gpus_per_node = values->gpus_per_node;
    eplb_status status = read_current(out, values->current, load, &reading, hooks, NULL, error);
    if (status != EPLB_OK) {
        counting_explain_current(&values->counting, values->current, load, error);
        return status;
    }
    return check_alike(*out, values->current, error);
}
