/* SPDX-License-Identifier: MIT */
#include "ilp/pairs.h"

#include <math.h>

#include "base/memory.h"
#include "base/sort.h"
#include "ilp/pair_bound.h"
#include "ilp/pair_search.h"

/* How close to each other the bound and what is not refuted get, relatively. */
#define CLOSE 2e-5
/* A load is given up after so many nodes. */
#define NODES 600000

typedef struct pairing {
    eplb_pair_program program;
    eplb_pair_search search;
    const eplb_refine_task *task;
    int32_t *count;     /* [experts] */
    double *share;      /* [experts] */
    int32_t *order;     /* [experts] experts, largest share first */
    int32_t *scratch;   /* [experts] */
    int32_t *replica;   /* [slots] experts of all replicas, largest share first */
    int32_t *placement; /* [slots] */
    int32_t *best;      /* [slots] */
    double value;       /* of the best, or the task's */
    double bound;
    int64_t most_nodes;
} pairing;

/* Slots that are left go to the coldest experts, whose replicas fit beside hot ones all the better
 * for it. False when the counts need more slots than there are. */
static bool fill_up(pairing *p, const int32_t *count)
{
    int32_t left = p->task->slots;
    for (int32_t e = 0; e < p->task->experts; e++) {
        p->count[e] = count[e];
        p->order[e] = e;
        left -= count[e];
    }
    eplb_sort_descending(p->order, p->task->experts, p->task->loads, p->scratch);
    for (int32_t i = p->task->experts - 1; i >= 0 && left > 0; i--) {
        int32_t room = p->program.options.most - p->count[p->order[i]];
        int32_t more = room < left ? room : left;
        p->count[p->order[i]] += more;
        left -= more;
    }
    return left == 0;
}

static void sort_replicas(pairing *p)
{
    for (int32_t e = 0; e < p->task->experts; e++) {
        p->share[e] = p->task->loads[e] / (double)p->count[e];
        p->order[e] = e;
    }
    eplb_sort_descending(p->order, p->task->experts, p->share, p->scratch);
    int32_t length = 0;
    for (int32_t i = 0; i < p->task->experts; i++) {
        for (int32_t c = 0; c < p->count[p->order[i]]; c++) {
            p->replica[length++] = p->order[i];
        }
    }
}

/* Lets an expert that meets itself on a GPU change places with the smaller replica of the nearest
 * GPU where neither meets itself then. False when there is none. */
static bool part(pairing *p, int32_t gpu)
{
    int32_t expert = p->placement[2 * gpu];
    for (int32_t distance = 1; distance < p->task->gpus; distance++) {
        for (int32_t side = -1; side <= 1; side += 2) {
            int32_t other = gpu + side * distance;
            if (other < 0 || other >= p->task->gpus || p->placement[2 * other] == expert ||
                p->placement[2 * other + 1] == expert) {
                continue;
            }
            p->placement[2 * gpu + 1] = p->placement[2 * other + 1];
            p->placement[2 * other + 1] = expert;
            return true;
        }
    }
    return false;
}

/* Pairs the largest replica with the smallest, and so on; false when some expert cannot but meet
 * itself. */
static bool pair_replicas(pairing *p)
{
    int32_t gpus = p->task->gpus;
    for (int32_t g = 0; g < gpus; g++) {
        p->placement[2 * g] = p->replica[g];
        p->placement[2 * g + 1] = p->replica[2 * gpus - 1 - g];
    }
    for (int32_t g = 0; g < gpus; g++) {
        if (p->placement[2 * g] == p->placement[2 * g + 1] && !part(p, g)) {
            return false;
        }
    }
    return true;
}

static double largest_load(const pairing *p)
{
    double largest = 0.0;
    for (int32_t g = 0; g < p->task->gpus; g++) {
        double load = p->share[p->placement[2 * g]] + p->share[p->placement[2 * g + 1]];
        largest = fmax(largest, load);
    }
    return largest;
}

/* For the search: keeps a placement of the counts where it is better than the best so far. */
static bool reach(void *context, const int32_t *count)
{
    pairing *p = context;
    if (!fill_up(p, count)) {
        return false;
    }
    sort_replicas(p);
    if (!pair_replicas(p)) {
        return false;
    }
    double load = largest_load(p);
    if (load < p->value) {
        p->value = load;
        memcpy(p->best, p->placement, (size_t)p->task->slots * sizeof(*p->best));
    }
    return load <= p->program.options.load;
}

