/* SPDX-License-Identifier: MIT */
#include "ilp/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ilp/solver.h"

/* GLPK recurses little; instrumented builds need the most. */
#define STACK_BYTES ((size_t)4 << 20)

/* What values to start from must satisfy. */
#define START_TOLERANCE 1e-9

/* The solver's thread and the caller's, which answers its questions. */
typedef struct conversation {
    eplb_ilp_solver *solver;
    int (*stop)(void *stop_context);
    void *stop_context;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_asked;
    bool is_over;
    int answer;
} conversation;

void eplb_ilp_limits_init(eplb_ilp_limits *limits)
{
    *limits =
        (eplb_ilp_limits){.nodes = -1, .iterations = -1, .memory_bytes = -1, .enough = -INFINITY};
}

/* On the solver's thread. */
static int ask(void *context)
{
    conversation *talk = context;
    (void)pthread_mutex_lock(&talk->mutex);
    talk->is_asked = true;
    (void)pthread_cond_broadcast(&talk->changed);
    while (talk->is_asked) {
        (void)pthread_cond_wait(&talk->changed, &talk->mutex);
    }
    int answer = talk->answer;
    (void)pthread_mutex_unlock(&talk->mutex);
    return answer;
}

static void *solve_apart(void *context)
{
    conversation *talk = context;
    eplb_ilp_solver_run(talk->solver);
    (void)pthread_mutex_lock(&talk->mutex);
    talk->is_over = true;
    (void)pthread_cond_broadcast(&talk->changed);
    (void)pthread_mutex_unlock(&talk->mutex);
    return NULL;
}

/* On the caller's thread: until the solve is over. */
static void answer_questions(conversation *talk)
{
    (void)pthread_mutex_lock(&talk->mutex);
    while (!talk->is_over) {
        if (talk->is_asked) {
            (void)pthread_mutex_unlock(&talk->mutex);
            int answer = talk->stop(talk->stop_context);
            (void)pthread_mutex_lock(&talk->mutex);
            talk->answer = answer;
            talk->is_asked = false;
            (void)pthread_cond_broadcast(&talk->changed);
        } else {
            (void)pthread_cond_wait(&talk->changed, &talk->mutex);
        }
    }
    (void)pthread_mutex_unlock(&talk->mutex);
}

static int start_thread(pthread_t *thread, conversation *talk)
{
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code != 0) {
        return code;
    }
    code = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (code == 0) {
        code = eplb_thread_start(thread, &attributes, solve_apart, talk);
    }
    (void)pthread_attr_destroy(&attributes);
    return code;
}

static void run(eplb_ilp_solver *solver)
{
    conversation talk = {.solver = solver,
                         .stop = solver->limits.stop,
                         .stop_context = solver->limits.stop_context,
                         .mutex = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER};
    if (talk.stop != NULL) {
        solver->limits.stop = ask;
        solver->limits.stop_context = &talk;
    }
    pthread_t thread;
    int code = start_thread(&thread, &talk);
    if (code != 0) {
        solver->outcome = EPLB_ILP_FAILED;
        (void)snprintf(solver->reason, sizeof(solver->reason), "no thread: error %d", code);
        return;
    }
    answer_questions(&talk);
    (void)pthread_join(thread, NULL);
    (void)pthread_cond_destroy(&talk.changed);
    (void)pthread_mutex_destroy(&talk.mutex);
}

/* Values to start from, where they are what they should be. */
static void take_start(eplb_ilp_solver *solver, const eplb_ilp_solution *solution)
{
    int32_t columns = solver->model->column_count;
    if (!solution->has_values) {
        return;
    }
    if (columns > 0) {
        memcpy(solver->best, solution->values, (size_t)columns * sizeof(double));
    }
    if (!eplb_ilp_accept(solver->model, solver->matrix, START_TOLERANCE, solver->best)) {
        return;
    }
    for (int32_t j = 0; j < columns; j++) {
        solver->start[j + 1] = solver->best[j];
    }
    solver->has_best = true;
    solver->objective = eplb_ilp_objective(solver->model, solver->best);
}

