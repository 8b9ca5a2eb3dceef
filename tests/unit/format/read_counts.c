/* SPDX-License-Identifier: MIT */
#include "reading.h"
#include "recording.h"

/* Sums of what a file says, and how often it said it. */
typedef struct tally {
    double sums[STEPS][LAYERS + 1][EXPERTS];
    int rows;
} tally;

static void add_row(void *context, const eplb_counts_row *row)
{
    tally *self = context;
    assert_in_range(row->step, 0, STEPS - 1);
    assert_in_range(row->layer, 0, LAYERS);
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        self->sums[row->step][row->layer][e] += row->counts[e];
    }
    self->rows++;
}

static void read_fixture(const char *name, const char *format, tally *result)
{
    eplb_error error;
    eplb_read_options options = options_for("");
    test_path path = test_data(name);
    memset(result, 0, sizeof(*result));
    assert_ok(read_rows(path.text, &options, add_row, result, &error), &error);

    eplb_counts_reader *reader;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_string_equal(eplb_format_name(eplb_counts_format(reader)), format);
    eplb_counts_close(&reader);
}

static void assert_recording(const tally *result)
{
    assert_int_equal(result->rows, STEPS * LAYERS);
    for (int t = 0; t < STEPS; t++) {
        for (int l = 0; l < LAYERS; l++) {
            for (int e = 0; e < EXPERTS; e++) {
                assert_true(result->sums[t][l][e] == recorded[t][l][e]);
            }
        }
    }
}

/* The file has no steps and its first MoE layer is `first_layer`. */
static void assert_total(const tally *result, int first_layer)
{
    assert_int_equal(result->rows, LAYERS + first_layer);
    for (int l = 0; l < LAYERS; l++) {
        for (int e = 0; e < EXPERTS; e++) {
            assert_true(result->sums[0][first_layer + l][e] == recorded_total[l][e]);
        }
    }
}

static void csv_has_the_recording(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/counts.csv", "csv", &result);
    assert_recording(&result);
}

static void jsonl_has_the_recording(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/counts.jsonl", "jsonl", &result);
    assert_recording(&result);
}

static void npy_has_the_recording(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/steps.npy", "npy", &result);
    assert_recording(&result);
}

static void fortran_npy_has_the_recording(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/steps_fortran.npy", "npy", &result);
    assert_recording(&result);
}

static void big_endian_npy_has_the_total(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/total_big_endian.npy", "npy", &result);
    assert_total(&result, 0);
}

static void float_npy_has_the_total(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/total_f32.npy", "npy", &result);
    assert_total(&result, 0);
}

static void sglang_has_the_total_behind_a_dense_layer(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/sglang_logical_count.json", "sglang", &result);
    assert_total(&result, 1);
    for (int e = 0; e < EXPERTS; e++) {
        assert_true(result.sums[0][0][e] == 0.0);
    }
}

static void each_line_of_vllm_stats_is_folded_by_its_own_map(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/vllm_stats.jsonl", "vllm_stats", &result);
    assert_recording(&result);
    read_fixture("format/vllm_stats_map_changes.jsonl", "vllm_stats", &result);
    assert_recording(&result);
}

/* Its windows of two steps would count each token twice. */
static void vllm_dump_has_the_recording_not_its_windows(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/vllm_dump.json", "vllm_dump", &result);
    assert_recording(&result);
}

static void fastdeploy_has_the_total(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/fastdeploy_rearrange.json", "fastdeploy", &result);
    assert_total(&result, 0);
}

static void lmdeploy_has_the_total(void **state)
{
    (void)state;
    tally result;
    read_fixture("format/lmdeploy_statistic.json", "lmdeploy", &result);
    assert_total(&result, 0);
}

/* A row as a text: "step/layer: count count". */
static void describe_row(void *context, const eplb_counts_row *row)
{
    char *text = context;
    size_t used = strlen(text);
    used +=
        (size_t)snprintf(text + used, 1000 - used, "%lld/%d:", (long long)row->step, row->layer);
    for (int32_t e = 0; e < row->length; e++) {
        used += (size_t)snprintf(text + used, 1000 - used, " %.17g", row->counts[e]);
    }
    snprintf(text + used, 1000 - used, "\n");
}

