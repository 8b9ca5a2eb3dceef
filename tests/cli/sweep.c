/* SPDX-License-Identifier: MIT */
#include "run_json.h"

/* One hot expert of 80 among seven of 8: on 8 GPUs with one slot each it takes 80 / 17 of the mean,
 * with more slots ever less. */
static void write_hot(const char *directory)
{
    test_write_text(test_join(directory, "hot.jsonl").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[8,8,8,80,8,8,8,8]}\n");
}

#define HOT "sweep --load hot.jsonl --experts 8"

static const cJSON *row_of(const cJSON *document, int index)
{
    const cJSON *row = cJSON_GetArrayItem(json_member(document, "rows"), index);
    assert_non_null(row);
    return row;
}

static void assert_row(const cJSON *row, int gpus, int redundant, int slots_per_gpu)
{
    assert_true(json_number(row, "gpus") == gpus);
    assert_true(json_number(row, "redundant") == redundant);
    assert_true(json_number(row, "slots_per_gpu") == slots_per_gpu);
    assert_true(json_number(row, "slots") == gpus * slots_per_gpu);
}

static void every_combination_gets_a_row(void **state)
{
    write_hot(*state);
    cJSON *document = run_json(*state, HOT " --gpus 2-8x2 --redundant 0-8+8 --json", 0);
    assert_string_equal(json_text(document, "schema"), "eplb.sweep/1");
    assert_true(json_number(document, "layers") == 1.0);
    assert_true(json_number(document, "experts") == 8.0);
    assert_true(json_number(document, "scenarios") == 1.0);
    assert_string_equal(json_text(document, "objective"), "mean-of-max");
    assert_true(json_number(document, "effort") == 3.0);
    assert_true(cJSON_IsNull(json_member(document, "expert_bytes")));
    assert_int_equal(cJSON_GetArraySize(json_member(document, "rows")), 6);
    for (int i = 0; i < 6; i++) {
        int gpus = 2 << i / 2;
        assert_row(row_of(document, i), gpus, i % 2 * 8, (8 + i % 2 * 8) / gpus);
        assert_true(cJSON_IsNull(json_member(row_of(document, i), "weight_bytes_per_gpu")));
    }
    assert_close(json_number(row_of(document, 4), "imbalance_mean"), 80.0 / 17.0, 1e-12);
    assert_int_equal(cJSON_GetArraySize(json_member(document, "left_out")), 0);
    cJSON_Delete(document);
}

/* A row tells what a plan for the same slots tells. */
static void rows_agree_with_plan(void **state)
{
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --out log.jsonl");
    cJSON *sweep = run_json(*state,
                            "sweep --load log.jsonl --experts 16 --gpus 4 --redundant 8 "
                            "--expert-bytes 1k --effort 2 --objective max-of-max --json",
                            0);
    cJSON *plan = run_json(*state,
                           "plan --load log.jsonl --experts 16 --gpus 4 --redundant 8 "
                           "--expert-bytes 1k --effort 2 --objective max-of-max --json",
                           0);
    const cJSON *row = row_of(sweep, 0);
    const cJSON *after = json_member(plan, "imbalance_after");
    assert_true(json_number(row, "imbalance_mean") == json_number(after, "mean"));
    assert_true(json_number(row, "imbalance_worst") == json_number(after, "worst"));
    assert_true(json_number(row, "lower_bound_mean") ==
                json_number(json_member(plan, "lower_bound"), "mean"));
    assert_true(json_number(row, "weight_bytes_per_gpu") == 18000.0);
    const cJSON *scenarios = json_member(row, "per_scenario");
    const cJSON *planned = json_member(plan, "per_scenario");
    assert_int_equal(cJSON_GetArraySize(scenarios), 4); /* a slice for each step */
    double worst = 0.0;
    for (int k = 0; k < 4; k++) {
        double mean = json_number(cJSON_GetArrayItem(scenarios, k), "imbalance_mean");
        assert_true(mean == json_number(cJSON_GetArrayItem(planned, k), "imbalance_after_mean"));
        worst = fmax(worst, mean);
    }
    assert_true(json_number(row, "imbalance_worst_scenario") == worst);
    cJSON_Delete(plan);
    cJSON_Delete(sweep);
}

