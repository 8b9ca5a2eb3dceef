/* SPDX-License-Identifier: MIT */
/* Small layers whose fewest copies are known (tests/data/cases/migration.json). */
#include "fewest.h"

#include <cjson/cJSON.h>

#define NODES 5000000

typedef struct migration_case {
    const char *name;
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current;
    double target;
    int32_t fewest; /* -1: impossible */
} migration_case;

static const cJSON *member(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(item);
    return item;
}

static eplb_placement *read_current(const cJSON *gpus, const eplb_cluster *cluster, int32_t experts)
{
    int32_t row[64];
    int32_t slots = 0;
    const cJSON *gpu;
    const cJSON *expert;
    cJSON_ArrayForEach(gpu, gpus)
    {
        cJSON_ArrayForEach(expert, gpu)
        {
            assert_true(slots < 64);
            row[slots++] = expert->valueint;
        }
    }
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, cluster, 1, experts, NULL), NULL);
    assert_ok(eplb_placement_set_row(current, 0, row, NULL), NULL);
    return current;
}

static migration_case read_case(const cJSON *object)
{
    double load[64];
    int32_t experts = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, member(object, "load"))
    {
        assert_true(experts < 64);
        load[experts++] = item->valuedouble;
    }
    const cJSON *gpus = member(object, "current");
    const cJSON *fewest = member(object, "fewest_new_copies");
    migration_case c = {
        .name = member(object, "name")->valuestring,
        .load = load_of(load, 1, experts),
        .cluster = cluster_of(cJSON_GetArraySize(gpus), cJSON_GetArraySize(gpus->child), 0),
        .target = member(object, "target_imbalance")->valuedouble,
        .fewest = cJSON_IsNull(fewest) ? -1 : fewest->valueint,
    };
    c.current = read_current(gpus, c.cluster, experts);
    return c;
}

static void free_case(migration_case *c)
{
    eplb_load_destroy(&c->load);
    eplb_cluster_destroy(&c->cluster);
    eplb_placement_destroy(&c->current);
}

static void for_each_case(void (*check)(const migration_case *c))
{
    char *text = test_read_file(test_data("cases/migration.json").text, NULL);
    cJSON *cases = cJSON_Parse(text);
    free(text);
    assert_int_equal(cJSON_GetArraySize(cases), 9);
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        migration_case c = read_case(object);
        print_message("%s\n", c.name);
        check(&c);
        free_case(&c);
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