/* Good files in unusual forms. */
static const struct {
    const char *name;
    const char *format;
    const char *content;
    const char *rows;
} forms[] = {
    {"three dimensions", "sglang",
     "{\"rank\": 0, \"logical_count\": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], \"other\": {\"a\": "
     "[null, true, -1.5e3, \"\\u00e4\\\\\"]}}",
     "0/0: 1 2\n0/1: 3 4\n1/0: 5 6\n1/1: 7 8\n"},
    {"escaped key", "sglang", "{\"logical\\u005fcount\": [[1.5, 2e2]]}", "0/0: 1.5 200\n"},
    {"indented", "sglang", "{\r\n \"logical_count\" :\n [\n [\n 1,\n 2\n ]\n ]\n}\n", "0/0: 1 2\n"},
    {"byte order mark", "sglang", "\xEF\xBB\xBF{\"logical_count\":[[1]]}", "0/0: 1\n"},
    {"minus zero", "sglang", "{\"logical_count\":[[-0,-0.0,0]]}", "0/0: 0 0 0\n"},
    {"largest exact integer", "sglang", "{\"logical_count\":[[9007199254740992]]}",
     "0/0: 9007199254740992\n"},
    {"keys in any order", "jsonl",
     "{\"counts\":[1,2],\"x\":{\"counts\":[9]},\"step\":0,\"layer\":4}\n{\"layer\":4,\"step\":7,"
     "\"counts\":[0,"
     " "
     "3]}",
     "0/4: 1 2\n7/4: 0 3\n"},
    {"blank lines and carriage returns", "jsonl",
     "\xEF\xBB\xBF{\"layer\":0,\"counts\":[1]}\r\n\r\n{\"layer\":1,\"counts\":[2]}\r\n\r\n",
     "0/0: 1\n0/1: 2\n"},
    {"without steps", "csv", "layer,expert,tokens\n0,0,5\n0,1,6\n1,1,7\n", "0/0: 5 6\n0/1: 0 7\n"},
    {"columns in any order", "csv", "tokens, expert ,layer,step\n5,1,0,2\n6,0,0,2\n", "2/0: 6 5\n"},
    {"spaces and blank last lines", "csv",
     "\xEF\xBB\xBFstep,layer,expert,tokens\r\n 0 ,\t1, 0 , 2.5 \r\n\r\n  \r\n", "0/1: 2.5\n"},
    {"a layer that comes back", "csv", "layer,expert,tokens\n0,0,5\n1,0,6\n0,0,7",
     "0/0: 5\n0/1: 6\n0/0: 7\n"},
    {"one row of floats", "lmdeploy", " [ [ 1.5 , 2 ] ] \r\n", "0/0: 1.5 2\n"},
    {"the placement first", "fastdeploy",
     "{\"ep_rank_to_expert_id_list\":[[0,1]],\"tokens_per_expert_stats_list\":[[3,4],[5,6]],"
     "\"update_timestamp\":1}",
     "0/0: 3 4\n0/1: 5 6\n"},
    {"a map behind and before the load, more slots, and empty ones", "vllm_stats",
     "\xEF\xBB\xBF{\"record_type\":\"eplb_note\",\"step\":{},\"expert_load\":7}\r\n\n"
     "{\"expert_load\":[[5,0,0,5]],\"p2l_map\":[[0,1,2,0]],\"num_ranks\":2,\"step\":3,\"version\":"
     "1,"
     "\"record_type\":\"eplb_load_stats\",\"x\":[1]}\n{\"record_type\":\"other\"}\n"
     "{\"p2l_map\": [ [ -1 , 1, 2,0, 1,-1 ] ] ,\"record_type\":\"eplb_load_stats\","
     "\"expert_load\":[[ 0,5.5,1 ,0,5,0]],\"num_ranks\":3,\"step\":12,\"version\":1}",
     "3/0: 10 0 0\n12/0: 0 10.5 1\n"},
    {"metadata behind the snapshots", "vllm_dump",
     "{\"snapshots\":[{\"physical_to_logical_map\":[[1,0],[0,1]],\"latest_expert_load\":[[1,2],[3,"
     "4]],\"step\":9}],\"metadata\":{\"x\":[],\"num_moe_layers\":2,\"num_logical_experts\":2}}",
     "9/0: 2 1\n9/1: 3 4\n"},
    {"an expert without a replica, as the metadata tell", "vllm_dump",
     "{\"metadata\":{\"num_logical_experts\":3},\n\"snapshots\":[{\"step\":0,"
     "\"latest_expert_load\":[[1,2]],\"physical_to_logical_map\":[[1,0]]}]}",
     "0/0: 2 1 0\n"},
};

