/* SPDX-License-Identifier: MIT */
/* vLLM's recordings and mappings that must be refused: each with its status and the place its
 * message names. */
#include "bad.h"

#define OVERFLOW EPLB_ERROR_OVERFLOW
#define UNSUPPORTED EPLB_ERROR_UNSUPPORTED

/* A line of statistics: version, ranks, step, load and map as given. */
#define LINE(version, ranks, step, load, map)                                                      \
    "{\"record_type\":\"eplb_load_stats\",\"version\":" version ",\"num_ranks\":" ranks            \
    ",\"step\":" step ",\"expert_load\":" load ",\"p2l_map\":" map "}\n"
#define STEP(load, map) LINE("1", "2", "3", load, map)
#define GOOD STEP("[[1,2],[3,4]]", "[[0,1],[1,0]]")

/* Found by readers of counts and of placements alike. */
static const bad_file stats[] = {
    {"vllm_stats", "\n \n", PARSE, "f:3: no record 'eplb_load_stats' in the file"},
    {"vllm_stats", "{\"record_type\":\"eplb_note\"}\n", PARSE, "f:2: no record 'eplb_load_stats'"},
    {"vllm_stats", "[1]\n", PARSE, "f:1: expected '{', found '['"},
    {"vllm_stats", "{}\n", PARSE, "f:1: no key 'record_type'"},
    {"vllm_stats", "{\"record_type\":7}\n", PARSE, "f:1: expected a string, found '7'"},
    {"vllm_stats", GOOD "{\"record_type\":\"a\"} 7\n", PARSE,
     "f:2: expected the end of the line, found '7'"},
    {"", GOOD "{\"step\":1}\n", PARSE, "f:2: step 1: no key 'record_type'"},
    {"", GOOD "{\"record_type\":\"a\",\"record_type\":\"a\"}\n", PARSE, "second key 'record_type'"},
    {"", GOOD "{\"p2l_map\":[[0,1]],\"record_type\":\"a\"}\n", PARSE,
     "f:2: 'expert_load' or 'p2l_map' in a record that is not 'eplb_load_stats'"},
    {"", GOOD "\n{\"record_type\":\"eplb_load_stats\"}\n", PARSE, "f:3: no key 'version'"},
    {"", "{\"record_type\":\"eplb_load_stats\",\"version\":1}\n", PARSE, "f:1: no key 'num_ranks'"},
    {"", "{\"record_type\":\"eplb_load_stats\",\"version\":1,\"num_ranks\":1}\n", PARSE,
     "f:1: no key 'step'"},
    {"", "{\"record_type\":\"eplb_load_stats\",\"version\":1,\"num_ranks\":1,\"step\":0}\n", PARSE,
     "f:1: step 0: no key 'expert_load'"},
    {"",
     "{\"record_type\":\"eplb_load_stats\",\"version\":1,\"num_ranks\":1,\"step\":0,"
     "\"expert_load\":[[1]]}\n",
     PARSE, "f:1: step 0: no key 'p2l_map'"},
    {"", LINE("2", "1", "0", "[[1,2]]", "[[0,1]]"), UNSUPPORTED,
     "f:1: step 0: version 2, only 1 is known"},
    {"", LINE("1.0", "1", "0", "[[1,2]]", "[[0,1]]"), PARSE, "f:1: version 1.0 is not an integer"},
    {"", LINE("1", "0", "0", "[[1,2]]", "[[0,1]]"), DATA,
     "f:1: step 0: 2 slots cannot be spread evenly over 0 ranks"},
    {"", LINE("1", "3", "0", "[[1,2]]", "[[0,1]]"), DATA,
     "f:1: step 0: 2 slots cannot be spread evenly over 3 ranks"},
    {"", LINE("1", "-2", "0", "[[1,2]]", "[[0,1]]"), DATA, "f:1: num_ranks -2 is negative"},
    {"", LINE("1", "65537", "0", "[[1,2]]", "[[0,1]]"), LIMIT,
     "f:1: num_ranks 65537 is above the limit 65536"},
    {"", LINE("1", "2", "-1", "[[1,2]]", "[[0,1]]"), DATA, "f:1: step -1 is negative"},
    {"", LINE("1", "2", "1.5", "[[1,2]]", "[[0,1]]"), PARSE, "f:1: step 1.5 is not an integer"},
    {"", LINE("1", "2", "9007199254740993", "[[1,2]]", "[[0,1]]"), OVERFLOW,
     "f:1: step 9007199254740993 is above 2^53"},
    {"", LINE("1", "2", "1,\"step\":2", "[[1,2]]", "[[0,1]]"), PARSE, "second key 'step'"},
    {"", STEP("[[1,2]],\"expert_load\":[[1,2]]", "[[0,1]]"), PARSE,
     "f:1: step 3: second key 'expert_load'"},
    {"", STEP("[[1,2]]", "[[0,1]],\"p2l_map\":[[0,1]]"), PARSE, "second key 'p2l_map'"},
    {"", STEP("[[1,2]]", "7"), PARSE, "f:1: step 3: expected '[': a list of layers, found '7'"},
    {"", STEP("[[1,2]]", "[]"), PARSE, "f:1: step 3: layer 0: expected '[': a list of slots"},
    {"", STEP("[[1,2]]", "[0,1]"), PARSE, "layer 0: expected '[': a list of slots, found '0'"},
    {"", STEP("[[1,2]]", "[[]]"), PARSE, "f:1: step 3: layer 0: 0 slots, expected 1"},
    {"", STEP("[[1,2],[1,2]]", "[[0,1],[0]]"), PARSE, "layer 1: 1 slots, expected 2"},
    {"", STEP("[[1,2]]", "[[0,\"1\"]]"), PARSE, "layer 0: slot 1: expected a number, found '\"'"},
    {"", STEP("[[1,2]]", "[[0,null]]"), PARSE, "layer 0: slot 1: null is not a number"},
    {"", STEP("[[1,2]]", "[[0.5,1]]"), PARSE, "layer 0: slot 0: expert 0.5 not in 0..5"},
    {"", STEP("[[1,2]]", "[[0,-2]]"), DATA, "layer 0: slot 1: -2 is negative"},
    {"", STEP("[[1,2]]", "[[0,-10]]"), DATA, "layer 0: slot 1: -10 is negative"},
    {"", STEP("[[1,2]]", "[[0,6]]"), LIMIT, "layer 0: slot 1: expert 6 not in 0..5 (or -1"},
    {"", STEP("[[1,2]]", "[[0,NaN]]"), DATA, "layer 0: slot 1: NaN is not a count"},
    {"", STEP("[[1,2]]", "[[0,1e400]]"), OVERFLOW, "layer 0: slot 1: 1e400 is too large"},
    {"", STEP("[[0,0]]", "[[-1,-1]]"), DATA, "f:1: step 3: 'p2l_map': every slot is empty"},
    {"", STEP("[[1,2]]", "[[0,1]"), PARSE, "f:1: step 3: layer 0: expected ',' or ']', found '}'"},
    {"", STEP("[[1,2]]", "[[0,1]]}"), PARSE, "f:1: step 3: expected the end of the line, found"},
    {"", GOOD STEP("[[1,2]]", "[[0,1]]"), PARSE, "f:2: step 3: 1 layers, expected 2"},
    {"", GOOD STEP("[[1,2],[3,4]]", "[[0,1],[2,0]]"), DATA,
     "f:2: step 3: layer 1: slot 0: expert 2 not in 0..1"},
    {"", STEP("[[1],[1],[1],[1],[1]]", "[[0],[0],[0],[0],[0]]"), LIMIT,
     "layer 4: more than 4 layers"},
    {"", STEP("[[1,2]]", "[[0,1,2,3,4,5,0,1,2]]"), LIMIT, "layer 0: more than 8 slots in a row"},
};

