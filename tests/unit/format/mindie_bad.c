/* SPDX-License-Identifier: MIT */
/* Recordings of MindIE that must be refused: each with its status and the place its message names.
 */
#include <sys/stat.h>

#include "bad.h"

#define OVERFLOW EPLB_ERROR_OVERFLOW
#define CONFIG "model_gen_config.json"
#define NO_CONFIG ": sums of several iterations need a " CONFIG " with num_moe_layers"

typedef struct bad_recording {
    const char *files[8]; /* name, content, name, content, ... */
    eplb_status status;
    const char *message; /* all of it */
} bad_recording;

/* Limits of these tests: 4 layers, 6 experts. Experts that are known: none. */
static const bad_recording recordings[] = {
    {{"decode_1.csv", "1\n"},
     DATA,
     "d: decode_1.csv: 1 file with ranks up to 1, but none of rank 0: a part of the ranks is no "
     "sum "
     "of all"},
    {{"decode_1.csv", "1\n", "decode_3.csv", "1\n"},
     DATA,
     "d: decode_1.csv: 2 files with ranks up to 3, but none of ranks 0, 2: a part of the ranks is "
     "no sum of all"},
    {{"decode_0.csv", "1\n", "prefill_1.csv", "1\n"},
     DATA,
     "d: prefill_1.csv: 1 file with ranks up to 1, but none of rank 0: a part of the ranks is no "
     "sum of all"},
    {{"decode_0.csv", "1\n", "decode_00.csv", "1\n"},
     DATA,
     "d: decode_00.csv: counts of rank 0, as another file of the source: they would be added "
     "twice"},
    {{"decode_0.csv", "1\n", "decode_1048576.csv", "1\n"},
     LIMIT,
     "d: decode_1048576.csv: rank 1048576 not below 1048576"},
    {{"decode_0.csv", "1\n", "rank0.jsonl", "{}"},
     DATA,
     "d: 'rank0.jsonl' is no file of a recording of MindIE"},
    {{"decode_0.csv", ""}, PARSE, "d/decode_0.csv: no counts in the file"},
    {{"decode_0.csv", "\n\n"}, PARSE, "d/decode_0.csv: no counts in the file"},
    {{"decode_0.csv", "1,2\n", "decode_1.csv", ""},
     DATA,
     "d/decode_1.csv: 0 rows, but more in d/decode_0.csv"},
    {{"decode_0.csv", "1,2\n3,4\n", "decode_1.csv", "5,6\n"},
     DATA,
     "d/decode_1.csv: 1 rows, but more in d/decode_0.csv"},
    {{"decode_0.csv", "1,2\n", "decode_1.csv", "5,6\n7,8\n"},
     DATA,
     "d/decode_1.csv: more than the 1 rows of d/decode_0.csv"},
    {{"decode_0.csv", "1,2\n3\n"},
     DATA,
     "d/decode_0.csv:2: layer 1: 1 columns, but 2 in the lines before"},
    {{"decode_0.csv", "1,2\n3,4,5\n"},
     DATA,
     "d/decode_0.csv:2: layer 1: more than 2 columns, but 2 in the lines before"},
    {{"decode_0.csv", "1,2\n", "decode_1.csv", "3\n"},
     DATA,
     "d/decode_1.csv:1: layer 0: 1 columns, but 2 in d/decode_0.csv"},
    {{"decode_0.csv", "1,2\n", "decode_1.csv", "3,4,5\n"},
     DATA,
     "d/decode_1.csv:1: layer 0: more than 2 columns, but 2 in d/decode_0.csv"},
    {{"decode_0.csv", "1,2\n", "decode_1.csv", "3,x\n"},
     PARSE,
     "d/decode_1.csv:1: layer 0: expert 3: x is not a number"},
    {{"decode_0.csv", "1,\n"},
     PARSE,
     "d/decode_0.csv:1: layer 0: expert 1: expected a number, found the end of the line"},
    {{"decode_0.csv", "1,2,"},
     PARSE,
     "d/decode_0.csv:1: layer 0: expert 2: expected a number, found the end of the file"},
    {{"decode_0.csv", ",1\n"},
     PARSE,
     "d/decode_0.csv:1: layer 0: expert 0: expected a number, found ','"},
    {{"decode_0.csv", "1;2\n"}, PARSE, "d/decode_0.csv:1: layer 0: expert 0: 1;2 is not a number"},
    {{"decode_0.csv", "1 2\n"},
     PARSE,
     "d/decode_0.csv:1: layer 0: expected ',' or the end of the line, found '2'"},
    {{"decode_0.csv", "1,\"2\"\n"},
     PARSE,
     "d/decode_0.csv:1: layer 0: expert 1: expected a number, found '\"'"},
    {{"decode_0.csv", "expert_0,expert_1\n1,2\n"},
     PARSE,
     "d/decode_0.csv:1: layer 0: expert 0: expert_0 is not a number"},
    {{"decode_0.csv", "1,2\n\n3,4\n"},
     PARSE,
     "d/decode_0.csv:3: layer 1: a line behind a blank line"},
    {{"decode_0.csv", "1,2\n3,-4\n"}, DATA, "d/decode_0.csv:2: layer 1: expert 1: -4 is negative"},
    {{"decode_0.csv", "1,nan\n"},
     DATA,
     "d/decode_0.csv:1: layer 0: expert 1: nan is not a count (finite, >= 0)"},
    {{"decode_0.csv", "1,1e400\n"},
     OVERFLOW,
     "d/decode_0.csv:1: layer 0: expert 1: 1e400 is too large for a double"},
    {{"decode_0.csv", "9007199254740993,1\n"},
     OVERFLOW,
     "d/decode_0.csv:1: layer 0: expert 0: 9007199254740993 is above 2^53 and would not be exact"},
    {{"decode_0.csv", "1\n1\n1\n1\n1\n"},
     LIMIT,
     "d: decode: layer 4: more than 4 layers" NO_CONFIG},
    {{"decode_0.csv", "1,2,3,4\n", "decode_1.csv", "5,6,7,8\n"},
     LIMIT,
     "d/decode_1.csv:1: layer 0: more than 6 counts in a row of all ranks"},
    {{"prefill_0.csv", "1\n2\n", "decode_0.csv", "1\n"},
     DATA,
     "d: decode: 1 layers, but 2 in prefill" NO_CONFIG},
    {{"prefill_0.csv", "1\n", "decode_0.csv", "1\n", "decode_1.csv", "1\n"},
     DATA,
     "d: decode: 2 ranks of 1 columns are 2 counts a layer, expected 1, as in prefill: those of "
     "slots need the placement that they were counted under"},
    {{"decode_0.csv", "1\n", CONFIG, "[]"}, PARSE, "d/" CONFIG ":1:1: expected '{', found '['"},
    {{"decode_0.csv", "1\n", CONFIG, "{}"}, PARSE, "d/" CONFIG ":1:2: no key 'num_moe_layers'"},
    {{"decode_0.csv", "1\n", CONFIG, ""},
     PARSE,
     "d/" CONFIG ":1:1: expected '{', found the end of the file"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":0}"},
     PARSE,
     "d/" CONFIG ":1:19: num_moe_layers is 0"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":1.5}"},
     PARSE,
     "d/" CONFIG ":1:19: num_moe_layers 1.5 is not an integer"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":-1}"},
     DATA,
     "d/" CONFIG ":1:19: num_moe_layers -1 is negative"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":5}"},
     LIMIT,
     "d/" CONFIG ":1:19: num_moe_layers 5 is above the limit 4"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":1,\"num_of_experts\":7}"},
     LIMIT,
     "d/" CONFIG ":1:38: num_of_experts 7 is above the limit 6"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":1,\"num_moe_layers\":1}"},
     PARSE,
     "d/" CONFIG ":1:37: second key 'num_moe_layers'"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":1"},
     PARSE,
     "d/" CONFIG ":1:20: expected ',' or '}', found the end of the file"},
    {{"decode_0.csv", "1\n", CONFIG, "{\"num_moe_layers\":1} 2"},
     PARSE,
     "d/" CONFIG ":1:22: expected the end of the file, found '2'"},
    {{"decode_0.csv", "1,2\n", CONFIG, "{\"num_moe_layers\":1,\"num_of_experts\":1}"},
     DATA,
     "d: decode: 1 ranks of 2 columns are 2 counts a layer, expected 1, num_of_experts of " CONFIG
     ": those of slots need the placement that they were counted under"},
    {{"decode_0.csv", "1,2\n3,4\n1,2\n", CONFIG, "{\"num_moe_layers\":2}"},
     PARSE,
     "d: decode: 3 rows: the last iteration has 1 of the 2 layers of num_moe_layers"},
    {{"decode_0.csv", "1\n3\n", "decode_1.csv", "5\n4\n", CONFIG, "{\"num_moe_layers\":1}"},
     DATA,
     "d/decode_1.csv:2: step 1: layer 0: expert 1: 4, but 5 in the iteration before: sums do not "
     "fall"},
};

