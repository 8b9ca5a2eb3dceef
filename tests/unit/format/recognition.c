/* SPDX-License-Identifier: MIT */
#include "reading.h"

#ifdef HAVE_ZIP
#define NPZ "npz, "
#else
#define NPZ ""
#endif

#ifdef HAVE_YAML
#define TRTLLM "trtllm, "
#else
#define TRTLLM ""
#endif

static void assert_counts_refused(const char *path, const eplb_read_options *options,
                                  eplb_status expected, const char *part)
{
    eplb_error error;
    assert_status(read_rows(path, options, NULL, NULL, &error), expected, &error);
    assert_contains(error.message, part);
}

static void what_is_no_file_of_counts_names_the_known_formats(void **state)
{
    static const char *const contents[] = {"hello\n",  "{\"a\":1}", "[]",
                                           "\x93NUMP", "{",         "\xEF\xBB\xBF"};
    test_path path = test_join(*state, "f");
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        test_write_text(path.text, contents[i]);
        assert_counts_refused(
            path.text, NULL, EPLB_ERROR_PARSE,
            "f: the content is of no known format of counts (sglang, npy, " NPZ "csv, "
            "jsonl, trtllm, vllm_stats, vllm_dump, vllm_load, fastdeploy, lmdeploy, "
            "mindie, snapshot)");
    }
}

static void what_is_no_placement_names_the_known_formats(void **state)
{
    test_path path = test_join(*state, "f");
    test_write_text(path.text, "no format at all\n");
    eplb_placement *placement;
    eplb_error error;
    assert_status(eplb_placement_read(&placement, NULL, path.text, NULL, NULL, &error),
                  EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "no known format of placements (sglang, " TRTLLM
                                   "ascend, vllm, vllm_mapping, vllm_stats, vllm_dump, omni, "
                                   "fastdeploy)");
    assert_null(placement);
}

static void content_that_fits_two_formats_needs_a_choice(void **state)
{
    test_path path = test_join(*state, "f");
    test_write_text(path.text, "{\"logical_count\":[[1,2]],\"layer\":0,\"counts\":[3,4,5]}");
    assert_counts_refused(
        path.text, NULL, EPLB_ERROR_PARSE,
        "f: the content fits several formats of counts (sglang, jsonl): say which");
    eplb_error error;
    eplb_read_options options = options_for("jsonl");
    assert_ok(read_rows(path.text, &options, NULL, NULL, &error), &error);
    options = options_for("sglang");
    assert_ok(read_rows(path.text, &options, NULL, NULL, &error), &error);
}

static eplb_status read_wanted(const char *path, uint32_t wanted, const char *format,
                               eplb_error *error)
{
    eplb_read_options options = options_for(format);
    eplb_placement *placement = NULL;
    eplb_status status = wanted == EPLB_FORMAT_READS_COUNTS
                             ? read_rows(path, &options, NULL, NULL, error)
                             : eplb_placement_read(&placement, NULL, path, &options, NULL, error);
    eplb_placement_destroy(&placement);
    return status;
}

/* A file that is known by its head, which blanks follow beyond what a probe sees. */
typedef struct known_head {
    const char *head;
    const char *format;
    uint32_t wanted;
} known_head;

static void assert_known(const char *directory, const known_head *known)
{
    enum { SIZE = 70000 };
    static char text[SIZE + 1];
    test_path path = test_join(directory, "f");
    memset(text, ' ', SIZE);
    memcpy(text, known->head, strlen(known->head));
    test_write_text(path.text, text);
    eplb_error error = {0};
    eplb_status status = read_wanted(path.text, known->wanted, "", &error);
    assert_status(status, EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "found the end of the file");
    eplb_error named = {0};
    status = read_wanted(path.text, known->wanted, known->format, &named);
    assert_status(status, EPLB_ERROR_PARSE, &named);
    assert_string_equal(named.message, error.message);
}

