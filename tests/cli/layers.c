/* SPDX-License-Identifier: MIT */
/* Which layers of the model the rows of loads and placements belong to. */
#include <eplb/format.h>

#include "run_json.h"

#define SHAPE " --gpus 2 --slots 4 --json"

static void write_text(const char *directory, const char *name, const char *text)
{
    test_write_text(test_join(directory, name).text, text);
}

/* Loads of 4 experts, which number their layers in different ways. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    write_text(*state, "model", "{\"logical_count\":[[0,0,0,0],[1,2,3,4],[0,0,0,0],[5,6,7,8]]}");
    write_text(*state, "indices", "step,layer,expert,tokens\n0,0,3,1\n0,1,3,2\n");
    write_text(*state, "ids", "step,layer,expert,tokens\n0,1,3,1\n0,3,3,2\n");
    write_text(*state, "zero_first", "step,layer,expert,tokens\n0,0,3,0\n0,1,3,2\n0,2,3,1\n");
    return 0;
}

/* The layers of a plan as text, such as "1 3"; those without tokens in parentheses. */
static void assert_layers(const char *directory, const char *line, const char *expected)
{
    char command[256];
    snprintf(command, sizeof(command), "plan --load %s" SHAPE, line);
    cJSON *plan = run_json(directory, command, 0);
    char text[128] = "";
    const cJSON *row;
    cJSON_ArrayForEach(row, json_member(plan, "per_layer"))
    {
        bool scored = cJSON_IsNumber(json_member(row, "imbalance_after"));
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s%d%s", used > 0 ? " " : "",
                 scored ? "" : "(", (int)json_number(row, "layer"), scored ? "" : ")");
    }
    assert_string_equal(text, expected);
    cJSON_Delete(plan);
}

static void assert_refused(const char *directory, const char *line, const char *message)
{
    char command[256];
    snprintf(command, sizeof(command), "plan --load %s" SHAPE, line);
    run_result result = run_line(directory, command);
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, message);
    run_release(&result);
}

static void files_of_all_model_layers_leave_out_those_without_tokens(void **state)
{
    assert_layers(*state, "model", "1 3");
}

static void list_replaces_the_choice_for_files_of_all_model_layers(void **state)
{
    assert_layers(*state, "model --dense-layers 0,2", "1 3");
    assert_layers(*state, "model --dense-layers 0", "1 (2) 3");
    assert_layers(*state, "model --dense-layers none", "(0) 1 (2) 3");
    assert_refused(*state, "model --dense-layers 0-1", "layer 1 cannot be dense: expert 0 has 1");
    assert_refused(*state, "model --dense-layers 0,4", "layer 4 is not one of the model's 4");
}

static void listed_layers_turn_moe_indices_into_model_layer_ids(void **state)
{
    assert_layers(*state, "indices", "0 1");
    assert_layers(*state, "indices --dense-layers 0", "1 2");
    assert_layers(*state, "indices --dense-layers 1", "0 2");
    assert_layers(*state, "indices --dense-layers 0-2", "3 4");
    assert_layers(*state, "indices --dense-layers 0,3", "1 2");
    assert_layers(*state, "indices --dense-layers none", "0 1");
    assert_refused(*state, "indices --dense-layers 0,4", "layer 4 is not one of 4 layers");
}

static void ids_without_the_listed_layers_are_model_layer_ids_already(void **state)
{
    assert_layers(*state, "ids --dense-layers 0,2", "1 3");
    assert_layers(*state, "indices --dense-layers 2", "0 1");
}

static void listed_layers_without_tokens_are_left_out(void **state)
{
    assert_layers(*state, "zero_first", "(0) 1 2");
    assert_layers(*state, "zero_first --dense-layers 0", "1 2");
}

static void contradicting_lists_are_refused(void **state)
{
    assert_refused(*state, "zero_first --dense-layers 0,1", "layer 1 has tokens");
    assert_refused(*state, "ids --dense-layers 0-1", "layer 1 has tokens");
}

/* Number of rows of an SGLang map. */
static int rows_of(const char *directory, const char *name)
{
    char *text = test_read_file(test_join(directory, name).text, NULL);
    cJSON *map = cJSON_Parse(text);
    int rows = cJSON_GetArraySize(json_member(map, "physical_to_logical_map"));
    cJSON_Delete(map);
    free(text);
    return rows;
}

static void map_of_all_model_layers_has_a_row_for_each(void **state)
{
    run_ok(*state, "plan --load model" SHAPE " --out map");
    assert_int_equal(rows_of(*state, "map"), 4);
    run_ok(*state, "plan --load indices --dense-layers 0,3" SHAPE " --out map");
    assert_int_equal(rows_of(*state, "map"), 4);
    run_result known =
        run_line(*state, "plan --load indices --experts 4 --dense-layers 0" SHAPE " --out map");
    assert_string_equal(known.err, "");
    assert_int_equal(rows_of(*state, "map"), 3);
    run_release(&known);
}