/* Makes the directory "d" with the files. */
static void make_recording(const bad_recording *recording)
{
    assert_int_equal(mkdir("d", 0777), 0);
    for (int i = 0; i < 8 && recording->files[i] != NULL; i += 2) {
        test_write_text(test_join("d", recording->files[i]).text, recording->files[i + 1]);
    }
}

static void remove_recording(void)
{
    assert_int_equal(nftw("d", test_remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void bad_recordings_are_refused(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < sizeof(recordings) / sizeof(recordings[0]); i++) {
        eplb_read_options options = options_for("");
        options.max_layers = 4;
        options.max_experts = 6;
        eplb_error error = {0};
        make_recording(&recordings[i]);
        eplb_status status = read_rows("d", &options, NULL, NULL, &error);
        if (status != recordings[i].status || strcmp(error.message, recordings[i].message) != 0) {
            print_error("recording %zu: status %d, expected %d\n  message:  %s\n  expected: %s\n",
                        i, (int)status, (int)recordings[i].status, error.message,
                        recordings[i].message);
            failed++;
        }
        remove_recording();
    }
    assert_int_equal(failed, 0);
}

static void experts_that_contradict_the_recording_are_refused(void **state)
{
    (void)state;
    static const bad_recording recording = {
        {"decode_0.csv", "1,2\n", CONFIG, "{\"num_moe_layers\":1,\"num_of_experts\":2}"}, DATA, ""};
    eplb_read_options options = options_for("");
    eplb_error error;
    make_recording(&recording);
    options.experts = 3;
    assert_status(read_rows("d", &options, NULL, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, "d: num_of_experts of " CONFIG " is 2, expected 3");
    assert_int_equal(remove("d/" CONFIG), 0);
    assert_status(read_rows("d", &options, NULL, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message,
                        "d: decode: 1 ranks of 2 columns are 2 counts a layer, expected 3, as was "
                        "given: those of slots need the placement that they were counted under");
}

/* A placement of two layers of four slots, two experts. */
static eplb_placement *make_placement(void)
{
    eplb_cluster *cluster;
    eplb_placement *placement;
    assert_ok(eplb_cluster_create(&cluster, NULL, 1, 4, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 2, 2, NULL), NULL);
    for (int32_t l = 0; l < 2; l++) {
        assert_ok(eplb_placement_set_row(placement, l, (int32_t[]){0, 1, 0, 1}, NULL), NULL);
    }
    eplb_cluster_destroy(&cluster);
    return placement;
}

static void counts_that_do_not_fit_their_placement_are_refused(void **state)
{
    (void)state;
    static const bad_recording cases[] = {
        {{"decode_0.csv", "1,2,3\n"},
         DATA,
         "d: decode: 1 ranks of 3 columns are 3 counts a layer, expected 4, the slots of the "
         "placement that they were counted under"},
        {{"decode_0.csv", "1,2,3,4\n1,2,3,4\n0,2,3,4\n"},
         DATA,
         "d: decode: layer 2: not in the placement that it was counted under, which has "
         "2" NO_CONFIG},
    };
    eplb_placement *placement = make_placement();
    eplb_read_options options = options_for("");
    options.counted_under = placement;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_error error;
        make_recording(&cases[i]);
        assert_status(read_rows("d", &options, NULL, NULL, &error), cases[i].status, &error);
        assert_string_equal(error.message, cases[i].message);
        remove_recording();
    }
    static const bad_recording dense = {{"decode_0.csv", "1,2,3,4\n1,2,3,4\n0,0,0,0\n"}, DATA, ""};
    make_recording(&dense);
    assert_ok(read_rows("d", &options, NULL, NULL, NULL), NULL);
    eplb_placement_destroy(&placement);
}

static void a_directory_of_other_files_is_no_recording(void **state)
{
    (void)state;
    static const bad_recording recording = {{"decode_x.csv", "1,2\n"}, DATA, ""};
    eplb_read_options options = options_for("mindie");
    eplb_error error;
    make_recording(&recording);
    assert_status(read_rows("d", &options, NULL, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message,
                        "d: a directory without decode_<rank>.csv or prefill_<rank>.csv");
    assert_status(read_rows("d", NULL, NULL, NULL, &error), EPLB_ERROR_IO, &error);
    assert_string_equal(error.message, "d: cannot read: Is a directory");
}

/* One rank of several that was cut is seen, wherever it was cut before its last number. */
static void a_rank_that_was_cut_is_refused(void **state)
{
    (void)state;
    static const char text[] = "12,34\n56,78\n";
    static const bad_recording recording = {{"decode_0.csv", text, "decode_1.csv", text}, DATA, ""};
    make_recording(&recording);
    size_t last_number = strlen(text) - strlen("8\n");
    for (size_t length = 0; length < last_number; length++) {
        for (int r = 0; r < 2; r++) {
            eplb_error error;
            test_path path = test_join("d", r == 0 ? "decode_0.csv" : "decode_1.csv");
            test_write_file(path.text, text, length);
            eplb_status status = read_rows("d", NULL, NULL, NULL, &error);
            assert_true(status == EPLB_ERROR_DATA || status == EPLB_ERROR_PARSE);
            test_write_text(path.text, text);
        }
    }
    eplb_error error;
    assert_ok(read_rows("d", NULL, NULL, NULL, &error), &error);
}

TEST_MAIN(INSIDE(bad_recordings_are_refused),
          INSIDE(experts_that_contradict_the_recording_are_refused),
          INSIDE(counts_that_do_not_fit_their_placement_are_refused),
          INSIDE(a_directory_of_other_files_is_no_recording),
          INSIDE(a_rank_that_was_cut_is_refused))
