/* SPDX-License-Identifier: MIT */
/* Programs with known answers. */
#include "programs.h"

#define MOST_COLUMNS 16

static eplb_ilp_solution solve_from(const eplb_ilp_model *model, double *values, bool has_values)
{
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    eplb_ilp_solution solution = {.values = values, .has_values = has_values};
    eplb_error error;
    assert_ok(eplb_ilp_solve(model, &limits, &solution, &error), &error);
    return solution;
}

static eplb_ilp_outcome outcome_of(const eplb_ilp_model *model)
{
    double values[MOST_COLUMNS];
    assert_true(model->column_count <= MOST_COLUMNS);
    eplb_ilp_solution solution = solve_from(model, values, false);
    assert_true(solution.has_values == (solution.outcome == EPLB_ILP_OPTIMAL));
    return solution.outcome;
}

/* The factory of Hillier and Lieberman's book: 3 x + 5 y at most, with three limits. */
static void add_factory(eplb_ilp_model *model)
{
    (void)eplb_ilp_add_column(model, 0.0, INFINITY, -3.0);
    (void)eplb_ilp_add_column(model, 0.0, INFINITY, -5.0);
    (void)eplb_ilp_add_row(model, -INFINITY, 4.0);
    (void)eplb_ilp_add_row(model, -INFINITY, 12.0);
    (void)eplb_ilp_add_row(model, -INFINITY, 18.0);
    eplb_ilp_add_entry(model, 2, 1, 2.0);
    eplb_ilp_add_entry(model, 0, 0, 1.0);
    eplb_ilp_add_entry(model, 2, 0, 3.0);
    eplb_ilp_add_entry(model, 1, 1, 2.0);
}

static void linear_program_has_its_known_optimum_and_duals(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    add_factory(&model);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    double values[2];
    double duals[3];
    eplb_ilp_solution solution = {.values = values, .duals = duals};
    eplb_error error;
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, &error), &error);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    assert_true(solution.has_values);
    assert_close(values[0], 2.0, 1e-9);
    assert_close(values[1], 6.0, 1e-9);
    assert_close(solution.objective, -36.0, 1e-9);
    assert_true(solution.bound <= -36.0 && solution.bound >= -36.0001);
    assert_close(duals[0], 0.0, 1e-9);
    assert_close(duals[1], -1.5, 1e-9);
    assert_close(duals[2], -1.0, 1e-9);
    assert_true(solution.iterations > 0);
    assert_int_equal(solution.nodes, 0);
    assert_string_equal(solution.reason, "");
    eplb_ilp_model_free(&model);
}

static void dual_of_a_lower_bound_is_the_price_of_raising_it(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_column(&model, 0.0, INFINITY, 2.0);
    (void)eplb_ilp_add_column(&model, 0.0, INFINITY, 7.0);
    (void)eplb_ilp_add_row(&model, 10.0, INFINITY);
    eplb_ilp_add_entry(&model, 0, 0, 1.0);
    eplb_ilp_add_entry(&model, 0, 1, 3.0);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    double values[2];
    double dual;
    double objective[2];
    for (int i = 0; i < 2; i++) {
        eplb_ilp_solution solution = {.values = values, .duals = &dual};
        assert_ok(eplb_ilp_solve(&model, &limits, &solution, NULL), NULL);
        objective[i] = solution.objective;
        model.rows[0].lower += 1.0;
    }
    assert_close(dual, 2.0, 1e-9);
    assert_close(objective[1] - objective[0], dual, 1e-9);
    eplb_ilp_model_free(&model);
}

static void equality_rows_and_free_columns_are_kept(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_column(&model, -INFINITY, INFINITY, 1.0);
    (void)eplb_ilp_add_column(&model, -INFINITY, INFINITY, 2.0);
    (void)eplb_ilp_add_row(&model, 3.0, 3.0); /* x - y */
    (void)eplb_ilp_add_row(&model, 1.0, 9.0); /* x + y */
    eplb_ilp_add_entry(&model, 0, 0, 1.0);
    eplb_ilp_add_entry(&model, 0, 1, -1.0);
    eplb_ilp_add_entry(&model, 1, 0, 1.0);
    eplb_ilp_add_entry(&model, 1, 1, 1.0);
    double values[2];
    eplb_ilp_solution solution = solve_from(&model, values, false);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    assert_close(values[0], 2.0, 1e-9);
    assert_close(values[1], -1.0, 1e-9);
    assert_close(solution.objective, 0.0, 1e-9);
    eplb_ilp_model_free(&model);
}

