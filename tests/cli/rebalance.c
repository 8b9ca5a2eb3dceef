/* SPDX-License-Identifier: MIT */
/* Plans from the placement in force. */
#include "run_json.h"

#define SHAPE " --gpus 8 --slots 40 --dense-layers none"
#define AGAIN "plan --load new.jsonl" SHAPE " --current map"

static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state,
           "synth --layers 3 --experts 32 --steps 1 --tokens 4000 --topk 2 --out old.jsonl");
    run_ok(*state, "synth --layers 3 --experts 32 --steps 1 --tokens 4000 --topk 2 --seed 5 --out "
                   "new.jsonl");
    run_ok(*state, "plan --load old.jsonl" SHAPE " --out map");
    return 0;
}

static double mean_of(const cJSON *plan, const char *name)
{
    return json_number(json_member(plan, name), "mean");
}

static void target_is_reached_in_every_layer_with_few_copies(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --target-imbalance 1.1 --json", 0);
    assert_true(cJSON_IsTrue(json_member(plan, "target_reached")));
    assert_close(json_number(plan, "target_imbalance"), 1.1, 1e-12);
    assert_true(mean_of(plan, "imbalance_before") > 1.1);
    for (int l = 0; l < 3; l++) {
        const cJSON *row = cJSON_GetArrayItem(json_member(plan, "per_layer"), l);
        assert_true(json_number(row, "imbalance_after") <= 1.1);
    }
    cJSON *tight = run_json(*state, AGAIN " --target-imbalance 1.02 --json", 0);
    assert_true(json_number(plan, "copies") < json_number(tight, "copies"));
    cJSON_Delete(plan);
    cJSON_Delete(tight);
    run_result result = run_line(*state, AGAIN " --target-imbalance 1.1");
    assert_contains(result.out,
                    "\nChosen: the fewest copies found that bring each layer to 1.1.\n");
    run_release(&result);
}

static void target_out_of_reach_is_told_and_no_error(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --target-imbalance 1 --json", 0);
    assert_true(cJSON_IsFalse(json_member(plan, "target_reached")));
    cJSON_Delete(plan);
    run_result result = run_line(*state, AGAIN " --target-imbalance 1");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "\nThe target 1 is not reached in 3 layers: these are as good as "
                                "was found.\n");
    run_release(&result);
}

static void a_target_missed_for_a_limit_is_not_called_the_best(void **state)
{
    static const char *const lines[] = {AGAIN " --target-imbalance 1.05 --max-copies 1",
                                        AGAIN " --target-imbalance 1.05 --max-copies-per-layer 1",
                                        AGAIN " --target-imbalance 1.05 --max-copies-per-gpu 0",
                                        AGAIN " --target-imbalance 1.05 --min-gain 1000"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 0);
        assert_contains(result.out, "these are as good as was found within the limits given.\n");
        run_release(&result);
    }
}

static void limits_of_copies_are_kept(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --max-copies 4 --json", 0);
    assert_true(json_number(plan, "copies") == 4.0);
    assert_true(cJSON_IsNull(json_member(plan, "target_reached")));
    assert_true(mean_of(plan, "imbalance_after") < mean_of(plan, "imbalance_before"));
    cJSON_Delete(plan);
    plan = run_json(*state, AGAIN " --max-copies-per-layer 2 --json", 0);
    for (int l = 0; l < 3; l++) {
        const cJSON *row = cJSON_GetArrayItem(json_member(plan, "per_layer"), l);
        assert_in_range((int)json_number(row, "copies"), 1, 2);
    }
    cJSON_Delete(plan);
    cJSON_Delete(run_json(
        *state, AGAIN " --max-copies-per-gpu 1 --max-copies-per-layer 8 --json --out next", 0));
    cJSON *difference = run_json(*state, "diff map next --gpus 8 --json", 0);
    assert_true(json_number(difference, "copies") > 0.0);
    const cJSON *layer;
    cJSON_ArrayForEach(layer, json_member(difference, "per_layer"))
    {
        const cJSON *gpu;
        cJSON_ArrayForEach(gpu, json_member(layer, "gpus"))
        {
            assert_in_range(cJSON_GetArraySize(json_member(gpu, "gained")), 0, 1);
        }
    }
    cJSON_Delete(difference);
}

