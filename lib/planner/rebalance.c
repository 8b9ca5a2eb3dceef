/* SPDX-License-Identifier: MIT */
#include "planner/rebalance.h"

#include <string.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/plan.h"
#include "planner/threads.h"

void eplb_rebalance_options_init(eplb_rebalance_options *options)
{
    if (options != NULL) {
        *options = (eplb_rebalance_options){.struct_size = sizeof(*options),
                                            .target_imbalance = -1.0,
                                            .max_copies = -1,
                                            .max_copies_per_layer = -1,
                                            .max_copies_per_gpu = -1,
                                            .copy_price = EPLB_COPY_PRICE,
                                            .tolerance = 0.008};
    }
}

static bool is_amount(double value)
{
    return value >= 0.0 && value <= 1e9;
}

static eplb_status check_options(const eplb_rebalance_options *options, eplb_error *error)
{
    const struct {
        const char *name;
        double value;
        bool good;
    } rows[] = {
        {"beam", options->beam, options->beam >= 0 && options->beam <= 256},
        {"target_imbalance", options->target_imbalance,
         options->target_imbalance == -1.0 ||
             (options->target_imbalance >= 1.0 && options->target_imbalance <= 1e9)},
        {"max_copies", (double)options->max_copies, options->max_copies >= -1},
        {"max_copies_per_layer", options->max_copies_per_layer,
         options->max_copies_per_layer >= -1},
        {"max_copies_per_gpu", options->max_copies_per_gpu, options->max_copies_per_gpu >= -1},
        {"copy_price", options->copy_price, is_amount(options->copy_price)},
        {"min_gain", options->min_gain, is_amount(options->min_gain)},
        {"tolerance", options->tolerance, is_amount(options->tolerance)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].good) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "rebalance: %s %g out of range",
                                  rows[i].name, rows[i].value);
        }
    }
    const eplb_fewest_finder *fewest = options->fewest;
    return fewest == NULL || (fewest->struct_size >= sizeof(*fewest) && fewest->find != NULL)
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                "rebalance: a finder without struct_size or function");
}

static eplb_status check_planning(const eplb_plan_options *planning, eplb_error *error)
{
    const char *what = planning->algorithm != EPLB_ALGORITHM_SEARCH ? "algorithm eplb"
                       : planning->groups > 1                       ? "groups"
                       : planning->spread_nodes != 0                ? "spread_nodes"
                       : planning->node_cost >= 0.0                 ? "a node_cost"
                                                                    : NULL;
    return what == NULL
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                "rebalance: not with %s: it knows the balance of GPUs only", what);
}

static eplb_status check_current(const eplb_placement *current, const eplb_load *load,
                                 const eplb_cluster *cluster, eplb_error *error)
{
    if (load == NULL || cluster == NULL || current == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "rebalance: no load, no cluster or no current placement");
    }
    if (current->layers != eplb_load_layers(load) || current->experts != eplb_load_experts(load) ||
        current->cluster->gpus != cluster->gpus) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "rebalance: current placement of %d layers x %d experts on %d GPUs, "
                              "expected %d x %d on %d",
                              current->layers, current->experts, current->cluster->gpus,
                              eplb_load_layers(load), eplb_load_experts(load), cluster->gpus);
    }
    if (current->open != NULL) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "rebalance: the current placement's layers have different slots");
    }
    return EPLB_OK;
}

void eplb_rebalance_report(eplb_rebalance_job *job, int done)
{
    const eplb_plan_options *planning = job->planning;
    if (planning->progress != NULL &&
        planning->progress(planning->progress_context, done, eplb_load_layers(job->load)) != 0) {
        atomic_store(&job->cancelled, true);
    }
}

static void *work(void *argument)
{
    eplb_rebalance_worker *w = argument;
    eplb_rebalance_job *job = w->job;
    int layers = eplb_load_layers(job->load);
    for (;;) {
        int layer = atomic_fetch_add(&job->next, 1);
        if (layer >= layers) {
            return NULL;
        }
        if (!job->is_again) {
            eplb_rebalance_search(w, layer);
        } else if (job->traces[layer].is_open) {
            eplb_rebalance_search_again(w, layer);
        }
        int done = atomic_fetch_add(&job->done, 1) + 1;
        if (w->calls_progress) {
            bool is_second = job->quota != NULL || job->is_again; /* all were done once */
            eplb_rebalance_report(job, done < layers && !is_second ? done : layers - 1);
        }
    }
}

static void run_workers(eplb_rebalance_worker *workers, int32_t count)
{
    atomic_store(&workers[0].job->next, 0);
    atomic_store(&workers[0].job->done, 0);
    workers[0].calls_progress = true;
    eplb_threads_run(work, workers, sizeof(*workers), count);
}