static void map_of_all_model_layers_warns_when_the_model_is_not_known(void **state)
{
    run_result result = run_line(*state, "plan --load indices" SHAPE " --out map");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.err, "eplb: warning: ");
    assert_contains(result.err, "--dense-layers");
    run_release(&result);
    result = run_line(*state, "plan --load indices --experts 4" SHAPE " --out map --to vllm");
    assert_string_equal(result.err, "");
    run_release(&result);
}

/* Layers 1 and 3 are rows 0 and 1 of a map of MoE layers only where 0 and 2 are dense. */
static void map_of_moe_layers_gives_none_the_number_of_a_missing_one(void **state)
{
    static const char *const refused[][2] = {
        {"ids --to vllm --out map", "no layer 2, and nothing says that it is dense"},
        {"ids --to ascend --out map --dense-layers 0", "no layer 2, and it is not dense"},
        {"ids --to sglang --out map", "no layer 2, and nothing says that it is dense"},
        {"ids --to sglang --out map --dense-layers 0", "no layer 2, and it is not dense"},
        {"ids --to omni --out map --dense-layers none", "no layer 0, and it is not dense"},
        {"ids --to fastdeploy --out map --dense-layers 0,2,5", "no layer 4, and it is not dense"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_refused(*state, refused[i][0], refused[i][1]);
        assert_false(has_file(*state, "map"));
    }
    run_ok(*state, "plan --load ids --dense-layers 0,2" SHAPE " --to vllm --out map");
    run_ok(*state, "plan --load model" SHAPE " --to vllm --out map");
    run_ok(*state, "plan --load ids" SHAPE " --to trtllm --out map");
}

static void placement_in_force_is_matched_by_model_layer_id(void **state)
{
    /* Only layers 1 and 3 count; the dense ones may hold anything. */
    write_text(*state, "map",
               "{\"physical_to_logical_map\":[[0,0,0,0],[0,1,2,3],[3,3,1,1],[3,2,1,0]]}");
    cJSON *plan = run_json(*state, "plan --load model --current map" SHAPE, 0);
    const cJSON *rows = json_member(plan, "per_layer");
    assert_close(json_number(cJSON_GetArrayItem(rows, 0), "imbalance_before"), 1.4, 1e-12);
    assert_close(json_number(cJSON_GetArrayItem(rows, 1), "imbalance_before"), 15.0 / 13.0, 1e-12);
    cJSON_Delete(plan);
    assert_refused(*state, "indices --current map", "--dense-layers");
    assert_refused(*state, "indices --dense-layers 0 --current map", "a model with 3");
    assert_layers(*state, "indices --dense-layers 0,2 --current map", "1 3");
    assert_layers(*state, "ids --current map", "1 3");
}

static void loads_by_moe_index_take_the_ids_of_the_placement_in_force(void **state)
{
    const eplb_format *trtllm = eplb_format_find("trtllm");
    if (trtllm == NULL || (eplb_format_flags(trtllm) & EPLB_FORMAT_READS_PLACEMENT) == 0) {
        skip();
    }
    write_text(*state, "map",
               "num_slots: 4\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n"
               "  1: [0, 1, 2, 3]\n  3: [3, 2, 1, 0]\n");
    assert_layers(*state, "indices --current map", "1 3");
    assert_layers(*state, "ids --current map", "1 3");
    assert_refused(*state, "zero_first --current map", "map: 2 layers, but the loads have 3");
    write_text(*state, "other", "step,layer,expert,tokens\n0,1,3,1\n0,2,3,2\n");
    assert_refused(*state, "other --current map", "map: layer 3 where the loads have layer 2");
}

#define IN_PREPARED_DIRECTORY(test)                                                                \
    cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(IN_PREPARED_DIRECTORY(files_of_all_model_layers_leave_out_those_without_tokens),
          IN_PREPARED_DIRECTORY(list_replaces_the_choice_for_files_of_all_model_layers),
          IN_PREPARED_DIRECTORY(listed_layers_turn_moe_indices_into_model_layer_ids),
          IN_PREPARED_DIRECTORY(ids_without_the_listed_layers_are_model_layer_ids_already),
          IN_PREPARED_DIRECTORY(listed_layers_without_tokens_are_left_out),
          IN_PREPARED_DIRECTORY(contradicting_lists_are_refused),
          IN_PREPARED_DIRECTORY(map_of_all_model_layers_has_a_row_for_each),
          IN_PREPARED_DIRECTORY(map_of_all_model_layers_warns_when_the_model_is_not_known),
          IN_PREPARED_DIRECTORY(map_of_moe_layers_gives_none_the_number_of_a_missing_one),
          IN_PREPARED_DIRECTORY(placement_in_force_is_matched_by_model_layer_id),
          IN_PREPARED_DIRECTORY(loads_by_moe_index_take_the_ids_of_the_placement_in_force))