static void uneven_numbers_are_rounded_up_once(void **state)
{
    write_hot(*state);
    cJSON *document = run_json(*state, HOT " --gpus 4 --redundant 0,1,3,4,5 --json", 0);
    assert_int_equal(cJSON_GetArraySize(json_member(document, "rows")), 3);
    assert_row(row_of(document, 0), 4, 0, 2);
    assert_row(row_of(document, 1), 4, 4, 3);
    assert_true(json_number(row_of(document, 1), "redundant_asked") == 1.0);
    assert_row(row_of(document, 2), 4, 8, 4);
    cJSON_Delete(document);
    run_result result = run_line(*state, HOT " --gpus 4 --redundant 0,1,3,4,5");
    assert_contains(result.out, "  for 1 to 4\n");
    assert_contains(result.out, "  for 5\n");
    assert_contains(result.out, "\"for N\": N redundant experts cannot be shared evenly");
    run_release(&result);
    run_result even = run_line(*state, HOT " --gpus 4 --redundant 0,4");
    assert_null(strstr(even.out, "for "));
    run_release(&even);
}

static void what_does_not_fit_is_left_out_and_said(void **state)
{
    write_hot(*state);
    cJSON *document = run_json(*state, HOT " --gpus 2,4 --redundant 8,9 --json", 0);
    assert_int_equal(cJSON_GetArraySize(json_member(document, "rows")), 3);
    const cJSON *left_out = json_member(document, "left_out");
    assert_int_equal(cJSON_GetArraySize(left_out), 1);
    assert_true(json_number(cJSON_GetArrayItem(left_out, 0), "gpus") == 2.0);
    assert_true(json_number(cJSON_GetArrayItem(left_out, 0), "redundant") == 9.0);
    cJSON_Delete(document);
    run_result result = run_line(*state, HOT " --gpus 2,4 --redundant 8,9");
    assert_contains(result.out, "Left out: 9 redundant on 2 GPUs: more than one of each expert");
    run_release(&result);
}

/* The last line of a text that ends with a newline. */
static const char *last_line(const char *text)
{
    const char *start = text;
    for (const char *c = text; *c != '\0'; c++) {
        start = *c == '\n' && c[1] != '\0' ? c + 1 : start;
    }
    return start;
}

static void knee_is_marked_and_said_in_words(void **state)
{
    write_hot(*state);
    cJSON *document = run_json(*state, HOT " --gpus 8 --redundant 0-32+8 --json", 0);
    int knees = 0;
    int knee = 0;
    for (int i = 0; i < 5; i++) {
        if (cJSON_IsTrue(json_member(row_of(document, i), "knee"))) {
            knees++;
            knee = i;
        }
    }
    assert_int_equal(knees, 1);
    assert_in_range(knee, 1, 3);
    const cJSON *answer = cJSON_GetArrayItem(json_member(document, "answers"), 0);
    double imbalance = json_number(row_of(document, knee), "imbalance_mean");
    double gain = json_number(answer, "further_gain");
    assert_true(json_number(answer, "gpus") == 8.0);
    assert_true(json_number(answer, "redundant") == knee * 8.0);
    assert_true(json_number(answer, "imbalance_mean") == imbalance);
    double best = imbalance;
    for (int i = knee + 1; i < 5; i++) {
        best = fmin(best, json_number(row_of(document, i), "imbalance_mean"));
    }
    assert_close(gain, imbalance - best, 1e-12);
    cJSON_Delete(document);
    char words[160];
    snprintf(words, sizeof(words),
             "%d redundant experts on 8 GPUs: %.4f; more, up to 32, gains less than ", knee * 8,
             imbalance);
    run_result result = run_line(*state, HOT " --gpus 8 --redundant 0-32+8");
    assert_int_equal(strncmp(last_line(result.out), words, strlen(words)), 0);
    double shown;
    assert_int_equal(sscanf(last_line(result.out) + strlen(words), "%lf", &shown), 1);
    assert_true(shown > gain && shown - gain <= 1.001e-4);
    assert_contains(result.out, "  <- knee\n");
    run_release(&result);
}

