/* SPDX-License-Identifier: MIT */
/* Files of torch.save that must be refused: what the pickle says, what the archive has, what counts
 * are. A pickle is a program, and some of these are meant to do harm. */
#include "bad.h"
#include "pt_file.h"

#define UNSUPPORTED EPLB_ERROR_UNSUPPORTED
#define OVERFLOW EPLB_ERROR_OVERFLOW

#define START "$80$02"
#define RECORD_0 RECORD("#0", "#0", COUNTS(WHOLE))
#define RECORDS(records) PASSES(records, MAP(WHOLE))

typedef struct bad_pt {
    const char *words;
    eplb_status status;
    const char *message;
} bad_pt;

static const bad_pt programs[] = {
    {START "@os system;'rm -rf /'$85R.", UNSUPPORTED,
     "f: data.pkl: byte 2: global os.system is not one that counts need: refused"},
    {START "@posix system;('true'tR.", UNSUPPORTED, "byte 2: global posix.system is not"},
    {START "@builtins eval;.", UNSUPPORTED, "global builtins.eval"},
    {START "@__builtin__ exec;.", UNSUPPORTED, "global __builtin__.exec"},
    {START "@torch load;.", UNSUPPORTED, "global torch.load"},
    {START "@torch.storage _load_from_bytes;.", UNSUPPORTED,
     "global torch.storage._load_from_bytes"},
    {START "@torch._utils _rebuild_parameter;.", UNSUPPORTED, "torch._utils._rebuild_parameter"},
    {START "@torch.x IntStorage;.", UNSUPPORTED, "global torch.x.IntStorage"},
    {START "@collections OrderedDicts;.", UNSUPPORTED, "global collections.OrderedDicts"},
    {START "@\x1b[31m \x07;.", UNSUPPORTED, "global ?[31m.?"},
    {START "@ ;.", UNSUPPORTED, "byte 2: global . is not"},
    {START "@torch._utils _rebuild_tensor_v2;)R.", PARSE, "data.pkl: no key 'logical_count'"},
    {START "@torch IntStorage;)R.", UNSUPPORTED, "byte 21: opcode 0x52: calls something else"},
    {START "@collections OrderedDict;#1$85R.", UNSUPPORTED, "calls something else"},
    {START "@collections OrderedDict;#1R.", PARSE, "calls with what is no tuple"},
    {START "'os.system')R.", UNSUPPORTED, "calls something else"},
    {START ")R.", PARSE, "byte 3: opcode 0x52: too few values on the stack"},
    {START "(ios\nsystem\n.", UNSUPPORTED, "byte 3: opcode 0x69 is not one that counts need"},
    {START "(cos\n", PARSE, "byte 3: ends within an opcode"},
    {START "}b.", UNSUPPORTED, "byte 3: opcode 0x62 is not"},
    {START ")$81.", UNSUPPORTED, "byte 3: opcode 0x81 is not"},
    {START "$82$01.", UNSUPPORTED, "byte 2: opcode 0x82 is not"},
    {START "$93.", UNSUPPORTED, "byte 2: opcode 0x93 is not"},
    {START "o.", UNSUPPORTED, "byte 2: opcode 0x6f is not"},
    {START "P0\n.", UNSUPPORTED, "byte 2: opcode 0x50 is not"},
    {START "$00.", UNSUPPORTED, "byte 2: opcode 0x00 is not"},
};

