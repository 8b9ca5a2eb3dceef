/* SPDX-License-Identifier: MIT */
#include <eplb/format.h>

#include "run_json.h"

static void write_map(const char *directory, const char *rows)
{
    char text[4096];
    snprintf(text, sizeof(text), "{\"physical_to_logical_map\":[%s]}", rows);
    test_write_text(test_join(directory, "map").text, text);
}

static void assert_output(const char *directory, const char *line, int exit_code, const char *out)
{
    run_result result = run_line(directory, line);
    assert_int_equal(result.exit_code, exit_code);
    assert_string_equal(result.out, out);
    assert_string_equal(result.err, "");
    run_release(&result);
}

static void valid_placement_is_one_line(void **state)
{
    write_map(*state, "[0,1,2,3,0,1],[3,2,1,0,3,2]");
    assert_output(*state, "validate map --gpus 3", 0,
                  "valid: 2 layers of 4 experts on 3 GPUs x 2 slots\n");
}

static void one_is_singular(void **state)
{
    write_map(*state, "[0]");
    assert_output(*state, "validate map --gpus 1", 0,
                  "valid: 1 layer of 1 expert on 1 GPU x 1 slot\n");
}

/* A format may be written but not read, as TensorRT-LLM's is in a build without libyaml. */
static void what_this_build_cannot_read_is_explained(void **state)
{
    static const char *const lines[] = {"validate map --gpus 2",
                                        "validate map --gpus 2 --from trtllm"};
    uint32_t flags = eplb_format_flags(eplb_format_find("trtllm"));
    const char *expected = (flags & EPLB_FORMAT_READS_PLACEMENT) != 0
                               ? "eplb: map: no key 'initial_global_assignments'\n"
                               : "eplb: map: trtllm cannot be read: built without libyaml\n";
    test_write_text(test_join(*state, "map").text, "num_slots: 2\n");
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 1);
        assert_string_equal(result.err, expected);
        run_release(&result);
    }
}

/* Before what is wrong with it as a placement. */
static void counts_are_called_counts(void **state)
{
    test_write_text(test_join(*state, "map").text, "[[812,40,7,9001],[55,0,611,43]]");
    run_result result = run_line(*state, "validate map --gpus 2");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: warning: map: looks like counts (lmdeploy) of [2][4], "
                                    "not a placement: expert ids up to 9001 in 4 slots\n"
                                    "eplb: map: layer 0: slot 3: expert 9001 not in 0..4095 (or -1 "
                                    "for an empty slot)\n");
    run_release(&result);
    test_write_text(test_join(*state, "map").text, "{\"logical_count\":[[812,40]]}");
    result = run_line(*state, "validate map --gpus 2");
    assert_string_equal(result.err, "eplb: map: the content is of no known format of placements, "
                                    "but fits counts (sglang)\n");
    run_release(&result);
}

static void violations_are_listed_and_counted(void **state)
{
    write_map(*state, "[0,1,2,3,0,0],[3,2,1,3,1,2]");
    assert_output(*state, "validate map --gpus 3", 1,
                  "layer 0: expert 0 twice on GPU 2 (slot 5)\n"
                  "layer 1: expert 0 has no replica\n"
                  "INVALID: 2 violations\n");
    assert_output(*state, "validate map --gpus 3 --experts 5", 1,
                  "layer 0: expert 0 twice on GPU 2 (slot 5)\n"
                  "layer 0: expert 4 has no replica\n"
                  "layer 1: expert 0 has no replica\n"
                  "layer 1: expert 4 has no replica\n"
                  "INVALID: 4 violations\n");
}

static void more_than_20_violations_are_cut(void **state)
{
    write_map(*state, "[0,1]");
    run_result result = run_line(*state, "validate map --gpus 2 --experts 30");
    int lines = 0;
    for (const char *c = result.out; *c != '\0'; c++) {
        lines += *c == '\n' ? 1 : 0;
    }
    assert_int_equal(lines, 22);
    assert_contains(result.out, "\n... and 8 more\nINVALID: 28 violations\n");
    run_release(&result);
}