static eplb_status init(pairing *p, const eplb_ilp *ilp, const eplb_refine_task *task,
                        eplb_error *error)
{
    *p = (pairing){.task = task, .value = task->value, .bound = task->lower_bound};
    size_t experts = (size_t)task->experts;
    size_t slots = (size_t)task->slots;
    const eplb_array arrays[] = {
        EPLB_ARRAY(p->count, experts), EPLB_ARRAY(p->share, experts),
        EPLB_ARRAY(p->order, experts), EPLB_ARRAY(p->scratch, experts),
        EPLB_ARRAY(p->replica, slots), EPLB_ARRAY(p->placement, slots),
        EPLB_ARRAY(p->best, slots),
    };
    eplb_status status = eplb_pair_program_init(&p->program, ilp, task, error);
    if (status == EPLB_OK) {
        status = eplb_pair_search_init(&p->search, &p->program, error);
        p->search.reach = reach;
        p->search.context = p;
    }
    return status == EPLB_OK
               ? eplb_alloc_arrays(&ilp->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error)
               : status;
}

static void free_arrays(pairing *p, const eplb_hooks *hooks)
{
    void *arrays[] = {p->count, p->share, p->order, p->scratch, p->replica, p->placement, p->best};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    eplb_pair_search_free(&p->search, hooks);
    eplb_pair_program_free(&p->program, hooks);
}

/* Tries a load; what is learned of it is in value and bound. */
static eplb_status try_load(pairing *p, double load, eplb_error *error)
{
    bool is_refuted = !eplb_pair_program_set(&p->program, load);
    eplb_status status = is_refuted ? EPLB_OK : eplb_pair_refute(&p->program, &is_refuted, error);
    eplb_pair_answer answer = EPLB_PAIR_NONE;
    if (status == EPLB_OK && !is_refuted) {
        int64_t most = p->program.nodes + NODES;
        eplb_pair_program_keep_prices(&p->program);
        status = eplb_pair_search_run(&p->search, most < p->most_nodes ? most : p->most_nodes,
                                      &answer, error);
    }
    if (status == EPLB_OK && answer == EPLB_PAIR_NONE) {
        p->bound = fmax(p->bound, load * (1.0 - EPLB_PAIR_MARGIN));
    }
    return status;
}

/* A new value is first tried for being the best there is, which may be proven at once; then loads
 * between it and those that were not reached. */
static eplb_status search(pairing *p, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    double low = p->bound;
    double last = INFINITY;
    while (status == EPLB_OK && p->value - low > CLOSE * low && p->program.nodes < p->most_nodes &&
           p->task->stop(p->task->stop_context) == 0) {
        bool is_new = p->value < last;
        double load = is_new ? p->value * (1.0 - CLOSE / 2.0) : low + (p->value - low) / 2.0;
        status = try_load(p, load, error);
        bool is_reached = p->value <= load;
        last = is_reached ? INFINITY : p->value;
        low = fmax(is_reached || is_new ? low : load, p->bound);
    }
    return status;
}

static eplb_status refine(pairing *p, eplb_refine_result *result, eplb_error *error)
{
    const eplb_refine_task *task = p->task;
    eplb_status status =
        eplb_pair_bound(&p->program, task->lower_bound, task->value, CLOSE, &p->bound, error);
    int64_t nodes = p->program.ilp->options.nodes;
    p->most_nodes = nodes < 0 ? INT64_MAX : nodes - result->nodes;
    if (status == EPLB_OK && task->pinned == NULL) {
        status = search(p, error);
    }
    if (status == EPLB_OK) {
        result->lower_bound = fmax(result->lower_bound, p->bound);
        result->nodes += p->program.nodes;
    }
    if (status == EPLB_OK && p->value < task->value) {
        memcpy(result->placement, p->best, (size_t)task->slots * sizeof(*p->best));
    }
    return status;
}

eplb_status eplb_ilp_pairs(const eplb_ilp *ilp, const eplb_refine_task *task,
                           eplb_refine_result *result, eplb_error *error)
{
    if (!eplb_pair_options_apply(task)) {
        return EPLB_OK;
    }
    pairing p;
    eplb_status status = init(&p, ilp, task, error);
    if (status == EPLB_OK) {
        status = refine(&p, result, error);
    }
    free_arrays(&p, &ilp->hooks);
    return status;
}
