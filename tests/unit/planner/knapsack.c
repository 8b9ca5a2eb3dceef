/* SPDX-License-Identifier: MIT */
/* The multiple-choice knapsack against all combinations, and the shares of GPUs. */
#include "support.h"

#include <eplb/random.h>

#include "planner/knapsack.h"
#include "planner/share_slots.h"

enum { MOST_GROUPS = 6, MOST_CHOICES = 5, INSTANCES = 300 };

typedef struct instance {
    int32_t groups;
    int32_t first[MOST_GROUPS + 1];
    eplb_choice choices[MOST_GROUPS * MOST_CHOICES];
    int64_t capacity;
} instance;

/* Costs are multiples of 1/8, so that sums are exact and equal ones are common. */
static instance draw_instance(uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    instance drawn = {.groups = 1 + (int32_t)eplb_random_below(&random, MOST_GROUPS)};
    for (int32_t g = 0; g < drawn.groups; g++) {
        int32_t count = 1 + (int32_t)eplb_random_below(&random, MOST_CHOICES);
        drawn.first[g + 1] = drawn.first[g] + count;
        for (int32_t c = drawn.first[g]; c < drawn.first[g + 1]; c++) {
            drawn.choices[c].slots = (int64_t)eplb_random_below(&random, 12);
            drawn.choices[c].cost = (double)eplb_random_below(&random, 24) / 8.0;
        }
    }
    drawn.capacity = (int64_t)eplb_random_below(&random, (uint64_t)(8 * drawn.groups));
    return drawn;
}

/* The least cost, and the fewest slots for it, over all combinations; false when none fits. */
static bool best_of_all(const instance *drawn, double *cost, int64_t *slots)
{
    int32_t at[MOST_GROUPS] = {0};
    bool found = false;
    for (;;) {
        double sum = 0.0;
        int64_t used = 0;
        for (int32_t g = 0; g < drawn->groups; g++) {
            sum += drawn->choices[drawn->first[g] + at[g]].cost;
            used += drawn->choices[drawn->first[g] + at[g]].slots;
        }
        if (used <= drawn->capacity && (!found || sum < *cost || (sum == *cost && used < *slots))) {
            found = true;
            *cost = sum;
            *slots = used;
        }
        int32_t g = 0;
        while (g < drawn->groups && ++at[g] == drawn->first[g + 1] - drawn->first[g]) {
            at[g++] = 0;
        }
        if (g == drawn->groups) {
            return found;
        }
    }
}

static eplb_status solve(const instance *drawn, const eplb_hooks *hooks, int32_t *chosen,
                         eplb_error *error)
{
    return eplb_knapsack_solve(hooks, drawn->choices, drawn->first, drawn->groups, drawn->capacity,
                               chosen, error);
}

static void no_combination_is_cheaper(void **state)
{
    (void)state;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    int infeasible = 0;
    for (uint64_t seed = 0; seed < INSTANCES; seed++) {
        instance drawn = draw_instance(seed);
        int32_t chosen[MOST_GROUPS];
        double least = 0.0;
        int64_t fewest = 0;
        eplb_error error;
        if (!best_of_all(&drawn, &least, &fewest)) {
            assert_status(solve(&drawn, &hooks, chosen, &error), EPLB_ERROR_INFEASIBLE, &error);
            infeasible++;
            continue;
        }
        assert_ok(solve(&drawn, &hooks, chosen, &error), &error);
        double cost = 0.0;
        int64_t used = 0;
        for (int32_t g = 0; g < drawn.groups; g++) {
            assert_in_range(chosen[g], 0, drawn.first[g + 1] - drawn.first[g] - 1);
            cost += drawn.choices[drawn.first[g] + chosen[g]].cost;
            used += drawn.choices[drawn.first[g] + chosen[g]].slots;
        }
        assert_true(cost == least);
        assert_int_equal(used, fewest);
    }
    assert_true(infeasible > 10 && infeasible < INSTANCES / 2);
}

