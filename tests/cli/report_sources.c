/* SPDX-License-Identifier: MIT */
/* eplb report: where its counts and its placement come from. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "report_logs.h"

static void write_text(const char *directory, const char *name, const char *text)
{
    test_write_text(test_join(directory, name).text, text);
}

static void each_load_gets_a_report_of_its_own(void **state)
{
    write_steps(*state, "even.jsonl", 8, even_experts);
    write_steps(*state, "one.jsonl", 1, one_hot_expert);
    cJSON *document =
        run_json(*state, "report --load chat=even.jsonl --load one.jsonl:2 --gpus 8 --json", 0);
    const cJSON *sources = json_member(document, "sources");
    assert_int_equal(cJSON_GetArraySize(sources), 2);
    assert_string_equal(json_text(cJSON_GetArrayItem(sources, 0), "name"), "chat");
    assert_verdict(cJSON_GetArrayItem(sources, 0), "fine", true);
    assert_string_equal(json_text(cJSON_GetArrayItem(sources, 1), "name"), "one.jsonl");
    assert_verdict(cJSON_GetArrayItem(sources, 1), "replicate", false);
    cJSON_Delete(document);
    run_result result = run_line(*state, "report --load chat=even.jsonl --load one.jsonl --gpus 8");
    assert_contains(result.out, "chat: 1 layer of 8 experts");
    assert_contains(result.out, "\nNothing to do: look elsewhere.\n\none.jsonl: 1 layer of 8 exp");
    run_release(&result);
}

static void ranks_of_a_source_are_summed_step_by_step(void **state)
{
    write_text(*state, "rank0.csv", "step,layer,expert,tokens\n0,0,0,60\n0,0,1,0\n1,0,0,10\n");
    write_text(*state, "rank1.csv", "step,layer,expert,tokens\n0,0,0,0\n0,0,1,60\n1,0,0,30\n");
    cJSON *document = run_json(*state, "report --load rank0.csv,rank1.csv --gpus 2 --json", 0);
    const cJSON *layer = layer_of(only_source(document), 0);
    assert_close(json_number(layer, "steps"), 2.0, 0.0);
    assert_close(json_number(layer, "imbalance_mean"), (1.0 + 2.0) / 2.0, 1e-12);
    assert_close(json_number(layer, "assignments_per_step"), (120.0 + 40.0) / 2.0, 1e-12);
    cJSON_Delete(document);
}

/* Runs the command with a file as standard input; its output goes to "out", its messages to
 * "err". */
static int run_from(const char *directory, const char *line, const char *input)
{
    char text[8192];
    snprintf(text, sizeof(text), "cd '%s' && TMPDIR=. \"$EPLB_COMMAND\" %s <%s >out 2>err",
             directory, line, input);
    int status = system(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void assert_in_file(const char *directory, const char *name, const char *part)
{
    size_t size;
    char *text = test_read_file(test_join(directory, name).text, &size);
    assert_true(size > 0);
    assert_contains(text, part);
    free(text);
}

static void standard_input_is_read_twice(void **state)
{
    write_steps(*state, "log", 8, two_hot_neighbours);
    assert_int_equal(run_from(*state, "report --load - --gpus 4", "log"), 0);
    assert_in_file(*state, "out",
                   "standard input: 1 layer of 8 experts on 4 GPUs (8 slots), 8 steps of ");
    assert_in_file(*state, "out",
                   "\nRebalance: eplb plan --load - --gpus 4 --slots 8 --out FILE\n");
    assert_int_equal(run_from(*state, "report --load chat=-:2 --gpus 4", "log"), 0);
    assert_in_file(*state, "out", "chat: 1 layer of 8 experts on 4 GPUs (8 slots), 8 steps of ");
}

/* Reading it a second time would wait for ever. */
static void other_pipes_are_refused(void **state)
{
    write_steps(*state, "log", 1, one_hot_expert);
    assert_int_equal(mkfifo(test_join(*state, "pipe").text, 0600), 0);
    static const char *const sources[] = {"pipe", "chat=./pipe:2", "log,pipe"};
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        const char *const arguments[] = {"report", "--load", sources[i], "--gpus", "4", NULL};
        run_result result = run_arguments(*state, arguments);
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "pipe: a pipe, which can be read once, but it is read twice: "
                                    "give it as standard input (-) or as a file\n");
        run_release(&result);
    }
}

