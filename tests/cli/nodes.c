/* SPDX-License-Identifier: MIT */
/* `eplb plan` and nodes: groups that are kept on them, tokens that leave them. */
#include "run_json.h"

#define PLAN "plan --load log.jsonl --gpus 4 --redundant 8 --dense-layers none"
#define NODES PLAN " --gpus-per-node 2"

/* A log of 3 layers x 16 experts. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --out log.jsonl");
    return 0;
}

static double mean_of(const cJSON *plan, const char *name)
{
    return json_number(json_member(plan, name), "mean");
}

static void hierarchy_says_what_it_costs(void **state)
{
    cJSON *plan = run_json(*state, NODES " --hierarchy groups --groups 4 --json", 0);
    cJSON *free_plan = run_json(*state, NODES " --json", 0);
    assert_string_equal(json_text(plan, "hierarchy"), "groups");
    assert_true(json_number(plan, "groups") == 4.0);
    assert_true(json_number(plan, "nodes") == 2.0);
    assert_true(mean_of(plan, "imbalance_without_hierarchy") ==
                mean_of(free_plan, "imbalance_after"));
    assert_true(mean_of(plan, "imbalance_after") >= mean_of(free_plan, "imbalance_after"));
    assert_string_equal(json_text(free_plan, "hierarchy"), "none");
    assert_true(cJSON_IsNull(json_member(free_plan, "imbalance_without_hierarchy")));
    cJSON_Delete(free_plan);
    cJSON_Delete(plan);
    run_result result = run_line(*state, NODES " --hierarchy groups --groups 4");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "without groups");
    assert_contains(result.out, "no placement that keeps the groups can be better");
    run_release(&result);
}

static void hierarchy_keeps_each_group_on_one_node(void **state)
{
    run_ok(*state, NODES " --hierarchy groups --groups 4 --out map --to vllm");
    char *text = test_read_file(test_join(*state, "map").text, NULL);
    cJSON *map = cJSON_Parse(text);
    assert_int_equal(cJSON_GetArraySize(map), 3);
    for (int l = 0; l < 3; l++) {
        const cJSON *row = cJSON_GetArrayItem(map, l);
        int node_of_group[4] = {-1, -1, -1, -1};
        assert_int_equal(cJSON_GetArraySize(row), 24);
        for (int s = 0; s < 24; s++) {
            int group = cJSON_GetArrayItem(row, s)->valueint / 4;
            assert_true(node_of_group[group] == -1 || node_of_group[group] == s / 12);
            node_of_group[group] = s / 12;
        }
    }
    cJSON_Delete(map);
    free(text);
    cJSON *again = run_json(
        *state, NODES " --hierarchy groups --groups 4 --current map --json --detailed-exitcode", 0);
    assert_true(json_number(again, "copies") == 0.0);
    cJSON_Delete(again);
}

/* Without a look at traffic nothing but the report changes. */
static void nodes_alone_change_no_placement(void **state)
{
    run_ok(*state, PLAN " --out one");
    run_ok(*state, NODES " --out two");
    run_ok(*state, NODES " --node-cost 1 --out three");
    assert_true(same_files(*state, "one", "two"));
    assert_false(same_files(*state, "one", "three"));
}

static void traffic_between_nodes_is_counted(void **state)
{
    cJSON *plan = run_json(*state, NODES " --json --out map", 0);
    double after = json_number(plan, "cross_node_after");
    assert_true(after > 0.0 && after < 0.5);
    assert_true(cJSON_IsNull(json_member(plan, "cross_node_before")));
    assert_true(cJSON_IsNull(json_member(plan, "node_cost")));
    assert_null(cJSON_GetObjectItemCaseSensitive(plan, "node_choices"));
    cJSON_Delete(plan);
    plan = run_json(*state, NODES " --current map --json", 0);
    assert_true(json_number(plan, "cross_node_before") == after);
    cJSON_Delete(plan);
    plan = run_json(*state, PLAN " --json", 0);
    assert_true(cJSON_IsNull(json_member(plan, "cross_node_after")));
    cJSON_Delete(plan);
    run_result result = run_line(*state, NODES);
    assert_contains(result.out, " % of (token, expert) pairs leave their node (2 nodes");
    run_release(&result);
    result = run_line(*state, PLAN);
    assert_null(strstr(result.out, "leave their node"));
    run_release(&result);
}

static void node_cost_shows_balance_against_traffic(void **state)
{
    cJSON *plan = run_json(*state, NODES " --node-cost 0.5 --json", 0);
    cJSON *plain = run_json(*state, NODES " --json", 0);
    const cJSON *choices = json_member(plan, "node_choices");
    const cJSON *first = cJSON_GetArrayItem(choices, 0);
    const cJSON *last = cJSON_GetArrayItem(choices, cJSON_GetArraySize(choices) - 1);
    assert_int_equal(cJSON_GetArraySize(choices), 7);
    assert_true(json_number(plan, "node_cost") == 0.5);
    assert_true(cJSON_IsFalse(json_member(first, "exchanges")));
    assert_true(json_number(first, "imbalance_mean") == mean_of(plain, "imbalance_after"));
    assert_true(fabs(json_number(first, "cross_node") - json_number(plain, "cross_node_after")) <=
                1e-12);
    assert_true(json_number(last, "tolerance") == 0.05);
    assert_true(json_number(last, "cross_node") < json_number(first, "cross_node"));
    assert_true(mean_of(plan, "imbalance_after") + 0.5 * json_number(plan, "cross_node_after") <
                mean_of(plain, "imbalance_after") + 0.5 * json_number(plain, "cross_node_after"));
    cJSON_Delete(plain);
    cJSON_Delete(plan);
    run_result result = run_line(*state, NODES " --node-cost 0.5");
    assert_contains(result.out, "Balance against traffic");
    assert_contains(result.out, "and swaps within 0.1 %");
    assert_contains(result.out, "the plan, at cost 0.5");
    run_release(&result);
}

#define LOGGED(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(LOGGED(hierarchy_says_what_it_costs), LOGGED(hierarchy_keeps_each_group_on_one_node),
          LOGGED(nodes_alone_change_no_placement), LOGGED(traffic_between_nodes_is_counted),
          LOGGED(node_cost_shows_balance_against_traffic))
