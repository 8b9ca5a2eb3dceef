/* SPDX-License-Identifier: MIT */
/* eplb report: what it says of logs whose imbalance is known. */
#include "run_json.h"

#include "report_logs.h"

static void worked_example_wants_the_hot_expert_replicated(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    run_result result = run_line(*state, "report --load one.jsonl --gpus 8");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "1 layer of 8 experts on 8 GPUs (8 slots), 1 step of 128 assign");
    assert_contains(result.out, " 3 5.0x ");
    assert_contains(result.out, " 91%  replicate\n");
    assert_contains(result.out, "\n2 spare slots: 1.67 (bound 1.67)\n");
    assert_contains(result.out, "\n4 spare slots: 1.00 (bound 1.00)\n");
    assert_contains(result.out,
                    "if\n  it lasts, replicate: expert 3 gets 5.0 times its fair share");
    assert_contains(result.out, "spare slots can: 2 take it to 1.67, 4 to 1.00\n");
    assert_null(strstr(result.out, "\nlayer 0 replicate: ")); /* the verdict says it */
    assert_last_line(
        &result,
        "Replicate, if it lasts (2 slots on each GPU): eplb plan --load one.jsonl --gpus 8 "
        "--slots 16 --out FILE");
    run_release(&result);
}

static void worked_example_has_these_numbers(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    cJSON *document = run_json(*state, "report --load one.jsonl --gpus 8 --json", 0);
    assert_string_equal(json_text(document, "schema"), "eplb.report/1");
    const cJSON *source = only_source(document);
    const cJSON *layer = layer_of(source, 0);
    assert_close(json_number(layer, "imbalance_mean"), 5.0, 1e-12);
    assert_close(json_number(layer, "idle_others"), (6 * 0.9 + 1.0) / 7.0, 1e-12);
    assert_close(json_number(layer, "busiest_gpu"), 3.0, 0.0);
    assert_close(json_number(layer, "imbalance_replanned"), 5.0, 1e-12);
    const cJSON *hottest = cJSON_GetArrayItem(json_member(layer, "hottest"), 0);
    assert_close(json_number(hottest, "expert"), 3.0, 0.0);
    assert_close(json_number(hottest, "ratio"), 5.0, 1e-12);
    const cJSON *spares = json_member(source, "spare_slots");
    assert_int_equal(cJSON_GetArraySize(spares), 3);
    assert_close(json_number(cJSON_GetArrayItem(spares, 0), "slots"), 2.0, 0.0);
    assert_close(json_number(cJSON_GetArrayItem(spares, 0), "imbalance_mean"), 5.0 / 3.0, 1e-12);
    assert_close(json_number(cJSON_GetArrayItem(spares, 0), "lower_bound_mean"), 5.0 / 3.0, 1e-12);
    assert_close(json_number(cJSON_GetArrayItem(spares, 1), "slots"), 4.0, 0.0);
    assert_close(json_number(cJSON_GetArrayItem(spares, 1), "imbalance_worst"), 1.0, 1e-12);
    assert_verdict(source, "replicate", false);
    assert_true(cJSON_IsNull(json_member(source, "impossible")));
    assert_true(cJSON_IsNull(json_member(layer, "noise")));
    cJSON_Delete(document);
}

static void nobody_gets_more_tokens_than_a_step_has(void **state)
{
    static const struct {
        const char *options;
        double tokens; /* 0: possible */
    } cases[] = {
        {"--topk 2", 64.0},
        {"--topk 1", 0.0},
        {"--tokens 64", 64.0},
        {"--tokens 80", 0.0},
        {"--tokens 100 --topk 2", 64.0},
        {"--tokens 60 --topk 2", 60.0},
        {"", 0.0},
    };
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "report --load one.jsonl --gpus 8 --json %s",
                 cases[i].options);
        cJSON *document = run_json(*state, line, 0);
        const cJSON *impossible = json_member(only_source(document), "impossible");
        assert_int_equal(cJSON_IsNull(impossible), cases[i].tokens == 0.0);
        if (cases[i].tokens > 0.0) {
            assert_close(json_number(impossible, "expert"), 3.0, 0.0);
            assert_close(json_number(impossible, "got"), 80.0, 0.0);
            assert_close(json_number(impossible, "tokens"), cases[i].tokens, 0.0);
            assert_close(json_number(impossible, "steps"), 1.0, 0.0);
        }
        cJSON_Delete(document);
    }
}

static void impossible_counts_are_a_warning_in_words(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    run_result result = run_line(*state, "report --load one.jsonl --gpus 8 --topk 2");
    assert_contains(result.out, "1 step of 128 assignments (64 tokens)\n");
    assert_contains(result.out, "\nWarning: layer 0, step 0: expert 3 got 80 of 64 tokens: no "
                                "expert can get more than one from each\n  token; --topk/--tokens "
                                "is wrong or these are not per-step counts\n");
    run_release(&result);
}

