/* SPDX-License-Identifier: MIT */
#include <eplb/format.h>

#include "run_json.h"

#define LOAD "log.jsonl"
#define PLAN "plan --load log.jsonl --gpus 4 --redundant 8 --dense-layers none"

/* A log of 3 layers x 16 experts. */
static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --out " LOAD);
    return 0;
}

static void written_placement_is_valid_and_stays_in_every_format_that_is_read(void **state)
{
    int formats = 0;
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        if ((eplb_format_flags(format) & EPLB_FORMAT_WRITES_PLACEMENT) == 0 ||
            (eplb_format_flags(format) & EPLB_FORMAT_READS_PLACEMENT) == 0) {
            continue;
        }
        char line[256];
        snprintf(line, sizeof(line), PLAN " --out map --to %s", eplb_format_name(format));
        run_ok(*state, line);
        run_ok(*state, "validate map --gpus 4 --experts 16");
        cJSON *again = run_json(*state, PLAN " --current map --json --detailed-exitcode", 0);
        assert_true(json_number(again, "copies") == 0.0);
        cJSON_Delete(again);
        formats++;
    }
    assert_true(formats >= 3);
}

static void json_without_a_placement_in_force_has_the_contract(void **state)
{
    cJSON *plan = run_json(*state, PLAN " --json", 0);
    assert_string_equal(json_text(plan, "schema"), "eplb.plan/1");
    assert_true(json_number(plan, "layers") == 3.0);
    assert_true(json_number(plan, "experts") == 16.0);
    assert_true(json_number(plan, "gpus") == 4.0);
    assert_true(json_number(plan, "slots") == 24.0);
    assert_string_equal(json_text(plan, "objective"), "mean-of-max");
    assert_true(json_number(plan, "scenarios") == 4.0); /* a slice for each step */
    assert_string_equal(json_text(plan, "algorithm"), "search");
    static const char *const nulls[] = {"imbalance_before", "copies", "bytes_to_copy",
                                        "target_reached"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(cJSON_IsNull(json_member(plan, nulls[i])));
    }
    const cJSON *after = json_member(plan, "imbalance_after");
    double bound = json_number(json_member(plan, "lower_bound"), "mean");
    assert_true(bound >= 1.0);
    assert_true(json_number(after, "mean") >= bound);
    assert_true(json_number(after, "worst") >= json_number(after, "mean"));
    const char *stops[] = {"optimal", "local_optimum", "effort"};
    const char *stop = json_text(plan, "stopped_by");
    assert_true(strcmp(stop, stops[0]) == 0 || strcmp(stop, stops[1]) == 0 ||
                strcmp(stop, stops[2]) == 0);
    assert_true(cJSON_IsTrue(json_member(plan, "valid")));
    assert_null(cJSON_GetObjectItemCaseSensitive(plan, "out"));
    const cJSON *row = cJSON_GetArrayItem(json_member(plan, "per_layer"), 2);
    assert_true(json_number(row, "layer") == 2.0);
    assert_true(json_number(row, "imbalance_after") >= json_number(row, "lower_bound"));
    assert_true(cJSON_IsNull(json_member(row, "imbalance_before")));
    assert_true(cJSON_IsNull(json_member(row, "copies")));
    cJSON_Delete(plan);
}

