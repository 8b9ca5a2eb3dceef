/* SPDX-License-Identifier: MIT */
#include "run_json.h"

/* 2 layers of 6 experts on 4 GPUs of 2 slots. */
#define OLD_MAP "[[0,1,2,3,4,5,0,1],[0,1,2,3,4,5,0,1]]"
/* Layer 1: expert 2 comes to GPU 3 instead of 1, and 0 to GPU 1 instead of 3; layer 0: renamed. */
#define NEW_MAP "[[1,0,3,2,4,5,0,1],[0,1,0,3,4,5,2,1]]"

static void write_file(const char *directory, const char *name, const char *text)
{
    test_write_text(test_join(directory, name).text, text);
}

static void write_sglang(const char *directory, const char *name, const char *rows)
{
    char text[1024];
    snprintf(text, sizeof(text), "{\"physical_to_logical_map\":%s}", rows);
    write_file(directory, name, text);
}

static void write_both(const char *directory)
{
    write_sglang(directory, "old", OLD_MAP);
    write_sglang(directory, "new", NEW_MAP);
    write_file(directory, "log",
               "{\"step\":0,\"layer\":0,\"counts\":[4,4,2,2,2,2]}\n"
               "{\"step\":0,\"layer\":1,\"counts\":[4,4,8,0,2,2]}\n");
}

static void assert_output(const char *directory, const char *line, int exit_code, const char *out)
{
    run_result result = run_line(directory, line);
    assert_string_equal(result.err, "");
    assert_string_equal(result.out, out);
    assert_int_equal(result.exit_code, exit_code);
    run_release(&result);
}

static void same_map_is_no_difference(void **state)
{
    write_both(*state);
    assert_output(*state, "diff old old --gpus 4", 0,
                  "2 layers of 6 experts on 4 GPUs, 8 slots\nNo difference.\n");
    cJSON *report = run_json(*state, "diff old old --gpus 4 --load log --json", 0);
    assert_true(json_number(report, "copies") == 0.0);
    assert_true(json_number(report, "layers_changed") == 0.0);
    const cJSON *layer = cJSON_GetArrayItem(json_member(report, "per_layer"), 1);
    assert_int_equal(cJSON_GetArraySize(json_member(layer, "gpus")), 0);
    assert_true(json_number(layer, "imbalance_before") == json_number(layer, "imbalance_after"));
    cJSON_Delete(report);
}

static void copies_are_told_apart_from_renamed_slots(void **state)
{
    write_both(*state);
    assert_output(*state, "diff old new --gpus 4 --mode staged", 0,
                  "2 layers of 6 experts on 4 GPUs, 8 slots\n"
                  "\n"
                  "Experts with more and with fewer replicas than before:\n"
                  "  layer   copies    slots     more    fewer\n"
                  "      1        2        2        0        0\n"
                  "      0        0        4        0        0\n"
                  "\n"
                  "GPU 1 receives most: 1 copy.\n"
                  "GPU 0 sends most: 1 copy.\n"
                  "Sources: 2 from other GPUs; in 2 rounds, by way of buffers.\n"
                  "2 copies in 1 of 2 layers.\n");
}

static void renamed_slots_alone_are_no_copies(void **state)
{
    write_sglang(*state, "old", OLD_MAP);
    write_sglang(*state, "new", "[[0,1,2,3,4,5,0,1],[1,0,3,2,4,5,0,1]]");
    run_result result = run_line(*state, "diff old new --gpus 4");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out,
                    "\nNo copies: slots of 1 of 2 layers are only renamed or emptied.\n");
    run_release(&result);
}

/* Layer 0 has 4 on each GPU; in layer 1, of 5 on average, GPU 1 has 8 before and GPU 3 10 after. */
static void load_tells_the_imbalance_before_and_after(void **state)
{
    write_both(*state);
    cJSON *report = run_json(*state, "diff old new --gpus 4 --load log --json", 0);
    const cJSON *layer = cJSON_GetArrayItem(json_member(report, "per_layer"), 1);
    assert_close(json_number(layer, "imbalance_before"), 8.0 / 5.0, 1e-12);
    assert_close(json_number(layer, "imbalance_after"), 10.0 / 5.0, 1e-12);
    assert_close(json_number(json_member(report, "imbalance_before"), "mean"), (1.0 + 1.6) / 2.0,
                 1e-12);
    assert_close(json_number(json_member(report, "imbalance_after"), "worst"), 2.0, 1e-12);
    const cJSON *payoff = json_member(report, "payoff");
    assert_true(cJSON_IsFalse(json_member(payoff, "pays")));
    assert_true(cJSON_IsNull(json_member(payoff, "break_even_steps")));
    assert_true(json_number(payoff, "gain_seconds_per_step") < 0.0);
    cJSON_Delete(report);
    run_result result = run_line(*state, "diff new old --gpus 4 --load log --expert-bytes 50MB "
                                         "--step-time 0.01 --interval 3000 --mode staged");
    assert_contains(result.out, "\n2 copies (95.37 MiB, 1 ms) pay after 1 step; the next "
                                "rebalance is after 3000.\n"
                                "2 copies in 1 of 2 layers (95.37 MiB): imbalance 1.5000 -> "
                                "1.3000.\n");
    run_release(&result);
}