static void steps_with_impossible_counts_are_counted_and_the_worst_is_named(void **state)
{
    test_write_text(test_join(*state, "log.jsonl").text,
                    "{\"step\":4,\"layer\":1,\"counts\":[6,4]}\n"
                    "{\"step\":4,\"layer\":2,\"counts\":[6,4]}\n"
                    "{\"step\":5,\"layer\":1,\"counts\":[4,16]}\n"
                    "{\"step\":5,\"layer\":2,\"counts\":[5,5]}\n"
                    "{\"step\":6,\"layer\":1,\"counts\":[5,5]}\n"
                    "{\"step\":6,\"layer\":2,\"counts\":[5,5]}\n");
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 2 --topk 2 --json", 0);
    const cJSON *impossible = json_member(only_source(document), "impossible");
    assert_close(json_number(impossible, "steps"), 3.0, 0.0);
    assert_close(json_number(impossible, "layer"), 1.0, 0.0);
    assert_close(json_number(impossible, "step"), 5.0, 0.0);
    assert_close(json_number(impossible, "got"), 16.0, 0.0);
    assert_close(json_number(impossible, "tokens"), 10.0, 0.0);
    cJSON_Delete(document);
}

static void a_sum_of_many_tokens_is_certain(void **state)
{
    write_steps(*state, "sum.jsonl", 1, one_hot_expert_in_a_sum);
    run_result result = run_line(*state, "report --load sum.jsonl --gpus 8");
    assert_contains(result.out, "5.00+-0.00     -");
    assert_contains(result.out, "Verdict: replicate: 5.00 persistent in one sum or step of 8000000 "
                                "assignments (chance explains\n  +-0.003)");
    assert_last_line(
        &result, "Replicate (2 slots on each GPU): eplb plan --load sum.jsonl --gpus 8 --slots 16 "
                 "--out FILE");
    run_release(&result);
    cJSON *document = run_json(*state, "report --load sum.jsonl --gpus 8 --json", 0);
    assert_verdict(only_source(document), "replicate", true);
    cJSON_Delete(document);
}

static void a_hot_expert_whose_gpus_are_not_the_busiest_is_not_blamed(void **state)
{
    /* Expert 0 has two GPUs, 50000 tokens each; the GPU of expert 1 has 60000. */
    test_write_text(test_join(*state, "log.jsonl").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[100000,60000,10000,10000]}\n");
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 5 --slots 5 --json", 0);
    const cJSON *source = only_source(document);
    assert_verdict(source, "replicate", true);
    assert_close(json_number(layer_of(source, 0), "busiest_gpu"), 1.0, 0.0);
    assert_contains(json_text(json_member(source, "verdict"), "text"),
                    "); the slots there cannot take it down (1.67 after replanning); replicate, ");
    cJSON_Delete(document);
}

static void spare_slots_are_tried_where_they_have_a_use(void **state)
{
    test_write_text(test_join(*state, "log.jsonl").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[5,3]}\n");
    static const char *const lines[] = {"report --load log.jsonl --gpus 2 --json",
                                        "report --load log.jsonl --gpus 2 --slots 4 --json",
                                        "report --load log.jsonl --gpus 1 --json"};
    static const int spares[] = {2, 0, 0}; /* 1 and 2 slots; all experts are everywhere; one GPU */
    for (int i = 0; i < 3; i++) {
        cJSON *document = run_json(*state, lines[i], 0);
        const cJSON *list = json_member(only_source(document), "spare_slots");
        assert_int_equal(cJSON_GetArraySize(list), spares[i]);
        cJSON_Delete(document);
    }
}

static void even_steps_are_fine(void **state)
{
    write_steps(*state, "even.jsonl", 8, even_experts);
    run_result result = run_line(*state, "report --load even.jsonl --gpus 8");
    assert_contains(result.out, "\nVerdict: fine: mean imbalance 1.00 (< 1.1) and padding 1.0x "
                                "(< 2x): look elsewhere\n");
    assert_null(strstr(result.out, "Hint"));
    assert_last_line(&result, "Nothing to do: look elsewhere.");
    run_release(&result);
}

static void lasting_imbalance_that_a_placement_takes_wants_a_rebalance(void **state)
{
    write_steps(*state, "log.jsonl", 8, two_hot_neighbours);
    run_result result = run_line(*state, "report --load log.jsonl --gpus 4 --topk 2");
    assert_contains(
        result.out,
        "Verdict: rebalance: 1.60 = 1.60 persistent + 0.00 noise at 5000 "
        "tokens a step; placement can take\n  1.60 to 1.20, with 2 spare slots to 1.00\n");
    assert_last_line(&result,
                     "Rebalance: eplb plan --load log.jsonl --gpus 4 --slots 8 --out FILE");
    run_release(&result);
}