static const bad_pt machines[] = {
    {"", PARSE, "f: data.pkl: byte 0: ends without STOP"},
    {"$80", PARSE, "byte 0: ends within an opcode"},
    {START, PARSE, "byte 2: ends without STOP"},
    {"}.", PARSE, "byte 0: no opcode that says the protocol"},
    {START START "}.", PARSE, "byte 2: a second opcode that says the protocol"},
    {"$80$04}.", UNSUPPORTED, "byte 0: a pickle of protocol 4, expected 2"},
    {START ".", PARSE, "byte 2: opcode 0x2e: not one value is left on the stack"},
    {START "(.", PARSE, "not one value is left on the stack"},
    {START "}}.", PARSE, "not one value is left on the stack"},
    {START "}.}.", PARSE, "byte 4: 2 bytes behind STOP"},
    {START "}q$00$00.", UNSUPPORTED, "byte 5: opcode 0x00"},
    {START "r$00$00$00$80.", PARSE, "byte 2: memo entry 2147483648 of a pickle of 8 bytes"},
    {START "}q$ff.", PARSE, "byte 3: memo entry 255 of a pickle of 6 bytes"},
    {START "q$00.", PARSE, "byte 2: opcode 0x71: no value on the stack"},
    {START "(q$00.", PARSE, "byte 3: opcode 0x71: no value on the stack"},
    {START "h$00.", PARSE, "byte 2: memo entry 0 was not set"},
    {START "}q$00h$01.", PARSE, "byte 5: memo entry 1 was not set"},
    {START "}q$02h$01.", PARSE, "byte 5: memo entry 1 was not set"},
    {START "j$ff$ff$ff$ff.", PARSE, "byte 2: memo entry 4294967295 was not set"},
    {START "$8a$ff.", PARSE, "byte 2: ends within an opcode"},
    {START "$8a$09123456789.", UNSUPPORTED, "byte 2: an integer of 9 bytes, at most 8"},
    {START "X$ff$ff$ff$7fa.", PARSE, "byte 2: ends within an opcode"},
    {START "J$01$02", PARSE, "byte 2: ends within an opcode"},
    {START "M$01", PARSE, "byte 2: ends within an opcode"},
    {START "K", PARSE, "byte 2: ends within an opcode"},
    {START "G1234567", PARSE, "byte 2: ends within an opcode"},
    {START "t.", PARSE, "byte 2: opcode 0x74: no mark"},
    {START "}$86.", PARSE, "byte 3: opcode 0x86: too few values"},
    {START "(}$86.", PARSE, "byte 4: opcode 0x86: too few values"},
    {START "]a.", PARSE, "byte 3: opcode 0x61: too few values"},
    {START "}Na.", PARSE, "byte 4: opcode 0x61: appends to what is no list"},
    {START "](Na.", PARSE, "byte 5: opcode 0x61: too few values"},
    {START "(e.", PARSE, "byte 3: opcode 0x65: no mark on the stack, or nothing below it"},
    {START "((e.", PARSE, "byte 4: opcode 0x65: appends to what is no list"},
    {START "]e.", PARSE, "byte 3: opcode 0x65: no mark"},
    {START "}(e.", PARSE, "appends to what is no list"},
    {START "]NNs.", PARSE, "byte 5: opcode 0x73: sets items of what is no dictionary"},
    {START "](NNu.", PARSE, "sets items of what is no dictionary"},
    {START "}(NNNu.", PARSE, "byte 7: opcode 0x75: a key without a value"},
    {START "Q.", PARSE, "byte 2: opcode 0x51: a storage that is not described by a tuple"},
    {START "'0'Q.", PARSE, "a storage that is not described by a tuple"},
    {START "(Q.", PARSE, "a storage that is not described by a tuple"},
};

