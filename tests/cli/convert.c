/* SPDX-License-Identifier: MIT */
/* eplb convert: what comes out reads as what went in, or nothing comes out. */
#include "../unit/format/maps.h"
#include "run_json.h"

#define PLACES " --gpus 4 --dense-layers 0"

static bool can(const eplb_format *format, uint32_t flags)
{
    return (eplb_format_flags(format) & flags) == flags;
}

static const uint32_t both_ways = EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT;

/* The recorded map as a file named after its format. */
static void write_recorded_map(const char *directory, const eplb_format *format)
{
    eplb_placement *placement = make_recorded_placement();
    eplb_error error;
    test_path path = test_join(directory, eplb_format_name(format));
    assert_ok(eplb_placement_write(placement, NULL, path.text, format, &error), &error);
    eplb_placement_destroy(&placement);
}

static eplb_placement *read_map(const char *directory, const char *name, const eplb_format *format)
{
    eplb_read_options options;
    eplb_read_options_init(&options);
    options.format = format;
    options.gpus = GPUS;
    eplb_placement *placement;
    eplb_error error;
    test_path path = test_join(directory, name);
    assert_ok(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error), &error);
    return placement;
}

/* The same experts on the same GPUs in the same layers; a GPU's slots may be in another order. */
static void assert_same_maps(const char *directory, const char *first, const char *second,
                             const eplb_format *format)
{
    eplb_placement *a = read_map(directory, first, format);
    eplb_placement *b = read_map(directory, second, format);
    assert_int_equal(eplb_placement_layers(a), eplb_placement_layers(b));
    assert_int_equal(eplb_placement_slots(a), eplb_placement_slots(b));
    for (int32_t l = 0; l < eplb_placement_layers(a); l++) {
        int64_t copies = -1;
        assert_int_equal(eplb_placement_layer_ids(a)[l], eplb_placement_layer_ids(b)[l]);
        assert_ok(eplb_placement_copies(a, b, l, &copies, NULL), NULL);
        assert_int_equal(copies, 0);
        assert_ok(eplb_placement_copies(b, a, l, &copies, NULL), NULL);
        assert_int_equal(copies, 0);
    }
    eplb_placement_destroy(&a);
    eplb_placement_destroy(&b);
}

/* Converts one file to another format; false: that format cannot carry it. */
static bool convert_map(const char *directory, const char *from_file, const eplb_format *from,
                        const char *to_file, const eplb_format *to)
{
    char line[256];
    snprintf(line, sizeof(line), "convert %s --what placement --from %s --to %s --out %s" PLACES,
             from_file, eplb_format_name(from), eplb_format_name(to), to_file);
    run_result result = run_line(directory, line);
    bool refused = result.exit_code == 1 && strstr(result.err, "cannot carry") != NULL;
    if (!refused && result.exit_code != 0) {
        print_error("eplb %s: %s", line, result.err);
    }
    assert_true(refused || result.exit_code == 0);
    run_release(&result);
    return !refused;
}

static void every_placement_format_goes_through_every_other(void **state)
{
    int pairs = 0;
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *there = eplb_format_at(i);
        if (!can(there, both_ways)) {
            continue;
        }
        write_recorded_map(*state, there);
        for (size_t k = 0; eplb_format_at(k) != NULL; k++) {
            const eplb_format *other = eplb_format_at(k);
            const char *name = eplb_format_name(there);
            if (can(other, both_ways) && convert_map(*state, name, there, "other", other) &&
                convert_map(*state, "other", other, "back", there)) {
                assert_same_maps(*state, name, "back", there);
                pairs++;
            }
        }
    }
    assert_true(pairs >= 16); /* sglang, ascend, vllm and omni in every build */
}

/* Uneven slots: only formats that say so carry them. */
static void what_a_format_cannot_carry_is_refused(void **state)
{
    test_path ragged = test_data("format/omni_ragged.npy");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        if (!can(format, EPLB_FORMAT_WRITES_PLACEMENT)) {
            continue;
        }
        const char *arguments[] = {
            "convert",        ragged.text, "--what", "placement", "--to", eplb_format_name(format),
            "--dense-layers", "none",      "--out",  "out",       NULL};
        run_result result = run_arguments(*state, arguments);
        bool carries = can(format, EPLB_FORMAT_UNEVEN_SLOTS);
        assert_int_equal(result.exit_code, carries ? 0 : 1);
        assert_int_equal(has_file(*state, "out"), carries);
        if (carries) {
            assert_int_equal(unlink(test_join(*state, "out").text), 0);
        } else {
            assert_contains(result.err, "cannot carry layers with different numbers of slots");
        }
        run_release(&result);
    }
}

