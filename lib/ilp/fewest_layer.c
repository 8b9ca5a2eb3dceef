/* SPDX-License-Identifier: MIT */
/* The layer: its shape, what is at home where, its loads. */
#include "ilp/fewest.h"

#include "base/memory.h"

static void set_gpus(eplb_fewest_layer *layer)
{
    const eplb_cluster *cluster = layer->task->cluster;
    layer->gpus = 0;
    layer->slots = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        int32_t slots = eplb_cluster_gpu_slots(cluster, g);
        if (eplb_cluster_gpu_alive(cluster, g) != 0 && slots > 0) {
            layer->cluster_gpu[layer->gpus] = g;
            layer->first[layer->gpus++] = layer->slots;
            layer->slots += slots;
        }
    }
    layer->first[layer->gpus] = layer->slots;
}

static void set_home(eplb_fewest_layer *layer)
{
    const eplb_placement *current = layer->task->current;
    const eplb_cluster *cluster = eplb_placement_cluster(current);
    const int32_t *row = eplb_placement_row(current, layer->task->current_row);
    for (int32_t g = 0; g < layer->gpus; g++) {
        uint8_t *home = layer->home + (size_t)g * (size_t)layer->experts;
        int32_t slot = eplb_cluster_first_slot(cluster, layer->cluster_gpu[g]);
        int32_t end = slot + eplb_cluster_gpu_slots(cluster, layer->cluster_gpu[g]);
        for (; slot < end; slot++) {
            if (row[slot] >= 0) {
                home[row[slot]] = 1;
            }
        }
    }
}

/* A load of this one layer, summed over the scenarios where the objective says so. */
static eplb_status set_own_load(eplb_fewest_layer *layer, eplb_error *error)
{
    const eplb_load *load = layer->task->load;
    int32_t index = layer->task->layer;
    bool is_sum = layer->task->objective == EPLB_OBJECTIVE_SUM;
    int32_t scenarios = is_sum ? 1 : eplb_load_scenarios(load);
    eplb_status status =
        eplb_load_create(&layer->own_load, &layer->hooks, scenarios, 1, layer->experts, error);
    if (status == EPLB_OK && is_sum) {
        double *sums = eplb_alloc(&layer->hooks, (size_t)layer->experts, sizeof(*sums));
        if (sums == NULL) {
            return eplb_out_of_memory(error);
        }
        status = eplb_load_sum_row(load, index, sums, NULL, error);
        if (status == EPLB_OK) {
            status = eplb_load_set_row(layer->own_load, 0, 0, sums, error);
        }
        eplb_free(&layer->hooks, sums);
        return status;
    }
    for (int32_t k = 0; k < scenarios && status == EPLB_OK; k++) {
        status = eplb_load_set_row(layer->own_load, k, 0, eplb_load_row(load, k, index), error);
        if (status == EPLB_OK) {
            status = eplb_load_set_scenario(layer->own_load, k, NULL,
                                            eplb_load_scenario_weight(load, k), error);
        }
    }
    return status;
}

static double sum_of(const double *row, int32_t length)
{
    double sum = 0.0;
    for (int32_t i = 0; i < length; i++) {
        sum += row[i];
    }
    return sum;
}

/* Scenarios without load in the layer do not count. */
static void set_scaled_loads(eplb_fewest_layer *layer)
{
    double mean_part = (double)eplb_cluster_live_gpus(layer->task->cluster);
    double largest = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(layer->own_load); k++) {
        const double *row = eplb_load_row(layer->own_load, k, 0);
        double total = sum_of(row, layer->experts);
        if (!(total > 0.0)) {
            continue;
        }
        double *scaled = layer->load + (size_t)layer->scenarios * (size_t)layer->experts;
        for (int32_t e = 0; e < layer->experts; e++) {
            scaled[e] = row[e] / total * mean_part;
        }
        double weight = eplb_load_scenario_weight(layer->own_load, k);
        largest = weight > largest ? weight : largest;
        layer->weight[layer->scenarios++] = weight;
    }
    /* Ratios first: weights may be so large that their sum overflows. */
    for (int32_t k = 0; k < layer->scenarios; k++) {
        layer->weight[k] /= largest;
    }
    double sum = sum_of(layer->weight, layer->scenarios);
    for (int32_t k = 0; k < layer->scenarios; k++) {
        layer->weight[k] /= sum;
    }
    layer->by_mean = layer->task->objective == EPLB_OBJECTIVE_MEAN_OF_MAX && layer->scenarios > 1;
}

static eplb_status make_arrays(eplb_fewest_layer *layer, eplb_error *error)
{
    const eplb_cluster *cluster = layer->task->cluster;
    size_t gpus = (size_t)eplb_cluster_gpus(cluster);
    size_t experts = (size_t)layer->experts;
    size_t scenarios = (size_t)eplb_load_scenarios(layer->own_load);
    size_t pairs;
    size_t loads;
    if (!eplb_size_mul(gpus, experts, &pairs) || !eplb_size_mul(scenarios, experts, &loads)) {
        return eplb_out_of_memory(error);
    }
    const eplb_array arrays[] = {
        EPLB_ARRAY(layer->cluster_gpu, gpus),
        EPLB_ARRAY(layer->first, gpus + 1),
        EPLB_ARRAY(layer->home, pairs),
        EPLB_ARRAY(layer->load, loads),
        EPLB_ARRAY(layer->weight, scenarios),
        EPLB_ARRAY(layer->best, (size_t)eplb_cluster_live_slots(cluster)),
        EPLB_ARRAY(layer->row_slots, (size_t)eplb_cluster_slots(cluster)),
        EPLB_ARRAY(layer->counts, experts),
    };
    return eplb_alloc_arrays(&layer->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

eplb_status eplb_fewest_layer_init(eplb_fewest_layer *layer, const eplb_hooks *hooks,
                                   const eplb_fewest_task *task, eplb_error *error)
{
    *layer = (eplb_fewest_layer){.hooks = *hooks, .task = task};
    layer->experts = eplb_load_experts(task->load);
    eplb_status status = set_own_load(layer, error);
    if (status == EPLB_OK) {
        status = make_arrays(layer, error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_create(&layer->row, hooks, task->cluster, 1, layer->experts, error);
    }
    if (status == EPLB_OK) {
        status =
            eplb_placement_set_layer_ids(layer->row, eplb_load_layer_ids(task->load) + task->layer,
                                         eplb_load_model_layers(task->load), error);
    }
    if (status == EPLB_OK) {
        set_gpus(layer);
        set_home(layer);
        set_scaled_loads(layer);
    }
    return status;
}

void eplb_fewest_layer_free(eplb_fewest_layer *layer)
{
    void *arrays[] = {layer->cluster_gpu, layer->first, layer->home,      layer->load,
                      layer->weight,      layer->best,  layer->row_slots, layer->counts};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(&layer->hooks, arrays[i]);
    }
    eplb_load_destroy(&layer->own_load);
    eplb_placement_destroy(&layer->row);
}

double eplb_fewest_peak(const eplb_fewest_layer *layer, int32_t expert)
{
    double most = 0.0;
    for (int32_t k = 0; k < layer->scenarios; k++) {
        double load = layer->load[(size_t)k * (size_t)layer->experts + (size_t)expert];
        most = load > most ? load : most;
    }
    return most;
}
