/* SPDX-License-Identifier: MIT */
/* Small layers whose fewest copies are known (tests/data/cases/migration.json). */
#include "fewest.h"
#include "migration_cases.h"

#define NODES 5000000

static void for_each_case(void (*check)(const migration_case *c))
{
    cJSON *cases = read_migration_cases();
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        migration_case c = migration_case_of(object);
        print_message("%s\n", c.name);
        check(&c);
        free_migration_case(&c);
    }
    cJSON_Delete(cases);
}

static eplb_fewest_result solve(const migration_case *c, double target, int64_t nodes)
{
    eplb_placement *placement;
    eplb_fewest_task task = task_of(c->current, c->load, c->cluster, target);
    eplb_fewest_result result = solve_fewest(&task, nodes, &placement);
    eplb_placement_destroy(&placement);
    return result;
}

static void check_fewest(const migration_case *c)
{
    eplb_fewest_result result = solve(c, c->target, NODES);
    assert_int_equal(result.stop, EPLB_STOP_OPTIMAL);
    if (c->fewest >= 0) {
        assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
        assert_int_equal(result.copies, c->fewest);
    } else {
        assert_int_equal(result.verdict, EPLB_FEWEST_IMPOSSIBLE);
        assert_true(result.imbalance > c->target);
    }
}

static void fewest_copies_of_small_layers_are_found_with_proof(void **state)
{
    (void)state;
    for_each_case(check_fewest);
}

/* The best that an impossible target's answer reaches is possible, and nothing less is. */
static void check_best_reachable(const migration_case *c)
{
    if (c->fewest >= 0) {
        return;
    }
    eplb_fewest_result best = solve(c, c->target, NODES);
    assert_close(best.imbalance_at_least, best.imbalance, 1e-11);
    eplb_fewest_result same = solve(c, best.imbalance, NODES);
    assert_int_equal(same.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(same.copies, best.copies);
    assert_int_equal(solve(c, best.imbalance * (1.0 - 1e-9), NODES).verdict,
                     EPLB_FEWEST_IMPOSSIBLE);
}

static void impossible_target_gets_the_best_reachable_with_fewest_copies(void **state)
{
    (void)state;
    for_each_case(check_best_reachable);
}

/* Whatever the budget: fewer copies than proven are never claimed, nor a wrong verdict. */
static void check_small_budgets(const migration_case *c)
{
    for (int64_t nodes = 0; nodes <= 4096; nodes = 2 * nodes + 1) {
        eplb_fewest_result result = solve(c, c->target, nodes);
        assert_true(result.nodes <= nodes);
        if (c->fewest < 0) {
            assert_true(result.verdict == EPLB_FEWEST_IMPOSSIBLE ||
                        result.verdict == EPLB_FEWEST_NOT_REACHED);
        } else {
            assert_int_not_equal(result.verdict, EPLB_FEWEST_IMPOSSIBLE);
            assert_true(result.copies_at_least <= c->fewest);
        }
    }
}

static void small_budgets_make_no_wrong_claims(void **state)
{
    (void)state;
    for_each_case(check_small_budgets);
}

TEST_MAIN(cmocka_unit_test(fewest_copies_of_small_layers_are_found_with_proof),
          cmocka_unit_test(impossible_target_gets_the_best_reachable_with_fewest_copies),
          cmocka_unit_test(small_budgets_make_no_wrong_claims))