static void json_lists_every_violation(void **state)
{
    write_map(*state, "[0,1,2,3,0,0],[3,2,1,3,1,2]");
    cJSON *report = run_json(*state, "validate map --gpus 3 --experts 30 --json", 1);
    assert_string_equal(json_text(report, "schema"), "eplb.validate/1");
    assert_string_equal(json_text(report, "file"), "map");
    assert_string_equal(json_text(report, "format"), "sglang");
    assert_true(json_number(report, "layers") == 2.0);
    assert_true(json_number(report, "experts") == 30.0);
    assert_true(json_number(report, "gpus") == 3.0);
    assert_true(json_number(report, "slots") == 6.0);
    assert_true(cJSON_IsFalse(json_member(report, "valid")));
    const cJSON *list = json_member(report, "violations");
    assert_true(json_number(report, "violation_count") == (double)cJSON_GetArraySize(list));
    assert_int_equal(cJSON_GetArraySize(list), 54);
    const cJSON *duplicate = cJSON_GetArrayItem(list, 0);
    assert_string_equal(json_text(duplicate, "kind"), "duplicate");
    assert_true(json_number(duplicate, "layer") == 0.0);
    assert_true(json_number(duplicate, "gpu") == 2.0);
    assert_true(json_number(duplicate, "slot") == 5.0);
    assert_true(json_number(duplicate, "expert") == 0.0);
    const cJSON *missing = cJSON_GetArrayItem(list, 1);
    assert_string_equal(json_text(missing, "kind"), "missing_expert");
    assert_true(cJSON_IsNull(json_member(missing, "slot")));
    assert_string_equal(json_text(missing, "text"), "layer 0: expert 4 has no replica");
    cJSON_Delete(report);
}

static void json_of_a_valid_placement_has_an_empty_list(void **state)
{
    write_map(*state, "[0,1,2,3]");
    cJSON *report = run_json(*state, "validate map --gpus 2 --json", 0);
    assert_true(cJSON_IsTrue(json_member(report, "valid")));
    assert_int_equal(cJSON_GetArraySize(json_member(report, "violations")), 0);
    cJSON_Delete(report);
}

static void file_that_says_its_gpus_needs_no_option(void **state)
{
    test_write_text(test_join(*state, "map").text,
                    "{\"moe_layer_count\":1,\"layer_list\":[{\"layer_id\":0,\"device_count\":2,"
                    "\"device_list\":[{\"device_id\":0,\"device_expert\":[0,1]},"
                    "{\"device_id\":1,\"device_expert\":[2,0]}]}]}");
    assert_output(*state, "validate map", 0, "valid: 1 layer of 3 experts on 2 GPUs x 2 slots\n");
    run_result result = run_line(*state, "validate map --gpus 4");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "map: ");
    run_release(&result);
}

static void file_name_in_json_is_utf8_whatever_its_bytes(void **state)
{
    write_map(*state, "[0,1]");
    const char *name = "m\xffp \xc3\xa9";
    assert_int_equal(rename(test_join(*state, "map").text, test_join(*state, name).text), 0);
    const char *arguments[] = {"validate", name, "--gpus", "2", "--json", NULL};
    run_result result = run_arguments(*state, arguments);
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "\"m?p \xc3\xa9\"");
    run_release(&result);
}

static void full_disk_is_an_error(void **state)
{
    write_map(*state, "[0,1]");
    static const char *const lines[] = {"validate map --gpus 2", "validate map --gpus 2 --json"};
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line_into(*state, lines[i], "/dev/full");
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "eplb: standard output: ");
        run_release(&result);
    }
}

static void file_is_not_changed(void **state)
{
    write_map(*state, "[0,1,2,3,0,0]");
    char *before = test_read_file(test_join(*state, "map").text, NULL);
    run_result result = run_line(*state, "validate map --gpus 3");
    run_release(&result);
    char *after = test_read_file(test_join(*state, "map").text, NULL);
    assert_string_equal(before, after);
    assert_int_equal(count_files(*state), 1);
    free(before);
    free(after);
}

TEST_MAIN(IN_DIRECTORY(counts_are_called_counts), IN_DIRECTORY(valid_placement_is_one_line),
          IN_DIRECTORY(one_is_singular), IN_DIRECTORY(what_this_build_cannot_read_is_explained),
          IN_DIRECTORY(violations_are_listed_and_counted),
          IN_DIRECTORY(more_than_20_violations_are_cut), IN_DIRECTORY(json_lists_every_violation),
          IN_DIRECTORY(json_of_a_valid_placement_has_an_empty_list),
          IN_DIRECTORY(file_that_says_its_gpus_needs_no_option),
          IN_DIRECTORY(file_name_in_json_is_utf8_whatever_its_bytes),
          IN_DIRECTORY(full_disk_is_an_error), IN_DIRECTORY(file_is_not_changed))