static void standard_input_can_be_one_of_two_ranks(void **state)
{
    write_text(*state, "in.csv", "step,layer,expert,tokens\n0,0,0,60\n0,0,1,0\n");
    write_text(*state, "rank1.csv", "step,layer,expert,tokens\n0,0,0,0\n0,0,1,20\n");
    assert_int_equal(run_from(*state, "report --load -,rank1.csv --gpus 2", "in.csv"), 0);
    assert_in_file(*state, "out", "1 step of 80 assignments\n");
}

static void errors_name_standard_input(void **state)
{
    write_text(*state, "log", "{\"step\":0,\"layer\":3,\"counts\":[1,-2]}\n");
    assert_int_equal(run_from(*state, "report --load - --gpus 2", "log"), 1);
    assert_in_file(*state, "err", "standard input:1: layer 3: expert 1: -2 is negative");
    assert_int_equal(count_files(*state), 3); /* log, out, err: nothing was left behind */
}

static void the_current_placement_is_judged(void **state)
{
    write_steps(*state, "log.jsonl", 8, two_hot_neighbours);
    run_ok(*state, "plan --load log.jsonl --gpus 4 --redundant 4 --out map.json");
    run_result result = run_line(*state, "report --load log.jsonl --current map.json --gpus 4");
    assert_contains(result.out, "8 experts on 4 GPUs (12 slots)");
    assert_contains(result.out, "\nPlacement: map.json\n");
    assert_contains(result.out, " fine\n");
    run_release(&result);
    write_text(*state, "bad.json", "{\"physical_to_logical_map\":[[0,1,2,3,4,5,7,6]]}");
    result = run_line(*state, "report --load log.jsonl --current bad.json --gpus 4 "
                              "--experts 8 --from jsonl --gpus-per-node 2");
    assert_last_line(&result,
                     "Rebalance: eplb plan --load log.jsonl --from jsonl --experts 8 --current "
                     "bad.json --gpus 4 --gpus-per-node 2 --slots 8 --out FILE");
    run_release(&result);
}

static void arguments_are_quoted_for_a_shell(void **state)
{
    write_steps(*state, "it's one.jsonl", 1, one_hot_expert);
    const char *arguments[] = {"report", "--load", "it's one.jsonl", "--gpus", "8", NULL};
    run_result result = run_arguments(*state, arguments);
    assert_last_line(
        &result,
        "Replicate, if it lasts (2 slots on each GPU): eplb plan --load 'it'\\''s one.jsonl' "
        "--gpus 8 --slots 16 --out FILE");
    run_release(&result);
}

static void control_characters_of_names_are_not_printed(void **state)
{
    write_steps(*state, "a\033[31mb", 1, one_hot_expert);
    const char *arguments[] = {"report", "--load", "a\033[31mb", "--gpus", "8", NULL};
    run_result result = run_arguments(*state, arguments);
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "a?[31mb: 1 layer");
    assert_contains(result.out, ": eplb plan --load FILE --gpus 8 ");
    assert_null(strchr(result.out, '\033'));
    run_release(&result);
}

static void experts_that_gpus_do_not_share_evenly_are_spread_all_the_same(void **state)
{
    write_steps(*state, "log.jsonl", 8, even_experts);
    cJSON *document = run_json(*state, "report --load log.jsonl --gpus 3 --json", 0);
    const cJSON *source = only_source(document);
    assert_close(json_number(source, "slots"), 8.0, 0.0); /* 3 + 3 + 2 */
    assert_close(json_number(layer_of(source, 0), "imbalance_mean"), 3.0 / (8.0 / 3.0), 1e-12);
    cJSON_Delete(document);
    document = run_json(*state, "report --load log.jsonl --gpus 3 --redundant 2 --json", 0);
    source = only_source(document);
    assert_close(json_number(source, "slots"), 10.0, 0.0); /* 0..3, 4..6, 7 0 1 */
    assert_close(json_number(layer_of(source, 0), "imbalance_mean"), 3.0 / (8.0 / 3.0), 1e-12);
    cJSON_Delete(document);
}

