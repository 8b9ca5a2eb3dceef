/* SPDX-License-Identifier: MIT */
/* Placement files that must be refused: each with its status and the place its message names. */
#include "bad.h"

/* Read for 2 GPUs; limits 3 layers, 8 slots, 6 experts. */
static const bad_file sglang[] = {
    {"sglang", "[[0,1]]", PARSE, "f: the document is not an object"},
    {"sglang", "{}", PARSE, "f: the document has no key 'physical_to_logical_map'"},
    {"", "{\"physical_to_logical_map\":[[0,1]],\"x\":1}", PARSE, "f: key 'x' beside"},
    {"", "{\"physical_to_logical_map\":[[0,1]],\"physical_to_logical_map\":[[0,1]]}", PARSE,
     "second key 'physical_to_logical_map'"},
    {"sglang", "{\"Physical_to_logical_map\":[[0,1]]}", PARSE, "no key 'physical_to_logical_map'"},
    {"sglang", "{\"physical_to_logical_map\\u0000\":[[0,1]]}", PARSE, "a string has U+0000"},
    {"", "{\"physical_to_logical_map\":7}", PARSE, "'physical_to_logical_map' is not a list"},
    {"", "{\"physical_to_logical_map\":[]}", PARSE, "f: 0 layers of 0 slots"},
    {"", "{\"physical_to_logical_map\":[[]]}", PARSE, "f: 1 layers of 0 slots"},
    {"", "{\"physical_to_logical_map\":[0,1]}", PARSE, "f: layer 0 is not a list"},
    {"", "{\"physical_to_logical_map\":[[0,1],[0]]}", PARSE, "f: layer 1: 1 slots, expected 2"},
    {"", "{\"physical_to_logical_map\":[[0,1],[0,1,1]]}", PARSE, "f: layer 1: 3 slots, expected 2"},
    {"", "{\"physical_to_logical_map\":[[0,1],7]}", PARSE, "f: layer 1 is not a list"},
    {"", "{\"physical_to_logical_map\":[[0,\"1\"]]}", PARSE,
     "f: layer 0: slot 1 is not an integer"},
    {"", "{\"physical_to_logical_map\":[[0.5,1]]}", PARSE, "f: layer 0: slot 0 is not an integer"},
    {"", "{\"physical_to_logical_map\":[[0,4294967296]]}", PARSE,
     "layer 0: slot 1 is not an integer"},
    {"", "{\"physical_to_logical_map\":[[0,1e400]]}", PARSE, "layer 0: slot 1 is not an integer"},
    {"", "{\"physical_to_logical_map\":[[0,NaN]]}", PARSE, "f:1:32: 'NaN' is not a value of JSON"},
    {"", "{\"physical_to_logical_map\":[[0,01]]}", PARSE, "f:1:32: '01' is not a value of JSON"},
    {"", "{\"physical_to_logical_map\":[[0,-2]]}", DATA,
     "f: layer 0: slot 1: expert -2 not in 0..5"},
    {"", "{\"physical_to_logical_map\":[[0,6]]}", LIMIT,
     "f: layer 0: slot 1: expert 6 not in 0..5"},
    {"", "{\"physical_to_logical_map\":[[-1,-1]]}", DATA, "f: every slot is empty"},
    {"", "{\"physical_to_logical_map\":[[0,1,2]]}", DATA,
     "f: 3 slots cannot be spread evenly over 2"},
    {"", "{\"physical_to_logical_map\":[[0],[0],[0],[0]]}", LIMIT,
     "f: 4 layers of 1 slots, limits 3"},
    {"", "{\"physical_to_logical_map\":[[0,1,2,3,4,5,0,1,2]]}", LIMIT, "f: 1 layers of 9 slots"},
    {"", "{\"physical_to_logical_map\":[[0,1]]}x", PARSE, "f:1:36: expected the end of the file"},
    {"", "{\"physical_to_logical_map\":[[0,1]", PARSE,
     "f:1:34: expected ',' or ']', found the end"},
    {"", "{\"physical_to_logical_map\":\n[[0,1],\n[0,1}", PARSE,
     "f:3:5: expected ',' or ']', found '}'"},
    {"sglang", "{\"a\":1111111111222222222233333333334444444444555555555566666666667777777777}",
     PARSE, "f:1:6: a number of 70 characters"},
};

