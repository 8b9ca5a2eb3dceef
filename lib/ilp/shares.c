/* SPDX-License-Identifier: MIT */
/*
 * The best weights of replicas as a linear program: minimise T, where the tokens f_s >= 0 of an
 * expert's slots sum to its load and those of a GPU's slots to at most T.
 *
 * Its dual is checked in own arithmetic: for any y_g >= 0 with sum 1 the largest GPU load is at
 * least sum over g of y_g load_g, and that at least sum over experts of load x least y_g of the
 * GPUs that hold the expert.
 */
#include <math.h>

#include <eplb/shares.h>

#include "base/memory.h"
#include "ilp/ilp.h"
#include "ilp/runner.h"

typedef struct program {
    const eplb_placement *placement;
    const eplb_cluster *cluster;
    const int32_t *row;
    const double *load; /* [experts] */
    int32_t gpus;
    int32_t experts;
    int32_t slots;
    double mean;        /* of the live GPUs */
    int32_t *slot_gpu;  /* [slots] -1: empty, or its GPU is dead */
    int32_t *count;     /* [experts] such slots */
    double *gpu_load;   /* [gpus] */
    double *values;     /* [slots + 1] tokens of each slot / mean, then T / mean */
    double *duals;      /* [experts + gpus] */
    double *weights;    /* [slots] */
    double *best;       /* [slots] the best weights so far */
    double largest;     /* the largest GPU load under them */
    double bound;       /* that none has less than */
    double *expert_sum; /* [experts] */
    eplb_ilp_model model;
} program;