static void dense_layers_give_moe_indices_their_model_layers(void **state)
{
    write_text(*state, "log.csv",
               "step,layer,expert,tokens\n0,0,0,300000\n0,0,1,100000\n0,1,0,200000\n0,1,1,200000\n"
               "1,0,0,300000\n1,0,1,100000\n1,1,0,200000\n1,1,1,200000\n");
    cJSON *document =
        run_json(*state, "report --load log.csv --gpus 2 --dense-layers 0,2 --json", 0);
    const cJSON *source = only_source(document);
    assert_close(json_number(layer_of(source, 0), "layer"), 1.0, 0.0);
    assert_close(json_number(layer_of(source, 0), "steps"), 2.0, 0.0);
    assert_close(json_number(layer_of(source, 0), "imbalance_mean"), 1.5, 1e-12);
    assert_close(json_number(layer_of(source, 1), "layer"), 3.0, 0.0);
    assert_close(json_number(layer_of(source, 1), "imbalance_mean"), 1.0, 1e-12);
    assert_contains(json_text(source, "next_step"), " --dense-layers 0,2 --gpus 2 ");
    cJSON_Delete(document);
}

static void layers_without_tokens_of_all_model_layers_are_dense(void **state)
{
    write_text(*state, "log.json",
               "{\"logical_count\":[[[0,0],[9,3],[0,0],[4,4]],"
               "[[0,0],[3,9],[0,0],[0,0]]]}");
    cJSON *document = run_json(*state, "report --load log.json --gpus 2 --json", 0);
    const cJSON *source = only_source(document);
    assert_close(json_number(source, "layers"), 2.0, 0.0);
    assert_close(json_number(layer_of(source, 0), "layer"), 1.0, 0.0);
    assert_close(json_number(layer_of(source, 0), "steps"), 2.0, 0.0);
    assert_close(json_number(layer_of(source, 0), "imbalance_mean"), 1.5, 1e-12);
    assert_close(json_number(layer_of(source, 1), "layer"), 3.0, 0.0);
    assert_close(json_number(layer_of(source, 1), "zero_steps"), 1.0, 0.0);
    cJSON_Delete(document);
    document = run_json(*state, "report --load log.json --gpus 2 --dense-layers 0 --json", 0);
    source = only_source(document);
    static const double steps[] = {2.0, 0.0, 1.0}; /* layers 1, 2, 3 */
    assert_close(json_number(source, "layers"), 3.0, 0.0);
    for (int l = 0; l < 3; l++) {
        assert_close(json_number(layer_of(source, l), "layer"), (double)(l + 1), 0.0);
        assert_close(json_number(layer_of(source, l), "steps"), steps[l], 0.0);
    }
    cJSON_Delete(document);
}

static void a_step_may_lack_layers(void **state)
{
    write_text(*state, "log.csv",
               "step,layer,expert,tokens\n0,0,0,1\n0,1,0,1\n0,2,0,1\n0,2,1,1\n"
               "1,2,0,3\n1,2,1,1\n");
    cJSON *document = run_json(*state, "report --load log.csv --gpus 2 --json", 0);
    const cJSON *source = only_source(document);
    assert_close(json_number(layer_of(source, 1), "steps"), 1.0, 0.0);
    assert_close(json_number(layer_of(source, 2), "steps"), 2.0, 0.0);
    assert_close(json_number(layer_of(source, 2), "imbalance_mean"), (1.0 + 1.5) / 2.0, 1e-12);
    cJSON_Delete(document);
}

static void warnings_about_a_file_are_given_once(void **state)
{
    write_text(*state, "cut.csv", "step,layer,expert,tokens\n0,0,0,1\n0,0,1,1");
    run_result result = run_line(*state, "report --load cut.csv --gpus 2");
    const char *warning = strstr(result.err, "warning: ");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "warning: "));
    run_release(&result);
}

