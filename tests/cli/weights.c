/* SPDX-License-Identifier: MIT */
/* Replicas with weights: what plan says of them, and what it writes. */
#include "run_json.h"

#define PLAN "plan --load log.jsonl --slices 1 --gpus 4 --dense-layers none"

/* A log of 3 layers x 8 experts: weights do not balance the searched placement of layer 0, but that
 * of layer 2. */
static int setup(void **state)
{
    static const char log[] = "{\"step\":0,\"layer\":0,\"counts\":[4,3,982,48,489,51,166,0]}\n"
                              "{\"step\":0,\"layer\":1,\"counts\":[0,0,0,0,0,0,0,0]}\n"
                              "{\"step\":0,\"layer\":2,\"counts\":[10,10,10,900,10,10,10,40]}\n";
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    test_write_text(test_join(*state, "log.jsonl").text, log);
    return 0;
}

#define WITH_LOG(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

static double mean_of(const cJSON *plan, const char *name)
{
    return json_number(json_member(plan, name), "mean");
}

static void weighted_plan_is_balanced_and_says_what_an_even_split_gets(void **state)
{
    cJSON *plan = run_json(*state, PLAN " --slots 12 --algorithm weighted --json --out map", 0);
    assert_string_equal(json_text(plan, "algorithm"), "weighted");
    assert_close(mean_of(plan, "imbalance_with_weights"), 1.0, 1e-9);
    assert_true(mean_of(plan, "imbalance_after") > 1.01);
    double after = mean_of(plan, "imbalance_after");
    cJSON_Delete(plan);
    run_ok(*state, "validate map --gpus 4 --experts 8");
    plan = run_json(*state, PLAN " --slots 12 --json", 0);
    assert_true(mean_of(plan, "imbalance_after") < after);
    assert_true(mean_of(plan, "imbalance_with_weights") > 1.01);
    cJSON_Delete(plan);
}

static void searched_layers_stay_where_weights_balance_them(void **state)
{
    cJSON *searched = run_json(*state, PLAN " --slots 12 --json", 0);
    cJSON *weighted = run_json(*state, PLAN " --slots 12 --algorithm weighted --json", 0);
    const cJSON *before = json_member(searched, "per_layer");
    const cJSON *after = json_member(weighted, "per_layer");
    assert_true(json_number(cJSON_GetArrayItem(before, 2), "imbalance_after") ==
                json_number(cJSON_GetArrayItem(after, 2), "imbalance_after"));
    cJSON_Delete(searched);
    cJSON_Delete(weighted);
}

static void weighted_plan_of_its_own_result_moves_nothing(void **state)
{
    run_ok(*state, PLAN " --slots 12 --algorithm weighted --out map");
    cJSON *again =
        run_json(*state, PLAN " --slots 12 --algorithm weighted --current map --json", 0);
    assert_true(json_number(again, "copies") == 0.0);
    cJSON_Delete(again);
}

static void weighted_plan_warns_engines_that_split_evenly(void **state)
{
    run_result result = run_line(*state, PLAN " --slots 12 --algorithm weighted");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.err, "eplb: warning: engines that split an expert's tokens evenly");
    assert_contains(result.out, "if the engine could weight replicas");
    assert_contains(result.out, "Algorithm weighted");
    run_release(&result);
}

static void too_few_slots_for_weights_are_refused_with_what_is_enough(void **state)
{
    run_result result = run_line(*state, PLAN " --slots 8 --algorithm weighted --out map");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "at most 4 experts perfectly, not of 8: 12 slots (4 redundant)");
    assert_false(has_file(*state, "map"));
    run_release(&result);
}

/* The lines that begin with a layer's number and their weights' sum, of one expert or -1 for all.
 */