static void json_layers_add_up(void **state)
{
    run_ok(*state, PLAN " --effort 1 --algorithm eplb --repair --out old.json");
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --seed 5 --out "
                   "other.jsonl");
    cJSON *plan = run_json(*state,
                           "plan --load other.jsonl --gpus 4 --redundant 8 --dense-layers none "
                           "--current old.json --json --out new.json",
                           0);
    const cJSON *rows = json_member(plan, "per_layer");
    assert_int_equal(cJSON_GetArraySize(rows), 3);
    double copies = 0.0;
    double before = 0.0;
    double after = 0.0;
    double worst = 0.0;
    for (int l = 0; l < 3; l++) {
        const cJSON *row = cJSON_GetArrayItem(rows, l);
        assert_true(json_number(row, "layer") == (double)l);
        assert_true(json_number(row, "imbalance_after") <= json_number(row, "imbalance_before"));
        assert_true(json_number(row, "imbalance_after") >= json_number(row, "lower_bound"));
        copies += json_number(row, "copies");
        before += json_number(row, "imbalance_before") / 3.0;
        after += json_number(row, "imbalance_after") / 3.0;
        worst = fmax(worst, json_number(row, "imbalance_after"));
    }
    assert_true(copies == json_number(plan, "copies"));
    assert_close(json_number(json_member(plan, "imbalance_before"), "mean"), before, 1e-12);
    assert_close(json_number(json_member(plan, "imbalance_after"), "mean"), after, 1e-12);
    assert_true(json_number(json_member(plan, "imbalance_after"), "worst") == worst);
    assert_string_equal(json_text(plan, "out"), "new.json");
    assert_string_equal(json_text(plan, "format"), "sglang");
    cJSON_Delete(plan);
}

static void threads_do_not_change_a_byte(void **state)
{
#define WIDE "plan --load wide --gpus 8 --redundant 16 --dense-layers none"
    static const int threads[] = {1, 2, 8};
    run_ok(*state, "synth --layers 24 --experts 64 --steps 1 --tokens 500 --topk 4 --out wide");
    char *report = NULL;
    for (int i = 0; i < 3; i++) {
        char line[256];
        snprintf(line, sizeof(line), WIDE " --threads %d --out map%d", threads[i], i);
        run_ok(*state, line);
        snprintf(line, sizeof(line), WIDE " --threads %d --json", threads[i]);
        run_result json = run_line(*state, line);
        report = report != NULL ? report : strdup(json.out);
        assert_string_equal(json.out, report);
        run_release(&json);
    }
    free(report);
    assert_true(same_files(*state, "map0", "map1"));
    assert_true(same_files(*state, "map0", "map2"));
#undef WIDE
}

static void dash_writes_the_map_to_standard_output_and_the_table_aside(void **state)
{
    run_ok(*state, PLAN " --out map --to ascend");
    run_result result = run_line(*state, PLAN " --out - --to ascend");
    assert_int_equal(result.exit_code, 0);
    char *map = test_read_file(test_join(*state, "map").text, NULL);
    assert_string_equal(result.out, map);
    assert_contains(result.err, "Imbalance of a layer");
    assert_false(has_file(*state, "-"));
    free(map);
    run_release(&result);
}

static void the_ending_of_the_name_says_the_format(void **state)
{
    run_ok(*state, PLAN " --out given --to trtllm");
    run_ok(*state, PLAN " --out map.yaml");
    assert_true(same_files(*state, "given", "map.yaml"));
    run_ok(*state, PLAN " --out map.npy");
    run_ok(*state, PLAN " --out given --to omni");
    assert_true(same_files(*state, "given", "map.npy"));
    static const char *const refused[][2] = {
        {PLAN " --out map.csv", "--out 'map.csv': placements are not written as .csv: --to FORMAT"},
        {PLAN " --out map.json.gz", "--out 'map.json.gz': files are not compressed"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        run_result result = run_line(*state, refused[i][0]);
        assert_int_equal(result.exit_code, 2);
        assert_contains(result.err, refused[i][1]);
        run_release(&result);
    }
    run_ok(*state, PLAN " --out map.csv --to vllm");
}

static void full_disk_is_an_error(void **state)
{
    static const char *const lines[] = {PLAN, PLAN " --json", PLAN " --out -"};
    for (size_t i = 0; i < 3; i++) {
        run_result result = run_line_into(*state, lines[i], "/dev/full");
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "eplb: standard output: cannot write: No space left");
        run_release(&result);
    }
    run_result result = run_line(*state, PLAN " --out /dev/full");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "eplb: /dev/full: ");
    assert_int_equal(result.out_size, 0);
    run_release(&result);
}

/* The last line of a text that ends with a newline. */
static const char *last_line(const char *text)
{
    const char *start = text;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n' && c[1] != '\0') {
            start = c + 1;
        }
    }
    return start;
}

