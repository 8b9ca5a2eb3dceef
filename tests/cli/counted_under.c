/* SPDX-License-Identifier: MIT */
/* Counts of slots: folded where the user says under which placement they were taken, refused where
 * something else says that they are not of experts. */
#include "../unit/format/maps.h"
#include "run_json.h"

/* What the slots of the recorded map got in all six steps. */
static const int slot_total[LAYERS][SLOTS] = {
    {214, 845, 527, 151, 177, 428, 131, 725, 186, 2518, 126, 116},
    {684, 401, 163, 363, 426, 1007, 398, 808, 249, 731, 703, 211},
    {193, 55, 1008, 1211, 263, 73, 448, 446, 60, 2121, 212, 54},
};

static void write_slots(const char *directory, const char *name)
{
    FILE *file = fopen(test_join(directory, name).text, "wb");
    assert_non_null(file);
    for (int l = 0; l < LAYERS; l++) {
        fprintf(file, "{\"layer\":%d,\"counts\":[", l);
        for (int s = 0; s < SLOTS; s++) {
            fprintf(file, "%s%d", s > 0 ? "," : "", slot_total[l][s]);
        }
        fprintf(file, "]}\n");
    }
    assert_int_equal(fclose(file), 0);
}

static const char *const maps[] = {"ascend", "vllm"};

static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    eplb_placement *placement = make_recorded_placement();
    for (size_t i = 0; i < 2; i++) {
        test_path path = test_join(*state, maps[i]);
        assert_ok(eplb_placement_write(placement, NULL, path.text, eplb_format_find(maps[i]), NULL),
                  NULL);
    }
    eplb_placement_destroy(&placement);
    write_slots(*state, "slots");
    return 0;
}

static void compare_total(void *context, const eplb_counts_row *row)
{
    (void)context;
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        assert_true(row->counts[e] == recorded_total[row->layer][e]);
    }
}

/* Whether the file says its GPUs (ascend) or not (vllm). */
static void slots_become_experts(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        char line[160];
        snprintf(line, sizeof(line), "convert slots --counted-under %s --out out.jsonl", maps[i]);
        run_result result = run_line(*state, line);
        assert_int_equal(result.exit_code, 0);
        assert_string_equal(result.err, "");
        run_release(&result);
        eplb_read_options options = options_for("jsonl");
        eplb_error error;
        test_path path = test_join(*state, "out.jsonl");
        assert_ok(read_rows(path.text, &options, compare_total, NULL, &error), &error);
    }
}

/* TensorRT-LLM's counts are of slots while its load balancer is on, and nothing in them says so. */
static void recordings_of_slots_become_those_of_experts(void **state)
{
    test_path experts = test_data("format/trtllm_stat");
    test_path slots = test_data("format/trtllm_stat_slots");
    test_path map = test_data("format/sglang_placement.json");
    const char *plain[] = {"convert", experts.text, "--out", "plain.csv", NULL};
    const char *folded[] = {"convert",    slots.text, "--counted-under", map.text, "--out",
                            "folded.csv", NULL};
    const char *const *lines[] = {plain, folded};
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_arguments(*state, lines[i]);
        assert_int_equal(result.exit_code, 0);
        run_release(&result);
    }
    assert_true(same_files(*state, "plain.csv", "folded.csv"));
    const char *refused[] = {"convert", slots.text, "--experts", "8", "--out", "out.csv", NULL};
    run_result result = run_arguments(*state, refused);
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "--counted-under FILE");
    run_release(&result);
}

static void files_with_their_own_map_leave_nothing_to_assume(void **state)
{
    test_path stats = test_data("format/vllm_stats.jsonl");
    const char *line[] = {"convert", stats.text, "--to", "jsonl", "--out", "own.jsonl", NULL};
    run_result result = run_arguments(*state, line);
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.err, "");
    run_release(&result);
}

static void every_command_with_loads_takes_it(void **state)
{
    static const char *const lines[] = {
        "plan --load slots --counted-under vllm --gpus 4 --redundant 4 --json",
        "sweep --load slots --counted-under vllm --gpus 4 --redundant 4 --json",
        "report --load slots --counted-under vllm --gpus 4 --json",
        "diff ascend ascend --load slots --counted-under vllm --json",
    };
    for (size_t i = 0; i < 4; i++) {
        cJSON *document = run_json(*state, lines[i], 0);
        const cJSON *place =
            i == 2 ? cJSON_GetArrayItem(json_member(document, "sources"), 0) : document;
        assert_true(json_number(place, "experts") == (double)EXPERTS);
        cJSON_Delete(document);
        run_result result = run_line(*state, lines[i]);
        assert_string_equal(result.err, ""); /* nothing is assumed */
        run_release(&result);
    }
}