/* Records of vLLM are known by their type, or by a list longer than the beginning of the file. */
static void records_of_vllm_are_known_by_type_or_list(void **state)
{
    static const known_head cases[] = {
        {"{\"record_type\":\"eplb_load_stats\",\"x\":[", "vllm_stats", EPLB_FORMAT_READS_COUNTS},
        {"{\"a\":1,\"expert_load\":[[", "vllm_stats", EPLB_FORMAT_READS_COUNTS},
        {"{\"record_type\":\"a\",\"expert_load\":1}\n{\"record_type\":\"eplb_load_stats\",\"p2l_"
         "map\":[[",
         "vllm_stats", EPLB_FORMAT_READS_PLACEMENT},
        {"{\"initial_global_assignments\":{\"0\":[", "vllm_mapping", EPLB_FORMAT_READS_PLACEMENT},
        {"{\"record_type\":\"eplb_initial_mapping\",\"x\":[", "vllm_mapping",
         EPLB_FORMAT_READS_PLACEMENT},
        {"{\"record_type\":\"eplb_initial_mapping\"}\n{\"expert_load\":[", "vllm_stats",
         EPLB_FORMAT_READS_COUNTS},
        {"{\"record_type\":\"eplb_initial_mapping\",\"x\":[", "vllm_stats",
         EPLB_FORMAT_READS_COUNTS},
        {"{\"metadata\":{},\"snapshots\":[", "vllm_dump", EPLB_FORMAT_READS_COUNTS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_known(*state, &cases[i]);
    }
}

/* Counts may stand behind the map, and the map behind the counts. */
static void files_of_fastdeploy_are_known_by_any_list(void **state)
{
    static const known_head cases[] = {
        {"{\"ep_rank_to_expert_id_list\":[[", "fastdeploy", EPLB_FORMAT_READS_COUNTS},
        {"{\"expert_id_to_ep_rank_array\":[[", "fastdeploy", EPLB_FORMAT_READS_COUNTS},
        {"{\"expert_in_rank_num_list\":[[", "fastdeploy", EPLB_FORMAT_READS_PLACEMENT},
        {"{\"tokens_per_expert_stats_list\":[[", "fastdeploy", EPLB_FORMAT_READS_PLACEMENT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_known(*state, &cases[i]);
    }
}

/* One document may be counts and a placement: what is asked for decides. */
static void what_is_asked_for_decides(void **state)
{
    test_path path = test_join(*state, "f");
    test_write_text(path.text, "{\"logical_count\":[[1,2]],\"physical_to_logical_map\":[[0,1]]}");
    eplb_error error;
    assert_ok(read_rows(path.text, NULL, NULL, NULL, &error), &error);
    eplb_placement *placement;
    eplb_read_options options = options_for("");
    options.gpus = 1;
    assert_status(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error),
                  EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, "key 'logical_count' beside 'physical_to_logical_map'");
}

static void a_format_without_what_is_asked_for_is_refused(void **state)
{
    (void)state;
    test_path path = test_data("format/counts.csv");
    eplb_read_options options = options_for("vllm");
    assert_counts_refused(path.text, &options, EPLB_ERROR_UNSUPPORTED, "vllm has no counts");
    options = options_for("csv");
    eplb_placement *placement;
    eplb_error error;
    assert_status(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error),
                  EPLB_ERROR_UNSUPPORTED, &error);
    assert_contains(error.message, "csv has no placements");
}

