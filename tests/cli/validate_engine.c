/* SPDX-License-Identifier: MIT */
/* validate --engine, --model and --explain: a broken map for each kind and engine. */
#include <eplb/engine.h>

#include "run_json.h"

#define UNCHECKED "eplb: the number of layers is not checked (--model config.json checks it)\n"
#define SGLANG(rows) "{\"physical_to_logical_map\":[" rows "]}"
#define ASCEND(devices)                                                                            \
    "{\"moe_layer_count\":1,\"layer_list\":[{\"layer_id\":0,\"device_count\":2,"                   \
    "\"device_list\":[" devices "]}]}"
#define DEVICE(id, experts) "{\"device_id\":" id ",\"device_expert\":[" experts "]}"
#define TRTLLM(slots, layers)                                                                      \
    "num_slots: " slots "\ninitial_global_assignments:\n" layers "layer_updates_per_iter: 0\n"

/* What a run of `validate map` must say. */
typedef struct expectation {
    const char *map;
    const char *arguments;
    int exit_code;
    const char *out;
    const char *err;
} expectation;

static void write_map(const char *directory, const char *text)
{
    test_write_text(test_join(directory, "map").text, text);
}

static void write_config(const char *directory, const char *text)
{
    test_write_text(test_join(directory, "config.json").text, text);
}

static bool reads_yaml(void)
{
    uint32_t flags = eplb_format_flags(eplb_format_find("trtllm"));
    return (flags & EPLB_FORMAT_READS_PLACEMENT) != 0;
}

static void assert_said(const char *directory, const expectation *row)
{
    char line[512];
    snprintf(line, sizeof(line), "validate map %s", row->arguments);
    write_map(directory, row->map);
    run_result result = run_line(directory, line);
    if (result.exit_code != row->exit_code) {
        print_error("eplb %s: exit code %d\n%s%s", line, result.exit_code, result.out, result.err);
    }
    assert_int_equal(result.exit_code, row->exit_code);
    assert_string_equal(result.out, row->out);
    assert_string_equal(result.err, row->err);
    run_release(&result);
}

