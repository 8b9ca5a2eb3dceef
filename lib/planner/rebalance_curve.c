/* SPDX-License-Identifier: MIT */
/* Imbalance against copies, of each layer and of all; limits shared out by it. */
#include "planner/rebalance.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/range.h"
#include "planner/knapsack.h"
#include "planner/plan.h"

eplb_status eplb_rebalance_share(const eplb_rebalance_job *job, int32_t *quota, eplb_error *error)
{
    int32_t layers = eplb_load_layers(job->load);
    size_t most = (size_t)layers * (EPLB_CURVE_POINTS + 1);
    eplb_choice *choices = eplb_alloc(&job->hooks, most, sizeof(*choices));
    int32_t *first = eplb_alloc(&job->hooks, (size_t)layers + 1, sizeof(*first));
    int32_t *chosen = eplb_alloc(&job->hooks, (size_t)layers, sizeof(*chosen));
    bool has_memory = choices != NULL && first != NULL && chosen != NULL;
    eplb_status status = has_memory ? EPLB_OK : eplb_out_of_memory(error);
    int64_t left = job->options->max_copies;
    int32_t count = 0;
    for (int32_t l = 0; l < layers && status == EPLB_OK; l++) {
        const eplb_rebalance_trace *trace = &job->traces[l];
        int64_t required = trace->result.copies_required;
        first[l] = count;
        left -= required;
        choices[count++] = (eplb_choice){.slots = 0, .cost = trace->result.required_imbalance};
        for (int32_t i = 0; i < trace->points; i++) {
            int64_t more = trace->point[i].copies - required; /* free moves may have saved some */
            choices[count++] =
                (eplb_choice){.slots = more > 0 ? more : 0, .cost = trace->point[i].imbalance};
        }
    }
    if (status == EPLB_OK) {
        first[layers] = count;
        status = eplb_knapsack_solve(&job->hooks, choices, first, layers, left > 0 ? left : 0,
                                     chosen, error);
    }
    for (int32_t l = 0; l < layers && status == EPLB_OK; l++) {
        quota[l] =
            (int32_t)(job->traces[l].result.copies_required + choices[first[l] + chosen[l]].slots);
    }
    eplb_free(&job->hooks, choices);
    eplb_free(&job->hooks, first);
    eplb_free(&job->hooks, chosen);
    return status;
}

/* A step of the whole curve: from one corner of a layer's convex curve to the next. */
typedef struct step {
    int32_t layer;
    int64_t copies;
    double fall;
} step;

static int compare_steps(const void *a, const void *b)
{
    const step *x = a;
    const step *y = b;
    double left = x->fall * (double)y->copies;
    double right = y->fall * (double)x->copies;
    if (left != right) {
        return left > right ? -1 : 1;
    }
    if (x->layer != y->layer) {
        return x->layer < y->layer ? -1 : 1;
    }
    return x->copies < y->copies ? -1 : x->copies > y->copies;
}

/* The steps of one layer's convex curve, the steepest first. */
static int32_t add_steps(const eplb_curve_point *points, int32_t count, int32_t layer, step *steps)
{
    int32_t added = 0;
    for (int32_t i = 0; i + 1 < count;) {
        int32_t best = i + 1;
        for (int32_t j = i + 2; j < count; j++) {
            double fall = points[i].imbalance - points[j].imbalance;
            double best_fall = points[i].imbalance - points[best].imbalance;
            if (fall * (double)(points[best].copies - points[i].copies) >=
                best_fall * (double)(points[j].copies - points[i].copies)) {
                best = j;
            }
        }
        steps[added++] = (step){.layer = layer,
                                .copies = points[best].copies - points[i].copies,
                                .fall = points[i].imbalance - points[best].imbalance};
        i = best;
    }
    return added;
}

/* Points of each layer one after the other, then those of all. */
static void join(eplb_plan *plan, const eplb_rebalance_trace *traces, step *steps)
{
    int32_t layers = plan->info.layers;
    int32_t count = 0;
    int32_t step_count = 0;
    int64_t copies = 0;
    double sum = 0.0;
    for (int32_t l = 0; l < layers; l++) {
        const eplb_rebalance_trace *trace = &traces[l];
        plan->curve_first[l] = count;
        for (int32_t i = 0; i < trace->points; i++) {
            plan->curve[count++] = trace->point[i];
        }
        /* Free moves may have made more of the required copies. */
        copies += trace->points > 0 ? trace->point[0].copies : trace->result.copies_required;
        sum += trace->points > 0 ? trace->point[0].imbalance : 0.0;
        step_count += add_steps(trace->point, trace->points, l, steps + step_count);
    }
    qsort(steps, (size_t)step_count, sizeof(*steps), compare_steps);
    plan->curve_first[layers] = count;
    double scored = plan->info.scored_layers > 0 ? (double)plan->info.scored_layers : 1.0;
    if (plan->info.scored_layers > 0) {
        plan->curve[count++] = (eplb_curve_point){.copies = copies, .imbalance = sum / scored};
    }
    for (int32_t i = 0; i < step_count; i++) {
        copies += steps[i].copies;
        sum -= steps[i].fall;
        plan->curve[count++] = (eplb_curve_point){.copies = copies, .imbalance = sum / scored};
    }
    plan->curve_first[layers + 1] = count;
}

eplb_status eplb_rebalance_keep_curves(eplb_plan *plan, const eplb_rebalance_trace *traces,
                                       eplb_error *error)
{
    size_t points = 1;
    for (int32_t l = 0; l < plan->info.layers; l++) {
        points += 2 * (size_t)traces[l].points;
    }
    step *steps = eplb_alloc(&plan->hooks, points, sizeof(*steps));
    plan->curve = eplb_alloc(&plan->hooks, points, sizeof(*plan->curve));
    plan->curve_first =
        eplb_alloc(&plan->hooks, (size_t)plan->info.layers + 2, sizeof(*plan->curve_first));
    if (steps == NULL || plan->curve == NULL || plan->curve_first == NULL) {
        eplb_free(&plan->hooks, steps);
        return eplb_out_of_memory(error);
    }
    join(plan, traces, steps);
    eplb_free(&plan->hooks, steps);
    return EPLB_OK;
}

eplb_status eplb_plan_get_curve(const eplb_plan *plan, int32_t layer, eplb_curve_point *points,
                                int32_t capacity, int32_t *count, eplb_error *error)
{
    if (plan == NULL || plan->curve == NULL || layer < -1 || layer >= plan->info.layers ||
        count == NULL || capacity < 0 || (points == NULL && capacity > 0)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "curve: no plan of a rebalance, no output or no layer %d", layer);
    }
    int32_t which = layer < 0 ? plan->info.layers : layer;
    int32_t first = plan->curve_first[which];
    *count = plan->curve_first[which + 1] - first;
    for (int32_t i = 0; i < *count && i < capacity; i++) {
        points[i] = plan->curve[first + i];
    }
    return EPLB_OK;
}

/* What is left to gain at a knee. */
#define LEFT_PART 0.1
#define LEFT_LEAST 0.005

int32_t eplb_curve_knee(const eplb_curve_point *points, int32_t count)
{
    if (points == NULL || count < 1) {
        return -1;
    }
    double last = points[count - 1].imbalance;
    double all = points[0].imbalance - last;
    for (int32_t i = 0; i < count; i++) {
        double left = points[i].imbalance - last;
        if (left <= LEFT_PART * all || left < LEFT_LEAST) {
            return i;
        }
    }
    return count - 1;
}