static void empty_missing_and_unreadable_files_are_named(void **state)
{
    test_path path = test_join(*state, "f");
    assert_counts_refused(path.text, NULL, EPLB_ERROR_IO, "f: cannot open: No such file");
    test_write_text(path.text, "");
    assert_counts_refused(path.text, NULL, EPLB_ERROR_PARSE, "f: the file is empty");
    assert_counts_refused(*state, NULL, EPLB_ERROR_IO, "cannot read: Is a directory");
    eplb_counts_reader *reader;
    eplb_error error;
    assert_status(eplb_counts_open(&reader, NULL, "", NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_counts_open(NULL, NULL, "f", NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_counts_next(NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
}

/* A format that this build cannot read is still known, so that the reason can be said. */
static void archives_need_minizip(void **state)
{
    (void)state;
    eplb_error error;
    test_path path = test_data("format/sglang_stat.pt");
    eplb_status status = read_rows(path.text, NULL, NULL, NULL, &error);
#ifdef HAVE_ZIP
    assert_ok(status, &error);
#else
    assert_status(status, EPLB_ERROR_UNSUPPORTED, &error);
    assert_contains(error.message, "sglang_stat.pt: a zip archive, and this build is without");
#endif
}

/* Runs `read` with the file as standard input, through a pipe or not. */
static eplb_status read_standard_input(const char *name, bool pipe, eplb_error *error)
{
    test_path path = test_data(name);
    char command[4200];
    snprintf(command, sizeof(command), "cat '%s'", path.text);
    FILE *file = pipe ? popen(command, "r") : fopen(path.text, "rb");
    assert_non_null(file);
    int saved = dup(STDIN_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDIN_FILENO) >= 0);
    eplb_status status = read_rows("-", NULL, NULL, NULL, error);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    close(saved);
    if (pipe) {
        pclose(file);
    } else {
        fclose(file);
    }
    return status;
}

static void standard_input_is_read(void **state)
{
    (void)state;
    eplb_error error;
    assert_ok(read_standard_input("format/counts.jsonl", true, &error), &error);
    assert_ok(read_standard_input("format/steps.npy", true, &error), &error);
    assert_ok(read_standard_input("format/steps_fortran.npy", false, &error), &error);
    assert_ok(read_standard_input("format/steps_fortran.npy", true, &error), &error);
}

/* The writer holds the stream open: waiting for more than a line would never end. */
static void a_named_format_is_read_line_by_line(void **state)
{
    (void)state;
    static const char line[] = "{\"layer\":2,\"counts\":[5]}\n";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDIN_FILENO);
    assert_true(saved >= 0 && dup2(ends[0], STDIN_FILENO) >= 0);
    eplb_read_options options = options_for("jsonl");
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_int_equal(write(ends[1], line, strlen(line)), strlen(line));
    assert_ok(eplb_counts_open(&reader, NULL, "-", &options, &error), &error);
    for (int i = 0; i < 3; i++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_int_equal(row.layer, 2);
        assert_int_equal(write(ends[1], line, strlen(line)), strlen(line));
    }
    close(ends[1]);
    assert_ok(eplb_counts_next(reader, &row, &error), &error);
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);
    assert_true(dup2(saved, STDIN_FILENO) >= 0);
    close(saved);
    close(ends[0]);
}

/* A file that was not whole is not reported as one, wherever it was cut. */
static void no_prefix_of_a_document_is_a_document(void **state)
{
    test_path path = test_data("format/sglang_logical_count.json");
    test_path part = test_join(*state, "part");
    size_t size;
    char *content = test_read_file(path.text, &size);
    eplb_read_options options = options_for("sglang");
    while (content[size - 1] == '\n') {
        size--;
    }
    for (size_t length = 0; length < size; length++) {
        eplb_error error;
        test_write_file(part.text, content, length);
        assert_status(read_rows(part.text, &options, NULL, NULL, &error), EPLB_ERROR_PARSE, &error);
    }
    free(content);
}

TEST_MAIN(IN_DIRECTORY(what_is_no_file_of_counts_names_the_known_formats),
          IN_DIRECTORY(what_is_no_placement_names_the_known_formats),
          IN_DIRECTORY(content_that_fits_two_formats_needs_a_choice),
          IN_DIRECTORY(records_of_vllm_are_known_by_type_or_list),
          IN_DIRECTORY(files_of_fastdeploy_are_known_by_any_list),
          IN_DIRECTORY(what_is_asked_for_decides),
          cmocka_unit_test(a_format_without_what_is_asked_for_is_refused),
          IN_DIRECTORY(empty_missing_and_unreadable_files_are_named),
          cmocka_unit_test(archives_need_minizip), cmocka_unit_test(standard_input_is_read),
          cmocka_unit_test(a_named_format_is_read_line_by_line),
          IN_DIRECTORY(no_prefix_of_a_document_is_a_document))
