/* SPDX-License-Identifier: MIT */
/* eplb plan --layer-budget: layers with different numbers of slots. */
#include "run_json.h"

#define LOAD "log.jsonl"
#define PLAN "plan --load log.jsonl --experts 16 --gpus 8 --dense-layers none"
#define ADAPTIVE PLAN " --layer-budget adaptive --effort 2 --slices 1"

enum { LAYERS = 8 };

/* A log of 8 layers x 16 experts. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 8 --experts 16 --steps 4 --tokens 2000 --topk 2 --out " LOAD);
    return 0;
}

/* 17 slots of each GPU for 8 layers: 2 in each layer, and one that equal layers leave unused. */
static void memory_is_shared_by_layers_and_used_to_the_last_slot(void **state)
{
    cJSON *plan = run_json(*state, ADAPTIVE " --gpu-memory 17999 --expert-bytes 1k --json", 0);
    const cJSON *budget = json_member(plan, "layer_budget");
    assert_true(json_number(budget, "budget_slots") == 136.0);
    assert_true(json_number(budget, "used_slots") == 136.0);
    assert_true(json_number(budget, "uniform_slots") == 16.0);
    assert_true(cJSON_IsFalse(json_member(budget, "uniform")));
    assert_true(cJSON_IsNull(json_member(plan, "slots")));
    assert_true(cJSON_IsTrue(json_member(plan, "valid")));
    double slots = 0.0;
    double sum = 0.0;
    double uniform = 0.0;
    const cJSON *row;
    cJSON_ArrayForEach(row, json_member(plan, "per_layer"))
    {
        slots += json_number(row, "slots");
        sum += json_number(row, "imbalance_after");
        uniform += json_number(row, "imbalance_uniform");
    }
    assert_true(slots == 136.0);
    assert_close(json_number(budget, "sum"), sum, 1e-9);
    assert_close(json_number(budget, "sum_uniform"), uniform, 1e-9);
    assert_true(sum < 0.8 * uniform);
    const cJSON *bytes = json_member(plan, "weight_bytes_per_gpu");
    assert_true(json_number(bytes, "min") == 17000.0);
    assert_true(json_number(bytes, "max") == 17000.0);
    cJSON_Delete(plan);
}

static void uniform_is_the_default_and_has_no_budget(void **state)
{
    cJSON *plan = run_json(*state, PLAN " --slots 24 --json --out map", 0);
    assert_true(cJSON_IsNull(json_member(plan, "layer_budget")));
    assert_true(json_number(json_member(plan, "per_layer")->child, "slots") == 24.0);
    cJSON_Delete(plan);
    run_ok(*state, PLAN " --slots 24 --layer-budget uniform --out same");
    assert_true(same_files(*state, "map", "same"));
}

static void text_says_what_is_gained_and_which_layers_have_the_slots(void **state)
{
    run_result result = run_line(*state, ADAPTIVE " --slots 20");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "8 layers of 16 experts on 8 GPUs x 2 to 3 slots (");
    assert_contains(result.out, "Memory for 160 slots of 8 layers, 160 used.\n"
                                "Sum of the layers' imbalances: ");
    assert_contains(result.out, " with 16 slots in each, ");
    assert_contains(result.out, "         slots     layers   which\n");
    assert_contains(result.out, "no placement in these slots can be better");
    run_release(&result);
}

static void text_says_where_nothing_is_gained(void **state)
{
    test_path path = test_join(*state, "even.csv");
    test_write_text(path.text, "layer,expert,tokens\n0,0,5\n0,1,5\n0,2,5\n0,3,5\n"
                               "1,0,5\n1,1,5\n1,2,5\n1,3,5\n");
    run_result result = run_line(*state, "plan --load even.csv --gpus 2 --slots 4 --layer-budget "
                                         "adaptive --out map");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "Nothing is gained by different numbers of slots in layers: each "
                                "has 4, and the sum of the layers' imbalances stays 2.0000.\n");
    run_release(&result);
    run_ok(*state, "validate map --gpus 2"); /* SGLang's format carries it */
}