int64_t eplb_rebalance_copies(const eplb_rebalance_job *job)
{
    int64_t copies = 0;
    for (int32_t l = 0; l < eplb_load_layers(job->load); l++) {
        copies += job->traces[l].copies;
    }
    return copies;
}

/* Searches all layers; once more, with what each may copy, where all together copy too much. */
static eplb_status search_all(eplb_rebalance_job *job, eplb_rebalance_worker *workers,
                              int32_t count, eplb_error *error)
{
    run_workers(workers, count);
    if (job->options->max_copies < 0 || eplb_rebalance_copies(job) <= job->options->max_copies) {
        return EPLB_OK;
    }
    int32_t *quota = eplb_alloc(&job->hooks, (size_t)eplb_load_layers(job->load), sizeof(*quota));
    if (quota == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_rebalance_share(job, quota, error);
    if (status == EPLB_OK) {
        job->quota = quota;
        run_workers(workers, count);
        job->quota = NULL;
    }
    eplb_free(&job->hooks, quota);
    return status;
}

/* Whether there are layers that are open; for these the plan from nothing is renamed anew. */
static eplb_status prepare_open(eplb_rebalance_job *job, bool *is_any, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    *is_any = false;
    for (int32_t l = 0; l < eplb_load_layers(job->load) && status == EPLB_OK; l++) {
        if (job->traces[l].is_open) {
            *is_any = true;
            status = eplb_rebalance_rename(job, l, job->traces[l].row, error);
        }
    }
    return status;
}

/* Goes on as later calls would: so long as that makes the imbalance of an open layer smaller. */
static eplb_status search_again(eplb_rebalance_job *job, eplb_rebalance_worker *workers,
                                int32_t count, eplb_error *error)
{
    bool is_any;
    eplb_status status = prepare_open(job, &is_any, error);
    job->is_again = true;
    while (status == EPLB_OK && is_any) {
        run_workers(workers, count);
        status = prepare_open(job, &is_any, error);
    }
    return status;
}

static eplb_status run(eplb_rebalance_job *job, eplb_error *error)
{
    int32_t layers = eplb_load_layers(job->load);
    int32_t threads = job->planning->threads < layers ? job->planning->threads : layers;
    eplb_rebalance_worker *workers =
        eplb_alloc_zeroed(&job->hooks, (size_t)threads, sizeof(*workers));
    eplb_status status = workers != NULL ? EPLB_OK : eplb_out_of_memory(error);
    int32_t made = 0;
    while (made < threads && status == EPLB_OK) {
        status = eplb_rebalance_worker_init(&workers[made++], job, error);
    }
    for (int32_t l = 0; l < layers && status == EPLB_OK; l++) {
        status = eplb_rebalance_rename(job, l, NULL, error);
    }
    if (status == EPLB_OK) {
        status = search_all(job, workers, threads, error);
    }
    if (status == EPLB_OK) {
        status = search_again(job, workers, threads, error);
    }
    if (status == EPLB_OK && job->options->fewest != NULL && job->options->target_imbalance > 0.0) {
        status = eplb_rebalance_find_fewest(&workers[0], error);
    }
    for (int32_t i = 0; i < made; i++) {
        eplb_rebalance_worker_free(&workers[i]);
    }
    eplb_free(&job->hooks, workers);
    return status;
}

static eplb_status allocate_traces(eplb_rebalance_job *job, eplb_error *error)
{
    size_t layers = (size_t)eplb_load_layers(job->load);
    size_t slots = (size_t)job->shape.slots;
    job->traces = eplb_alloc_zeroed(&job->hooks, layers, sizeof(*job->traces));
    if (job->traces == NULL) {
        return eplb_out_of_memory(error);
    }
    for (size_t l = 0; l < layers; l++) {
        eplb_rebalance_trace *trace = &job->traces[l];
        const eplb_array arrays[] = {
            EPLB_ARRAY(trace->point, EPLB_CURVE_POINTS),
            EPLB_ARRAY(trace->row, slots),
            EPLB_ARRAY(trace->fresh, slots),
        };
        eplb_status status =
            eplb_alloc_arrays(&job->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
        if (status != EPLB_OK) {
            return status;
        }
        trace->result.struct_size = sizeof(trace->result);
        trace->result.verdict = -1;
        trace->bound = job->plan->layers[l].lower_bound;
    }
    return EPLB_OK;
}

static void free_job(eplb_rebalance_job *job)
{
    for (int32_t l = 0; job->traces != NULL && l < eplb_load_layers(job->load); l++) {
        eplb_free(&job->hooks, job->traces[l].point);
        eplb_free(&job->hooks, job->traces[l].row);
        eplb_free(&job->hooks, job->traces[l].fresh);
    }
    eplb_free(&job->hooks, job->traces);
    eplb_rules_free(&job->rules, &job->hooks);
    eplb_shape_free(&job->shape, &job->hooks);
}

static eplb_status rebalance(eplb_rebalance_job *job, eplb_error *error)
{
    int32_t experts = eplb_load_experts(job->load);
    int32_t layers = eplb_load_layers(job->load);
    eplb_status status = eplb_shape_init(&job->shape, &job->hooks, job->cluster, experts, error);
    if (status == EPLB_OK) {
        status = eplb_rules_init(&job->rules, &job->hooks, &job->shape, job->cluster, layers,
                                 job->planning, error);
    }
    if (status == EPLB_OK) {
        job->shape.rules = eplb_rules_bind(&job->rules, &job->shape) ? &job->rules : NULL;
        status = allocate_traces(job, error);
    }
    if (status == EPLB_OK) {
        status = run(job, error);
    }
    if (status == EPLB_OK) {
        status = eplb_rebalance_finish(job, error);
    }
    if (status == EPLB_OK) {
        eplb_rebalance_report(job, layers);
    }
    free_job(job);
    return status;
}

/* While the plan from nothing is made. */
typedef struct fresh_progress {
    const eplb_plan_options *planning;
    bool cancelled;
} fresh_progress;

/* No layer is done yet. */
static int report_fresh(void *context, int32_t done, int32_t layers)
{
    fresh_progress *self = context;
    (void)done;
    self->cancelled = self->cancelled ||
                      self->planning->progress(self->planning->progress_context, 0, layers) != 0;
    return self->cancelled;
}

static eplb_status plan_fresh(eplb_plan **out, const eplb_hooks *hooks, const eplb_load *load,
                              const eplb_cluster *cluster, fresh_progress *progress,
                              eplb_error *error)
{
    eplb_plan_options options = *progress->planning;
    options.progress = options.progress != NULL ? report_fresh : NULL;
    options.progress_context = progress;
    return eplb_plan_create(out, hooks, load, cluster, NULL, &options, error);
}

eplb_status eplb_rebalance_create(eplb_plan **out, const eplb_hooks *hooks, const eplb_load *load,
                                  const eplb_cluster *cluster, const eplb_placement *current,
                                  const eplb_plan_options *planning,
                                  const eplb_rebalance_options *rebalancing, eplb_error *error)
{
    if (out == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "rebalance: no output");
    }
    *out = NULL;
    eplb_plan_options complete;
    eplb_rebalance_options options;
    eplb_rebalance_options_init(&options);
    if (rebalancing != NULL && !eplb_struct_in(&options, sizeof(options), rebalancing)) {
        return eplb_error_set(
            error, EPLB_ERROR_ARGUMENT,
            "rebalance: options without struct_size: see eplb_rebalance_options_init");
    }
    eplb_status status = check_current(current, load, cluster, error);
    if (status == EPLB_OK) {
        status = eplb_plan_check(load, cluster, NULL, planning, &complete, error);
    }
    if (status == EPLB_OK) {
        status = eplb_plan_find_draft_layers(load, current, &complete, error);
    }
    if (status == EPLB_OK) {
        status = check_planning(&complete, error);
    }
    if (status == EPLB_OK) {
        status = check_options(&options, error);
    }
    eplb_plan *plan = NULL;
    fresh_progress progress = {.planning = &complete};
    if (status == EPLB_OK) {
        status = plan_fresh(&plan, hooks, load, cluster, &progress, error);
    }
    if (status == EPLB_OK) {
        eplb_rebalance_job job = {.hooks = plan->hooks,
                                  .load = load,
                                  .cluster = cluster,
                                  .current = current,
                                  .planning = &complete,
                                  .options = &options,
                                  .plan = plan,
                                  .cancelled = progress.cancelled};
        status = rebalance(&job, error);
    }
    if (status != EPLB_OK) {
        eplb_plan_destroy(&plan);
        return status;
    }
    *out = plan;
    return EPLB_OK;
}

eplb_status eplb_plan_get_rebalance(const eplb_plan *plan, eplb_rebalance_info *info,
                                    eplb_error *error)
{
    if (plan == NULL || plan->rebalance_layers == NULL || info == NULL ||
        info->struct_size < sizeof(info->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "rebalance info: no plan of a rebalance or no output");
    }
    eplb_struct_out(info, &plan->rebalance, sizeof(plan->rebalance));
    return EPLB_OK;
}

eplb_status eplb_plan_get_rebalance_layer(const eplb_plan *plan, int32_t layer,
                                          eplb_rebalance_layer *result, eplb_error *error)
{
    if (plan == NULL || plan->rebalance_layers == NULL || result == NULL ||
        result->struct_size < sizeof(result->struct_size) || layer < 0 ||
        layer >= plan->info.layers) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "rebalance layer: no plan of a rebalance, no output or no layer %d",
                              layer);
    }
    eplb_struct_out(result, &plan->rebalance_layers[layer], sizeof(plan->rebalance_layers[layer]));
    return EPLB_OK;
}
