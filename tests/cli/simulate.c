/* SPDX-License-Identifier: MIT */
#include "run.h"
#include "run_json.h"

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void each_batch_has_a_row(void **state)
{
    run_result result = run_line(*state, "simulate router --batch 8,64 --trials 500 --json");
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.err, "");
    cJSON *document = cJSON_Parse(result.out);
    assert_non_null(document);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(document, "rows");
    assert_int_equal(cJSON_GetArraySize(rows), 2);
    static const char *const names[] = {"batch",
                                        "imbalance_mean",
                                        "imbalance_p99",
                                        "padded_worst_rank",
                                        "padded_ratio",
                                        "experts_touched",
                                        "weight_bytes_share_per_token"};
    for (int row = 0; row < 2; row++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            assert_true(number(cJSON_GetArrayItem(rows, row), names[i]) > 0.0);
        }
    }
    assert_close(number(cJSON_GetArrayItem(rows, 0), "batch"), 8.0, 0.0);
    assert_close(number(cJSON_GetArrayItem(rows, 0), "imbalance_mean"), 1.52, 0.03);
    assert_close(number(cJSON_GetArrayItem(rows, 1), "imbalance_mean"), 1.18, 0.03);
    assert_close(number(document, "tokens_to_fill_tiles"), 2048.0, 0.0);
    cJSON_Delete(document);
    run_release(&result);
}

static void table_says_how_many_tokens_fill_tiles(void **state)
{
    run_result result = run_line(*state, "simulate router --batch 8 --trials 100 --experts 64 "
                                         "--topk 2 --tile 16");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "64 experts, each token to 2 of them, on 8 ranks");
    assert_contains(result.out, "all experts alike");
    assert_contains(result.out, "From 512 tokens a step on");
    run_release(&result);
}

static void experts_are_drawn_as_in_the_layer_of_a_load(void **state)
{
    test_path path = test_join(*state, "log.csv");
    test_write_text(path.text, "layer,expert,tokens\n0,0,1\n0,3,1\n7,1,9\n7,3,0\n");
    run_result result = run_line(*state, "simulate router --batch 10 --topk 1 --ranks 4 --trials 5 "
                                         "--load log.csv --layer 7 --json");
    assert_int_equal(result.exit_code, 0);
    cJSON *document = cJSON_Parse(result.out);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(document, "rows"), 0);
    assert_close(number(document, "experts"), 4.0, 0.0);
    assert_close(number(row, "imbalance_mean"), 4.0, 1e-12); /* all tokens to expert 1 */
    assert_close(number(row, "experts_touched"), 0.25, 1e-12);
    cJSON_Delete(document);
    run_release(&result);
}

static void wrong_lines_are_refused(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
        const char *part;
    } cases[] = {
        {"simulate", 2, "router"},
        {"simulate trace", 2, "'trace' cannot be simulated"},
        {"simulate router", 2, "--batch is missing"},
        {"simulate router --batch 0", 2, "batch"},
        {"simulate router --batch x", 2, "batch"},
        {"simulate router --batch 1 --layer 3", 2, "--layer goes with --load"},
        {"simulate router --batch 1 --topk 0", 2, "topk"},
        {"simulate router --batch 1 --trials 0", 2, "trials"},
        {"simulate router --batch 1 --tile 0", 2, "tile"},
        {"simulate router --batch 1 --seed x", 2, "seed"},
        {"simulate router --batch 1 --ranks 0", 2, "ranks"},
        {"simulate router --batch 1 --experts 0", 2, "experts"},
        {"simulate router --batch 1 --experts 4", 1, "top-k 8 not in 1..4"},
        {"simulate router --batch 1 --ranks 7", 1, "7 ranks do not share 256 experts"},
        {"simulate router --batch 1 --load missing.csv", 1, "missing.csv"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_result result = run_line(*state, cases[i].line);
        assert_int_equal(result.exit_code, cases[i].exit_code);
        assert_string_equal(result.out, "");
        assert_contains(result.err, cases[i].part);
        run_release(&result);
    }
}

TEST_MAIN(IN_DIRECTORY(each_batch_has_a_row), IN_DIRECTORY(table_says_how_many_tokens_fill_tiles),
          IN_DIRECTORY(experts_are_drawn_as_in_the_layer_of_a_load),
          IN_DIRECTORY(wrong_lines_are_refused))