static void no_copies_are_no_changes(void **state)
{
    static const char *const lines[] = {AGAIN " --max-copies 0 --detailed-exitcode",
                                        AGAIN " --copy-price 1000 --detailed-exitcode",
                                        AGAIN " --min-gain 1000 --detailed-exitcode"};
    for (size_t i = 0; i < 3; i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 0);
        assert_contains(result.out, "\nNo changes: keep the current placement.\n");
        run_release(&result);
    }
    run_result changed = run_line(*state, AGAIN " --max-copies 1 --detailed-exitcode");
    assert_int_equal(changed.exit_code, 10);
    run_release(&changed);
}

static void what_does_not_pay_within_the_interval_is_not_proposed(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --json", 0);
    double copies = json_number(plan, "copies");
    const cJSON *payoff = json_member(plan, "payoff");
    assert_true(copies > 0.0);
    assert_true(cJSON_IsTrue(json_member(payoff, "pays")));
    assert_true(json_number(payoff, "break_even_steps") < 3000.0);
    cJSON_Delete(plan);
    plan = run_json(*state, AGAIN " --interval 40 --expert-bytes 440401920 --json", 0);
    assert_true(json_number(plan, "copies") < copies);
    cJSON_Delete(plan);
}

static void price_follows_from_bytes_bandwidth_and_time(void **state)
{
    static const struct {
        const char *line;
        double price;
    } cases[] = {
        {AGAIN " --json", 44040192.0 / 50e9 / 0.0005 / 3000.0},
        {AGAIN " --expert-bytes 50MB --json", 50e6 / 50e9 / 0.0005 / 3000.0},
        {AGAIN " --expert-bytes 50MB --gpus-per-node 4 --bandwidth 100G,10G --interval 1000 "
               "--step-time 0.03 --json",
         50e6 / 10e9 / 0.01 / 1000.0},
        {AGAIN " --expert-bytes 50MB --gpus-per-node 8 --bandwidth 100G,10G --json",
         50e6 / 100e9 / 0.0005 / 3000.0},
        {AGAIN " --stall 0.5 --expert-bytes 50MB --json", 0.5 * 50e6 / 50e9 / 0.0005 / 3000.0},
        {AGAIN " --stall 0 --json", 0.0},
        {AGAIN " --copy-price 0.25 --json", 0.25},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cJSON *plan = run_json(*state, cases[i].line, 0);
        assert_close(json_number(plan, "copy_price"), cases[i].price, 1e-12);
        cJSON_Delete(plan);
    }
}

static void curve_falls_from_the_current_imbalance(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --json", 0);
    const cJSON *curve = json_member(plan, "curve");
    int points = cJSON_GetArraySize(curve);
    assert_true(points > 3);
    const cJSON *first = cJSON_GetArrayItem(curve, 0);
    assert_true(json_number(first, "copies") == 0.0);
    assert_close(json_number(first, "imbalance"), mean_of(plan, "imbalance_before"), 1e-12);
    bool has_knee = false;
    for (int i = 1; i < points; i++) {
        const cJSON *previous = cJSON_GetArrayItem(curve, i - 1);
        const cJSON *point = cJSON_GetArrayItem(curve, i);
        assert_true(json_number(point, "copies") > json_number(previous, "copies"));
        assert_true(json_number(point, "imbalance") < json_number(previous, "imbalance"));
        has_knee |= json_number(point, "copies") == json_number(plan, "knee_copies");
    }
    assert_true(has_knee);
    cJSON_Delete(plan);
}

