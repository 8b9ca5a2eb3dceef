/* SPDX-License-Identifier: MIT */
/* Recordings of TensorRT-LLM: directories with a file of each rank. */
#include <sys/stat.h>

#include "maps.h"
#include "tensors.h"

/* The first iteration of the recording in tests/data. */
enum { FIRST = 100 };

/* A row must be the recording's next one. */
static void check_row(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    int t = *rows / LAYERS;
    int l = *rows % LAYERS;
    assert_int_equal(row->step, FIRST + t);
    assert_int_equal(row->layer, recorded_layer_ids[l]);
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        assert_true(row->counts[e] == recorded[t][l][e]);
    }
    ++*rows;
}

static void ranks_of_a_directory_are_summed(void **state)
{
    (void)state;
    test_path path = test_data("format/trtllm_stat");
    int rows = 0;
    eplb_error error;
    assert_ok(read_rows(path.text, NULL, check_row, &rows, &error), &error);
    assert_int_equal(rows, STEPS * LAYERS);
    eplb_counts_reader *reader;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_string_equal(eplb_format_name(eplb_counts_format(reader)), "trtllm");
    assert_int_equal(eplb_counts_rank(reader), -1);
    eplb_counts_close(&reader);
}

static void slots_are_folded_by_the_placement_given(void **state)
{
    (void)state;
    test_path path = test_data("format/trtllm_stat_slots");
    eplb_placement *placement = make_recorded_placement();
    eplb_read_options options = options_for("");
    int rows = 0;
    eplb_error error;
    options.counted_under = placement;
    assert_ok(read_rows(path.text, &options, check_row, &rows, &error), &error);
    assert_int_equal(rows, STEPS * LAYERS);
    path = test_data("format/trtllm_stat");
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), DATA, &error);
    assert_contains(error.message, "8 counts, expected 12, the slots of the placement");
    eplb_placement_destroy(&placement);
}

static void slots_are_not_taken_for_the_experts_given(void **state)
{
    (void)state;
    test_path path = test_data("format/trtllm_stat_slots");
    eplb_read_options options = options_for("");
    eplb_error error;
    options.experts = EXPERTS;
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), DATA, &error);
    assert_contains(error.message, "rank0.safetensors:1:");
    assert_contains(error.message, "tensor '100_1': 12 counts, expected 8, the number of experts");
    assert_contains(error.message, "need the placement that they were counted under");
}

static void layers_are_those_of_the_model(void **state)
{
    (void)state;
    test_path path = test_data("format/trtllm_stat");
    const char *paths[] = {path.text};
    eplb_load *load;
    eplb_error error;
    assert_ok(load_summed(&load, NULL, paths, 1, NULL, &error), &error);
    assert_int_equal(eplb_load_layers(load), LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        assert_int_equal(eplb_load_layer_ids(load)[l], recorded_layer_ids[l]);
        for (int e = 0; e < EXPERTS; e++) {
            assert_true(eplb_load_row(load, 0, l)[e] == recorded_total[l][e]);
        }
    }
    eplb_load_destroy(&load);
}

static void one_rank_of_several_is_no_source(void **state)
{
    (void)state;
    test_path path = test_data("format/trtllm_stat/rank2.safetensors");
    const char *paths[] = {path.text};
    eplb_load *load;
    eplb_error error;
    assert_status(load_summed(&load, NULL, paths, 1, NULL, &error), DATA, &error);
    assert_contains(error.message, "1 file with ranks up to 2, but none of ranks 0, 1");
    eplb_counts_reader *reader;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_int_equal(eplb_counts_rank(reader), 2);
    eplb_counts_close(&reader);
}

/* Writes the file of a rank with steps first to last of layers 3 and 12, which count up from its
 * number. */
static void write_rank(const char *name, int rank, int first, int last, int experts)
{
    char header[4096] = "{";
    tensor_file file;
    size_t used = 1;
    int begin = 0;
    for (int step = first; step <= last; step++) {
        for (int layer = 3; layer <= 12; layer += 9) {
            used += (size_t)snprintf(header + used, sizeof(header) - used,
                                     "%s" VECTOR("%d_%d", % d, % d, % d), begin > 0 ? "," : "",
                                     step, layer, experts, begin, begin + 8 * experts);
            begin += 8 * experts;
        }
    }
    snprintf(header + used, sizeof(header) - used, "}");
    begin_tensors(&file, header);
    for (int i = 0; i < begin / 8; i++) {
        add_int64(&file, rank + i);
    }
    write_tensors(name, &file);
}