static const bad_file vllm[] = {
    {"vllm", "{}", PARSE, "f: the document is not a list"},
    {"vllm", "7", PARSE, "f: the document is not a list"},
    {"vllm", "[]", PARSE, "f: 0 layers of 0 slots"},
    {"", "[0,[1]]", PARSE, "f: layer 0: slot 1 is not an integer"},
    {"", "[[0],1]", PARSE, "f: layer 1 is not a list"},
    {"", "[[0,1],[1]]", PARSE, "f: layer 1: 1 slots, expected 2"},
    {"", "[0,1]]", PARSE, "f:1:6: expected the end of the file, found ']'"},
};

#define DEVICE(id, experts) "{\"device_id\":" id ",\"device_expert\":" experts "}"
#define LAYER(id, count, devices)                                                                  \
    "{\"layer_id\":" id ",\"device_count\":" count ",\"device_list\":[" devices "]}"
#define ASCEND(count, layers) "{\"moe_layer_count\":" count ",\"layer_list\":[" layers "]}"
#define TWO DEVICE("0", "[0]") "," DEVICE("1", "[1]")

static const bad_file ascend[] = {
    {"", ASCEND("1", ""), PARSE, "f: layer_list has 0 layers, moe_layer_count says 1"},
    {"", ASCEND("0", ""), PARSE, "f: layer 0 is not an object"},
    {"", ASCEND("2", LAYER("0", "2", TWO)), PARSE,
     "f: layer_list has 1 layers, moe_layer_count says 2"},
    {"", ASCEND("-1", LAYER("0", "2", TWO)), PARSE,
     "f: layer_list has 1 layers, moe_layer_count says -1"},
    {"", ASCEND("1", LAYER("0", "2", TWO) "," LAYER("0", "2", TWO)), PARSE,
     "f: layer 1: layer_id 0, expected 1"},
    {"", ASCEND("1", LAYER("0", "2", TWO) "," LAYER("2", "2", TWO)), PARSE,
     "f: layer 1: layer_id 2, expected 1"},
    {"", ASCEND("1", LAYER("0", "2", TWO) "," LAYER("1", "2", TWO) "," LAYER("2", "2", TWO)), PARSE,
     "f: layer_list has 3 layers, moe_layer_count says 1: at most one more, of the draft model"},
    {"", ASCEND("0", LAYER("0", "2", TWO)), PARSE,
     "f: layer_list has 1 layers, moe_layer_count says 0"},
    {"", ASCEND("1", LAYER("0", "2", TWO) "," LAYER("1", "1", DEVICE("0", "[0]"))), PARSE,
     "f: layer 1: device_count 1, expected 2"},
    {"", ASCEND("\"1\"", LAYER("0", "2", TWO)), PARSE, "'moe_layer_count' is not an integer"},
    {"", "{\"moe_layer_count\":1}", PARSE, "f: the document has no key 'layer_list'"},
    {"", "{\"layer_list\":[" LAYER("0", "2", TWO) "]}", PARSE, "no key 'moe_layer_count'"},
    {"", ASCEND("1", LAYER("1", "2", TWO)), PARSE, "f: layer 0: layer_id 1, expected 0"},
    {"", ASCEND("2", LAYER("0", "2", TWO) "," LAYER("0", "2", TWO)), PARSE,
     "f: layer 1: layer_id 0, expected 1"},
    {"", ASCEND("1", LAYER("0", "3", TWO)), PARSE, "f: layer 0: 2 devices in device_list, 3 in"},
    {"", ASCEND("1", LAYER("0", "0", "")), PARSE, "f: layer 0: device_count 0 not in 1..65536"},
    {"", ASCEND("1", LAYER("0", "1", DEVICE("0", "[]"))), PARSE, "f: 1 layers of 0 slots"},
    {"", ASCEND("1", LAYER("0", "2", "")), PARSE, "f: layer 0: device 0 is not an object"},
    {"", ASCEND("1", LAYER("0", "99999999", TWO)), PARSE, "device_count 99999999 not in"},
    {"", ASCEND("2", LAYER("0", "2", TWO) "," LAYER("1", "1", DEVICE("0", "[0]"))), PARSE,
     "f: layer 1: device_count 1, expected 2"},
    {"", ASCEND("1", LAYER("0", "2", DEVICE("1", "[0]") "," DEVICE("0", "[1]"))), PARSE,
     "f: layer 0: device 0: device_id 1, expected 0"},
    {"", ASCEND("1", LAYER("0", "2", DEVICE("0", "[0]") "," DEVICE("1", "[1,2]"))), PARSE,
     "f: layer 0: device 1: 2 slots, expected 1"},
    {"", ASCEND("1", LAYER("0", "2", DEVICE("0", "[0]") "," DEVICE("1", "[null]"))), PARSE,
     "f: layer 0: device 1: slot 0 is not an integer"},
    {"", ASCEND("1", LAYER("0", "2", DEVICE("0", "[0]") ",{\"device_id\":1}")), PARSE,
     "f: layer 0: device 1 has no key 'device_expert'"},
    {"", ASCEND("1", LAYER("0", "1", DEVICE("0", "[0,1]"))), DATA,
     "f: made for 1 GPUs, expected 2"},
    {"", ASCEND("1", LAYER("0", "2", DEVICE("0", "[]") "," DEVICE("1", "[]"))), PARSE,
     "f: 1 layers of 0 slots"},
    {"", ASCEND("1", LAYER("0", "2", TWO)) "]", PARSE, "expected the end of the file, found ']'"},
};