/* Only readers of counts look at the loads. */
static const bad_file stats_loads[] = {
    {"", STEP("[[1,2]", "[[0,1]]"), PARSE,
     "f:1: step 3: layer 1: expected '[': a list of slots, found '\"'"},
    {"", STEP("[[1,2,3]]", "[[0,1]]"), PARSE,
     "f:1: step 3: 1 layers of 3 slots in 'expert_load', but 1 of 2 in 'p2l_map'"},
    {"", STEP("[[1,2],[3,4]]", "[[0,1]]"), PARSE,
     "2 layers of 2 slots in 'expert_load', but 1 of 2"},
    {"", GOOD STEP("[[1,2],[3,4,5]]", "[[0,1],[1,0]]"), PARSE,
     "f:2: step 3: layer 1: 3 slots, expected 2"},
    {"", STEP("[[1,-2]]", "[[0,1]]"), DATA, "f:1: step 3: layer 0: slot 1: -2 is negative"},
    {"", STEP("[[1,-1]]", "[[0,1]]"), DATA, "f:1: step 3: layer 0: slot 1: -1 is negative"},
    {"", STEP("[[NaN,2]]", "[[0,1]]"), DATA, "layer 0: slot 0: NaN is not a count"},
    {"", STEP("[[1,1e400]]", "[[0,1]]"), OVERFLOW, "layer 0: slot 1: 1e400 is too large"},
    {"", STEP("[[1,9007199254740993]]", "[[0,1]]"), OVERFLOW, "9007199254740993 is above 2^53"},
    {"", STEP("[[1,\"2\"]]", "[[0,1]]"), PARSE, "layer 0: slot 1: expected a number"},
    {"", STEP("[[1,2,3,4,5,6,7,8,9]]", "[[0,1]]"), LIMIT, "layer 0: more than 8 counts in a row"},
    {"", STEP("[[1,2],[0,4]]", "[[0,1],[0,-1]]"), DATA,
     "f:1: step 3: layer 1: slot 1: 4 tokens, but the map says that it is empty"},
    {"", STEP("[[1e308,1e308]]", "[[0,0]]"), OVERFLOW,
     "f:1: step 3: layer 0: expert 0: the sum of its counts is too large"},
};