static void infeasible_and_unbounded_programs_are_told_apart(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_column(&model, 0.0, INFINITY, -1.0);
    (void)eplb_ilp_add_column(&model, 0.0, INFINITY, 0.0);
    (void)eplb_ilp_add_row(&model, 1.0, INFINITY);
    eplb_ilp_add_entry(&model, 0, 0, 1.0);
    eplb_ilp_add_entry(&model, 0, 1, 1.0);
    assert_int_equal(outcome_of(&model), EPLB_ILP_UNBOUNDED);
    (void)eplb_ilp_add_row(&model, -INFINITY, 0.5);
    eplb_ilp_add_entry(&model, 1, 0, 1.0);
    eplb_ilp_add_entry(&model, 1, 1, 1.0);
    assert_int_equal(outcome_of(&model), EPLB_ILP_INFEASIBLE);
    model.rows[1].upper = 1.5;
    assert_int_equal(outcome_of(&model), EPLB_ILP_OPTIMAL);
    eplb_ilp_model_free(&model);
}

/* 2 x = 1 has a solution, but none of integers. */
static void integers_can_be_infeasible_or_unbounded_too(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_binary(&model, 1.0);
    (void)eplb_ilp_add_row(&model, 1.0, 1.0);
    eplb_ilp_add_entry(&model, 0, 0, 2.0);
    double value;
    eplb_ilp_solution solution = solve_from(&model, &value, false);
    assert_int_equal(solution.outcome, EPLB_ILP_INFEASIBLE);
    assert_true(isinf(solution.bound) && solution.bound > 0.0);
    model.rows[0] = (eplb_ilp_row){.lower = 0.0, .upper = INFINITY};
    model.columns[0].upper = INFINITY;
    model.columns[0].cost = -1.0;
    solution = solve_from(&model, &value, false);
    assert_int_equal(solution.outcome, EPLB_ILP_UNBOUNDED);
    assert_true(isinf(solution.bound) && solution.bound < 0.0);
    eplb_ilp_model_free(&model);
}

static void without_rows_each_column_goes_to_its_cheaper_bound(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_column(&model, -2.0, 5.0, 1.0);
    (void)eplb_ilp_add_column(&model, -2.0, 5.5, -1.0);
    double values[3];
    eplb_ilp_solution solution = solve_from(&model, values, false);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    assert_true(values[0] == -2.0 && values[1] == 5.5);
    (void)eplb_ilp_add_binary(&model, -1.0);
    model.columns[1].is_integer = true;
    solution = solve_from(&model, values, false);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    assert_true(values[0] == -2.0 && values[1] == 5.0 && values[2] == 1.0);
    model.columns[0].lower = -INFINITY;
    assert_int_equal(outcome_of(&model), EPLB_ILP_UNBOUNDED);
    eplb_ilp_model_free(&model);
}

static void without_columns_only_the_rows_count(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    eplb_ilp_solution solution = solve_from(&model, NULL, false);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    assert_true(solution.objective == 0.0 && solution.bound == 0.0);
    (void)eplb_ilp_add_row(&model, -1.0, 1.0);
    assert_int_equal(outcome_of(&model), EPLB_ILP_OPTIMAL);
    model.rows[0].lower = 0.5;
    assert_int_equal(outcome_of(&model), EPLB_ILP_INFEASIBLE);
    eplb_ilp_model_free(&model);
}

