/* SPDX-License-Identifier: MIT */
/* The draft model's layers of vLLM-Ascend's maps: never lost, never taken for the model's. */
#include "run_json.h"

#define DEVICES(first, second)                                                                     \
    "\"device_count\":2,\"device_list\":[{\"device_id\":0,\"device_expert\":[" first               \
    "]},{\"device_id\":1,\"device_expert\":[" second "]}]}"
#define MAP(count)                                                                                 \
    "{\"moe_layer_count\":" count ",\"layer_list\":[\n"                                            \
    "{\"layer_id\":0," DEVICES("0,1", "2,0") ",\n"                                                 \
                                             "{\"layer_id\":1," DEVICES(                           \
                                                 "0,1", "2,1") ",\n"                               \
                                                               "{\"layer_id\":2," DEVICES(         \
                                                                   "2,1", "0,2") "\n]}\n"

/* Three experts on two GPUs of two slots, in three layers. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    test_write_text(test_join(*state, "plain").text, MAP("3"));
    test_write_text(test_join(*state, "draft").text, MAP("2"));
    test_write_text(test_join(*state, "vllm").text, "[\n[0,1,2,0],\n[0,1,2,1],\n[2,1,0,2]\n]\n");
    test_write_text(test_join(*state, "log").text, "{\"step\":0,\"layer\":0,\"counts\":[9,1,2]}\n"
                                                   "{\"step\":0,\"layer\":1,\"counts\":[1,2,9]}\n"
                                                   "{\"step\":0,\"layer\":2,\"counts\":[1,9,2]}\n");
    test_write_text(test_join(*state, "short_log").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[9,1,2]}\n"
                    "{\"step\":0,\"layer\":1,\"counts\":[1,2,9]}\n");
    test_write_text(test_join(*state, "sglang_log").text,
                    "{\"logical_count\":[[9,1,2],[1,2,9],[0,0,0]]}");
    test_write_text(test_join(*state, "config.json").text,
                    "{\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":3,"
                    "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"n_routed_experts\":3,"
                    "\"num_experts_per_tok\":1,\"n_group\":1,\"hidden_size\":8,"
                    "\"moe_intermediate_size\":8,\"torch_dtype\":\"bfloat16\"}");
    return 0;
}

static void assert_file(const char *directory, const char *name, const char *expected)
{
    char *text = test_read_file(test_join(directory, name).text, NULL);
    assert_string_equal(text, expected);
    free(text);
}

/* The number of draft layers that the file has now. */
static void assert_draft_layers(const char *directory, const char *name, int layers, int draft)
{
    char line[80];
    snprintf(line, sizeof(line), "validate %s --json", name);
    cJSON *report = run_json(directory, line, 0);
    assert_true(json_number(report, "layers") == layers);
    assert_true(json_number(report, "draft_layers") == draft);
    cJSON_Delete(report);
}

static void assert_refused(const char *directory, const run_refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(run_is_refused(directory, &cases[i]));
    }
}
#define ASSERT_REFUSED(cases) assert_refused(*state, cases, sizeof(cases) / sizeof((cases)[0]))

static void assert_output(const char *directory, const char *line, const char *expected)
{
    run_result result = run_line(directory, line);
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, expected);
    run_release(&result);
}

static void validate_shows_them(void **state)
{
    assert_output(*state, "validate draft",
                  "valid: 3 layers (1 of the draft model) of 3 experts on 2 GPUs x 2 slots\n");
    assert_output(*state, "validate plain", "valid: 3 layers of 3 experts on 2 GPUs x 2 slots\n");
    assert_draft_layers(*state, "draft", 3, 1);
    assert_draft_layers(*state, "plain", 3, 0);
    assert_output(*state, "validate draft --engine ascend --model config.json",
                  "valid for vLLM-Ascend: 3 layers (1 of the draft model)");
    run_result result = run_line(*state, "validate plain --engine ascend --model config.json");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.out, "3 layers, expected 2\n");
    run_release(&result);
}