static void imbalance_that_moves_about_wants_more_tokens(void **state)
{
    write_steps(*state, "log.jsonl", 64, hot_expert_that_moves);
    run_result result = run_line(*state, "report --load log.jsonl --gpus 8");
    assert_contains(result.out, "\nVerdict: more_tokens: 1.78 = 1.00 persistent + 0.78 noise at "
                                "9000 assignments a step: more tokens a\n  step, no placement will "
                                "help\n");
    assert_contains(result.out, "\nHint: if the traffic does not fill a step, shrink the EP group "
                                "before the batch: ");
    assert_last_line(&result, "Put more tokens into a step, or the same tokens on fewer GPUs; a "
                              "new placement will not help.");
    run_release(&result);
}

/* Two experts of one GPU, hot in turns: apart, they leave 1.2 on average, but in each step one GPU
 * has as much as theirs had. */
static void steps_under_the_plan_show_what_noise_would_be_left(void **state)
{
    write_steps(*state, "log.jsonl", 64, neighbours_in_turn);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 4 --json", 0);
    const cJSON *source = only_source(document);
    assert_close(json_number(layer_of(source, 0), "imbalance_replanned"), 1.2, 1e-12);
    assert_close(json_number(layer_of(source, 0), "seen_replanned"), 1.6, 1e-12);
    assert_contains(json_text(json_member(source, "verdict"), "text"),
                    "placement can take 1.60 to 1.20 (these steps would show 1.60)");
    cJSON_Delete(document);
}

/* Rows are padded in all layers, but not beyond hope, and one layer's imbalance can be mended. */
static void padding_does_not_hide_what_a_placement_mends(void **state)
{
    char log[4096];
    int used = 0;
    for (int step = 0; step < 8; step++) {
        used += snprintf(log + used, sizeof(log) - (size_t)used,
                         "{\"step\":%d,\"layer\":0,\"counts\":[70,70,10,10,10,10,10,10]}\n"
                         "{\"step\":%d,\"layer\":1,\"counts\":[25,25,25,25,25,25,25,25]}\n"
                         "{\"step\":%d,\"layer\":2,\"counts\":[25,25,25,25,25,25,25,25]}\n",
                         step, step, step);
    }
    test_write_text(test_join(*state, "log.jsonl").text, log);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 4 --json", 0);
    const cJSON *source = only_source(document);
    assert_verdict(layer_of(source, 0), "rebalance", true);
    assert_verdict(layer_of(source, 1), "more_tokens", true);
    assert_verdict(source, "rebalance", true);
    cJSON_Delete(document);
}

/* As engines log them that average over steps. */
static void means_below_one_are_not_called_nothing(void **state)
{
    test_write_text(test_join(*state, "log.csv").text,
                    "step,layer,expert,tokens\n0,0,0,0.25\n0,0,1,0.1\n");
    run_result result = run_line(*state, "report --load log.csv --gpus 2 --topk 1");
    assert_contains(result.out, "1 step of 0.35 assignments (0.35 tokens)\n");
    assert_contains(result.out, " a step has 0.35 assignments for 2 experts");
    run_release(&result);
}

static void a_layer_with_few_steps_does_not_make_the_others_doubtful(void **state)
{
    char log[4096];
    int used = 0;
    for (int step = 0; step < 8; step++) {
        used += snprintf(log + used, sizeof(log) - (size_t)used,
                         "{\"step\":%d,\"layer\":0,\"counts\":[2000,2000,1000,1000]}\n", step);
    }
    snprintf(log + used, sizeof(log) - (size_t)used,
             "{\"step\":7,\"layer\":1,\"counts\":[200,200,100,100]}\n");
    test_write_text(test_join(*state, "log.jsonl").text, log);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 2 --json", 0);
    const cJSON *source = only_source(document);
    assert_verdict(layer_of(source, 0), "rebalance", true);
    assert_verdict(layer_of(source, 1), "rebalance", false);
    assert_verdict(source, "rebalance", true);
    assert_contains(json_text(json_member(source, "verdict"), "text"), " persistent + ");
    cJSON_Delete(document);
}

