/* SPDX-License-Identifier: MIT */
/* Writing is whole or not at all, and refuses what would be read as something else. */
#include <dirent.h>

#include "maps.h"

static const char *const map_formats[] = {"sglang", "ascend",       "vllm",
                                          "trtllm", "vllm_mapping", "fastdeploy"};
enum { MAP_FORMATS = sizeof(map_formats) / sizeof(map_formats[0]) };

static int entries_of(const char *directory)
{
    DIR *open = opendir(directory);
    assert_non_null(open);
    int count = 0;
    while (readdir(open) != NULL) {
        count++;
    }
    closedir(open);
    return count - 2;
}

/* Every format refuses the placement; a file that is there stays, and nothing lies beside it. */
static void assert_refused(const eplb_placement *placement, const char *directory,
                           eplb_status expected, const char *part)
{
    test_path path = test_join(directory, "out");
    test_write_text(path.text, "before");
    for (int i = 0; i < MAP_FORMATS; i++) {
        const eplb_format *format = eplb_format_find(map_formats[i]);
        eplb_error error;
        assert_status(eplb_placement_write(placement, NULL, path.text, format, &error), expected,
                      &error);
        assert_contains(error.message, part);
        char *content = test_read_file(path.text, NULL);
        assert_string_equal(content, "before");
        free(content);
        assert_int_equal(entries_of(directory), 1);
    }
}

static void invalid_placements_are_refused(void **state)
{
    int32_t rows[LAYERS][SLOTS];
    memcpy(rows, recorded_map, sizeof(rows));
    rows[1][1] = 7;
    eplb_placement *placement = make_placement(rows, 0);
    assert_refused(placement, *state, EPLB_ERROR_DATA, "layer 2: expert 7 twice on GPU 0");
    eplb_placement_destroy(&placement);
    memcpy(rows, recorded_map, sizeof(rows));
    rows[2][5] = -1;
    placement = make_placement(rows, 0);
    assert_refused(placement, *state, EPLB_ERROR_DATA, "layer 3: slot 5 of GPU 1 is empty");
    eplb_placement_destroy(&placement);
}

/* One layer of three experts on two GPUs, evenly spread. */
static eplb_placement *spread_on(const eplb_cluster *cluster)
{
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, 3, NULL), NULL);
    assert_ok(eplb_placement_spread(placement, 0, NULL), NULL);
    return placement;
}

