/* SPDX-License-Identifier: MIT */
/* The bytes of each writer: a change of one of them is a change of what engines load. */
#include <eplb/format.h>

#include "support.h"

/* Two MoE layers, 1 and 3 of a model of 5, four experts on three GPUs with two slots each. */
static eplb_placement *small_placement(void)
{
    static const int32_t ids[2] = {1, 3};
    static const int32_t rows[2][6] = {{0, 3, 2, 1, 3, 0}, {3, 2, 1, 0, 2, 1}};
    eplb_cluster *cluster;
    eplb_placement *placement;
    eplb_error error;
    assert_ok(eplb_cluster_create(&cluster, NULL, 3, 2, 0, &error), &error);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 2, 4, &error), &error);
    eplb_cluster_destroy(&cluster);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 5, &error), &error);
    for (int l = 0; l < 2; l++) {
        assert_ok(eplb_placement_set_row(placement, l, rows[l], &error), &error);
    }
    return placement;
}

static void assert_written(eplb_placement *placement, const char *directory, const char *format,
                           const char *file)
{
    test_path golden = test_data(file);
    test_path path = test_join(directory, "out");
    eplb_error error;
    assert_ok(eplb_placement_write(placement, NULL, path.text, eplb_format_find(format), &error),
              &error);
    size_t expected_size;
    size_t size;
    char *expected = test_read_file(golden.text, &expected_size);
    char *written = test_read_file(path.text, &size);
    assert_int_equal(size, expected_size);
    assert_memory_equal(written, expected, size);
    free(expected);
    free(written);
    eplb_placement_destroy(&placement);
}

static void assert_golden(const char *directory, const char *format, const char *file)
{
    assert_written(small_placement(), directory, format, file);
}

static void sglang_bytes_are_as_before(void **state)
{
    assert_golden(*state, "sglang", "../golden/placement.sglang.json");
}

static void trtllm_bytes_are_as_before(void **state)
{
    assert_golden(*state, "trtllm", "../golden/placement.trtllm.yaml");
}

static void ascend_bytes_are_as_before(void **state)
{
    assert_golden(*state, "ascend", "../golden/placement.ascend.json");
}

static void ascend_bytes_with_a_draft_layer_are_as_before(void **state)
{
    eplb_placement *placement = small_placement();
    assert_ok(eplb_placement_set_draft_layers(placement, 1, NULL), NULL);
    assert_written(placement, *state, "ascend", "../golden/placement.ascend_draft.json");
}

static void vllm_bytes_are_as_before(void **state)
{
    assert_golden(*state, "vllm", "../golden/placement.vllm.json");
}

static void vllm_mapping_bytes_are_as_before(void **state)
{
    assert_golden(*state, "vllm_mapping", "../golden/placement.vllm_mapping.jsonl");
}

static void fastdeploy_bytes_are_as_before(void **state)
{
    assert_golden(*state, "fastdeploy", "../golden/placement.fastdeploy.json");
}

static void omni_bytes_are_as_before(void **state)
{
    assert_golden(*state, "omni", "../golden/placement.omni.npy");
}

TEST_MAIN(IN_DIRECTORY(sglang_bytes_are_as_before), IN_DIRECTORY(trtllm_bytes_are_as_before),
          IN_DIRECTORY(ascend_bytes_are_as_before),
          IN_DIRECTORY(ascend_bytes_with_a_draft_layer_are_as_before),
          IN_DIRECTORY(vllm_bytes_are_as_before), IN_DIRECTORY(vllm_mapping_bytes_are_as_before),
          IN_DIRECTORY(fastdeploy_bytes_are_as_before), IN_DIRECTORY(omni_bytes_are_as_before))