static void last_line_says_what_to_do(void **state)
{
    static const char *const cases[][2] = {
        {PLAN, "Write it with --out FILE [--to FORMAT].\n"},
        {PLAN " --out m --to sglang",
         "Load it in SGLang: --init-expert-location m --ep-num-redundant-experts 8\n"},
        {PLAN " --current m", "No changes: keep the current placement.\n"},
    };
    for (size_t i = 0; i < 3; i++) {
        run_result result = run_line(*state, cases[i][0]);
        assert_string_equal(last_line(result.out), cases[i][1]);
        run_release(&result);
    }
}

/* A name that a shell, JSON or YAML would read otherwise, or a terminal obey, is not shown. */
static void launch_hint_shows_plain_names_only(void **state)
{
    static const char *const formats[] = {"sglang", "trtllm", "ascend", "vllm"};
    static const char *const names[] = {"a b",  "it's",     "q\"", "$x",   "e\033[31m",
                                        "n\nl", "\xc3\xa9", "x,y", "b\\s", "{}"};
    test_write_text(test_join(*state, "log").text, "layer,expert,tokens\n0,0,5\n0,1,5\n");
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            const char *arguments[] = {"plan", "--load", "log",    "--gpus", "2",        "--slots",
                                       "2",    "--out",  names[k], "--to",   formats[i], NULL};
            run_result result = run_arguments(*state, arguments);
            assert_int_equal(result.exit_code, 0);
            assert_contains(last_line(result.out), "FILE");
            assert_null(strstr(last_line(result.out), names[k]));
            run_release(&result);
        }
        char line[256];
        snprintf(line, sizeof(line),
                 "plan --load log --gpus 2 --slots 2 --out ./A-z_0+9=1:2@3%%.json --to %s",
                 formats[i]);
        run_result plain = run_line(*state, line);
        assert_contains(last_line(plain.out), "./A-z_0+9=1:2@3%.json");
        run_release(&plain);
    }
}

static void number_of_experts_that_nothing_confirms_is_noted(void **state)
{
    static const char note[] = "eplb: assuming 16 logical experts (--experts 16 checks it)\n";
    static const char *const lines[][2] = {
        {PLAN, note},
        {PLAN " --json", note},
        {PLAN " --out map", note},
        {PLAN " --experts 16", ""},
        {PLAN " --current map", ""},
        {"plan --load model --gpus 4 --redundant 8", ""},
    };
    run_ok(*state, "synth --layers 1 --experts 16 --steps 1 --topk 2 --format sglang --out model");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i][0]);
        assert_int_equal(result.exit_code, 0);
        assert_string_equal(result.err, lines[i][1]);
        run_release(&result);
    }
}

static void price_and_gain_stand_in_one_line(void **state)
{
#define CHANGED "plan --load other --gpus 4 --redundant 8 --current map"
    run_ok(*state, PLAN " --out map");
    run_ok(*state, "synth --layers 3 --experts 16 --steps 4 --tokens 200 --topk 2 --seed 5 --out "
                   "other");
    cJSON *plan = run_json(*state, CHANGED " --json", 0);
    double copies = json_number(plan, "copies");
    assert_true(copies > 1.0);
    char line[256];
    snprintf(line, sizeof(line),
             "\n%.0f copies (%.1f a layer) take the mean imbalance from %.4f to %.4f.\n", copies,
             copies / 3.0, json_number(json_member(plan, "imbalance_before"), "mean"),
             json_number(json_member(plan, "imbalance_after"), "mean"));
    run_result result = run_line(*state, CHANGED);
    assert_contains(result.out, line);
    run_release(&result);
    run_result same = run_line(*state, PLAN " --current map");
    assert_null(strstr(same.out, " a layer)"));
    run_release(&same);
    cJSON_Delete(plan);
#undef CHANGED
}