#define AT(step) LINE("1", "2", step, "[[1,2]]", "[[0,1]]")
#define JOINED                                                                                     \
    "steps ascend in the log of one run: give logs that were joined as files of their own"

/* Their last map is a placement all the same. */
static const bad_file stats_orders[] = {
    {"", AT("3") AT("3"), DATA, "f:2: step 3: comes after step 3: " JOINED},
    {"", AT("0") AT("9") "\n" AT("8"), DATA, "f:4: step 8: comes after step 9: " JOINED},
    {"", AT("3") "{\"record_type\":\"a\",\"step\":2}\n" AT("3"), DATA,
     "f:3: step 3: comes after step 3: " JOINED},
};

#define SNAPSHOT(step, load, map)                                                                  \
    "{\"step\":" step ",\"window_expert_load\":[[9]],\"latest_expert_load\":" load                 \
    ",\"physical_to_logical_map\":" map "}"
#define DUMP(metadata, snapshots) "{\"metadata\":{" metadata "},\"snapshots\":[" snapshots "]}"
#define SNAP SNAPSHOT("7", "[[1,2],[3,4]]", "[[0,1],[1,0]]")

static const bad_file dump[] = {
    {"vllm_dump", "[]", PARSE, "f:1:1: expected '{', found '['"},
    {"vllm_dump", "{}", PARSE, "f:1:2: no key 'snapshots'"},
    {"vllm_dump", "{\"metadata\":{}}", PARSE, "f:1:15: no key 'snapshots'"},
    {"", "{\"snapshots\":{}}", PARSE, "f:1:14: expected '[': a list of snapshots, found '{'"},
    {"", "{\"snapshots\":[]}", PARSE, "f:1:15: no snapshots in the file"},
    {"", "{\"snapshots\":[7]}", PARSE, "f:1:15: expected '{': a snapshot, found '7'"},
    {"", "{\"snapshots\":[" SNAP ",]}", PARSE, "expected '{': a snapshot, found ']'"},
    {"", "{\"snapshots\":[" SNAP "],\"snapshots\":[]}", PARSE, "second key 'snapshots'"},
    {"", "{\"snapshots\":[" SNAP "],\"snapshots\":[" SNAP "]}", PARSE, "second key 'snapshots'"},
    {"", "{\"snapshots\":[" SNAP "]", PARSE, "expected ',' or '}', found the end of the file"},
    {"", "{\"snapshots\":[" SNAP, PARSE, "expected ',' or ']', found the end of the file"},
    {"", "{\"snapshots\":[" SNAP "]}x", PARSE, "expected the end of the file, found 'x'"},
    {"", "{\"metadata\":7,\"snapshots\":[" SNAP "]}", PARSE,
     "expected '{': the metadata, found '7'"},
    {"", "{\"metadata\":{},\"metadata\":{},\"snapshots\":[" SNAP "]}", PARSE,
     "second key 'metadata'"},
    {"", DUMP("\"world_size\":2,\"world_size\":2", SNAP), PARSE, "second key 'world_size'"},
    {"", DUMP("\"world_size\":\"2\"", SNAP), PARSE, "f:1:27: expected a number, found '\"'"},
    {"", DUMP("\"world_size\":0", SNAP), PARSE, "f:1:27: world_size is 0"},
    {"", DUMP("\"world_size\":3", SNAP), DATA, "spread evenly over a world_size of 3"},
    {"", DUMP("\"num_moe_layers\":3", SNAP), DATA,
     "step 7: 2 in the snapshots, but num_moe_layers is 3"},
    {"", DUMP("\"num_physical_experts\":4", SNAP), DATA,
     "step 7: 2 in the snapshots, but num_physical_experts is 4"},
    {"", DUMP("\"num_logical_experts\":0", SNAP), PARSE, "num_logical_experts is 0"},
    {"", DUMP("\"num_logical_experts\":7", SNAP), LIMIT, "num_logical_experts 7 not in 1..6"},
    {"", DUMP("\"num_logical_experts\":1", SNAP), DATA,
     "step 7: layer 0: slot 1: expert 1 not in 0..0"},
    {"", "{\"snapshots\":[" SNAP "],\"metadata\":{\"num_logical_experts\":3}}", DATA,
     "2 in the snapshots, but num_logical_experts is 3"},
    {"", "{\"snapshots\":[" SNAP "],\"metadata\":{\"num_moe_layers\":3}}", DATA,
     "2 in the snapshots, but num_moe_layers is 3"},
    {"", DUMP("", "{\"latest_expert_load\":[[1]],\"physical_to_logical_map\":[[0]]}"), PARSE,
     "no key 'step'"},
    {"", DUMP("", "{\"step\":1,\"physical_to_logical_map\":[[0]]}"), PARSE,
     "step 1: no key 'latest_expert_load'"},
    {"", DUMP("", "{\"step\":1,\"latest_expert_load\":[[1]]}"), PARSE,
     "step 1: no key 'physical_to_logical_map'"},
    {"", DUMP("", SNAP ",{\"step\":1}"), PARSE, "step 1: no key 'latest_expert_load'"},
    {"", DUMP("", SNAP "," SNAPSHOT("8", "[[1,2]]", "[[0,1]]")), PARSE,
     "step 8: 1 layers, expected 2"},
    {"", DUMP("", SNAPSHOT("8", "[[1,2]]", "[[0,-3]]")), DATA, "step 8: layer 0: slot 1: -3 is"},
    {"", DUMP("", "{\"step\":1,\"step\":1}"), PARSE, "step 1: second key 'step'"},
};

