/* SPDX-License-Identifier: MIT */
/* What --model reads from a config.json. The files in data/models have the facts of real ones. */
#include <eplb/load.h>

#include "../support.h"

#include "model_config.h"

typedef struct family {
    const char *file;
    int32_t experts;
    int32_t topk;
    int32_t groups; /* 0: not said */
    int32_t layers;
    int32_t dense; /* the first ones */
    int64_t expert_bytes;
} family;

static const family families[] = {
    {"deepseek_v3", 256, 8, 8, 61, 3, 44040192}, {"deepseek_v2_lite", 64, 6, 1, 27, 1, 17301504},
    {"kimi_k2", 384, 8, 1, 61, 1, 44040192},     {"glm_4_5", 160, 8, 1, 92, 3, 47185920},
    {"qwen3_235b", 128, 8, 0, 94, 0, 37748736},  {"qwen2_57b", 64, 8, 0, 28, 0, 55050240},
    {"mixtral_8x7b", 8, 2, 0, 32, 0, 352321536}, {"gpt_oss_120b", 128, 4, 0, 36, 0, 12441600},
    {"qwen3_vl_30b", 128, 8, 0, 48, 0, 9437184},
};

static void known_families_say_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        const family *f = &families[i];
        char name[64];
        snprintf(name, sizeof(name), "models/%s.json", f->file);
        test_path path = test_data(name);
        model_config config;
        eplb_error error;
        assert_ok(model_config_read(&config, path.text, &error), &error);
        assert_int_equal(config.experts, f->experts);
        assert_int_equal(config.topk, f->topk);
        assert_int_equal(config.groups, f->groups);
        assert_int_equal(config.layers, f->layers);
        assert_int_equal(config.moe_layers, f->layers - f->dense);
        assert_int_equal(config.dense_layers.count, f->dense);
        assert_non_null(config.dense_layers.items);
        for (int32_t l = 0; l < f->dense; l++) {
            assert_int_equal(config.dense_layers.items[l], l);
        }
        assert_int_equal(config.expert_bytes, f->expert_bytes);
        model_config_release(&config);
    }
}

static model_config parse(const char *text)
{
    model_config config;
    eplb_error error;
    assert_ok(model_config_parse(&config, "config.json", text, strlen(text), &error), &error);
    return config;
}

typedef struct dense_case {
    const char *text;
    int32_t count;
    int32_t dense[8];
} dense_case;

