/* SPDX-License-Identifier: MIT */
/* Files of FastDeploy and lmdeploy that must be refused: each with its status and the place its
 * message names. */
#include "bad.h"

#define OVERFLOW EPLB_ERROR_OVERFLOW

static const bad_file lmdeploy[] = {
    {"lmdeploy", "{}", PARSE, "f:1:1: expected '[': a list of layers, found '{'"},
    {"lmdeploy", "[]", PARSE, "f:1:2: expected '[': a list of counts, found ']'"},
    {"lmdeploy", "[1,2]", PARSE, "f:1:2: expected '[': a list of counts, found '1'"},
    {"", "[[", PARSE, "f:1:3: layer 0: expert 0: expected a number, found the end of the file"},
    {"", "[[]]", PARSE, "f:1:3: layer 0: no counts"},
    {"", "[[[1]]]", PARSE, "f:1:3: layer 0: expert 0: expected a number, found '['"},
    {"", "[[1,2],[3]]", PARSE, "layer 1: 1 counts, expected 2"},
    {"", "[[1,2],3]", PARSE, "f:1:8: layer 1: expected '[': a list of counts, found '3'"},
    {"", "[[1,2],", PARSE, "layer 1: expected '[': a list of counts, found the end of the file"},
    {"", "[[1,2]", PARSE, "expected ',' or ']', found the end of the file"},
    {"", "[[1,2]]]", PARSE, "f:1:8: expected the end of the file, found ']'"},
    {"", "[[1,2]][[1,2]]", PARSE, "f:1:8: expected the end of the file"},
    {"", "[[1,-2]]", DATA, "layer 0: expert 1: -2 is negative"},
    {"", "[[1,-1]]", DATA, "layer 0: expert 1: -1 is negative"},
    {"", "[[1,NaN]]", DATA, "layer 0: expert 1: NaN is not a count"},
    {"", "[[1,1e400]]", OVERFLOW, "layer 0: expert 1: 1e400 is too large"},
    {"", "[[1,9007199254740993]]", OVERFLOW, "layer 0: expert 1: 9007199254740993 is above 2^53"},
    {"", "[[1],[1],[1],[1],[1]]", LIMIT, "layer 4: more than 4 layers"},
    {"", "[[1,2,3,4,5,6,7]]", LIMIT, "layer 0: more than 6 counts in a row"},
};

#define COUNTS(counts) "{\"tokens_per_expert_stats_list\":" counts ",\"cost_milliseconds\":3}"

static const bad_file counts[] = {
    {"fastdeploy", "[[1]]", PARSE, "f:1:1: expected '{', found '['"},
    {"fastdeploy", "{}", PARSE, "f:1:2: no key 'tokens_per_expert_stats_list'"},
    {"", COUNTS("7"), PARSE, "f:1:33: expected '[': a list of layers, found '7'"},
    {"", COUNTS("[]"), PARSE, "expected '[': a list of counts, found ']'"},
    {"", COUNTS("[[[1]]]"), PARSE, "layer 0: expert 0: expected a number, found '['"},
    {"", COUNTS("[[1,2],[1]]"), PARSE, "layer 1: 1 counts, expected 2"},
    {"", COUNTS("[[1,-2]]"), DATA, "layer 0: expert 1: -2 is negative"},
    {"", COUNTS("[[1]],\"tokens_per_expert_stats_list\":[[1]]"), PARSE, "second key 'tokens_per"},
    {"", COUNTS("[[1,2,3]],\"expert_in_rank_num_list\":[[2,1]]"), DATA,
     "layer 0: 2 experts in 'expert_in_rank_num_list', but 3 in the rows before"},
    {"", "{\"expert_in_rank_num_list\":[[2,1],[1]],\"tokens_per_expert_stats_list\":[[1,2]]}", DATA,
     "layer 1: 1 experts in 'expert_in_rank_num_list', but 2 in the rows before"},
    {"", "{\"expert_in_rank_num_list\":[[2,1]],\"tokens_per_expert_stats_list\":[[1,2,3]]}", PARSE,
     "layer 0: 3 counts, expected 2"},
    {"", COUNTS("[[1,2]]") "x", PARSE, "expected the end of the file, found 'x'"},
    {"", "{\"tokens_per_expert_stats_list\":[[1,2]]", PARSE, "expected ',' or '}', found the end"},
};

