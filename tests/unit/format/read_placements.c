/* SPDX-License-Identifier: MIT */
#include "maps.h"

/* Formats that are read and written; trtllm is read with libyaml. */
static const char *const map_formats[] = {"sglang", "ascend", "vllm", "vllm_mapping", "fastdeploy",
#ifdef HAVE_YAML
                                          "trtllm"
#endif
};
enum { MAP_FORMATS = sizeof(map_formats) / sizeof(map_formats[0]) };

static eplb_placement *read_map(const char *path, const char *format)
{
    eplb_error error;
    eplb_placement *placement;
    const eplb_format *found = NULL;
    eplb_read_options options = options_for("");
    options.gpus = GPUS;
    assert_ok(eplb_placement_read(&placement, NULL, path, &options, &found, &error), &error);
    assert_string_equal(eplb_format_name(found), format);
    return placement;
}

/* The recorded map, in the layers from `first` on. */
static void assert_recorded(const eplb_placement *placement, int32_t first)
{
    assert_int_equal(eplb_placement_layers(placement), LAYERS + first);
    assert_int_equal(eplb_placement_experts(placement), EXPERTS);
    assert_int_equal(eplb_placement_slots(placement), SLOTS);
    assert_int_equal(eplb_cluster_gpus(eplb_placement_cluster(placement)), GPUS);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_placement_row(placement, l + first), recorded_map[l],
                            sizeof(recorded_map[l]));
    }
}

static void sglang_rows_are_all_layers_of_the_model(void **state)
{
    (void)state;
    test_path path = test_data("format/sglang_placement.json");
    eplb_placement *placement = read_map(path.text, "sglang");
    assert_recorded(placement, 1);
    assert_int_equal(eplb_placement_model_layers(placement), LAYERS + 1);
    assert_int_equal(eplb_placement_layer_ids(placement)[3], 3);
    eplb_placement_destroy(&placement);
}

static void ascend_says_its_gpus(void **state)
{
    (void)state;
    test_path path = test_data("format/ascend_expert_map.json");
    eplb_placement *placement;
    eplb_error error;
    assert_ok(eplb_placement_read(&placement, NULL, path.text, NULL, NULL, &error), &error);
    assert_recorded(placement, 0);
    assert_int_equal(eplb_placement_model_layers(placement), 0);
    assert_int_equal(eplb_placement_draft_layers(placement), 0);
    eplb_placement_destroy(&placement);
}

/* The layer behind those of moe_layer_count is the draft model's, and comes out as it went in. */
static void ascend_has_a_draft_layer(void **state)
{
    test_path path = test_join(*state, "map");
    test_path again = test_join(*state, "again");
    eplb_placement *start = make_placement(recorded_map, 0);
    eplb_placement *placement;
    eplb_error error;
    assert_ok(eplb_placement_set_draft_layers(start, 1, &error), &error);
    assert_ok(eplb_placement_write(start, NULL, path.text, eplb_format_find("ascend"), &error),
              &error);
    eplb_placement_destroy(&start);
    assert_ok(eplb_placement_read(&placement, NULL, path.text, NULL, NULL, &error), &error);
    assert_recorded(placement, 0);
    assert_int_equal(eplb_placement_draft_layers(placement), 1);
    assert_int_equal(eplb_placement_layer_ids(placement)[LAYERS - 1], LAYERS - 1);
    assert_ok(eplb_placement_write(placement, NULL, again.text, eplb_format_find("ascend"), &error),
              &error);
    char *first = test_read_file(path.text, NULL);
    char *second = test_read_file(again.text, NULL);
    assert_contains(first, "{\"moe_layer_count\":2,");
    assert_string_equal(first, second);
    free(first);
    free(second);
    eplb_placement_destroy(&placement);
}

static void trtllm_keys_are_model_layer_ids(void **state)
{
    (void)state;
#ifdef HAVE_YAML
    test_path path = test_data("format/trtllm_placement.yaml");
    eplb_placement *placement = read_map(path.text, "trtllm");
    assert_recorded(placement, 0);
    assert_memory_equal(eplb_placement_layer_ids(placement), recorded_layer_ids,
                        sizeof(recorded_layer_ids));
    assert_int_equal(eplb_placement_model_layers(placement), 0);
    eplb_placement_destroy(&placement);
#endif
}