static eplb_status read_here(eplb_error *error)
{
    return read_rows("r", NULL, NULL, NULL, error);
}

static void make_recording(void)
{
    assert_int_equal(mkdir("r", 0700), 0);
    test_write_text("r/meta_info.json", "{\"num_experts\": 2, \"num_experts_per_token\": 1}");
}

static void write_ranks(int count)
{
    char name[64];
    for (int r = 0; r < count; r++) {
        snprintf(name, sizeof(name), "r/rank%d.safetensors", r);
        write_rank(name, r, 8, 10, 2);
    }
}

static void more_than_ten_ranks_and_other_files_are_one_recording(void **state)
{
    (void)state;
    make_recording();
    write_ranks(12);
    test_write_text("r/rank0_raw.safetensors", "x");
    test_write_text("r/rankx.safetensors", "x");
    test_write_text("r/rank.safetensors", "x");
    test_write_text("r/xrank0.safetensors", "x");
    test_write_text("r/rank0.safetensors.bak", "x");
    test_write_text("r/notes", "x");
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, "r", NULL, &error), &error);
    for (int i = 0; i < 6; i++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_int_equal(row.step, 8 + i / 2);
        assert_int_equal(row.layer, i % 2 == 0 ? 3 : 12);
        for (int e = 0; e < 2; e++) {
            assert_true(row.counts[e] == 66 + 12 * (2 * i + e));
        }
    }
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);
}

static void missing_ranks_are_named(void **state)
{
    (void)state;
    eplb_error error;
    make_recording();
    write_ranks(12);
    assert_int_equal(unlink("r/rank3.safetensors"), 0);
    assert_int_equal(unlink("r/rank10.safetensors"), 0);
    assert_status(read_here(&error), DATA, &error);
    assert_contains(error.message, "10 files with ranks up to 11, but none of ranks 3, 10:");
    write_rank("r/rank03.safetensors", 3, 8, 10, 2);
    write_rank("r/rank3.safetensors", 3, 8, 10, 2);
    assert_status(read_here(&error), DATA, &error);
    assert_contains(error.message, "rank3.safetensors: counts of rank 3, as another file");
}

static void a_rank_with_other_steps_layers_or_experts_is_named(void **state)
{
    (void)state;
    static const struct {
        int first;
        int last;
        int experts;
        const char *message;
    } others[] = {
        {8, 9, 2, "r/rank1.safetensors: no step 10, but there is one in r/rank0.safetensors"},
        {9, 10, 2, "r/rank1.safetensors: no step 8, but there is one in r/rank0.safetensors"},
        {8, 11, 2, "r/rank0.safetensors: no step 11, but there is one in r/rank1.safetensors"},
        {7, 10, 2, "r/rank0.safetensors: no step 7, but there is one in r/rank1.safetensors"},
        {8, 10, 3, "r/rank1.safetensors: tensors of 3 counts, but of 2 in r/rank0.safetensors"},
    };
    make_recording();
    write_ranks(3);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        eplb_error error;
        write_rank("r/rank1.safetensors", 1, others[i].first, others[i].last, others[i].experts);
        assert_status(read_here(&error), DATA, &error);
        assert_contains(error.message, others[i].message);
    }
}

static void a_rank_with_other_layers_is_named(void **state)
{
    (void)state;
    tensor_file file;
    eplb_error error;
    make_recording();
    begin_tensors(&file, "{" VECTOR("8_3", 2, 0, 16) "," VECTOR("8_12", 2, 16, 32) "}");
    for (int i = 0; i < 4; i++) {
        add_int64(&file, i);
    }
    write_tensors("r/rank0.safetensors", &file);
    begin_tensors(&file, "{" VECTOR("8_3", 2, 0, 16) "," VECTOR("8_11", 2, 16, 32) "}");
    file.size += 32;
    write_tensors("r/rank1.safetensors", &file);
    assert_status(read_here(&error), DATA, &error);
    assert_contains(error.message, "r/rank0.safetensors: step 8: no layer 11, but there is one in");
    begin_tensors(&file, "{" VECTOR("8_12", 2, 0, 16) "}");
    file.size += 16;
    write_tensors("r/rank1.safetensors", &file);
    assert_status(read_here(&error), DATA, &error);
    assert_contains(error.message, "r/rank1.safetensors: step 8: no layer 3, but there is one in");
}