static const bad_pt tensors[] = {
    {START "}.", PARSE, "f: data.pkl: no key 'logical_count' or 'records'"},
    {START "N.", PARSE, "no key 'logical_count' or 'records'"},
    {START "]('logical_count'e.", PARSE, "no key 'logical_count' or 'records'"},
    {START "'records'$85.", PARSE, "no key 'logical_count' or 'records'"},
    {START "}('logical_count'Nu.", PARSE, "f: key 'logical_count': not a tensor"},
    {START "}('logical_count'N'records'Nu.", PARSE,
     "data.pkl: both keys 'logical_count' and 'records'"},
    {START "}('logical_count'N'logical_count'Nu.", PARSE, "second key 'logical_count'"},
    {STAT("@torch._utils _rebuild_tensor_v2;)R"), PARSE, "not a tensor"},
    {STAT(VIEW("N", WHOLE)), PARSE, "f: key 'logical_count': a tensor without a storage"},
    {STAT(VIEW("('storage'tQ", WHOLE)), PARSE, "a tensor without a storage"},
    {STAT(VIEW("('module'@torch IntStorage;'0''cpu'#8tQ", WHOLE)), PARSE,
     "a tensor without a storage"},
    {STAT(VIEW("('storage''IntStorage''0''cpu'#8tQ", WHOLE)), PARSE, "a storage without a type"},
    {STAT(VIEW(STORAGE("HalfStorage", "0", "#16"), WHOLE)), UNSUPPORTED,
     "key 'logical_count': torch.HalfStorage, expected integers"},
    {STAT(VIEW(STORAGE("BoolStorage", "0", "#32"), WHOLE)), UNSUPPORTED, "torch.BoolStorage"},
    {STAT(VIEW(STORAGE("IntStorage", "2", "#8"), WHOLE)), PARSE, "no entry with its storage"},
    {STAT(VIEW(STORAGE("IntStorage", "../data.pkl", "#8"), WHOLE)), PARSE, "no entry with its"},
    {STAT(VIEW(STORAGE("IntStorage", "", "#8"), WHOLE)), PARSE, "no entry with its storage"},
    {STAT(VIEW("('storage'@torch IntStorage;#0'cpu'#8tQ", WHOLE)), PARSE, "no entry with its"},
    {STAT(VIEW(STORAGE("IntStorage", "0", "#7"), WHOLE)), PARSE,
     "storage of 7 items of 4 bytes, but entry 'a/data/0' has 32 bytes"},
    {STAT(VIEW(STORAGE("IntStorage", "0", "#L1152921504606846976"), WHOLE)), PARSE,
     "storage of 1152921504606846976 items of 4 bytes, but entry 'a/data/0' has 32 bytes"},
    {STAT(VIEW(STORAGE("IntStorage", "0", "#-8"), WHOLE)), PARSE, "storage of -8 items"},
    {STAT(VIEW(STORAGE("IntStorage", "0", "N"), WHOLE)), PARSE, "storage of -1 items"},
    {STAT(COUNTS("#1#2#4$86#4#1$86")), PARSE,
     "f: key 'logical_count': a tensor that reaches beyond its storage of 8 items"},
    {STAT(COUNTS("#8#1#1$86#1#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#2#5$86#4#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#3#4$86#4#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#2#4$86#5#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#3#4$86#0#1$86")), PARSE, "reaches beyond its storage of 8 items"},
    {STAT(COUNTS("#L9223372036854775807#2#4$86#4#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#L4611686018427387904#4$86#0#0$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#2#4$86#L9223372036854775807#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#0#3#4$86#L9223372036854775807#1$86")), PARSE, "reaches beyond its storage"},
    {STAT(COUNTS("#-1#2#4$86#4#1$86")), PARSE, "the offset of a tensor is no size"},
    {STAT(COUNTS("N#2#4$86#4#1$86")), PARSE, "the offset of a tensor is no size"},
    {STAT(COUNTS("#7#2#4$86#-4#1$86")), PARSE, "its shape and strides are not tuples"},
    {STAT(COUNTS("#0#-2#4$86#4#1$86")), PARSE, "its shape and strides are not tuples"},
    {STAT(COUNTS("#0#2#4$86#4$85")), PARSE, "its shape and strides are not tuples"},
    {STAT(COUNTS("#0))")), PARSE, "its shape and strides are not tuples"},
    {STAT(COUNTS("#0NN")), PARSE, "its shape and strides are not tuples"},
    {STAT(COUNTS("#0(#1#1#2#4t(#8#8#4#1t")), PARSE, "its shape and strides are not tuples"},
    {STAT(COUNTS("#0#8$85#1$85")), PARSE, "f: key 'logical_count': 1 dimension, expected [layers"},
    {STAT(COUNTS("#0#0#4$86#4#1$86")), PARSE, "a tensor without items"},
    {STAT(COUNTS("#0#8#1$86#1#1$86")), LIMIT, "8 layers of 1 counts, limits 4 and 6"},
    {STAT(COUNTS("#0#1#8$86#8#1$86")), LIMIT, "1 layers of 8 counts, limits 4 and 6"},
};

