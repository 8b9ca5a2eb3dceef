/* SPDX-License-Identifier: MIT */
/* eplb report: its tables, hints and waits, and how it looks on a terminal. */
#include <fcntl.h>
#include <sys/wait.h>

#include "report_logs.h"

/* Layers in which expert 0 gets 1000 tokens and 100 more for each layer, the other seven 1000. */
static void write_layers(const char *directory, int layers)
{
    FILE *file = fopen(test_join(directory, "layers.csv").text, "w");
    assert_non_null(file);
    fputs("step,layer,expert,tokens\n", file);
    for (int step = 0; step < 8; step++) {
        for (int layer = 0; layer < layers; layer++) {
            for (int expert = 0; expert < LOG_EXPERTS; expert++) {
                fprintf(file, "%d,%d,%d,%d\n", step, layer, expert,
                        1000 + (expert == 0 ? 100 * layer : 0));
            }
        }
    }
    assert_int_equal(fclose(file), 0);
}

static void the_worst_layers_are_shown_first_and_the_rest_is_counted(void **state)
{
    write_layers(*state, 14);
    run_result result = run_line(*state, "report --load layers.csv --gpus 8");
    const char *first = strstr(result.out, "\n   13      8  1.98  ");
    const char *last = strstr(result.out, "\n    2      8  1.17  ");
    assert_non_null(first);
    assert_non_null(last);
    assert_true(first < last);
    assert_null(strstr(result.out, "\n    1      8 "));
    assert_contains(result.out, "\n2 more layers, persistent 1.00 to 1.09 (--all shows them).\n");
    run_release(&result);
    result = run_line(*state, "report --load layers.csv --gpus 8 --all");
    assert_contains(result.out, "\n    1      8  1.09  ");
    assert_null(strstr(result.out, "more layers"));
    run_release(&result);
}

static void the_model_is_judged_by_the_mean_of_its_layers(void **state)
{
    write_layers(*state, 14);
    run_result result = run_line(*state, "report --load layers.csv --gpus 8");
    assert_contains(result.out, "\nlayer 13 replicate: 1.98 = 1.98 persistent + 0.00 noise at ");
    assert_contains(result.out, "\nVerdict: replicate: on average over 14 layers: 1.51 = 1.51 "
                                "persistent + 0.00 noise");
    assert_contains(result.out, "layers: 2 fine, 12 replicate\n");
    run_release(&result);
    write_layers(*state, 3);
    result = run_line(*state, "report --load layers.csv --gpus 8");
    assert_contains(result.out, "\nVerdict: fine: on average over 3 layers: mean imbalance 1.09 ");
    assert_contains(result.out, "layers: 2 fine, 1 replicate\n");
    assert_last_line(&result, "Nothing to do: look elsewhere. 1 layer is out of line, too few to "
                              "matter.");
    run_release(&result);
}

static void lines_of_tables_fit_120_columns(void **state)
{
    write_layers(*state, 14);
    run_result result = run_line(*state, "report --load layers.csv --gpus 8 --topk 2 --tokens 99");
    for (const char *line = result.out; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        assert_true(length <= 120);
        line += length + 1;
    }
    run_release(&result);
}

static void tokens_of_the_hottest_experts_are_told(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    cJSON *document = run_json(*state, "report --load one.jsonl --gpus 8 --json", 0);
    const cJSON *source = only_source(document);
    static const double shares[] = {80.0 / 128.0, 88.0 / 128.0, 104.0 / 128.0, 1.0};
    const cJSON *lists[] = {json_member(source, "hottest_shares"),
                            json_member(layer_of(source, 0), "hottest_shares")};
    for (int l = 0; l < 2; l++) {
        assert_int_equal(cJSON_GetArraySize(lists[l]), 4);
        for (int i = 0; i < 4; i++) {
            const cJSON *share = cJSON_GetArrayItem(lists[l], i);
            assert_close(json_number(share, "experts"), (double)(1 << i), 0.0);
            assert_close(json_number(share, "share"), shares[i], 1e-12);
        }
    }
    const cJSON *classes = json_member(source, "experts_by_ratio");
    static const double experts[] = {1, 0, 0, 0, 6, 0, 0, 1, 0}; /* ratios 0, 0.5, 5 */
    assert_int_equal(cJSON_GetArraySize(classes), 9);
    for (int i = 0; i < 9; i++) {
        const cJSON *class = cJSON_GetArrayItem(classes, i);
        assert_close(json_number(class, "experts"), experts[i], 0.0);
    }
    cJSON_Delete(document);
}

static void engines_metrics_are_told(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    run_result result = run_line(*state, "report --load one.jsonl --gpus 8");
    assert_contains(result.out, "SGLang utilisation 0.200 (mean / max), TensorRT-LLM imbalance "
                                "4.000 (max / mean - 1)");
    assert_contains(result.out, "vLLM balancedness 0.200");
    run_release(&result);
}

