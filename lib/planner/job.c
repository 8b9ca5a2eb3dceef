/* SPDX-License-Identifier: MIT */
#include "planner/job.h"

#include <math.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/refine.h"
#include "planner/threads.h"
#include "planner/worker.h"

void eplb_run_report(eplb_run *r, int done)
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
    eplb_worker *w = argument;
    eplb_run *r = w->run;
    int layers = eplb_load_layers(r->job->load);
    for (;;) {
        int index = atomic_fetch_add(&r->next, 1);
        if (index >= layers) {
            return NULL;
        }
        eplb_worker_plan(w, index);
        int done = atomic_fetch_add(&r->done, 1) + 1;
        if (w->calls_progress) {
            eplb_run_report(r, r->job->options->refiner == NULL ? done : 0);
        }
    }
}

static eplb_status init_worker(eplb_worker *w, eplb_run *r, const eplb_hooks *hooks,
                               eplb_error *error)
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

static void free_worker(eplb_worker *w, const eplb_hooks *hooks)
{
    eplb_traffic_free(&w->traffic, hooks);
    eplb_hierarchy_free(&w->hierarchy, hooks);
    eplb_joint_free(&w->joint, hooks);
    eplb_layer_free(&w->layer, hooks);
    eplb_free(hooks, w->gpu_loads);
    eplb_free(hooks, w->counts);
}

static void run_workers(eplb_worker *workers, int32_t count)
{
    workers[0].calls_progress = true;
    eplb_threads_run(work, workers, sizeof(*workers), count);
    eplb_run *r = workers[0].run;
    int layers = eplb_load_layers(r->job->load);
    if (r->reported < layers && r->job->options->refiner == NULL) {
        eplb_run_report(r, layers); /* other threads had the last layers */
    }
}

/* Lets the refiner have layer after layer, with the memory of one worker. */
static eplb_status refine_layers(eplb_worker *w, const eplb_hooks *hooks, eplb_error *error)
{
    eplb_run *r = w->run;
    eplb_refining refining;
    eplb_status status = eplb_refining_init(&refining, hooks, &r->shape, error);
    for (int32_t l = 0; l < eplb_load_layers(r->job->load) && status == EPLB_OK; l++) {
        status = eplb_worker_refine(w, &refining, l, error);
        if (status == EPLB_OK) {
            eplb_run_report(r, l + 1);
        }
    }
    eplb_refining_free(&refining, hooks);
    return status;
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

static eplb_status sum_scenarios(eplb_run *r, const eplb_hooks *hooks, eplb_error *error)
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

static eplb_status prepare(eplb_run *r, const eplb_hooks *hooks, eplb_error *error)
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
    eplb_run r = {.job = job,
                  .failed = -1,
                  .is_joint = eplb_load_scenarios(job->load) > 1 &&
                              job->options->objective != EPLB_OBJECTIVE_SUM};
    int32_t threads = job->options->threads;
    int32_t layers = eplb_load_layers(job->load);
    threads = threads < layers ? threads : layers;
    eplb_status status = prepare(&r, hooks, error);
    eplb_worker *workers = NULL;
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
    if (status == EPLB_OK && job->options->refiner != NULL) {
        status = refine_layers(&workers[0], hooks, error);
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