static void expert_bytes_that_nobody_said_are_marked(void **state)
{
    write_both(*state);
    run_result result = run_line(*state, "diff new old --gpus 4 --load log");
    assert_contains(result.out, "(with experts of 42 MiB: --expert-bytes or --model says it).\n");
    assert_contains(result.out, "\n2 copies in 1 of 2 layers: imbalance");
    run_release(&result);
    cJSON *report = run_json(*state, "diff new old --gpus 4 --json", 0);
    assert_true(cJSON_IsNull(json_member(report, "bytes_to_copy")));
    assert_true(cJSON_IsNull(json_member(report, "payoff")));
    assert_true(cJSON_IsNull(json_member(report, "imbalance_before")));
    cJSON_Delete(report);
}

static void json_names_what_each_gpu_gets_and_gives_up(void **state)
{
    write_both(*state);
    cJSON *report = run_json(*state,
                             "diff old new --gpus 4 --gpus-per-node 2 --json "
                             "--expert-bytes 1000",
                             0);
    assert_string_equal(json_text(report, "schema"), "eplb.diff/1");
    assert_true(json_number(report, "bytes_to_copy") == 2000.0);
    const cJSON *layer = cJSON_GetArrayItem(json_member(report, "per_layer"), 1);
    const cJSON *gpus = json_member(layer, "gpus");
    assert_int_equal(cJSON_GetArraySize(gpus), 2);
    const cJSON *last = cJSON_GetArrayItem(gpus, 1);
    assert_true(json_number(last, "gpu") == 3.0);
    assert_int_equal(cJSON_GetArrayItem(json_member(last, "gained"), 0)->valueint, 2);
    assert_int_equal(cJSON_GetArrayItem(json_member(last, "lost"), 0)->valueint, 0);
    const cJSON *traffic = json_member(report, "per_gpu");
    assert_true(json_number(cJSON_GetArrayItem(traffic, 0), "sent") == 1.0);
    assert_true(json_number(cJSON_GetArrayItem(traffic, 0), "sent_between_nodes") == 0.0);
    assert_true(json_number(cJSON_GetArrayItem(traffic, 1), "sent_between_nodes") == 1.0);
    assert_true(json_number(cJSON_GetArrayItem(traffic, 3), "received_between_nodes") == 1.0);
    cJSON_Delete(report);
}

static void json_has_the_schedule_with_its_sources(void **state)
{
    write_both(*state);
    cJSON *report =
        run_json(*state, "diff old new --gpus 4 --gpus-per-node 2 --mode staged --json", 0);
    const cJSON *schedule = json_member(report, "schedule");
    assert_string_equal(json_text(schedule, "mode"), "staged");
    assert_true(json_number(schedule, "node_copies") == 1.0);
    assert_true(json_number(schedule, "remote_copies") == 1.0);
    assert_true(json_number(schedule, "storage_copies") == 0.0);
    const cJSON *rounds = json_member(schedule, "per_round");
    assert_true(json_number(schedule, "rounds") == (double)cJSON_GetArraySize(rounds));
    int copies = 0;
    const cJSON *round;
    cJSON_ArrayForEach(round, rounds)
    {
        const cJSON *copy;
        cJSON_ArrayForEach(copy, json_member(round, "copies"))
        {
            bool is_copy = strcmp(json_text(copy, "source"), "local") != 0;
            copies += is_copy ? 1 : 0;
            assert_true(!is_copy || json_number(round, "layer") == 1.0);
            assert_true(is_copy == (json_number(copy, "source_gpu") != json_number(copy, "gpu")));
        }
    }
    assert_int_equal(copies, 2);
    cJSON_Delete(report);
}

/* Where slots are exchanged inside a GPU that has no buffer, one of the experts must come from
 * elsewhere. */