static const bad_file dump_loads[] = {
    {"", DUMP("", SNAPSHOT("8", "[[1,2,3]]", "[[0,1]]")), PARSE,
     "step 8: 1 layers of 3 slots in 'latest_expert_load', but 1 of 2 in "
     "'physical_to_logical_map'"},
    {"", DUMP("", SNAP ",\n" SNAPSHOT("8", "[[1,2],[3,-4]]", "[[0,1],[0,1]]")), DATA,
     "f:2:69: step 8: layer 1: slot 1: -4 is negative"},
    {"", DUMP("", SNAPSHOT("8", "[[1,2]]", "[[0,-1]]")), DATA,
     "step 8: layer 0: slot 1: 2 tokens, but the map says that it is empty"},
};

static const bad_file dump_orders[] = {
    {"", DUMP("", SNAP "," SNAP), DATA, "step 7: comes after step 7: " JOINED},
    {"", DUMP("", SNAPSHOT("9", "[[1,2]]", "[[0,1]]") "," SNAPSHOT("8", "[[1,2]]", "[[0,1]]")),
     DATA, "step 8: comes after step 9: " JOINED},
};

#define MAPPING(slots, redundant, layers)                                                          \
    "{\"record_type\":\"eplb_initial_mapping\",\"version\":1,\"num_slots\":" slots                 \
    ",\"num_redundant_experts\":" redundant ",\"initial_global_assignments\":{" layers "}}\n"