static void bounds_that_exclude_each_other_are_infeasible(void **state)
{
    (void)state;
    const double bad[][2] = {{2.0, 1.0}, {INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
    eplb_ilp_model model = new_model(NULL);
    int32_t column = eplb_ilp_add_column(&model, 0.0, 1.0, 1.0);
    int32_t row = eplb_ilp_add_row(&model, 0.0, 1.0);
    eplb_ilp_add_entry(&model, row, column, 1.0);
    assert_int_equal(outcome_of(&model), EPLB_ILP_OPTIMAL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        model.columns[column].lower = bad[i][0];
        model.columns[column].upper = bad[i][1];
        assert_int_equal(outcome_of(&model), EPLB_ILP_INFEASIBLE);
        model.columns[column] = (eplb_ilp_column){.lower = 0.0, .upper = 1.0};
        model.rows[row] = (eplb_ilp_row){.lower = bad[i][0], .upper = bad[i][1]};
        assert_int_equal(outcome_of(&model), EPLB_ILP_INFEASIBLE);
        model.rows[row] = (eplb_ilp_row){.lower = 0.0, .upper = 1.0};
    }
    model.columns[column] = (eplb_ilp_column){.lower = 0.2, .upper = 0.8, .is_integer = true};
    assert_int_equal(outcome_of(&model), EPLB_ILP_INFEASIBLE);
    eplb_ilp_model_free(&model);
}

static void bounds_of_integer_columns_go_inwards(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_column(&model, -1.5, 2.5, 1.0);
    (void)eplb_ilp_add_column(&model, -1.5, 2.5, -1.0);
    (void)eplb_ilp_add_row(&model, -INFINITY, INFINITY);
    eplb_ilp_add_entry(&model, 0, 0, 1.0);
    model.columns[0].is_integer = true;
    model.columns[1].is_integer = true;
    double values[2];
    eplb_ilp_solution solution = solve_from(&model, values, false);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    assert_true(values[0] == -1.0 && values[1] == 2.0 && solution.objective == -3.0);
    eplb_ilp_model_free(&model);
}

#define BINARIES 9
#define ROWS 4

/* A random 0/1 program with a continuous column that costs what a row has too much. */
static void add_random_program(eplb_ilp_model *model, uint64_t *random)
{
    for (int32_t j = 0; j < BINARIES; j++) {
        (void)eplb_ilp_add_binary(model, (double)draw(random, 41) - 20.0);
    }
    (void)eplb_ilp_add_column(model, 0.0, 3.0, 1.5);
    for (int32_t i = 0; i < ROWS; i++) {
        double upper = (double)draw(random, 12);
        bool is_range = draw(random, 3) == 0;
        (void)eplb_ilp_add_row(model, is_range ? upper - 6.0 : -INFINITY, upper);
        for (int32_t j = 0; j < BINARIES; j++) {
            double value = (double)draw(random, 13) - 4.0;
            if (value != 0.0) {
                eplb_ilp_add_entry(model, i, j, value);
            }
        }
        eplb_ilp_add_entry(model, i, BINARIES, i == 0 ? -1.0 : 0.25);
    }
}

/* The least objective with the given binaries, over the continuous column; INFINITY: none. */
static double best_with(const eplb_ilp_model *model, uint32_t binaries)
{
    double sums[ROWS] = {0.0};
    double factor[ROWS] = {0.0};
    double cost = 0.0;
    for (int32_t k = 0; k < model->entry_count; k++) {
        const eplb_ilp_entry *entry = &model->entries[k];
        if (entry->column == BINARIES) {
            factor[entry->row] = entry->value;
        } else if ((binaries >> entry->column & 1u) != 0) {
            sums[entry->row] += entry->value;
        }
    }
    for (int32_t j = 0; j < BINARIES; j++) {
        cost += (binaries >> j & 1u) != 0 ? model->columns[j].cost : 0.0;
    }
    double lowest = 0.0;
    double highest = 3.0;
    for (int32_t i = 0; i < ROWS; i++) {
        double at_upper = (model->rows[i].upper - sums[i]) / factor[i];
        double at_lower = (model->rows[i].lower - sums[i]) / factor[i];
        lowest = fmax(lowest, fmin(at_upper, at_lower));
        highest = fmin(highest, fmax(at_upper, at_lower));
    }
    return lowest <= highest ? cost + 1.5 * lowest : INFINITY;
}

static void random_integer_programs_end_at_what_enumeration_finds(void **state)
{
    (void)state;
    uint64_t random = 7;
    int feasible = 0;
    for (int round = 0; round < 150; round++) {
        eplb_ilp_model model = new_model(NULL);
        add_random_program(&model, &random);
        double best = INFINITY;
        for (uint32_t binaries = 0; binaries < 1u << BINARIES; binaries++) {
            best = fmin(best, best_with(&model, binaries));
        }
        double values[BINARIES + 1];
        eplb_ilp_solution solution = solve_from(&model, values, false);
        if (best < INFINITY) {
            feasible++;
            assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
            assert_close(solution.objective, best, 1e-6);
            assert_true(solution.bound <= best && solution.bound >= best - 1e-4);
        } else {
            assert_int_equal(solution.outcome, EPLB_ILP_INFEASIBLE);
        }
        eplb_ilp_model_free(&model);
    }
    assert_true(feasible > 50 && feasible < 150);
}

static void start_is_given_up_for_a_better_one_only(void **state)
{
    (void)state;
    hard_program hard;
    hard_program_init(&hard, NULL);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    eplb_ilp_solution first = solve_hard(&hard, &limits);
    assert_int_equal(first.outcome, EPLB_ILP_OPTIMAL);
    assert_true(first.objective < hard.dealt - 0.1);
    double kept[HARD_COLUMNS];
    memcpy(kept, hard.values, sizeof(kept));
    eplb_ilp_solution again = solve_hard(&hard, &limits);
    assert_int_equal(again.outcome, EPLB_ILP_OPTIMAL);
    assert_memory_equal(hard.values, kept, sizeof(kept));
    assert_true(again.objective == first.objective);
    assert_true(again.nodes < first.nodes);
    eplb_ilp_model_free(&hard.model);
}

static void start_that_breaks_a_rule_is_ignored(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    (void)eplb_ilp_add_binary(&model, 1.0);
    (void)eplb_ilp_add_column(&model, 0.0, 2.0, 1.0);
    (void)eplb_ilp_add_row(&model, 1.0, INFINITY);
    eplb_ilp_add_entry(&model, 0, 0, 2.0);
    eplb_ilp_add_entry(&model, 0, 1, 1.0);
    const double starts[][2] = {{0.0, 0.5}, {0.5, 0.0}, {1.0, -0.5}, {1.0, 2.5}, {NAN, 0.0}};
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.nodes = 0;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        double values[2] = {starts[i][0], starts[i][1]};
        eplb_ilp_solution solution = {.values = values, .has_values = true};
        assert_ok(eplb_ilp_solve(&model, &limits, &solution, NULL), NULL);
        assert_int_equal(solution.outcome, EPLB_ILP_LIMIT);
        assert_false(solution.has_values);
    }
    double values[2] = {1.0, 0.0};
    eplb_ilp_solution solution = {.values = values, .has_values = true};
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, NULL), NULL);
    assert_true(solution.has_values && solution.objective == 1.0);
    eplb_ilp_model_free(&model);
}