static const bad_pt passes[] = {
    {START "}('records']u.", PARSE,
     "f: data.pkl: no key 'last_physical_to_logical_map' beside 'records'"},
    {PASSES("", MAP(WHOLE)), PARSE, "f: data.pkl: key 'records' is not a list of records"},
    {START "}('records'}'last_physical_to_logical_map'" MAP(WHOLE) "u.", PARSE,
     "is not a list of records"},
    {PASSES(RECORD_0, "N"), PARSE, "key 'last_physical_to_logical_map': not a tensor"},
    {PASSES(RECORD_0, MAP("#0#8$85#1$85")), PARSE, "1 dimensions, expected [layers, slots]"},
    {PASSES(RECORD_0, MAP("#0#8#1$86#1#1$86")), LIMIT, "8 layers of 1 counts, limits 4 and 8"},
    {PASSES(RECORD_0, MAP("#2#1#2$86#4#1$86")), DATA,
     "f: key 'last_physical_to_logical_map': layer 0: slot 0: expert 2 not in -1..1"},
    {PASSES(RECORD_0, VIEW(STORAGE("DoubleStorage", "1", "#8"), WHOLE)), DATA, "slot 0: expert"},
    {RECORDS("N"), PARSE, "f: data.pkl: record 0: not a dictionary of at most 64 keys"},
    {RECORDS("}"), PARSE, "record 0: no key 'rank'"},
    {RECORDS(RECORD("#0", "N", COUNTS(WHOLE))), PARSE, "record 0: rank is no integer"},
    {RECORDS(RECORD("#0", "#-1", COUNTS(WHOLE))), PARSE, "record 0: rank -1 not in 0..2147483647"},
    {RECORDS(RECORD("#-1", "#0", COUNTS(WHOLE))), PARSE,
     "record 0: forward_pass_id -1 not in 0..9007199254740992"},
    {RECORDS(RECORD("#L9007199254740993", "#0", COUNTS(WHOLE))), PARSE,
     "forward_pass_id 9007199254740993 not in"},
    {RECORDS(RECORD("#0#0", "#0", COUNTS(WHOLE))), PARSE, "a key without a value"},
    {RECORDS("}('rank'#0'rank'#0u"), PARSE, "record 0: second key 'rank'"},
    {RECORDS(RECORD_0 "}('rank'#0u"), PARSE, "record 1: no key 'forward_pass_id'"},
    {RECORDS(RECORD_0 RECORD("#1", "#3", COUNTS(WHOLE))), DATA,
     "f: data.pkl: record 1: rank 3, but 0 in the first one"},
    {RECORDS(RECORD_0 RECORD("#1", "#0", "N")), PARSE,
     "f: record 1: key 'global_physical_count': not a tensor"},
    {RECORDS(RECORD_0 RECORD("#1", "#0", COUNTS("#0#2#3$86#4#1$86"))), PARSE,
     "record 1: key 'global_physical_count': not of [2 layers, 4 slots], as the map is"},
    {RECORDS(RECORD("#0", "#0", COUNTS("#0(#1#2#4t(#8#4#1t"))), PARSE, "not of [2 layers, 4"},
    {RECORDS(RECORD("#0", "#0", COUNTS("#0#1#4$86#4#1$86"))), PARSE, "not of [2 layers, 4"},
};

/* Reads "f": the message must begin with its path. */
static bool is_refused(const char *path, eplb_status expected, const char *message)
{
    eplb_error error = {0};
    eplb_status status = read_bad_counts(path, "sglang", &error);
    bool right = status == expected && strstr(error.message, message) != NULL &&
                 strncmp(error.message, path, strlen(path)) == 0;
    if (!right) {
        print_error("status %d, expected %d\n  message: %s\n  expected: %s\n", (int)status,
                    (int)expected, error.message, message);
    }
    return right;
}

