/* SPDX-License-Identifier: MIT */
/* One layer of a plan. */
#include <string.h>

#include "planner/worker.h"

#include "model/placement.h"
#include "planner/refine.h"
#include "planner/solve.h"

/* Remembers the first layer whose rules do not fit, whichever thread has it. */
static void note_failure(eplb_run *r, int layer)
{
    int first = atomic_load(&r->failed);
    while ((first < 0 || layer < first) &&
           !atomic_compare_exchange_weak(&r->failed, &first, layer)) {
    }
}

/* Its loads are zeros: all experts are alike. */
static void pack_by_rules(eplb_worker *w, int32_t layer)
{
    eplb_layer_counts(&w->layer);
    if (eplb_layer_pack(&w->layer)) {
        eplb_worker_write(w, eplb_placement_row_of(w->run->job->placement, layer));
    } else {
        note_failure(w->run, layer);
    }
}

/* The same with groups kept on nodes. */
static void spread_groups(eplb_worker *w, int32_t layer)
{
    double bound;
    (void)eplb_hierarchy_solve(&w->hierarchy, false, 1, 1.0, &bound);
    eplb_worker_write(w, eplb_placement_row_of(w->run->job->placement, layer));
}

/* A layer without load keeps its placement or is spread evenly; it is not scored. */
static void place_idle_layer(eplb_worker *w, int32_t layer)
{
    const eplb_run *r = w->run;
    if (eplb_worker_can_keep(w, layer)) {
        eplb_worker_keep(r, layer);
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
static eplb_stop solve_reference(eplb_worker *w, double total, double *bound)
{
    const eplb_plan_job *job = w->run->job;
    const double *sums = w->layer.load;
    int32_t nodes = job->options->groups > 1 ? eplb_cluster_nodes(job->cluster) : 1;
    if (w->run->is_joint) {
        *bound = eplb_joint_bound(&w->joint, NULL);
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

static eplb_stop solve_alone(eplb_worker *w, int32_t level, double total, double *bound)
{
    eplb_effort effort = eplb_effort_of(level, w->run->shape.slots);
    eplb_stop stop = eplb_layer_solve(&w->layer, &effort, bound);
    *bound = *bound / total * (double)w->run->shape.gpus;
    return stop;
}

/* `total` is that of the layer's summed loads. */
static eplb_stop solve(eplb_worker *w, double total, double *bound)
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
static void choose(eplb_worker *w, int32_t index, int32_t *row)
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
            eplb_worker_write(w, row);
        }
        choices[i].imbalance = eplb_worker_score(w, job->cluster, row, index);
        choices[i].cross_node = eplb_traffic_share(&w->traffic);
        double price = choices[i].imbalance + job->options->node_cost * choices[i].cross_node;
        if (i == 0 || price < least) {
            least = price;
            memcpy(w->layer.best, w->layer.slot_expert, slots * sizeof(*w->layer.best));
        }
    }
    memcpy(w->layer.slot_expert, w->layer.best, slots * sizeof(*w->layer.best));
    eplb_layer_index(&w->layer);
    eplb_worker_write(w, row);
}

/* What a row costs, given its imbalance: with the price of its traffic where there is one. */
static double cost_of(eplb_worker *w, const int32_t *row, double imbalance)
{
    double price = w->run->job->options->node_cost;
    if (!(price > 0.0)) {
        return imbalance;
    }
    eplb_worker_take_row(w, row);
    return imbalance + price * eplb_traffic_share(&w->traffic);
}

/* The current row stays where a plan is no better, but for rounding or what the effort tolerates:
 * copies for less would be copies for nothing. */
static void compare_with_current(eplb_worker *w, int32_t index, eplb_plan_layer *result)
{
    const eplb_run *r = w->run;
    const eplb_plan_job *job = r->job;
    result->imbalance_before =
        eplb_worker_score(w, job->current->cluster, eplb_placement_row(job->current, index), index);
    if (job->options->algorithm == EPLB_ALGORITHM_EPLB || !eplb_worker_can_keep(w, index)) {
        return;
    }
    if (result->imbalance_before < result->imbalance_searched) {
        result->imbalance_searched = result->imbalance_before;
    }
    double tolerance = eplb_effort_of(job->options->effort, r->shape.slots).tolerance;
    double before = cost_of(w, eplb_placement_row(job->current, index), result->imbalance_before);
    double after = cost_of(w, eplb_placement_row(job->placement, index), result->imbalance_after);
    /* No bound is known of an imbalance with the price of traffic. */
    double least = job->options->node_cost > 0.0 ? after : result->lower_bound;
    if (before <= after * (1.0 + EPLB_ROUNDING) || before <= least * (1.0 + tolerance)) {
        eplb_worker_keep(r, index);
        result->imbalance_after = result->imbalance_before;
        result->imbalance_searched = result->imbalance_before;
    }
}

/* Tries whether there is a way to keep the rules with the layer's loads. */
static bool fits_rules(eplb_worker *w)
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
static bool take_loads(eplb_worker *w, int32_t index, double *total)
{
    const eplb_run *r = w->run;
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

void eplb_worker_correct_stop(eplb_plan_layer *result)
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

/* Rounding must not lift the bound above what was found. */
static void set_bound(eplb_plan_layer *result, double bound)
{
    result->lower_bound = bound < result->imbalance_after ? bound : result->imbalance_after;
    result->lower_bound = result->lower_bound > 1.0 ? result->lower_bound : 1.0;
}

/* What is left to do once the new placement of a layer is final. */
static void settle(eplb_worker *w, int32_t index, eplb_plan_layer *result)
{
    if (w->run->job->current != NULL) {
        compare_with_current(w, index, result);
    }
    eplb_worker_correct_stop(result);
}

void eplb_worker_plan(eplb_worker *w, int32_t index)
{
    eplb_run *r = w->run;
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
    eplb_worker_write(w, row);
    if (job->choices != NULL) {
        choose(w, index, row);
    }
    result->moves = w->layer.moves;
    result->imbalance_after = eplb_worker_score(w, job->cluster, row, index);
    set_bound(result, bound);
    result->imbalance_searched = result->imbalance_after;
    result->bound_searched = result->lower_bound;
    if (job->options->refiner == NULL) {
        settle(w, index, result);
    }
}

eplb_status eplb_worker_refine(eplb_worker *w, eplb_refining *refining, int32_t index,
                               eplb_error *error)
{
    eplb_run *r = w->run;
    eplb_plan_layer *result = &r->job->layers[index];
    if (!result->scored) {
        return EPLB_OK;
    }
    double total;
    (void)take_loads(w, index, &total);
    if (r->shape.rules != NULL) {
        eplb_rules_pin(&r->rules, &w->layer, index);
    }
    bool optimal = result->imbalance_after <= result->lower_bound * (1.0 + EPLB_ROUNDING);
    if (!optimal && !atomic_load(&r->cancelled)) {
        double bound = result->lower_bound;
        eplb_status status = eplb_refine_layer(refining, w, index, total, &bound, error);
        if (status != EPLB_OK) {
            return status;
        }
        set_bound(result, bound);
    }
    if (!optimal && atomic_load(&r->cancelled)) {
        result->stop = EPLB_STOP_CANCELLED;
    }
    settle(w, index, result);
    return EPLB_OK;
}
