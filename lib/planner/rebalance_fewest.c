/* SPDX-License-Identifier: MIT */
/* Fewer copies by a finder, after the search: what it is asked, and what becomes of its answer. */
#include "planner/rebalance.h"

#include <string.h>

#include "model/cluster.h"
#include "model/placement.h"
#include "planner/plan.h"
#include "planner/refine.h"

/* Planning a result again copies nothing: a finder that ends nowhere in particular is asked again
 * from its own result, so often at most, until it finds nothing more. */
#define REPEATS 8

/* A layer in question. */
typedef struct inquiry {
    eplb_rebalance_worker *w;
    eplb_rebalance_trace *trace;
    int32_t layer;
    bool impossible;         /* no placement reaches the target */
    double least_imbalance;  /* no placement has a smaller one */
    int64_t copies_at_least; /* of those that reach the target */
} inquiry;

static int asks_to_stop(void *context)
{
    eplb_rebalance_job *job = context;
    if (!atomic_load(&job->cancelled)) {
        eplb_rebalance_report(job, eplb_load_layers(job->load) - 1);
    }
    return atomic_load(&job->cancelled) ? 1 : 0;
}

/* Whether the row of a finder has the live GPUs' slots. */
static bool has_shape(const eplb_rebalance_job *job, const eplb_placement *found)
{
    const eplb_shape *shape = &job->shape;
    bool has = found->layers == 1 && found->open == NULL && found->experts == shape->experts &&
               found->cluster->gpus == job->cluster->gpus;
    for (int32_t g = 0; g < shape->gpus && has; g++) {
        has = found->cluster->gpu[shape->cluster_gpu[g]].slots ==
              shape->first_slot[g + 1] - shape->first_slot[g];
    }
    return has;
}

static void read_row(const eplb_shape *shape, const eplb_placement *found, int32_t *row)
{
    for (int32_t g = 0; g < shape->gpus; g++) {
        const int32_t *from =
            eplb_placement_row(found, 0) + found->cluster->first_slot[shape->cluster_gpu[g]];
        size_t count = (size_t)(shape->first_slot[g + 1] - shape->first_slot[g]);
        memcpy(row + shape->first_slot[g], from, count * sizeof(*row));
    }
}

static bool keeps_limits(const inquiry *q, const int32_t *row, int32_t copies)
{
    const eplb_rebalance_job *job = q->w->job;
    const eplb_rebalance_options *options = job->options;
    int64_t all = eplb_rebalance_copies(job) - q->trace->copies + copies;
    bool fits = (options->max_copies_per_layer < 0 || copies <= options->max_copies_per_layer) &&
                (options->max_copies < 0 || all <= options->max_copies);
    /* Copies that are required may be more than the limits. */
    return (fits || copies <= q->trace->copies) && eplb_rebalance_fits_gpus(q->w, row);
}

/* Where both reach the target copies count, else the imbalance before them. */
static bool is_better(const inquiry *q, double value, int32_t copies)
{
    const eplb_rebalance_job *job = q->w->job;
    double least = q->trace->value;
    bool reaches = eplb_rebalance_reaches(job, value);
    bool reached = eplb_rebalance_reaches(job, least);
    if (reaches || reached) {
        return reaches && (!reached || copies < q->trace->copies);
    }
    return value < least * (1.0 - EPLB_ROUNDING) ||
           (value <= least * (1.0 + EPLB_ROUNDING) && copies < q->trace->copies);
}

/* Takes a placement where it is better; false: it is not. */
static bool judge(inquiry *q, const eplb_placement *found)
{
    eplb_rebalance_worker *w = q->w;
    eplb_rebalance_trace *trace = q->trace;
    int32_t *row = w->start;
    if (!has_shape(w->job, found)) {
        return false;
    }
    read_row(&w->job->shape, found, row);
    if (!eplb_refine_is_valid(&w->layer, row)) {
        return false;
    }
    int32_t copies = eplb_trail_copies(&w->trail, row);
    double value = eplb_rebalance_value(w, row);
    if (!is_better(q, value, copies) || !keeps_limits(q, row, copies)) {
        return false;
    }
    memcpy(trace->row, row, (size_t)w->job->shape.slots * sizeof(*row));
    eplb_rebalance_settle(w, trace->row);
    trace->searched = trace->searched > 0.0 ? trace->searched : trace->value;
    trace->value = value;
    trace->copies = copies;
    trace->result.from_fresh = 0;
    if (copies < trace->result.copies_required) {
        trace->result.copies_required = copies;
    }
    return true;
}

