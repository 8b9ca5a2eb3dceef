/* SPDX-License-Identifier: MIT */
/* --model: what a config.json answers for plan, report and sweep. */
#include "run_json.h"

#define SIZES "\"hidden_size\":10,\"moe_intermediate_size\":8,\"dtype\":\"bfloat16\""
#define MODEL                                                                                      \
    "{\"n_routed_experts\":16,\"num_experts_per_tok\":2,\"num_hidden_layers\":5,"                  \
    "\"first_k_dense_replace\":2," SIZES "}"
#define PLAN "plan --load log.jsonl --model config.json --gpus 4"
#define REPORT "report --load log.jsonl --model config.json --gpus 4"
#define SWEEP "sweep --load log.jsonl --model config.json --gpus 4 --redundant 8"

static void write_config(const char *directory, const char *text)
{
    test_write_text(test_join(directory, "config.json").text, text);
}

/* A log of 3 MoE layers x 16 experts, numbered from 0, and the model's config: 5 layers, of which
 * the first 2 are dense. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --out log.jsonl");
    write_config(*state, MODEL);
    return 0;
}

static void assert_refused(const char *directory, const char *line, const char *message)
{
    run_result result = run_line(directory, line);
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, message);
    assert_int_equal(result.out_size, 0);
    run_release(&result);
}

static void plan_gets_experts_dense_layers_and_bytes(void **state)
{
    run_result noted = run_line(*state, PLAN " --slots 24");
    assert_string_equal(noted.err, ""); /* the config confirms the experts */
    run_release(&noted);
    cJSON *plan = run_json(*state, PLAN " --gpu-memory 8640 --json --out map", 0);
    assert_true(json_number(plan, "expert_bytes") == 480.0);
    assert_true(json_number(plan, "slots") == 24.0); /* 6 x 3 layers x 480 bytes = 8640 */
    const cJSON *rows = json_member(plan, "per_layer");
    for (int l = 0; l < 3; l++) {
        assert_true(json_number(cJSON_GetArrayItem(rows, l), "layer") == 2.0 + l);
    }
    cJSON_Delete(plan);
    run_result valid = run_line(*state, "validate map --gpus 4 --experts 16");
    assert_contains(valid.out, "5 layers"); /* an SGLang map has the dense ones, too */
    run_release(&valid);
}

static void options_win_over_the_config(void **state)
{
    cJSON *plan =
        run_json(*state, PLAN " --gpu-memory 9k --expert-bytes 750 --dense-layers 0,1,3 --json", 0);
    assert_true(json_number(plan, "expert_bytes") == 750.0);
    assert_true(json_number(plan, "slots") == 16.0);
    assert_true(json_number(cJSON_GetArrayItem(json_member(plan, "per_layer"), 1), "layer") == 4.0);
    cJSON_Delete(plan);
    write_config(*state, "{\"num_experts\":99,\"num_hidden_layers\":3}");
    run_ok(*state, PLAN " --slots 24 --experts 16");
}

static void files_that_contradict_the_config_are_refused_with_both_numbers(void **state)
{
    static const char *const commands[] = {PLAN " --slots 24", REPORT, SWEEP};
    for (size_t i = 0; i < 3; i++) {
        write_config(*state, "{\"num_experts\":17,\"num_hidden_layers\":3}");
        assert_refused(*state, commands[i], "log.jsonl:1:");
        assert_refused(*state, commands[i], "16 counts, expected 17");
        assert_refused(*state, commands[i], "; config.json has 17 experts");
        write_config(*state, "{\"num_experts\":16,\"num_hidden_layers\":4}");
        assert_refused(*state, commands[i],
                       "the loads have 3 layers, but config.json has 4 with experts (of 4)");
        write_config(*state, "{\"num_experts\":16,\"num_hidden_layers\":9,"
                             "\"first_k_dense_replace\":5}");
        assert_refused(*state, commands[i],
                       "the loads have 3 layers, but config.json has 4 with experts (of 9)");
    }
}

