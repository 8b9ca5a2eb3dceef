/* SPDX-License-Identifier: MIT */
/* Sources as loads: ranks that are summed, steps that are cut into slices. */
#include <sys/stat.h>

#include "reading.h"
#include "recording.h"

static eplb_source_load_options sliced(int32_t slices)
{
    eplb_source_load_options options;
    eplb_source_load_options_init(&options);
    assert_int_equal(options.struct_size, sizeof(options));
    assert_int_equal(options.slices, 0);
    options.slices = slices;
    return options;
}

static eplb_load *load_of(const char *const *texts, int32_t count, int32_t slices)
{
    eplb_source_load_options options = sliced(slices);
    eplb_error error;
    eplb_load *load;
    assert_ok(eplb_source_load(&load, NULL, texts, count, NULL, &options, &error), &error);
    return load;
}

static eplb_load *load_of_one(const char *text, int32_t slices)
{
    return load_of((const char *[]){text}, 1, slices);
}

static void assert_refused(const char *const *texts, int32_t count, int32_t slices,
                           eplb_status expected, const char *message)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_source_load_options options = sliced(slices);
    eplb_error error;
    eplb_load *load = (eplb_load *)&error;
    assert_status(eplb_source_load(&load, &hooks, texts, count, NULL, &options, &error), expected,
                  &error);
    assert_string_equal(error.message, message);
    assert_null(load);
    assert_int_equal(memory.live, 0);
}

static void ranks_are_summed(void **state)
{
    (void)state;
    test_path path = test_data("format/ranks");
    eplb_load *load = load_of_one(path.text, 1);
    assert_int_equal(eplb_load_scenarios(load), 1);
    assert_string_equal(eplb_load_scenario_name(load, 0), path.text);
    for (int l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_load_row(load, 0, l), recorded_total[l],
                            sizeof(recorded_total[l]));
    }
    eplb_load_destroy(&load);
}

/* One layer of two experts; `tokens` [steps] of each step, those of expert 1 one more than its
 * share. */
static void write_steps(const char *path, const int *tokens, int steps)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int t = 0; t < steps; t++) {
        fprintf(file, "{\"step\":%d,\"layer\":4,\"counts\":[%d,%d]}\n", 10 + t, tokens[t] / 2,
                tokens[t] - tokens[t] / 2);
    }
    assert_int_equal(fclose(file), 0);
}

/* The tokens of each scenario. */
static void assert_tokens(const eplb_load *load, const int *tokens, int32_t count)
{
    assert_int_equal(eplb_load_scenarios(load), count);
    for (int32_t s = 0; s < count; s++) {
        const double *row = eplb_load_row(load, s, 0);
        if (row[0] + row[1] != tokens[s]) {
            print_error("scenario %d: %g tokens, expected %d\n", s, row[0] + row[1], tokens[s]);
        }
        assert_true(row[0] + row[1] == tokens[s]);
    }
}

