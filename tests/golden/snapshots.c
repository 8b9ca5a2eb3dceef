/* SPDX-License-Identifier: MIT */
/*
 * Snapshot files of version 1, made once: every later library reads them, and as long as it writes
 * version 1 it writes these bytes. A new version gets new files beside them: run the program with
 * the argument `write` and a directory to make them.
 */
#include "unit/snapshot_file.h"

/* A window that was emptied after 5 steps of 2 buckets. */
static eplb_snapshot *make_empty(void)
{
    eplb_window_options options = window_options(3, 4);
    options.steps_per_bucket = 4;
    eplb_window *window = make_window(options);
    for (int step = 0; step < 5; step++) {
        begin_step(window);
    }
    eplb_window_reset(window);
    eplb_snapshot *snapshot = take_snapshot(window);
    eplb_window_destroy(&window);
    return snapshot;
}

static const struct {
    const char *name;
    eplb_snapshot *(*make)(void);
} files[] = {{"snapshot_two_ranks.eplbs", make_sample}, {"snapshot_empty.eplbs", make_empty}};
#define FILES (sizeof(files) / sizeof(files[0]))

static eplb_snapshot *read_golden(size_t file)
{
    eplb_snapshot *snapshot = NULL;
    eplb_error error;
    assert_ok(eplb_snapshot_read(&snapshot, NULL, test_data(files[file].name).text, -1, &error),
              &error);
    return snapshot;
}

static void golden_files_are_written_again_byte_for_byte(void **state)
{
    for (size_t i = 0; i < FILES; i++) {
        test_path path = test_join(*state, files[i].name);
        size_t size;
        size_t written_size;
        char *golden = test_read_file(test_data(files[i].name).text, &size);
        eplb_snapshot *snapshots[] = {read_golden(i), files[i].make()};
        for (size_t k = 0; k < 2; k++) {
            assert_ok(eplb_snapshot_write(snapshots[k], NULL, path.text, NULL), NULL);
            char *written = test_read_file(path.text, &written_size);
            assert_int_equal(written_size, size);
            assert_memory_equal(written, golden, size);
            free(written);
            eplb_snapshot_destroy(&snapshots[k]);
        }
        free(golden);
    }
}

static void golden_file_of_two_ranks_says_what_they_counted(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = read_golden(0);
    eplb_snapshot_info info = info_of(snapshot);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.ranks, 4);
    assert_int_equal(info.ranks_held, 2);
    assert_int_equal(info.buckets, 3);
    assert_int_equal(info.first_bucket, 2);
    assert_int_equal(info.steps, 9);
    assert_int_equal(info.dropped, 2);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 2), 2);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 3), 0);
    assert_int_equal(eplb_snapshot_filled_steps(snapshot, 4), 1);
    assert_string_equal(eplb_snapshot_name(snapshot), "decode");
    assert_int_equal(eplb_snapshot_layer_ids(snapshot)[0], 3);
    assert_int_equal(eplb_snapshot_layer_ids(snapshot)[1], 9);
    assert_true(eplb_snapshot_has_rank(snapshot, 2) && eplb_snapshot_has_rank(snapshot, 3));
    assert_row(snapshot, 2, 0, 9, 0, 8589934590, 0, 5);
    assert_row(snapshot, 2, 1, 10, 2000, 8589934590, 0, 5);
    assert_row(snapshot, 3, 0, 0, 0, 0, 0, 0);
    assert_row(snapshot, 4, 0, 16, 0, 8589934590, 0, 5);
    assert_row(snapshot, 4, 1, 16, 2000, 8589934590, 0, 5);
    eplb_snapshot_destroy(&snapshot);
}

static void golden_file_of_an_emptied_window_says_when_it_was(void **state)
{
    (void)state;
    eplb_snapshot *snapshot = read_golden(1);
    eplb_snapshot_info info = info_of(snapshot);
    assert_int_equal(info.layers, 3);
    assert_int_equal(info.experts, 4);
    assert_int_equal(info.ranks, 1);
    assert_int_equal(info.buckets, 0);
    assert_int_equal(info.first_bucket, 2);
    assert_int_equal(info.steps, 5);
    assert_null(eplb_snapshot_name(snapshot));
    eplb_snapshot_destroy(&snapshot);
}

static int write_files(const char *directory)
{
    for (size_t i = 0; i < FILES; i++) {
        eplb_snapshot *snapshot = files[i].make();
        eplb_error error;
        if (eplb_snapshot_write(snapshot, NULL, test_join(directory, files[i].name).text, &error) !=
            EPLB_OK) {
            fprintf(stderr, "%s\n", error.message);
            return EXIT_FAILURE;
        }
        eplb_snapshot_destroy(&snapshot);
    }
    return EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
    if (count > 2 && strcmp(arguments[1], "write") == 0) {
        return write_files(arguments[2]);
    }
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(golden_files_are_written_again_byte_for_byte),
        cmocka_unit_test(golden_file_of_two_ranks_says_what_they_counted),
        cmocka_unit_test(golden_file_of_an_emptied_window_says_when_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