static void one_is_singular(void **state)
{
    test_write_text(test_join(*state, "log").text, "layer,expert,tokens\n0,0,5\n0,1,5\n");
    run_result result = run_line(*state, "plan --load log --gpus 2 --slots 2");
    assert_contains(result.out, "1 layer of 2 experts on 2 GPUs x 1 slot (2 slots, 0 redundant), "
                                "1 scenario\n");
    run_release(&result);
}

static void experts_that_are_given_may_be_more_than_the_default_limit(void **state)
{
    char text[64 + 16384] = "{\"layer\":0,\"counts\":[0";
    for (int e = 1; e < 5000; e++) {
        strcat(text, ",1");
    }
    strcat(text, "]}\n");
    test_write_text(test_join(*state, "wide").text, text);
    run_result result = run_line(*state, "plan --load wide --gpus 2 --redundant 0");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "more than 4096 counts");
    run_release(&result);
    run_ok(*state, "plan --load wide --experts 5000 --gpus 2 --redundant 0 --to vllm --out map");
    run_ok(*state, "plan --load wide --experts 5000 --gpus 2 --redundant 0 --current map");
    run_ok(*state, "validate map --experts 5000 --gpus 2");
}

static void table_shows_the_worst_layers_first(void **state)
{
    run_ok(*state, "synth --layers 12 --experts 16 --steps 1 --tokens 99 --topk 2 --out many");
    run_result result = run_line(*state, "plan --load many --gpus 4 --slots 20 --effort 1");
    assert_contains(result.out, "12 layers of 16 experts on 4 GPUs x 5 slots");
    const char *row = strstr(result.out, "copies\n");
    assert_non_null(row);
    double previous = INFINITY;
    int rows = 0;
    int layer;
    double after;
    while (sscanf(row = strchr(row, '\n') + 1, "%d - %lf", &layer, &after) == 2) {
        assert_true(after <= previous);
        previous = after;
        rows++;
    }
    assert_int_equal(rows, 8);
    run_release(&result);
}

static void detailed_exitcode_is_10_when_copies_are_proposed(void **state)
{
    run_ok(*state, PLAN);
    run_result first = run_line(*state, PLAN " --detailed-exitcode --out map");
    assert_int_equal(first.exit_code, 10);
    run_release(&first);
    run_result same = run_line(*state, PLAN " --detailed-exitcode --current map");
    assert_int_equal(same.exit_code, 0);
    run_release(&same);
    run_result wider = run_line(*state, "plan --load log.jsonl --gpus 4 --redundant 12 "
                                        "--dense-layers none --detailed-exitcode --current map");
    assert_int_equal(wider.exit_code, 10);
    run_release(&wider);
}

static void fewer_slots_are_a_change_without_copies(void **state)
{
    test_write_text(test_join(*state, "log").text, "step,layer,expert,tokens\n0,0,1,5\n");
    run_ok(*state, "plan --load log --gpus 2 --slots 4 --dense-layers none --out map");
    cJSON *plan = run_json(*state,
                           "plan --load log --gpus 2 --slots 2 --dense-layers none --current map "
                           "--json --detailed-exitcode",
                           10);
    assert_true(json_number(plan, "copies") == 0.0);
    assert_true(cJSON_IsTrue(json_member(plan, "proposes_changes")));
    cJSON_Delete(plan);
}

/* Two kinds of traffic that want different placements on 2 GPUs x 2 slots: experts 0 and 1 are hot
 * together, or 2 and 3 are. */
static void write_two_kinds(const char *directory)
{
    test_write_text(test_join(directory, "chat").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[10,10,0,0]}\n");
    test_write_text(test_join(directory, "code").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[0,0,10,10]}\n");
}