static void write_log(const char *directory, const char *name)
{
    FILE *file = fopen(test_join(directory, name).text, "wb");
    assert_non_null(file);
    fprintf(file, "step,layer,expert,tokens\n");
    for (int s = 0; s < STEPS; s++) {
        for (int l = 0; l < LAYERS; l++) {
            for (int e = 0; e < EXPERTS; e++) {
                fprintf(file, "%d,%d,%d,%.0f\n", s, l, e, recorded[s][l][e]);
            }
        }
    }
    assert_int_equal(fclose(file), 0);
}

static void compare_row(void *context, const eplb_counts_row *row)
{
    const int32_t *offset = context;
    for (int e = 0; e < EXPERTS; e++) {
        int32_t layer = row->layer - *offset;
        assert_true(row->counts[e] == (layer >= 0 ? recorded[row->step][layer][e] : 0.0));
    }
}

static void counts_go_through_every_format(void **state)
{
    write_log(*state, "log");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        if (!can(format, EPLB_FORMAT_WRITES_COUNTS | EPLB_FORMAT_READS_COUNTS)) {
            continue;
        }
        const char *name = eplb_format_name(format);
        char line[200];
        snprintf(line, sizeof(line), "convert log --to %s --dense-layers 0 --out there", name);
        run_ok(*state, line);
        int32_t first = can(format, EPLB_FORMAT_ALL_MODEL_LAYERS) ? 1 : 0;
        first = strcmp(name, "csv") == 0 || strcmp(name, "jsonl") == 0 ? 1 : first;
        eplb_read_options options = options_for(name);
        eplb_error error;
        test_path there = test_join(*state, "there");
        assert_ok(read_rows(there.text, &options, compare_row, &first, &error), &error);
        snprintf(line, sizeof(line), "convert there --from %s --to csv --out back", name);
        run_ok(*state, line);
        run_ok(*state, "convert back --what counts --to csv --out again");
        assert_true(same_files(*state, "back", "again"));
    }
}

static void several_files_are_ranks_that_are_summed(void **state)
{
    test_write_text(test_join(*state, "a").text, "{\"layer\":0,\"counts\":[1,2]}\n");
    test_write_text(test_join(*state, "b").text, "{\"layer\":0,\"counts\":[10,0.5]}\n");
    run_ok(*state, "convert a b --out sum.jsonl");
    char *text = test_read_file(test_join(*state, "sum.jsonl").text, NULL);
    assert_string_equal(text, "{\"step\":0,\"layer\":0,\"counts\":[11,2.5e+00]}\n");
    free(text);
}

static void a_name_that_parts_a_source_is_no_other_file(void **state)
{
    static const char *const names[] = {"a", "b", "c", "a=b", "b:3", "a,b"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_write_text(test_join(*state, names[i]).text, "{\"layer\":0,\"counts\":[1]}\n");
    }
    const run_refusal refusals[] = {
        {"convert a=b c --out out", 2, "'a=b' among several files"},
        {"convert c a=b --out out", 2, "'a=b' among several files"},
        {"convert c b:3 --out out", 2, "'b:3' among several files"},
        {"convert c a,b --out out", 2, "'a,b' among several files"},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        assert_true(run_is_refused(*state, &refusals[i]));
    }
    run_ok(*state, "convert ./a=b c --out some.jsonl");
    run_ok(*state, "convert b:3 c --out some.jsonl");
    run_ok(*state, "convert a,b --out one.jsonl");
}