static int read_weights(const char *text, int layer, int expert, double *sum)
{
    int lines = 0;
    *sum = 0.0;
    for (const char *line = strchr(text, '\n'); line != NULL && line[1] != '\0';
         line = strchr(line + 1, '\n')) {
        int l;
        int slot;
        int gpu;
        int e;
        double weight;
        assert_int_equal(sscanf(line + 1, "%d,%d,%d,%d,%lf", &l, &slot, &gpu, &e, &weight), 5);
        assert_int_equal(gpu, slot / 3);
        if (l == layer && (expert < 0 || e == expert)) {
            lines++;
            *sum += weight;
        }
    }
    return lines;
}

static void weights_are_written_beside_the_placement(void **state)
{
    run_ok(*state, PLAN " --slots 12 --algorithm weighted --out map --weights weights.csv");
    char *text = test_read_file(test_join(*state, "weights.csv").text, NULL);
    assert_int_equal(strncmp(text, "layer,slot,gpu,expert,weight\n", 29), 0);
    for (int layer = 0; layer < 3; layer++) {
        double sum;
        assert_int_equal(read_weights(text, layer, -1, &sum), 12);
        assert_close(sum, 8.0, 1e-9);
        for (int expert = 0; expert < 8; expert++) {
            assert_true(read_weights(text, layer, expert, &sum) >= 1);
            assert_close(sum, 1.0, 1e-9);
        }
    }
    free(text);
}

static void weights_on_standard_output_have_it_for_themselves(void **state)
{
    run_result result = run_line(*state, PLAN " --slots 12 --weights -");
    double sum;
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(read_weights(result.out, 2, -1, &sum), 12);
    assert_contains(result.err, "Imbalance of a layer");
    run_release(&result);
}

static void neither_file_appears_when_one_cannot(void **state)
{
    static const char *const lines[] = {
        PLAN " --slots 12 --out map --weights no/such/directory",
        PLAN " --slots 12 --out no/such/directory --weights weights.csv"};
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "no/such/directory: ");
        assert_int_equal(count_files(*state), 1);
        run_release(&result);
    }
}

static void little_gain_is_not_told(void **state)
{
    run_ok(*state,
           "synth --layers 2 --experts 8 --steps 4 --tokens 2000 --topk 2 --out even.jsonl");
    cJSON *plan = run_json(
        *state, "plan --load even.jsonl --slices 1 --gpus 1 --slots 8 --dense-layers none --json",
        0);
    assert_true(cJSON_IsNull(json_member(plan, "imbalance_with_weights")));
    cJSON_Delete(plan);
}

static void what_excludes_each_other_is_refused(void **state)
{
    static const char *const lines[][2] = {
        {PLAN " --slots 12 --algorithm weighted --pin 0:1:2", "--algorithm weighted and --pin"},
        {PLAN " --slots 12 --algorithm weighted --min-replicas 2", "and --min-replicas"},
        {PLAN " --slots 12 --json --weights -", "--json and --weights - both"},
        {PLAN " --slots 12 --out - --weights -", "--out - and --weights - both"},
        {PLAN " --slots 12 --out one --weights one", "--out and --weights are one file: 'one'"},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i][0]);
        assert_int_equal(result.exit_code, 2);
        assert_contains(result.err, lines[i][1]);
        run_release(&result);
    }
}

TEST_MAIN(WITH_LOG(weighted_plan_is_balanced_and_says_what_an_even_split_gets),
          WITH_LOG(searched_layers_stay_where_weights_balance_them),
          WITH_LOG(weighted_plan_of_its_own_result_moves_nothing),
          WITH_LOG(weighted_plan_warns_engines_that_split_evenly),
          WITH_LOG(too_few_slots_for_weights_are_refused_with_what_is_enough),
          WITH_LOG(weights_are_written_beside_the_placement),
          WITH_LOG(weights_on_standard_output_have_it_for_themselves),
          WITH_LOG(neither_file_appears_when_one_cannot), WITH_LOG(little_gain_is_not_told),
          WITH_LOG(what_excludes_each_other_is_refused))