static const bad_file mapping[] = {
    {"vllm_mapping", "[]", PARSE, "f: the document is not an object"},
    {"vllm_mapping", "{}", PARSE, "f: the document has no key 'record_type'"},
    {"vllm_mapping", "{\"record_type\":1}", PARSE,
     "f: record_type 'no string', expected 'eplb_init"},
    {"vllm_mapping", "{\"record_type\":\"eplb_load_stats\"}", PARSE,
     "f: record_type 'eplb_load_stats', expected 'eplb_initial_mapping'"},
    {"", "{\"record_type\":\"eplb_initial_mapping\"}", PARSE, "no key 'version'"},
    {"", "{\"record_type\":\"eplb_initial_mapping\",\"version\":2}", UNSUPPORTED,
     "f: version 2, only 1 is known"},
    {"", "{\"record_type\":\"eplb_initial_mapping\",\"version\":1}", PARSE, "no key 'num_slots'"},
    {"", "{\"record_type\":\"eplb_initial_mapping\",\"version\":1,\"num_slots\":2}", PARSE,
     "no key 'num_redundant_experts'"},
    {"",
     "{\"record_type\":\"eplb_initial_mapping\",\"version\":1,\"num_slots\":2,"
     "\"num_redundant_experts\":0}",
     PARSE, "no key 'initial_global_assignments'"},
    {"", "{\"initial_global_assignments\":[]}", PARSE, "no key 'record_type'"},
    {"", MAPPING("0", "0", "\"0\":[]"), PARSE,
     "f: num_redundant_experts 0 not in 0..num_slots - 1, which is -1"},
    {"", MAPPING("2", "2", "\"0\":[0,1]"), PARSE, "f: num_redundant_experts 2 not in 0.."},
    {"", MAPPING("2", "-1", "\"0\":[0,1]"), PARSE, "f: num_redundant_experts -1 not in 0.."},
    {"", MAPPING("2.5", "0", "\"0\":[0,1]"), PARSE, "'num_slots' is not an integer of 32 bits"},
    {"", MAPPING("1e400", "0", "\"0\":[0,1]"), PARSE, "'num_slots' is not an integer of 32 bits"},
    {"", MAPPING("2", "0", ""), PARSE, "f: 0 layers of 2 slots: nothing to read"},
    {"", MAPPING("74", "0", "\"0\":[0,1]"), PARSE,
     "f: layer '0': expected a list of 74 slots, as num_slots says"},
    {"", MAPPING("2", "0", "\"0\":[0,1],\"1\":[0]"), PARSE, "f: layer '1': expected a list of 2"},
    {"", MAPPING("2", "0", "\"0\":7"), PARSE, "f: layer '0': expected a list of 2 slots"},
    {"", MAPPING("2", "0", "\"1\":[0,1]"), PARSE, "f: layer '1' among 1: MoE layers are \"0\" to"},
    {"", MAPPING("2", "0", "\"0\":[0,1],\"2\":[0,1]"), PARSE, "f: layer '2' among 2"},
    {"", MAPPING("2", "0", "\"0\":[0,1],\"0\":[0,1]"), PARSE, "f: layer 0 is listed twice"},
    {"", MAPPING("2", "0", "\"0\":[0,1],\"01\":[0,1]"), PARSE, "f: layer '01' among 2"},
    {"", MAPPING("2", "0", "\"\":[0,1]"), PARSE, "f: layer '' among 1"},
    {"", MAPPING("2", "0", "\"-0\":[0,1]"), PARSE, "f: layer '-0' among 1"},
    {"", MAPPING("2", "0", "\"0 \":[0,1]"), PARSE, "f: layer '0 ' among 1"},
    {"", MAPPING("2", "0", "\"4294967296\":[0,1]"), PARSE, "f: layer '4294967296' among 1"},
    {"", MAPPING("2", "0", "\"0\\u0000\":[0,1]"), PARSE, "a string has U+0000"},
    {"", MAPPING("2", "0", "\"0\":[0,null]"), PARSE, "f: layer 0: slot 1 is not an integer"},
    {"", MAPPING("2", "0", "\"0\":[0,-2]"), DATA, "f: layer 0: slot 1: expert -2 not in 0..5"},
    {"", MAPPING("2", "1", "\"0\":[0,1]"), DATA,
     "f: layer 0: slot 1: expert 1, but num_slots - num_redundant_experts is 1"},
    {"", MAPPING("9", "3", "\"0\":[0,1,2,3,4,5,0,1,2]"), LIMIT, "f: 1 layers of 9 slots, limits"},
    {"", MAPPING("2", "0", "\"0\":[0,1]") "{}", PARSE, "f:2:1: expected the end of the file"},
};