static void widths_that_contradict_ask_for_it(void **state)
{
    static const char remedy[] = "if these are counts of slots, say under which placement: "
                                 "--counted-under FILE";
    static const char exactly[] =
        "the loads have 12 counts a layer, as many as ascend has slots, but it has 8 experts: if "
        "they are counts of its slots, give --counted-under ascend";
    static const char *const cases[][2] = {
        {"plan --load slots --experts 8 --gpus 4 --redundant 4", remedy},
        {"report --load slots --experts 8 --gpus 4", remedy},
        {"sweep --load slots --experts 8 --gpus 4 --redundant 4", remedy},
        {"convert slots --experts 8 --out out", remedy},
        {"plan --load slots --model config.json --gpus 4 --redundant 4", remedy},
        {"plan --load wide.csv --experts 8 --gpus 4 --redundant 4", remedy},
        {"plan --load slots --current ascend --gpus 4 --redundant 4", exactly},
        {"report --load slots --current ascend", exactly},
        {"diff ascend ascend --load slots", exactly},
        {"plan --load wide.csv --current ascend --gpus 4 --redundant 4", remedy},
    };
    test_write_text(test_join(*state, "config.json").text,
                    "{\"num_hidden_layers\":3,\"n_routed_experts\":8,"
                    "\"first_k_dense_replace\":0,\"num_experts_per_tok\":2}");
    test_write_text(test_join(*state, "wide.csv").text,
                    "layer,expert,tokens\n0,9,1\n1,9,1\n2,9,1\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_result result = run_line(*state, cases[i][0]);
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, cases[i][1]);
        run_release(&result);
    }
}

static void a_placement_without_a_slot_for_an_expert_is_refused(void **state)
{
    write_slots(*state, "slots");
    test_write_text(test_join(*state, "hole").text,
                    "[[0,1,2,3,4,5,6,7,0,1,2,3],[0,1,2,3,4,5,6,7,0,1,2,3],"
                    "[0,1,2,3,4,5,6,6,0,1,2,3]]");
    static const char *const lines[] = {
        "convert slots --counted-under hole --out out.csv",
        "plan --load slots --counted-under hole --gpus 4 --redundant 4",
        "convert slots --counted-under ascend --experts 9 --out out.csv",
    };
    static const char *const messages[] = {"hole: layer 2: expert 7 has no replica",
                                           "hole: layer 2: expert 7 has no replica",
                                           "ascend: layer 0: expert 8 has no replica"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, messages[i]);
        run_release(&result);
    }
}

/* Fewer counts than experts are no counts of slots, and folded ones are none any more. */
static void other_contradictions_do_not(void **state)
{
    static const char *const lines[] = {
        "plan --load slots --experts 16 --gpus 4 --redundant 4",
        "plan --load slots --counted-under ascend --experts 9 --gpus 4 --redundant 4",
    };
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 1);
        assert_null(strstr(result.err, "if these are counts of slots"));
        run_release(&result);
    }
}

static void standard_input_is_no_placement_of_counts(void **state)
{
    static const char *const lines[] = {
        "plan --load slots --counted-under - --gpus 4 --redundant 4",
        "report --load slots --counted-under - --gpus 4",
        "sweep --load slots --counted-under - --gpus 4 --redundant 4",
        "diff ascend ascend --load slots --counted-under -",
        "convert slots --counted-under - --out out",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 2);
        assert_contains(result.err, "--counted-under -: give a file");
        run_release(&result);
    }
}

/* A name that nothing is looked for by would be a choice without effect. */
static void an_array_of_a_file_without_named_ones_is_refused(void **state)
{
    static const char *const lines[] = {
        "plan --load slots --array a --gpus 4 --redundant 4",
        "report --load slots --array a --gpus 4",
        "sweep --load slots --array a --gpus 4 --redundant 4",
        "diff ascend ascend --load slots --array a",
        "convert slots --array a --out out",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "slots: array 'a': jsonl has no arrays with names");
        run_release(&result);
    }
}

static void what_nothing_says_is_still_noted(void **state)
{
    static const char *const lines[] = {
        "plan --load slots --gpus 4 --redundant 4",
        "report --load slots --gpus 4",
        "sweep --load slots --gpus 4 --redundant 4",
        "convert slots --out out.jsonl",
    };
    for (size_t i = 0; i < 4; i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 0);
        assert_contains(result.err, "eplb: assuming 12 logical experts");
        run_release(&result);
    }
}

TEST_MAIN(cmocka_unit_test_setup_teardown(slots_become_experts, setup, test_directory_teardown),
          IN_DIRECTORY(recordings_of_slots_become_those_of_experts),
          IN_DIRECTORY(files_with_their_own_map_leave_nothing_to_assume),
          cmocka_unit_test_setup_teardown(every_command_with_loads_takes_it, setup,
                                          test_directory_teardown),
          cmocka_unit_test_setup_teardown(widths_that_contradict_ask_for_it, setup,
                                          test_directory_teardown),
          cmocka_unit_test_setup_teardown(a_placement_without_a_slot_for_an_expert_is_refused,
                                          setup, test_directory_teardown),
          cmocka_unit_test_setup_teardown(other_contradictions_do_not, setup,
                                          test_directory_teardown),
          cmocka_unit_test_setup_teardown(standard_input_is_no_placement_of_counts, setup,
                                          test_directory_teardown),
          cmocka_unit_test_setup_teardown(an_array_of_a_file_without_named_ones_is_refused, setup,
                                          test_directory_teardown),
          cmocka_unit_test_setup_teardown(what_nothing_says_is_still_noted, setup,
                                          test_directory_teardown))