static void vllm_mapping_keys_are_indices_of_moe_layers(void **state)
{
    (void)state;
    test_path path = test_data("format/vllm_initial_mapping.jsonl");
    eplb_placement *placement = read_map(path.text, "vllm_mapping");
    assert_recorded(placement, 0);
    assert_int_equal(eplb_placement_layer_ids(placement)[2], 2);
    assert_int_equal(eplb_placement_model_layers(placement), 0);
    eplb_placement_destroy(&placement);
}

static void fastdeploy_has_the_map(void **state)
{
    (void)state;
    test_path path = test_data("format/fastdeploy_rearrange.json");
    eplb_placement *placement = read_map(path.text, "fastdeploy");
    assert_recorded(placement, 0);
    eplb_placement_destroy(&placement);
}

/* The rows of the last map of vllm_stats_map_changes.jsonl. */
static const int32_t changed_map[LAYERS][SLOTS] = {{4, 1, 2, 3, 0, 0, 5, 6, 0, 7, 3, 5},
                                                   {3, 2, 1, 2, 0, 7, 2, 4, 5, 6, 7, 1},
                                                   {4, 4, 1, 5, 2, 0, 3, 6, 4, 7, 0, 4}};

/* What runs now is the last map, and the file says on how many ranks. */
static void the_last_map_of_a_recording_is_the_placement(void **state)
{
    (void)state;
    static const char *const names[] = {"format/vllm_stats_map_changes.jsonl",
                                        "format/vllm_stats.jsonl", "format/vllm_dump.json"};
    for (int i = 0; i < 3; i++) {
        test_path path = test_data(names[i]);
        eplb_placement *placement;
        eplb_error error;
        assert_ok(eplb_placement_read(&placement, NULL, path.text, NULL, NULL, &error), &error);
        assert_int_equal(eplb_cluster_gpus(eplb_placement_cluster(placement)), GPUS);
        assert_int_equal(eplb_placement_experts(placement), EXPERTS);
        for (int32_t l = 0; l < LAYERS; l++) {
            assert_memory_equal(eplb_placement_row(placement, l),
                                i == 0 ? changed_map[l] : recorded_map[l], sizeof(changed_map[l]));
        }
        eplb_placement_destroy(&placement);
    }
}

/* Writes a placement as a format and reads it again. */
static eplb_placement *pass_through(const eplb_placement *placement, const char *directory,
                                    const char *format)
{
    eplb_error error;
    test_path path = test_join(directory, format);
    assert_ok(eplb_placement_write(placement, NULL, path.text, eplb_format_find(format), &error),
              &error);
    return read_map(path.text, format);
}

static void a_map_survives_every_pair_of_formats(void **state)
{
    eplb_placement *start = make_recorded_placement();
    for (int first = 0; first < MAP_FORMATS; first++) {
        for (int second = 0; second < MAP_FORMATS; second++) {
            eplb_placement *once = pass_through(start, *state, map_formats[first]);
            eplb_placement *twice = pass_through(once, *state, map_formats[second]);
            assert_recorded(once, first == 0 ? 1 : 0);
            assert_recorded(twice, eplb_placement_layers(twice) - LAYERS);
            eplb_placement_destroy(&once);
            eplb_placement_destroy(&twice);
        }
    }
    eplb_placement_destroy(&start);
}

static eplb_placement *read_text(const char *directory, const char *text, int32_t experts,
                                 int32_t gpus)
{
    test_path path = test_join(directory, "map");
    eplb_read_options options = options_for("");
    options.experts = experts;
    options.gpus = gpus;
    options.gpus_per_node = 1;
    eplb_error error;
    eplb_placement *placement;
    test_write_text(path.text, text);
    assert_ok(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error), &error);
    return placement;
}

static void broken_maps_of_sound_shape_are_read(void **state)
{
    eplb_placement *placement =
        read_text(*state, "\xEF\xBB\xBF[[0, 0, -1, 3],\r\n[3,2,1,0]]\r\n", 5, 2);
    eplb_error error;
    assert_int_equal(eplb_placement_experts(placement), 5);
    assert_int_equal(eplb_placement_row(placement, 0)[2], -1);
    assert_int_equal(eplb_cluster_nodes(eplb_placement_cluster(placement)), 2);
    assert_status(eplb_placement_validate(placement, 0, &error), EPLB_ERROR_DATA, &error);
    eplb_placement_destroy(&placement);
}