/* As many slots, the same ones: the placement in force is one of equal layers. Layer 1 has no load,
 * and its experts stay only where the whole placement does. */
static void equal_layers_in_force_are_no_gain(void **state)
{
    test_path path = test_join(*state, "half.csv");
    test_write_text(path.text, "layer,expert,tokens\n0,0,50\n0,1,5\n0,2,5\n0,3,5\n"
                               "1,0,0\n1,1,0\n1,2,0\n1,3,0\n");
    run_ok(*state, "plan --load half.csv --gpus 2 --slots 6 --out map");
    run_result result = run_line(*state, "plan --load half.csv --gpus 2 --slots 6 --layer-budget "
                                         "adaptive --current map");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "Nothing is gained by different numbers of slots in layers: each "
                                "has 6, and the sum of the layers' imbalances stays 2.0000.\n");
    assert_contains(result.out, "1 layer without any load: current placement kept, not scored.\n");
    run_release(&result);
    path = test_join(*state, "map.txt");
    test_write_text(path.text, "2 2 4\n1 0 1 0\n1 0 1 0\n0 1 0 1\n0 1 0 1\n");
    result = run_line(*state, "plan --load half.csv --gpus 2 --slots 6 --layer-budget adaptive "
                              "--current map.txt");
    assert_contains(result.out, "1 layer without any load: even spread, not scored.\n");
    run_release(&result);
}

static void text_says_where_equal_layers_do_not_fit(void **state)
{
    run_result result = run_line(*state, ADAPTIVE
                                 " --gpu-memory 20k,20k,20k,20k,20k,20k,14k,14k --expert-bytes 1k");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "The memory does not hold the experts in layers with equally many "
                                "slots.\n");
    run_release(&result);
    result = run_line(*state, ADAPTIVE " --gpu-memory 15k --expert-bytes 1k");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: layer budget: 120 slots of all layers do not hold 16 "
                                    "experts of 8 layers: they need 128\n");
    run_release(&result);
    result = run_line(*state, ADAPTIVE " --slots 31 --min-replicas 2");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: layer budget: 248 slots of all layers do not hold 2 "
                                    "replicas of each of 16 experts of 8 layers: they need 256\n");
    run_release(&result);
}

static void only_omni_carries_layers_that_differ(void **state)
{
    run_result result = run_line(*state, ADAPTIVE " --slots 20 --out map");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "eplb: sglang cannot carry layers with different numbers of "
                                "slots: layer 0 has ");
    assert_contains(result.err, "; omni can\n");
    assert_false(has_file(*state, "map"));
    run_release(&result);
    run_ok(*state, ADAPTIVE " --slots 20 --out map --to omni");
    result = run_line(*state, "validate map");
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.out, "valid: 8 layers of 16 experts on 8 GPUs x 2 to 3 slots\n");
    run_release(&result);
}

/* Without GLPK there is nothing to tell. */
static void exact_optimisation_is_compared_in_the_same_slots(void **state)
{
    run_result result = run_line(*state, ADAPTIVE " --slots 20 --ilp auto --ilp-nodes 1");
    assert_int_equal(result.exit_code, 0);
    if (strstr(result.err, "built without GLPK") == NULL) {
        assert_contains(result.out, "\nExact optimisation in these slots: mean imbalance ");
    }
    run_release(&result);
}

static void standard_output_is_called_so(void **state)
{
    run_result result = run_line(*state, ADAPTIVE " --slots 20 --out - --to omni");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.err, "Written to standard output.\n");
    run_release(&result);
}