static void each_source_is_a_scenario(void **state)
{
    write_two_kinds(*state);
    const char *line = "plan --load a=chat:3 --load code --gpus 2 --slots 4 --dense-layers none";
    cJSON *plan = run_json(*state,
                           "plan --load a=chat:3 --load code --gpus 2 --slots 4 "
                           "--dense-layers none --json",
                           0);
    assert_true(json_number(plan, "scenarios") == 2.0);
    assert_string_equal(json_text(plan, "objective"), "mean-of-max");
    assert_true(json_number(json_member(plan, "imbalance_after"), "mean") == 1.0);
    const cJSON *first = cJSON_GetArrayItem(json_member(plan, "per_scenario"), 0);
    assert_string_equal(json_text(first, "name"), "a");
    assert_true(json_number(first, "weight") == 3.0);
    assert_true(json_number(first, "imbalance_after_mean") == 1.0);
    cJSON_Delete(plan);
    run_result result = run_line(*state, line);
    assert_contains(result.out, "2 scenarios\n");
    assert_contains(result.out, "(mean-of-max: mean over the scenarios)");
    assert_contains(result.out, "\na                                      3");
    run_release(&result);
}

static void slices_are_named_by_file_and_number(void **state)
{
    test_write_text(test_join(*state, "log").text, "{\"step\":0,\"layer\":0,\"counts\":[9,9]}\n"
                                                   "{\"step\":1,\"layer\":0,\"counts\":[9,9]}\n");
    static const char *const cases[][2] = {
        {"./log", "\nlog 2/2  "}, {"a 1=log", "\na 1 2/2  "}, {"\033[1ma=log", "\n?[1ma 1/2  "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const arguments[] = {"plan",   "--load", cases[i][0], "--slices", "2",
                                         "--gpus", "2",      "--slots",   "4",        NULL};
        run_result result = run_arguments(*state, arguments);
        assert_int_equal(result.exit_code, 0);
        assert_contains(result.out, cases[i][1]);
        run_release(&result);
    }
}

static void a_single_replica_of_each_expert_is_no_news(void **state)
{
    write_two_kinds(*state);
    run_result result = run_line(*state, "plan --load chat --gpus 2 --slots 4");
    assert_null(strstr(result.out, "failure"));
    run_release(&result);
    result = run_line(*state, "plan --load chat --gpus 4 --slots 8");
    assert_contains(result.out, "; --min-replicas 2 prevents it.\n");
    run_release(&result);
}

static void objective_sum_plans_the_mix(void **state)
{
    write_two_kinds(*state);
    cJSON *plan = run_json(*state,
                           "plan --load chat --load code --gpus 2 --slots 4 --objective sum "
                           "--dense-layers none --json",
                           0);
    assert_string_equal(json_text(plan, "objective"), "sum");
    assert_true(json_number(json_member(plan, "imbalance_after"), "mean") == 1.0);
    cJSON_Delete(plan);
}

static void steps_of_one_source_are_cut_into_slices(void **state)
{
    cJSON *plan = run_json(*state, PLAN " --slices 3 --json", 0);
    assert_true(json_number(plan, "scenarios") == 3.0);
    cJSON_Delete(plan);
    plan = run_json(*state, PLAN " --slices 1 --json", 0);
    assert_true(json_number(plan, "scenarios") == 1.0);
    cJSON_Delete(plan);
}

static void experts_lost_with_dead_gpus_are_listed(void **state)
{
    write_two_kinds(*state);
    run_ok(*state, "plan --load chat --gpus 3 --slots 6 --dense-layers none --out map");
    const char *again = "plan --load chat --gpus 3 --slots 6 --dense-layers none --current map "
                        "--dead-gpus 2 ";
    char line[256];
    snprintf(line, sizeof(line), "%s--json", again);
    cJSON *plan = run_json(*state, line, 0);
    assert_true(json_number(plan, "live_gpus") == 2.0);
    const cJSON *lost = json_member(plan, "lost_experts");
    assert_true(cJSON_GetArraySize(lost) == 1);
    assert_true(cJSON_GetArraySize(json_member(cJSON_GetArrayItem(lost, 0), "experts")) >= 1);
    cJSON_Delete(plan);
    run_result result = run_line(*state, again);
    assert_contains(result.out, "1 GPU is dead");
    assert_contains(result.out, " lost the last copy with the dead GPUs");
    assert_contains(result.out, "A single GPU's failure would lose up to 2 experts");
    run_release(&result);
    snprintf(line, sizeof(line), "%s--lost-experts fail", again);
    result = run_line(*state, line);
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "layer 0: with the dead GPUs the last copies of experts ");
    run_release(&result);
}

