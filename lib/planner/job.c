/* SPDX-License-Identifier: MIT */
#include "planner/job.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/nodes.h"
#include "model/placement.h"
#include "planner/hierarchy.h"
#include "planner/joint.h"
#include "planner/solve.h"
#include "planner/traffic.h"

/* What the threads share. */
typedef struct run {
    const eplb_plan_job *job;
    eplb_shape shape;
    eplb_rules rules;
    eplb_hierarchy_shape hierarchy; /* no nodes: groups may be anywhere */
    eplb_nodes nodes;               /* when traffic has a price */
    double *loads;   /* [layers][experts], scenarios summed; NULL: no sums are needed */
    double *totals;  /* [layers] */
    bool is_joint;   /* several scenarios, each for itself */
    bool same_slots; /* the current placement's slots and live GPUs are the cluster's */
    atomic_int next;
    atomic_int done;
    atomic_bool cancelled;
    atomic_int failed; /* a layer whose rules do not fit, -1: none */
    int reported;      /* by the calling thread: layers done */
} run;

/* One thread and its memory. */
typedef struct worker {
    run *run;
    bool calls_progress;
    eplb_layer layer;
    eplb_joint joint;         /* when the run is joint */
    eplb_hierarchy hierarchy; /* when groups are kept on nodes */
    eplb_traffic traffic;     /* when traffic has a price */
    double *gpu_loads;        /* [gpus of the cluster] */
    int32_t *counts;          /* [experts] */
    pthread_t thread;
} worker;

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
static void write_row(const worker *w, int32_t *row)
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

static double imbalance(worker *w, const eplb_cluster *cluster, const int32_t *row,
                        const double *loads)
{
    eplb_gpu_loads(cluster, row, w->counts, loads, w->gpu_loads);
    return eplb_imbalance_of(cluster, loads, w->run->shape.experts, w->gpu_loads);
}

/* The objective of a row; w->layer.load are the layer's summed loads. */
static double score(worker *w, const eplb_cluster *cluster, const int32_t *row, int32_t layer)
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
static void take_row(worker *w, const int32_t *row)
{
    const run *r = w->run;
    for (int32_t g = 0; g < r->shape.gpus; g++) {
        size_t count = (size_t)(r->shape.first_slot[g + 1] - r->shape.first_slot[g]);
        memcpy(w->layer.slot_expert + r->shape.first_slot[g],
               row + r->job->cluster->first_slot[r->shape.cluster_gpu[g]], count * sizeof(*row));
    }
    eplb_layer_index(&w->layer);
}

/* Whether the current row keeps the rules and the groups. */
static bool keeps_rules(worker *w, int32_t layer)
{
    const run *r = w->run;
    if (r->shape.rules == NULL && r->hierarchy.nodes == 0) {
        return true;
    }
    take_row(w, eplb_placement_row(r->job->current, layer));
    return (r->shape.rules == NULL || eplb_rules_hold(&w->layer)) &&
           (r->hierarchy.nodes == 0 || eplb_hierarchy_holds(&r->hierarchy, &w->layer));
}

/* Whether the layer's current row is what a plan may be: it was checked to be valid but for empty
 * slots and second copies on a GPU. */
