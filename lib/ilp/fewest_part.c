/* SPDX-License-Identifier: MIT */
/* The model of a part, and what its solution says. */
#include "ilp/fewest_part.h"

#include <math.h>

#include "base/memory.h"
#include "ilp/runner.h"

/* GLPK's solutions may be off by that much; loads are about 1. */
#define TIGHTER (2.0 * EPLB_ILP_TOLERANCE)

/* Less than one copy, for all binaries together. */
#define NOISE 1e-3

/* Limits of one solve, and what its work counts: an iteration takes some 20 us, a node of branch
 * and bound several. */
#define MOST_NODES 200
#define MOST_ITERATIONS 20000
#define NODES_PER_ITERATION 150
#define NODES_PER_NODE 1500

eplb_status eplb_fewest_part_init(eplb_fewest_part *part, eplb_fewest_state *state,
                                  eplb_error *error)
{
    const eplb_fewest_layer *layer = state->layer;
    *part = (eplb_fewest_part){.state = state};
    eplb_ilp_model_init(&part->model, &layer->hooks);
    size_t experts = (size_t)layer->experts;
    size_t scenarios = (size_t)layer->scenarios;
    const eplb_array arrays[] = {
        EPLB_ARRAY(part->inside, experts),
        EPLB_ARRAY(part->low, experts),
        EPLB_ARRAY(part->high, experts),
        EPLB_ARRAY(part->load_row, (size_t)layer->gpus * scenarios), /* as many as state->load */
        EPLB_ARRAY(part->peak, scenarios),
        EPLB_ARRAY(part->values, EPLB_FEWEST_BINARIES + scenarios),
    };
    return eplb_alloc_arrays(&layer->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_fewest_part_free(eplb_fewest_part *part)
{
    const eplb_hooks *hooks = &part->state->layer->hooks;
    void *arrays[] = {part->inside,   part->low,  part->high,
                      part->load_row, part->peak, part->values};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    eplb_ilp_model_free(&part->model);
}

bool eplb_fewest_part_has(const eplb_fewest_part *part, int32_t gpu)
{
    for (int32_t i = 0; i < part->gpus; i++) {
        if (part->gpu[i] == gpu) {
            return true;
        }
    }
    return false;
}

static bool has_peaks(const eplb_fewest_part *part)
{
    return part->state->layer->by_mean && !part->each_scenario;
}

/* The row that keeps a GPU's load in the limit; it is made when it is first asked for. */
static int32_t load_row(eplb_fewest_part *part, int32_t gpu, int32_t k)
{
    const eplb_fewest_layer *layer = part->state->layer;
    int32_t *row = &part->load_row[(size_t)gpu * (size_t)layer->scenarios + (size_t)k];
    if (*row >= 0) {
        return *row;
    }
    double load = eplb_fewest_part_has(part, gpu) ? 0.0 : eplb_fewest_load(part->state, gpu, k);
    if (has_peaks(part)) {
        *row = eplb_ilp_add_row(&part->model, -INFINITY, -load);
        eplb_ilp_add_entry(&part->model, *row, part->peak[k], -1.0);
    } else {
        double room = layer->limit - TIGHTER - load;
        *row = eplb_ilp_add_row(&part->model, -INFINITY, room > 0.0 ? room : 0.0);
    }
    return *row;
}

/* What a choice of the number of replicas does to the GPUs that are not in the part. */
static void add_change_outside(eplb_fewest_part *part, int32_t expert, int32_t count,
                               int32_t column)
{
    const eplb_fewest_state *state = part->state;
    const eplb_fewest_layer *layer = state->layer;
    for (int32_t g = 0; g < layer->gpus; g++) {
        if (!eplb_fewest_holds(state, g, expert) || eplb_fewest_part_has(part, g)) {
            continue;
        }
        for (int32_t k = 0; k < layer->scenarios; k++) {
            double load = layer->load[(size_t)k * (size_t)layer->experts + (size_t)expert];
            double change = load / (double)count - load / (double)state->count[expert];
            if (change > 0.0 || change < 0.0) {
                eplb_ilp_add_entry(&part->model, load_row(part, g, k), column, change);
            }
        }
    }
}

/* The expert on one GPU of the part. */
static void add_pick(eplb_fewest_part *part, int32_t index, int32_t expert, int32_t count,
                     int32_t expert_row)
{
    const eplb_fewest_layer *layer = part->state->layer;
    int32_t gpu = part->gpu[index];
    double cost = eplb_fewest_is_home(layer, gpu, expert) ? 0.0 : 1.0;
    if (part->noise != NULL && cost > 0.0) {
        cost += NOISE * eplb_random_unit(part->noise);
    }
    int32_t column = eplb_ilp_add_binary(&part->model, cost);
    part->pick[part->picks++] = (eplb_fewest_pick){.column = column, .gpu = gpu, .expert = expert};
    eplb_ilp_add_entry(&part->model, expert_row, column, 1.0);
    eplb_ilp_add_entry(&part->model, part->slot_row[index], column, 1.0);
    if (cost > 0.0) {
        eplb_ilp_add_entry(&part->model, part->copies_row, column, 1.0);
    }
    for (int32_t k = 0; k < layer->scenarios; k++) {
        double load = layer->load[(size_t)k * (size_t)layer->experts + (size_t)expert];
        if (load > 0.0) {
            eplb_ilp_add_entry(&part->model, load_row(part, gpu, k), column, load / (double)count);
        }
    }
}

/* The expert with so many replicas in all; `choice` is the column that says so, or -1. */
static void add_count(eplb_fewest_part *part, int32_t expert, int32_t count, int32_t choice)
{
    int32_t inside = part->inside[expert] + count - part->state->count[expert];
    if (inside == 0) {
        return;
    }
    double fixed = choice < 0 ? (double)inside : 0.0;
    int32_t row = eplb_ilp_add_row(&part->model, fixed, fixed);
    if (choice >= 0) {
        eplb_ilp_add_entry(&part->model, row, choice, -(double)inside);
    }
    for (int32_t i = 0; i < part->gpus; i++) {
        if (part->inside[expert] > 0 ||
            eplb_fewest_is_home(part->state->layer, part->gpu[i], expert)) {
            add_pick(part, i, expert, count, row);
        }
    }
}

static void add_expert(eplb_fewest_part *part, int32_t expert)
{
    if (part->low[expert] == part->high[expert]) {
        if (part->inside[expert] > 0) {
            add_count(part, expert, part->low[expert], -1);
        }
        return;
    }
    int32_t one = eplb_ilp_add_row(&part->model, 1.0, 1.0);
    for (int32_t count = part->low[expert]; count <= part->high[expert]; count++) {
        int32_t choice = eplb_ilp_add_binary(&part->model, 0.0);
        eplb_ilp_add_entry(&part->model, one, choice, 1.0);
        add_count(part, expert, count, choice);
        add_change_outside(part, expert, count, choice);
    }
}

static void add_peaks(eplb_fewest_part *part)
{
    const eplb_fewest_layer *layer = part->state->layer;
    int32_t row = eplb_ilp_add_row(&part->model, -INFINITY, layer->limit - TIGHTER);
    for (int32_t k = 0; k < layer->scenarios; k++) {
        part->peak[k] = eplb_ilp_add_column(&part->model, 1.0, INFINITY, 0.0);
        eplb_ilp_add_entry(&part->model, row, part->peak[k], layer->weight[k]);
    }
}

/* GPUs whose load does not change hold the peaks up. */
static void raise_peaks(eplb_fewest_part *part)
{
    const eplb_fewest_layer *layer = part->state->layer;
    for (int32_t g = 0; g < layer->gpus; g++) {
        for (int32_t k = 0; k < layer->scenarios; k++) {
            double load = eplb_fewest_load(part->state, g, k);
            eplb_ilp_column *peak = &part->model.columns[part->peak[k]];
            bool is_free = part->load_row[(size_t)g * (size_t)layer->scenarios + (size_t)k] >= 0;
            if (!is_free && !eplb_fewest_part_has(part, g) && load > peak->lower) {
                peak->lower = load;
            }
        }
    }
}

eplb_status eplb_fewest_part_build(eplb_fewest_part *part, int32_t most, eplb_error *error)
{
    const eplb_fewest_layer *layer = part->state->layer;
    eplb_ilp_model *model = &part->model;
    eplb_ilp_model_clear(model);
    part->picks = 0;
    for (size_t i = 0; i < (size_t)layer->gpus * (size_t)layer->scenarios; i++) {
        part->load_row[i] = -1;
    }
    part->copies_row = eplb_ilp_add_row(model, -INFINITY, (double)most);
    for (int32_t i = 0; i < part->gpus; i++) {
        int32_t g = part->gpu[i];
        double slots = (double)(layer->first[g + 1] - layer->first[g]);
        part->slot_row[i] = eplb_ilp_add_row(model, slots, slots);
    }
    if (has_peaks(part)) {
        add_peaks(part);
    }
    for (int32_t e = 0; e < layer->experts; e++) {
        add_expert(part, e);
    }
    eplb_status status = eplb_ilp_model_status(model, error);
    if (status == EPLB_OK && has_peaks(part)) {
        raise_peaks(part);
    }
    return status;
}

static void apply(eplb_fewest_part *part)
{
    eplb_fewest_state *state = part->state;
    for (int32_t i = 0; i < part->gpus; i++) {
        int32_t slot = state->layer->first[part->gpu[i]];
        for (int32_t n = 0; n < part->picks; n++) {
            const eplb_fewest_pick *pick = &part->pick[n];
            if (pick->gpu == part->gpu[i] && part->values[pick->column] > 0.5) {
                state->chosen[slot++] = pick->expert;
            }
        }
    }
    eplb_fewest_state_index(state);
}

/* No more than what is left of the budget; whether that is less than usual. */
static bool set_work(eplb_ilp_limits *limits, const eplb_fewest_layer *layer)
{
    limits->nodes = MOST_NODES;
    limits->iterations = MOST_ITERATIONS;
    if (layer->most_nodes >= 0) {
        int64_t left = layer->most_nodes > layer->nodes ? layer->most_nodes - layer->nodes : 0;
        int64_t nodes = left / NODES_PER_NODE;
        int64_t iterations = left / NODES_PER_ITERATION;
        limits->nodes = nodes < MOST_NODES ? nodes : MOST_NODES;
        limits->iterations = iterations < MOST_ITERATIONS ? iterations : MOST_ITERATIONS;
    }
    return limits->nodes < MOST_NODES || limits->iterations < MOST_ITERATIONS;
}

eplb_fewest_end eplb_fewest_part_solve(eplb_fewest_part *part, eplb_fewest_layer *layer,
                                       int64_t memory_bytes, eplb_error *error)
{
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    bool is_last = set_work(&limits, layer);
    limits.memory_bytes = memory_bytes;
    limits.stop = layer->task->stop;
    limits.stop_context = layer->task->stop_context;
    eplb_ilp_solution solution = {.values = part->values};
    layer->failure = eplb_ilp_solve(&part->model, &limits, &solution, error);
    if (layer->failure != EPLB_OK) {
        return EPLB_FEWEST_FAILED;
    }
    layer->cancelled = layer->cancelled || solution.outcome == EPLB_ILP_STOPPED;
    int64_t work = solution.iterations * NODES_PER_ITERATION + solution.nodes * NODES_PER_NODE;
    if (is_last && solution.outcome == EPLB_ILP_LIMIT) {
        work = layer->most_nodes - layer->nodes;
    }
    if (solution.has_values) {
        apply(part);
    }
    if (!eplb_fewest_spend(layer, work + 1) && !solution.has_values) {
        return EPLB_FEWEST_ENDED;
    }
    return solution.has_values ? EPLB_FEWEST_FOUND : EPLB_FEWEST_NOTHING;
}