static void what_is_not_clear_is_refused(void **state)
{
    static const run_refusal cases[] = {
        {"convert", 2, "FILE is missing"},
        {"convert log", 2, "--out FILE is missing"},
        {"convert log --list", 2, "--list goes without FILE"},
        {"convert log --out - --json", 2, "both would go to standard output"},
        {"convert log log2 --what placement --out out", 2, "a placement is one file"},
        {"convert log --to nothing --out out", 2, "--to 'nothing': not one of"},
        {"convert log --from csv --to ascend --out out", 2, "neither counts nor a placement"},
        {"convert log --what placement --to ascend --out out", 1, "no known format of placements"},
        {"convert nothing --out out", 1, "nothing: cannot open"},
        {"convert text --out out", 1, "text: the content is of no known format"},
        {"convert cube --out out", 1, "fits counts (npy) and a placement (omni)"},
        {"convert log --to sglang --out out", 1, "which layers of the model are dense"},
        {"convert sglang --to ascend --gpus 4 --out out", 1, "which layers of the model are dense"},
        {"convert ascend --to sglang --out out", 1, "which layers of the model are dense"},
        {"convert ascend --to sglang --dense-layers 4 --out out", 1, "layer 4 is not one of 4"},
        {"convert sglang --to ascend --gpus 4 --dense-layers 4 --out out", 1,
         "layer 4 is not one of 4"},
        {"convert sglang --to ascend --dense-layers 0 --out out", 2, "with --gpus N"},
        {"convert sglang --to ascend --gpus 5 --dense-layers 0 --out out", 1, "12 slots"},
        {"convert ascend --to vllm --experts 9 --out out", 1, "expert 8 has no replica"},
        {"convert empty_slot --what placement --gpus 2 --to sglang --dense-layers none --out out",
         1, "empty_slot: layer 0: slot 3 of GPU 1 is empty"},
        {"convert log --experts 9 --out out", 1, "8 counts, expected 9"},
        {"convert log --gpus 4 --out out", 2, "--gpus is for placements"},
        {"convert log --out out.npz", 2, "--out 'out.npz': counts are not written as .npz: --to"},
        {"convert log --out out.yaml", 2, "counts are not written as .yaml: --to FORMAT says as"},
        {"convert sglang --gpus 4 --dense-layers 0 --out out.csv", 2,
         "--out 'out.csv': placements are not written as .csv: --to FORMAT says as what"},
        {"convert log --out out.csv.gz", 2, "files are not compressed: give --out - and pipe it"},
        {"convert log --to csv --out out.zst", 2, "--out 'out.zst': files are not compressed"},
    };
    write_log(*state, "log.csv");
    write_log(*state, "log2");
    run_ok(*state, "convert log.csv --to jsonl --out log");
    run_ok(*state, "convert log --to npy --out cube");
    test_write_text(test_join(*state, "text").text, "no format at all\n");
    test_write_text(test_join(*state, "empty_slot").text, "[[0,1,1,-1]]");
    write_recorded_map(*state, eplb_format_find("sglang"));
    write_recorded_map(*state, eplb_format_find("ascend"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(run_is_refused(*state, &cases[i]));
    }
}

static void counts_without_a_layer_give_its_number_to_none(void **state)
{
    static const run_refusal cases[] = {
        {"convert gap --to npy --out out", 1, "gap: no layer 3, and nothing says that it is dense"},
        {"convert gap --to sglang --out out", 1, "no layer 3, and nothing says that it is dense"},
        {"convert gap --to npy --dense-layers 0-1 --out out", 1, "no layer 3, and it is not dense"},
        {"convert gap --to sglang --dense-layers 0 --out out", 1,
         "no layer 1, and it is not dense"},
    };
    test_write_text(test_join(*state, "gap").text, "step,layer,expert,tokens\n0,2,0,1\n0,4,0,1\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(run_is_refused(*state, &cases[i]));
    }
    run_ok(*state, "convert gap --to npy --dense-layers 0,1,3 --out out");
    run_ok(*state, "convert gap --to jsonl --out out");
}

static void layers_that_have_rows_are_not_dense(void **state)
{
    write_recorded_map(*state, eplb_format_find("sglang"));
    run_ok(*state, "convert sglang --gpus 4 --dense-layers 0 --to trtllm --out trtllm.yaml");
#ifdef HAVE_YAML
    static const run_refusal cases[] = {
        {"convert trtllm.yaml --gpus 4 --dense-layers 1 --to sglang --out out", 1,
         "layer 1 has a row, so it is not dense"},
    };
    assert_true(run_is_refused(*state, &cases[0]));
#endif
}

/* Their rows would get the numbers of others, or stand for dense layers. */
static void maps_without_all_moe_layers_are_refused(void **state)
{
    static const run_refusal cases[] = {
        {"convert part --to vllm --gpus 2 --out out", 1, "layers are missing between others"},
        {"convert part --to sglang --gpus 2 --out out", 1, "layers are missing between others"},
        {"convert part --to vllm --gpus 2 --dense-layers 0 --out out", 1,
         "part: layer 2 has no row, and is not dense"},
        {"convert part --to sglang --gpus 2 --dense-layers 0 --out out", 1, "layer 2 has no row"},
        {"convert front --from trtllm --to ascend --gpus 2 --model config.json --out out", 1,
         "front: layer 4 has no row, and is not dense"},
    };
    test_write_text(test_join(*state, "part").text, "initial_global_assignments:\n"
                                                    "  1: [0, 1]\n"
                                                    "  3: [1, 0]\n"
                                                    "layer_updates_per_iter: 0\n"
                                                    "num_slots: 2\n");
    test_write_text(test_join(*state, "front").text,
                    "{num_slots: 2, layer_updates_per_iter: 0, initial_global_assignments: "
                    "{1: [0, 1], 2: [0, 1], 3: [0, 1]}}");
    test_write_text(test_join(*state, "config.json").text,
                    "{\"num_hidden_layers\":5,\"n_routed_experts\":2,\"num_experts_per_tok\":1,"
                    "\"first_k_dense_replace\":1}");
    if (!can(eplb_format_find("trtllm"), EPLB_FORMAT_READS_PLACEMENT)) {
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(run_is_refused(*state, &cases[i]));
    }
    run_ok(*state, "convert part --to vllm --gpus 2 --dense-layers 0,2 --out out");
    run_ok(*state, "convert part --to trtllm --gpus 2 --dense-layers 0 --out out");
}

static void the_ending_of_the_name_says_the_format(void **state)
{
    static const char *const lines[][2] = {
        {"convert log --out x.csv", "csv"},
        {"convert log --out x.jsonl", "jsonl"},
        {"convert log --out x.npy", "npy"},
        {"convert log --dense-layers none --out x.json", "sglang"},
        {"convert log --out x", "jsonl"},
        {"convert ascend --dense-layers none --out x.json", "sglang"},
        {"convert ascend --dense-layers none --out x.yaml", "trtllm"},
        {"convert ascend --out x.npy", "omni"},
        {"convert ascend --dense-layers none --out x", "sglang"},
        {"convert ascend --to vllm --out x.json", "vllm"},
    };
    write_log(*state, "log");
    write_recorded_map(*state, eplb_format_find("ascend"));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char line[200];
        snprintf(line, sizeof(line), "%s --json", lines[i][0]);
        cJSON *document = run_json(*state, line, 0);
        assert_string_equal(json_text(document, "to"), lines[i][1]);
        cJSON_Delete(document);
    }
}

