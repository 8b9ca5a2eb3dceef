/* SPDX-License-Identifier: MIT */
/* Programs to solve, made in the tests. */
#ifndef EPLB_TESTS_ILP_PROGRAMS_H
#define EPLB_TESTS_ILP_PROGRAMS_H

#include "support.h"

#include "base/memory.h"
#include "ilp/runner.h"

static inline eplb_ilp_model new_model(const eplb_hooks *hooks)
{
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_ilp_model model;
    eplb_ilp_model_init(&model, &resolved);
    return model;
}

/* Numbers that are alike on each machine: 0 .. below - 1. */
static inline uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Items of given weights on so many bins of equal room; the largest bin's weight is minimised. The
 * columns are x[item][bin], then the largest weight. */
static inline void add_packing(eplb_ilp_model *model, const double *weight, int32_t items,
                               int32_t bins)
{
    for (int32_t i = 0; i < items * bins; i++) {
        (void)eplb_ilp_add_binary(model, 0.0);
    }
    int32_t largest = eplb_ilp_add_column(model, 0.0, INFINITY, 1.0);
    for (int32_t i = 0; i < items; i++) {
        int32_t once = eplb_ilp_add_row(model, 1.0, 1.0);
        for (int32_t b = 0; b < bins; b++) {
            eplb_ilp_add_entry(model, once, i * bins + b, 1.0);
        }
    }
    for (int32_t b = 0; b < bins; b++) {
        int32_t load = eplb_ilp_add_row(model, -INFINITY, 0.0);
        int32_t room = eplb_ilp_add_row(model, -INFINITY, (double)((items + bins - 1) / bins));
        for (int32_t i = 0; i < items; i++) {
            eplb_ilp_add_entry(model, load, i * bins + b, weight[i]);
            eplb_ilp_add_entry(model, room, i * bins + b, 1.0);
        }
        eplb_ilp_add_entry(model, load, largest, -1.0);
    }
}

/* The packing in which bin b has the items b, b + bins, ...; returns its largest weight. */
static inline double deal_items(const double *weight, int32_t items, int32_t bins, double *values)
{
    double largest = 0.0;
    memset(values, 0, (size_t)(items * bins + 1) * sizeof(double));
    for (int32_t b = 0; b < bins; b++) {
        double sum = 0.0;
        for (int32_t i = b; i < items; i += bins) {
            values[i * bins + b] = 1.0;
            sum += weight[i];
        }
        largest = sum > largest ? sum : largest;
    }
    values[items * bins] = largest;
    return largest;
}

/* A packing that takes GLPK hundreds of nodes, with the deal as start. */
#define HARD_ITEMS 12
#define HARD_BINS 3
#define HARD_COLUMNS (HARD_ITEMS * HARD_BINS + 1)
#define HARD_ROWS (HARD_ITEMS + 2 * HARD_BINS)

typedef struct hard_program {
    eplb_ilp_model model;
    double values[HARD_COLUMNS];
    double dealt; /* the start's objective */
} hard_program;

static inline void hard_program_init(hard_program *hard, const eplb_hooks *hooks)
{
    const double weight[HARD_ITEMS] = {31.0, 29.3, 27.1, 25.7, 19.9, 18.3,
                                       17.2, 11.1, 9.7,  8.3,  5.9,  3.1};
    hard->model = new_model(hooks);
    add_packing(&hard->model, weight, HARD_ITEMS, HARD_BINS);
    hard->dealt = deal_items(weight, HARD_ITEMS, HARD_BINS, hard->values);
}

/* Its solution, from the deal; values are written to hard->values. */
static inline eplb_ilp_solution solve_hard(hard_program *hard, const eplb_ilp_limits *limits)
{
    eplb_ilp_solution solution = {.values = hard->values, .has_values = true};
    eplb_error error;
    assert_ok(eplb_ilp_solve(&hard->model, limits, &solution, &error), &error);
    return solution;
}

#endif