static void every_known_rule_finds_its_dense_layers(void **state)
{
    (void)state;
#define EIGHT "{\"num_experts\":4,\"num_hidden_layers\":8"
    static const dense_case cases[] = {
        {EIGHT "}", 0, {0}},
        {EIGHT ",\"first_k_dense_replace\":2}", 2, {0, 1}},
        {EIGHT ",\"first_k_dense_replace\":1,\"moe_layer_freq\":2}", 5, {0, 1, 3, 5, 7}},
        {EIGHT ",\"moe_layer_freq\":[0,1,1,0,1,1,1,1]}", 2, {0, 3}},
        {EIGHT ",\"decoder_sparse_step\":2}", 4, {0, 2, 4, 6}},
        {EIGHT ",\"decoder_sparse_step\":1,\"mlp_only_layers\":[7,2]}", 2, {2, 7}},
        {EIGHT ",\"mlp_only_layers\":null}", 0, {0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        model_config config = parse(cases[i].text);
        assert_int_equal(config.dense_layers.count, cases[i].count);
        assert_int_equal(config.moe_layers, 8 - cases[i].count);
        for (int32_t k = 0; k < cases[i].count; k++) {
            assert_int_equal(config.dense_layers.items[k], cases[i].dense[k]);
        }
        model_config_release(&config);
    }
}

typedef struct bytes_case {
    const char *text;
    int64_t bytes;
    const char *reason; /* when there are none */
} bytes_case;

static void bytes_of_an_expert_follow_from_the_number_format(void **state)
{
    (void)state;
#define SHAPE                                                                                      \
    "{\"num_experts\":4,\"num_hidden_layers\":2,\"hidden_size\":10,\"moe_intermediate_size\":8"
#define QUANTISED SHAPE ",\"dtype\":\"bfloat16\",\"quantization_config\":"
    static const bytes_case cases[] = {
        {SHAPE ",\"dtype\":\"float32\"}", 960, ""},
        {SHAPE ",\"torch_dtype\":\"float16\",\"dtype\":\"float32\"}", 480, ""},
        {SHAPE ",\"intermediate_size\":99,\"dtype\":\"bfloat16\"}", 480, ""},
        {SHAPE ",\"dtype\":\"complex64\"}", 0, "'dtype'"},
        {SHAPE "}", 0, "no 'torch_dtype' or 'dtype'"},
        {QUANTISED "{\"quant_method\":\"fp8\"}}", 240, ""},
        {QUANTISED "{\"quant_method\":\"mxfp4\"}}", 120, ""},
        {QUANTISED "{\"quant_method\":\"awq\",\"bits\":4}}", 120, ""},
        {QUANTISED "{\"quant_method\":\"gptq\",\"bits\":3}}", 90, ""},
        {QUANTISED "{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}}", 120, ""},
        {QUANTISED "{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}}", 240, ""},
        {QUANTISED "{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true}}", 120, ""},
        {QUANTISED "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":"
                   "{\"weights\":{\"num_bits\":4}}}}}",
         120, ""},
        {QUANTISED "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":"
                   "{\"weights\":{\"num_bits\":4}},\"b\":{\"weights\":{\"num_bits\":8}}}}}",
         0, "'quantization_config'"},
        {QUANTISED "{\"quant_method\":\"new\"}}", 0, "'quantization_config'"},
        {QUANTISED "null}", 480, ""},
        /* 9 bits */
        {"{\"num_experts\":4,\"num_hidden_layers\":2,\"hidden_size\":1,\"intermediate_size\":1,"
         "\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":3}}",
         2, ""},
        {"{\"num_experts\":4,\"num_hidden_layers\":2,\"hidden_size\":10,\"dtype\":\"half\"}", 0,
         "no 'intermediate_size'"},
        {"{\"num_experts\":4,\"num_hidden_layers\":2,\"dtype\":\"half\"}", 0, "no 'hidden_size'"},
        /* the dense layers' size says nothing about the experts' */
        {"{\"num_experts\":4,\"num_hidden_layers\":2,\"hidden_size\":10,\"dtype\":\"half\","
         "\"first_k_dense_replace\":1,\"intermediate_size\":9}",
         0, "no 'moe_intermediate_size'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        model_config config = parse(cases[i].text);
        assert_int_equal(config.expert_bytes, cases[i].bytes);
        assert_contains(config.no_expert_bytes, cases[i].reason);
        model_config_release(&config);
    }
}

static void what_is_not_said_is_named(void **state)
{
    (void)state;
    model_config config = parse("{}");
    assert_int_equal(config.experts, 0);
    assert_contains(config.no_experts, "'n_routed_experts', 'num_experts' or 'num_local_experts'");
    assert_null(config.dense_layers.items);
    assert_contains(config.no_layers, "'num_hidden_layers'");
    assert_int_equal(config.topk, 0);
    model_config_release(&config);
    config = parse("{\"n_routed_experts\":8,\"num_hidden_layers\":4}");
    assert_null(config.dense_layers.items);
    assert_contains(config.no_layers, "'first_k_dense_replace'");
    model_config_release(&config);
    config = parse("{\"num_experts\":8,\"num_hidden_layers\":4,\"expert_layer_period\":2}");
    assert_null(config.dense_layers.items);
    assert_contains(config.no_layers, "'expert_layer_period'");
    model_config_release(&config);
}

static void nested_model_wins_over_what_is_around_it(void **state)
{
    (void)state;
    model_config config = parse("{\"num_experts\":4,\"num_hidden_layers\":9,\"hidden_size\":2,"
                                "\"dtype\":\"half\",\"text_config\":{\"num_experts\":8,"
                                "\"num_hidden_layers\":3,\"moe_intermediate_size\":5}}");
    assert_int_equal(config.experts, 8);
    assert_int_equal(config.layers, 3);
    assert_int_equal(config.expert_bytes, 60);
    model_config_release(&config);
}

typedef struct refused {
    const char *text;
    const char *message;
} refused;

static void wrong_configs_are_refused_by_name(void **state)
{
    (void)state;
    static const refused cases[] = {
        {"", "config.json: not a JSON document"},
        {"{\"num_experts\":8", "config.json: not a JSON document"},
        {"{} {}", "config.json: not a JSON document: byte 3"},
        {"[]", "config.json: not an object"},
        {"{\"num_experts\":8,\"num_experts\":9}", "'num_experts' is there twice"},
        {"{\"text_config\":{\"a\":8,\"a\":9}}", "'a' is there twice"},
        {"{\"num_experts\":0}", "'num_experts' is not a whole number in 1..65536"},
        {"{\"num_experts\":65537}", "'num_experts'"},
        {"{\"num_experts\":1e30}", "'num_experts'"},
        {"{\"num_experts\":8.5}", "'num_experts'"},
        {"{\"num_experts\":\"8\"}", "'num_experts'"},
        {"{\"num_experts_per_tok\":-1}", "'num_experts_per_tok'"},
        {"{\"n_group\":[]}", "'n_group'"},
        {"{\"num_hidden_layers\":0}", "'num_hidden_layers'"},
        {"{\"num_hidden_layers\":65537}", "'num_hidden_layers' 65537"},
        {EIGHT ",\"first_k_dense_replace\":-1}", "'first_k_dense_replace'"},
        {EIGHT ",\"first_k_dense_replace\":8}", "all of 8 layers are dense"},
        {EIGHT ",\"moe_layer_freq\":0}", "'moe_layer_freq'"},
        {EIGHT ",\"moe_layer_freq\":[1,1]}", "'moe_layer_freq'"},
        {EIGHT ",\"decoder_sparse_step\":0}", "'decoder_sparse_step'"},
        {EIGHT ",\"mlp_only_layers\":3}", "'mlp_only_layers'"},
        {EIGHT ",\"mlp_only_layers\":[\"3\"]}", "'mlp_only_layers'"},
        {EIGHT ",\"hidden_size\":0}", "'hidden_size'"},
        {EIGHT ",\"dtype\":\"half\",\"hidden_size\":2147483647,\"intermediate_size\":2147483647}",
         "too large"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        model_config config;
        eplb_error error;
        eplb_status status = model_config_parse(&config, "config.json", cases[i].text,
                                                strlen(cases[i].text), &error);
        assert_true(status < 0);
        assert_contains(error.message, cases[i].message);
        assert_contains(error.message, "config.json: ");
        model_config_release(&config);
    }
}

static void config_cut_by_a_nul_is_refused(void **state)
{
    (void)state;
    static const char text[] = "{\"num_experts\":8}\0{}";
    model_config config;
    eplb_error error;
    assert_status(model_config_parse(&config, "config.json", text, sizeof(text) - 1, &error),
                  EPLB_ERROR_PARSE, &error);
    model_config_release(&config);
}

TEST_MAIN(cmocka_unit_test(known_families_say_all),
          cmocka_unit_test(every_known_rule_finds_its_dense_layers),
          cmocka_unit_test(bytes_of_an_expert_follow_from_the_number_format),
          cmocka_unit_test(what_is_not_said_is_named),
          cmocka_unit_test(nested_model_wins_over_what_is_around_it),
          cmocka_unit_test(wrong_configs_are_refused_by_name),
          cmocka_unit_test(config_cut_by_a_nul_is_refused))