static void bad_statistics_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(stats), read_bad_counts);
    assert_all_refused(*state, ALL_OF(stats), read_bad_placement);
    assert_all_refused(*state, ALL_OF(stats_loads), read_bad_counts);
}

static void bad_dumps_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(dump), read_bad_counts);
    assert_all_refused(*state, ALL_OF(dump), read_bad_placement);
    assert_all_refused(*state, ALL_OF(dump_loads), read_bad_counts);
}

static void assert_placements_are_read(const char *directory, const bad_file *files, size_t count)
{
    test_path path = test_join(directory, "f");
    for (size_t i = 0; i < count; i++) {
        eplb_error error;
        test_write_text(path.text, files[i].content);
        assert_ok(read_bad_placement(path.text, files[i].format, &error), &error);
    }
}

/* A log that an engine went on with after a restart, or those of several: their sum is of no
 * step. */
static void steps_that_do_not_ascend_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(stats_orders), read_bad_counts);
    assert_all_refused(*state, ALL_OF(dump_orders), read_bad_counts);
    assert_placements_are_read(*state, ALL_OF(stats_orders));
    assert_placements_are_read(*state, ALL_OF(dump_orders));
}

static void bad_mappings_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(mapping), read_bad_placement);
}

/* More than a gigabyte, if the other layers were believed to be as long: that would be refused as
 * out of memory. */
static void memory_is_for_slots_that_are_there(void **state)
{
    enum { LAYERS = 1024, SLOTS = 300000 };
    test_path path = test_join(*state, "f");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    fprintf(file, "[[0");
    for (int s = 1; s < SLOTS; s++) {
        fprintf(file, ",0");
    }
    for (int l = 1; l < LAYERS; l++) {
        fprintf(file, "],[1");
    }
    fprintf(file, "]]\n");
    assert_int_equal(fclose(file), 0);
    eplb_read_options options = options_for("vllm");
    eplb_error error;
    assert_status(read_map(path.text, &options, &error), PARSE, &error);
    assert_contains(error.message, "f: layer 1: 1 slots, expected 300000");

    file = fopen(path.text, "wb");
    assert_non_null(file);
    fprintf(file, "{\"record_type\":\"eplb_initial_mapping\",\"version\":1,\"num_slots\":1000000,"
                  "\"num_redundant_experts\":0,\"initial_global_assignments\":{\"0\":[0]");
    for (int l = 1; l < LAYERS; l++) {
        fprintf(file, ",\"%d\":[0]", l);
    }
    fprintf(file, "}}\n");
    assert_int_equal(fclose(file), 0);
    options = options_for("vllm_mapping");
    assert_status(read_map(path.text, &options, &error), PARSE, &error);
    assert_contains(error.message, "f: layer '0': expected a list of 1000000 slots");
}

TEST_MAIN(IN_DIRECTORY(bad_statistics_are_refused), IN_DIRECTORY(bad_dumps_are_refused),
          IN_DIRECTORY(steps_that_do_not_ascend_are_refused),
          IN_DIRECTORY(bad_mappings_are_refused), IN_DIRECTORY(memory_is_for_slots_that_are_there))