static void unusual_forms_are_read(void **state)
{
    test_path path = test_join(*state, "counts");
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char rows[1000] = "";
        eplb_error error;
        eplb_read_options options = options_for("");
        test_write_text(path.text, forms[i].content);
        assert_ok(read_rows(path.text, &options, describe_row, rows, &error), &error);
        assert_string_equal(rows, forms[i].rows);
        options = options_for(forms[i].format);
        rows[0] = '\0';
        assert_ok(read_rows(path.text, &options, describe_row, rows, &error), &error);
        assert_string_equal(rows, forms[i].rows);
    }
}

/* Rows and gaps larger than the buffer, so that numbers and keys are cut at its end. */
static void rows_longer_than_the_buffer_are_whole(void **state)
{
    enum { WIDE = 60000 };
    test_path path = test_join(*state, "wide.jsonl");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    for (int l = 0; l < 3; l++) {
        fprintf(file, "{\"skipped\":[%*s\"%0*d\"],\"layer\":%d,\"counts\":[", 70000 + l, "",
                70000 + l, 1, l);
        for (int e = 0; e < WIDE; e++) {
            fprintf(file, "%s%d%s", e > 0 ? (e % 7 == 0 ? " , " : ",") : "", e * (l + 1),
                    e % 5 == 0 ? ".25" : "");
        }
        fprintf(file, "]}\n");
    }
    assert_int_equal(fclose(file), 0);

    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    eplb_read_options options = options_for("jsonl");
    options.max_experts = WIDE;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, &options, &error), &error);
    for (int l = 0; l < 3; l++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_int_equal(row.length, WIDE);
        for (int e = 0; e < WIDE; e++) {
            assert_true(row.counts[e] == e * (l + 1) + (e % 5 == 0 ? 0.25 : 0.0));
        }
    }
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);
}

static void reading_goes_not_on_after_an_error(void **state)
{
    test_path path = test_join(*state, "bad.jsonl");
    test_write_text(path.text, "{\"layer\":0,\"counts\":[1]}\n{\"layer\":1}\n"
                               "{\"layer\":2,\"counts\":[1]}\n");
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_ok(eplb_counts_next(reader, &row, &error), &error);
    assert_status(eplb_counts_next(reader, &row, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "layer 1: no key 'counts'");
    assert_status(eplb_counts_next(reader, &row, &error), EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "an earlier read failed");
    eplb_counts_close(&reader);
}

TEST_MAIN(cmocka_unit_test(csv_has_the_recording), cmocka_unit_test(jsonl_has_the_recording),
          cmocka_unit_test(npy_has_the_recording), cmocka_unit_test(fortran_npy_has_the_recording),
          cmocka_unit_test(big_endian_npy_has_the_total), cmocka_unit_test(float_npy_has_the_total),
          cmocka_unit_test(sglang_has_the_total_behind_a_dense_layer),
          cmocka_unit_test(each_line_of_vllm_stats_is_folded_by_its_own_map),
          cmocka_unit_test(vllm_dump_has_the_recording_not_its_windows),
          cmocka_unit_test(fastdeploy_has_the_total), cmocka_unit_test(lmdeploy_has_the_total),
          IN_DIRECTORY(unusual_forms_are_read), IN_DIRECTORY(rows_longer_than_the_buffer_are_whole),
          IN_DIRECTORY(reading_goes_not_on_after_an_error))