static void limits_of_replicas_are_kept(void **state)
{
    cJSON *plan = run_json(
        *state,
        "plan --load log.jsonl --gpus 4 --slots 32 --dense-layers none --min-replicas 2 --json", 0);
    assert_true(json_number(plan, "lost_by_single_failure") == 0.0);
    cJSON_Delete(plan);
    run_result result = run_line(*state, PLAN " --min-replicas 2");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "2 replicas of each of 16 experts need 32 slots, there are 24");
    run_release(&result);
}

/* One expert has nearly all tokens: the classical algorithm gives it more replicas than GPUs. */
static void invalid_plan_is_shown_but_written_only_when_repaired(void **state)
{
#define SKEWED "plan --load skewed --gpus 2 --slots 6 --dense-layers none --algorithm eplb"
    test_write_text(test_join(*state, "skewed").text,
                    "{\"step\":0,\"layer\":0,\"counts\":[100,1,1,1]}\n");
    run_result shown = run_line(*state, SKEWED);
    assert_int_equal(shown.exit_code, 0);
    assert_contains(last_line(shown.out), "INVALID: layer 0: expert 0 twice on GPU");
    assert_contains(shown.out, "--repair");
    run_release(&shown);
    cJSON *plan = run_json(*state, SKEWED " --json", 0);
    assert_true(cJSON_IsFalse(json_member(plan, "valid")));
    cJSON_Delete(plan);

    run_result refused = run_line(*state, SKEWED " --out map");
    assert_int_equal(refused.exit_code, 1);
    assert_contains(refused.err, "--repair");
    assert_int_equal(refused.out_size, 0);
    assert_false(has_file(*state, "map"));
    run_release(&refused);

    cJSON *mended = run_json(*state, SKEWED " --repair --out map --json", 0);
    assert_true(cJSON_IsTrue(json_member(mended, "valid")));
    assert_true(json_number(mended, "repaired_slots") >= 1.0);
    /* Mended, both GPUs hold expert 0 and two of the others, one of which is on both. */
    double after = json_number(json_member(mended, "imbalance_after"), "worst");
    assert_true(after >= 1.0 && after < 1.02);
    cJSON_Delete(mended);
    run_ok(*state, "validate map --gpus 2 --experts 4");
#undef SKEWED
}

/* vllm-project/vllm#52435 */
static void slots_that_gpus_cannot_share_name_the_smallest_number_that_works(void **state)
{
    static const int cases[][2] = {{3, 2}, {12, 8}, {72, 32}};
    run_ok(*state, "synth --layers 1 --steps 1 --tokens 64 --out wide");
    for (size_t i = 0; i < 3; i++) {
        char line[128];
        char part[64];
        snprintf(line, sizeof(line), "plan --load wide --gpus %d --redundant 0", cases[i][0]);
        snprintf(part, sizeof(part), " is %d (%d redundant)", 256 + cases[i][1], cases[i][1]);
        run_result result = run_line(*state, line);
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, part);
        run_release(&result);
        snprintf(line, sizeof(line), "plan --load wide --gpus %d --redundant %d", cases[i][0],
                 cases[i][1]);
        run_ok(*state, line);
    }
}

/* sgl-project/sglang#6629 */
static void groups_that_do_not_fit_the_nodes_are_refused(void **state)
{
#define HIERARCHY "plan --load wide --gpus 24 --slots 288 --gpus-per-node 8 --algorithm eplb"
    run_ok(*state, "synth --layers 1 --steps 1 --tokens 64 --out wide");
    run_result result = run_line(*state, HIERARCHY " --groups 8");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "8 groups do not fit 3 nodes");
    run_release(&result);
    run_ok(*state, HIERARCHY);
    run_ok(*state, "plan --load wide --gpus 32 --slots 288 --gpus-per-node 8 --algorithm eplb "
                   "--groups 8");
#undef HIERARCHY
}