/* Writes a rank's counts of one layer in steps 8 and 9. */
static void write_stage(int rank, int layer, int count)
{
    char header[256];
    char name[64];
    tensor_file file;
    snprintf(header, sizeof(header), "{" VECTOR("8_%d", 2, 0, 16) "," VECTOR("9_%d", 2, 16, 32) "}",
             layer, layer);
    snprintf(name, sizeof(name), "r/rank%d.safetensors", rank);
    begin_tensors(&file, header);
    for (int i = 0; i < 4; i++) {
        add_int64(&file, count + i);
    }
    write_tensors(name, &file);
}

/* vllm-project/vllm-ascend#10486: a rank has the layers of its stage, by their numbers in the
 * model. */
static void ranks_of_pipeline_stages_have_layers_of_their_own(void **state)
{
    (void)state;
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    make_recording();
    write_stage(0, 12, 1);
    write_stage(1, 12, 10);
    write_stage(2, 3, 100);
    write_stage(3, 3, 1000);
    assert_ok(eplb_counts_open(&reader, NULL, "r", NULL, &error), &error);
    for (int i = 0; i < 4; i++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_int_equal(row.step, 8 + i / 2);
        assert_int_equal(row.layer, i % 2 == 0 ? 3 : 12);
        for (int e = 0; e < 2; e++) {
            assert_true(row.counts[e] == (i % 2 == 0 ? 1100 : 11) + 2 * (2 * (i / 2) + e));
        }
    }
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);
}

static void pipeline_stages_that_do_not_fit_each_other_are_named(void **state)
{
    (void)state;
    eplb_error error;
    make_recording();
    write_stage(0, 3, 1);
    write_stage(1, 3, 1);
    write_stage(2, 12, 1);
    assert_status(read_here(&error), DATA, &error);
    assert_string_equal(error.message,
                        "r/rank2.safetensors: layer 12 is counted by 1 rank, but layer 3 by 2 in "
                        "r/rank0.safetensors: a part of the ranks is no sum of all");
    tensor_file file;
    begin_tensors(&file, "{" VECTOR("8_12", 2, 0, 16) "}");
    file.size += 16;
    write_tensors("r/rank2.safetensors", &file);
    assert_status(read_here(&error), DATA, &error);
    assert_string_equal(error.message, "r/rank2.safetensors: no step 9, but there is one in "
                                       "r/rank0.safetensors");
    begin_tensors(&file, "{" VECTOR("7_12", 2, 0, 16) "," VECTOR("8_12", 2, 16, 32) "}");
    file.size += 32;
    write_tensors("r/rank2.safetensors", &file);
    assert_status(read_here(&error), DATA, &error);
    assert_string_equal(error.message, "r/rank0.safetensors: no step 7, but there is one in "
                                       "r/rank2.safetensors");
}

static void meta_info_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        eplb_status status;
        const char *message;
    } infos[] = {
        {"{\"num_experts\":3}", DATA,
         "meta_info.json: num_experts 3, but tensors of 2 counts in r/rank0.safetensors"},
        {"", PARSE, "meta_info.json:1:1: expected '{', found the end of the file"},
        {"[2]", PARSE, "expected '{', found '['"},
        {"{}", PARSE, "no key 'num_experts'"},
        {"{\"num_experts\":\"2\"}", PARSE, "expected a number, found '\"'"},
        {"{\"num_experts\":2.5}", PARSE, "num_experts 2.5 is not an integer"},
        {"{\"num_experts\":-2}", DATA, "num_experts -2 is negative"},
        {"{\"num_experts\":2,\"num_experts\":2}", PARSE, "second key 'num_experts'"},
        {"{\"num_experts\":2", PARSE, "expected ',' or '}', found the end of the file"},
        {"{\"num_experts\":2}}", PARSE, "expected the end of the file, found '}'"},
    };
    make_recording();
    write_ranks(2);
    for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); i++) {
        eplb_error error;
        test_write_text("r/meta_info.json", infos[i].content);
        assert_status(read_here(&error), infos[i].status, &error);
        assert_contains(error.message, infos[i].message);
    }
}