#ifdef HAVE_YAML
#define TRTLLM(slots, layers)                                                                      \
    "num_slots: " slots "\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n" layers
static const bad_file trtllm[] = {
    {"trtllm", "# nothing\n", PARSE, "f:2:1: expected a document"},
    {"trtllm", "[1]\n", PARSE, "f:1:1: expected a map at the top"},
    {"", TRTLLM("74", "  3: [0, 1]\n"), PARSE, "f: layer 3: 2 expert ids, but num_slots is 74"},
    {"", TRTLLM("4", "  3: [0, 1]\n"), PARSE, "f: layer 3: 2 expert ids, but num_slots is 4"},
    {"", TRTLLM("2", "  3: [0, 1]\n  5: [0, 1, 2]\n"), PARSE,
     "f: layer 5: 3 expert ids, but num_slots"},
    {"", TRTLLM("2", "  3: [0, 1]\n  3: [0, 1]\n"), PARSE, "f: layer 3 is listed twice"},
    {"", TRTLLM("2", "  '3': [0, 1]\n"), PARSE,
     "f:4:3: layer ids are plain integers, not the text \"3\""},
    {"", TRTLLM("2", "  x: [0, 1]\n"), PARSE, "f:4:3: layer ids are plain integers, not x"},
    {"", TRTLLM("2", "  -3: [0, 1]\n"), DATA, "f:4:3: layer id out of range: -3"},
    {"", TRTLLM("2", "  99999: [0, 1]\n"), LIMIT, "f:4:3: layer id out of range: 99999"},
    {"", TRTLLM("2", "  3: [0, 01]\n"), PARSE, "f:4:10: expert ids are plain integers, not 01"},
    {"", TRTLLM("2", "  3: [0, 1.0]\n"), PARSE, "expert ids are plain integers, not 1.0"},
    {"", TRTLLM("2", "  3: [0, \"1\"]\n"), PARSE,
     "expert ids are plain integers, not the text \"1\""},
    {"", TRTLLM("2", "  3: [0, [1]]\n"), PARSE, "expert ids are plain integers, not a list or map"},
    {"", TRTLLM("2", "  3: [0, 3000000000]\n"), PARSE, "not 3000000000"},
    {"", TRTLLM("2", "  3: [0, ]\n"), PARSE, "f: layer 3: 1 expert ids, but num_slots is 2"},
    {"", TRTLLM("2", "  3: 7\n"), PARSE, "f:4:6: expected a list of expert ids"},
    {"", TRTLLM("2", "  3: &a [0, 1]\n  4: *a\n"), PARSE, "f:4:6: anchors, aliases and tags"},
    {"", TRTLLM("2", "  3: !!seq [0, 1]\n"), PARSE, "f:4:6: anchors, aliases and tags"},
    {"", TRTLLM("2", "  3: [0, !!int 1]\n"), PARSE, "anchors, aliases and tags"},
    {"", TRTLLM("2", "  3: [0, 1\n"), PARSE, "f:5:1: did not find expected ',' or ']'"},
    {"", TRTLLM("2", "  3: [0, 1]\n---\nnum_slots: 2\n"), PARSE,
     "f:5:1: expected one document only"},
    {"", TRTLLM("2", "  3: [0, 1]\nx: 1\n"), PARSE, "f:5:1: unknown key x"},
    {"", TRTLLM("2", "  3: [0, 1]\nnum_slots: 2\n"), PARSE, "f:5:1: second key num_slots"},
    {"", TRTLLM("2", "  1: [0, 1]\n  2: [0, 1]\n  3: [0, 1]\n  4: [0, 1]\n"), LIMIT,
     "f:7:3: more layers than the limit"},
    {"", TRTLLM("8", "  1: [0, 1, 2, 3, 0, 1, 2, 3, 0]\n"), LIMIT,
     "f:4:31: more slots than the limit"},
    {"", TRTLLM("-1", "  3: [0, 1]\n"), PARSE, "num_slots is a plain integer >= 0, not -1"},
    {"", TRTLLM("\"4\"", "  3: [0, 1]\n"), PARSE,
     "f:1:12: num_slots is a plain integer >= 0, not the text \"4\""},
    {"", TRTLLM("2", "  []\n"), PARSE, "expected a map of layer ids to lists"},
    {"", "num_slots: 2\n", PARSE, "f: no key 'initial_global_assignments'"},
    {"", "initial_global_assignments: {3: [0, 1]}\n", PARSE, "f: no key 'num_slots'"},
    {"", "num_slots: 2\ninitial_global_assignments: {}\n", PARSE, "f: 0 layers of 2 slots"},
    {"", TRTLLM("2", "  3: [0, -2]\n"), DATA, "f: layer 3: slot 1: expert -2 not in 0..5"},
    {"", TRTLLM("3", "  3: [0, 1, 2]\n"), DATA, "3 slots cannot be spread evenly over 2 GPUs"},
};
#endif