/* Fewest copies are counted from the placement in force only. */
static void learn(inquiry *q, const eplb_fewest_result *answer, bool is_in_force)
{
    eplb_plan_layer *layer = &q->w->job->plan->layers[q->layer];
    q->impossible |= answer->verdict == EPLB_FEWEST_IMPOSSIBLE;
    if (is_in_force && !q->impossible) {
        q->copies_at_least = answer->copies_at_least;
    }
    if (answer->imbalance_at_least > q->least_imbalance) {
        q->least_imbalance = answer->imbalance_at_least;
    }
    if (answer->imbalance_at_least > layer->lower_bound) {
        layer->lower_bound = answer->imbalance_at_least;
    }
    layer->refine_nodes += answer->nodes > 0 ? answer->nodes : 0;
}

/* Asks once, from the placement in force or from the one chosen. */
static eplb_status ask(inquiry *q, bool is_in_force, bool *is_new, eplb_error *error)
{
    eplb_rebalance_job *job = q->w->job;
    const eplb_fewest_finder *finder = job->options->fewest;
    eplb_fewest_task task;
    eplb_fewest_task_init(&task);
    eplb_rebalance_write_row(job, q->layer);
    task.objective = job->planning->objective;
    task.target = job->options->target_imbalance;
    task.current = is_in_force ? job->current : job->plan->placement;
    task.current_row = q->layer;
    task.layer = q->layer;
    task.load = job->load;
    task.cluster = job->cluster;
    task.start = job->plan->placement;
    task.start_row = q->layer;
    task.stop = asks_to_stop;
    task.stop_context = job;
    eplb_placement *found = NULL;
    eplb_fewest_result answer = {.struct_size = sizeof(answer)};
    eplb_status status = finder->find(finder->context, &found, &task, &answer, error);
    if (status != EPLB_OK) {
        return status;
    }
    learn(q, &answer, is_in_force);
    (void)eplb_rebalance_mend(q->w, q->layer); /* what is at home, and the pins */
    *is_new = found != NULL && judge(q, found);
    eplb_placement_destroy(&found);
    return EPLB_OK;
}

/* Nothing is left to find: a later call would not find it either. */
static bool is_settled(const inquiry *q)
{
    return eplb_rebalance_reaches(q->w->job, q->trace->value) ||
           q->trace->value <= q->least_imbalance * (1.0 + EPLB_ROUNDING);
}

static void conclude(const inquiry *q)
{
    eplb_rebalance_layer *result = &q->trace->result;
    bool reached = eplb_rebalance_reaches(q->w->job, q->trace->value);
    bool is_fewest = !q->impossible && q->trace->copies <= q->copies_at_least;
    result->target_reached = reached;
    result->copies_at_least = q->impossible ? 0 : q->copies_at_least;
    result->verdict = reached && is_fewest ? EPLB_FEWEST_PROVEN
                      : reached            ? EPLB_FEWEST_REACHED
                      : q->impossible      ? EPLB_FEWEST_IMPOSSIBLE
                                           : EPLB_FEWEST_NOT_REACHED;
}

static eplb_status find_layer(inquiry *q, eplb_error *error)
{
    eplb_rebalance_worker *w = q->w;
    bool is_new = false;
    eplb_status status = ask(q, true, &is_new, error);
    /* With a limit a later call may go on where it ended this one. */
    bool goes_on = eplb_rebalance_is_unlimited(w->job->options) && (is_new || q->trace->copies > 0);
    for (int i = 0; i < REPEATS && status == EPLB_OK && goes_on && !is_settled(q); i++) {
        if (is_new) {
            eplb_rebalance_search_on(w, q->layer);
        }
        status = ask(q, false, &is_new, error);
        goes_on = is_new;
    }
    if (status == EPLB_OK) {
        conclude(q);
    }
    return status;
}

eplb_status eplb_rebalance_find_fewest(eplb_rebalance_worker *w, eplb_error *error)
{
    eplb_rebalance_job *job = w->job;
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < eplb_load_layers(job->load) && status == EPLB_OK; l++) {
        if (!job->traces[l].scored || atomic_load(&job->cancelled)) {
            continue;
        }
        inquiry q = {.w = w, .trace = &job->traces[l], .layer = l};
        (void)eplb_rebalance_take(w, l);
        status = find_layer(&q, error);
    }
    return status;
}