static void hints_say_what_to_know(void **state)
{
    run_ok(*state, "synth --layers 1 --experts 16 --topk 4 --steps 64 --tokens 24 --out log.jsonl");
    cJSON *document =
        run_json(*state, "report --load log.jsonl --gpus 4 --topk 4 --tokens 30 --json", 0);
    assert_true(has_hint(only_source(document), "tensor_parallelism"));
    assert_true(has_hint(only_source(document), "tokens_disagree"));
    assert_false(has_hint(only_source(document), "weight_reuse"));
    cJSON_Delete(document);
    document = run_json(*state, "report --load log.jsonl --gpus 4 --topk 4 --tokens 24 --json", 0);
    assert_false(has_hint(only_source(document), "tokens_disagree"));
    cJSON_Delete(document);
}

static int first_half_on_one_expert(int step, int expert)
{
    return expert == (step < 32 ? 0 : 4) ? 4000 : 1000;
}

static void loads_that_wander_are_a_hint(void **state)
{
    write_steps(*state, "log.jsonl", 64, first_half_on_one_expert);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 8 --json", 0);
    assert_true(has_hint(only_source(document), "loads_wander"));
    assert_string_equal(json_text(only_source(document), "next_step"),
                        "Loads wander: plan for the parts of the window: eplb plan --load "
                        "log.jsonl --gpus 8 --slots 16 --out FILE");
    cJSON_Delete(document);
    document = run_json(*state, "plan --load log.jsonl --gpus 8 --slots 16 --json", 0);
    assert_true(json_number(json_member(document, "imbalance_after"), "mean") < 1.1);
    cJSON_Delete(document);
    write_steps(*state, "log.jsonl", 64, hot_expert_that_moves);
    document = run_json(*state, "report --load log.jsonl --gpus 8 --json", 0);
    assert_false(has_hint(only_source(document), "loads_wander"));
    assert_true(has_hint(only_source(document), "steps_differ"));
    cJSON_Delete(document);
}

/* All ranks wait 50 us in layer 0 but one, which waits 5 us, and one, which waits 90 us. */
static void write_waits(const char *directory, int busiest, int idle)
{
    FILE *file = fopen(test_join(directory, "waits.csv").text, "w");
    assert_non_null(file);
    fputs("step,layer,rank,wait_us\n", file);
    for (int rank = 0; rank < 8; rank++) {
        fprintf(file, "0,0,%d,%d\n", rank, rank == busiest ? 5 : rank == idle ? 90 : 50);
    }
    assert_int_equal(fclose(file), 0);
}

static void waits_that_agree_with_the_load_are_told(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    write_waits(*state, 3, 7);
    run_result result = run_line(*state, "report --load one.jsonl --gpus 8 --waits waits.csv");
    assert_contains(result.out, "\nWaits in all-to-all, microseconds\n");
    assert_contains(result.out, " 3  agrees\n");
    assert_null(strstr(result.out, "it is not the load"));
    run_release(&result);
    cJSON *document =
        run_json(*state, "report --load one.jsonl --gpus 8 --waits waits.csv --json", 0);
    const cJSON *waits = json_member(only_source(document), "waits");
    const cJSON *layer = cJSON_GetArrayItem(json_member(waits, "per_layer"), 0);
    assert_close(json_number(waits, "agreeing_layers"), 1.0, 0.0);
    assert_close(json_number(layer, "longest_rank"), 7.0, 0.0);
    assert_close(json_number(layer, "waited_for_rank"), 3.0, 0.0);
    assert_close(json_number(layer, "busiest_gpu"), 3.0, 0.0);
    assert_close(json_number(layer, "p50_us"), 50.0, 1.0);
    assert_close(json_number(layer, "p99_us"), 90.0, 1.5);
    assert_true(cJSON_IsTrue(json_member(layer, "agree")));
    cJSON_Delete(document);
}

static void waits_for_another_rank_than_the_busiest_are_not_the_load(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    write_waits(*state, 5, 7);
    run_result result = run_line(*state, "report --load one.jsonl --gpus 8 --waits waits.csv");
    assert_contains(result.out, " 3  differs\n");
    assert_contains(result.out, "\nHint: in 1 of 1 layer the others do not wait for the busiest "
                                "GPU (layer 0: for rank 5, where GPU 3\n  has most tokens): there "
                                "it is not the load\n");
    run_release(&result);
    write_steps(*state, "even.jsonl", 8, even_experts);
    cJSON *document =
        run_json(*state, "report --load even.jsonl --gpus 8 --waits waits.csv --json", 0);
    const cJSON *waits = json_member(only_source(document), "waits");
    const cJSON *layer = cJSON_GetArrayItem(json_member(waits, "per_layer"), 0);
    assert_true(cJSON_IsNull(json_member(layer, "agree"))); /* no GPU is the busiest */
    cJSON_Delete(document);
    result = run_line(*state, "report --load even.jsonl --gpus 4 --waits waits.csv");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "waits.csv:6: ");
    run_release(&result);
}