static void slices_have_equal_tokens_as_far_as_steps_allow(void **state)
{
    (void)state;
    static const struct {
        int32_t steps;
        int tokens[12];
        int32_t wanted;
        int32_t slices;
        int of_slice[6];
    } cases[] = {
        {6, {1, 1, 1, 1, 1, 1}, 3, 3, {2, 2, 2}},
        {6, {1, 1, 1, 1, 1, 1}, 1, 1, {6}},
        {6, {1, 1, 1, 1, 1, 1}, 4, 4, {1, 2, 1, 2}}, /* 1.5 and 4.5 are ties: the earlier place */
        {6, {5, 1, 1, 1, 1, 1}, 2, 2, {5, 5}},       /* by tokens, not by steps */
        {5, {1, 1, 1, 1, 8}, 3, 3, {3, 1, 8}},       /* 4 is nearest to 4 and to 8 */
        {5, {8, 1, 1, 1, 1}, 3, 3, {8, 1, 3}},       /* 8 is nearest to 4 and to 8 */
        {4, {9, 1, 1, 1}, 4, 4, {9, 1, 1, 1}},       /* each slice needs a step */
        {4, {1, 1, 1, 9}, 4, 4, {1, 1, 1, 9}},       /* and none is left over */
        {3, {4, 5, 6}, 16, 3, {4, 5, 6}},            /* fewer steps than slices */
        {7, {0, 3, 0, 0, 3, 0, 0}, 2, 2, {3, 3}},    /* empty steps are no slices */
        {7, {0, 3, 0, 0, 3, 0, 0}, 6, 2, {3, 3}},    /* and not counted */
        {4, {0, 0, 0, 0}, 3, 1, {0}},                /* warm-up alone is one scenario */
        {4, {7, 0, 0, 0}, 3, 1, {7}},                /* as is a single step */
        {10, {9, 9, 9, 1, 1, 1, 1, 1, 1, 7}, 4, 4, {9, 9, 12, 10}},
        {10, {9, 9, 9, 1, 1, 1, 1, 1, 1, 8}, 5, 5, {9, 9, 9, 6, 8}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_steps("f", cases[i].tokens, cases[i].steps);
        eplb_load *load = load_of_one("f", cases[i].wanted);
        assert_tokens(load, cases[i].of_slice, cases[i].slices);
        assert_int_equal(eplb_load_layer_ids(load)[0], 4);
        eplb_load_destroy(&load);
    }
}

static void scenarios_are_called_and_weigh_after_their_source(void **state)
{
    (void)state;
    write_steps("f", (int[]){1, 1, 1}, 3);
    write_steps("g", (int[]){5, 6, 7, 8}, 4);
    static const char *const texts[] = {"chat=f:6", "g", "h=g:0.5"};
    eplb_load *load = load_of(texts, 3, 2);
    static const char *const names[] = {"chat 1/2", "chat 2/2", "g 1/2", "g 2/2", "h 1/2", "h 2/2"};
    static const double weights[] = {3, 3, 0.5, 0.5, 0.25, 0.25};
    assert_tokens(load, (int[]){1, 2, 11, 15, 11, 15}, 6);
    for (int32_t s = 0; s < 6; s++) {
        assert_string_equal(eplb_load_scenario_name(load, s), names[s]);
        assert_true(eplb_load_scenario_weight(load, s) == weights[s]);
    }
    eplb_load_destroy(&load);
    load = load_of(texts, 3, 1);
    assert_tokens(load, (int[]){3, 26, 26}, 3);
    assert_string_equal(eplb_load_scenario_name(load, 0), "chat");
    assert_string_equal(eplb_load_scenario_name(load, 1), "g");
    assert_true(eplb_load_scenario_weight(load, 0) == 6.0);
    assert_true(eplb_load_scenario_weight(load, 2) == 0.5);
    eplb_load_destroy(&load);
}

static void single_source_is_cut_by_default_and_several_are_summed(void **state)
{
    (void)state;
    int tokens[40];
    for (int t = 0; t < 40; t++) {
        tokens[t] = 10;
    }
    write_steps("f", tokens, 40);
    write_steps("g", tokens, 7);
    eplb_load *load = load_of_one("f", 0);
    assert_int_equal(eplb_load_scenarios(load), 16);
    eplb_load_destroy(&load);
    load = load_of_one("g", 0);
    assert_int_equal(eplb_load_scenarios(load), 7);
    eplb_load_destroy(&load);
    load = load_of((const char *[]){"f", "g"}, 2, 0);
    assert_tokens(load, (int[]){400, 70}, 2);
    eplb_load_destroy(&load);
    eplb_error error;
    assert_ok(eplb_source_load(&load, NULL, (const char *[]){"g"}, 1, NULL, NULL, &error), &error);
    assert_int_equal(eplb_load_scenarios(load), 7);
    eplb_load_destroy(&load);
}

/* Puts a file in the place of standard input; returns what was there. */
static int replace_standard_input(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    int saved = dup(STDIN_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDIN_FILENO) >= 0);
    fclose(file);
    return saved;
}

