/* SPDX-License-Identifier: MIT */
/* vLLM's recordings carry their maps: what that means for options, prefixes and memory. */
#include "maps.h"

static eplb_status read_with(const char *directory, const char *content,
                             const eplb_read_options *options, eplb_error *error)
{
    test_path path = test_join(directory, "f");
    test_write_text(path.text, content);
    return read_rows(path.text, options, NULL, NULL, error);
}

#define LINE_OF(step, load, map)                                                                   \
    "{\"record_type\":\"eplb_load_stats\",\"version\":1,\"step\":" step ",\"num_ranks\":1,"        \
    "\"expert_load\":" load ",\"p2l_map\":" map "}\n"
#define LINE(load, map) LINE_OF("5", load, map)

static void experts_given_must_be_those_of_the_map(void **state)
{
    eplb_read_options options = options_for("");
    eplb_error error;
    options.experts = 3;
    assert_ok(read_with(*state, LINE("[[1,2,3,4]]", "[[2,1,0,0]]"), &options, &error), &error);
    options.experts = 4;
    assert_status(read_with(*state, LINE("[[1,2,3,4]]", "[[2,1,0,0]]"), &options, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "f:1: step 5: 'p2l_map' has 3 experts, expected 4, the number");
    options.experts = 2;
    assert_status(read_with(*state, LINE("[[1,2,3,4]]", "[[2,1,0,0]]"), &options, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "f:1: step 5: layer 0: slot 0: expert 2 not in 0..1");
    assert_status(read_with(*state,
                            "{\"metadata\":{\"num_logical_experts\":3},\"snapshots\":[{\"step\":0,"
                            "\"latest_expert_load\":[[1,2]],\"physical_to_logical_map\":[[1,0]]}]}",
                            &options, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "num_logical_experts is 3, expected 2, the number of experts");
}

static void add_total(void *context, const eplb_counts_row *row)
{
    double(*total)[EXPERTS] = context;
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        total[row->layer][e] += row->counts[e];
    }
}

/* Another placement is not what these tokens were counted under. */
static void the_map_in_the_file_wins_over_another_one(void **state)
{
    (void)state;
    static const char *const names[] = {"format/vllm_stats_map_changes.jsonl",
                                        "format/vllm_dump.json"};
    static const int32_t other[LAYERS][SLOTS] = {{7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4},
                                                 {7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4},
                                                 {7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4}};
    eplb_placement *placement = make_placement(other, 0);
    for (int i = 0; i < 2; i++) {
        double total[LAYERS][EXPERTS] = {{0}};
        test_path path = test_data(names[i]);
        eplb_read_options options = options_for("");
        options.counted_under = placement;
        eplb_error error;
        assert_ok(read_rows(path.text, &options, add_total, total, &error), &error);
        for (int l = 0; l < LAYERS; l++) {
            for (int e = 0; e < EXPERTS; e++) {
                assert_true(total[l][e] == recorded_total[l][e]);
            }
        }
    }
    eplb_placement_destroy(&placement);
}

static void a_source_of_statistics_is_sliced_by_steps(void **state)
{
    (void)state;
    test_path path = test_data("format/vllm_stats.jsonl");
    const char *const texts[] = {path.text};
    eplb_load *load;
    eplb_error error;
    assert_ok(eplb_source_load(&load, NULL, texts, 1, NULL, NULL, &error), &error);
    assert_int_equal(eplb_load_scenarios(load), STEPS);
    assert_int_equal(eplb_load_layers(load), LAYERS);
    for (int t = 0; t < STEPS; t++) {
        assert_memory_equal(eplb_load_row(load, t, 1), recorded[t][1], sizeof(recorded[t][1]));
    }
    eplb_load_destroy(&load);
}

/* Cut anywhere but between two lines, a file is refused. */
static void no_prefix_of_a_recording_is_one(void **state)
{
    static const char lines[] = LINE("[[1,2]]", "[[1,0]]") LINE_OF("6", "[[0,4]]", "[[-1,0]]");
    static const char dump[] =
        "{\"metadata\":{\"world_size\":1},\"snapshots\":[{\"step\":0,\"latest_expert_load\":[[1,2]]"
        ","
        "\"physical_to_logical_map\":[[1,0]]},{\"latest_expert_load\":[[0,2]],"
        "\"physical_to_logical_map\":[[-1,1]],\"step\":1}]}";
    const char *const contents[] = {lines, dump};
    test_path part = test_join(*state, "part");
    for (int i = 0; i < 2; i++) {
        eplb_read_options options = options_for(i == 0 ? "vllm_stats" : "vllm_dump");
        for (size_t length = 0; length < strlen(contents[i]); length++) {
            const char *end = contents[i] + length;
            eplb_error error;
            test_write_file(part.text, contents[i], length);
            eplb_status status = read_rows(part.text, &options, NULL, NULL, &error);
            bool is_whole = i == 0 && length > 0 && (end[-1] == '\n' || end[0] == '\n');
            assert_status(status, is_whole ? EPLB_OK : EPLB_ERROR_PARSE, &error);
        }
    }
}

static void a_step_of_more_bytes_than_allowed_is_refused(void **state)
{
    eplb_read_options options = options_for("");
    eplb_error error;
    options.max_bytes = 4 * sizeof(double);
    assert_ok(read_with(*state, LINE("[[1,2],[3,4]]", "[[0,1],[1,0]]"), &options, &error), &error);
    options.max_bytes--;
    assert_status(read_with(*state, LINE("[[1,2],[3,4]]", "[[0,1],[1,0]]"), &options, &error),
                  EPLB_ERROR_LIMIT, &error);
    assert_contains(error.message, "f:1: step 5: layer 1: a step of more than 31 bytes in memory");
}

/* Lines that outgrow what the lines before needed, so that growing fails, too. */
static void growing_steps_survive_each_failure(void **state)
{
    test_path path = test_join(*state, "growing");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    for (int slots = 2; slots <= 600; slots += 299) {
        fprintf(file,
                "{\"record_type\":\"eplb_load_stats\",\"version\":1,\"step\":%d,"
                "\"num_ranks\":1,\"expert_load\":[",
                slots);
        for (int i = 0; i < 3 * slots; i++) {
            fprintf(file, "%s%d%s", i % slots == 0 ? (i > 0 ? ",[" : "[") : ",", i,
                    i % slots == slots - 1 ? "]" : "");
        }
        fprintf(file, "],\"p2l_map\":[");
        for (int i = 0; i < 3 * slots; i++) {
            fprintf(file, "%s%d%s", i % slots == 0 ? (i > 0 ? ",[" : "[") : ",", i % 2,
                    i % slots == slots - 1 ? "]" : "");
        }
        fprintf(file, "]}\n");
    }
    assert_int_equal(fclose(file), 0);
    test_each_failing_allocation(read_counts, path.text);
}

static void reading_a_last_map_keeps_one_line_only(void **state)
{
    test_path path = test_join(*state, "long");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    for (int t = 0; t < 2000; t++) {
        fprintf(file, "%s", LINE("[[1,2,3,4]]", "[[2,1,0,0]]"));
    }
    fprintf(file, "%s", LINE("[[1,2,3,4]]", "[[0,1,0,2]]"));
    assert_int_equal(fclose(file), 0);
    eplb_read_options options = options_for("");
    options.max_bytes = 100;
    eplb_placement *placement;
    eplb_error error;
    assert_ok(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error), &error);
    assert_int_equal(eplb_placement_row(placement, 0)[3], 2);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(IN_DIRECTORY(experts_given_must_be_those_of_the_map),
          cmocka_unit_test(the_map_in_the_file_wins_over_another_one),
          cmocka_unit_test(a_source_of_statistics_is_sliced_by_steps),
          IN_DIRECTORY(no_prefix_of_a_recording_is_one),
          IN_DIRECTORY(a_step_of_more_bytes_than_allowed_is_refused),
          IN_DIRECTORY(growing_steps_survive_each_failure),
          IN_DIRECTORY(reading_a_last_map_keeps_one_line_only))