static void dead_gpus_are_refused(void **state)
{
    eplb_cluster *cluster;
    assert_ok(eplb_cluster_create(&cluster, NULL, 2, 3, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = spread_on(cluster);
    assert_refused(placement, *state, EPLB_ERROR_UNSUPPORTED, "dead GPUs: 1 of 2");
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
}

static void uneven_slots_are_refused(void **state)
{
    eplb_cluster *cluster;
    assert_ok(eplb_cluster_create(&cluster, NULL, 2, 3, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 2, NULL), NULL);
    eplb_placement *placement = spread_on(cluster);
    assert_refused(placement, *state, EPLB_ERROR_UNSUPPORTED, "different numbers of slots");
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
}

/* Whatever a format writes, its reader would take the last layers for the model's. */
static void draft_layers_that_cannot_be_marked_are_refused(void **state)
{
    eplb_placement *placement = make_placement(recorded_map, 0);
    test_path path = test_join(*state, "out");
    const eplb_format *format;
    int written = 0;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        bool writes = (eplb_format_flags(format) & EPLB_FORMAT_WRITES_PLACEMENT) != 0;
        for (int32_t count = 0; count < LAYERS; count++) {
            eplb_error error;
            assert_ok(eplb_placement_set_draft_layers(placement, count, NULL), NULL);
            eplb_status status = eplb_placement_write(placement, NULL, path.text, format, &error);
            bool fits = count <= eplb_format_draft_layers(format);
            assert_status(status, writes && fits ? EPLB_OK : EPLB_ERROR_UNSUPPORTED, &error);
            if (writes && !fits) {
                char expected[120];
                snprintf(expected, sizeof(expected),
                         "%s cannot carry layers of the draft model (%d, the last of %d): %s",
                         eplb_format_name(format), count, LAYERS,
                         eplb_format_draft_layers(format) > 0
                             ? "at most 1"
                             : "it cannot say which they are; ascend can");
                assert_string_equal(error.message, expected);
            }
            written += writes && fits && count > 0 ? 1 : 0;
        }
    }
    assert_int_equal(written, 1);
    eplb_placement_destroy(&placement);
}

/* A placement of `experts` experts and one slot more on each of `gpus` GPUs than needed. */
static eplb_placement *large_placement(int32_t experts, int32_t gpus, int32_t slots_per_gpu)
{
    eplb_cluster *cluster;
    eplb_placement *placement;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, experts, NULL), NULL);
    assert_ok(eplb_placement_spread(placement, 0, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    return placement;
}

static void trtllm_limits_are_kept(void **state)
{
    (void)state;
    const struct {
        int32_t experts;
        int32_t gpus;
        eplb_status status;
    } cases[] = {{1024, 1024, EPLB_OK},
                 {1025, 1025, EPLB_ERROR_UNSUPPORTED},
                 {1024, 65536, EPLB_OK},
                 {1024, 65536 + 1, EPLB_ERROR_UNSUPPORTED}};
    for (size_t i = 0; i < 4; i++) {
        /* The last case cannot have one slot a GPU: 65536 GPUs are the limit. */
        bool wide = cases[i].gpus > 65536;
        eplb_placement *placement =
            large_placement(cases[i].experts, wide ? 32769 : cases[i].gpus, wide ? 2 : 1);
        eplb_error error;
        char *text;
        size_t length;
        eplb_status status = eplb_placement_format(placement, NULL, eplb_format_find("trtllm"),
                                                   &text, &length, &error);
        assert_status(status, cases[i].status, &error);
        assert_true((text != NULL) == (status == EPLB_OK));
        free(text);
        eplb_placement_destroy(&placement);
    }
}

static void sglang_spreads_over_the_other_layers(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(recorded_map, 6);
    eplb_error error;
    char *text;
    size_t length;
    assert_ok(
        eplb_placement_format(placement, NULL, eplb_format_find("sglang"), &text, &length, &error),
        &error);
    assert_int_equal(strlen(text), length);
    assert_string_equal(text, "{\"physical_to_logical_map\":[\n"
                              "[0,1,2,3,4,5,6,7,0,1,2,3],\n"
                              "[0,1,2,3,0,4,5,6,0,7,3,5],\n"
                              "[7,2,1,2,0,3,2,4,5,6,7,1],\n"
                              "[0,4,1,5,2,4,3,6,4,7,0,4],\n"
                              "[0,1,2,3,4,5,6,7,0,1,2,3],\n"
                              "[0,1,2,3,4,5,6,7,0,1,2,3]\n"
                              "]}\n");
    free(text);
    eplb_placement_destroy(&placement);
}

static void formats_of_counts_write_no_placement(void **state)
{
    test_path path = test_join(*state, "out");
    eplb_placement *placement = make_recorded_placement();
    eplb_error error;
    assert_status(eplb_placement_write(placement, NULL, path.text, eplb_format_find("csv"), &error),
                  EPLB_ERROR_UNSUPPORTED, &error);
    assert_contains(error.message, "csv has no placements to be written");
    assert_status(eplb_placement_write(placement, NULL, path.text, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_write(NULL, NULL, path.text, eplb_format_find("vllm"), &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_write(placement, NULL, "", eplb_format_find("vllm"), &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_int_equal(entries_of(*state), 0);
    eplb_placement_destroy(&placement);
}

static void a_path_that_cannot_be_written_is_named(void **state)
{
    test_path missing = test_join(*state, "no/such/directory");
    eplb_placement *placement = make_recorded_placement();
    eplb_error error;
    assert_status(
        eplb_placement_write(placement, NULL, missing.text, eplb_format_find("vllm"), &error),
        EPLB_ERROR_IO, &error);
    assert_contains(error.message, "no/such/directory");
    eplb_placement_destroy(&placement);
}

static void a_dash_is_standard_output(void **state)
{
    test_path path = test_join(*state, "out");
    eplb_placement *placement = make_recorded_placement();
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    eplb_status status = eplb_placement_write(placement, NULL, "-", eplb_format_find("vllm"), NULL);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    fclose(file);
    assert_int_equal(status, EPLB_OK);
    char *content = test_read_file(path.text, NULL);
    assert_string_equal(content, "[\n[0,1,2,3,0,4,5,6,0,7,3,5],\n[7,2,1,2,0,3,2,4,5,6,7,1],\n"
                                 "[0,4,1,5,2,4,3,6,4,7,0,4]\n]\n");
    free(content);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(IN_DIRECTORY(invalid_placements_are_refused), IN_DIRECTORY(dead_gpus_are_refused),
          IN_DIRECTORY(uneven_slots_are_refused),
          IN_DIRECTORY(draft_layers_that_cannot_be_marked_are_refused),
          cmocka_unit_test(trtllm_limits_are_kept),
          cmocka_unit_test(sglang_spreads_over_the_other_layers),
          IN_DIRECTORY(formats_of_counts_write_no_placement),
          IN_DIRECTORY(a_path_that_cannot_be_written_is_named),
          IN_DIRECTORY(a_dash_is_standard_output))
