/* SPDX-License-Identifier: MIT */
/* Sources: what their texts mean, and their files step by step. */
#include <sys/stat.h>

#include "reading.h"
#include "recording.h"

static eplb_source *open_source(const char *text, const eplb_read_options *options)
{
    eplb_source *source;
    eplb_error error;
    assert_ok(eplb_source_open(&source, NULL, text, options, &error), &error);
    return source;
}

/* Whether the text stands for this name, weight and files, which end with NULL. */
static void assert_source(const char *text, const char *name, double weight,
                          const char *const *paths)
{
    eplb_source *source = open_source(text, NULL);
    assert_string_equal(eplb_source_name(source), name);
    assert_true(eplb_source_weight(source) == weight);
    int32_t count = 0;
    for (; paths[count] != NULL; count++) {
        assert_non_null(eplb_source_path(source, count));
        assert_string_equal(eplb_source_path(source, count), paths[count]);
    }
    assert_int_equal(eplb_source_files(source), count);
    assert_null(eplb_source_path(source, count));
    assert_null(eplb_source_path(source, -1));
    eplb_source_close(&source);
    assert_null(source);
}

static const char counts[] = "{\"step\":0,\"layer\":2,\"counts\":[1,2]}\n";

static void text_has_a_name_paths_and_a_weight(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    test_write_text("a", counts);
    test_write_text("b", counts);
    test_write_text("d/c:x", counts);
    assert_source("a", "a", 1.0, (const char *[]){"a", NULL});
    assert_source("a:3", "a", 3.0, (const char *[]){"a", NULL});
    assert_source("chat=a", "chat", 1.0, (const char *[]){"a", NULL});
    assert_source("chat=a:0.25", "chat", 0.25, (const char *[]){"a", NULL});
    assert_source("a,b:2", "a,b", 2.0, (const char *[]){"a", "b", NULL});
    assert_source("night run=b,a", "night run", 1.0, (const char *[]){"b", "a", NULL});
    assert_source("./a", "./a", 1.0, (const char *[]){"./a", NULL});
    assert_source("x=b,d/c:x:4", "x", 4.0, (const char *[]){"b", "d/c:x", NULL});
}

static void file_is_called_whatever_it_is_called(void **state)
{
    (void)state;
    assert_int_equal(mkdir("k=v", 0700), 0);
    static const char *const names[] = {"a=b", "a:3", "a,b", "x=y,z:3", "=", ":1", "k=v/f"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_write_text(names[i], counts);
        assert_source(names[i], names[i], 1.0, (const char *[]){names[i], NULL});
    }
    assert_source("chat=x=y,z:3", "chat", 1.0, (const char *[]){"x=y,z:3", NULL});
    assert_source("chat=a,b:7", "chat", 7.0, (const char *[]){"a,b", NULL});
}

static void directory_is_its_files_in_numeric_order(void **state)
{
    (void)state;
    static const char *const names[] = {"rank10", "rank2",    "rank02_b10", "rank02_b9",
                                        "rank02", ".hidden",  "rank2.gz",   "a",
                                        "rank",   "rank0002", "10",         "9"};
    static const char *const ordered[] = {"d/9",         "d/10",         "d/a",      "d/rank",
                                          "d/rank0002",  "d/rank02",     "d/rank2",  "d/rank2.gz",
                                          "d/rank02_b9", "d/rank02_b10", "d/rank10", NULL};
    assert_int_equal(mkdir("d", 0700), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];
        snprintf(path, sizeof(path), "d/%s", names[i]);
        test_write_text(path, counts);
    }
    assert_source("d", "d", 1.0, ordered);
    assert_source("d/:2", "d/", 2.0, ordered);
    test_write_text("b", counts);
    test_write_text("e", counts);
    eplb_source *source = open_source("e,d,b", NULL);
    assert_int_equal(eplb_source_files(source), 13);
    assert_string_equal(eplb_source_path(source, 0), "e");
    assert_string_equal(eplb_source_path(source, 1), "d/9");
    assert_string_equal(eplb_source_path(source, 12), "b");
    eplb_source_close(&source);
}

