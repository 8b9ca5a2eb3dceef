/* SPDX-License-Identifier: MIT */
/* Assignments against all permutations. */
#include "instance.h"

#include "model/assignment.h"

#define MOST_ROWS 6

static int64_t best_from(const int64_t *cost, int32_t n, int32_t row, uint32_t used)
{
    if (row == n) {
        return 0;
    }
    int64_t best = INT64_MAX;
    for (int32_t j = 0; j < n; j++) {
        if ((used >> j & 1u) == 0) {
            int64_t sum = cost[row * n + j] + best_from(cost, n, row + 1, used | 1u << j);
            best = sum < best ? sum : best;
        }
    }
    return best;
}

static void assignment_costs_as_little_as_any_permutation(void **state)
{
    (void)state;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    FOR_EACH_SEED(seed, 300)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        int32_t n = draw(&random, 0, MOST_ROWS);
        int64_t cost[MOST_ROWS * MOST_ROWS];
        for (int32_t i = 0; i < n * n; i++) {
            cost[i] = draw(&random, -3, 9);
        }
        int32_t column[MOST_ROWS];
        assert_ok(eplb_assign(&hooks, n, cost, column, NULL), NULL);
        uint32_t used = 0;
        int64_t sum = 0;
        for (int32_t i = 0; i < n; i++) {
            assert_true(column[i] >= 0 && column[i] < n);
            used |= 1u << column[i];
            sum += cost[i * n + column[i]];
        }
        assert_int_equal(used, (1u << n) - 1u);
        assert_int_equal(sum, best_from(cost, n, 0, 0));
    }
}

static eplb_status assign(const eplb_hooks *hooks, void *context)
{
    int32_t column[2];
    return eplb_assign(hooks, 2, context, column, NULL);
}

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    int64_t cost[4] = {1, 2, 3, 5};
    test_each_failing_allocation(assign, cost);
}

TEST_MAIN(seeded_test(assignment_costs_as_little_as_any_permutation),
          cmocka_unit_test(each_failing_allocation_is_reported))
