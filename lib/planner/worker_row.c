/* SPDX-License-Identifier: MIT */
/* Rows of placements: written, scored, kept. */
#include <string.h>

#include "planner/worker.h"

#include "model/cluster.h"
#include "model/placement.h"

/* Writes a GPU's experts in the order of their ids: a search leaves them in none. */
static void write_ascending(const eplb_layer *layer, int32_t gpu, int32_t *slots)
{
    const uint64_t *bits = layer->holds + (size_t)gpu * (size_t)layer->words;
    for (int32_t word = 0; word < layer->words; word++) {
        for (uint64_t left = bits[word]; left != 0; left &= left - 1) {
            *slots++ = 64 * word + __builtin_ctzll(left);
        }
    }
}

/* Writes the planned layer into the placement's row. */
void eplb_worker_write(const eplb_worker *w, int32_t *row)
{
    const eplb_cluster *cluster = w->run->job->cluster;
    const eplb_shape *shape = &w->run->shape;
    for (int32_t s = 0; s < eplb_cluster_slots(cluster); s++) {
        row[s] = -1;
    }
    for (int32_t g = 0; g < shape->gpus; g++) {
        int32_t *slots = row + cluster->first_slot[shape->cluster_gpu[g]];
        if (w->run->job->options->algorithm == EPLB_ALGORITHM_SEARCH) {
            write_ascending(&w->layer, g, slots);
        } else { /* which may hold an expert twice, and has an order of its own */
            size_t count = (size_t)(shape->first_slot[g + 1] - shape->first_slot[g]);
            memcpy(slots, w->layer.slot_expert + shape->first_slot[g], count * sizeof(*slots));
        }
    }
}

static double imbalance(eplb_worker *w, const eplb_cluster *cluster, const int32_t *row,
                        const double *loads)
{
    eplb_gpu_loads(cluster, row, w->counts, loads, w->gpu_loads);
    return eplb_imbalance_of(cluster, loads, w->run->shape.experts, w->gpu_loads);
}

/* The objective of a row; w->layer.load are the layer's summed loads. */
double eplb_worker_score(eplb_worker *w, const eplb_cluster *cluster, const int32_t *row,
                         int32_t layer)
{
    const eplb_shape *shape = &w->run->shape;
    memset(w->counts, 0, (size_t)shape->experts * sizeof(*w->counts));
    for (int32_t s = 0; s < eplb_cluster_slots(cluster); s++) {
        if (row[s] >= 0) {
            w->counts[row[s]]++;
        }
    }
    if (!w->run->is_joint) {
        return imbalance(w, cluster, row, w->layer.load);
    }
    const eplb_load *load = w->run->job->load;
    double *each = w->joint.scratch;
    int32_t scenarios = 0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        double scenario = imbalance(w, cluster, row, eplb_load_row(load, k, layer));
        if (scenario > 0.0) {
            each[scenarios++] = scenario;
        }
    }
    double value = eplb_joint_value(&w->joint, each);
    return value > 1.0 ? value : 1.0; /* the weights' sum may be 1 but for rounding */
}

/* Takes a row without empty slots over as the layer's placement. */
void eplb_worker_take_row(eplb_worker *w, const int32_t *row)
{
    const eplb_run *r = w->run;
    for (int32_t g = 0; g < r->shape.gpus; g++) {
        size_t count = (size_t)(r->shape.first_slot[g + 1] - r->shape.first_slot[g]);
        memcpy(w->layer.slot_expert + r->shape.first_slot[g],
               row + r->job->cluster->first_slot[r->shape.cluster_gpu[g]], count * sizeof(*row));
    }
    eplb_layer_index(&w->layer);
}

/* Whether the current row keeps the rules and the groups. */
static bool keeps_rules(eplb_worker *w, int32_t layer)
{
    const eplb_run *r = w->run;
    if (r->shape.rules == NULL && r->hierarchy.nodes == 0) {
        return true;
    }
    eplb_worker_take_row(w, eplb_placement_row(r->job->current, layer));
    return (r->shape.rules == NULL || eplb_rules_hold(&w->layer)) &&
           (r->hierarchy.nodes == 0 || eplb_hierarchy_holds(&r->hierarchy, &w->layer));
}

/* Whether the layer's current row is what a plan may be: it was checked to be valid but for empty
 * slots and second copies on a GPU. */
bool eplb_worker_can_keep(eplb_worker *w, int32_t layer)
{
    const eplb_run *r = w->run;
    if (!r->same_slots) {
        return false;
    }
    const int32_t *row = eplb_placement_row(r->job->current, layer);
    int32_t *last_gpu = w->counts; /* [experts] that was seen to hold it */
    for (int32_t e = 0; e < r->shape.experts; e++) {
        last_gpu[e] = -1;
    }
    for (int32_t s = 0; s < r->shape.slots; s++) {
        int32_t gpu = r->shape.slot_gpu[s];
        int32_t first = r->job->cluster->first_slot[r->shape.cluster_gpu[gpu]];
        int32_t expert = row[first + s - r->shape.first_slot[gpu]];
        if (expert < 0 || last_gpu[expert] == gpu) {
            return false;
        }
        last_gpu[expert] = gpu;
    }
    return keeps_rules(w, layer);
}

void eplb_worker_keep(const eplb_run *r, int32_t layer)
{
    memcpy(eplb_placement_row_of(r->job->placement, layer),
           eplb_placement_row(r->job->current, layer),
           (size_t)r->job->placement->slots * sizeof(int32_t));
}