static void model_of_another_depth_is_refused(void **state)
{
    run_ok(*state, "synth --layers 3 --first-layer 2 --experts 16 --steps 1 --tokens 90 --topk 2 "
                   "--format sglang --out log.jsonl");
    run_ok(*state, PLAN " --slots 24");
    write_config(*state, "{\"num_experts\":16,\"num_hidden_layers\":6,"
                         "\"mlp_only_layers\":[0,1,2]}");
    assert_refused(*state, PLAN " --slots 24",
                   "the loads are of a model with 5 layers, but config.json has 6");
}

static void layer_ids_beyond_the_model_are_refused(void **state)
{
    run_ok(*state, "synth --layers 3 --first-layer 3 --experts 16 --steps 1 --tokens 90 --topk 2 "
                   "--out log.jsonl");
    assert_refused(*state, PLAN " --slots 24", "the loads have a layer 5, but config.json has 5");
}

static void what_the_config_lacks_is_an_error_where_it_is_needed(void **state)
{
    write_config(*state, "{\"num_hidden_layers\":3}");
    assert_refused(*state, PLAN " --slots 24", "config.json: there is no 'n_routed_experts'");
    run_ok(*state, PLAN " --slots 24 --experts 16");
    write_config(*state, "{\"num_experts\":16}");
    assert_refused(*state, PLAN " --slots 24",
                   "config.json: there is no 'num_hidden_layers'; --dense-layers says it");
    run_ok(*state, PLAN " --slots 24 --dense-layers none");
    write_config(*state, "{\"num_experts\":16,\"num_hidden_layers\":3,\"hidden_size\":9}");
    assert_refused(*state, PLAN " --gpu-memory 9k",
                   "config.json: there is no 'intermediate_size'; --expert-bytes says it");
    run_ok(*state, PLAN " --gpu-memory 18k --expert-bytes 1k");
    run_ok(*state, PLAN " --slots 24");
}

static void report_gets_the_topk(void **state)
{
    cJSON *document = run_json(*state, REPORT " --json", 0);
    const cJSON *source = cJSON_GetArrayItem(json_member(document, "sources"), 0);
    assert_true(json_number(source, "topk") == 2.0);
    assert_true(json_number(source, "layers") == 3.0);
    assert_true(json_number(cJSON_GetArrayItem(json_member(source, "per_layer"), 0), "layer") ==
                2.0);
    cJSON_Delete(document);
    document = run_json(*state, REPORT " --topk 4 --json", 0);
    source = cJSON_GetArrayItem(json_member(document, "sources"), 0);
    assert_true(json_number(source, "topk") == 4.0);
    cJSON_Delete(document);
}

static void groups_are_offered_and_not_chosen(void **state)
{
    write_config(*state, "{\"num_experts\":16,\"num_hidden_layers\":3,\"n_group\":4}");
#define CLASSICAL PLAN " --slots 24 --algorithm eplb --gpus-per-node 2"
    static const char note[] =
        "eplb: the model has 4 groups of experts: --groups 4 keeps each on one node\n";
    run_result offered = run_line(*state, CLASSICAL);
    assert_string_equal(offered.err, note);
    run_result chosen = run_line(*state, CLASSICAL " --groups 4");
    assert_string_equal(chosen.err, "");
    run_release(&offered);
    run_release(&chosen);
#undef CLASSICAL
}

#define PREPARED(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(PREPARED(plan_gets_experts_dense_layers_and_bytes), PREPARED(options_win_over_the_config),
          PREPARED(files_that_contradict_the_config_are_refused_with_both_numbers),
          PREPARED(model_of_another_depth_is_refused),
          PREPARED(layer_ids_beyond_the_model_are_refused),
          PREPARED(what_the_config_lacks_is_an_error_where_it_is_needed),
          PREPARED(report_gets_the_topk), PREPARED(groups_are_offered_and_not_chosen))
