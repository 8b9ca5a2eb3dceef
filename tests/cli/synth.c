/* SPDX-License-Identifier: MIT */
#include "run.h"

#define LAYERS 3
#define EXPERTS 16
#define STEPS 5
#define TOKENS 40
#define TOPK 4
#define SHAPE "synth --layers 3 --experts 16 --steps 5 --tokens 40 --topk 4"

static void same_seed_gives_the_same_bytes(void **state)
{
    static const char *const formats[] = {"jsonl", "csv", "sglang"};
    for (size_t i = 0; i < 3; i++) {
        char line[256];
        snprintf(line, sizeof(line), SHAPE " --seed 9 --format %s --out a", formats[i]);
        run_ok(*state, line);
        snprintf(line, sizeof(line), SHAPE " --seed 9 --format %s --out b", formats[i]);
        run_ok(*state, line);
        assert_true(same_files(*state, "a", "b"));
        snprintf(line, sizeof(line), SHAPE " --seed 10 --format %s --out b", formats[i]);
        run_ok(*state, line);
        assert_false(same_files(*state, "a", "b"));
    }
}

static void standard_output_gets_the_bytes_of_the_file(void **state)
{
    run_ok(*state, SHAPE " --out a");
    run_result result = run_line(*state, SHAPE " --out -");
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.err, "");
    char *text = test_read_file(test_join(*state, "a").text, NULL);
    assert_string_equal(result.out, text);
    free(text);
    run_release(&result);
}

/* The fields of a CSV log's next line. */
static const char *read_line(const char *text, int *step, int *layer, int *expert, int *tokens)
{
    assert_int_equal(sscanf(text, "%d,%d,%d,%d\n", step, layer, expert, tokens), 4);
    return strchr(text, '\n') + 1;
}

static void counts_of_a_step_sum_to_tokens_times_topk(void **state)
{
    run_result result = run_line(*state, SHAPE " --first-layer 7 --format csv");
    const char *next = strchr(result.out, '\n') + 1;
    assert_int_equal(strncmp(result.out, "step,layer,expert,tokens\n", 25), 0);
    for (int row = 0; row < STEPS * LAYERS; row++) {
        int sum = 0;
        for (int e = 0; e < EXPERTS; e++) {
            int step;
            int layer;
            int expert;
            int tokens;
            next = read_line(next, &step, &layer, &expert, &tokens);
            assert_int_equal(step, row / LAYERS);
            assert_int_equal(layer, 7 + row % LAYERS);
            assert_int_equal(expert, e);
            assert_in_range(tokens, 0, TOKENS);
            sum += tokens;
        }
        assert_int_equal(sum, TOKENS * TOPK);
    }
    assert_string_equal(next, "");
    run_release(&result);
}

static void tokens_that_choose_all_experts_give_each_the_same(void **state)
{
    run_result result =
        run_line(*state, "synth --layers 1 --experts 4 --steps 1 --tokens 30 --topk 4 --groups 1");
    assert_string_equal(result.out, "{\"step\":0,\"layer\":0,\"counts\":[30,30,30,30]}\n");
    run_release(&result);
}

static void sglang_log_has_zero_rows_before_the_first_layer(void **state)
{
    run_result result = run_line(*state, "synth --layers 2 --experts 2 --steps 2 --tokens 3 --topk "
                                         "2 --first-layer 1 --format sglang");
    assert_string_equal(
        result.out, "{\"logical_count\":[[[0,0],\n[3,3],\n[3,3]],\n[[0,0],\n[3,3],\n[3,3]]]}\n");
    run_release(&result);
}

static void domains_differ_in_what_is_popular(void **state)
{
    run_result result = run_line(
        *state, "synth --layers 1 --experts 8 --steps 2 --tokens 100000 --topk 1 --domains "
                "2 --format csv");
    const char *next = strchr(result.out, '\n') + 1;
    int counts[2][8];
    int ignored;
    for (int i = 0; i < 16; i++) {
        next = read_line(next, &ignored, &ignored, &ignored, &counts[i / 8][i % 8]);
    }
    double largest = 0.0;
    for (int e = 0; e < 8; e++) {
        largest = fmax(largest, fabs(log((double)counts[0][e] / (double)counts[1][e])));
    }
    assert_true(largest > 0.1); /* sampling alone gives some 0.02 */
    run_release(&result);
}

static void largest_log_is_read_by_default(void **state)
{
    run_ok(*state,
           "synth --layers 2 --first-layer 1022 --experts 4096 --steps 1 --tokens 1 --out a");
    run_ok(*state, "plan --load a --gpus 1 --redundant 0");
    run_ok(*state, "synth --layers 2 --first-layer 1022 --experts 8 --steps 1 --tokens 1 "
                   "--format sglang --out a");
    run_ok(*state, "plan --load a --gpus 1 --redundant 0");
}

static void sample_log_is_what_its_readme_says(void **state)
{
    const char *directory = getenv("EPLB_SAMPLE_DATA");
    assert_non_null(directory);
    char *readme = test_read_file(test_join(directory, "README.md").text, NULL);
    const char *command = strstr(readme, "eplb synth ");
    assert_non_null(command);
    char *line = strndup(command + 5, strcspn(command + 5, "\n"));
    assert_non_null(line);
    run_ok(*state, line);
    char *expected = test_read_file(test_join(directory, "synthetic.jsonl").text, NULL);
    char *actual = test_read_file(test_join(*state, "synthetic.jsonl").text, NULL);
    assert_true(strcmp(expected, actual) == 0);
    free(expected);
    free(actual);
    free(line);
    free(readme);
}

static void full_disk_is_an_error(void **state)
{
    run_result into_file = run_line(*state, SHAPE " --out /dev/full");
    assert_int_equal(into_file.exit_code, 1);
    assert_contains(into_file.err, "eplb: /dev/full: ");
    run_release(&into_file);
    run_result small = run_line_into(*state, SHAPE, "/dev/full");
    assert_int_equal(small.exit_code, 1);
    assert_contains(small.err, "eplb: standard output: ");
    run_release(&small);
    run_result large = run_line_into(*state, "synth --layers 9 --steps 20 --tokens 9", "/dev/full");
    assert_int_equal(large.exit_code, 1);
    assert_contains(large.err, "eplb: standard output: ");
    run_release(&large);
}

TEST_MAIN(IN_DIRECTORY(same_seed_gives_the_same_bytes),
          IN_DIRECTORY(standard_output_gets_the_bytes_of_the_file),
          IN_DIRECTORY(counts_of_a_step_sum_to_tokens_times_topk),
          IN_DIRECTORY(tokens_that_choose_all_experts_give_each_the_same),
          IN_DIRECTORY(sglang_log_has_zero_rows_before_the_first_layer),
          IN_DIRECTORY(domains_differ_in_what_is_popular),
          IN_DIRECTORY(largest_log_is_read_by_default),
          IN_DIRECTORY(sample_log_is_what_its_readme_says), IN_DIRECTORY(full_disk_is_an_error))