static void a_capacity_that_is_too_small_is_named(void **state)
{
    (void)state;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    static const eplb_choice choices[] = {{5, 1.0}, {4, 2.0}, {7, 0.0}};
    static const int32_t first[] = {0, 2, 3};
    int32_t chosen[2];
    eplb_error error;
    assert_status(eplb_knapsack_solve(&hooks, choices, first, 2, 10, chosen, &error),
                  EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "10 slots do not hold the smallest choices: they need 11");
    assert_ok(eplb_knapsack_solve(&hooks, choices, first, 2, 11, chosen, &error), &error);
    assert_int_equal(chosen[0], 1);
}

static void the_first_of_equal_choices_is_taken(void **state)
{
    (void)state;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    static const eplb_choice choices[] = {{9, 1.0}, {3, 1.0}, {3, 1.0}};
    static const int32_t first[] = {0, 3};
    int32_t chosen;
    assert_ok(eplb_knapsack_solve(&hooks, choices, first, 1, 100, &chosen, NULL), NULL);
    assert_int_equal(chosen, 1);
}

static eplb_status solve_drawn(const eplb_hooks *hooks, void *drawn)
{
    int32_t chosen[MOST_GROUPS];
    return solve(drawn, hooks, chosen, NULL);
}

static void every_failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    instance drawn = draw_instance(3);
    drawn.capacity = 100;
    test_each_failing_allocation(solve_drawn, &drawn);
}

enum { GPUS = 7 };

static bool share(const int64_t *room, int32_t gpus, int32_t slots, int32_t most, int32_t *shares)
{
    double key[GPUS];
    int32_t order[GPUS];
    int32_t sorted[GPUS];
    const eplb_share_scratch scratch = {.key = key, .order = order, .sorted = sorted};
    return eplb_share_slots(room, gpus, slots, most, &scratch, shares);
}

static void shares_follow_the_room_that_is_left(void **state)
{
    (void)state;
    static const int64_t room[4] = {30, 20, 0, 10};
    static const int32_t expected[4] = {3, 2, 0, 1};
    static const int32_t seven[4] = {4, 2, 0, 1};
    static const int32_t capped[4] = {2, 2, 0, 2};
    int32_t shares[4];
    assert_true(share(room, 4, 6, 256, shares));
    assert_memory_equal(shares, expected, sizeof(expected));
    assert_true(share(room, 4, 7, 256, shares));
    assert_memory_equal(shares, seven, sizeof(seven));
    assert_true(share(room, 4, 6, 2, shares));
    assert_memory_equal(shares, capped, sizeof(capped));
    assert_false(share(room, 4, 7, 2, shares));
    assert_false(share(room, 4, 61, 256, shares));
}

/* Layer after layer of any size: equal GPUs stay within one slot of each other to the last. */
static void equal_gpus_stay_equal_but_for_one_slot(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 1);
    for (int round = 0; round < 200; round++) {
        int64_t left = 0;
        int64_t room[GPUS];
        for (int32_t g = 0; g < GPUS; g++) {
            room[g] = 50;
            left += room[g];
        }
        while (left > 0) {
            int32_t slots = 1 + (int32_t)eplb_random_below(&random, 40);
            slots = slots < left ? slots : (int32_t)left;
            int32_t shares[GPUS];
            int32_t sum = 0;
            int64_t least = 50;
            int64_t most = 0;
            assert_true(share(room, GPUS, slots, 256, shares));
            for (int32_t g = 0; g < GPUS; g++) {
                assert_in_range(shares[g], slots / GPUS, (slots + GPUS - 1) / GPUS);
                room[g] -= shares[g];
                sum += shares[g];
                least = room[g] < least ? room[g] : least;
                most = room[g] > most ? room[g] : most;
            }
            assert_int_equal(sum, slots);
            assert_true(least >= 0 && most - least <= 1);
            left -= slots;
        }
    }
}

TEST_MAIN(cmocka_unit_test(no_combination_is_cheaper),
          cmocka_unit_test(a_capacity_that_is_too_small_is_named),
          cmocka_unit_test(the_first_of_equal_choices_is_taken),
          cmocka_unit_test(every_failed_allocation_leaks_nothing),
          cmocka_unit_test(shares_follow_the_room_that_is_left),
          cmocka_unit_test(equal_gpus_stay_equal_but_for_one_slot))