static void copies_beyond_the_difference_are_told(void **state)
{
    write_both(*state);
    run_result result = run_line(*state, "diff old new --gpus 4");
    assert_contains(result.out, " in place.\n");
    assert_null(strstr(result.out, "of these"));
    run_release(&result);
    write_sglang(*state, "old", "[[0,1,0,1]]");
    write_sglang(*state, "new", "[[1,0,0,1]]");
    result = run_line(*state, "diff old new --gpus 2 --buffer-slots 0");
    assert_contains(result.out, "\n1 of these is not needed with more buffer slots "
                                "(--buffer-slots).\n");
    run_release(&result);
    cJSON *report = run_json(*state, "diff old new --gpus 2 --buffer-slots 0 --json", 0);
    const cJSON *schedule = json_member(report, "schedule");
    assert_true(json_number(report, "copies") == 0.0);
    assert_true(json_number(schedule, "node_copies") == 1.0);
    assert_true(json_number(schedule, "extra_copies") == 1.0);
    cJSON_Delete(report);
}

static void too_few_buffers_are_an_error_that_says_how_many(void **state)
{
    write_sglang(*state, "old", "[[0,1]]");
    write_sglang(*state, "new", "[[1,0]]");
    run_result result = run_line(*state, "diff old new --gpus 2 --buffer-slots 0");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "buffer");
    run_release(&result);
    run_ok(*state, "diff old new --gpus 2 --buffer-slots 1");
}

static void json_counts_replicas_gained_and_lost(void **state)
{
    write_sglang(*state, "old", "[[0,1,2,3,0,1]]");
    write_sglang(*state, "new", "[[0,1,2,3,2,1]]");
    cJSON *report = run_json(*state, "diff old new --gpus 3 --json", 0);
    const cJSON *layer = cJSON_GetArrayItem(json_member(report, "per_layer"), 0);
    assert_true(json_number(layer, "replicas_gained") == 1.0);
    assert_true(json_number(layer, "replicas_lost") == 1.0);
    const cJSON *changes = json_member(layer, "replica_changes");
    assert_int_equal(cJSON_GetArraySize(changes), 2);
    const cJSON *second = cJSON_GetArrayItem(changes, 1);
    assert_true(json_number(second, "expert") == 2.0);
    assert_true(json_number(second, "before") == 1.0 && json_number(second, "after") == 2.0);
    cJSON_Delete(report);
}

static void maps_may_have_different_slots(void **state)
{
    write_sglang(*state, "old", "[[0,1,2,3]]");
    write_sglang(*state, "new", "[[0,1,2,2,3,0]]");
    run_result result = run_line(*state, "diff old new --gpus 2");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.out, "on 2 GPUs, 4 slots before, 6 slots after\n");
    assert_contains(result.out, "\n2 copies in 1 of 1 layer.\n");
    run_release(&result);
}

/* 3 rows of all model layers, of which the first is dense, beside the 2 MoE layers of a plain map.
 */
static void dense_layers_bring_formats_together(void **state)
{
    write_sglang(*state, "old", "[[5,4,3,2,1,0,1,0],[0,1,2,3,4,5,0,1],[0,1,2,3,4,5,0,1]]");
    write_file(*state, "new", NEW_MAP);
    run_result result = run_line(*state, "diff old new --gpus 4");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: new: 2 layers, but old has 3: say which are dense with "
                                    "--dense-layers\n");
    run_release(&result);
    cJSON *report = run_json(*state, "diff old new --gpus 4 --dense-layers 0 --json", 0);
    assert_true(json_number(report, "copies") == 2.0);
    const cJSON *layer = cJSON_GetArrayItem(json_member(report, "per_layer"), 1);
    assert_true(json_number(layer, "layer") == 2.0);
    cJSON_Delete(report);
}