static void standard_input_is_one_scenario(void **state)
{
    (void)state;
    write_steps("f", (int[]){1, 2, 3}, 3);
    static const char *const texts[] = {"-", "f", "x=-"};
    assert_refused(texts, 1, 2, EPLB_ERROR_ARGUMENT,
                   "standard input: can be read only once, and 2 slices need it twice");
    assert_refused(texts + 1, 2, 3, EPLB_ERROR_ARGUMENT,
                   "standard input: can be read only once, and 3 slices need it twice");
    assert_refused(texts, 3, 1, EPLB_ERROR_ARGUMENT,
                   "sources 'standard input' and 'x=-': standard input can be read once");
    int saved = replace_standard_input("f");
    eplb_load *load = load_of_one("now=-:2", 0);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    close(saved);
    assert_tokens(load, (int[]){6}, 1);
    assert_string_equal(eplb_load_scenario_name(load, 0), "now");
    eplb_load_destroy(&load);
}

static void pipe_can_be_read_only_once(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    static const char *const text[] = {"pipe"};
    assert_refused(text, 1, 2, EPLB_ERROR_ARGUMENT,
                   "pipe: can be read only once, and 2 slices need it twice");
}

/* The same rows from the last to the first, and each rank's steps in an order of its own. */
static void order_of_rows_does_not_matter(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    FILE *sorted = fopen("sorted", "wb");
    FILE *a = fopen("a", "wb");
    FILE *b = fopen("b", "wb");
    assert_true(sorted != NULL && a != NULL && b != NULL);
    for (int i = 0; i < 3 * COUNT; i++) {
        int up = i % COUNT;
        int down = COUNT - 1 - up;
        int mixed = up * 77 % COUNT;
        int layer = i / COUNT;
        fprintf(sorted, "{\"step\":%d,\"layer\":%d,\"counts\":[%d,%d]}\n", i / 3, i % 3,
                (i / 3) * 7 % 100, i % 3);
        fprintf(a, "{\"step\":%d,\"layer\":%d,\"counts\":[%d,0]}\n", down, layer, down * 7 % 100);
        fprintf(b, "{\"step\":%d,\"layer\":%d,\"counts\":[0,%d]}\n", mixed, layer, layer);
    }
    assert_int_equal(fclose(sorted) + fclose(a) + fclose(b), 0);
    for (int32_t slices = 1; slices <= 9; slices += 4) {
        eplb_load *expected = load_of_one("sorted", slices);
        eplb_load *load = load_of_one("a,b", slices);
        assert_int_equal(eplb_load_scenarios(expected), slices);
        assert_int_equal(eplb_load_scenarios(load), slices);
        for (int32_t s = 0; s < slices; s++) {
            for (int32_t l = 0; l < 3; l++) {
                assert_memory_equal(eplb_load_row(load, s, l), eplb_load_row(expected, s, l),
                                    2 * sizeof(double));
            }
        }
        eplb_load_destroy(&expected);
        eplb_load_destroy(&load);
    }
}

/* Column-major arrays have the steps of one layer together. */
static void formats_are_cut_alike(void **state)
{
    (void)state;
    static const char *const names[] = {"format/steps.npy", "format/steps_fortran.npy",
                                        "format/counts.csv", "format/counts.jsonl", "format/ranks"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_path path = test_data(names[i]);
        eplb_load *load = load_of_one(path.text, 16);
        assert_int_equal(eplb_load_scenarios(load), STEPS);
        for (int t = 0; t < STEPS; t++) {
            for (int l = 0; l < LAYERS; l++) {
                assert_memory_equal(eplb_load_row(load, t, l), recorded[t][l],
                                    sizeof(recorded[t][l]));
            }
        }
        eplb_load_destroy(&load);
    }
}

