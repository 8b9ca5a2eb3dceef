/* SPDX-License-Identifier: MIT */
#include <eplb/plan.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"

/* One layer under repair. */
typedef struct repair {
    const eplb_placement *placement;
    int32_t layer;
    const eplb_cluster *cluster;
    int32_t experts;
    int32_t slots;
    int32_t *row;    /* [slots] */
    int32_t *before; /* [slots] the row as it came */
    int32_t *count;  /* [experts] */
    double *load;    /* [experts] */
} repair;

static bool on_gpu(const repair *r, int32_t gpu, int32_t expert)
{
    for (int32_t s = r->cluster->first_slot[gpu]; s < r->cluster->first_slot[gpu + 1]; s++) {
        if (r->row[s] == expert) {
            return true;
        }
    }
    return false;
}

static bool appears_before(const repair *r, int32_t gpu, int32_t slot)
{
    for (int32_t s = r->cluster->first_slot[gpu]; s < slot; s++) {
        if (r->row[s] == r->row[slot]) {
            return true;
        }
    }
    return false;
}

/* Behind the last slot of a GPU that the layer has. */
static int32_t end_of(const repair *r, int32_t gpu)
{
    return eplb_placement_open_end(r->placement, r->layer, gpu);
}

/* Empties slots on dead GPUs, closed ones, and second copies on a GPU. */
static void remove_wrong(repair *r)
{
    memset(r->count, 0, (size_t)r->experts * sizeof(*r->count));
    for (int32_t g = 0; g < r->cluster->gpus; g++) {
        for (int32_t s = r->cluster->first_slot[g]; s < r->cluster->first_slot[g + 1]; s++) {
            int32_t expert = r->row[s];
            if (expert < 0) {
                continue;
            }
            if (r->cluster->gpu[g].alive && s < end_of(r, g) && !appears_before(r, g, s)) {
                r->count[expert]++;
            } else {
                r->row[s] = -1;
            }
        }
    }
}

/* The slot that loses least: an empty one, else one of an expert with other replicas whose shares
 * rise to the least. Dead GPUs have none. */
static int32_t cheapest_slot(const repair *r)
{
    int32_t best = -1;
    double least = 0.0;
    for (int32_t g = 0; g < r->cluster->gpus; g++) {
        if (!r->cluster->gpu[g].alive) {
            continue;
        }
        for (int32_t s = r->cluster->first_slot[g]; s < end_of(r, g); s++) {
            int32_t expert = r->row[s];
            if (expert < 0) {
                return s;
            }
            if (r->count[expert] < 2) {
                continue;
            }
            double share = r->load[expert] / (double)(r->count[expert] - 1);
            if (best < 0 || share < least) {
                best = s;
                least = share;
            }
        }
    }
    return best;
}

static void place_missing(repair *r)
{
    for (int32_t e = 0; e < r->experts; e++) {
        if (r->count[e] > 0) {
            continue;
        }
        int32_t slot = cheapest_slot(r);
        if (r->row[slot] >= 0) {
            r->count[r->row[slot]]--;
        }
        r->row[slot] = e;
        r->count[e] = 1;
    }
}

/* The expert with most load per replica that the GPU lacks; equal ones: fewer replicas, smaller id.
 * There is one, for a GPU has no more slots than there are experts. */
static int32_t neediest_without(const repair *r, int32_t gpu)
{
    int32_t best = -1;
    for (int32_t e = 0; e < r->experts; e++) {
        if (on_gpu(r, gpu, e)) {
            continue;
        }
        double share = r->load[e] / (double)r->count[e];
        double most = best >= 0 ? r->load[best] / (double)r->count[best] : -1.0;
        if (share > most || (share == most && r->count[e] < r->count[best])) {
            best = e;
        }
    }
    return best;
}

static void fill_empty(repair *r)
{
    for (int32_t g = 0; g < r->cluster->gpus; g++) {
        if (!r->cluster->gpu[g].alive) {
            continue;
        }
        for (int32_t s = r->cluster->first_slot[g]; s < end_of(r, g); s++) {
            if (r->row[s] < 0) {
                r->row[s] = neediest_without(r, g);
                r->count[r->row[s]]++;
            }
        }
    }
}

static int64_t repair_layer(repair *r)
{
    memcpy(r->before, r->row, (size_t)r->slots * sizeof(*r->before));
    remove_wrong(r);
    place_missing(r);
    fill_empty(r);
    int64_t changed = 0;
    for (int32_t s = 0; s < r->slots; s++) {
        changed += r->row[s] != r->before[s];
    }
    return changed;
}

static eplb_status check_shapes(const eplb_placement *placement, const eplb_load *load,
                                eplb_error *error)
{
    if (placement == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "repair: no placement");
    }
    if (load != NULL && (eplb_load_layers(load) != placement->layers ||
                         eplb_load_experts(load) != placement->experts)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "repair: load of %d layers x %d experts for a placement of %d x %d",
                              eplb_load_layers(load), eplb_load_experts(load), placement->layers,
                              placement->experts);
    }
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < placement->layers && status == EPLB_OK; l++) {
        status = eplb_placement_check_fits(placement, l, error);
    }
    return status;
}

static eplb_status layer_loads(const eplb_load *load, int32_t layer, repair *r, eplb_error *error)
{
    if (load != NULL) {
        return eplb_load_sum_row(load, layer, r->load, NULL, error);
    }
    for (int32_t e = 0; e < r->experts; e++) {
        r->load[e] = 1.0;
    }
    return EPLB_OK;
}

eplb_status eplb_placement_repair(eplb_placement *placement, const eplb_load *load,
                                  int64_t *changed, eplb_error *error)
{
    eplb_status status = check_shapes(placement, load, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_hooks *hooks = &placement->hooks;
    repair r = {.placement = placement,
                .cluster = placement->cluster,
                .experts = placement->experts,
                .slots = placement->slots};
    r.before = eplb_alloc(hooks, (size_t)r.slots, sizeof(*r.before));
    r.count = eplb_alloc(hooks, (size_t)r.experts, sizeof(*r.count));
    r.load = eplb_alloc(hooks, (size_t)r.experts, sizeof(*r.load));
    if (r.before == NULL || r.count == NULL || r.load == NULL) {
        status = eplb_out_of_memory(error);
    }
    /* All loads are seen before the first slot is changed. */
    for (int32_t l = 0; l < placement->layers && status == EPLB_OK; l++) {
        status = layer_loads(load, l, &r, error);
    }
    int64_t total = 0;
    for (int32_t l = 0; l < placement->layers && status == EPLB_OK; l++) {
        status = layer_loads(load, l, &r, error);
        r.layer = l;
        r.row = eplb_placement_row_of(placement, l);
        total += repair_layer(&r);
    }
    eplb_free(hooks, r.before);
    eplb_free(hooks, r.count);
    eplb_free(hooks, r.load);
    if (status == EPLB_OK && changed != NULL) {
        *changed = total;
    }
    return status;
}