static eplb_status read_bad(const char *path, const char *format, eplb_error *error)
{
    eplb_read_options options = options_for(format);
    options.gpus = 2;
    options.max_layers = 3;
    options.max_slots = 8;
    options.max_experts = 6;
    return read_map(path, &options, error);
}

static void bad_sglang_maps_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(sglang), read_bad);
}

static void bad_vllm_maps_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(vllm), read_bad);
}

static void bad_ascend_maps_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(ascend), read_bad);
}

static void bad_trtllm_maps_are_refused(void **state)
{
#ifdef HAVE_YAML
    assert_all_refused(*state, ALL_OF(trtllm), read_bad);
#else
    static const bad_file unsupported[] = {
        {"", "num_slots: 2\n", EPLB_ERROR_UNSUPPORTED, "f: trtllm cannot be read: built without"},
        {"trtllm", "num_slots: 2\n", EPLB_ERROR_UNSUPPORTED, "built without libyaml"},
    };
    assert_all_refused(*state, ALL_OF(unsupported), read_bad);
#endif
}

static void assert_map_refused(const char *directory, const char *content,
                               const eplb_read_options *options, eplb_status expected,
                               const char *part)
{
    test_path path = test_join(directory, "f");
    eplb_error error;
    test_write_text(path.text, content);
    assert_status(read_map(path.text, options, &error), expected, &error);
    assert_contains(error.message, part);
}