static void layer_without_rows_in_a_slice_has_no_tokens_there(void **state)
{
    (void)state;
    test_write_text("f", "step,layer,expert,tokens\n0,3,0,5\n0,9,1,1\n1,9,0,6\n");
    eplb_load *load = load_of_one("f", 2);
    assert_int_equal(eplb_load_scenarios(load), 2);
    assert_int_equal(eplb_load_layers(load), 2);
    assert_true(eplb_load_row(load, 0, 0)[0] == 5.0);
    assert_true(eplb_load_row(load, 1, 0)[0] == 0.0);
    assert_true(eplb_load_row(load, 1, 1)[0] == 6.0);
    eplb_load_destroy(&load);
}

/* vllm-project/vllm#56716, and SGLang's unfilled buffers: steps of warm-up are zero; model layers
 * without any tokens are dense in all slices alike. */
static void unfilled_steps_and_dense_layers_are_no_scenarios(void **state)
{
    (void)state;
    test_write_text("f.json", "{\"logical_count\":[[[0,0],[4,0],[1,1]],[[0,0],[0,0],[0,0]],"
                              "[[0,0],[0,0],[2,3]],[[0,0],[0,0],[0,0]]]}");
    eplb_load *load = load_of_one("f.json", 4);
    assert_int_equal(eplb_load_scenarios(load), 2);
    assert_int_equal(eplb_load_layers(load), 2);
    assert_int_equal(eplb_load_model_layers(load), 3);
    assert_int_equal(eplb_load_layer_ids(load)[0], 1);
    assert_true(eplb_load_row(load, 0, 0)[0] == 4.0);
    assert_true(eplb_load_row(load, 1, 0)[0] == 0.0);
    assert_true(eplb_load_row(load, 1, 1)[1] == 3.0);
    eplb_load_destroy(&load);
}

#define ROW(step, layer, counts) "{\"step\":" step ",\"layer\":" layer ",\"counts\":[" counts "]}\n"

/* sgl-project/sglang#5524: a sum over some of the ranks only is worth nothing. */
static void rank_that_lacks_a_step_or_a_layer_is_named(void **state)
{
    (void)state;
    test_write_text("one", ROW("1", "4", "1"));
    test_write_text("two", ROW("1", "4", "1") ROW("2", "4", "1"));
    test_write_text("early", ROW("0", "4", "1") ROW("2", "4", "1"));
    test_write_text("deep", ROW("1", "4", "1") ROW("1", "5", "1"));
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"one,two", "one: no step 2, but there is one in two"},
        {"two,one", "one: no step 2, but there is one in two"},
        {"two,two2,early", "two: no step 0, but there is one in early"},
        {"early,two", "two: no step 0, but there is one in early"},
        {"one,deep", "one: no layer 5, but there is one in deep"},
        {"deep,one", "one: no layer 5, but there is one in deep"},
    };
    test_write_text("two2", ROW("2", "4", "1") ROW("1", "4", "1"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int32_t slices = 1; slices <= 2; slices++) {
            assert_refused(&cases[i].text, 1, slices, EPLB_ERROR_DATA, cases[i].message);
        }
    }
    eplb_load *load = load_of((const char *[]){"one", "early"}, 2, 0);
    eplb_load_destroy(&load);
    assert_refused((const char *[]){"one", "deep"}, 2, 0, EPLB_ERROR_DATA,
                   "one: no layer 5, but there is one in deep");
    assert_refused((const char *[]){"two", "x=two2,deep"}, 2, 2, EPLB_ERROR_DATA,
                   "two: no layer 5, but there is one in deep");
}

/* vllm-project/vllm-ascend#10486: a pipeline stage has some of the layers, by their global ids. */
static void layers_of_a_pipeline_stage_keep_their_ids(void **state)
{
    (void)state;
    test_write_text("stage0", ROW("1", "0", "1,2") ROW("1", "1", "1,2"));
    test_write_text("stage1", ROW("1", "30", "3,4") ROW("1", "31", "5,6"));
    eplb_load *load = load_of_one("stage1", 1);
    assert_int_equal(eplb_load_layers(load), 2);
    assert_int_equal(eplb_load_layer_ids(load)[0], 30);
    assert_int_equal(eplb_load_layer_ids(load)[1], 31);
    assert_int_equal(eplb_load_model_layers(load), 0);
    assert_true(eplb_load_row(load, 0, 1)[1] == 6.0);
    eplb_load_destroy(&load);
    static const char *const both[] = {"stage0,stage1"};
    assert_refused(both, 1, 1, EPLB_ERROR_DATA, "stage1: no layer 0, but there is one in stage0");
}