static void the_same_load_again_proposes_nothing(void **state)
{
    run_ok(*state, ADAPTIVE " --slots 20 --out map --to omni");
    cJSON *plan =
        run_json(*state, ADAPTIVE " --slots 20 --current map --json --detailed-exitcode", 0);
    assert_true(json_number(plan, "copies") == 0.0);
    assert_true(cJSON_IsFalse(json_member(plan, "proposes_changes")));
    cJSON_Delete(plan);
    /* In equal layers again: slots close and open, which is a change, with or without copies. */
    plan = run_json(*state, PLAN " --slots 24 --current map --json --detailed-exitcode", 10);
    assert_true(json_number(plan, "copies") > 0.0);
    cJSON_Delete(plan);
    run_result result = run_line(*state, PLAN " --slots 24 --current map --max-copies 3");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "the current placement's layers have different slots");
    run_release(&result);
}

static void reports_know_equal_layers_only(void **state)
{
    run_ok(*state, ADAPTIVE " --slots 20 --out map --to omni");
    run_result result = run_line(*state, "report --load log.jsonl --current map --topk 2 "
                                         "--dense-layers none");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: map: its layers have different numbers of slots: eplb "
                                    "report knows equal layers only\n");
    run_release(&result);
    run_ok(*state, PLAN " --slots 24 --out even --to omni");
    run_ok(*state, "report --load log.jsonl --current even --topk 2 --dense-layers none");
}

static void what_needs_equal_layers_is_a_wrong_use(void **state)
{
    static const char *const options[][2] = {
        {"--redundant 4", "goes with --gpu-memory or --slots"},
        {"--slots 16 --algorithm eplb", "adaptive and --algorithm eplb exclude each other"},
        {"--slots 24 --algorithm weighted", "and --algorithm weighted exclude each other"},
        {"--slots 16 --gpus-per-node 4 --node-cost 1", "and --node-cost exclude each other"},
        {"--slots 16 --gpus-per-node 4 --hierarchy groups --groups 2",
         "and --hierarchy groups exclude each other"},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        char line[256];
        snprintf(line, sizeof(line), ADAPTIVE " %s", options[i][0]);
        run_result result = run_line(*state, line);
        assert_int_equal(result.exit_code, 2);
        assert_contains(result.err, options[i][1]);
        run_release(&result);
    }
}

/* 35 slots on the seven GPUs that live. */
static void rules_and_dead_gpus_go_with_it(void **state)
{
    cJSON *plan = run_json(*state,
                           ADAPTIVE " --slots 40 --pin all:3:5 --dead-gpus 2 --min-replicas 2 "
                                    "--gpus-per-node 4 --spread-nodes --json",
                           0);
    const cJSON *budget = json_member(plan, "layer_budget");
    assert_true(json_number(plan, "live_gpus") == 7.0);
    assert_true(json_number(budget, "budget_slots") == 280.0);
    assert_true(json_number(json_member(budget, "slots_per_layer"), "min") >= 32.0);
    assert_true(json_number(plan, "lost_by_single_failure") == 0.0);
    assert_true(cJSON_IsTrue(json_member(plan, "valid")));
    cJSON_Delete(plan);
}

#define WITH_LOG(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(WITH_LOG(memory_is_shared_by_layers_and_used_to_the_last_slot),
          WITH_LOG(uniform_is_the_default_and_has_no_budget),
          WITH_LOG(text_says_what_is_gained_and_which_layers_have_the_slots),
          WITH_LOG(text_says_where_nothing_is_gained), WITH_LOG(equal_layers_in_force_are_no_gain),
          WITH_LOG(text_says_where_equal_layers_do_not_fit),
          WITH_LOG(only_omni_carries_layers_that_differ), WITH_LOG(standard_output_is_called_so),
          WITH_LOG(exact_optimisation_is_compared_in_the_same_slots),
          WITH_LOG(the_same_load_again_proposes_nothing), WITH_LOG(reports_know_equal_layers_only),
          WITH_LOG(what_needs_equal_layers_is_a_wrong_use),
          WITH_LOG(rules_and_dead_gpus_go_with_it))
