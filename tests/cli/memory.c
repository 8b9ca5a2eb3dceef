/* SPDX-License-Identifier: MIT */
/* eplb plan: slots from the memory of GPUs, bytes of experts, and pinned experts. */
#include "run_json.h"

#define LOAD "log.jsonl"
#define PLAN "plan --load log.jsonl --experts 16 --gpus 4 --dense-layers none"

/* A log of 3 layers x 16 experts. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --out " LOAD);
    return 0;
}

static void assert_range(const cJSON *document, const char *name, double min, double max)
{
    const cJSON *range = json_member(document, name);
    assert_true(json_number(range, "min") == min);
    assert_true(json_number(range, "max") == max);
}

static void slots_are_what_the_memory_holds(void **state)
{
    /* 6 slots x 3 layers x 1000 bytes and 999 bytes too few for a seventh */
    cJSON *plan = run_json(
        *state, PLAN " --gpu-memory 25999 --reserve 5k --expert-bytes 1k --json --out map", 0);
    assert_true(json_number(plan, "slots") == 24.0);
    assert_true(json_number(plan, "redundant") == 8.0);
    assert_true(json_number(plan, "expert_bytes") == 1000.0);
    assert_range(plan, "slots_per_gpu", 6.0, 6.0);
    assert_range(plan, "weight_bytes_per_gpu", 18000.0, 18000.0);
    assert_true(cJSON_IsNull(json_member(plan, "bytes_to_copy")));
    cJSON_Delete(plan);
    run_ok(*state, PLAN " --slots 24 --out same");
    assert_true(same_files(*state, "map", "same"));
}

static void each_gpu_may_have_a_memory_of_its_own(void **state)
{
    cJSON *plan = run_json(*state, PLAN " --gpu-memory 12k,15k,18k,9k --expert-bytes 1k --json", 0);
    assert_true(json_number(plan, "slots") == 18.0);
    assert_range(plan, "slots_per_gpu", 3.0, 6.0);
    assert_range(plan, "weight_bytes_per_gpu", 9000.0, 18000.0);
    assert_true(cJSON_IsTrue(json_member(plan, "valid")));
    cJSON_Delete(plan);
    run_result result = run_line(*state, PLAN " --gpu-memory 12k,15k,18k,9k --expert-bytes 1k");
    assert_contains(result.out, "on 4 GPUs x 3 to 6 slots (18 slots, 2 redundant)");
    assert_contains(result.out, "Weights of experts on a GPU: 8.789 KiB to 17.58 KiB (3 to 6 slots "
                                "x 3 layers x 1000 B)\n");
    run_release(&result);
}

static void slots_beyond_the_experts_are_cut_with_a_note(void **state)
{
    run_result result = run_line(*state, PLAN " --gpu-memory 1G,9k,9k,1G --expert-bytes 1k --json");
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.err, "eplb: the memory of 2 GPUs holds more than one of each of 16 "
                                    "experts: 16 slots there\n");
    cJSON *plan = cJSON_Parse(result.out);
    assert_range(plan, "slots_per_gpu", 3.0, 16.0);
    cJSON_Delete(plan);
    run_release(&result);
    run_result exact = run_line(*state, PLAN " --gpu-memory 48k --expert-bytes 1k");
    assert_int_equal(exact.exit_code, 0);
    assert_string_equal(exact.err, "");
    run_release(&exact);
}

static void copies_have_a_price_in_bytes_where_an_expert_has(void **state)
{
    run_ok(*state, PLAN " --slots 24 --out map");
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --seed 5 --out "
                   "log.jsonl");
    cJSON *plan = run_json(*state, PLAN " --slots 24 --current map --expert-bytes 3MiB --json", 0);
    double copies = json_number(plan, "copies");
    assert_true(copies > 0.0);
    assert_true(json_number(plan, "bytes_to_copy") == copies * 3145728.0);
    cJSON_Delete(plan);
    char price[64];
    snprintf(price, sizeof(price), "%.0f copies (%.1f a layer, %.4g MiB) take", copies,
             copies / 3.0, copies * 3.0);
    run_result result = run_line(*state, PLAN " --slots 24 --current map --expert-bytes 3MiB");
    assert_contains(result.out, price);
    assert_contains(result.out, "Weights of experts on a GPU: 54 MiB (6 slots x 3 layers x 3 MiB)");
    run_release(&result);
    run_result unknown = run_line(*state, PLAN " --slots 24 --current map");
    assert_null(strstr(unknown.out, "Weights of experts"));
    run_release(&unknown);
}