static void rows_of_another_width_are_refused(void **state)
{
    (void)state;
    test_write_text("f", ROW("1", "4", "1,2,3") ROW("1", "5", "1,2,3"));
    test_write_text("g", ROW("1", "4", "1,2") ROW("1", "5", "1,2"));
    static const char *const texts[] = {"f,g"};
    static const char message[] = "g: layer 4: 2 counts, but 3 in f: not of one model";
    assert_refused(texts, 1, 1, EPLB_ERROR_DATA, message);
    assert_refused(texts, 1, 2, EPLB_ERROR_DATA, message);
}

/* Lines of CSV have no width, but experts. */
static void experts_beyond_the_rows_of_another_file_are_refused(void **state)
{
    (void)state;
    test_write_text("f", ROW("1", "4", "1,2,3"));
    test_write_text("g", "step,layer,expert,tokens\n1,4,2,1\n");
    test_write_text("h", "step,layer,expert,tokens\n1,4,3,1\n");
    static const char *const fits[] = {"f,g"};
    static const char *const behind[] = {"f,h"};
    static const char *const before[] = {"h", "f"};
    eplb_load *load = load_of(fits, 1, 1);
    assert_int_equal(eplb_load_experts(load), 3);
    eplb_load_destroy(&load);
    assert_refused(behind, 1, 1, EPLB_ERROR_DATA,
                   "h: layer 4: expert 3, but 3 counts in f: not of one model");
    assert_refused(before, 2, 1, EPLB_ERROR_DATA,
                   "f: layer 4: 3 counts, but expert 3 in h: not of one model");
}

/* vllm-project/vllm#28155: 1e30 is a number like any other, a sum beyond all numbers is none. */
static void counts_whose_sum_is_too_large_are_refused(void **state)
{
    (void)state;
    test_write_text("f", ROW("1", "4", "1e30,1") ROW("2", "4", "1e30,1"));
    eplb_load *load = load_of_one("f", 2);
    assert_int_equal(eplb_load_scenarios(load), 2);
    assert_true(eplb_load_row(load, 1, 0)[0] == 1e30);
    eplb_load_destroy(&load);
    test_write_text("f", ROW("1", "4", "1e308") ROW("2", "4", "1e308"));
    static const char *const text[] = {"x=f"};
    assert_refused(text, 1, 2, EPLB_ERROR_OVERFLOW,
                   "x: the sum of all counts is too large to be cut into slices");
    assert_refused(text, 1, 1, EPLB_ERROR_OVERFLOW,
                   "x: layer 4: expert 0: the sum over its rows is too large");
}

static void files_that_are_read_twice_warn_once(void **state)
{
    (void)state;
    test_write_text("f", ROW("1", "4", "1") ROW("1", "5", "1") ROW("2", "4", "1"));
    test_write_text("g.csv", "step,layer,expert,tokens\n1,4,0,7\n2,5,0,7");
    static const char *const texts[] = {"f", "g.csv"};
    for (int32_t slices = 1; slices <= 2; slices++) {
        test_warnings warnings = {0};
        eplb_hooks hooks = test_warning_hooks(&warnings);
        eplb_source_load_options options = sliced(slices);
        eplb_error error;
        eplb_load *load;
        assert_ok(eplb_source_load(&load, &hooks, texts, 2, NULL, &options, &error), &error);
        assert_int_equal(warnings.count, 2);
        eplb_load_destroy(&load);
    }
}