static void while_a_rank_is_missing_nobody_is_blamed(void **state)
{
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    test_write_text(test_join(*state, "waits.csv").text,
                    "step,layer,rank,wait_us\n0,0,0,50\n0,0,5,5\n");
    run_result result = run_line(*state, "report --load one.jsonl --gpus 8 --waits waits.csv");
    assert_contains(result.out, "\n6 ranks without any wait.\n");
    assert_null(strstr(result.out, "differs"));
    assert_null(strstr(result.out, "it is not the load"));
    run_release(&result);
}

static void waits_of_layers_that_the_load_lacks_are_counted(void **state)
{
    test_write_text(test_join(*state, "log.jsonl").text,
                    "{\"step\":0,\"layer\":1,\"counts\":[10,20]}\n");
    test_write_text(test_join(*state, "waits.csv").text,
                    "step,layer,rank,wait_us\n0,0,0,10\n0,0,1,20\n");
    run_result result = run_line(*state, "report --load log.jsonl --gpus 2 --waits waits.csv");
    assert_contains(result.out, " -\n1 layer without tokens in the load: nothing to compare ");
    run_release(&result);
}

static void large_numbers_keep_their_columns_apart(void **state)
{
    FILE *file = fopen(test_join(*state, "log.jsonl").text, "w");
    assert_non_null(file);
    fputs("{\"step\":0,\"layer\":7,\"counts\":[0", file);
    for (int expert = 1; expert < 2048; expert++) {
        fputs(expert == 1000 ? ",9" : ",0", file);
    }
    fputs("]}\n", file);
    assert_int_equal(fclose(file), 0);
    run_result result = run_line(*state, "report --load log.jsonl --gpus 2048");
    assert_contains(result.out, "\n    7      1  2048  2048  2048  2048      2048 ?     -   2048 "
                                "1000 2048x 1000      0% 14564x ");
    run_release(&result);
}

/* What the command prints on a terminal. */
static char *run_on_terminal(const char *directory, const char *type, const char *no_color)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("TERM", type, 1);
        (void)(no_color != NULL ? setenv("NO_COLOR", no_color, 1) : unsetenv("NO_COLOR"));
        if (dup2(slave, STDOUT_FILENO) < 0 || chdir(directory) != 0) {
            _exit(126);
        }
        execl(getenv("EPLB_COMMAND"), "eplb", "report", "--load", "log.jsonl", "--gpus", "8",
              (char *)NULL);
        _exit(127);
    }
    close(slave);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    ssize_t got = 1;
    for (size_t used = 0; got > 0; used += got > 0 ? (size_t)got : 0) {
        got = read(master, text + used, 65535 - used);
    }
    close(master);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return text;
}

static void colours_and_the_bar_are_for_terminals_that_want_them(void **state)
{
    static const struct {
        const char *terminal;
        const char *no_color;
        bool styled;
    } cases[] = {
        {"xterm", NULL, true}, {"xterm", "", true}, {"xterm", "1", false}, {"dumb", NULL, false}};
    write_steps(*state, "log.jsonl", 64, hot_expert_that_moves);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = run_on_terminal(*state, cases[i].terminal, cases[i].no_color);
        assert_contains(text, "Verdict: ");
        assert_int_equal(strstr(text, "\033[31mmore_tokens\033[0m") != NULL, cases[i].styled);
        assert_int_equal(strstr(text, "# persistent, = noise") != NULL, cases[i].styled);
        free(text);
    }
    run_result result = run_line(*state, "report --load log.jsonl --gpus 8");
    assert_null(strchr(result.out, '\033'));
    assert_null(strstr(result.out, "= noise"));
    run_release(&result);
}

TEST_MAIN(IN_DIRECTORY(the_worst_layers_are_shown_first_and_the_rest_is_counted),
          IN_DIRECTORY(the_model_is_judged_by_the_mean_of_its_layers),
          IN_DIRECTORY(lines_of_tables_fit_120_columns),
          IN_DIRECTORY(tokens_of_the_hottest_experts_are_told),
          IN_DIRECTORY(engines_metrics_are_told), IN_DIRECTORY(hints_say_what_to_know),
          IN_DIRECTORY(loads_that_wander_are_a_hint),
          IN_DIRECTORY(large_numbers_keep_their_columns_apart),
          IN_DIRECTORY(waits_of_layers_that_the_load_lacks_are_counted),
          IN_DIRECTORY(waits_that_agree_with_the_load_are_told),
          IN_DIRECTORY(waits_for_another_rank_than_the_busiest_are_not_the_load),
          IN_DIRECTORY(while_a_rank_is_missing_nobody_is_blamed),
          IN_DIRECTORY(colours_and_the_bar_are_for_terminals_that_want_them))