/* Which content alone does not say: counts have no YAML, and placements no CSV. */
static void the_ending_of_the_name_says_what_is_read(void **state)
{
    static const char *const lines[][2] = {
        {"convert list --out x.csv", "counts"},
        {"convert list --out x.jsonl", "counts"},
        {"convert list --gpus 2 --dense-layers none --out x.yaml", "placement"},
    };
    static const run_refusal open = {"convert list --out out.json", 1,
                                     "fits counts (lmdeploy) and a placement (vllm): say which"};
    test_write_text(test_join(*state, "list").text, "[[0,1,2,0],[2,1,0,1]]");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char line[200];
        snprintf(line, sizeof(line), "%s --json", lines[i][0]);
        cJSON *document = run_json(*state, line, 0);
        assert_string_equal(json_text(document, "what"), lines[i][1]);
        cJSON_Delete(document);
    }
    assert_true(run_is_refused(*state, &open));
}

static void the_last_line_says_what_loads_the_file(void **state)
{
    static const char *const lines[][2] = {
        {"convert log --out x.csv", "\nRead it with: eplb plan --load x.csv\n"},
        {"convert log --dense-layers 0 --out x.json", ": --init-expert-location x.json\n"},
        {"convert ascend --dense-layers 0 --out y.json",
         "--init-expert-location y.json --ep-num-redundant-experts 4\n"},
    };
    write_log(*state, "log");
    write_recorded_map(*state, eplb_format_find("ascend"));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line(*state, lines[i][0]);
        assert_int_equal(result.exit_code, 0);
        assert_contains(result.out, lines[i][1]);
        run_release(&result);
    }
}

static void standard_output_gets_the_file_and_nothing_else(void **state)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    write_log(*state, "log");
    run_ok(*state, "convert log --to csv --out file");
    char *text = test_read_file(test_join(*state, "file").text, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char line[100];
        snprintf(line, sizeof(line), "convert log --to csv --out %s", names[i]);
        run_result result = run_line(*state, line);
        assert_string_equal(result.out, text);
        assert_contains(result.err, "Counts to csv: 6 steps of 3 layers of 8 experts, 18432");
        run_release(&result);
    }
    free(text);
}