/* Log hook, called when a file was read for the first time: the server goes on writing it. */
static void append_step(void *context, int32_t level, const char *message)
{
    (void)level;
    (void)message;
    FILE *file = fopen(context, "ab");
    assert_non_null(file);
    fputs(ROW("3", "4", "1") ROW("3", "5", "1"), file);
    assert_int_equal(fclose(file), 0);
}

static void file_that_grows_between_its_two_readings_is_refused(void **state)
{
    (void)state;
    static const char *const text = "x=f";
    test_write_text("f", ROW("1", "4", "1") ROW("1", "5", "1") ROW("2", "4", "1"));
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = append_step;
    hooks.log_context = (void *)"f";
    eplb_source_load_options options = sliced(2);
    eplb_error error;
    eplb_load *load;
    assert_status(eplb_source_load(&load, &hooks, &text, 1, NULL, &options, &error),
                  EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, "x: changed while it was read");
    assert_null(load);
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"f", NULL};
    write_steps("f", (int[]){1}, 1);
    assert_refused(texts, 1, -1, EPLB_ERROR_ARGUMENT, "load: number of slices -1 not in 0..4096");
    assert_refused(texts, 1, 4097, EPLB_ERROR_ARGUMENT,
                   "load: number of slices 4097 not in 0..4096");
    assert_refused(texts, 2, 0, EPLB_ERROR_ARGUMENT, "load: no text");
    eplb_source_load_options options = sliced(1);
    options.struct_size = 0;
    eplb_error error;
    eplb_load *load;
    assert_status(eplb_source_load(&load, NULL, texts, 1, NULL, &options, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_read_options reading = options_for("");
    reading.max_experts = 0;
    assert_status(eplb_source_load(&load, NULL, texts, 1, &reading, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_source_load_options_init(NULL);
}

/* Enough steps, in descending order, for lists that must grow. */
static eplb_status load_in_slices(const eplb_hooks *hooks, void *context)
{
    eplb_source_load_options options = sliced(3);
    eplb_load *load;
    eplb_status status = eplb_source_load(&load, hooks, context, 2, NULL, &options, NULL);
    assert_true((load != NULL) == (status == EPLB_OK));
    eplb_load_destroy(&load);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    FILE *f = fopen("f", "wb");
    FILE *g = fopen("g", "wb");
    assert_true(f != NULL && g != NULL);
    for (int t = 0; t < 200; t++) {
        fprintf(f, ROW("%d", "4", "1,2"), 200 - t);
        fprintf(g, ROW("%d", "4", "1,2"), 1 + t);
    }
    assert_int_equal(fclose(f) + fclose(g), 0);
    static const char *const texts[] = {"chat=f,g:2", "g"};
    test_each_failing_allocation(load_in_slices, (void *)texts);
}

TEST_MAIN(cmocka_unit_test(ranks_are_summed),
          INSIDE(slices_have_equal_tokens_as_far_as_steps_allow),
          INSIDE(scenarios_are_called_and_weigh_after_their_source),
          INSIDE(single_source_is_cut_by_default_and_several_are_summed),
          INSIDE(standard_input_is_one_scenario), INSIDE(pipe_can_be_read_only_once),
          INSIDE(order_of_rows_does_not_matter), cmocka_unit_test(formats_are_cut_alike),
          INSIDE(layer_without_rows_in_a_slice_has_no_tokens_there),
          INSIDE(unfilled_steps_and_dense_layers_are_no_scenarios),
          INSIDE(rank_that_lacks_a_step_or_a_layer_is_named),
          INSIDE(layers_of_a_pipeline_stage_keep_their_ids),
          INSIDE(rows_of_another_width_are_refused),
          INSIDE(experts_beyond_the_rows_of_another_file_are_refused),
          INSIDE(counts_whose_sum_is_too_large_are_refused),
          INSIDE(files_that_are_read_twice_warn_once),
          INSIDE(file_that_grows_between_its_two_readings_is_refused),
          INSIDE(arguments_out_of_range_are_refused), INSIDE(failing_allocation_leaks_nothing))