static void a_directory_without_ranks_or_meta_info_is_no_recording(void **state)
{
    (void)state;
    eplb_error error;
    eplb_read_options options = options_for("trtllm");
    make_recording();
    test_write_text("r/rank0_raw.safetensors", "x");
    assert_status(read_here(&error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "Is a directory");
    assert_status(read_rows("r", &options, NULL, NULL, &error), DATA, &error);
    assert_contains(error.message, "r: no file rank<number>.safetensors in it");
    write_ranks(2);
    assert_int_equal(unlink("r/meta_info.json"), 0);
    assert_status(read_here(&error), EPLB_ERROR_IO, &error);
    assert_status(read_rows("r", &options, NULL, NULL, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, "r/meta_info.json: cannot open");
}

static void a_bad_count_of_any_rank_is_named(void **state)
{
    (void)state;
    tensor_file file;
    eplb_error error;
    make_recording();
    write_ranks(3);
    begin_tensors(&file, "{" VECTOR("8_3", 2, 0, 16) "," VECTOR("8_12", 2, 16, 32) "," VECTOR(
                             "9_3", 2, 32,
                             48) "," VECTOR("9_12", 2, 48,
                                            64) "," VECTOR("10_3", 2, 64,
                                                           80) "," VECTOR("10_12", 2, 80, 96) "}");
    for (int i = 0; i < 12; i++) {
        add_int64(&file, i == 7 ? -1 : i);
    }
    write_tensors("r/rank2.safetensors", &file);
    assert_status(read_here(&error), DATA, &error);
    assert_contains(error.message,
                    "r/rank2.safetensors: step 9: layer 12: expert 1: -1 is negative");
}

/* Limits of this test: 4 layers, 6 experts. */
static const bad_tensors files[] = {
    {"{" VECTOR("0_4", 1, 0, 8) "}",
     LIMIT,
     "f:1:63: tensor '0_4': layer 4 is above the limit 3",
     {1},
     1},
    {"{" VECTOR("0_99999999999", 1, 0, 8) "}", LIMIT, "layer 99999999999 is above", {1}, 1},
    {"{" VECTOR("0", 1, 0, 8) "}",
     PARSE,
     "tensor '0': its name is not <iteration>_<layer>",
     {1},
     1},
    {"{" VECTOR("0_", 1, 0, 8) "}", PARSE, "tensor '0_': its name is not", {1}, 1},
    {"{" VECTOR("_0", 1, 0, 8) "}", PARSE, "tensor '_0': its name is not", {1}, 1},
    {"{" VECTOR("-1_0", 1, 0, 8) "}", PARSE, "tensor '-1_0': its name is not", {1}, 1},
    {"{" VECTOR("1_0x", 1, 0, 8) "}", PARSE, "tensor '1_0x': its name is not", {1}, 1},
    {"{" VECTOR("01_0", 1, 0, 8) "}", PARSE, "tensor '01_0': its name is not", {1}, 1},
    {"{" VECTOR("1_0_0", 1, 0, 8) "}", PARSE, "tensor '1_0_0': its name is not", {1}, 1},
    {"{" VECTOR("9999999999999999_0", 1, 0, 8) "}", PARSE, "its name is not", {1}, 1},
    {"{" VECTOR("0_0\\n\\u001b", 1, 0, 8) "}", PARSE, "tensor '0_0\?\?': its name", {1}, 1},
    {"{" VECTOR("0_1", 7, 0, 56) "}",
     LIMIT,
     "tensor '0_1': 7 counts, limit 6",
     {1, 2, 3, 4, 5, 6, 7},
     7},
    {"{\"0_1\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     PARSE,
     "tensor '0_1': its shape is not [experts]",
     {0},
     0},
    {"{\"0_1\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}",
     PARSE,
     "tensor '0_1': its shape is not [experts]",
     {1},
     1},
    {"{\"0_1\":{\"dtype\":\"I64\",\"shape\":[1,2],\"data_offsets\":[0,16]}}",
     PARSE,
     "tensor '0_1': its shape is not [experts]",
     {1, 2},
     2},
    {"{\"0_1\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
     PARSE,
     "tensor '0_1': items are floats, expected integers",
     {1},
     1},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("0_2", 2, 8, 24) "}",
     PARSE,
     "tensor '0_2': 2 counts of 8 bytes, but 1 of 8 bytes before it",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 1, 0,
                8) ",\"0_2\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[8,12]"
                   "},\"0_3\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[12,16]}}",
     PARSE,
     "tensor '0_2': 1 counts of 4 bytes, but 1 of 8 bytes",
     {1, 2},
     2},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("2_1", 1, 8, 16) "}",
     DATA,
     "f: no step 1 between 0 and 2",
     {1, 2},
     2},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("0_2", 1, 8, 16) "," VECTOR("1_1", 1, 16, 24) "}",
     DATA,
     "f: step 1: no layer 2, but there is one in step 0",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("0_2", 1, 8, 16) "," VECTOR("1_2", 1, 16, 24) "}",
     DATA,
     "f: step 1: no layer 1, but there is one in step 0",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("1_1", 1, 8, 16) "," VECTOR("1_2", 1, 16, 24) "}",
     DATA,
     "f: step 1: layer 2, but there is none in step 0",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("1_0", 1, 8, 16) "," VECTOR("1_1", 1, 16, 24) "}",
     DATA,
     "f: step 1: layer 0, but there is none in step 0",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 1, 0, 8) "," VECTOR("1_1", 1, 8, 16) "," VECTOR("1_1", 1, 16, 24) "}",
     PARSE,
     "f: step 1: layer 1 a second time",
     {1, 2, 3},
     3},
    {"{" VECTOR("0_1", 2, 0, 16) "}",
     DATA,
     "f: step 0: layer 1: expert 1: -5 is negative",
     {1, -5},
     2},
    {"{" VECTOR("0_1", 2, 0, 16) "}",
     EPLB_ERROR_OVERFLOW,
     "f: step 0: layer 1: expert 1: 9007199254740994 is above 2^53",
     {9007199254740992.0, 9007199254740994.0},
     2},
    {"{\"0_1\":{\"dtype\":\"I16\",\"shape\":[4],\"data_offsets\":[0,8]}}",
     DATA,
     "f: step 0: layer 1: expert 0: -2 is negative",
     {-2},
     1},
};