static void valid_files_name_the_engine(void **state)
{
    static const expectation rows[] = {
        {SGLANG("[0,1,2,0]"), "--gpus 2 --engine sglang", 0,
         "valid for SGLang: 1 layer of 3 experts on 2 GPUs x 2 slots\n", UNCHECKED},
        {"[0,1,2,0]", "--gpus 2 --engine vllm", 0,
         "valid for vLLM: 1 layer of 3 experts on 2 GPUs x 2 slots\n", UNCHECKED},
        {"[0,1,2,-1]", "--gpus 2 --engine vllm", 0,
         "valid for vLLM: 1 layer of 3 experts on 2 GPUs x 2 slots\n", UNCHECKED},
        {ASCEND(DEVICE("0", "0,1") "," DEVICE("1", "2,0")), "--engine ascend", 0,
         "valid for vLLM-Ascend: 1 layer of 3 experts on 2 GPUs x 2 slots\n", UNCHECKED},
        {"2 1 3\n1 1 0\n0 0 1\n", "--engine omni", 0,
         "valid for omni-infer: 1 layer of 3 experts on 2 GPUs x 1 to 2 slots\n", UNCHECKED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void violations_are_explained_for_each_engine(void **state)
{
    static const expectation rows[] = {
        {SGLANG("[0,1,2,-1]"), "--gpus 2 --experts 4 --engine sglang --explain", 1,
         "layer 0: slot 3 of GPU 1 is empty\n"
         "layer 0: expert 3 has no replica\n"
         "empty_slot: SGLang silently takes -1 for the last expert: the slot becomes a replica of "
         "that one.\n"
         "missing_expert: SGLang fails with a ZeroDivisionError.\n"
         "INVALID for SGLang: 2 violations\n",
         UNCHECKED},
        {SGLANG("[0,1,2,2]"), "--gpus 2 --engine sglang --explain", 1,
         "layer 0: expert 2 twice on GPU 1 (slot 3)\n"
         "duplicate: SGLang sends a GPU's own tokens to the first copy there, and those of other "
         "GPUs to\n"
         "  either: all end on the one GPU, and the slot is lost for balance. The classical "
         "algorithm makes\n"
         "  such maps (deepseek-ai/EPLB#22).\n"
         "INVALID for SGLang: 1 violation\n",
         UNCHECKED},
        {"[0,1,2,2]", "--gpus 2 --experts 4 --engine vllm --explain", 1,
         "layer 0: expert 2 twice on GPU 1 (slot 3)\n"
         "layer 0: expert 3 has no replica\n"
         "duplicate: vLLM wastes the slot, and weights have been wrong after a rebalance from such "
         "a map\n"
         "  (vllm-project/vllm#18343).\n"
         "missing_expert: vLLM loads maps by an open change only, which refuses one without every "
         "expert\n"
         "  (vllm-project/vllm#49572).\n"
         "INVALID for vLLM: 2 violations\n",
         UNCHECKED},
        {ASCEND(DEVICE("0", "0,1") "," DEVICE("1", "2,2")), "--experts 4 --engine ascend --explain",
         1,
         "layer 0: expert 2 twice on GPU 1 (slot 3)\n"
         "layer 0: expert 3 has no replica\n"
         "duplicate: vLLM-Ascend misroutes tokens silently: redundant experts must be on different "
         "devices\n"
         "  (vllm-project/vllm-ascend#1116).\n"
         "missing_expert: What vLLM-Ascend does with it is not documented.\n"
         "INVALID for vLLM-Ascend: 2 violations\n",
         UNCHECKED},
        {"2 1 3\n1 1 0\n0 1 0\n", "--engine omni --explain", 1,
         "layer 0: expert 2 has no replica\n"
         "missing_expert: What omni-infer does with it is not documented.\n"
         "INVALID for omni-infer: 1 violation\n",
         UNCHECKED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void violations_of_trtllm_are_explained(void **state)
{
    static const expectation rows[] = {
        {TRTLLM("4", "  1: [0, 1, 2, 2]\n"), "--gpus 2 --experts 4 --engine trtllm --explain", 1,
         "layer 1: expert 2 twice on GPU 1 (slot 3)\n"
         "layer 1: expert 3 has no replica\n"
         "duplicate: TensorRT-LLM's checks at start do not look for it. An expert's replicas take "
         "its tokens\n"
         "  in turn, so the GPU gets the tokens of both copies and the second one relieves "
         "nobody.\n"
         "missing_expert: TensorRT-LLM refuses the file at start: every expert must be in the list "
         "of each\n"
         "  layer.\n"
         "INVALID for TensorRT-LLM: 2 violations\n",
         UNCHECKED},
        {TRTLLM("2", "  1: [0, 1]\n  3: [0, 1]\n"),
         "--gpus 2 --engine trtllm --model config.json --explain", 1,
         "layer 2: no row for this MoE layer\n"
         "missing_layer: TensorRT-LLM refuses the file at start: every MoE layer must be present.\n"
         "INVALID for TensorRT-LLM: 1 violation\n",
         ""},
        {TRTLLM("2", "  0: [0, 1]\n  1: [0, 1]\n  2: [0, 1]\n  3: [0, 1]\n"),
         "--gpus 2 --engine trtllm --model config.json --explain", 1,
         "layer 0: a row, but the model has no experts there\n"
         "other_layer: What TensorRT-LLM does with it is not documented.\n"
         "INVALID for TensorRT-LLM: 1 violation\n",
         ""},
    };
    if (!reads_yaml()) {
        skip();
    }
    write_config(*state, "{\"n_routed_experts\":2,\"num_hidden_layers\":4,"
                         "\"first_k_dense_replace\":1}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void files_of_another_form_are_refused_and_explained(void **state)
{
    static const expectation rows[] = {
        {"{\"physical_to_logical_map\":[[0,1]],\"extra\":1}", "--gpus 2 --engine sglang --explain",
         1, "",
         "eplb: map: key 'extra' beside 'physical_to_logical_map', which must be the only one\n"
         "eplb: SGLang takes the file's keys for arguments: any beside physical_to_logical_map is "
         "a TypeError at start. A wrong number of slots it accepts silently.\n"},
        {SGLANG("[0,1,2]"), "--gpus 2 --from sglang --explain", 1, "",
         "eplb: map: 3 slots cannot be spread evenly over 2 GPUs\n"
         "eplb: SGLang takes the file's keys for arguments: any beside physical_to_logical_map is "
         "a TypeError at start. A wrong number of slots it accepts silently.\n"},
        {ASCEND(DEVICE("1", "0,1") "," DEVICE("0", "2,3")), "--engine ascend --explain", 1, "",
         "eplb: map: layer 0: device 0: device_id 1, expected 0\n"
         "eplb: vLLM-Ascend ignores the ids of layers and devices and goes by the order of the "
         "lists: a file that is not sorted or not complete is silently taken for another map.\n"},
        {"[[0,1],[0]]", "--gpus 2 --engine vllm --explain", 1, "",
         "eplb: map: layer 1: 1 slots, expected 2\n"
         "eplb: vLLM loads maps by an open change only, which checks dimensions and the range of "
         "the ids before it moves any weights (vllm-project/vllm#49572).\n"},
        {SGLANG("[0,1,2]"), "--gpus 2 --engine sglang", 1, "",
         "eplb: map: 3 slots cannot be spread evenly over 2 GPUs\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void yaml_of_another_form_is_refused_and_explained(void **state)
{
#define REFUSES                                                                                    \
    "eplb: TensorRT-LLM refuses at start what is not its form: num_slots divisible by the number " \
    "of GPUs (EP size) and not below the experts, a list of num_slots experts for each MoE "       \
    "layer, integers as keys.\n"
    static const expectation rows[] = {
        {TRTLLM("2", "  \"1\": [0, 1]\n"), "--gpus 2 --engine trtllm --explain", 1, "",
         "eplb: map:3:3: layer ids are plain integers, not the text \"1\"\n" REFUSES},
        {TRTLLM("4", "  1: [0, 1]\n"), "--gpus 2 --engine trtllm --explain", 1, "",
         "eplb: map: layer 1: 2 expert ids, but num_slots is 4\n" REFUSES},
        {TRTLLM("3", "  1: [0, 1, 2]\n"), "--gpus 2 --engine trtllm --explain", 1, "",
         "eplb: map: 3 slots cannot be spread evenly over 2 GPUs\n" REFUSES},
    };
#undef REFUSES
    if (!reads_yaml()) {
        skip();
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

/* A missing file says nothing about an engine. */
static void only_content_is_explained(void **state)
{
    run_result result =
        run_line(*state, "validate none --gpus 2 --engine sglang --from sglang --explain");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "none: ");
    assert_null(strstr(result.err, "SGLang"));
    run_release(&result);
}

static void layers_are_those_of_the_model(void **state)
{
    static const expectation rows[] = {
        {SGLANG("[0,1],[1,0]"), "--gpus 2 --engine sglang --model config.json --explain", 1,
         "2 layers, expected 3\n"
         "layer_count: SGLang accepts a wrong number of layers silently. It wants a row for each "
         "hidden layer,\n"
         "  dense ones too: with rows for MoE layers only, layers get the rows of others.\n"
         "INVALID for SGLang: 1 violation\n",
         ""},
        {SGLANG("[0,1],[1,0],[0,1]"), "--gpus 2 --engine sglang --model config.json", 0,
         "valid for SGLang: 3 layers of 2 experts on 2 GPUs x 1 slot\n", ""},
        {"[[0,1],[1,0]]", "--gpus 2 --engine vllm --model config.json", 0,
         "valid for vLLM: 2 layers of 2 experts on 2 GPUs x 1 slot\n", ""},
        {"[0,1]", "--gpus 2 --engine vllm --model config.json", 0,
         "valid for vLLM: 1 layer of 2 experts on 2 GPUs x 1 slot\n", ""},
        {"[[0,1],[1,0],[0,1]]", "--gpus 2 --engine vllm --model config.json --explain", 1,
         "3 layers, expected 2\n"
         "layer_count: vLLM loads maps by an open change only, which refuses other dimensions than "
         "one list,\n"
         "  or one for each MoE layer (vllm-project/vllm#49572).\n"
         "INVALID for vLLM: 1 violation\n",
         ""},
        {"[[0,1],[1,0],[0,1]]", "--gpus 2 --engine vllm --model config.json --dense-layers none", 0,
         "valid for vLLM: 3 layers of 2 experts on 2 GPUs x 1 slot\n", ""},
        {"[[0,2],[1,0]]", "--gpus 2 --engine vllm --model config.json", 1, "",
         "eplb: map: layer 0: slot 1: expert 2 not in 0..1 (or -1 for an empty slot)\n"},
        {"2 1 3\n1 1 0\n0 0 1\n", "--engine omni --model config.json", 1, "",
         "eplb: map: 3 experts, expected 2; config.json has 2 experts\n"},
        {"2 1 2\n1 0\n0 1\n", "--engine omni --model config.json --explain", 1,
         "1 layer, expected 2\n"
         "layer_count: What omni-infer does with it is not documented.\n"
         "INVALID for omni-infer: 1 violation\n",
         ""},
    };
    write_config(*state, "{\"n_routed_experts\":2,\"num_hidden_layers\":3,"
                         "\"first_k_dense_replace\":1}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void config_that_does_not_tell_the_layers_needs_an_option(void **state)
{
    static const expectation rows[] = {
        {"[0,1]", "--gpus 2 --engine vllm --model config.json", 1, "",
         "eplb: config.json: there is no 'num_hidden_layers'; --dense-layers says it\n"},
        {"[0,1]", "--gpus 2 --engine vllm --model config.json --dense-layers 0", 0,
         "valid for vLLM: 1 layer of 2 experts on 2 GPUs x 1 slot\n",
         "eplb: the number of layers is not checked: the model's config does not say it\n"},
    };
    write_config(*state, "{\"n_routed_experts\":2}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
    write_config(*state, "{\"n_routed_experts\":2,\"num_hidden_layers\":3,"
                         "\"first_k_dense_replace\":1}");
    assert_said(*state, &(expectation){"[0,1]",
                                       "--gpus 2 --engine vllm --model config.json "
                                       "--dense-layers 3",
                                       1, "", "eplb: model: dense layer 3 not in 0..2\n"});
}

static void file_of_another_engine_is_refused(void **state)
{
    static const expectation row = {
        "[0,1]", "--gpus 2 --engine ascend", 1, "",
        "eplb: map: a file of format vllm, which vLLM-Ascend does not load: 'eplb convert FILE "
        "--to ascend --out OTHER' makes one that it loads\n"};
    assert_said(*state, &row);
}

static void wrong_usage_is_refused(void **state)
{
    static const expectation rows[] = {
        {"[0]", "--gpus 1 --engine vlllm", 2, "",
         "eplb: --engine 'vlllm': not one of sglang, trtllm, vllm, ascend, omni, fastdeploy; did "
         "you mean 'vllm'? (see 'eplb validate --help')\n"},
        {"[0]", "--gpus 1 --model config.json", 2, "",
         "eplb: --model without --engine: engines differ in the layers they want (see 'eplb "
         "validate --help')\n"},
        {"[0]", "--gpus 1 --engine vllm --dense-layers 0", 2, "",
         "eplb: --dense-layers without --model (see 'eplb validate --help')\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void help_lists_every_engine(void **state)
{
    run_result result = run_line(*state, "validate --help");
    const char *list = strstr(result.out, "--engine NAME  ");
    assert_non_null(list);
    for (size_t i = 0; eplb_engine_at(i) != NULL; i++) {
        assert_contains(list, eplb_engine_name(eplb_engine_at(i)));
    }
    run_release(&result);
}

static void without_an_engine_the_file_says_whose_it_is(void **state)
{
    static const expectation rows[] = {
        {"[0,1,-1]", "--gpus 3 --experts 3 --explain", 1,
         "layer 0: slot 2 of GPU 2 is empty\n"
         "layer 0: expert 2 has no replica\n"
         "empty_slot: What vLLM does with it is not documented.\n"
         "missing_expert: vLLM loads maps by an open change only, which refuses one without every "
         "expert\n"
         "  (vllm-project/vllm#49572).\n"
         "INVALID: 2 violations\n",
         ""},
        {"[0,1]", "--gpus 2 --explain", 0, "valid: 1 layer of 2 experts on 2 GPUs x 1 slot\n", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_said(*state, &rows[i]);
    }
}

static void each_kind_is_explained_once_even_if_it_is_not_shown(void **state)
{
    write_map(*state, SGLANG("[0,1,1,1]"));
    run_result result = run_line(*state, "validate map --gpus 1 --experts 40 --explain");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.out, "\n... and 20 more\nduplicate: SGLang ");
    const char *first = strstr(result.out, "\nmissing_expert: ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "\nmissing_expert: "));
    run_release(&result);
}

static void json_has_the_engine_and_its_explanations(void **state)
{
    write_config(*state, "{\"n_routed_experts\":3,\"num_hidden_layers\":2,"
                         "\"first_k_dense_replace\":0}");
    write_map(*state, ASCEND(DEVICE("0", "0,0") "," DEVICE("1", "1,0")));
    cJSON *report =
        run_json(*state, "validate map --engine ascend --model config.json --explain --json", 1);
    assert_string_equal(json_text(report, "engine"), "ascend");
    assert_true(json_number(report, "model_layers") == 2.0);
    const cJSON *violations = json_member(report, "violations");
    assert_int_equal(cJSON_GetArraySize(violations), 3);
    const cJSON *layers = cJSON_GetArrayItem(violations, 0);
    assert_string_equal(json_text(layers, "kind"), "layer_count");
    assert_true(cJSON_IsNull(json_member(layers, "layer")));
    assert_string_equal(json_text(layers, "text"), "1 layer, expected 2");
    const cJSON *explanations = json_member(report, "explanations");
    assert_int_equal(cJSON_GetArraySize(explanations), 3);
    assert_true(cJSON_IsNull(json_member(cJSON_GetArrayItem(explanations, 0), "text")));
    const cJSON *duplicate = cJSON_GetArrayItem(explanations, 1);
    assert_string_equal(json_text(duplicate, "kind"), "duplicate");
    assert_contains(json_text(duplicate, "text"), "misroutes");
    cJSON_Delete(report);
}

static void json_without_an_engine_has_none(void **state)
{
    write_map(*state, "[0,1]");
    cJSON *report = run_json(*state, "validate map --gpus 2 --json", 0);
    assert_true(cJSON_IsNull(json_member(report, "engine")));
    assert_true(cJSON_IsNull(json_member(report, "model_layers")));
    assert_null(cJSON_GetObjectItemCaseSensitive(report, "explanations"));
    cJSON_Delete(report);
}

TEST_MAIN(IN_DIRECTORY(valid_files_name_the_engine),
          IN_DIRECTORY(violations_are_explained_for_each_engine),
          IN_DIRECTORY(violations_of_trtllm_are_explained),
          IN_DIRECTORY(files_of_another_form_are_refused_and_explained),
          IN_DIRECTORY(yaml_of_another_form_is_refused_and_explained),
          IN_DIRECTORY(only_content_is_explained), IN_DIRECTORY(layers_are_those_of_the_model),
          IN_DIRECTORY(config_that_does_not_tell_the_layers_needs_an_option),
          IN_DIRECTORY(file_of_another_engine_is_refused), IN_DIRECTORY(wrong_usage_is_refused),
          IN_DIRECTORY(help_lists_every_engine),
          IN_DIRECTORY(without_an_engine_the_file_says_whose_it_is),
          IN_DIRECTORY(each_kind_is_explained_once_even_if_it_is_not_shown),
          IN_DIRECTORY(json_has_the_engine_and_its_explanations),
          IN_DIRECTORY(json_without_an_engine_has_none))