#define MAP(map, numbers, slots)                                                                   \
    "{\"ep_rank_to_expert_id_list\":" map ",\"expert_in_rank_num_list\":" numbers                  \
    ",\"expert_id_to_ep_rank_array\":" slots "}"
#define ROWS "[[0,1,0,1],[1,0,0,-1]]"
#define NUMBERS "[[2,2],[2,1]]"
#define FIRST "[[0,2],[1,3]]"
#define SLOTS_ARE(second) "[" FIRST "," second "]"

static const bad_file placements[] = {
    {"fastdeploy", "[]", PARSE, "f: the document is not an object"},
    {"fastdeploy", "{}", PARSE, "f: the document has no key 'ep_rank_to_expert_id_list'"},
    {"", "{\"ep_rank_to_expert_id_list\":[[0,1]]}", PARSE, "no key 'expert_in_rank_num_list'"},
    {"", "{\"ep_rank_to_expert_id_list\":[[0,1]],\"expert_in_rank_num_list\":[[1,1]]}", PARSE,
     "no key 'expert_id_to_ep_rank_array'"},
    {"", MAP("7", NUMBERS, "[]"), PARSE, "'ep_rank_to_expert_id_list' is not a list"},
    {"", MAP("[[0,1],[0]]", NUMBERS, "[]"), PARSE, "f: layer 1: 1 slots, expected 2"},
    {"", MAP("[[0,1],7]", NUMBERS, "[]"), PARSE, "f: layer 1 is not a list"},
    {"", MAP("[[0,1.5]]", "[[1,1]]", "[[[0],[1]]]"), PARSE, "f: layer 0: slot 1 is not an integer"},
    {"", MAP(ROWS ",\"ep_rank_to_expert_id_list\":" ROWS, NUMBERS, "[]"), PARSE,
     "second key 'ep_rank_to_expert_id_list'"},
    {"", MAP(ROWS, "7", SLOTS_ARE("[[1,2],[0,-1]]")), PARSE,
     "'expert_in_rank_num_list' is not a list"},
    {"", MAP(ROWS, "[[2,2]]", SLOTS_ARE("[[1,2],[0,-1]]")), PARSE,
     "f: expert_in_rank_num_list: 1 layers, expected 2"},
    {"", MAP(ROWS, NUMBERS, "[" FIRST "]"), PARSE,
     "f: expert_id_to_ep_rank_array: 1 layers, expected 2"},
    {"", MAP(ROWS, "[7,[2,1]]", SLOTS_ARE("[[1,2],[0,-1]]")), PARSE,
     "f: layer 0: 0 experts in expert_in_rank_num_list"},
    {"", MAP(ROWS, NUMBERS, "[7,[[1,2],[0,-1]]]"), PARSE,
     "the first with 0 slots in expert_id_to_ep_rank_array"},
    {"", MAP(ROWS, "[[2,2],[2]]", SLOTS_ARE("[[1,2],[0,-1]]")), PARSE,
     "f: expert_in_rank_num_list: layer 1: 1 experts, expected 2"},
    {"", MAP(ROWS, "[[2,2],[2,true]]", SLOTS_ARE("[[1,2],[0,-1]]")), PARSE,
     "f: expert_in_rank_num_list: layer 1: expert 1 is not an integer"},
    {"", MAP(ROWS, "[[2,2],7]", SLOTS_ARE("[[1,2],[0,-1]]")), PARSE,
     "f: expert_in_rank_num_list: layer 1 is not a list"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,2]]")), PARSE,
     "f: expert_id_to_ep_rank_array: layer 1: 1 experts, expected 2"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("7")), PARSE,
     "f: expert_id_to_ep_rank_array: layer 1: 0 experts, expected 2"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,2],[0]]")), PARSE,
     "f: expert_id_to_ep_rank_array: layer 1: expert 1: 1 slots, expected 2"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,2],[0,\"a\"]]")), PARSE,
     "layer 1: expert 1: slot 1 is not an integer"},
    {"", MAP(ROWS, "[[2,2],[3,1]]", SLOTS_ARE("[[1,2],[0,-1]]")), DATA,
     "f: layer 1: expert 0: expert_in_rank_num_list says 3 replicas, expert_id_to_ep_rank_array "
     "has "
     "room for 0 to 2"},
    {"", MAP(ROWS, "[[2,2],[-1,1]]", SLOTS_ARE("[[1,2],[0,-1]]")), DATA, "says -1 replicas"},
    {"", MAP(ROWS, "[[2,2],[1,1]]", SLOTS_ARE("[[1,2],[0,-1]]")), DATA,
     "f: layer 1: expert 0: expert_id_to_ep_rank_array has 2 at place 1, but "
     "expert_in_rank_num_list says 1 replicas"},
    {"", MAP(ROWS, "[[2,2],[2,2]]", SLOTS_ARE("[[1,2],[0,-1]]")), DATA,
     "f: layer 1: expert 1: expert_id_to_ep_rank_array has -1 at place 1, but"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,2],[0,-2]]")), DATA,
     "expert 1: expert_id_to_ep_rank_array has -2 at place 1"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,4],[0,-1]]")), DATA,
     "f: layer 1: expert 0: expert_id_to_ep_rank_array has slot 4, not in 0..3"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,0],[2,-1]]")), DATA,
     "f: layer 1: expert 0: expert_id_to_ep_rank_array has slot 0, which holds expert 1"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,3],[0,-1]]")), DATA,
     "has slot 3, which holds expert -1"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,1],[0,-1]]")), DATA,
     "f: layer 1: expert 0: expert_id_to_ep_rank_array has slot 1 twice"},
    {"", MAP(ROWS, "[[2,2],[1,1]]", SLOTS_ARE("[[1,-1],[0,-1]]")), DATA,
     "f: layer 1: expert 0: held by slot 2, which expert_id_to_ep_rank_array does not list"},
    {"", MAP("[[0,1,2,-1]]", "[[1,1]]", "[[[0],[1]]]"), DATA,
     "f: layer 0: expert 2: held by slot 2, which expert_id_to_ep_rank_array does not list"},
    {"", MAP("[[0,1]]", "[[1,1,0,0,0,0,0]]", "[[[0],[1],[-1],[-1],[-1],[-1],[-1]]]"), LIMIT,
     "f: expert_in_rank_num_list: 7 experts, limit 6"},
    {"", MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,2],[0,-1]]")) "]", PARSE,
     "expected the end of the file, found ']'"},
};

static void bad_counts_of_lmdeploy_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(lmdeploy), read_bad_counts);
}

static void bad_counts_of_fastdeploy_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(counts), read_bad_counts);
}

static void maps_that_contradict_themselves_are_refused(void **state)
{
    assert_all_refused(*state, ALL_OF(placements), read_bad_placement);
}

/* What the tables break is sound. */
static void the_unbroken_map_is_read(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_error error;
    test_write_text(path.text, MAP(ROWS, NUMBERS, SLOTS_ARE("[[1,2],[0,-1]]")));
    assert_ok(read_bad_placement(path.text, "", &error), &error);
}

TEST_MAIN(IN_DIRECTORY(bad_counts_of_lmdeploy_are_refused),
          IN_DIRECTORY(bad_counts_of_fastdeploy_are_refused),
          IN_DIRECTORY(maps_that_contradict_themselves_are_refused),
          IN_DIRECTORY(the_unbroken_map_is_read))