static void what_is_no_model_is_refused_with_its_place(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    add_factory(&model);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    double values[2] = {4.0, 3.0};
    eplb_ilp_solution solution = {.values = values, .has_values = true};
    eplb_error error;
    eplb_ilp_add_entry(&model, 2, 0, 1.0);
    assert_status(eplb_ilp_solve(&model, &limits, &solution, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "row 2");
    assert_contains(error.message, "column 0");
    model.entry_count--;
    const eplb_ilp_entry bad[] = {{3, 0, 1.0},  {-1, 0, 1.0},     {0, 2, 1.0},
                                  {0, -1, 1.0}, {0, 1, INFINITY}, {0, 1, NAN}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_ilp_add_entry(&model, bad[i].row, bad[i].column, bad[i].value);
        assert_status(eplb_ilp_solve(&model, &limits, &solution, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_contains(error.message, "entry 4");
        model.entry_count--;
    }
    model.columns[1].cost = INFINITY;
    assert_status(eplb_ilp_solve(&model, &limits, &solution, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "column 1");
    model.columns[1].cost = -5.0;
    model.rows[1].lower = NAN;
    assert_status(eplb_ilp_solve(&model, &limits, &solution, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "row 1");
    model.rows[1].lower = 0.0;
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, &error), &error);
    eplb_ilp_model_free(&model);
}

#define SIDE 40

/* Each of SIDE workers does one of SIDE jobs, with random costs. */
static void add_assignment(eplb_ilp_model *model)
{
    uint64_t random = 11;
    for (int32_t j = 0; j < SIDE * SIDE; j++) {
        (void)eplb_ilp_add_column(model, 0.0, INFINITY, 1.0 + (double)draw(&random, 1000));
    }
    for (int32_t i = 0; i < 2 * SIDE; i++) {
        (void)eplb_ilp_add_row(model, 1.0, 1.0);
        for (int32_t k = 0; k < SIDE; k++) {
            int32_t column = i < SIDE ? i * SIDE + k : k * SIDE + i - SIDE;
            eplb_ilp_add_entry(model, i, column, 1.0);
        }
    }
}

/* More iterations than one slice has, and a proof of the optimum in own arithmetic. */
static void duals_of_a_long_solve_prove_its_optimum(void **state)
{
    (void)state;
    eplb_ilp_model model = new_model(NULL);
    add_assignment(&model);
    double values[SIDE * SIDE];
    double duals[2 * SIDE];
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    eplb_ilp_solution solution = {.values = values, .duals = duals};
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, NULL), NULL);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    double sum = 0.0;
    for (int32_t i = 0; i < 2 * SIDE; i++) {
        sum += duals[i];
    }
    for (int32_t j = 0; j < SIDE * SIDE; j++) {
        assert_true(duals[j / SIDE] + duals[SIDE + j % SIDE] <= model.columns[j].cost + 1e-6);
    }
    assert_close(sum, solution.objective, 1e-6);
    limits.iterations = solution.iterations / 2;
    solution.has_values = false;
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, NULL), NULL);
    assert_int_equal(solution.outcome, EPLB_ILP_LIMIT);
    assert_int_equal(solution.iterations, limits.iterations);
    assert_false(solution.has_values);
    eplb_ilp_model_free(&model);
}