static void convert_keeps_leaves_out_or_renames_them(void **state)
{
    run_ok(*state, "convert draft --to ascend --out again");
    assert_true(same_files(*state, "draft", "again"));
    run_ok(*state, "convert draft --to vllm --draft-layers 0 --out all");
    assert_true(same_files(*state, "vllm", "all"));
    run_ok(*state, "convert vllm --gpus 2 --to ascend --draft-layers 1 --out back");
    assert_true(same_files(*state, "draft", "back"));
    run_ok(*state, "convert draft --to vllm --without-draft-layers --out own");
    assert_file(*state, "own", "[\n[0,1,2,0],\n[0,1,2,1]\n]\n");
    run_ok(*state, "convert vllm --gpus 2 --to vllm --draft-layers 2 --without-draft-layers --out "
                   "first");
    assert_file(*state, "first", "[\n[0,1,2,0]\n]\n");
    assert_output(*state, "convert draft --to ascend --out again",
                  "Placement, ascend to ascend: 3 layers (1 of the draft model) of 3 experts");
    assert_output(*state, "convert draft --to ascend --out again --json", "\"draft_layers\":\t1,");
}

/* Layer 0 of the model is dense; the draft model's is 3, behind its last one. */
static void their_numbers_go_on_behind_the_models(void **state)
{
    run_ok(*state,
           "convert draft --to sglang --model config.json --without-draft-layers --out own");
    assert_file(*state, "own",
                "{\"physical_to_logical_map\":[\n[0,1,2,0],\n[0,1,2,0],\n[0,1,2,1]\n]}\n");
    run_ok(*state, "convert draft --to trtllm --dense-layers 0 --draft-layers 0 --out all.yaml");
    assert_file(*state, "all.yaml",
                "num_slots: 4\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n"
                "  1: [0, 1, 2, 0]\n  2: [0, 1, 2, 1]\n  3: [2, 1, 0, 2]\n");
    run_ok(*state, "convert draft --to sglang --dense-layers 0 --draft-layers 0 --out all");
    run_ok(*state, "convert all --gpus 2 --to ascend --model config.json --draft-layers 1 --out "
                   "back");
    assert_true(same_files(*state, "draft", "back"));
    static const run_refusal cases[] = {
        {"convert all --gpus 2 --to ascend --dense-layers 0,3 --draft-layers 1 --out out", 1,
         "all: layer 2 is the last one with experts of layers 0 to 3, so it is not the draft "
         "model's"},
        {"convert all --gpus 2 --to ascend --model config.json --draft-layers 2 --out out", 1,
         "all: of a model with 2 layers, but --model says 3"},
        {"convert all --gpus 2 --to ascend --model config.json --out out", 1,
         "all: of a model with 4 layers, but --model says 3"},
    };
    ASSERT_REFUSED(cases);
}

#define WAYS                                                                                       \
    "; --without-draft-layers leaves them out, --draft-layers 0 makes layers of the model of "     \
    "them\n"

static void convert_refuses_what_would_lose_them(void **state)
{
    static const run_refusal cases[] = {
        {"convert draft --to vllm --out out", 1,
         "vllm cannot carry layers of the draft model (1, the last of 3): it cannot say which they "
         "are; ascend can" WAYS},
        {"convert draft --to sglang --dense-layers none --out out", 1,
         "sglang cannot carry layers of the draft model"},
        {"convert draft --to ascend --draft-layers 2 --out out", 1,
         "ascend cannot carry layers of the draft model (2, the last of 3): at most 1" WAYS},
        {"convert draft --to ascend --draft-layers 3 --out out", 1,
         "draft: 3 layers, of which 3 would be the draft model's: at least one is the model's"},
        {"convert draft --to ascend --draft-layers -1 --out out", 2, "--draft-layers"},
        {"convert draft --to vllm --draft-layers 0 --without-draft-layers --out out", 2,
         "--without-draft-layers leaves out what --draft-layers 0 keeps"},
        {"convert log --to csv --draft-layers 1 --out out", 2, "--draft-layers and "},
        {"convert log --what counts --without-draft-layers --out out", 2,
         "--without-draft-layers is for placements"},
    };
    ASSERT_REFUSED(cases);
}

#define TO_OUT " --to ascend --out out"
#define PLAN "plan --load log --gpus 2 --slots 4" TO_OUT
#define WIDER "plan --load log --gpus 2 --slots 6" TO_OUT

