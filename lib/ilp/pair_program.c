/* SPDX-License-Identifier: MIT */
#include "ilp/pair_program.h"

#include <math.h>

#include "base/memory.h"

/* What a program costs, in nodes of own searches of some 100 ns: to start GLPK, and for each
 * iteration of the simplex method. */
#define NODES_PER_START 2000
#define NODES_PER_ITERATION 100

/* The first prices rise along a straight line, a little flatter than the one that only says that
 * the mean is a bound. */
#define FIRST_SLOPE 0.9

eplb_status eplb_pair_program_init(eplb_pair_program *program, const eplb_ilp *ilp,
                                   const eplb_refine_task *task, eplb_error *error)
{
    *program = (eplb_pair_program){.ilp = ilp};
    eplb_ilp_model_init(&program->model, &ilp->hooks);
    eplb_status status = eplb_pair_options_init(&program->options, &ilp->hooks, task, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t experts = (size_t)task->experts;
    size_t options = experts * (size_t)program->options.most;
    size_t levels = (size_t)program->options.most_levels;
    const eplb_array arrays[] = {
        EPLB_ARRAY(program->excluded, options),
        EPLB_ARRAY(program->part, options),
        EPLB_ARRAY(program->price, levels),
        EPLB_ARRAY(program->hot, levels),
        EPLB_ARRAY(program->last, levels),
        EPLB_ARRAY(program->column, options),
        EPLB_ARRAY(program->constant, levels),
        EPLB_ARRAY(program->row, levels),
        EPLB_ARRAY(program->jump, levels),
        EPLB_ARRAY(program->values, options + levels + 1),
        EPLB_ARRAY(program->duals, experts + levels),
    };
    return eplb_alloc_arrays(&ilp->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_pair_program_free(eplb_pair_program *program, const eplb_hooks *hooks)
{
    void *arrays[] = {program->excluded, program->part,   program->price,    program->hot,
                      program->last,     program->column, program->constant, program->row,
                      program->jump,     program->values, program->duals};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    eplb_pair_options_free(&program->options);
    eplb_ilp_model_free(&program->model);
}

bool eplb_pair_program_set(eplb_pair_program *program, double load)
{
    if (!eplb_pair_options_set(&program->options, load)) {
        return false;
    }
    int32_t options = program->options.first[program->options.task->experts];
    memset(program->excluded, 0, (size_t)options * sizeof(*program->excluded));
    int32_t below = 0;
    for (int32_t k = 0; k < program->options.levels; k++) {
        double hot = program->options.hot[k];
        while (below < program->last_levels && program->hot[below] <= hot) {
            below++;
        }
        program->price[k] = program->last_levels == 0 ? FIRST_SLOPE * (2.0 * hot / load - 1.0)
                            : below == 0              ? 0.0
                                                      : program->last[below - 1];
    }
    return true;
}

void eplb_pair_program_keep_prices(eplb_pair_program *program)
{
    program->last_levels = program->options.levels;
    size_t bytes = (size_t)program->last_levels * sizeof(double);
    memcpy(program->hot, program->options.hot, bytes);
    memcpy(program->last, program->price, bytes);
}

double eplb_pair_program_least(const eplb_pair_program *program, int32_t expert)
{
    const eplb_pair_options *options = &program->options;
    double least = INFINITY;
    for (int32_t i = options->first[expert]; i < options->first[expert + 1]; i++) {
        if (program->excluded[i] == 0) {
            double cost = eplb_pair_option_cost(&options->option[i], program->price);
            least = cost < least ? cost : least;
        }
    }
    return least;
}

double eplb_pair_program_spare(const eplb_pair_program *program)
{
    double sum = 0.0;
    for (int32_t e = 0; e < program->options.task->experts; e++) {
        sum += eplb_pair_program_least(program, e);
    }
    return (double)program->options.task->slots - sum;
}

bool eplb_pair_program_is_refuted(const eplb_pair_program *program)
{
    double slots = (double)program->options.task->slots;
    return eplb_pair_program_spare(program) < -slots * EPLB_PAIR_MARGIN;
}

/* The level of an option, from 0; -1: none. `count` gets what it adds to that level's row. */
static int32_t place_of(const eplb_pair_option *option, double *count)
{
    *count = option->level > 0 ? (double)option->count : -(double)option->count;
    return (option->level > 0 ? option->level : -option->level) - 1;
}

/* Chooses an expert's options: all get part 0 and no column but those in the window, which get
 * column 0; or where that is one, it is taken out with part 1. Returns how many there are. */
static int32_t choose_options(eplb_pair_program *program, int32_t expert, double window)
{
    const eplb_pair_options *options = &program->options;
    double least = eplb_pair_program_least(program, expert);
    int32_t found = 0;
    int32_t single = -1;
    for (int32_t i = options->first[expert]; i < options->first[expert + 1]; i++) {
        double cost = eplb_pair_option_cost(&options->option[i], program->price);
        bool is_in = program->excluded[i] == 0 && cost - least <= window;
        program->part[i] = 0.0;
        program->column[i] = is_in ? 0 : -1;
        single = is_in ? i : single;
        found += is_in ? 1 : 0;
    }
    if (found == 1) {
        double count;
        int32_t level = place_of(&options->option[single], &count);
        program->part[single] = 1.0;
        program->column[single] = -1;
        if (level >= 0) {
            program->constant[level] += count;
        }
    }
    return found;
}

/* Finds what is left: options, and levels with a row, which are marked by row 0. */
static void reduce(eplb_pair_program *program, double window)
{
    const eplb_pair_options *options = &program->options;
    for (int32_t k = 0; k < options->levels; k++) {
        program->constant[k] = 0.0;
        program->row[k] = k < options->levels - 1 ? -1 : 0;
    }
    for (int32_t e = 0; e < options->task->experts; e++) {
        if (choose_options(program, e, window) < 2) {
            continue;
        }
        for (int32_t i = options->first[e]; i < options->first[e + 1]; i++) {
            double count;
            int32_t level = place_of(&options->option[i], &count);
            if (program->column[i] >= 0 && level >= 0) {
                program->row[level] = 0;
            }
        }
    }
}

/* From the highest level down: what a level without a row lacks follows from the next one's that
 * has a row, whose column is bounded so that none of them lacks any. */
static void add_levels(eplb_pair_program *program)
{
    eplb_ilp_model *model = &program->model;
    int32_t above = -1; /* the column of the next level with a row */
    int32_t k = program->options.levels - 1;
    double rest = 0.0; /* of constants between that level and this */
    while (k >= 0) {
        double difference = -(program->constant[k] + rest);
        double most = 0.0;
        int32_t level = k;
        program->row[level] = eplb_ilp_add_row(model, difference, difference);
        program->jump[level] = level;
        rest = 0.0;
        for (k--; k >= 0 && program->row[k] < 0; k--) {
            rest += program->constant[k];
            program->jump[level] = rest > most ? k : program->jump[level];
            most = rest > most ? rest : most;
        }
        int32_t column = eplb_ilp_add_column(model, -INFINITY, -most, 0.0);
        eplb_ilp_add_entry(model, program->row[level], column, -1.0);
        if (above >= 0) {
            eplb_ilp_add_entry(model, program->row[level], above, 1.0);
        }
        above = column;
    }
}

static void add_options(eplb_pair_program *program)
{
    const eplb_pair_options *options = &program->options;
    eplb_ilp_model *model = &program->model;
    for (int32_t e = 0; e < options->task->experts; e++) {
        int32_t row = -1;
        for (int32_t i = options->first[e]; i < options->first[e + 1]; i++) {
            if (program->column[i] < 0) {
                continue;
            }
            double count;
            int32_t level = place_of(&options->option[i], &count);
            row = row < 0 ? eplb_ilp_add_row(model, 1.0, 1.0) : row;
            program->column[i] = eplb_ilp_add_column(model, 0.0, INFINITY, fabs(count));
            eplb_ilp_add_entry(model, row, program->column[i], 1.0);
            if (level >= 0) {
                eplb_ilp_add_entry(model, program->row[level], program->column[i], count);
            }
        }
    }
}

static void build(eplb_pair_program *program, double window)
{
    eplb_ilp_model *model = &program->model;
    int32_t levels = program->options.levels;
    eplb_ilp_model_clear(model);
    reduce(program, window);
    add_levels(program);
    program->nothing = -1;
    if (levels > 0) {
        program->nothing = eplb_ilp_add_column(model, 0.0, INFINITY, 1.0);
        eplb_ilp_add_entry(model, program->row[levels - 1], program->nothing, -1.0);
    }
    add_options(program);
}

/* Prices are what levels with a row cost. They are between 0 and 1 and rise, but for GLPK's
 * tolerance. */
static void take_prices(eplb_pair_program *program)
{
    double below = 0.0;
    int32_t k = 0;
    while (k < program->options.levels) {
        int32_t level = k;
        while (program->row[level] < 0) {
            level++;
        }
        double price = fmin(fmax(-program->duals[program->row[level]], below), 1.0);
        for (; k <= level; k++) {
            program->price[k] = k < program->jump[level] ? below : price;
        }
        below = price;
    }
}

static void take_parts(eplb_pair_program *program)
{
    int32_t options = program->options.first[program->options.task->experts];
    for (int32_t i = 0; i < options; i++) {
        if (program->column[i] >= 0) {
            program->part[i] = program->values[program->column[i]];
        }
    }
}

/* With the replicas without load. */
static double slots_of_parts(const eplb_pair_program *program)
{
    int32_t options = program->options.first[program->options.task->experts];
    double slots = program->nothing >= 0 ? program->values[program->nothing] : 0.0;
    for (int32_t i = 0; i < options; i++) {
        slots += program->part[i] * (double)program->options.option[i].count;
    }
    return slots;
}

eplb_status eplb_pair_program_solve(eplb_pair_program *program, double window, double *slots,
                                    eplb_error *error)
{
    const eplb_refine_task *task = program->options.task;
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.memory_bytes = program->ilp->options.memory_bytes;
    limits.stop = task->stop;
    limits.stop_context = task->stop_context;
    eplb_ilp_solution solution = {.values = program->values, .duals = program->duals};
    build(program, window);
    *slots = INFINITY;
    eplb_status status = eplb_ilp_solve(&program->model, &limits, &solution, error);
    program->nodes += NODES_PER_START + NODES_PER_ITERATION * solution.iterations;
    if (status == EPLB_OK && solution.outcome == EPLB_ILP_OPTIMAL) {
        take_prices(program);
        take_parts(program);
        *slots = slots_of_parts(program);
    }
    return status;
}