/* One more than fits the first list of paths, in an order in which none is the last. */
static void long_directory_is_ordered_too(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    for (int i = 0; i < 100; i++) {
        char path[64];
        snprintf(path, sizeof(path), "d/r%d", (i * 37 + 11) % 100);
        test_write_text(path, counts);
    }
    eplb_source *source = open_source("d", NULL);
    assert_int_equal(eplb_source_files(source), 100);
    for (int i = 0; i < 100; i++) {
        char path[64];
        snprintf(path, sizeof(path), "d/r%d", i);
        assert_string_equal(eplb_source_path(source, i), path);
    }
    eplb_source_close(&source);
}

static void assert_refused(const char *text, eplb_status expected, const char *message)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_error error;
    eplb_source *source = (eplb_source *)&error;
    assert_status(eplb_source_open(&source, &hooks, text, NULL, &error), expected, &error);
    assert_string_equal(error.message, message);
    assert_null(source);
    assert_int_equal(memory.live, 0);
}

static void text_that_is_no_source_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    test_write_text("a", counts);
    test_write_text("d/a", counts);
    assert_int_equal(mkdir("links", 0700), 0);
    test_write_text("links/rank0", counts);
    assert_int_equal(symlink("rank0", "links/latest"), 0);
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "source '': an empty path"},
        {"chat=", "source 'chat=': an empty path"},
        {"=a", "source '=a': the name before '=' is empty"},
        {"a,", "source 'a,': an empty path"},
        {"a,,d", "source 'a,,d': an empty path"},
        {":2", "source ':2': an empty path"},
        {"a,a", "source 'a,a': a twice"},
        {"d,d/a", "source 'd,d/a': d/a twice"},
        {"d/a,d", "source 'd/a,d': d/a twice"},
        {"-,-", "source '-,-': standard input twice"},
        {"a,./a", "source 'a,./a': ./a twice, also as a"},
        {"links", "source 'links': links/rank0 twice, also as links/latest"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_refused(cases[i].text, EPLB_ERROR_ARGUMENT, cases[i].message);
    }
}

static void weight_is_a_number_above_0(void **state)
{
    (void)state;
    test_write_text("a", counts);
    static const char *const weights[] = {"",   "0",  "0.0", "-1",  "1e3",
                                          "x",  "3 ", "nan", ".5",  "1.",
                                          "03", "+1", "inf", "0x1", "1234567890123456"};
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        char text[64];
        char message[256];
        snprintf(text, sizeof(text), "chat=a:%s", weights[i]);
        snprintf(message, sizeof(message),
                 "source '%s': no such file, and the weight '%s' is not a decimal number above 0, "
                 "such as 3 or 0.25",
                 text, weights[i]);
        assert_refused(text, EPLB_ERROR_ARGUMENT, message);
    }
}