static void bytes_beyond_64_bits_are_refused(void **state)
{
    run_ok(*state,
           "synth --layers 200 --experts 16 --steps 1 --tokens 90 --topk 2 --out log.jsonl");
    run_result result = run_line(*state, PLAN " --slots 64 --expert-bytes 8192TiB --out map");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err,
                        "eplb: 9007199254740992 bytes of an expert x 16 x 200 layers do "
                        "not fit 64 bits\n");
    assert_false(has_file(*state, "map"));
    run_release(&result);
}

/* Whether a GPU of 6 slots holds the expert in a row of a vLLM map, a list of lists. */
static bool holds(const cJSON *map, int layer, int gpu, int expert)
{
    const cJSON *row = cJSON_GetArrayItem(map, layer);
    for (int s = 0; s < 6; s++) {
        if (cJSON_GetArrayItem(row, gpu * 6 + s)->valueint == expert) {
            return true;
        }
    }
    return false;
}

static cJSON *plan_map(const char *directory, const char *line)
{
    run_ok(directory, line);
    char *text = test_read_file(test_join(directory, "map").text, NULL);
    cJSON *map = cJSON_Parse(text);
    assert_non_null(map);
    free(text);
    return map;
}

static void a_pin_holds_for_its_layer_and_gpu(void **state)
{
    int differences = 0;
    for (int gpu = 0; gpu < 4; gpu++) {
        char line[256];
        snprintf(line, sizeof(line), PLAN " --slots 24 --to vllm --out map --pin 1:3:%d", gpu);
        cJSON *map = plan_map(*state, line);
        assert_true(holds(map, 1, gpu, 3));
        differences += holds(map, 0, gpu, 3) ? 0 : 1;
        cJSON_Delete(map);
    }
    assert_true(differences > 0); /* other layers are not pinned */
}

static void all_pins_every_layer_and_every_gpu(void **state)
{
    cJSON *map = plan_map(*state, PLAN " --slots 24 --to vllm --out map --pin all:7:all");
    for (int layer = 0; layer < 3; layer++) {
        for (int gpu = 0; gpu < 4; gpu++) {
            assert_true(holds(map, layer, gpu, 7));
        }
    }
    cJSON_Delete(map);
}

static void pins_name_layers_as_the_loads_number_them(void **state)
{
    run_ok(*state, "synth --layers 2 --first-layer 5 --experts 16 --steps 1 --tokens 90 --topk 2 "
                   "--out late.jsonl");
#define LATE "plan --load late.jsonl --gpus 4 --slots 24 --out map --to vllm"
    cJSON *map = plan_map(*state, LATE " --pin 6:9:3 --pin 6:9:0 --pin 6:2:3");
    assert_true(holds(map, 1, 3, 9));
    assert_true(holds(map, 1, 0, 9));
    assert_true(holds(map, 1, 3, 2));
    cJSON_Delete(map);
    run_result result = run_line(*state, LATE " --pin 1:9:3");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "--pin '1:9:3': the loads have no layer 1, but 5 to 6");
    run_release(&result);
#undef LATE
}

#define PREPARED(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(PREPARED(slots_are_what_the_memory_holds),
          PREPARED(each_gpu_may_have_a_memory_of_its_own),
          PREPARED(slots_beyond_the_experts_are_cut_with_a_note),
          PREPARED(copies_have_a_price_in_bytes_where_an_expert_has),
          PREPARED(bytes_beyond_64_bits_are_refused), PREPARED(a_pin_holds_for_its_layer_and_gpu),
          PREPARED(all_pins_every_layer_and_every_gpu),
          PREPARED(pins_name_layers_as_the_loads_number_them))