static void curve_is_one_line_with_its_knee(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --json", 0);
    char begin[64];
    char last[64];
    const cJSON *curve = json_member(plan, "curve");
    const cJSON *end = cJSON_GetArrayItem(curve, cJSON_GetArraySize(curve) - 1);
    snprintf(begin, sizeof(begin), ": %.4f -> ", mean_of(plan, "imbalance_before"));
    snprintf(last, sizeof(last), "; %.0f: %.4f.\n", json_number(end, "copies"),
             json_number(end, "imbalance"));
    run_result result = run_line(*state, AGAIN);
    const char *line = strstr(result.out, "\nCurve: ");
    assert_non_null(line);
    line = strndup(line + 1, strcspn(line + 1, "\n") + 1);
    assert_contains(line, begin);
    assert_contains(line, " (knee)");
    assert_contains(line, last);
    free((char *)line);
    run_release(&result);
    cJSON_Delete(plan);
}

static void break_even_is_told_in_words(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --expert-bytes 42MiB --json", 0);
    run_result result = run_line(*state, AGAIN " --expert-bytes 42MiB");
    char line[256];
    snprintf(line, sizeof(line), "\n%s.\n", json_text(json_member(plan, "payoff"), "text"));
    assert_contains(line, " pay after ");
    assert_contains(line, "; the next rebalance is after 3000.");
    assert_contains(result.out, line);
    run_release(&result);
    cJSON_Delete(plan);
}

static void copies_that_dead_gpus_require_are_told(void **state)
{
    cJSON *plan = run_json(*state, AGAIN " --dead-gpus 3 --max-copies 0 --json", 0);
    double required = json_number(plan, "copies_required");
    assert_true(required > 0.0 && json_number(plan, "copies") == required);
    cJSON_Delete(plan);
    run_result result = run_line(*state, AGAIN " --dead-gpus 3 --max-copies 0");
    assert_contains(result.out, " of the copies are needed for a valid placement, "
                                "whatever they gain.\n");
    run_release(&result);
}

static void other_rules_plan_afresh(void **state)
{
    static const char *const lines[] = {AGAIN " --gpus-per-node 4 --spread-nodes --json",
                                        AGAIN " --algorithm eplb --json",
                                        AGAIN " --gpus-per-node 4 --node-cost 0.1 --json"};
    for (size_t i = 0; i < 3; i++) {
        cJSON *plan = run_json(*state, lines[i], 0);
        assert_null(cJSON_GetObjectItemCaseSensitive(plan, "curve"));
        assert_true(cJSON_IsNull(json_member(plan, "target_reached")));
        cJSON_Delete(plan);
    }
}

#define PREPARED(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

/* Without GPU 1 the rest must hold its experts, and cannot be as even as before. */
static void needed_copies_are_not_said_to_gain_nothing(void **state)
{
    test_write_text(test_join(*state, "log").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[4,4,2,2,2,2]}\n");
    test_write_text(test_join(*state, "map").text, "[[0,1,2,3,4,5,0,1]]");
    run_result result =
        run_line(*state, "plan --load log --gpus 4 --slots 8 --current map --dead-gpus 1");
    assert_contains(result.out, "\n2 of the copies are needed for a valid placement, whatever they "
                                "gain.\n");
    assert_null(strstr(result.out, "gain nothing"));
    run_release(&result);
}

TEST_MAIN(PREPARED(target_is_reached_in_every_layer_with_few_copies),
          PREPARED(target_out_of_reach_is_told_and_no_error),
          PREPARED(a_target_missed_for_a_limit_is_not_called_the_best),
          PREPARED(limits_of_copies_are_kept), PREPARED(no_copies_are_no_changes),
          PREPARED(what_does_not_pay_within_the_interval_is_not_proposed),
          PREPARED(price_follows_from_bytes_bandwidth_and_time),
          PREPARED(curve_falls_from_the_current_imbalance),
          PREPARED(curve_is_one_line_with_its_knee), PREPARED(break_even_is_told_in_words),
          PREPARED(copies_that_dead_gpus_require_are_told), PREPARED(other_rules_plan_afresh),
          IN_DIRECTORY(needed_copies_are_not_said_to_gain_nothing))
