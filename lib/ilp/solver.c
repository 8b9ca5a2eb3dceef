/* SPDX-License-Identifier: MIT */
/*
 * GLPK ends the process on misuse, on failed assertions and without memory. Its error hook leaves
 * by longjmp instead, and all that it took goes with the environment, but for one block that GLPK
 * loses sight of when it cannot enlarge it. So nothing else may be taken on this thread. Limits are
 * counted, never timed: GLPK's own time limit overshoots, and results must not depend on the clock.
 * Cover cuts are off, for they keep static data; so is the presolver, behind which the callback
 * sees another problem.
 */
#include "ilp/solver.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <glpk.h>

/* The simplex method works in slices of so many iterations, at first and at most. Short ones would
 * take away the perturbation with which it leaves degenerate vertices. */
#define FIRST_SLICE 250
#define LONGEST_SLICE 4000

/* The question whether to stop is asked once in so many iterations and nodes. */
#define WORK_PER_QUESTION 200

#define SIMPLEX_TOLERANCE 1e-9
#define INTEGER_TOLERANCE 1e-7

static void fail(eplb_ilp_solver *solver, const char *reason)
{
    solver->outcome = EPLB_ILP_FAILED;
    (void)snprintf(solver->reason, sizeof(solver->reason), "%s", reason);
}

/* GLPK's messages of errors come here even when output is off; the first line tells most. */
static int keep_message(void *info, const char *text)
{
    eplb_ilp_solver *solver = info;
    if (solver->reason[0] == '\0') {
        int length = (int)strcspn(text, "\n");
        (void)snprintf(solver->reason, sizeof(solver->reason), "GLPK: %.*s", length, text);
    }
    return 1; /* nothing is printed */
}

static void leave(void *info)
{
    eplb_ilp_solver *solver = info;
    longjmp(solver->escape, 1);
}

static bool must_stop(eplb_ilp_solver *solver)
{
    solver->asked_at = solver->iterations + solver->nodes;
    return solver->limits.stop != NULL && solver->limits.stop(solver->limits.stop_context) != 0;
}

static int bound_kind(double lower, double upper)
{
    if (isinf(lower)) {
        return isinf(upper) ? GLP_FR : GLP_UP;
    }
    return isinf(upper) ? GLP_LO : lower < upper ? GLP_DB : GLP_FX;
}

static glp_prob *build(const eplb_ilp_solver *solver)
{
    const eplb_ilp_model *model = solver->model;
    const eplb_ilp_matrix *matrix = solver->matrix;
    glp_prob *problem = glp_create_prob();
    glp_set_obj_dir(problem, GLP_MIN);
    glp_add_cols(problem, model->column_count);
    for (int32_t j = 0; j < model->column_count; j++) {
        const eplb_ilp_column *column = &model->columns[j];
        double lower = eplb_ilp_lower(column);
        double upper = eplb_ilp_upper(column);
        glp_set_col_kind(problem, j + 1, column->is_integer ? GLP_IV : GLP_CV);
        glp_set_col_bnds(problem, j + 1, bound_kind(lower, upper), lower, upper);
        glp_set_obj_coef(problem, j + 1, column->cost);
    }
    if (model->row_count > 0) {
        glp_add_rows(problem, model->row_count); /* none is refused */
    }
    for (int32_t i = 0; i < model->row_count; i++) {
        double lower = model->rows[i].lower;
        double upper = model->rows[i].upper;
        int32_t before = matrix->start[i];
        glp_set_row_bnds(problem, i + 1, bound_kind(lower, upper), lower, upper);
        glp_set_mat_row(problem, i + 1, matrix->start[i + 1] - before, matrix->column + before,
                        matrix->value + before);
    }
    glp_scale_prob(problem, GLP_SF_AUTO);
    return problem;
}

static void init_simplex(glp_smcp *settings, int method)
{
    glp_init_smcp(settings);
    settings->msg_lev = GLP_MSG_OFF;
    settings->meth = method;
    settings->tol_bnd = SIMPLEX_TOLERANCE;
    settings->tol_dj = SIMPLEX_TOLERANCE;
}

/* One run of the simplex method, slice by slice: GLPK's code, or GLP_EITLIM or GLP_ESTOP at a limit
 * of ours. */
static int run_simplex(eplb_ilp_solver *solver, glp_prob *problem, int method)
{
    int64_t limit = solver->limits.iterations;
    glp_smcp settings;
    init_simplex(&settings, method);
    int code = GLP_EITLIM;
    for (int64_t slice = FIRST_SLICE; code == GLP_EITLIM; slice *= 2) {
        int64_t length = slice < LONGEST_SLICE ? slice : LONGEST_SLICE;
        if (limit >= 0 && length > limit - solver->iterations) {
            length = limit - solver->iterations;
        }
        if (length <= 0) {
            return GLP_EITLIM;
        }
        if (must_stop(solver)) {
            return GLP_ESTOP;
        }
        settings.it_lim = (int)length;
        code = glp_simplex(problem, &settings);
        solver->iterations = glp_get_it_cnt(problem);
    }
    return code;
}