static void assert_words_refused(const char *directory, const bad_pt *files, size_t count)
{
    test_path path = test_join(directory, "f");
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        pt_write_words(path.text, files[i].words, NULL, 0);
        if (!is_refused(path.text, files[i].status, files[i].message)) {
            print_error("  of: %s\n", files[i].words);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

static void programs_are_refused_by_name(void **state)
{
    assert_words_refused(*state, ALL_OF(programs));
}

static void broken_pickles_are_refused(void **state)
{
    assert_words_refused(*state, ALL_OF(machines));
}

static void tensors_that_do_not_fit_their_storage_are_refused(void **state)
{
    assert_words_refused(*state, ALL_OF(tensors));
}

static void broken_records_are_refused(void **state)
{
    assert_words_refused(*state, ALL_OF(passes));
}

static void the_good_ones_beside_them_are_read(void **state)
{
    static const char *const words[] = {STAT(COUNTS(WHOLE)), RECORDS(RECORD_0)};
    test_path path = test_join(*state, "f");
    for (int i = 0; i < 2; i++) {
        eplb_error error;
        pt_write_words(path.text, words[i], NULL, 0);
        assert_ok(read_bad_counts(path.text, "sglang", &error), &error);
    }
}

/* Counts of [2, 4] of a type, in the modes stat and per_pass. */
static void assert_counts_refused(const char *directory, const char *stat, const char *record,
                                  const void *counts, size_t size, eplb_status expected,
                                  const char *what)
{
    test_path path = test_join(directory, "f");
    char message[100];
    pt_write_words(path.text, stat, counts, size);
    snprintf(message, sizeof(message), "f: step 0: layer 1: expert 2: %s", what);
    assert_true(is_refused(path.text, expected, message));
    pt_write_words(path.text, record, counts, size);
    snprintf(message, sizeof(message), "f: step 5: layer 1: slot 2: %s", what);
    assert_true(is_refused(path.text, expected, message));
}

#define COUNTS_OF(type) VIEW(STORAGE(type, "0", "#8"), WHOLE)
#define BOTH_OF(type) STAT(COUNTS_OF(type)), RECORDS(RECORD("#5", "#0", COUNTS_OF(type)))

static void what_is_no_count_is_refused(void **state)
{
    const int32_t negative[8] = {0, 0, 0, 0, 0, 0, -7, -8};
    assert_counts_refused(*state, BOTH_OF("IntStorage"), negative, sizeof(negative), DATA,
                          "-7 is negative");
    const int64_t large[8] = {0, 0, 0, 0, 0, 0, INT64_C(9007199254740994), 0};
    assert_counts_refused(*state, BOTH_OF("LongStorage"), large, sizeof(large), OVERFLOW,
                          "9007199254740994 is above 2^53");
    const int8_t byte[8] = {0, 0, 0, 0, 0, 0, -128, 0};
    assert_counts_refused(*state, BOTH_OF("CharStorage"), byte, sizeof(byte), DATA,
                          "-128 is negative");
    const float nan[8] = {0, 0, 0, 0, 0, 0, NAN, 0};
    assert_counts_refused(*state, BOTH_OF("FloatStorage"), nan, sizeof(nan), DATA,
                          "nan is not a count");
    const double infinite[8] = {0, 0, 0, 0, 0, 0, INFINITY, 0};
    assert_counts_refused(*state, BOTH_OF("DoubleStorage"), infinite, sizeof(infinite), DATA,
                          "inf is not a count");
}

static void contradictions_with_the_experts_given_are_refused(void **state)
{
    static const struct {
        const char *words;
        int32_t experts;
        const char *message;
    } cases[] = {
        {STAT(COUNTS(WHOLE)), 3, "f: key 'logical_count': 4 counts a layer, expected 3"},
        {RECORDS(RECORD_0), 2, "layer 0: slot 2: expert 2 not in -1..1"},
        {RECORDS(RECORD_0), 4, "experts below 3, expected 4"},
    };
    test_path path = test_join(*state, "f");
    for (int i = 0; i < 3; i++) {
        eplb_error error;
        eplb_read_options options = options_for("");
        options.experts = cases[i].experts;
        pt_write_words(path.text, cases[i].words, NULL, 0);
        assert_status(read_rows(path.text, &options, NULL, NULL, &error), DATA, &error);
        assert_contains(error.message, cases[i].message);
    }
}

static void an_expert_beyond_the_limit_in_a_map_is_told_as_such(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_error error;
    eplb_read_options options = options_for("");
    options.max_experts = 2;
    pt_write_words(path.text, RECORDS(RECORD_0), NULL, 0);
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), LIMIT, &error);
    assert_contains(error.message, "layer 0: slot 2: expert 2 not in -1..1");
}