static void file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    assert_int_equal(mkdir("empty", 0700), 0);
    assert_int_equal(mkdir("deep", 0700), 0);
    assert_int_equal(mkdir("deep/er", 0700), 0);
    test_write_text("empty/.hidden", counts);
    test_write_text("a", counts);
    test_write_text("strange", "no counts\n");
    assert_refused("none", EPLB_ERROR_IO, "none: cannot open: No such file or directory");
    assert_refused("x=a,none:2", EPLB_ERROR_IO, "none: cannot open: No such file or directory");
    assert_refused("d:o/none", EPLB_ERROR_IO, "d:o/none: cannot open: No such file or directory");
    assert_refused("empty", EPLB_ERROR_DATA, "empty: a directory without files");
    assert_refused("a,empty/", EPLB_ERROR_DATA, "empty/: a directory without files");
    assert_refused("deep", EPLB_ERROR_IO, "deep/er: cannot read: Is a directory");
    eplb_error error;
    eplb_source *source;
    assert_status(eplb_source_open(&source, NULL, "a,strange", NULL, &error), EPLB_ERROR_PARSE,
                  &error);
    assert_contains(error.message, "strange: the content is of no known format");
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    test_write_text("a", counts);
    eplb_error error;
    eplb_source *source = open_source("a", NULL);
    eplb_source_step step = {.struct_size = 0};
    assert_status(eplb_source_next(source, &step, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_source_next(source, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    step.struct_size = sizeof(step);
    assert_status(eplb_source_next(NULL, &step, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_ok(eplb_source_next(source, &step, &error), &error);
    eplb_source_close(&source);
    eplb_source_close(&source);
    eplb_source_close(NULL);
    assert_status(eplb_source_open(NULL, NULL, "a", NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_source_open(&source, NULL, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_read_options options = options_for("");
    options.max_layers = 0;
    assert_status(eplb_source_open(&source, NULL, "a", &options, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_null(source);
}

static eplb_source_step next_of(eplb_source *source)
{
    eplb_error error;
    eplb_source_step step = {.struct_size = sizeof(step)};
    assert_ok(eplb_source_next(source, &step, &error), &error);
    return step;
}

static void assert_end(eplb_source *source)
{
    eplb_source_step step = {.struct_size = sizeof(step), .step = 7};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(eplb_source_next(source, &step, NULL), EPLB_END);
        assert_int_equal(step.step, 7);
    }
}

static void assert_recording(const char *name)
{
    test_path path = test_data(name);
    eplb_source *source = open_source(path.text, NULL);
    for (int t = 0; t < STEPS; t++) {
        eplb_source_step step = next_of(source);
        assert_int_equal(step.step, t);
        assert_int_equal(step.rows, LAYERS);
        assert_int_equal(step.experts, EXPERTS);
        assert_int_equal(step.reserved, 0);
        for (int l = 0; l < LAYERS; l++) {
            assert_int_equal(step.layer_ids[l], l);
        }
        assert_memory_equal(step.counts, recorded[t], sizeof(recorded[t]));
    }
    assert_end(source);
    eplb_source_close(&source);
}

/* vllm-project/vllm-ascend#7887: axes were mixed. Steps, layers and experts differ in number. */
static void one_file_is_handed_out_step_by_step(void **state)
{
    (void)state;
    assert_recording("format/counts.csv");
    assert_recording("format/counts.jsonl");
    assert_recording("format/steps.npy");
}

/* sgl-project/sglang#5524: the counts of one rank are not those of the model. Eleven ranks, so that
 * numeric and text order differ. */
static void ranks_are_summed_step_by_step(void **state)
{
    (void)state;
    assert_recording("format/ranks");
}

static void counts_without_steps_are_one_step(void **state)
{
    (void)state;
    test_path path = test_data("format/total_f32.npy");
    eplb_source *source = open_source(path.text, NULL);
    eplb_source_step step = next_of(source);
    assert_int_equal(step.step, 0);
    assert_memory_equal(step.counts, recorded_total, sizeof(recorded_total));
    assert_end(source);
    eplb_source_close(&source);
}

#define ROW(step, layer, counts) "{\"step\":" step ",\"layer\":" layer ",\"counts\":[" counts "]}\n"

/* vllm-project/vllm-ascend#10486: a pipeline stage has some of the layers, by their global ids. */
static void layers_ascend_and_repeated_rows_add_up(void **state)
{
    (void)state;
    test_write_text("f", ROW("3", "40", "1,2") ROW("3", "7", "4,8") ROW("3", "40", "16,32")
                             ROW("3", "9", "64,128") ROW("5", "8", "1,1"));
    eplb_source *source = open_source("f", NULL);
    eplb_source_step step = next_of(source);
    static const int32_t ids[] = {7, 9, 40};
    static const double sums[] = {4, 8, 64, 128, 17, 34};
    assert_int_equal(step.step, 3);
    assert_int_equal(step.rows, 3);
    assert_memory_equal(step.layer_ids, ids, sizeof(ids));
    assert_memory_equal(step.counts, sums, sizeof(sums));
    step = next_of(source);
    assert_int_equal(step.step, 5);
    assert_int_equal(step.rows, 1);
    assert_int_equal(step.layer_ids[0], 8);
    assert_true(step.counts[0] == 1.0 && step.counts[1] == 1.0);
    assert_end(source);
    eplb_source_close(&source);
}

static void missing_experts_of_csv_have_no_tokens(void **state)
{
    (void)state;
    test_write_text("f.csv", "step,layer,expert,tokens\n1,0,1,5\n1,1,0,3\n1,1,3,6\n2,0,0,1\n");
    test_write_text("g.csv", "step,layer,expert,tokens\n1,1,2,50\n1,0,2,40\n2,0,1,2\n");
    static const double first[] = {0, 5, 40, 0, 3, 0, 50, 6};
    static const double second[] = {1, 2, 0, 0};
    eplb_source *source = open_source("f.csv,g.csv", NULL);
    eplb_source_step step = next_of(source);
    assert_int_equal(step.rows, 2);
    assert_int_equal(step.experts, 4);
    assert_memory_equal(step.counts, first, sizeof(first));
    step = next_of(source);
    assert_int_equal(step.rows, 1);
    assert_int_equal(step.experts, 4);
    assert_memory_equal(step.counts, second, sizeof(second));
    eplb_source_close(&source);

    eplb_read_options options = options_for("");
    options.experts = 6;
    source = open_source("f.csv", &options);
    step = next_of(source);
    assert_int_equal(step.experts, 6);
    static const double wide[] = {0, 5, 0, 0, 0, 0, 3, 0, 0, 6, 0, 0};
    assert_memory_equal(step.counts, wide, sizeof(wide));
    eplb_source_close(&source);
}

/* Rows come from the last layer to the first, each longer than the one before. */
static void rows_that_grow_in_the_middle_keep_their_counts(void **state)
{
    (void)state;
    FILE *file = fopen("f.csv", "wb");
    assert_non_null(file);
    fprintf(file, "layer,expert,tokens\n");
    for (int l = 39; l >= 0; l--) {
        fprintf(file, "%d,%d,%d\n%d,0,%d\n", l, 100 - l, 1000 + l, l, 2000 + l);
    }
    assert_int_equal(fclose(file), 0);
    eplb_source *source = open_source("f.csv", NULL);
    eplb_source_step step = next_of(source);
    assert_int_equal(step.rows, 40);
    assert_int_equal(step.experts, 101);
    for (int l = 0; l < 40; l++) {
        assert_int_equal(step.layer_ids[l], l);
        for (int e = 0; e < 101; e++) {
            double expected = e == 0 ? 2000 + l : e == 100 - l ? 1000 + l : 0;
            assert_true(step.counts[l * 101 + e] == expected);
        }
    }
    eplb_source_close(&source);
}

/* Reads a source of files "f" and "g" until it fails; then it must stay failed. */
static void assert_fails(const char *f, const char *g, int32_t good_steps, eplb_status expected,
                         const char *message)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_error error;
    eplb_source *source;
    eplb_source_step step = {.struct_size = sizeof(step)};
    test_write_text("f", f);
    test_write_text("g", g);
    assert_ok(eplb_source_open(&source, &hooks, "both=f,g", NULL, &error), &error);
    for (int32_t i = 0; i < good_steps; i++) {
        assert_ok(eplb_source_next(source, &step, &error), &error);
    }
    assert_status(eplb_source_next(source, &step, &error), expected, &error);
    assert_string_equal(error.message, message);
    assert_status(eplb_source_next(source, &step, &error), expected, &error);
    assert_string_equal(error.message, "both: an earlier read failed");
    eplb_source_close(&source);
    assert_int_equal(memory.live, 0);
}

/* sgl-project/sglang#5524: a sum over some of the ranks only is worth nothing. */
static void file_that_lacks_a_step_is_named(void **state)
{
    (void)state;
    assert_fails(ROW("0", "1", "1") ROW("1", "1", "1"), ROW("0", "1", "1"), 1, EPLB_ERROR_DATA,
                 "g: no step 1, but there is one in f");
    assert_fails(ROW("0", "1", "1"), ROW("0", "1", "1") ROW("9", "1", "1"), 1, EPLB_ERROR_DATA,
                 "f: no step 9, but there is one in g");
    assert_fails(ROW("2", "1", "1") ROW("3", "1", "1"), ROW("1", "1", "1") ROW("3", "1", "1"), 0,
                 EPLB_ERROR_DATA, "f: no step 1, but there is one in g");
}

static void file_that_lacks_a_layer_of_a_step_is_named(void **state)
{
    (void)state;
    const char *both = ROW("4", "1", "1") ROW("4", "2", "1");
    assert_fails(both, ROW("4", "2", "1"), 0, EPLB_ERROR_DATA,
                 "g: step 4: no layer 1, but there is one in f");
    assert_fails(both, ROW("4", "1", "1"), 0, EPLB_ERROR_DATA,
                 "g: step 4: no layer 2, but there is one in f");
    assert_fails(ROW("4", "2", "1"), both, 0, EPLB_ERROR_DATA,
                 "f: step 4: no layer 1, but there is one in g");
}

static void step_behind_a_later_one_is_refused(void **state)
{
    (void)state;
    assert_fails(ROW("1", "2", "1") ROW("3", "2", "1") ROW("1", "5", "1"),
                 ROW("1", "2", "1") ROW("3", "2", "1"), 1, EPLB_ERROR_DATA,
                 "f: layer 5: step 1 comes after step 3: the rows are not in the order of steps");
}

static void files_of_two_models_are_refused(void **state)
{
    (void)state;
    assert_fails(ROW("1", "2", "1,2"), ROW("1", "2", "1,2,3"), 0, EPLB_ERROR_DATA,
                 "g: layer 2: 3 counts, but 2 in f: not of one model");
    assert_fails(ROW("1", "2", "1,2"), "step,layer,expert,tokens\n1,2,2,1\n", 0, EPLB_ERROR_DATA,
                 "g: layer 2: expert 2, but 2 counts in f: not of one model");
}

/* vllm-project/vllm#28155: 1e30 is a number like any other, a sum beyond all numbers is none. */
static void sum_that_overflows_names_its_place(void **state)
{
    (void)state;
    const char *large = ROW("1", "2", "1,1e30") ROW("2", "2", "1,1.5e308");
    assert_fails(large, large, 1, EPLB_ERROR_OVERFLOW,
                 "g: step 2: layer 2: expert 1: the sum of its counts is too large");
}

static void error_in_a_file_ends_the_source(void **state)
{
    (void)state;
    assert_fails(ROW("1", "2", "1") ROW("2", "2", "1") "x",
                 ROW("1", "2", "1") ROW("2", "2", "1") ROW("3", "2", "1"), 1, EPLB_ERROR_PARSE,
                 "f:3: expected '{', found 'x'");
}

static void shorter_step_is_filled_as_far_as_it_goes(void **state)
{
    (void)state;
    test_write_text("f", ROW("6", "2", "1,2"));
    eplb_source *source = open_source("f", NULL);
    eplb_source_step step = {.struct_size = offsetof(eplb_source_step, experts), .experts = -5};
    assert_ok(eplb_source_next(source, &step, NULL), NULL);
    assert_int_equal(step.rows, 1);
    assert_int_equal(step.step, 6);
    assert_int_equal(step.experts, -5);
    eplb_source_close(&source);
}

static eplb_status read_whole(const eplb_hooks *hooks, void *context)
{
    eplb_source *source;
    eplb_source_step step = {.struct_size = sizeof(step)};
    eplb_status status = eplb_source_open(&source, hooks, context, NULL, NULL);
    assert_true((source != NULL) == (status == EPLB_OK));
    while (status == EPLB_OK) {
        status = eplb_source_next(source, &step, NULL);
    }
    eplb_source_close(&source);
    return status == EPLB_END ? EPLB_OK : status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    for (int i = 0; i < 9; i++) {
        char path[64];
        snprintf(path, sizeof(path), "d/%d.csv", i);
        test_write_text(path, "layer,expert,tokens\n0,0,1\n1,5,1\n2,9,1\n3,1,1\n4,1,1\n5,1,1\n"
                              "6,1,1\n7,1,1\n8,1,1\n");
    }
    test_each_failing_allocation(read_whole, (char[]){"chat=d:2"});
}

TEST_MAIN(INSIDE(text_has_a_name_paths_and_a_weight), INSIDE(file_is_called_whatever_it_is_called),
          INSIDE(directory_is_its_files_in_numeric_order), INSIDE(long_directory_is_ordered_too),
          INSIDE(text_that_is_no_source_is_refused), INSIDE(weight_is_a_number_above_0),
          INSIDE(file_that_cannot_be_read_is_named), INSIDE(missing_arguments_are_refused),
          cmocka_unit_test(one_file_is_handed_out_step_by_step),
          cmocka_unit_test(ranks_are_summed_step_by_step),
          cmocka_unit_test(counts_without_steps_are_one_step),
          INSIDE(layers_ascend_and_repeated_rows_add_up),
          INSIDE(missing_experts_of_csv_have_no_tokens),
          INSIDE(rows_that_grow_in_the_middle_keep_their_counts),
          INSIDE(file_that_lacks_a_step_is_named),
          INSIDE(file_that_lacks_a_layer_of_a_step_is_named),
          INSIDE(step_behind_a_later_one_is_refused), INSIDE(files_of_two_models_are_refused),
          INSIDE(sum_that_overflows_names_its_place), INSIDE(error_in_a_file_ends_the_source),
          INSIDE(shorter_step_is_filled_as_far_as_it_goes),
          INSIDE(failing_allocation_leaks_nothing))