static void bad_files_of_a_rank_are_refused(void **state)
{
    eplb_read_options options = options_for("trtllm");
    options.max_layers = 4;
    options.max_experts = 6;
    assert_tensors_refused(*state, ALL_OF(files), &options, false);
}

/* Sums that a few lines of Python computed from the files. */
static void real_routing_has_the_sums_of_python(void **state)
{
    (void)state;
    test_path path = test_shared_or_skip("fixtures/trtllm_real");
    enum { REAL_EXPERTS = 64, REAL_LAYERS = 26, REAL_STEPS = 20 };
    static double sums[REAL_LAYERS + 1][REAL_EXPERTS][2];
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    for (int i = 0; i < REAL_STEPS * REAL_LAYERS; i++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_in_range(row.layer, 1, REAL_LAYERS);
        assert_int_equal(row.length, REAL_EXPERTS);
        for (int e = 0; e < REAL_EXPERTS; e++) {
            sums[row.layer][e][0] += row.counts[e];
            sums[row.layer][e][1] += row.counts[e] * (double)(row.step - FIRST + 1);
        }
    }
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);

    test_path stored = test_data("format/trtllm_real_sums.csv");
    FILE *file = fopen(stored.text, "r");
    assert_non_null(file);
    int lines = 0;
    int layer;
    int expert;
    double tokens;
    double weighted;
    assert_int_equal(fscanf(file, "%*s"), 0);
    while (fscanf(file, "%d,%d,%lf,%lf", &layer, &expert, &tokens, &weighted) == 4) {
        assert_true(sums[layer][expert][0] == tokens && sums[layer][expert][1] == weighted);
        lines++;
    }
    assert_int_equal(lines, REAL_LAYERS * REAL_EXPERTS);
    fclose(file);
}

TEST_MAIN(cmocka_unit_test(ranks_of_a_directory_are_summed),
          cmocka_unit_test(slots_are_folded_by_the_placement_given),
          cmocka_unit_test(slots_are_not_taken_for_the_experts_given),
          cmocka_unit_test(layers_are_those_of_the_model),
          cmocka_unit_test(one_rank_of_several_is_no_source),
          INSIDE(more_than_ten_ranks_and_other_files_are_one_recording),
          INSIDE(missing_ranks_are_named),
          INSIDE(a_rank_with_other_steps_layers_or_experts_is_named),
          INSIDE(a_rank_with_other_layers_is_named),
          INSIDE(ranks_of_pipeline_stages_have_layers_of_their_own),
          INSIDE(pipeline_stages_that_do_not_fit_each_other_are_named),
          INSIDE(meta_info_is_checked),
          INSIDE(a_directory_without_ranks_or_meta_info_is_no_recording),
          INSIDE(a_bad_count_of_any_rank_is_named), IN_DIRECTORY(bad_files_of_a_rank_are_refused),
          cmocka_unit_test(real_routing_has_the_sums_of_python))