static void maps_that_contradict_the_options_are_refused(void **state)
{
    eplb_read_options options = options_for("");
    assert_map_refused(*state, "[[0,1]]", &options, EPLB_ERROR_ARGUMENT,
                       "f: the file does not say how many GPUs its 2 slots are for");
    options.gpus = 2;
    options.experts = 2;
    assert_map_refused(*state, "[[0,1],[2,1]]", &options, DATA,
                       "f: layer 1: slot 0: expert 2 not in 0..1");
}

static void a_file_above_the_limit_of_bytes_is_refused(void **state)
{
    eplb_read_options options = options_for("");
    options.gpus = 1;
    options.max_bytes = 10;
    assert_map_refused(*state, "[0, 1, 2]  ", &options, LIMIT, "f: more than 10 bytes");
    assert_map_refused(*state, "[0, 1, 2] ]", &options, LIMIT, "f: more than 10 bytes");
    options.max_bytes = 11;
    eplb_error error;
    test_path path = test_join(*state, "f");
    test_write_text(path.text, "[0, 1, 2]  ");
    assert_ok(read_map(path.text, &options, &error), &error);
}

static void deep_documents_are_refused(void **state)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 1);
    assert_non_null(text);
    memset(text, '[', SIZE);
    text[SIZE] = '\0';
    eplb_read_options options = options_for("");
    options.gpus = 1;
    assert_map_refused(*state, text, &options, PARSE, "f:1:65: values are nested deeper");
#ifdef HAVE_YAML
    options = options_for("trtllm");
    memcpy(text, "num_slots: ", 11);
    assert_map_refused(*state, text, &options, PARSE, "f:1:12: num_slots is a plain integer");
#endif
    free(text);
}

/* Reads a placement, which must be refused with little memory. */
static void assert_no_memory_taken(const char *directory, const char *text, const char *message)
{
    test_path path = test_join(directory, "f");
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_placement *placement;
    eplb_error error;
    test_write_text(path.text, text);
    assert_status(eplb_placement_read(&placement, &hooks, path.text, NULL, NULL, &error), PARSE,
                  &error);
    assert_contains(error.message, message);
    assert_true(memory.largest < (size_t)1 << 18);
    assert_int_equal(memory.live, 0);
}

/* A million slots by a number, of which few are there. */
static void slots_that_are_not_there_cost_no_memory(void **state)
{
    assert_no_memory_taken(*state,
                           ASCEND("1", LAYER("0", "65536", DEVICE("0", "[0,1,2,3,4,5,6,7]"))),
                           "layer 0: 1 devices in device_list, 65536 in device_count");
#ifdef HAVE_YAML
    assert_no_memory_taken(*state, TRTLLM("1048576", "  1: [0]\n  2: [0]\n"),
                           "layer 1: 1 expert ids, but num_slots is 1048576");
#endif
}

TEST_MAIN(IN_DIRECTORY(bad_sglang_maps_are_refused), IN_DIRECTORY(bad_vllm_maps_are_refused),
          IN_DIRECTORY(bad_ascend_maps_are_refused),
          IN_DIRECTORY(slots_that_are_not_there_cost_no_memory),
          IN_DIRECTORY(bad_trtllm_maps_are_refused),
          IN_DIRECTORY(maps_that_contradict_the_options_are_refused),
          IN_DIRECTORY(a_file_above_the_limit_of_bytes_is_refused),
          IN_DIRECTORY(deep_documents_are_refused))
