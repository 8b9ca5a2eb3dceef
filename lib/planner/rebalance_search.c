/* SPDX-License-Identifier: MIT */
/* One layer of a rebalance: its curve, and the placement chosen on it. */
#include <string.h>

#include "planner/rebalance.h"

#include "base/memory.h"

/* Planning a result again copies nothing: the search is repeated from its own result, so often at
 * most, until that is so. */
#define REPEATS 32

/* A curve is to be good everywhere, not only at its end: large excesses count more. */
#define CURVE_STEEPNESS 3.0f
/* A target is to be reached, whatever the way: few GPUs above it are better than many. To 1.01 on
 * real loads no charge takes 22 % more copies, twice as much 4 % more. */
#define TARGET_CHARGE 0.36f

/* States of a level by the plan's effort; in small layers more, since they cost little there. */
static const int32_t beams[] = {1, 1, 1, 1, 1, 2, 6, 16, 32};
#define SMALL_SLOTS 128

static int32_t beam_of(const eplb_rebalance_job *job)
{
    int32_t beam = beams[job->planning->effort - 1] + SMALL_SLOTS / job->shape.slots;
    return job->options->beam > 0 ? job->options->beam : beam;
}

eplb_status eplb_rebalance_worker_init(eplb_rebalance_worker *w, eplb_rebalance_job *job,
                                       eplb_error *error)
{
    const eplb_hooks *hooks = &job->hooks;
    const eplb_shape *shape = &job->shape;
    int32_t scenarios =
        job->planning->objective == EPLB_OBJECTIVE_SUM ? 1 : eplb_load_scenarios(job->load);
    w->job = job;
    eplb_status status = eplb_layer_init(&w->layer, hooks, shape, error);
    if (status == EPLB_OK) {
        status = eplb_joint_init(&w->joint, hooks, &w->layer, scenarios,
                                 (eplb_objective)job->planning->objective, error);
    }
    if (status == EPLB_OK) {
        status = eplb_trail_init(&w->trail, hooks, &w->layer, scenarios, beam_of(job), error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_array arrays[] = {
        EPLB_ARRAY(w->sums, (size_t)shape->experts),  EPLB_ARRAY(w->start, (size_t)shape->slots),
        EPLB_ARRAY(w->home, (size_t)shape->slots),    EPLB_ARRAY(w->counts, (size_t)shape->experts),
        EPLB_ARRAY(w->loads, (size_t)shape->experts), EPLB_ARRAY(w->heat, (size_t)shape->gpus),
    };
    return eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_rebalance_worker_free(eplb_rebalance_worker *w)
{
    const eplb_hooks *hooks = &w->job->hooks;
    void *arrays[] = {w->sums, w->start, w->home, w->counts, w->loads, w->heat};
    eplb_trail_free(&w->trail, hooks);
    eplb_joint_free(&w->joint, hooks);
    eplb_layer_free(&w->layer, hooks);
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
}

bool eplb_rebalance_take(eplb_rebalance_worker *w, int32_t layer)
{
    const eplb_rebalance_job *job = w->job;
    int32_t experts = job->shape.experts;
    bool has_load;
    if (job->planning->objective == EPLB_OBJECTIVE_SUM) {
        /* It is finite: the plan from nothing was made. */
        (void)eplb_load_sum_row(job->load, layer, w->sums, NULL, NULL);
        eplb_joint_begin(&w->joint);
        eplb_joint_add(&w->joint, w->sums, 1.0);
        has_load = eplb_joint_end(&w->joint);
    } else {
        has_load = eplb_joint_take(&w->joint, job->load, layer);
    }
    w->layer.load = w->joint.load;
    memset(w->loads, 0, (size_t)experts * sizeof(*w->loads));
    for (int32_t k = 0; k < w->joint.scenarios; k++) {
        for (int32_t e = 0; e < experts; e++) {
            w->loads[e] +=
                w->joint.weight[k] * w->joint.load[(size_t)k * (size_t)experts + (size_t)e];
        }
    }
    eplb_trail_begin(&w->trail, w->joint.scenarios, w->joint.load, w->joint.weight);
    w->trail.most_incoming = job->options->max_copies_per_gpu;
    return has_load;
}

/* Of the indexed layer: the mean GPU has 1. */
static double value_of(void *context)
{
    eplb_rebalance_worker *w = context;
    if (w->joint.scenarios == 1) {
        return eplb_layer_worst(&w->layer);
    }
    eplb_joint_index(&w->joint);
    return eplb_joint_measure(&w->joint);
}

double eplb_rebalance_value(eplb_rebalance_worker *w, const int32_t *row)
{
    memcpy(w->layer.slot_expert, row, (size_t)w->job->shape.slots * sizeof(*row));
    eplb_layer_index(&w->layer);
    return value_of(w);
}

/* What a search goes by, and the best that it has. */
typedef struct search {
    eplb_rebalance_worker *w;
    eplb_rebalance_trace *trace;
    bool is_first; /* its levels make the curve */
    double target; /* -1: none */
    double price;  /* of a copy */
    double enough; /* no further */
    int32_t most;  /* copies; -1: no limit */
    int32_t fresh; /* copies of the plan from nothing */
    int32_t copies;
    double value;
    bool is_dropped; /* it gained too little */
} search;

/* Copies are not counted where there is a target to reach. */
static bool is_better(const search *s, double value, int32_t copies)
{
    if (s->target > 0.0) {
        return s->value > s->target * (1.0 + EPLB_ROUNDING) &&
               value < s->value * (1.0 - EPLB_ROUNDING);
    }
    double cost = value + s->price * copies;
    double least = s->value + s->price * s->copies;
    return cost < least * (1.0 - EPLB_ROUNDING);
}

static void consider(search *s, double value, int32_t copies, const int32_t *row)
{
    if (is_better(s, value, copies)) {
        s->value = value;
        s->copies = copies;
        memcpy(s->trace->row, row, (size_t)s->w->job->shape.slots * sizeof(*row));
    }
}

static void add_point(eplb_rebalance_trace *trace, double value, int32_t copies)
{
    bool falls = trace->points == 0 ||
                 value < trace->point[trace->points - 1].imbalance * (1.0 - EPLB_ROUNDING);
    if (!falls) {
        return;
    }
    /* A level's best state may have fewer copies than those of the levels before: free moves. */
    while (trace->points > 0 && trace->point[trace->points - 1].copies >= copies) {
        trace->points--;
    }
    if (trace->points < EPLB_CURVE_POINTS) {
        trace->point[trace->points++] = (eplb_curve_point){.copies = copies, .imbalance = value};
    }
}

/* The plan from nothing may need fewer copies than all that was searched. */
static void start_curve(eplb_rebalance_trace *trace, double value, int32_t copies)
{
    int32_t gone = 0;
    if (trace->point[0].copies <= copies) {
        return;
    }
    while (gone < trace->points &&
           !(trace->point[gone].imbalance < value * (1.0 - EPLB_ROUNDING))) {
        gone++;
    }
    int32_t kept = trace->points - gone;
    kept -= kept == EPLB_CURVE_POINTS;
    memmove(trace->point + 1, trace->point + gone, (size_t)kept * sizeof(*trace->point));
    trace->point[0] = (eplb_curve_point){.copies = copies, .imbalance = value};
    trace->points = kept + 1;
}

static bool end_level(void *context, int32_t level, int32_t copies, double value,
                      const int32_t *slots)
{
    search *s = context;
    if (s->most >= 0 && level > s->most) {
        return false; /* the level with as many copies was empty */
    }
    if (s->is_first) {
        add_point(s->trace, value, copies);
    }
    consider(s, value, copies, slots);
    bool good = s->target > 0.0 ? s->value <= s->target * (1.0 + EPLB_ROUNDING)
                                : value <= s->enough * (1.0 + EPLB_ROUNDING);
    bool may_pay = s->target > 0.0 ||
                   s->trace->bound + s->price * (level + 1) < s->value + s->price * s->copies;
    bool is_last = (s->most >= 0 && level >= s->most) ||
                   level >= s->trace->result.copies_required + EPLB_CURVE_POINTS - 1 ||
                   atomic_load(&s->w->job->cancelled);
    return !good && may_pay && !is_last;
}

static void run(search *s, const int32_t *start)
{
    const eplb_trail_visitor visitor = {
        .value = value_of, .context = s->w, .level = end_level, .level_context = s};
    bool has_target = s->target > 0.0;
    const eplb_trail_measure measure = {.threshold = (float)(has_target ? s->target : s->enough),
                                        .steepness = has_target ? 0.0f : CURVE_STEEPNESS,
                                        .charge = has_target ? TARGET_CHARGE : 0.0f};
    eplb_trail_run(&s->w->trail, start, &measure, &visitor);
    s->trace->moves += s->w->trail.moves;
}

/* The result becomes the home of another search. */
static void make_home(eplb_rebalance_worker *w, const int32_t *row)
{
    const eplb_shape *shape = &w->job->shape;
    eplb_trail_clear_home(&w->trail);
    for (int32_t s = 0; s < shape->slots; s++) {
        eplb_trail_set_home(&w->trail, shape->slot_gpu[s], row[s]);
    }
    w->trail.moves = 0;
}

/* Searches on from the result, as a later call would, until there is nothing to copy. */
static void search_on(search *s)
{
    eplb_rebalance_worker *w = s->w;
    s->is_first = false;
    for (int i = 0; i < REPEATS; i++) {
        double before = s->value;
        eplb_rebalance_settle(w, s->trace->row); /* searches may depend on the order of slots */
        make_home(w, s->trace->row);
        memcpy(w->start, s->trace->row, (size_t)w->job->shape.slots * sizeof(*w->start));
        s->copies = 0;
        run(s, w->start);
        if (!(s->value < before)) {
            return;
        }
    }
}

static int32_t copies_from_home(eplb_rebalance_worker *w, int32_t layer, const int32_t *row)
{
    (void)eplb_rebalance_mend(w, layer);
    return eplb_trail_copies(&w->trail, row);
}

static void choose_fresh(search *s, eplb_rebalance_trace *trace, double value)
{
    int32_t slots = s->w->job->shape.slots;
    trace->result.from_fresh = 1;
    s->value = value;
    s->copies = s->fresh;
    memcpy(trace->row, trace->fresh, (size_t)slots * sizeof(*trace->row));
}

bool eplb_rebalance_fits_gpus(const eplb_rebalance_worker *w, const int32_t *row)
{
    const eplb_shape *shape = &w->job->shape;
    int32_t most = w->job->options->max_copies_per_gpu;
    for (int32_t g = 0; g < shape->gpus && most >= 0; g++) {
        int32_t incoming = 0;
        for (int32_t i = shape->first_slot[g]; i < shape->first_slot[g + 1]; i++) {
            incoming += !eplb_trail_is_home(&w->trail, g, row[i]);
        }
        if (incoming > most) {
            return false;
        }
    }
    return true;
}

/* Whether the plan from nothing keeps to the limits of copies. */
static bool may_take_fresh(const search *s)
{
    return eplb_rebalance_fits_gpus(s->w, s->trace->fresh) && (s->most < 0 || s->fresh <= s->most);
}

/* The plan from nothing may be the better road. */
static void compare_with_fresh(search *s)
{
    eplb_rebalance_trace *trace = s->trace;
    double value = trace->result.fresh_imbalance;
    if (may_take_fresh(s) && is_better(s, value, s->fresh) &&
        (s->target > 0.0 || value < s->value - s->w->job->options->tolerance)) {
        choose_fresh(s, trace, value);
    }
}

static search begin(eplb_rebalance_worker *w, int32_t layer)
{
    const eplb_rebalance_job *job = w->job;
    const eplb_rebalance_options *options = job->options;
    eplb_rebalance_trace *trace = &job->traces[layer];
    int32_t required = (int32_t)trace->result.copies_required;
    int32_t most = options->max_copies_per_layer;
    if (job->quota != NULL && (most < 0 || job->quota[layer] < most)) {
        most = job->quota[layer];
    }
    bool is_free = options->max_copies >= 0;
    return (search){.w = w,
                    .trace = trace,
                    .is_first = job->quota == NULL,
                    .target = options->target_imbalance,
                    .price = is_free ? 0.0 : options->copy_price,
                    .enough = trace->result.fresh_imbalance + options->tolerance,
                    .most = most >= 0 && most < required ? required : most,
                    .fresh = eplb_trail_copies(&w->trail, trace->fresh)};
}

bool eplb_rebalance_reaches(const eplb_rebalance_job *job, double value)
{
    return value <= job->options->target_imbalance * (1.0 + EPLB_ROUNDING);
}

static int32_t reaches(const eplb_rebalance_worker *w, double value)
{
    return w->job->options->target_imbalance > 0.0 ? eplb_rebalance_reaches(w->job, value) : -1;
}

/* Without load, or where the rules leave nothing of the current placement to begin with. */
static void take_without_search(eplb_rebalance_worker *w, eplb_rebalance_trace *trace)
{
    const int32_t *row = trace->is_mended ? w->start : trace->fresh;
    memcpy(trace->row, row, (size_t)w->job->shape.slots * sizeof(*row));
    eplb_rebalance_settle(w, trace->row);
    trace->copies = eplb_trail_copies(&w->trail, row);
    trace->result.copies_required = trace->copies;
    trace->result.from_fresh = !trace->is_mended;
    trace->result.target_reached = -1;
    if (trace->scored) {
        trace->value = trace->result.fresh_imbalance;
        trace->result.required_imbalance = trace->value;
        trace->result.target_reached = reaches(w, trace->value);
        add_point(trace, trace->value, trace->copies);
    }
}

/* With a limit, the next call may go on where it ended this one. */
bool eplb_rebalance_is_unlimited(const eplb_rebalance_options *options)
{
    return options->max_copies < 0 && options->max_copies_per_layer < 0 &&
           options->max_copies_per_gpu < 0;
}

/* Goes both roads from w->start, whose value and copies the search begins with. */
static void improve(search *s)
{
    eplb_rebalance_worker *w = s->w;
    eplb_rebalance_trace *trace = s->trace;
    const eplb_rebalance_options *options = w->job->options;
    double before = s->value;
    trace->result.from_fresh = 0;
    memcpy(trace->row, w->start, (size_t)w->job->shape.slots * sizeof(*w->start));
    run(s, w->start);
    compare_with_fresh(s);
    if (s->value > before - options->min_gain) {
        s->is_dropped = true;
        trace->result.from_fresh = 0;
        memcpy(trace->row, w->start, (size_t)w->job->shape.slots * sizeof(*w->start));
        s->value = before;
    } else if (eplb_rebalance_is_unlimited(options) && (s->copies > 0 || s->value < before)) {
        search_on(s);
    }
}

/* What is known of the placement chosen. */
static void note(eplb_rebalance_worker *w, int32_t layer, double value)
{
    eplb_rebalance_trace *trace = &w->job->traces[layer];
    trace->copies = copies_from_home(w, layer, trace->row);
    trace->value = value;
    if (trace->copies < trace->result.copies_required) { /* fewer than mending took will do */
        trace->result.copies_required = trace->copies;
        trace->result.required_imbalance = value;
        start_curve(trace, value, trace->copies);
    }
    trace->result.target_reached = reaches(w, value);
    eplb_rebalance_settle(w, trace->row);
}

static void search_layer(eplb_rebalance_worker *w, int32_t layer)
{
    eplb_rebalance_trace *trace = &w->job->traces[layer];
    int32_t required = eplb_trail_copies(&w->trail, w->start);
    trace->result.copies_required = required;
    trace->result.required_imbalance = eplb_rebalance_value(w, w->start);
    search s = begin(w, layer);
    s.value = trace->result.required_imbalance;
    s.copies = required;
    improve(&s);
    /* From another home than the one searched from, another way may be the cheapest, and gain
     * enough; and a renaming that is not the best may turn out better. */
    bool is_moved = required > 0 || s.value < trace->result.required_imbalance;
    bool may_see_more = (s.is_dropped && required > 0) ||
                        (trace->is_fresh_greedy && is_moved && trace->result.from_fresh == 0);
    trace->is_open = may_see_more && eplb_rebalance_is_unlimited(w->job->options);
    note(w, layer, s.value);
}

void eplb_rebalance_search_again(eplb_rebalance_worker *w, int32_t layer)
{
    eplb_rebalance_trace *trace = &w->job->traces[layer];
    double before = trace->value;
    (void)eplb_rebalance_take(w, layer);
    (void)eplb_rebalance_mend(w, layer);
    make_home(w, trace->row);
    memcpy(w->start, trace->row, (size_t)w->job->shape.slots * sizeof(*w->start));
    search s = begin(w, layer);
    s.is_first = false;
    s.value = before;
    s.copies = 0;
    improve(&s);
    trace->is_open = trace->is_fresh_greedy && s.value < before && trace->result.from_fresh == 0;
    note(w, layer, s.value);
    trace->result.copies_searched = trace->copies;
}

void eplb_rebalance_search_on(eplb_rebalance_worker *w, int32_t layer)
{
    search s = begin(w, layer);
    s.value = s.trace->value;
    search_on(&s);
    note(w, layer, s.value);
}

void eplb_rebalance_search(eplb_rebalance_worker *w, int32_t layer)
{
    eplb_rebalance_trace *trace = &w->job->traces[layer];
    trace->scored = eplb_rebalance_take(w, layer);
    trace->is_mended = eplb_rebalance_mend(w, layer);
    trace->result.fresh_copies = eplb_trail_copies(&w->trail, trace->fresh);
    if (trace->scored) {
        trace->result.fresh_imbalance = eplb_rebalance_value(w, trace->fresh);
    }
    if (trace->scored && trace->is_mended) {
        search_layer(w, layer);
    } else {
        take_without_search(w, trace);
    }
    trace->result.copies_searched = trace->copies;
}
