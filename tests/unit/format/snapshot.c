/* SPDX-License-Identifier: MIT */
/* Snapshots of windows as files of counts. */
#include "../snapshot_file.h"
#include "reading.h"

/* All ranks, merged, as a file. */
static test_path write_whole(const char *directory)
{
    test_path path = test_join(directory, "f.eplbs");
    eplb_snapshot *sample = make_sample();
    merge_missing_ranks(sample);
    assert_ok(eplb_snapshot_write(sample, NULL, path.text, NULL), NULL);
    eplb_snapshot_destroy(&sample);
    return path;
}

typedef struct rows {
    int count;
    int64_t step[8];
    int32_t layer[8];
    double counts[8][SAMPLE_EXPERTS];
} rows;

static void keep_row(void *context, const eplb_counts_row *row)
{
    rows *kept = context;
    assert_true(kept->count < 8);
    assert_int_equal(row->length, SAMPLE_EXPERTS);
    kept->step[kept->count] = row->step;
    kept->layer[kept->count] = row->layer;
    memcpy(kept->counts[kept->count], row->counts, sizeof(kept->counts[0]));
    kept->count++;
}

/* Bucket 3 has no counted step. */
static void buckets_with_counted_steps_are_read_as_steps(void **state)
{
    test_path path = write_whole(*state);
    rows got = {0};
    eplb_error error;
    assert_ok(read_rows(path.text, NULL, keep_row, &got, &error), &error);
    assert_int_equal(got.count, 4);
    static const int64_t steps[] = {2, 2, 4, 4};
    static const int32_t layers[] = {3, 9, 3, 9};
    static const double counts[4][SAMPLE_EXPERTS] = {
        {4 + 5 + 4 + 5, 0, 4.0 * UINT32_MAX, 0, 0 + 1 + 2 + 3},
        {4 + 5 + 4 + 5 + 1, 4000, 4.0 * UINT32_MAX, 0, 0 + 1 + 2 + 3},
        {4 * 8, 0, 4.0 * UINT32_MAX, 0, 0 + 1 + 2 + 3},
        {4 * 8, 4000, 4.0 * UINT32_MAX, 0, 0 + 1 + 2 + 3},
    };
    assert_memory_equal(got.step, steps, sizeof(steps));
    assert_memory_equal(got.layer, layers, sizeof(layers));
    assert_memory_equal(got.counts, counts, sizeof(counts));
}

static void file_becomes_a_load(void **state)
{
    test_path path = write_whole(*state);
    const char *paths[] = {path.text};
    eplb_load *load = NULL;
    eplb_error error;
    assert_ok(load_summed(&load, NULL, paths, 1, NULL, &error), &error);
    assert_int_equal(eplb_load_scenarios(load), 1);
    assert_int_equal(eplb_load_layers(load), SAMPLE_LAYERS);
    assert_int_equal(eplb_load_experts(load), SAMPLE_EXPERTS);
    assert_int_equal(eplb_load_layer_ids(load)[1], 9);
    assert_int_equal(eplb_load_model_layers(load), SAMPLE_MODEL_LAYERS);
    assert_true(eplb_load_row(load, 0, 1)[1] == 8000.0);
    eplb_load_destroy(&load);
}

static void assert_refused(const char *path, const eplb_read_options *options, eplb_status expected,
                           const char *message)
{
    eplb_error error;
    assert_status(read_rows(path, options, NULL, NULL, &error), expected, &error);
    assert_contains(error.message, message);
}

/* sgl-project/sglang#5524: counts of one rank were taken for those of all. */
static void snapshot_without_some_ranks_is_refused_with_their_names(void **state)
{
    test_path path = test_join(*state, "f.eplbs");
    packed p = pack_sample();
    test_write_file(path.text, p.bytes, p.size);
    free(p.bytes);
    assert_refused(path.text, NULL, EPLB_ERROR_DATA,
                   "f.eplbs: snapshot 0: of 4 ranks, missing: 0, 1");
}

/* Changes a number of the file of all ranks. */
static void forge(const char *path, size_t at, size_t size, uint64_t value)
{
    packed p;
    p.bytes = (uint8_t *)test_read_file(path, &p.size);
    assert_int_equal(p.size, SAMPLE_SIZE);
    set_number(p, at, size, value);
    seal_sample(p);
    test_write_file(path, p.bytes, p.size);
    free(p.bytes);
}

static void sum_that_a_double_cannot_hold_is_refused(void **state)
{
    test_path path = write_whole(*state);
    const size_t at = AT_BUCKETS + 24 + 8 * (SAMPLE_EXPERTS + 3);
    forge(path.text, at, 8, (uint64_t)1 << 53);
    rows got = {0};
    assert_ok(read_rows(path.text, NULL, keep_row, &got, NULL), NULL);
    assert_true(got.counts[1][3] == 9007199254740992.0);
    forge(path.text, at, 8, ((uint64_t)1 << 53) + 1);
    assert_refused(path.text, NULL, EPLB_ERROR_OVERFLOW,
                   "f.eplbs: bucket 2: layer 9: expert 3: 9007199254740993 tokens");
}

static void damage_is_named_with_its_file_and_byte(void **state)
{
    test_path path = write_whole(*state);
    size_t size;
    char *bytes = test_read_file(path.text, &size);
    for (size_t length = EPLB_SNAPSHOT_MAGIC_SIZE; length < size; length++) {
        char place[80];
        snprintf(place, sizeof(place), "f.eplbs: snapshot: byte %zu: the snapshot ends", length);
        test_write_file(path.text, bytes, length);
        assert_refused(path.text, NULL, EPLB_ERROR_PARSE, place);
    }
    for (size_t i = EPLB_SNAPSHOT_MAGIC_SIZE; i < size; i++) {
        bytes[i] ^= 0x10;
        test_write_file(path.text, bytes, size);
        assert_refused(path.text, NULL, EPLB_ERROR_PARSE, "f.eplbs: snapshot: byte ");
        bytes[i] ^= 0x10;
    }
    free(bytes);
}