static void enough_ends_the_search(void **state)
{
    (void)state;
    hard_program hard;
    hard_program_init(&hard, NULL);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.enough = hard.dealt - 0.1;
    eplb_ilp_solution solution = solve_hard(&hard, &limits);
    assert_int_equal(solution.outcome, EPLB_ILP_LIMIT);
    assert_true(solution.objective <= limits.enough);
    assert_true(solution.bound < solution.objective - 0.01);
    limits.enough = solution.objective;
    eplb_ilp_solution again = solve_hard(&hard, &limits);
    assert_int_equal(again.outcome, EPLB_ILP_LIMIT);
    assert_int_equal(again.iterations, 0);
    eplb_ilp_model_free(&hard.model);
}

TEST_MAIN(cmocka_unit_test(linear_program_has_its_known_optimum_and_duals),
          cmocka_unit_test(dual_of_a_lower_bound_is_the_price_of_raising_it),
          cmocka_unit_test(equality_rows_and_free_columns_are_kept),
          cmocka_unit_test(infeasible_and_unbounded_programs_are_told_apart),
          cmocka_unit_test(integers_can_be_infeasible_or_unbounded_too),
          cmocka_unit_test(without_rows_each_column_goes_to_its_cheaper_bound),
          cmocka_unit_test(without_columns_only_the_rows_count),
          cmocka_unit_test(bounds_that_exclude_each_other_are_infeasible),
          cmocka_unit_test(bounds_of_integer_columns_go_inwards),
          cmocka_unit_test(random_integer_programs_end_at_what_enumeration_finds),
          cmocka_unit_test(start_is_given_up_for_a_better_one_only),
          cmocka_unit_test(start_that_breaks_a_rule_is_ignored),
          cmocka_unit_test(what_is_no_model_is_refused_with_its_place),
          cmocka_unit_test(duals_of_a_long_solve_prove_its_optimum),
          cmocka_unit_test(enough_ends_the_search))