static void plan_keeps_those_of_the_current_placement(void **state)
{
    static const char *const lines[] = {
        PLAN " --current draft",
        PLAN " --current draft --draft-layers 1",
        PLAN " --current draft --target-imbalance 1.1",
        PLAN " --current draft --algorithm eplb --repair",
        PLAN " --current draft --layer-budget adaptive",
        PLAN " --current draft --model config.json",
        PLAN " --current vllm --draft-layers 1",
        PLAN " --draft-layers 1",
        PLAN " --draft-layers 1 --model config.json",
        PLAN " --draft-layers 1 --dense-layers 0",
        WIDER " --draft-layers 1 --algorithm weighted",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_ok(*state, lines[i]);
        assert_draft_layers(*state, "out", 3, 1);
        assert_int_equal(unlink(test_join(*state, "out").text), 0);
    }
    run_ok(*state, PLAN " --current plain");
    assert_draft_layers(*state, "out", 3, 0);
    assert_output(*state, PLAN " --current draft",
                  "3 layers (1 of the draft model) of 3 experts on");
    assert_output(*state, PLAN " --current draft --json", "\"draft_layers\":\t1,");
}

/* What lies in a pipe cannot be looked at before. */
static void plan_refuses_contradictions(void **state)
{
    static const run_refusal cases[] = {
        {PLAN " --current draft --draft-layers 0", 2, "--draft-layers 0, but draft has 1"},
        {PLAN " --current draft --draft-layers 2", 2, "--draft-layers 2, but draft has 1"},
        {PLAN " --current plain --draft-layers 1", 2, "--draft-layers 1, but plain has 0"},
        {"plan --load log --gpus 2 --slots 4 --draft-layers 3", 1,
         "the loads: 3 layers, of which 3 would be the draft model's"},
        {PLAN " --draft-layers 2", 2,
         "ascend can mark at most 1 layers as the draft model's, but --draft-layers says 2"},
        {"plan --load sglang_log --gpus 2 --slots 4 --to ascend --out out --draft-layers 1", 1,
         "the loads: layer 1 is the last one with experts of layers 0 to 2, so it is not the draft "
         "model's"},
        {PLAN " --model config.json", 1, "the loads have a layer 3, but config.json has 3"},
        {"plan --load log --gpus 2 --slots 4 --draft-layers 2 --model config.json", 1,
         "the loads have 3 layers (2 of the draft model), but config.json has 2 with experts"},
        {"plan --load short_log --gpus 2 --slots 4 --to ascend --out out --current draft", 1,
         "draft: 3 layers (1 of the draft model), but the loads have 2; eplb convert "
         "--without-draft-layers leaves them out"},
        {"plan --load log --gpus 2 --slots 4 --out out --current draft", 2,
         "sglang can mark at most 0 layers as the draft model's, but draft says 1"},
    };
    ASSERT_REFUSED(cases);
}

static void diff_compares_them(void **state)
{
    static const run_refusal cases[] = {
        {"diff plain draft", 1,
         "draft: 1 of its 3 layers are the draft model's, but 0 of 3 in plain"},
        {"diff draft plain", 1,
         "plain: 0 of its 3 layers are the draft model's, but 1 of 3 in draft"},
        {"diff plain draft --load log", 1,
         "draft: 1 of its 3 layers are the draft model's, but 0 of 3 in plain"},
    };
    ASSERT_REFUSED(cases);
    static const char *const alike[] = {
        "diff draft draft",
        "diff vllm draft --gpus 2",
        "diff draft vllm --gpus 2",
        "diff draft vllm --gpus 2 --load log",
        "diff draft draft --load log --model config.json",
        "diff draft vllm --gpus 2 --load log --model config.json",
        "diff vllm draft --gpus 2 --load log --model config.json",
    };
    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
        assert_output(*state, alike[i], "3 layers (1 of the draft model) of 3 experts on 2 GPUs");
        assert_output(*state, alike[i], "No difference.\n");
    }
    assert_output(*state, "diff plain vllm --gpus 2", "3 layers of 3 experts on 2 GPUs");
    assert_output(*state, "diff draft vllm --gpus 2 --json", "\"draft_layers\":\t1,");
}

static void report_judges_a_placement_with_them(void **state)
{
    run_ok(*state, "report --load log --current draft --model config.json");
    static const run_refusal cases[] = {
        {"report --load log --current plain --model config.json", 1,
         "the loads have a layer 3, but config.json has 3"},
    };
    ASSERT_REFUSED(cases);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, test_directory_teardown)

TEST_MAIN(TEST(validate_shows_them), TEST(convert_keeps_leaves_out_or_renames_them),
          TEST(their_numbers_go_on_behind_the_models), TEST(convert_refuses_what_would_lose_them),
          TEST(plan_keeps_those_of_the_current_placement), TEST(plan_refuses_contradictions),
          TEST(diff_compares_them), TEST(report_judges_a_placement_with_them))