static void wrong_lines_are_refused(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
        const char *part;
    } cases[] = {
        {"report", 2, "--load SOURCE is missing"},
        {"report --load log.jsonl", 2, "--current FILE, or --gpus N"},
        {"report --load log.jsonl --gpus 0", 2, "gpus"},
        {"report --load log.jsonl --gpus 8 --topk 0", 2, "topk"},
        {"report --load log.jsonl --gpus 8 --topk 9", 1,
         "--topk 9: a token cannot go to more than the 8 experts"},
        {"report --load log.jsonl --gpus 8 --tile 0", 2, "tile"},
        {"report --load log.jsonl --gpus 8 --tokens 0", 2, "tokens"},
        {"report --load log.jsonl --gpus 8 --capacity-factor 0", 2, "not a number above 0"},
        {"report --load log.jsonl --gpus 8 --capacity-factor nan", 2, "capacity-factor 'nan'"},
        {"report --load log.jsonl --gpus 8 --capacity-factor 1x", 2, "capacity-factor '1x'"},
        {"report --load log.jsonl --gpus 8 --slots 8 --redundant 1", 2, "exclude each other"},
        {"report --load log.jsonl --gpus 8 --slots 7", 1, "--slots 8 is the least"},
        {"report --load log.jsonl --gpus 9", 1, "8 slots do not give each of 9 GPUs one"},
        {"report --load log.jsonl --current map.json --redundant 1", 2, "go without it"},
        {"report --load log.jsonl --gpus 8 --from nonsense", 2, "not one of"},
        {"report --load log.jsonl --gpus 8 --experts 9", 1, "expert"},
        {"report --load missing.jsonl --gpus 8", 1, "missing.jsonl"},
        {"report --load log.jsonl --gpus 8 --current missing.json", 1, "missing.json"},
        {"report --load log.jsonl --gpus 8 --waits missing.csv", 1, "missing.csv"},
        {"report --load - --current - --gpus 8", 2, "standard input can be read once"},
        {"report --load a=-:2 --load - --gpus 8", 2, "standard input can be read once"},
        {"report --load log.jsonl --load log.jsonl --current - --gpus 8", 2, "can be read once"},
        {"report --load - --waits - --gpus 8", 2, "standard input can be read once"},
        {"report --load a --load b --waits w.csv --gpus 8", 2, "give one --load with it"},
        {"report log.jsonl", 2, "unexpected argument 'log.jsonl'"},
    };
    write_steps(*state, "log.jsonl", 1, one_hot_expert);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_result result = run_line(*state, cases[i].line);
        if (result.exit_code != cases[i].exit_code) {
            print_error("eplb %s: exit code %d\n", cases[i].line, result.exit_code);
        }
        assert_int_equal(result.exit_code, cases[i].exit_code);
        assert_string_equal(result.out, "");
        assert_contains(result.err, cases[i].part);
        run_release(&result);
    }
}

static void a_report_that_does_not_get_out_fails(void **state)
{
    write_steps(*state, "log.jsonl", 1, one_hot_expert);
    static const char *const lines[] = {"report --load log.jsonl --gpus 8",
                                        "report --load log.jsonl --gpus 8 --json"};
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line_into(*state, lines[i], "/dev/full");
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "standard output");
        run_release(&result);
    }
}

TEST_MAIN(IN_DIRECTORY(each_load_gets_a_report_of_its_own),
          IN_DIRECTORY(ranks_of_a_source_are_summed_step_by_step),
          IN_DIRECTORY(standard_input_is_read_twice), IN_DIRECTORY(other_pipes_are_refused),
          IN_DIRECTORY(standard_input_can_be_one_of_two_ranks),
          IN_DIRECTORY(errors_name_standard_input), IN_DIRECTORY(the_current_placement_is_judged),
          IN_DIRECTORY(arguments_are_quoted_for_a_shell),
          IN_DIRECTORY(control_characters_of_names_are_not_printed),
          IN_DIRECTORY(experts_that_gpus_do_not_share_evenly_are_spread_all_the_same),
          IN_DIRECTORY(dense_layers_give_moe_indices_their_model_layers),
          IN_DIRECTORY(layers_without_tokens_of_all_model_layers_are_dense),
          IN_DIRECTORY(a_step_may_lack_layers), IN_DIRECTORY(warnings_about_a_file_are_given_once),
          IN_DIRECTORY(wrong_lines_are_refused), IN_DIRECTORY(a_report_that_does_not_get_out_fails))