static void padding_wants_more_tokens(void **state)
{
    run_ok(*state, "synth --layers 2 --steps 50 --tokens 8 --out log.jsonl");
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 8 --topk 8 --json", 0);
    const cJSON *source = only_source(document);
    assert_verdict(source, "more_tokens", true);
    assert_contains(json_text(json_member(source, "verdict"), "text"), "at 8 tokens a step");
    assert_contains(json_text(json_member(source, "verdict"), "text"), "rows padded ");
    assert_true(has_hint(source, "weight_reuse"));
    assert_true(has_hint(source, "smaller_group"));
    assert_false(has_hint(source, "tensor_parallelism"));
    cJSON_Delete(document);
    document = run_json(*state, "report --load log.jsonl --gpus 64 --topk 8 --json", 0);
    assert_verdict(only_source(document), "more_tokens", true);
    cJSON_Delete(document);
}

static void a_short_window_says_how_many_steps_it_lacks(void **state)
{
    write_steps(*state, "log.jsonl", 6, doubtful_imbalance);
    run_result result = run_line(*state, "report --load log.jsonl --gpus 8");
    assert_contains(result.out, "\nVerdict: too_short: 1.17 seen, 1.11 +- ");
    assert_contains(result.out, " steps like these are needed, 6 are there\n");
    assert_contains(result.out, " steps and report again.\n");
    run_release(&result);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 8 --json", 0);
    const cJSON *verdict = json_member(only_source(document), "verdict");
    assert_true(json_number(verdict, "steps_needed") > 6.0);
    cJSON_Delete(document);
}

static void nothing_routed_gives_no_verdict_and_no_numbers(void **state)
{
    test_write_text(test_join(*state, "log.jsonl").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[0,0,0,0]}\n"
                    "{\"step\":1,\"layer\":0,\"counts\":[0,0,0,0]}\n");
    run_result result = run_line(*state, "report --load log.jsonl --gpus 2");
    assert_int_equal(result.exit_code, 0);
    assert_null(strstr(result.out, "nan"));
    assert_contains(result.out, "\nVerdict: no_load: nothing was routed\n");
    assert_last_line(&result, "Record steps with tokens and report again: nothing was routed.");
    run_release(&result);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 2 --json", 0);
    const cJSON *source = only_source(document);
    assert_true(cJSON_IsNull(json_member(layer_of(source, 0), "persistent")));
    assert_true(cJSON_IsNull(json_member(json_member(source, "imbalance"), "mean")));
    assert_close(json_number(layer_of(source, 0), "zero_steps"), 2.0, 0.0);
    cJSON_Delete(document);
}

static void a_layer_without_tokens_is_left_out(void **state)
{
    test_write_text(test_join(*state, "log.jsonl").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[0,0]}\n"
                    "{\"step\":0,\"layer\":1,\"counts\":[30000000,10000000]}\n");
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 2 --json", 0);
    const cJSON *source = only_source(document);
    assert_close(json_number(source, "layers"), 2.0, 0.0);
    assert_close(json_number(source, "scored_layers"), 1.0, 0.0);
    assert_close(json_number(json_member(source, "imbalance"), "mean"), 1.5, 1e-12);
    assert_string_equal(json_text(json_member(layer_of(source, 0), "verdict"), "code"), "no_load");
    cJSON_Delete(document);
    run_result result = run_line(*state, "report --load log.jsonl --gpus 2");
    assert_contains(result.out, "\n1 layer without any token is left out.\n");
    run_release(&result);
}

TEST_MAIN(IN_DIRECTORY(worked_example_wants_the_hot_expert_replicated),
          IN_DIRECTORY(worked_example_has_these_numbers),
          IN_DIRECTORY(nobody_gets_more_tokens_than_a_step_has),
          IN_DIRECTORY(impossible_counts_are_a_warning_in_words),
          IN_DIRECTORY(steps_with_impossible_counts_are_counted_and_the_worst_is_named),
          IN_DIRECTORY(a_hot_expert_whose_gpus_are_not_the_busiest_is_not_blamed),
          IN_DIRECTORY(spare_slots_are_tried_where_they_have_a_use),
          IN_DIRECTORY(a_sum_of_many_tokens_is_certain), IN_DIRECTORY(even_steps_are_fine),
          IN_DIRECTORY(lasting_imbalance_that_a_placement_takes_wants_a_rebalance),
          IN_DIRECTORY(imbalance_that_moves_about_wants_more_tokens),
          IN_DIRECTORY(steps_under_the_plan_show_what_noise_would_be_left),
          IN_DIRECTORY(padding_does_not_hide_what_a_placement_mends),
          IN_DIRECTORY(means_below_one_are_not_called_nothing),
          IN_DIRECTORY(a_layer_with_few_steps_does_not_make_the_others_doubtful),
          IN_DIRECTORY(padding_wants_more_tokens),
          IN_DIRECTORY(a_short_window_says_how_many_steps_it_lacks),
          IN_DIRECTORY(nothing_routed_gives_no_verdict_and_no_numbers),
          IN_DIRECTORY(a_layer_without_tokens_is_left_out))