/* An editor may have put one there: then it has changed other bytes, too. */
static void snapshot_behind_a_byte_order_mark_is_refused(void **state)
{
    test_path path = write_whole(*state);
    size_t size;
    char *bytes = test_read_file(path.text, &size);
    char marked[SAMPLE_SIZE + 3] = "\xEF\xBB\xBF";
    memcpy(marked + 3, bytes, size);
    free(bytes);
    test_write_file(path.text, marked, sizeof(marked));
    assert_refused(path.text, NULL, EPLB_ERROR_PARSE, "f.eplbs: byte 0: not a snapshot");
}

static void text_is_no_snapshot_even_when_asked_for(void **state)
{
    test_path path = test_join(*state, "f.eplbs");
    eplb_read_options options = options_for("snapshot");
    test_write_text(path.text, "{\"layer\":2,\"counts\":[5]}\n");
    assert_refused(path.text, &options, EPLB_ERROR_PARSE, "f.eplbs: byte 0: not a snapshot");
    test_write_text(path.text, "\x89"
                               "EPLBS\n");
    assert_refused(path.text, &options, EPLB_ERROR_PARSE, "byte 6: 0x0a, expected 0x0d");
}

static void later_version_is_not_supported(void **state)
{
    test_path path = write_whole(*state);
    forge(path.text, 8, 4, 2);
    assert_refused(path.text, NULL, EPLB_ERROR_UNSUPPORTED,
                   "f.eplbs: snapshot: byte 8: snapshot version 2: this library reads version 1");
}

static void snapshot_beyond_the_limits_is_refused(void **state)
{
    test_path path = write_whole(*state);
    eplb_read_options options = options_for("");
    options.max_layers = 9;
    assert_refused(path.text, &options, EPLB_ERROR_LIMIT,
                   "f.eplbs: layers up to 9 of 5 experts, limits 8 and 4096");
    options.max_layers = 10;
    options.max_experts = SAMPLE_EXPERTS;
    options.max_bytes = SAMPLE_SIZE;
    assert_ok(read_rows(path.text, &options, NULL, NULL, NULL), NULL);
    options.max_experts = SAMPLE_EXPERTS - 1;
    assert_refused(path.text, &options, EPLB_ERROR_LIMIT, "of 5 experts, limits 9 and 4");
    options.max_experts = SAMPLE_EXPERTS;
    options.max_bytes = SAMPLE_SIZE - 1;
    assert_refused(path.text, &options, EPLB_ERROR_LIMIT, "f.eplbs: more than 418 bytes");
}

static void other_number_of_experts_is_refused(void **state)
{
    test_path path = write_whole(*state);
    eplb_read_options options = options_for("");
    options.experts = SAMPLE_EXPERTS + 1;
    assert_refused(path.text, &options, EPLB_ERROR_DATA, "f.eplbs: 5 counts a layer, expected 6");
    options.experts = SAMPLE_EXPERTS;
    assert_ok(read_rows(path.text, &options, NULL, NULL, NULL), NULL);
}

/* Before its first step. */
static void empty_window_has_no_rows(void **state)
{
    test_path path = test_join(*state, "f.eplbs");
    eplb_window *window = make_window(window_options(3, 4));
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_ok(eplb_snapshot_write(snapshot, NULL, path.text, NULL), NULL);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
    rows got = {0};
    assert_ok(read_rows(path.text, NULL, keep_row, &got, NULL), NULL);
    assert_int_equal(got.count, 0);
    const char *paths[] = {path.text};
    eplb_load *load = NULL;
    eplb_error error;
    assert_status(load_summed(&load, NULL, paths, 1, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "f.eplbs: no counts at all");
}

static eplb_status read_file(const eplb_hooks *hooks, void *context)
{
    eplb_counts_reader *reader = NULL;
    eplb_counts_row row;
    eplb_status status = eplb_counts_open(&reader, hooks, context, NULL, NULL);
    while (status == EPLB_OK) {
        status = eplb_counts_next(reader, &row, NULL);
    }
    eplb_counts_close(&reader);
    return status == EPLB_END ? EPLB_OK : status;
}

static void failed_allocation_leaks_nothing(void **state)
{
    test_path path = write_whole(*state);
    test_each_failing_allocation(read_file, path.text);
}

static void format_is_found_by_its_name(void **state)
{
    (void)state;
    const eplb_format *format = eplb_format_find("snapshot");
    assert_non_null(format);
    assert_int_equal(eplb_format_flags(format),
                     EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_MODEL_LAYER_IDS);
}

TEST_MAIN(IN_DIRECTORY(buckets_with_counted_steps_are_read_as_steps),
          IN_DIRECTORY(file_becomes_a_load),
          IN_DIRECTORY(snapshot_without_some_ranks_is_refused_with_their_names),
          IN_DIRECTORY(sum_that_a_double_cannot_hold_is_refused),
          IN_DIRECTORY(damage_is_named_with_its_file_and_byte),
          IN_DIRECTORY(snapshot_behind_a_byte_order_mark_is_refused),
          IN_DIRECTORY(text_is_no_snapshot_even_when_asked_for),
          IN_DIRECTORY(later_version_is_not_supported),
          IN_DIRECTORY(snapshot_beyond_the_limits_is_refused),
          IN_DIRECTORY(other_number_of_experts_is_refused), IN_DIRECTORY(empty_window_has_no_rows),
          IN_DIRECTORY(failed_allocation_leaks_nothing),
          cmocka_unit_test(format_is_found_by_its_name))