/* A pair of bounds that no number is between, or no integer. */
static bool has_empty_range(const eplb_ilp_model *model)
{
    for (int32_t j = 0; j < model->column_count; j++) {
        double lower = eplb_ilp_lower(&model->columns[j]);
        double upper = eplb_ilp_upper(&model->columns[j]);
        if (lower > upper || (lower >= upper && isinf(lower))) {
            return true;
        }
    }
    for (int32_t i = 0; i < model->row_count; i++) {
        const eplb_ilp_row *row = &model->rows[i];
        if (row->lower > row->upper || (row->lower >= row->upper && isinf(row->lower))) {
            return true;
        }
    }
    return false;
}

/* What needs no solver: no columns, or bounds that exclude each other. */
static bool is_trivial(eplb_ilp_solver *solver)
{
    const eplb_ilp_model *model = solver->model;
    if (has_empty_range(model) ||
        (model->column_count == 0 &&
         !eplb_ilp_accept(model, solver->matrix, START_TOLERANCE, solver->best))) {
        solver->outcome = EPLB_ILP_INFEASIBLE;
        solver->bound = INFINITY;
        return true;
    }
    if (model->column_count == 0) {
        solver->has_best = true;
        solver->bound = 0.0;
        return true;
    }
    return false;
}

static void deliver(const eplb_ilp_solver *solver, eplb_ilp_solution *solution)
{
    if (solver->has_best && solver->model->column_count > 0) {
        memcpy(solution->values, solver->best,
               (size_t)solver->model->column_count * sizeof(double));
    }
    solution->has_values = solver->has_best;
    solution->outcome = solver->outcome;
    solution->objective = solver->has_best ? solver->objective : 0.0;
    solution->bound = solver->bound;
    solution->nodes = solver->nodes;
    solution->iterations = solver->iterations;
    memset(solution->reason, 0, sizeof(solution->reason));
    if (solver->outcome == EPLB_ILP_FAILED) {
        (void)snprintf(solution->reason, sizeof(solution->reason), "%s", solver->reason);
    }
}

static void solve(eplb_ilp_solver *solver, eplb_ilp_solution *solution)
{
    const eplb_ilp_model *model = solver->model;
    for (int32_t j = 0; j < model->column_count; j++) {
        solver->has_integers = solver->has_integers || model->columns[j].is_integer;
    }
    for (int32_t i = 0; solver->duals != NULL && i < model->row_count; i++) {
        solver->duals[i] = 0.0;
    }
    take_start(solver, solution);
    if (!is_trivial(solver)) {
        if (solver->has_best && solver->objective <= solver->limits.enough) {
            solver->outcome = EPLB_ILP_LIMIT;
        } else {
            run(solver);
        }
    }
    deliver(solver, solution);
}

eplb_status eplb_ilp_solve(const eplb_ilp_model *model, const eplb_ilp_limits *limits,
                           eplb_ilp_solution *solution, eplb_error *error)
{
    eplb_status status = eplb_ilp_model_status(model, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_ilp_matrix matrix;
    eplb_ilp_solver *solver = NULL;
    double *best = NULL;
    double *found = NULL;
    double *start = NULL;
    size_t columns = (size_t)model->column_count;
    const eplb_array arrays[] = {
        EPLB_ARRAY(solver, 1),
        EPLB_ARRAY(best, columns),
        EPLB_ARRAY(found, columns),
        EPLB_ARRAY(start, columns + 1),
    };
    status = eplb_ilp_matrix_init(&matrix, model, error);
    if (status == EPLB_OK) {
        status =
            eplb_alloc_arrays(&model->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    }
    if (status == EPLB_OK) {
        *solver = (eplb_ilp_solver){.model = model,
                                    .matrix = &matrix,
                                    .limits = *limits,
                                    .best = best,
                                    .found = found,
                                    .start = start,
                                    .duals = solution->duals,
                                    .bound = -INFINITY,
                                    .found_objective = INFINITY};
        solve(solver, solution);
    }
    eplb_free(&model->hooks, best);
    eplb_free(&model->hooks, found);
    eplb_free(&model->hooks, start);
    eplb_free(&model->hooks, solver);
    eplb_ilp_matrix_free(&matrix, &model->hooks);
    return status;
}