static void one_list_is_one_layer(void **state)
{
    eplb_placement *placement = read_text(*state, "[2, 1, 0, 2]", 0, 2);
    assert_int_equal(eplb_placement_layers(placement), 1);
    assert_int_equal(eplb_placement_experts(placement), 3);
    assert_int_equal(eplb_placement_row(placement, 0)[0], 2);
    eplb_placement_destroy(&placement);
}

static void layers_of_a_mapping_may_be_in_any_order(void **state)
{
    eplb_placement *placement =
        read_text(*state,
                  "{\"initial_global_assignments\":{\"1\":[1,0,1],\"0\":[0,1,-1]},\"num_slots\":3,"
                  "\"num_redundant_experts\":1,\"version\":1,\"record_type\":\"eplb_initial_"
                  "mapping\",\"x\":1}\n",
                  2, 3);
    assert_int_equal(eplb_placement_layers(placement), 2);
    assert_int_equal(eplb_placement_experts(placement), 2);
    assert_int_equal(eplb_placement_row(placement, 0)[0], 0);
    assert_int_equal(eplb_placement_row(placement, 0)[2], -1);
    assert_int_equal(eplb_placement_row(placement, 1)[0], 1);
    eplb_placement_destroy(&placement);
}

/* The engine's own order of an expert's slots need not be the ascending one. */
static void slots_of_an_expert_may_be_in_any_order(void **state)
{
    eplb_placement *placement = read_text(
        *state,
        "{\"ep_rank_to_expert_id_list\":[[0,1,-1,0]],\"expert_in_rank_num_list\":[[2,1,0]],"
        "\"expert_id_to_ep_rank_array\":[[[3,0],[1,-1],[-1,-1]]]}",
        0, 2);
    assert_int_equal(eplb_placement_experts(placement), 3);
    assert_int_equal(eplb_placement_row(placement, 0)[2], -1);
    eplb_placement_destroy(&placement);
}

static void yaml_may_be_in_other_styles_and_orders(void **state)
{
#ifdef HAVE_YAML
    eplb_placement *placement = read_text(*state,
                                          "# by hand\ninitial_global_assignments:\n  7:\n  - 1\n  "
                                          "- 0\n  3: [0,\n    1]\n'num_slots': 2\n",
                                          0, 2);
    assert_int_equal(eplb_placement_layers(placement), 2);
    assert_int_equal(eplb_placement_layer_ids(placement)[0], 3);
    assert_int_equal(eplb_placement_layer_ids(placement)[1], 7);
    assert_int_equal(eplb_placement_row(placement, 0)[0], 0);
    assert_int_equal(eplb_placement_row(placement, 1)[0], 1);
    eplb_placement_destroy(&placement);
#else
    (void)state;
#endif
}

static void nothing_to_read_is_an_argument_error(void **state)
{
    (void)state;
    eplb_error error;
    eplb_placement *placement;
    assert_status(eplb_placement_read(&placement, NULL, "", NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_read(NULL, NULL, "f", NULL, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
}

TEST_MAIN(cmocka_unit_test(sglang_rows_are_all_layers_of_the_model),
          cmocka_unit_test(ascend_says_its_gpus), IN_DIRECTORY(ascend_has_a_draft_layer),
          cmocka_unit_test(trtllm_keys_are_model_layer_ids),
          cmocka_unit_test(vllm_mapping_keys_are_indices_of_moe_layers),
          cmocka_unit_test(fastdeploy_has_the_map),
          cmocka_unit_test(the_last_map_of_a_recording_is_the_placement),
          IN_DIRECTORY(a_map_survives_every_pair_of_formats),
          IN_DIRECTORY(broken_maps_of_sound_shape_are_read), IN_DIRECTORY(one_list_is_one_layer),
          IN_DIRECTORY(layers_of_a_mapping_may_be_in_any_order),
          IN_DIRECTORY(slots_of_an_expert_may_be_in_any_order),
          IN_DIRECTORY(yaml_may_be_in_other_styles_and_orders),
          cmocka_unit_test(nothing_to_read_is_an_argument_error))