static eplb_status init(program *p, const eplb_ilp *ilp, const eplb_placement *placement,
                        int32_t layer, const double *loads, eplb_error *error)
{
    *p = (program){.placement = placement,
                   .cluster = eplb_placement_cluster(placement),
                   .row = eplb_placement_row(placement, layer),
                   .load = loads,
                   .experts = eplb_placement_experts(placement),
                   .slots = eplb_placement_slots(placement)};
    p->gpus = eplb_cluster_gpus(p->cluster);
    eplb_ilp_model_init(&p->model, &ilp->hooks);
    size_t experts = (size_t)p->experts;
    size_t gpus = (size_t)p->gpus;
    size_t slots = (size_t)p->slots;
    const eplb_array arrays[] = {
        EPLB_ARRAY(p->slot_gpu, slots),       EPLB_ARRAY(p->count, experts),
        EPLB_ARRAY(p->gpu_load, gpus),        EPLB_ARRAY(p->values, slots + 1),
        EPLB_ARRAY(p->duals, experts + gpus), EPLB_ARRAY(p->weights, slots),
        EPLB_ARRAY(p->expert_sum, experts),   EPLB_ARRAY(p->best, slots),
    };
    return eplb_alloc_arrays(&ilp->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

static void free_program(program *p, const eplb_hooks *hooks)
{
    void *arrays[] = {p->slot_gpu, p->count,   p->gpu_load,   p->values,
                      p->duals,    p->weights, p->expert_sum, p->best};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    eplb_ilp_model_free(&p->model);
}

static void count_replicas(program *p)
{
    for (int32_t g = 0; g < p->gpus; g++) {
        int32_t first = eplb_cluster_first_slot(p->cluster, g);
        for (int32_t s = first; s < first + eplb_cluster_gpu_slots(p->cluster, g); s++) {
            bool holds = p->row[s] >= 0 && eplb_cluster_gpu_alive(p->cluster, g) == 1;
            p->slot_gpu[s] = holds ? g : -1;
            if (holds) {
                p->count[p->row[s]]++;
            }
        }
    }
}

static double largest_of(const program *p)
{
    double largest = 0.0;
    for (int32_t g = 0; g < p->gpus; g++) {
        largest = p->gpu_load[g] > largest ? p->gpu_load[g] : largest;
    }
    return largest;
}

/* Even weights, which also shows whether the arguments are what they should be. */
static eplb_status split_evenly(program *p, int32_t layer, eplb_error *error)
{
    count_replicas(p);
    for (int32_t s = 0; s < p->slots; s++) {
        p->best[s] = p->slot_gpu[s] >= 0 ? 1.0 / (double)p->count[p->row[s]] : 0.0;
    }
    eplb_status status =
        eplb_shares_gpu_loads(p->placement, layer, p->load, p->best, p->gpu_load, error);
    p->largest = largest_of(p);
    for (int32_t g = 0; g < p->gpus; g++) {
        p->mean += p->gpu_load[g] / (double)eplb_cluster_live_gpus(p->cluster);
    }
    p->bound = p->mean;
    return status;
}

/* Columns are the slots and T, rows the experts and the GPUs. */
static void build(program *p)
{
    eplb_ilp_model *model = &p->model;
    for (int32_t s = 0; s < p->slots; s++) {
        (void)eplb_ilp_add_column(model, 0.0, p->slot_gpu[s] >= 0 ? INFINITY : 0.0, 0.0);
    }
    int32_t threshold = eplb_ilp_add_column(model, 0.0, INFINITY, 1.0);
    for (int32_t e = 0; e < p->experts; e++) {
        double load = p->load[e] / p->mean;
        (void)eplb_ilp_add_row(model, p->count[e] > 0 ? load : 0.0, load);
    }
    for (int32_t g = 0; g < p->gpus; g++) {
        int32_t row = eplb_ilp_add_row(model, -INFINITY, 0.0);
        eplb_ilp_add_entry(model, row, threshold, -1.0);
    }
    for (int32_t s = 0; s < p->slots; s++) {
        if (p->slot_gpu[s] >= 0) {
            eplb_ilp_add_entry(model, p->row[s], s, 1.0);
            eplb_ilp_add_entry(model, p->experts + p->slot_gpu[s], s, 1.0);
        }
    }
}

/* Replaces even weights by the program's where those are better. */
static eplb_status take_weights(program *p, int32_t layer, eplb_error *error)
{
    for (int32_t s = 0; s < p->slots; s++) {
        p->values[s] = p->values[s] > 0.0 ? p->values[s] : 0.0;
        if (p->slot_gpu[s] >= 0) {
            p->expert_sum[p->row[s]] += p->values[s];
        }
    }
    for (int32_t s = 0; s < p->slots; s++) {
        double sum = p->slot_gpu[s] >= 0 ? p->expert_sum[p->row[s]] : 0.0;
        p->weights[s] = sum > 0.0 ? p->values[s] / sum : p->best[s];
    }
    eplb_status status =
        eplb_shares_gpu_loads(p->placement, layer, p->load, p->weights, p->gpu_load, error);
    if (status == EPLB_OK && largest_of(p) < p->largest) {
        p->largest = largest_of(p);
        memcpy(p->best, p->weights, (size_t)p->slots * sizeof(*p->best));
    }
    return status;
}

/* What the duals prove of the largest load. */
static double bound_of_duals(program *p)
{
    double *price = p->duals + p->experts;
    double *least = p->expert_sum;
    double prices = 0.0;
    for (int32_t g = 0; g < p->gpus; g++) {
        price[g] = price[g] < 0.0 ? -price[g] : 0.0;
        prices += price[g];
    }
    for (int32_t e = 0; e < p->experts; e++) {
        least[e] = prices;
    }
    for (int32_t s = 0; s < p->slots; s++) {
        if (p->slot_gpu[s] >= 0 && price[p->slot_gpu[s]] < least[p->row[s]]) {
            least[p->row[s]] = price[p->slot_gpu[s]];
        }
    }
    double sum = 0.0;
    for (int32_t e = 0; e < p->experts; e++) {
        sum += p->load[e] / p->mean * least[e];
    }
    return prices > 0.0 ? sum / prices * p->mean : 0.0;
}

static eplb_status solve(program *p, const eplb_ilp *ilp, int32_t layer, eplb_error *error)
{
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.memory_bytes = ilp->options.memory_bytes;
    eplb_ilp_solution solution = {.values = p->values, .duals = p->duals};
    build(p);
    eplb_status status = eplb_ilp_solve(&p->model, &limits, &solution, error);
    if (status == EPLB_OK && solution.has_values) {
        status = take_weights(p, layer, error);
    }
    if (status == EPLB_OK && solution.outcome == EPLB_ILP_OPTIMAL) {
        double proven = bound_of_duals(p);
        p->bound = proven > p->bound ? proven : p->bound;
    }
    return status;
}

eplb_status eplb_ilp_shares(const eplb_ilp *ilp, const eplb_placement *placement, int32_t layer,
                            const double *expert_loads, double *weights, double *largest,
                            double *bound, eplb_error *error)
{
    if (ilp == NULL || placement == NULL || expert_loads == NULL || weights == NULL ||
        largest == NULL || bound == NULL || eplb_placement_row(placement, layer) == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "ilp: no placement, loads or output, or no layer %d", layer);
    }
    program p;
    eplb_status status = init(&p, ilp, placement, layer, expert_loads, error);
    if (status == EPLB_OK) {
        status = split_evenly(&p, layer, error);
    }
    if (status == EPLB_OK && p.mean > 0.0) {
        status = solve(&p, ilp, layer, error);
    }
    if (status == EPLB_OK) {
        memcpy(weights, p.best, (size_t)p.slots * sizeof(*weights));
        *largest = p.largest;
        *bound = p.bound < p.largest ? p.bound : p.largest; /* rounding may have them meet */
    }
    free_program(&p, &ilp->hooks);
    return status;
}