/* Whether a run has ended in a way that another method could mend. */
static bool is_open(glp_prob *problem, int code)
{
    if (code == GLP_EITLIM || code == GLP_ESTOP) {
        return false;
    }
    int status = glp_get_status(problem);
    return code != 0 || (status != GLP_OPT && status != GLP_NOFEAS && status != GLP_UNBND);
}

/* Solves the program without its integrality; false when that ends the solve. */
static bool relax(eplb_ilp_solver *solver, glp_prob *problem)
{
    int code = run_simplex(solver, problem, GLP_DUAL);
    if (is_open(problem, code)) {
        code = run_simplex(solver, problem, GLP_PRIMAL);
    }
    int status = glp_get_status(problem);
    if (code == GLP_EITLIM || code == GLP_ESTOP) {
        solver->outcome = code == GLP_ESTOP ? EPLB_ILP_STOPPED : EPLB_ILP_LIMIT;
    } else if (is_open(problem, code)) {
        fail(solver, "GLPK's simplex method has found no way");
    } else if (status == GLP_UNBND) {
        solver->outcome = EPLB_ILP_UNBOUNDED;
    } else if (status == GLP_NOFEAS) {
        solver->outcome = EPLB_ILP_INFEASIBLE;
        solver->bound = INFINITY;
    } else {
        solver->bound = glp_get_obj_val(problem);
        solver->outcome = EPLB_ILP_OPTIMAL;
        return true;
    }
    return false;
}

/* Keeps the values found where they are right and better; false when they are not right. */
static bool keep_found(eplb_ilp_solver *solver)
{
    if (!eplb_ilp_accept(solver->model, solver->matrix, EPLB_ILP_TOLERANCE, solver->found)) {
        return false;
    }
    double objective = eplb_ilp_objective(solver->model, solver->found);
    if (!solver->has_best || objective < solver->objective) {
        memcpy(solver->best, solver->found, (size_t)solver->model->column_count * sizeof(double));
        solver->objective = objective;
        solver->has_best = true;
    }
    return true;
}

static void finish_linear(eplb_ilp_solver *solver, glp_prob *problem)
{
    for (int32_t j = 0; j < solver->model->column_count; j++) {
        solver->found[j] = glp_get_col_prim(problem, j + 1);
    }
    if (!keep_found(solver)) {
        fail(solver, "the values that GLPK has found do not satisfy the rows");
        return;
    }
    for (int32_t i = 0; solver->duals != NULL && i < solver->model->row_count; i++) {
        solver->duals[i] = glp_get_row_dual(problem, i + 1);
    }
}

/* Takes over integer values that GLPK has found since the last look, wherever they come from. */
static void look_for_values(eplb_ilp_solver *solver, glp_prob *problem)
{
    int status = glp_mip_status(problem);
    if ((status != GLP_FEAS && status != GLP_OPT) ||
        glp_mip_obj_val(problem) >= solver->found_objective) {
        return;
    }
    solver->found_objective = glp_mip_obj_val(problem);
    for (int32_t j = 0; j < solver->model->column_count; j++) {
        solver->found[j] = glp_mip_col_val(problem, j + 1);
    }
    (void)keep_found(solver);
}

/* What no values in the nodes that are left can be better than. */
static double open_bound(glp_tree *tree)
{
    int current = glp_ios_curr_node(tree);
    int best = glp_ios_best_node(tree);
    double bound = best > 0 ? glp_ios_node_bound(tree, best) : INFINITY;
    return current > 0 ? fmin(bound, glp_ios_node_bound(tree, current)) : bound;
}

static void end_tree(eplb_ilp_solver *solver, glp_tree *tree, eplb_ilp_outcome outcome)
{
    solver->outcome = outcome;
    solver->bound = fmax(solver->bound, open_bound(tree));
    glp_ios_terminate(tree);
}

static void start_node(eplb_ilp_solver *solver, glp_tree *tree)
{
    if (solver->limits.nodes >= 0 && solver->nodes >= solver->limits.nodes) {
        end_tree(solver, tree, EPLB_ILP_LIMIT);
    } else {
        solver->nodes++;
    }
}

static void offer_start(eplb_ilp_solver *solver, glp_tree *tree)
{
    if (!solver->has_offered && solver->has_best) {
        (void)glp_ios_heur_sol(tree, solver->start);
    }
    solver->has_offered = true;
}