static void output_that_does_not_get_out_fails(void **state)
{
    write_log(*state, "log");
    run_result result = run_line_into(*state, "convert log --to csv --out -", "/dev/full");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "standard output: cannot write");
    run_release(&result);
    result = run_line(*state, "convert log --to csv --out none/out");
    assert_int_equal(result.exit_code, 1);
    assert_contains(result.err, "none/out: cannot");
    run_release(&result);
}

/* What is read is what is replaced. */
static void a_file_may_become_itself(void **state)
{
    write_log(*state, "log");
    run_ok(*state, "convert log --to jsonl --out copy");
    run_ok(*state, "convert log --to jsonl --out log");
    assert_true(same_files(*state, "log", "copy"));
    assert_int_equal(count_files(*state), 2);
}

static void a_model_says_its_dense_layers(void **state)
{
    test_write_text(test_join(*state, "config.json").text,
                    "{\"num_hidden_layers\":4,\"n_routed_experts\":8,"
                    "\"first_k_dense_replace\":1,\"num_experts_per_tok\":2}");
    write_recorded_map(*state, eplb_format_find("sglang"));
    write_recorded_map(*state, eplb_format_find("ascend"));
    run_ok(*state, "convert ascend --model config.json --to sglang --out back");
    assert_same_maps(*state, "sglang", "back", eplb_format_find("sglang"));
    test_write_text(test_join(*state, "config.json").text,
                    "{\"num_hidden_layers\":5,\"n_routed_experts\":8,"
                    "\"first_k_dense_replace\":1,\"num_experts_per_tok\":2}");
    static const run_refusal wrong = {"convert ascend --model config.json --to sglang --out out", 1,
                                      "of a model with 4 layers, but --model says 5"};
    assert_true(run_is_refused(*state, &wrong));
}

static void the_list_fits_a_terminal(void **state)
{
    run_result result = run_line(*state, "convert --list");
    for (const char *text = result.out; *text != '\0';) {
        size_t length = strcspn(text, "\n");
        assert_true(length <= 100);
        text += length + 1;
    }
    assert_contains(result.out, "\ncsv          read, write -           any           a header");
    assert_contains(result.out,
                    "\nvllm         -           read, write vLLM, open    a JSON list\n");
    run_release(&result);
}

static void the_list_has_every_format(void **state)
{
    run_result result = run_line(*state, "convert --list");
    assert_int_equal(result.exit_code, 0);
    cJSON *document = run_json(*state, "convert --list --json", 0);
    const cJSON *list = json_member(document, "formats");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        assert_contains(result.out, eplb_format_name(format));
        assert_contains(result.out, eplb_format_change(format));
        const cJSON *entry = cJSON_GetArrayItem(list, (int)i);
        assert_string_equal(json_text(entry, "name"), eplb_format_name(format));
        assert_string_equal(json_text(entry, "state"),
                            can(format, EPLB_FORMAT_OPEN) ? "open" : "released");
        assert_int_equal(cJSON_IsTrue(json_member(json_member(entry, "counts"), "write")),
                         can(format, EPLB_FORMAT_WRITES_COUNTS));
        assert_int_equal(cJSON_IsTrue(json_member(json_member(entry, "placement"), "read")),
                         can(format, EPLB_FORMAT_READS_PLACEMENT));
    }
    cJSON_Delete(document);
    run_release(&result);
}

TEST_MAIN(IN_DIRECTORY(every_placement_format_goes_through_every_other),
          IN_DIRECTORY(what_a_format_cannot_carry_is_refused),
          IN_DIRECTORY(counts_go_through_every_format),
          IN_DIRECTORY(several_files_are_ranks_that_are_summed),
          IN_DIRECTORY(a_name_that_parts_a_source_is_no_other_file),
          IN_DIRECTORY(counts_without_a_layer_give_its_number_to_none),
          IN_DIRECTORY(what_is_not_clear_is_refused),
          IN_DIRECTORY(layers_that_have_rows_are_not_dense),
          IN_DIRECTORY(maps_without_all_moe_layers_are_refused),
          IN_DIRECTORY(the_ending_of_the_name_says_the_format),
          IN_DIRECTORY(the_ending_of_the_name_says_what_is_read),
          IN_DIRECTORY(the_last_line_says_what_loads_the_file),
          IN_DIRECTORY(standard_output_gets_the_file_and_nothing_else),
          IN_DIRECTORY(output_that_does_not_get_out_fails), IN_DIRECTORY(a_file_may_become_itself),
          IN_DIRECTORY(a_model_says_its_dense_layers), IN_DIRECTORY(the_list_fits_a_terminal),
          IN_DIRECTORY(the_list_has_every_format))
