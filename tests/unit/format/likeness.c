/* SPDX-License-Identifier: MIT */
/* Counts that were given for a placement and the other way round, where content fits both. */
#include "maps.h"

/* What reading "f" as counts warns of. */
static test_warnings read_as_counts(const char *content, const eplb_read_options *options)
{
    test_warnings warnings = {0};
    eplb_hooks hooks = test_warning_hooks(&warnings);
    const char *const paths[] = {"f"};
    eplb_load *load;
    eplb_error error;
    test_write_text("f", content);
    assert_ok(load_summed(&load, &hooks, paths, 1, options, &error), &error);
    eplb_load_destroy(&load);
    return warnings;
}

static void a_map_that_is_read_as_counts_is_warned_of(void **state)
{
    (void)state;
    static const char *const maps[] = {"[[0,1,2,3,0,1],[3,2,1,0,3,2]]", "[[0,1]]",
                                       "[[2,1,0,1],[1,1,1,0]]", "[[0,0,0,1,0]]", "[[0,1,2,0,0,1]]"};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        test_warnings warnings = read_as_counts(maps[i], NULL);
        assert_int_equal(warnings.count, 1);
        assert_contains(warnings.last, "f: looks like a placement (vllm), not counts of ");
    }
}

/* One row that is none is enough: rows without tokens, or with few, ids left out, others above
 * them. */
static void counts_are_no_map(void **state)
{
    (void)state;
    static const char *const counts[] = {"[[0,1,2,3],[0,0,0,0]]",
                                         "[[0,1,2,3],[0,1,1,3]]",
                                         "[[1,0,2,0,0,1,0]]",
                                         "[[0,1,2,4]]",
                                         "[[1,2,3,3]]",
                                         "[[0,1,2,3],[0,1,2,2.5]]",
                                         "[[0]]",
                                         "[[0,1,2,9007199254740992]]"};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        test_warnings warnings = read_as_counts(counts[i], NULL);
        assert_string_equal(warnings.last, "");
    }
}

static void who_names_the_format_is_not_asked(void **state)
{
    (void)state;
    eplb_read_options options = options_for("lmdeploy");
    test_warnings warnings = read_as_counts("[[0,1]]", &options);
    assert_int_equal(warnings.count, 0);
}

static void cells_of_omni_are_no_counts(void **state)
{
    (void)state;
    test_warnings warnings = {0};
    eplb_hooks hooks = test_warning_hooks(&warnings);
    test_path path = test_data("format/omni_placement.npy");
    assert_ok(read_counts(&hooks, path.text), NULL);
    assert_int_equal(warnings.count, 1);
    assert_contains(warnings.last, "omni_placement.npy: looks like a placement (omni), not counts");
    path = test_data("format/steps.npy");
    assert_ok(read_counts(&hooks, path.text), NULL);
    assert_int_equal(warnings.count, 1);
}

static eplb_status read_as_placement(const char *content, int32_t experts, int32_t gpus,
                                     test_warnings *warnings, eplb_error *error)
{
    *warnings = (test_warnings){0};
    eplb_hooks hooks = test_warning_hooks(warnings);
    eplb_read_options options = options_for("");
    options.experts = experts;
    options.gpus = gpus;
    eplb_placement *placement;
    test_write_text("f", content);
    eplb_status status = eplb_placement_read(&placement, &hooks, "f", &options, NULL, error);
    eplb_placement_destroy(&placement);
    return status;
}

#define LIKE_COUNTS                                                                                \
    "f: looks like counts (lmdeploy) of [2][4], not a placement: expert ids up to 70 in 4 slots"

static void counts_that_are_read_as_a_placement_are_warned_of(void **state)
{
    (void)state;
    static const char counts[] = "[[10,0,30,40],[1,70,3,4]]";
    test_warnings warnings;
    eplb_error error;
    assert_ok(read_as_placement(counts, 0, 2, &warnings, &error), &error);
    assert_string_equal(warnings.last, LIKE_COUNTS);
    assert_status(read_as_placement(counts, 4, 2, &warnings, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(warnings.last, LIKE_COUNTS);
    assert_contains(error.message, "f: layer 0: slot 0: expert 10 not in 0..3");
    /* it is read again, with the number */
    assert_status(read_as_placement(counts, 0, 0, &warnings, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_int_equal(warnings.count, 0);
}

/* A placement may be broken. Nor does a single row fit counts. */
static void broken_placements_are_not_taken_for_counts(void **state)
{
    (void)state;
    static const char *const maps[] = {"[[0,1,3,3],[-1,-1,2,2]]", "[[0,1,70,80]]", "[70,80,90,0]",
                                       "{\"physical_to_logical_map\":[[0,1,70,3]]}"};
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        test_warnings warnings;
        eplb_error error;
        assert_ok(read_as_placement(maps[i], 0, 2, &warnings, &error), &error);
        assert_string_equal(warnings.last, "");
    }
}

static void content_of_the_other_kind_is_called_that(void **state)
{
    (void)state;
    static const char *const counts[][2] = {
        {"step,layer,expert,tokens\n0,0,0,1\n", "csv"},
        {"{\"logical_count\":[[1,2]]}", "sglang"},
        {"{\"layer\":0,\"counts\":[1,2]}\n", "jsonl"},
    };
    eplb_error error;
    char expected[128];
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        test_warnings warnings;
        assert_status(read_as_placement(counts[i][0], 0, 2, &warnings, &error), EPLB_ERROR_PARSE,
                      &error);
        snprintf(expected, sizeof(expected),
                 "f: the content is of no known format of placements, but fits counts (%s)",
                 counts[i][1]);
        assert_string_equal(error.message, expected);
    }
    static const char *const maps[][2] = {
        {"{\"physical_to_logical_map\":[[0,1]]}", "sglang"},
        {"[0,1]", "vllm"},
    };
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        test_write_text("f", maps[i][0]);
        assert_status(read_rows("f", NULL, NULL, NULL, &error), EPLB_ERROR_PARSE, &error);
        snprintf(expected, sizeof(expected),
                 "f: the content is of no known format of counts, but fits placements (%s)",
                 maps[i][1]);
        assert_string_equal(error.message, expected);
    }
}

TEST_MAIN(INSIDE(a_map_that_is_read_as_counts_is_warned_of), INSIDE(counts_are_no_map),
          INSIDE(who_names_the_format_is_not_asked), cmocka_unit_test(cells_of_omni_are_no_counts),
          INSIDE(counts_that_are_read_as_a_placement_are_warned_of),
          INSIDE(broken_placements_are_not_taken_for_counts),
          INSIDE(content_of_the_other_kind_is_called_that))