static bool can_keep_current(worker *w, int32_t layer)
{
    const run *r = w->run;
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

static void keep_current(const run *r, int32_t layer)
{
    memcpy(eplb_placement_row_of(r->job->placement, layer),
           eplb_placement_row(r->job->current, layer),
           (size_t)r->job->placement->slots * sizeof(int32_t));
}

/* Remembers the first layer whose rules do not fit, whichever thread has it. */
static void note_failure(run *r, int layer)
{
    int first = atomic_load(&r->failed);
    while ((first < 0 || layer < first) &&
           !atomic_compare_exchange_weak(&r->failed, &first, layer)) {
    }
}

/* Its loads are zeros: all experts are alike. */
static void pack_by_rules(worker *w, int32_t layer)
{
    eplb_layer_counts(&w->layer);
    if (eplb_layer_pack(&w->layer)) {
        write_row(w, eplb_placement_row_of(w->run->job->placement, layer));
    } else {
        note_failure(w->run, layer);
    }
}

/* The same with groups kept on nodes. */
static void spread_groups(worker *w, int32_t layer)
{
    double bound;
    (void)eplb_hierarchy_solve(&w->hierarchy, false, 1, 1.0, &bound);
    write_row(w, eplb_placement_row_of(w->run->job->placement, layer));
}

/* A layer without load keeps its placement or is spread evenly; it is not scored. */
static void place_idle_layer(worker *w, int32_t layer)
{
    const run *r = w->run;
    if (can_keep_current(w, layer)) {
        keep_current(r, layer);
    } else if (r->hierarchy.nodes > 0) {
        spread_groups(w, layer);
    } else if (r->shape.rules != NULL) {
        pack_by_rules(w, layer);
    } else {
        /* It fits: the shape was made. */
        (void)eplb_placement_spread(r->job->placement, layer, NULL);
    }
}

/* `bound` gets the lower bound of the objective. */
static eplb_stop solve_reference(worker *w, double total, double *bound)
{
    const eplb_plan_job *job = w->run->job;
    const double *sums = w->layer.load;
    int32_t nodes = job->options->groups > 1 ? eplb_cluster_nodes(job->cluster) : 1;
    if (w->run->is_joint) {
        *bound = eplb_joint_bound(&w->joint);
    }
    w->layer.load = sums;
    eplb_layer_counts(&w->layer);
    if (!w->run->is_joint) {
        *bound = eplb_layer_bound(&w->layer) / total * (double)w->run->shape.gpus;
    }
    eplb_layer_reference(&w->layer, job->options->groups, nodes);
    w->layer.moves = 0;
    return EPLB_STOP_LOCAL_OPTIMUM;
}

static eplb_stop solve_alone(worker *w, int32_t level, double total, double *bound)
{
    eplb_effort effort = eplb_effort_of(level, w->run->shape.slots);
    eplb_stop stop = eplb_layer_solve(&w->layer, &effort, bound);
    *bound = *bound / total * (double)w->run->shape.gpus;
    return stop;
}

/* `total` is that of the layer's summed loads. */
static eplb_stop solve(worker *w, double total, double *bound)
{
    const eplb_plan_options *options = w->run->job->options;
    if (options->algorithm == EPLB_ALGORITHM_EPLB) {
        return solve_reference(w, total, bound);
    }
    bool cancelled = atomic_load(&w->run->cancelled);
    int32_t level = cancelled ? 1 : options->effort;
    bool is_joint = w->run->is_joint && w->joint.scenarios > 1;
    eplb_stop stop;
    if (w->run->hierarchy.nodes > 0) {
        stop = eplb_hierarchy_solve(&w->hierarchy, is_joint, level, total, bound);
    } else {
        stop = is_joint ? eplb_joint_solve(&w->joint, level, bound)
                        : solve_alone(w, level, total, bound);
    }
    return cancelled ? EPLB_STOP_CANCELLED : stop;
}

/* Fills the layer's choices, and makes the cheapest, the first of equals, the layer's placement. */
static void choose(worker *w, int32_t index, int32_t *row)
{
    const eplb_plan_job *job = w->run->job;
    eplb_plan_choice *choices = job->choices + (size_t)index * EPLB_NODE_CHOICES;
    size_t slots = (size_t)w->run->shape.slots;
    bool cancelled = job->layers[index].stop == EPLB_STOP_CANCELLED;
    double least = 0.0;
    w->layer.load = w->run->is_joint
                        ? w->joint.load
                        : w->run->loads + (size_t)index * (size_t)w->run->shape.experts;
    eplb_traffic_take(&w->traffic, w->run->is_joint ? &w->joint : NULL);
    for (int32_t i = 0; i < EPLB_NODE_CHOICES; i++) {
        if (i == 0 || !cancelled) {
            eplb_traffic_choose(&w->traffic, i, job->options->effort);
            write_row(w, row);
        }
        choices[i].imbalance = score(w, job->cluster, row, index);
        choices[i].cross_node = eplb_traffic_share(&w->traffic);
        double price = choices[i].imbalance + job->options->node_cost * choices[i].cross_node;
        if (i == 0 || price < least) {
            least = price;
            memcpy(w->layer.best, w->layer.slot_expert, slots * sizeof(*w->layer.best));
        }
    }
    memcpy(w->layer.slot_expert, w->layer.best, slots * sizeof(*w->layer.best));
    eplb_layer_index(&w->layer);
    write_row(w, row);
}

/* What a row costs, given its imbalance: with the price of its traffic where there is one. */
static double cost_of(worker *w, const int32_t *row, double imbalance)
{
    double price = w->run->job->options->node_cost;
    if (!(price > 0.0)) {
        return imbalance;
    }
    take_row(w, row);
    return imbalance + price * eplb_traffic_share(&w->traffic);
}

/* The current row stays where a plan is no better, but for rounding or what the effort tolerates:
 * copies for less would be copies for nothing. */
static void compare_with_current(worker *w, int32_t index, eplb_plan_layer *result)
{
    const run *r = w->run;
    const eplb_plan_job *job = r->job;
    result->imbalance_before =
        score(w, job->current->cluster, eplb_placement_row(job->current, index), index);
    if (job->options->algorithm == EPLB_ALGORITHM_EPLB || !can_keep_current(w, index)) {
        return;
    }
    double tolerance = eplb_effort_of(job->options->effort, r->shape.slots).tolerance;
    double before = cost_of(w, eplb_placement_row(job->current, index), result->imbalance_before);
    double after = cost_of(w, eplb_placement_row(job->placement, index), result->imbalance_after);
    /* No bound is known of an imbalance with the price of traffic. */
    double least = job->options->node_cost > 0.0 ? after : result->lower_bound;
    if (before <= after * (1.0 + EPLB_ROUNDING) || before <= least * (1.0 + tolerance)) {
        keep_current(r, index);
        result->imbalance_after = result->imbalance_before;
    }
}

/* Tries whether there is a way to keep the rules with the layer's loads. */
static bool fits_rules(worker *w)
{
    if (w->run->shape.rules == NULL) {
        return true;
    }
    if (w->run->is_joint && w->joint.scenarios > 1) {
        return eplb_joint_fits(&w->joint);
    }
    eplb_layer_counts(&w->layer);
    return eplb_layer_pack(&w->layer);
}

/* Takes over the loads of a layer, and their total. False when it has none. */
static bool take_loads(worker *w, int32_t index, double *total)
{
    const run *r = w->run;
    bool has_load = !r->is_joint || eplb_joint_take(&w->joint, r->job->load, index);
    if (r->loads != NULL) {
        w->layer.load = r->loads + (size_t)index * (size_t)r->shape.experts;
        *total = r->totals[index];
    } else { /* those of a single scenario, if no other has load: the mean GPU has 1 */
        w->layer.load = w->joint.load;
        *total = (double)r->shape.gpus;
    }
    return has_load && *total > 0.0;
}

/* The placement may be another than the one that the search ended with. */
static void correct_stop(eplb_plan_layer *result)
{
    bool optimal = result->imbalance_after <= result->lower_bound * (1.0 + EPLB_ROUNDING);
    if (result->stop == EPLB_STOP_CANCELLED) {
        return;
    }
    if (optimal) {
        result->stop = EPLB_STOP_OPTIMAL;
    } else if (result->stop == EPLB_STOP_OPTIMAL) {
        result->stop = EPLB_STOP_EFFORT;
    }
}

static void plan_layer(worker *w, int32_t index)
{
    run *r = w->run;
    const eplb_plan_job *job = r->job;
    eplb_plan_layer *result = &job->layers[index];
    double total;
    bool has_load = take_loads(w, index, &total);
    result->struct_size = sizeof(*result);
    result->layer_id = eplb_load_layer_ids(job->load)[index];
    if (r->shape.rules != NULL) {
        eplb_rules_pin(&r->rules, &w->layer, index);
    }
    if (!has_load) {
        place_idle_layer(w, index);
        return;
    }
    double bound;
    int32_t *row = eplb_placement_row_of(job->placement, index);
    result->scored = 1;
    if (!fits_rules(w)) {
        note_failure(r, index);
        return;
    }
    result->stop = (int32_t)solve(w, total, &bound);
    if (r->shape.rules != NULL) {
        eplb_rules_spread(&w->layer);
    }
    write_row(w, row);
    if (job->choices != NULL) {
        choose(w, index, row);
    }
    result->moves = w->layer.moves;
    result->imbalance_after = score(w, job->cluster, row, index);
    /* Rounding must not lift the bound above what was found. */
    result->lower_bound = bound < result->imbalance_after ? bound : result->imbalance_after;
    result->lower_bound = result->lower_bound > 1.0 ? result->lower_bound : 1.0;
    if (job->current != NULL) {
        compare_with_current(w, index, result);
    }
    correct_stop(result);
}

/* Tells the caller how many layers are done; remembers a wish to stop. */
static void report_progress(run *r, int done)
{
    const eplb_plan_options *options = r->job->options;
    r->reported = done;
    if (options->progress != NULL &&
        options->progress(options->progress_context, done, eplb_load_layers(r->job->load)) != 0) {
        atomic_store(&r->cancelled, true);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    run *r = w->run;
    int layers = eplb_load_layers(r->job->load);
    for (;;) {
        int index = atomic_fetch_add(&r->next, 1);
        if (index >= layers) {
            return NULL;
        }
        plan_layer(w, index);
        int done = atomic_fetch_add(&r->done, 1) + 1;
        if (w->calls_progress) {
            report_progress(r, done);
        }
    }
}

static eplb_status init_worker(worker *w, run *r, const eplb_hooks *hooks, eplb_error *error)
{
    w->run = r;
    eplb_status status = eplb_layer_init(&w->layer, hooks, &r->shape, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (r->is_joint) {
        status = eplb_joint_init(&w->joint, hooks, &w->layer, eplb_load_scenarios(r->job->load),
                                 (eplb_objective)r->job->options->objective, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    int32_t scenarios = r->is_joint ? eplb_load_scenarios(r->job->load) : 1;
    if (r->hierarchy.nodes > 0) {
        status = eplb_hierarchy_init(&w->hierarchy, hooks, &r->hierarchy, &w->layer,
                                     r->is_joint ? &w->joint : NULL, scenarios, error);
    }
    if (status == EPLB_OK && r->job->choices != NULL) {
        status = eplb_traffic_init(&w->traffic, hooks, &w->layer, &r->nodes, scenarios, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    w->gpu_loads = eplb_alloc(hooks, (size_t)r->job->cluster->gpus, sizeof(*w->gpu_loads));
    w->counts = eplb_alloc(hooks, (size_t)r->shape.experts, sizeof(*w->counts));
    return w->gpu_loads != NULL && w->counts != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static void free_worker(worker *w, const eplb_hooks *hooks)
{
    eplb_traffic_free(&w->traffic, hooks);
    eplb_hierarchy_free(&w->hierarchy, hooks);
    eplb_joint_free(&w->joint, hooks);
    eplb_layer_free(&w->layer, hooks);
    eplb_free(hooks, w->gpu_loads);
    eplb_free(hooks, w->counts);
}

/* Runs the workers: the first on the calling thread, each other on one of its own. A thread that
 * cannot be started is no loss but of time. */
static void run_workers(worker *workers, int32_t count)
{
    int32_t started = 1;
    while (started < count &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0) {
        started++;
    }
    workers[0].calls_progress = true;
    (void)work(&workers[0]);
    for (int32_t i = 1; i < started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    run *r = workers[0].run;
    int layers = eplb_load_layers(r->job->load);
    if (r->reported < layers) { /* other threads had the last layers */
        report_progress(r, layers);
    }
}

/* The current rows can stay where they are when slots and live GPUs are the same. */
static bool same_slots(const eplb_cluster *a, const eplb_cluster *b)
{
    for (int32_t g = 0; g < a->gpus; g++) {
        if (a->gpu[g].slots != b->gpu[g].slots || a->gpu[g].alive != b->gpu[g].alive) {
            return false;
        }
    }
    return true;
}

/* Scales a row by the power of two that brings its total near 1: no sum or product of a search can
 * overflow then. Exact, but for loads that are nothing beside the total. */
static void normalise(double *row, int32_t experts, double *total)
{
    int exponent;
    *total = frexp(*total, &exponent);
    /* Two factors: 2^-exponent itself can be too large. */
    double half = ldexp(1.0, -(exponent / 2));
    double rest = ldexp(1.0, exponent / 2 - exponent);
    for (int32_t e = 0; e < experts; e++) {
        row[e] = row[e] * half * rest;
    }
}

/* On a single node groups bind nothing, and the classical algorithm has its own way. */
static bool has_hierarchy(const eplb_plan_job *job)
{
    return job->options->algorithm == EPLB_ALGORITHM_SEARCH && job->options->groups > 1 &&
           eplb_cluster_nodes(job->cluster) > 1;
}

static eplb_status sum_scenarios(run *r, const eplb_hooks *hooks, eplb_error *error)
{
    const eplb_plan_job *job = r->job;
    int32_t experts = eplb_load_experts(job->load);
    int32_t layers = eplb_load_layers(job->load);
    size_t count;
    if (!eplb_size_mul((size_t)layers, (size_t)experts, &count)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "plan: its size overflows");
    }
    r->loads = eplb_alloc(hooks, count, sizeof(*r->loads));
    r->totals = eplb_alloc(hooks, (size_t)layers, sizeof(*r->totals));
    if (r->loads == NULL || r->totals == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < layers && status == EPLB_OK; l++) {
        double *row = r->loads + (size_t)l * (size_t)experts;
        status = eplb_load_sum_row(job->load, l, row, &r->totals[l], error);
        if (status == EPLB_OK) {
            normalise(row, experts, &r->totals[l]);
        }
    }
    return status;
}

static eplb_status prepare(run *r, const eplb_hooks *hooks, eplb_error *error)
{
    const eplb_plan_job *job = r->job;
    int32_t experts = eplb_load_experts(job->load);
    int32_t layers = eplb_load_layers(job->load);
    eplb_status status = eplb_shape_init(&r->shape, hooks, job->cluster, experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    status =
        eplb_rules_init(&r->rules, hooks, &r->shape, job->cluster, layers, job->options, error);
    if (status == EPLB_OK && has_hierarchy(job)) {
        status = eplb_hierarchy_shape_init(&r->hierarchy, hooks, job->cluster, experts,
                                           job->options->groups, error);
    }
    if (status == EPLB_OK && job->choices != NULL) {
        status = eplb_nodes_init(&r->nodes, hooks, job->cluster, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    r->shape.rules = eplb_rules_bind(&r->rules, &r->shape) ? &r->rules : NULL;
    r->same_slots = job->current != NULL && same_slots(job->cluster, job->current->cluster);
    /* A search on scenarios has no use for sums, which may overflow where no scenario does. */
    bool needs_sums = !r->is_joint || job->options->algorithm == EPLB_ALGORITHM_EPLB;
    return needs_sums ? sum_scenarios(r, hooks, error) : EPLB_OK;
}

static eplb_status rules_failed(const eplb_plan_job *job, int32_t layer, eplb_error *error)
{
    return eplb_error_set(
        error, EPLB_ERROR_INFEASIBLE,
        "plan: layer %d: no way was found to keep all pins and limits of replicas",
        eplb_load_layer_ids(job->load)[layer]);
}

eplb_status eplb_plan_job_run(const eplb_plan_job *job, const eplb_hooks *hooks, eplb_error *error)
{
    run r = {.job = job,
             .failed = -1,
             .is_joint = eplb_load_scenarios(job->load) > 1 &&
                         job->options->objective != EPLB_OBJECTIVE_SUM};
    int32_t threads = job->options->threads;
    int32_t layers = eplb_load_layers(job->load);
    threads = threads < layers ? threads : layers;
    eplb_status status = prepare(&r, hooks, error);
    worker *workers = NULL;
    if (status == EPLB_OK) {
        workers = eplb_alloc_zeroed(hooks, (size_t)threads, sizeof(*workers));
        status = workers != NULL ? EPLB_OK : eplb_out_of_memory(error);
    }
    for (int32_t i = 0; i < threads && status == EPLB_OK; i++) {
        status = init_worker(&workers[i], &r, hooks, error);
    }
    if (status == EPLB_OK) {
        run_workers(workers, threads);
        int32_t failed = atomic_load(&r.failed);
        status = failed < 0 ? EPLB_OK : rules_failed(job, failed, error);
    }
    for (int32_t i = 0; workers != NULL && i < threads; i++) {
        free_worker(&workers[i], hooks);
    }
    eplb_free(hooks, workers);
    eplb_free(hooks, r.loads);
    eplb_free(hooks, r.totals);
    eplb_nodes_free(&r.nodes, hooks);
    eplb_hierarchy_shape_free(&r.hierarchy, hooks);
    eplb_rules_free(&r.rules, hooks);
    eplb_shape_free(&r.shape, hooks);
    return status;
}