static void watch(glp_tree *tree, void *info)
{
    eplb_ilp_solver *solver = info;
    glp_prob *problem = glp_ios_get_prob(tree);
    solver->iterations = glp_get_it_cnt(problem);
    look_for_values(solver, problem);
    if (solver->outcome != EPLB_ILP_OPTIMAL) {
        return; /* it is over, but GLPK still has something to tell */
    }
    if (solver->has_best && solver->objective <= solver->limits.enough) {
        end_tree(solver, tree, EPLB_ILP_LIMIT);
    } else if (solver->iterations + solver->nodes - solver->asked_at >= WORK_PER_QUESTION &&
               must_stop(solver)) {
        end_tree(solver, tree, EPLB_ILP_STOPPED);
    } else if (glp_ios_reason(tree) == GLP_IPREPRO) {
        start_node(solver, tree);
    } else if (glp_ios_reason(tree) == GLP_IHEUR) {
        offer_start(solver, tree);
    }
}

/* Gives the continuous columns of integer values that GLPK has found exact values, where those that
 * it gave are not. */
static void polish(eplb_ilp_solver *solver, glp_prob *problem)
{
    for (int32_t j = 0; j < solver->model->column_count; j++) {
        if (solver->model->columns[j].is_integer) {
            double value = floor(glp_mip_col_val(problem, j + 1) + 0.5);
            glp_set_col_bnds(problem, j + 1, GLP_FX, value, value);
        }
    }
    glp_smcp settings;
    init_simplex(&settings, GLP_DUALP);
    if (glp_simplex(problem, &settings) != 0 || glp_get_status(problem) != GLP_OPT) {
        return;
    }
    for (int32_t j = 0; j < solver->model->column_count; j++) {
        solver->found[j] = glp_get_col_prim(problem, j + 1);
    }
    (void)keep_found(solver);
}

static double margin_of(double objective)
{
    return EPLB_ILP_MARGIN * (1.0 + fabs(objective));
}

static void finish_tree(eplb_ilp_solver *solver, glp_prob *problem, int code)
{
    bool has_found = solver->found_objective < INFINITY;
    double wanted = solver->found_objective + margin_of(solver->found_objective);
    if (has_found && (!solver->has_best || solver->objective > wanted)) {
        polish(solver, problem);
        if (!solver->has_best || solver->objective > wanted) {
            fail(solver, "the values that GLPK has found do not satisfy the rows");
            return;
        }
    }
    if (code != 0 && code != GLP_ESTOP) {
        fail(solver, "GLPK's branch and bound has found no way");
    } else if (solver->outcome == EPLB_ILP_OPTIMAL && !has_found) {
        solver->outcome = EPLB_ILP_INFEASIBLE;
        solver->bound = INFINITY;
    } else if (solver->outcome == EPLB_ILP_OPTIMAL) {
        solver->bound = solver->found_objective;
    }
}

static void branch(eplb_ilp_solver *solver, glp_prob *problem)
{
    glp_iocp settings;
    glp_init_iocp(&settings);
    settings.msg_lev = GLP_MSG_OFF;
    settings.br_tech = GLP_BR_DTH;
    settings.bt_tech = GLP_BT_BLB;
    settings.tol_int = INTEGER_TOLERANCE;
    settings.cb_func = watch;
    settings.cb_info = solver;
    int code = glp_intopt(problem, &settings);
    solver->iterations = glp_get_it_cnt(problem);
    look_for_values(solver, problem);
    finish_tree(solver, problem, code);
}

static void solve(eplb_ilp_solver *solver)
{
    glp_prob *problem = build(solver);
    if (!relax(solver, problem)) {
        return;
    }
    if (!solver->has_integers) {
        finish_linear(solver, problem);
    } else {
        branch(solver, problem);
    }
}

/* GLPK's arithmetic is not exact: what it has proven holds but for a margin, and cannot be true
 * where own values say otherwise. It has given up nodes that are not better than what it found. */
static void judge(eplb_ilp_solver *solver)
{
    if (solver->outcome == EPLB_ILP_INFEASIBLE && solver->has_best) {
        fail(solver, "GLPK finds no values, but there are some");
        solver->bound = -INFINITY;
    }
    if (solver->has_best) {
        solver->bound = fmin(solver->bound, solver->objective);
    }
    solver->bound = fmin(solver->bound, solver->found_objective);
    if (isfinite(solver->bound)) {
        solver->bound -= margin_of(solver->bound);
    }
}

void eplb_ilp_solver_run(eplb_ilp_solver *solver)
{
    int64_t mebibytes = solver->limits.memory_bytes < 0 ? -1 : solver->limits.memory_bytes >> 20;
    if (mebibytes == 0) {
        fail(solver, "the memory limit is below 1 MiB, the least that GLPK can be held to");
        return;
    }
    if (glp_init_env() != 0) {
        fail(solver, "GLPK cannot be started: out of memory");
        return;
    }
    glp_term_hook(keep_message, solver);
    glp_error_hook(leave, solver);
    (void)glp_term_out(GLP_OFF);
    if (mebibytes > 0 && mebibytes < INT32_MAX) {
        glp_mem_limit((int)mebibytes);
    }
    if (setjmp(solver->escape) == 0) {
        solve(solver);
    } else {
        solver->outcome = EPLB_ILP_FAILED;
    }
    (void)glp_free_env();
    judge(solver);
}