static void a_rank_that_the_file_name_contradicts_is_refused(void **state)
{
    test_path path = test_join(*state, "expert_distribution_recorder_17.5_3.pt");
    eplb_error error;
    pt_write_words(path.text, RECORDS(RECORD_0), NULL, 0);
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), DATA, &error);
    assert_contains(error.message, "_3.pt: records of rank 0, but the name of the file says 3");
}

static void a_number_in_another_name_is_no_rank(void **state)
{
    test_path path = test_join(*state, "run_2026.pt");
    eplb_error error;
    pt_write_words(path.text, RECORDS(RECORD_0), NULL, 0);
    assert_ok(read_rows(path.text, NULL, NULL, NULL, &error), &error);
}

/* A megabyte of one opcode, and STOP: neither time nor memory grow beyond the file's size. */
static void endless_nesting_is_refused(void **state)
{
    static const struct {
        unsigned char first;
        unsigned char repeated;
        const char *message;
    } cases[] = {
        {'(', '(', "more than 65536 values on the stack"},
        {')', 0x85, "more than counts need"},
        {']', ']', "more than counts need"},
        {'N', 'N', "more than counts need"},
    };
    enum { SIZE = 1 << 20 };
    test_path path = test_join(*state, "f");
    unsigned char *pickle = malloc(SIZE);
    assert_non_null(pickle);
    for (int i = 0; i < 4; i++) {
        memset(pickle, cases[i].repeated, SIZE);
        pickle[0] = 0x80;
        pickle[1] = 2;
        pickle[2] = cases[i].first;
        pickle[SIZE - 1] = '.';
        pt_write(path.text, pickle, SIZE, NULL, 0);
        assert_true(is_refused(path.text, LIMIT, cases[i].message));
    }
    free(pickle);
}

/* One record over and over, by two bytes each time. */
static void a_record_again_and_again_is_refused(void **state)
{
    enum { TIMES = 200 };
    unsigned char pickle[4096];
    size_t size = pt_pickle("$80$02}('last_physical_to_logical_map'" MAP(
                                WHOLE) "'records'](" RECORD("#0", "#0", COUNTS(WHOLE)) "q$00",
                            pickle);
    for (int i = 0; i < TIMES; i++) {
        size += pt_pickle("h$00", pickle + size);
    }
    size += pt_pickle("eu.", pickle + size);
    test_path path = test_join(*state, "f");
    pt_write(path.text, pickle, size, NULL, 0);
    assert_true(is_refused(path.text, PARSE, "records have more counts than the file has bytes"));
}

/* An archive of entries instead of the usual ones. */
typedef struct entry {
    const char *name;
    const char *content; /* NULL: the pickle, or the counts */
    unsigned method;
} entry;