static void largest_number_tried_says_what_more_can_gain(void **state)
{
    write_hot(*state);
    run_result result = run_line(*state, HOT " --gpus 8 --redundant 0");
    assert_string_equal(last_line(result.out), "0 redundant experts on 8 GPUs: 4.7059; the largest "
                                               "number tried; more can gain 3.7059 at most.\n");
    run_release(&result);
    cJSON *document = run_json(*state, HOT " --gpus 8 --redundant 0 --json", 0);
    const cJSON *answer = cJSON_GetArrayItem(json_member(document, "answers"), 0);
    assert_true(cJSON_IsNull(json_member(answer, "further_gain")));
    cJSON_Delete(document);
}

static void each_number_of_gpus_gets_an_answer(void **state)
{
    write_hot(*state);
    cJSON *document = run_json(*state, HOT " --gpus 1,4,8 --redundant 0-8+4 --json", 0);
    const cJSON *answers = json_member(document, "answers");
    assert_int_equal(cJSON_GetArraySize(answers), 3);
    assert_true(json_number(cJSON_GetArrayItem(answers, 0), "gpus") == 1.0);
    assert_true(json_number(cJSON_GetArrayItem(answers, 0), "imbalance_mean") == 1.0);
    assert_true(json_number(cJSON_GetArrayItem(answers, 0), "redundant") == 0.0);
    cJSON_Delete(document);
}

/* 8 experts are 2 a GPU on 5 and on 6 GPUs. */
static void numbers_of_gpus_with_equal_slots_stay_apart(void **state)
{
    write_hot(*state);
    cJSON *document = run_json(*state, HOT " --gpus 5,6 --redundant 0 --json", 0);
    assert_int_equal(cJSON_GetArraySize(json_member(document, "rows")), 2);
    assert_row(row_of(document, 0), 5, 2, 2);
    assert_row(row_of(document, 1), 6, 4, 2);
    assert_int_equal(cJSON_GetArraySize(json_member(document, "answers")), 2);
    cJSON_Delete(document);
}

static void table_has_the_memory_of_the_weights(void **state)
{
    write_hot(*state);
    run_result result = run_line(*state, HOT " --gpus 8 --redundant 0,8 --expert-bytes 3MiB");
    assert_contains(result.out, "1 layer of 8 experts, 1 scenario (mean-of-max), effort 3\n");
    assert_contains(result.out, " 3 MiB");
    assert_contains(result.out, " 6 MiB");
    run_release(&result);
}

static void threads_do_not_change_a_byte(void **state)
{
    run_ok(*state, "synth --layers 6 --experts 16 --steps 4 --tokens 200 --topk 2 --out log.jsonl");
#define WIDE "sweep --load log.jsonl --gpus 2,4 --redundant 0,8 --json --threads "
    run_result one = run_line(*state, WIDE "1");
    run_result four = run_line(*state, WIDE "4");
    assert_int_equal(one.exit_code, 0);
    assert_string_equal(one.out, four.out);
    run_release(&one);
    run_release(&four);
#undef WIDE
}

static void loads_without_tokens_are_refused(void **state)
{
    test_write_text(test_join(*state, "hot.jsonl").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[0,0,0,0,0,0,0,0]}\n");
    run_result result = run_line(*state, HOT " --gpus 4 --redundant 0");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: the loads have no tokens: nothing to balance\n");
    run_release(&result);
}

static void output_that_does_not_get_out_fails(void **state)
{
    write_hot(*state);
    static const char *const lines[] = {HOT " --gpus 4 --redundant 0",
                                        HOT " --gpus 4 --redundant 0 --json"};
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line_into(*state, lines[i], "/dev/full");
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "standard output: cannot write");
        run_release(&result);
    }
}

TEST_MAIN(IN_DIRECTORY(every_combination_gets_a_row), IN_DIRECTORY(rows_agree_with_plan),
          IN_DIRECTORY(uneven_numbers_are_rounded_up_once),
          IN_DIRECTORY(what_does_not_fit_is_left_out_and_said),
          IN_DIRECTORY(knee_is_marked_and_said_in_words),
          IN_DIRECTORY(largest_number_tried_says_what_more_can_gain),
          IN_DIRECTORY(each_number_of_gpus_gets_an_answer),
          IN_DIRECTORY(numbers_of_gpus_with_equal_slots_stay_apart),
          IN_DIRECTORY(table_has_the_memory_of_the_weights),
          IN_DIRECTORY(threads_do_not_change_a_byte),
          IN_DIRECTORY(loads_without_tokens_are_refused),
          IN_DIRECTORY(output_that_does_not_get_out_fails))
