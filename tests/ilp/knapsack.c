/* SPDX-License-Identifier: MIT */
/* The planner's own multiple-choice knapsack against the same as an integer program. */
#include "programs.h"

#include "planner/knapsack.h"

enum { GROUPS = 24, CHOICES = 9, SEEDS = 12 };

typedef struct instance {
    eplb_choice choices[GROUPS * CHOICES];
    int32_t first[GROUPS + 1];
    int64_t capacity;
} instance;

/* What slots do for layers: ever less, with some noise, from a skew that differs. */
static instance draw_instance(uint64_t *random)
{
    instance drawn = {.capacity = 0};
    for (int32_t g = 0; g < GROUPS; g++) {
        double skew = 0.1 + draw(random, 1000) / 500.0;
        int64_t fewest = 20 + draw(random, 8);
        drawn.first[g] = g * CHOICES;
        drawn.capacity += fewest + 3 + draw(random, 12);
        for (int32_t c = 0; c < CHOICES; c++) {
            drawn.choices[g * CHOICES + c] =
                (eplb_choice){.slots = fewest + c * (2 + (int32_t)draw(random, 3)),
                              .cost = 1.0 + skew / (1.0 + c) + draw(random, 1000) / 20000.0};
        }
    }
    drawn.first[GROUPS] = GROUPS * CHOICES;
    return drawn;
}

static void add_knapsack(eplb_ilp_model *model, const instance *drawn)
{
    int32_t room = eplb_ilp_add_row(model, -INFINITY, (double)drawn->capacity);
    for (int32_t g = 0; g < GROUPS; g++) {
        int32_t once = eplb_ilp_add_row(model, 1.0, 1.0);
        for (int32_t c = drawn->first[g]; c < drawn->first[g + 1]; c++) {
            int32_t column = eplb_ilp_add_binary(model, drawn->choices[c].cost);
            eplb_ilp_add_entry(model, once, column, 1.0);
            eplb_ilp_add_entry(model, room, column, (double)drawn->choices[c].slots);
        }
    }
}

static double solve_by_program(const instance *drawn)
{
    double values[GROUPS * CHOICES];
    eplb_ilp_model model = new_model(NULL);
    add_knapsack(&model, drawn);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    eplb_ilp_solution solution = {.values = values};
    eplb_error error;
    assert_ok(eplb_ilp_solve(&model, &limits, &solution, &error), &error);
    assert_int_equal(solution.outcome, EPLB_ILP_OPTIMAL);
    eplb_ilp_model_free(&model);
    return solution.objective;
}

static double solve_by_own_code(const instance *drawn)
{
    eplb_hooks hooks = eplb_hooks_resolve(NULL);
    int32_t chosen[GROUPS];
    eplb_error error;
    assert_ok(eplb_knapsack_solve(&hooks, drawn->choices, drawn->first, GROUPS, drawn->capacity,
                                  chosen, &error),
              &error);
    int64_t slots = 0;
    double cost = 0.0;
    for (int32_t g = 0; g < GROUPS; g++) {
        slots += drawn->choices[drawn->first[g] + chosen[g]].slots;
        cost += drawn->choices[drawn->first[g] + chosen[g]].cost;
    }
    assert_true(slots <= drawn->capacity);
    return cost;
}

static void both_ways_have_the_same_optimum(void **state)
{
    (void)state;
    uint64_t random = 41;
    for (int i = 0; i < SEEDS; i++) {
        instance drawn = draw_instance(&random);
        assert_close(solve_by_own_code(&drawn), solve_by_program(&drawn), 1e-6);
    }
}

TEST_MAIN(cmocka_unit_test(both_ways_have_the_same_optimum))