/* vllm-project/vllm-ascend#12154 */
static void load_without_tokens_gives_no_numbers_and_no_copies(void **state)
{
    static const char zeros[] = "{\"step\":0,\"layer\":0,\"counts\":[0,0,0,0]}\n";
    test_write_text(test_join(*state, "zeros").text, zeros);
    run_ok(*state, "plan --load zeros --gpus 2 --slots 4 --dense-layers none --out map");
    cJSON *plan = run_json(*state,
                           "plan --load zeros --gpus 2 --slots 4 --dense-layers none --current map "
                           "--json --detailed-exitcode",
                           0);
    assert_true(cJSON_IsNull(json_member(json_member(plan, "imbalance_after"), "mean")));
    assert_true(cJSON_IsNull(json_member(json_member(plan, "imbalance_before"), "worst")));
    const cJSON *row = cJSON_GetArrayItem(json_member(plan, "per_layer"), 0);
    assert_true(cJSON_IsNull(json_member(row, "imbalance_after")));
    assert_true(cJSON_IsNull(json_member(row, "lower_bound")));
    assert_true(json_number(plan, "copies") == 0.0);
    cJSON_Delete(plan);
}

static void experts_widen_a_load_whose_last_experts_got_nothing(void **state)
{
    test_write_text(test_join(*state, "short").text, "step,layer,expert,tokens\n0,0,1,5\n");
    cJSON *plan = run_json(*state, "plan --load short --experts 8 --gpus 2 --slots 8 --json", 0);
    assert_true(json_number(plan, "experts") == 8.0);
    cJSON_Delete(plan);
}

#define IN_PREPARED_DIRECTORY(test)                                                                \
    cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(IN_PREPARED_DIRECTORY(written_placement_is_valid_and_stays_in_every_format_that_is_read),
          IN_PREPARED_DIRECTORY(json_without_a_placement_in_force_has_the_contract),
          IN_PREPARED_DIRECTORY(json_layers_add_up),
          IN_PREPARED_DIRECTORY(threads_do_not_change_a_byte),
          IN_PREPARED_DIRECTORY(dash_writes_the_map_to_standard_output_and_the_table_aside),
          IN_PREPARED_DIRECTORY(the_ending_of_the_name_says_the_format),
          IN_PREPARED_DIRECTORY(full_disk_is_an_error),
          IN_PREPARED_DIRECTORY(last_line_says_what_to_do),
          IN_DIRECTORY(launch_hint_shows_plain_names_only),
          IN_PREPARED_DIRECTORY(number_of_experts_that_nothing_confirms_is_noted),
          IN_PREPARED_DIRECTORY(price_and_gain_stand_in_one_line), IN_DIRECTORY(one_is_singular),
          IN_DIRECTORY(experts_that_are_given_may_be_more_than_the_default_limit),
          IN_PREPARED_DIRECTORY(table_shows_the_worst_layers_first),
          IN_PREPARED_DIRECTORY(detailed_exitcode_is_10_when_copies_are_proposed),
          IN_DIRECTORY(fewer_slots_are_a_change_without_copies),
          IN_PREPARED_DIRECTORY(each_source_is_a_scenario),
          IN_DIRECTORY(slices_are_named_by_file_and_number),
          IN_DIRECTORY(a_single_replica_of_each_expert_is_no_news),
          IN_DIRECTORY(objective_sum_plans_the_mix),
          IN_PREPARED_DIRECTORY(steps_of_one_source_are_cut_into_slices),
          IN_DIRECTORY(experts_lost_with_dead_gpus_are_listed),
          IN_PREPARED_DIRECTORY(limits_of_replicas_are_kept),
          IN_DIRECTORY(invalid_plan_is_shown_but_written_only_when_repaired),
          IN_DIRECTORY(slots_that_gpus_cannot_share_name_the_smallest_number_that_works),
          IN_DIRECTORY(groups_that_do_not_fit_the_nodes_are_refused),
          IN_DIRECTORY(load_without_tokens_gives_no_numbers_and_no_copies),
          IN_DIRECTORY(experts_widen_a_load_whose_last_experts_got_nothing))