static void assert_archive_refused(const char *directory, const entry entries[4],
                                   eplb_status expected, const char *message)
{
    static const int32_t counts[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    test_path path = test_join(directory, "f");
    unsigned char pickle[1024];
    size_t size = pt_pickle(STAT(COUNTS(WHOLE)), pickle);
    pt_file file;
    pt_start(&file);
    for (int i = 0; i < 4 && entries[i].name != NULL; i++) {
        bool is_pickle = strstr(entries[i].name, "data.pkl") != NULL;
        const char *content = entries[i].content;
        const void *usual = is_pickle ? (const void *)pickle : (const void *)counts;
        size_t usual_size = is_pickle ? size : sizeof(counts);
        pt_add(&file, entries[i].name, content != NULL ? content : usual,
               content != NULL ? strlen(content) : usual_size, entries[i].method);
    }
    pt_finish(&file, path.text);
    assert_true(is_refused(path.text, expected, message));
}

static void archives_that_are_not_of_torch_are_refused(void **state)
{
    const entry none[4] = {{"a/data/0", NULL, 0}, {"a/version", "3\n", 0}};
    assert_archive_refused(*state, none, PARSE, "f: zip archive: 0 entries '<name>/data.pkl'");
    const entry deep[4] = {{"a/b/data.pkl", NULL, 0}, {"a/b/data/0", NULL, 0}};
    assert_archive_refused(*state, deep, PARSE, "0 entries '<name>/data.pkl'");
    const entry two[4] = {{"a/data.pkl", NULL, 0}, {"b/data.pkl", NULL, 0}};
    assert_archive_refused(*state, two, PARSE, "2 entries '<name>/data.pkl'");
    const entry other[4] = {{"a/data.pkl", NULL, 0}, {"b/data/0", NULL, 0}};
    assert_archive_refused(*state, other, PARSE, "the archive has no entry with its storage");
    const entry big[4] = {
        {"a/data.pkl", NULL, 0}, {"a/data/0", NULL, 0}, {"a/byteorder", "big", 0}};
    assert_archive_refused(*state, big, UNSUPPORTED, "f: byte order 'big', expected 'little'");
    const entry longer[4] = {
        {"a/data.pkl", NULL, 0}, {"a/data/0", NULL, 0}, {"a/byteorder", "littler", 0}};
    assert_archive_refused(*state, longer, UNSUPPORTED, "byte order 'littler'");
    const entry packed[4] = {{"a/data.pkl", NULL, ZIP_DEFLATED}, {"a/data/0", NULL, 0}};
    assert_archive_refused(*state, packed, PARSE, "entry 'a/data.pkl': compressed, but such files");
    const entry storage[4] = {{"a/data.pkl", NULL, 0}, {"a/data/0", NULL, ZIP_DEFLATED}};
    assert_archive_refused(*state, storage, PARSE, "entry 'a/data/0': compressed, but such files");
    const entry twice[4] = {{"a/data.pkl", NULL, 0}, {"a/data/0", NULL, 0}, {"a/data/0", NULL, 0}};
    assert_archive_refused(*state, twice, PARSE, "entry 'a/data/0': there twice");
}

static void a_pickle_whose_bytes_changed_is_refused(void **state)
{
    test_path path = test_join(*state, "f");
    size_t size;
    pt_write_words(path.text, STAT(COUNTS(WHOLE)), NULL, 0);
    char *content = test_read_file(path.text, &size);
    content[60] ^= 1;
    test_write_file(path.text, content, size);
    free(content);
    assert_true(is_refused(path.text, PARSE, "entry 'a/data.pkl': its checksum is wrong"));
}

/* Wherever a file was cut. */
static void no_prefix_of_a_file_is_read(void **state)
{
    static const char *const names[] = {"format/sglang_stat.pt", "format/sglang_per_pass_0.pt"};
    test_path part = test_join(*state, "f");
    for (int i = 0; i < 2; i++) {
        size_t size;
        test_path path = test_data(names[i]);
        char *content = test_read_file(path.text, &size);
        for (size_t length = 1; length < size; length += length + 120 < size ? 7 : 1) {
            eplb_error error;
            eplb_read_options options = options_for("sglang");
            test_write_file(part.text, content, length);
            assert_status(read_rows(part.text, &options, NULL, NULL, &error), PARSE, &error);
        }
        free(content);
    }
}

TEST_MAIN(IN_DIRECTORY(programs_are_refused_by_name), IN_DIRECTORY(broken_pickles_are_refused),
          IN_DIRECTORY(tensors_that_do_not_fit_their_storage_are_refused),
          IN_DIRECTORY(broken_records_are_refused),
          IN_DIRECTORY(the_good_ones_beside_them_are_read),
          IN_DIRECTORY(what_is_no_count_is_refused),
          IN_DIRECTORY(contradictions_with_the_experts_given_are_refused),
          IN_DIRECTORY(an_expert_beyond_the_limit_in_a_map_is_told_as_such),
          IN_DIRECTORY(a_rank_that_the_file_name_contradicts_is_refused),
          IN_DIRECTORY(a_number_in_another_name_is_no_rank),
          IN_DIRECTORY(endless_nesting_is_refused),
          IN_DIRECTORY(a_record_again_and_again_is_refused),
          IN_DIRECTORY(archives_that_are_not_of_torch_are_refused),
          IN_DIRECTORY(a_pickle_whose_bytes_changed_is_refused),
          IN_DIRECTORY(no_prefix_of_a_file_is_read))