static void maps_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *new_map;
        const char *line;
        const char *message;
    } cases[] = {
        {"[[0,1,2,3,4,5,0,1]]", "diff old new --gpus 4", "new: 1 layers, but old has 2\n"},
        {"[[0,1,2,3,4,3,0,1],[0,1,2,3,4,3,0,1]]", "diff old new --gpus 4",
         "new: 5 experts, but old has 6\n"},
        {"[[0,1,2,3,4,5,0,1],[0,1,2,3,4,3,0,1]]", "diff old new --gpus 4",
         "new: layer 1: expert 5 has no replica\n"},
        {"[[0,1,2,3,4,5,0,0],[0,1,2,3,4,5,0,1]]", "diff old new --gpus 4",
         "new: layer 0: expert 0 twice on GPU 3 (slot 7)\n"},
        {"[[0,1,2,3,4,5,0,1],[0,1,2,3,4,3,0,1]]", "diff new old --gpus 4",
         "new: layer 1: expert 5 has no replica\n"},
        {"[[0,1,2,3,4,5,0,1],[0,1,2,3,4,3,0,1]]", "diff old new --gpus 4 --load log",
         "new: layer 1: expert 5 has no replica\n"},
        {"[[0,1,2,3,4,5,0,1]]", "diff old new --gpus 4 --load log", "new: 1 layers, "},
        {NEW_MAP, "diff old new --gpus 4 --load log --experts 7", "6 "},
        {NEW_MAP, "diff old new --gpus 3", "old: "},
        {NEW_MAP, "diff old missing --gpus 4", "missing: "},
        {NEW_MAP, "diff old new --gpus 4 --load missing", "missing: "},
        {NEW_MAP, "diff old new --gpus 4 --dense-layers 7", "old: 2 layers, of which 1 are to be "},
    };
    write_both(*state);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_sglang(*state, "new", cases[i].new_map);
        run_result result = run_line(*state, cases[i].line);
        assert_contains(result.err, cases[i].message);
        assert_int_equal(result.exit_code, 1);
        assert_string_equal(result.out, "");
        run_release(&result);
    }
}

static void maps_of_different_gpus_are_refused(void **state)
{
    static const char ascend[] =
        "{\"moe_layer_count\":1,\"layer_list\":[{\"layer_id\":0,\"device_count\":%d,"
        "\"device_list\":[{\"device_id\":0,\"device_expert\":[0,1]},"
        "{\"device_id\":1,\"device_expert\":[2,0]}%s]}]}";
    char text[512];
    snprintf(text, sizeof(text), ascend, 2, "");
    write_file(*state, "two", text);
    snprintf(text, sizeof(text), ascend, 3, ",{\"device_id\":2,\"device_expert\":[1,2]}");
    write_file(*state, "three", text);
    write_file(*state, "log", "{\"step\":0,\"layer\":0,\"counts\":[4,4,2]}\n");
    static const char *const lines[] = {"diff two three", "diff two three --load log"};
    for (size_t i = 0; i < 2; i++) {
        run_result result = run_line(*state, lines[i]);
        assert_int_equal(result.exit_code, 1);
        assert_string_equal(result.err, "eplb: three: 3 GPUs, but two has 2\n");
        run_release(&result);
    }
}

static void more_than_8_layers_are_cut(void **state)
{
    char old_map[1024] = "[[0,1,2,3]";
    char new_map[1024] = "[[0,2,1,3]";
    for (int l = 1; l < 10; l++) {
        strcat(old_map, ",[0,1,2,3]");
        strcat(new_map, ",[0,2,1,3]");
    }
    write_sglang(*state, "old", strcat(old_map, "]"));
    write_sglang(*state, "new", strcat(new_map, "]"));
    run_result result = run_line(*state, "diff old new --gpus 2");
    assert_contains(result.out, "      7        2        2        0        0\n"
                                "    and 2 more layers (--json lists them)\n");
    assert_contains(result.out, "\n20 copies in 10 of 10 layers.\n");
    run_release(&result);
}

TEST_MAIN(IN_DIRECTORY(same_map_is_no_difference),
          IN_DIRECTORY(copies_are_told_apart_from_renamed_slots),
          IN_DIRECTORY(renamed_slots_alone_are_no_copies),
          IN_DIRECTORY(load_tells_the_imbalance_before_and_after),
          IN_DIRECTORY(expert_bytes_that_nobody_said_are_marked),
          IN_DIRECTORY(json_names_what_each_gpu_gets_and_gives_up),
          IN_DIRECTORY(json_has_the_schedule_with_its_sources),
          IN_DIRECTORY(copies_beyond_the_difference_are_told),
          IN_DIRECTORY(too_few_buffers_are_an_error_that_says_how_many),
          IN_DIRECTORY(json_counts_replicas_gained_and_lost),
          IN_DIRECTORY(maps_may_have_different_slots),
          IN_DIRECTORY(dense_layers_bring_formats_together),
          IN_DIRECTORY(maps_that_do_not_fit_are_refused),
          IN_DIRECTORY(maps_of_different_gpus_are_refused),
          IN_DIRECTORY(more_than_8_layers_are_cut))
