/* SPDX-License-Identifier: MIT */
/* eplb plan --ilp: exact optimisation after the search, in a command built with GLPK. */
#include "run_json.h"

#define SMALL "plan --load small.jsonl --experts 8 --gpus 4 --slots 12 --dense-layers none"
#define LARGE "plan --load large.jsonl --experts 48 --gpus 24 --slots 48 --dense-layers none"
#define FEW_NODES " --ilp-nodes 2000" /* for valgrind's sake */

static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 4 --experts 8 --steps 2 --tokens 500 --topk 2 --seed 3 "
                   "--out small.jsonl");
    run_ok(*state, "synth --layers 2 --experts 48 --steps 2 --tokens 500 --topk 4 --seed 3 "
                   "--out large.jsonl");
    return 0;
}

static double mean_of(const cJSON *plan, const char *what)
{
    return json_number(json_member(plan, what), "mean");
}

static void assert_proven(const char *directory, const char *line)
{
    cJSON *plan = run_json(directory, line, 0);
    const cJSON *ilp = json_member(plan, "ilp");
    assert_true(json_number(ilp, "optimal_layers") == 4.0);
    assert_true(json_number(ilp, "nodes") > 0.0);
    assert_string_equal(json_text(plan, "stopped_by"), "optimal");
    assert_true(cJSON_IsTrue(json_member(plan, "valid")));
    double after = mean_of(plan, "imbalance_after");
    assert_close(mean_of(plan, "lower_bound"), after, 1e-9);
    assert_true(json_number(ilp, "imbalance_without_mean") >= after);
    assert_true(json_number(ilp, "lower_bound_without_mean") < after - 1e-6);
    cJSON_Delete(plan);
}

static void small_layers_are_proven_optimal(void **state)
{
    assert_proven(*state, SMALL " --slices 1 --ilp auto --json");
    assert_proven(*state, SMALL " --slices 1 --ilp on --json");
    assert_proven(*state, SMALL " --slices 2 --ilp auto --json");
    assert_proven(*state, SMALL " --slices 2 --objective max-of-max --ilp auto --json");
}

/* Layer by layer, and what the plan says of the search alone is what the search alone finds. */
static void assert_not_worse(const char *directory, const char *plan, const char *ilp)
{
    char line[256];
    snprintf(line, sizeof(line), "%s --json", plan);
    cJSON *off = run_json(directory, line, 0);
    snprintf(line, sizeof(line), "%s --ilp %s --json", plan, ilp);
    cJSON *on = run_json(directory, line, 0);
    const cJSON *without = json_member(off, "per_layer")->child;
    const cJSON *with = json_member(on, "per_layer")->child;
    for (; without != NULL && with != NULL; without = without->next, with = with->next) {
        double after = json_number(with, "imbalance_after");
        double bound = json_number(with, "lower_bound");
        assert_true(after <= json_number(without, "imbalance_after"));
        assert_true(bound >= json_number(without, "lower_bound"));
        assert_true(bound <= after * (1.0 + 1e-9));
    }
    assert_true(without == NULL && with == NULL);
    const cJSON *gain = json_member(on, "ilp");
    assert_close(json_number(gain, "imbalance_without_mean"), mean_of(off, "imbalance_after"),
                 1e-12);
    assert_close(json_number(gain, "lower_bound_without_mean"), mean_of(off, "lower_bound"), 1e-12);
    cJSON_Delete(off);
    cJSON_Delete(on);
}

static void no_layer_is_worse_than_without(void **state)
{
    assert_not_worse(*state, SMALL, "auto");
    assert_not_worse(*state, SMALL, "on");
    assert_not_worse(*state, SMALL " --slices 1 --pin all:3:1 --max-replicas 2", "on");
    assert_not_worse(*state, LARGE, "auto");
    assert_not_worse(*state, LARGE " --slices 1 --effort 1", "on" FEW_NODES);
    assert_not_worse(*state, LARGE " --effort 1", "on" FEW_NODES);
}

static void text_says_what_is_gained(void **state)
{
    run_result result = run_line(*state, SMALL " --slices 1 --ilp auto");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "\nExact optimisation: mean imbalance from 1.");
    assert_contains(result.out, ", mean bound from 1.");
    assert_contains(result.out, ", 4 of 4 layers proven optimal (");
    assert_contains(result.out, "Algorithm search, stopped by optimal.\n");
    run_release(&result);
}

static void without_nodes_the_plan_is_that_of_the_search(void **state)
{
    run_result result = run_line(*state, SMALL " --slices 1 --ilp on --ilp-nodes 0 --out none");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "\nExact optimisation: mean imbalance as before, mean bound as "
                                "before, 0 of 4 layers proven optimal (0 nodes).\n");
    run_release(&result);
    run_ok(*state, SMALL " --slices 1 --out off");
    run_ok(*state, SMALL " --slices 1 --ilp on --out on");
    assert_true(same_files(*state, "off", "none"));
    assert_false(same_files(*state, "off", "on"));
}

static void auto_leaves_large_layers_alone(void **state)
{
    cJSON *plan = run_json(*state, LARGE " --slices 1 --ilp auto --out auto --json", 0);
    assert_true(json_number(json_member(plan, "ilp"), "nodes") == 0.0);
    cJSON_Delete(plan);
    run_ok(*state, LARGE " --slices 1 --out off");
    assert_true(same_files(*state, "off", "auto"));
}

static void without_the_option_nothing_is_said(void **state)
{
    cJSON *plan = run_json(*state, SMALL " --json", 0);
    assert_true(cJSON_IsNull(json_member(plan, "ilp")));
    cJSON_Delete(plan);
    run_result result = run_line(*state, SMALL);
    assert_null(strstr(result.out, "Exact"));
    run_release(&result);
}

static void threads_do_not_change_a_byte(void **state)
{
    static const char *const plans[] = {SMALL " --ilp auto", SMALL " --ilp on",
                                        LARGE " --slices 1 --effort 1 --ilp on" FEW_NODES};
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        char line[256];
        snprintf(line, sizeof(line), "%s --threads 1 --out one", plans[i]);
        run_ok(*state, line);
        snprintf(line, sizeof(line), "%s --threads 8 --out eight", plans[i]);
        run_ok(*state, line);
        assert_true(same_files(*state, "one", "eight"));
    }
}

static void the_same_load_again_copies_nothing(void **state)
{
    static const char *const plans[] = {SMALL " --ilp auto", SMALL " --ilp on",
                                        SMALL " --slices 1 --ilp auto",
                                        LARGE " --slices 1 --effort 1 --ilp on" FEW_NODES};
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        char line[256];
        snprintf(line, sizeof(line), "%s --out map", plans[i]);
        run_ok(*state, line);
        snprintf(line, sizeof(line), "%s --current map --out again --detailed-exitcode --json",
                 plans[i]);
        cJSON *plan = run_json(*state, line, 0);
        assert_true(json_number(plan, "copies") == 0.0);
        cJSON_Delete(plan);
        assert_true(same_files(*state, "map", "again"));
    }
}

#define WITH_LOADS(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(WITH_LOADS(small_layers_are_proven_optimal), WITH_LOADS(no_layer_is_worse_than_without),
          WITH_LOADS(text_says_what_is_gained),
          WITH_LOADS(without_nodes_the_plan_is_that_of_the_search),
          WITH_LOADS(auto_leaves_large_layers_alone),
          WITH_LOADS(without_the_option_nothing_is_said), WITH_LOADS(threads_do_not_change_a_byte),
          WITH_LOADS(the_same_load_again_copies_nothing))
