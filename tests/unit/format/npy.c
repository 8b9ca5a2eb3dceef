/* SPDX-License-Identifier: MIT */
/* Arrays made here, of every item type, order of bytes and axes, and version. */
#include <eplb/source.h>

#include "reading.h"

enum { STEPS = 3, LAYERS = 4, EXPERTS = 5, ITEMS = STEPS * LAYERS * EXPERTS };

/* Counts up to 119 fit every type. */
static double value_at(int step, int layer, int expert)
{
    return (step * LAYERS + layer) * EXPERTS + expert + (step == 0 && layer == 0 ? 0 : 60);
}

typedef struct array_file {
    unsigned char bytes[4096];
    size_t size;
} array_file;

static void add_bytes(array_file *file, const void *bytes, size_t size)
{
    assert_true(file->size + size <= sizeof(file->bytes));
    memcpy(file->bytes + file->size, bytes, size);
    file->size += size;
}

/* Writes magic, version, length and dictionary, padded as NumPy does. */
static void add_header(array_file *file, int version, const char *dictionary)
{
    char header[256];
    size_t preamble = version == 1 ? 10 : 12;
    int total = (int)((preamble + strlen(dictionary) + 64) / 64 * 64);
    int length = snprintf(header, sizeof(header), "%-*s\n", total - (int)preamble - 1, dictionary);
    unsigned char start[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    start[8] = (unsigned char)(length & 0xff);
    start[9] = (unsigned char)(length >> 8);
    add_bytes(file, start, preamble);
    add_bytes(file, header, (size_t)length);
}

/* Writes a number as an item of a type such as ">u2". */
static void add_item(array_file *file, const char *type, double value)
{
    unsigned char bytes[8];
    size_t size = (size_t)(type[2] - '0');
    uint64_t bits;
    if (type[1] != 'f') {
        bits = (uint64_t)(int64_t)value;
    } else if (size == 4) {
        float narrow = (float)value;
        uint32_t word;
        memcpy(&word, &narrow, sizeof(word));
        bits = word;
    } else {
        memcpy(&bits, &value, sizeof(bits));
    }
    for (size_t i = 0; i < size; i++) {
        bytes[type[0] == '>' ? size - 1 - i : i] = (unsigned char)(bits >> 8 * i);
    }
    add_bytes(file, bytes, size);
}

static void add_items(array_file *file, const char *type, bool fortran)
{
    for (int i = 0; i < ITEMS; i++) {
        int step = fortran ? i % STEPS : i / (LAYERS * EXPERTS);
        int layer = fortran ? i / STEPS % LAYERS : i / EXPERTS % LAYERS;
        int expert = fortran ? i / (STEPS * LAYERS) : i % EXPERTS;
        add_item(file, type, value_at(step, layer, expert));
    }
}

static void check_row(void *context, const eplb_counts_row *row)
{
    int *rows = context;
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        assert_true(row->counts[e] == value_at((int)row->step, row->layer, e));
    }
    *rows |= 1 << (row->step * LAYERS + row->layer);
}

static void every_kind_of_array_is_read(void **state)
{
    static const char *const types[] = {"|i1", "|u1", "<i1", ">u1", "<i2", ">i2", "<u2",
                                        ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8",
                                        "<u8", ">u8", "<f4", ">f4", "<f8", ">f8"};
    test_path path = test_join(*state, "array.npy");
    for (int version = 1; version <= 3; version++) {
        for (size_t i = 0; i < 2 * sizeof(types) / sizeof(types[0]); i++) {
            const char *type = types[i / 2];
            bool fortran = i % 2 == 1;
            char dictionary[200];
            snprintf(dictionary, sizeof(dictionary),
                     "{'descr': '%s', 'fortran_order': %s, 'shape': (3, 4, 5), }", type,
                     fortran ? "True" : "False");
            array_file file = {.size = 0};
            add_header(&file, version, dictionary);
            add_items(&file, type, fortran);
            test_write_file(path.text, file.bytes, file.size);
            int rows = 0;
            eplb_error error;
            assert_ok(read_rows(path.text, NULL, check_row, &rows, &error), &error);
            assert_int_equal(rows, (1 << STEPS * LAYERS) - 1);
        }
    }
}

typedef struct bad_array {
    const char *dictionary;
    const char *type;
    double items[8];
    int count;
    eplb_status status;
    const char *message;
} bad_array;

#define PARSE EPLB_ERROR_PARSE
#define UNSUPPORTED EPLB_ERROR_UNSUPPORTED
#define ARRAY(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }"
#define FORTRAN(type, shape) "{'descr': '" type "', 'fortran_order': True, 'shape': " shape ", }"

/* Read with the default limits. */
static const bad_array bad_arrays[] = {
    {ARRAY("<i4", "(1, 2)"), "<i4", {1}, 1, PARSE, "step 0: layer 0: expert 1: the file ends"},
    {ARRAY("<i4", "(2, 1)"), "<i4", {1}, 1, PARSE, "step 0: layer 1: expert 0: the file ends"},
    {ARRAY("<i4", "(1, 2)"), "<i4", {1, 2, 3}, 3, PARSE, "byte 136: bytes behind the array"},
    {FORTRAN("<i4", "(1, 2)"), "<i4", {1}, 1, PARSE, "f: 132 bytes, expected 136"},
    {FORTRAN("<i4", "(1, 2)"), "<i4", {1, 2, 3}, 3, PARSE, "f: 140 bytes, expected 136"},
    {ARRAY("<i4", "(2, 2)"),
     "<i4",
     {1, 2, 3, -4},
     4,
     EPLB_ERROR_DATA,
     "f: step 0: layer 1: expert 1: -4 is negative"},
    {FORTRAN("<i4", "(2, 2)"),
     "<i4",
     {1, 2, -3, 4},
     4,
     EPLB_ERROR_DATA,
     "f: step 0: layer 0: expert 1: -3 is negative"},
    {ARRAY("|i1", "(1, 1)"), "|i1", {-128}, 1, EPLB_ERROR_DATA, "expert 0: -128 is negative"},
    {ARRAY("<f4", "(2, 1, 2)"),
     "<f4",
     {1, 2, 3, NAN},
     4,
     EPLB_ERROR_DATA,
     "f: step 1: layer 0: expert 1: nan is not a count"},
    {ARRAY("<i2", "(1, 2)"), "<i2", {1, -5}, 2, EPLB_ERROR_DATA, "expert 1: -5 is negative"},
    {ARRAY(">i2", "(1, 2)"), ">i2", {1, -5}, 2, EPLB_ERROR_DATA, "expert 1: -5 is negative"},
    {ARRAY("<i8", "(1, 2)"), "<i8", {1, -5}, 2, EPLB_ERROR_DATA, "expert 1: -5 is negative"},
    {ARRAY("<u8", "(1, 2)"),
     "<u8",
     {1, 9007199254740994.0},
     2,
     EPLB_ERROR_OVERFLOW,
     "expert 1: 9007199254740994 is above 2^53"},
    {ARRAY("<f4", "(1, 2)"), "<f4", {1, -0.5}, 2, EPLB_ERROR_DATA, "expert 1: -0.5 is negative"},
    {ARRAY("<f4", "(1, 2)"), "<f4", {1, INFINITY}, 2, EPLB_ERROR_DATA, "inf is not a count"},
    {ARRAY("<f8", "(1, 2)"), "<f8", {1, NAN}, 2, EPLB_ERROR_DATA, "expert 1: nan is not a count"},
    {ARRAY("<f8", "(1, 3)"), "<f8", {1, -2, NAN}, 3, EPLB_ERROR_DATA, "expert 1: -2 is negative"},
    {ARRAY("<f8", "(1, 3)"), "<f8", {1, -2}, 2, EPLB_ERROR_DATA, "expert 1: -2 is negative"},
    {ARRAY("<f8", "(1, 1)"), "<f8", {INFINITY}, 1, EPLB_ERROR_DATA, "inf is not a count"},
    {ARRAY("<f8", "(1, 1)"), "<f8", {-0.5}, 1, EPLB_ERROR_DATA, "-0.5 is negative"},
    {ARRAY("<i8", "(1, 2)"),
     "<i8",
     {1, 9007199254740994.0},
     2,
     EPLB_ERROR_OVERFLOW,
     "step 0: layer 0: expert 1: 9007199254740994 is above 2^53"},
    {ARRAY("<i4", "(0, 2)"), "<i4", {0}, 0, PARSE, "f: 1 steps, 0 layers, 2 experts: no counts"},
    {ARRAY("<i4", "(0, 1, 2)"), "<i4", {0}, 0, PARSE, "f: 0 steps, 1 layers"},
    {ARRAY("<i4", "(2,)"), "<i4", {1, 2}, 2, PARSE, "f: header: 1 dimensions"},
    {ARRAY("<i4", "()"), "<i4", {1, 2}, 2, PARSE, "f: header: 0 dimensions"},
    {ARRAY("<i4", "(1, 1, 1, 2)"), "<i4", {1, 2}, 2, PARSE, "f: header: 4 dimensions"},
    {ARRAY("<i4", "(1, -2)"), "<i4", {1, 2}, 2, PARSE, "'shape' is not a tuple of sizes"},
    {ARRAY("<i4", "(1 2)"), "<i4", {1, 2}, 2, PARSE, "'shape' is not a tuple of sizes"},
    {ARRAY("<i4", "[1, 2]"), "<i4", {1, 2}, 2, PARSE, "'shape' is not a tuple"},
    {ARRAY("<i4", "(1152921504606846976, 1)"), "<i4", {1}, 1, PARSE, "sizes below 10^18"},
    {ARRAY("<i4", "(4097, 1)"), "<i4", {1}, 1, EPLB_ERROR_LIMIT, "f: 4097 layers of 1 experts"},
    {ARRAY("<i4", "(1, 65537)"), "<i4", {1}, 1, EPLB_ERROR_LIMIT, "f: 1 layers of 65537 experts"},
    {ARRAY("<i4", "(576460752303423488, 4, 4)"),
     "<i4",
     {1},
     1,
     EPLB_ERROR_OVERFLOW,
     "f: 576460752303423488 steps of 4 layers of 4 experts: too large"},
    {ARRAY("<i4", "(57646075230342348, 4, 4)"), "<i4", {1}, 1, PARSE, "expert 1: the file ends"},
    {FORTRAN("<i4", "(57646075230342348, 4, 4)"), "<i4", {1}, 1, PARSE, "f: 132 bytes, expected"},
    {ARRAY("|b1", "(1, 1)"), "|i1", {1}, 1, UNSUPPORTED, "f: header: items of type '|b1'"},
    {ARRAY("<f2", "(1, 1)"), "<i2", {1}, 1, UNSUPPORTED, "items of type '<f2'"},
    {ARRAY("<c8", "(1, 1)"), "<i8", {1}, 1, UNSUPPORTED, "items of type '<c8'"},
    {ARRAY("|O", "(1, 1)"), "<i8", {1}, 1, UNSUPPORTED, "items of type '|O'"},
    {ARRAY("|i4", "(1, 1)"), "<i4", {1}, 1, UNSUPPORTED, "items of type '|i4'"},
    {ARRAY("<i16", "(1, 1)"), "<i8", {1}, 1, UNSUPPORTED, "items of type '<i16'"},
    {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1, 1), }",
     "<i4",
     {1},
     1,
     PARSE,
     "'descr' is not a short string"},
    {"{'descr': '<i4', 'fortran_order': false, 'shape': (1, 1), }",
     "<i4",
     {1},
     1,
     PARSE,
     "'fortran_order' is neither True nor False"},
    {"{'descr': '<i4', 'shape': (1, 1), }", "<i4", {1}, 1, PARSE, "is missing"},
    {"{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (1, 1), }",
     "<i4",
     {1},
     1,
     PARSE,
     "second key of one name"},
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1), 'x': 1}",
     "<i4",
     {1},
     1,
     PARSE,
     "unknown key"},
    {"{'descr': '<i4' 'fortran_order': False, 'shape': (1, 1)}",
     "<i4",
     {1},
     1,
     PARSE,
     "expected ',' or '}'"},
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1)} x",
     "<i4",
     {1},
     1,
     PARSE,
     "content behind the dictionary"},
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1)",
     "<i4",
     {1},
     1,
     PARSE,
     "expected ',' or '}'"},
    {"['descr']", "<i4", {1}, 1, PARSE, "byte 10: header: expected '{'"},
};

static void bad_arrays_are_refused(void **state)
{
    test_path path = test_join(*state, "f");
    int failed = 0;
    for (size_t i = 0; i < sizeof(bad_arrays) / sizeof(bad_arrays[0]); i++) {
        const bad_array *bad = &bad_arrays[i];
        array_file file = {.size = 0};
        eplb_error error = {0};
        add_header(&file, 1, bad->dictionary);
        for (int k = 0; k < bad->count; k++) {
            add_item(&file, bad->type, bad->items[k]);
        }
        test_write_file(path.text, file.bytes, file.size);
        eplb_status status = read_rows(path.text, NULL, NULL, NULL, &error);
        if (status != bad->status || strstr(error.message, bad->message) == NULL ||
            strncmp(error.message, path.text, strlen(path.text)) != 0) {
            print_error("%s\n  status %d, expected %d\n  message: %s\n  expected: %s\n",
                        bad->dictionary, (int)status, (int)bad->status, error.message,
                        bad->message);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

static void keys_in_any_order_and_no_last_comma_are_read(void **state)
{
    test_path path = test_join(*state, "f");
    array_file file = {.size = 0};
    eplb_error error;
    add_header(&file, 1, "{\"shape\":(1,1),\"fortran_order\":False,\"descr\":\"<i4\"}");
    add_item(&file, "<i4", 7);
    test_write_file(path.text, file.bytes, file.size);
    assert_ok(read_rows(path.text, NULL, NULL, NULL, &error), &error);
}

static void check_wide(void *context, const eplb_counts_row *row)
{
    const uint64_t *values = context;
    for (int e = 0; e < row->length; e++) {
        assert_true(row->counts[e] == (double)values[e]);
    }
}

static void wide_integers_are_exact(void **state)
{
    test_path path = test_join(*state, "f");
    const uint64_t values[] = {0,
                               UINT32_MAX,
                               UINT64_C(1) << 32,
                               (UINT64_C(1) << 32) + 1,
                               UINT64_C(0x15555555555555),
                               UINT64_C(0x0aaaaaaaaaaaab),
                               (UINT64_C(1) << 53) - 1};
    for (int last = 0; last < 2; last++) { /* with a value that needs care, and without */
        array_file file = {.size = 0};
        add_header(&file, 1, last == 0 ? ARRAY("<i8", "(1, 7)") : ARRAY("<i8", "(1, 8)"));
        for (int e = 0; e < 7; e++) {
            add_item(&file, "<i8", (double)values[e]);
        }
        uint64_t all[8] = {0};
        memcpy(all, values, sizeof(values));
        all[7] = UINT64_C(1) << 53;
        if (last == 1) {
            add_item(&file, "<i8", (double)all[7]);
        }
        eplb_error error;
        test_write_file(path.text, file.bytes, file.size);
        assert_ok(read_rows(path.text, NULL, check_wide, all, &error), &error);
    }
}

static void integers_are_exact_up_to_2_to_53(void **state)
{
    test_path path = test_join(*state, "f");
    for (uint64_t above = 0; above < 2; above++) {
        array_file file = {.size = 0};
        eplb_error error;
        add_header(&file, 1, ARRAY("<u8", "(1, 1)"));
        unsigned char item[8] = {(unsigned char)above, 0, 0, 0, 0, 0, 0x20, 0};
        add_bytes(&file, item, sizeof(item));
        test_write_file(path.text, file.bytes, file.size);
        assert_status(read_rows(path.text, NULL, NULL, NULL, &error),
                      above == 0 ? EPLB_OK : EPLB_ERROR_OVERFLOW, &error);
    }
}

static void every_truncated_header_is_refused(void **state)
{
    test_path path = test_join(*state, "f");
    eplb_read_options options = options_for("npy");
    array_file file = {.size = 0};
    add_header(&file, 2, ARRAY("<i4", "(1, 1)"));
    for (size_t size = 1; size <= file.size; size++) {
        eplb_error error;
        test_write_file(path.text, file.bytes, size);
        assert_status(read_rows(path.text, &options, NULL, NULL, &error), PARSE, &error);
    }
}

static void headers_of_other_versions_and_lengths_are_refused(void **state)
{
    test_path path = test_join(*state, "f");
    array_file file = {.size = 0};
    eplb_error error;
    add_header(&file, 2, ARRAY("<i4", "(1, 1)"));
    add_item(&file, "<i4", 1);
    file.bytes[10] = 1; /* 65536 more bytes of dictionary */
    test_write_file(path.text, file.bytes, file.size);
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), EPLB_ERROR_LIMIT, &error);
    assert_contains(error.message, "header of 65652 bytes");
    file.bytes[6] = 4;
    test_write_file(path.text, file.bytes, file.size);
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), UNSUPPORTED, &error);
    assert_contains(error.message, "version 4.0");
}

enum { LONG = 100000, WIDTH = 3 };

/* Makes an array of [LONG][1][WIDTH] items "<u4": counts of step * 5 + expert. */
static void write_long_array(const char *path, const char *dictionary, bool fortran)
{
    array_file header = {.size = 0};
    add_header(&header, 1, dictionary);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(header.bytes, 1, header.size, out), header.size);
    for (int i = 0; i < LONG * WIDTH; i++) {
        unsigned value = (unsigned)(fortran ? i % LONG * 5 + i / LONG : i / WIDTH * 5 + i % WIDTH);
        const char item[4] = {(char)(value & 0xff), (char)(value >> 8 & 0xff), (char)(value >> 16),
                              0};
        assert_int_equal(fwrite(item, 1, sizeof(item), out), sizeof(item));
    }
    assert_int_equal(fclose(out), 0);
}

static void check_long_array(const char *path)
{
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, path, NULL, &error), &error);
    for (int t = 0; t < LONG; t++) {
        assert_ok(eplb_counts_next(reader, &row, &error), &error);
        assert_true(row.step == t && row.length == WIDTH);
        assert_true(row.counts[0] == t * 5 && row.counts[1] == t * 5 + 1 &&
                    row.counts[2] == t * 5 + 2);
    }
    assert_int_equal(eplb_counts_next(reader, &row, &error), EPLB_END);
    eplb_counts_close(&reader);
}

/* Steps that lie across the ends of the reader's buffer. */
static void long_arrays_in_c_order_are_read_buffer_by_buffer(void **state)
{
    test_path path = test_join(*state, "f");
    write_long_array(path.text, ARRAY("<u4", "(100000, 1, 3)"), false);
    check_long_array(path.text);
}

/* More steps than one window holds. */
static void long_fortran_arrays_are_read_window_by_window(void **state)
{
    test_path path = test_join(*state, "f");
    write_long_array(path.text, FORTRAN("<u4", "(100000, 1, 3)"), true);
    check_long_array(path.text);
}

/* As sources want them: a log is looked at step by step. */
static void fortran_arrays_come_step_by_step(void **state)
{
    (void)state;
    test_path path = test_data("format/steps_fortran.npy");
    eplb_source *source;
    eplb_source_step step = {.struct_size = sizeof(step)};
    eplb_error error;
    int64_t steps = 0;
    eplb_status status;
    assert_ok(eplb_source_open(&source, NULL, path.text, NULL, &error), &error);
    while ((status = eplb_source_next(source, &step, &error)) == EPLB_OK) {
        assert_true(step.step == steps && step.rows == 3);
        steps++;
    }
    assert_status(status, EPLB_END, &error);
    assert_true(steps == 6);
    eplb_source_close(&source);
}

static void experts_that_differ_from_those_given_are_refused(void **state)
{
    (void)state;
    test_path path = test_data("format/steps.npy");
    eplb_read_options options = options_for("");
    options.experts = 9;
    eplb_error error;
    assert_status(read_rows(path.text, &options, NULL, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "8 counts a layer, expected 9");
}

TEST_MAIN(IN_DIRECTORY(every_kind_of_array_is_read), IN_DIRECTORY(bad_arrays_are_refused),
          IN_DIRECTORY(keys_in_any_order_and_no_last_comma_are_read),
          IN_DIRECTORY(wide_integers_are_exact), IN_DIRECTORY(integers_are_exact_up_to_2_to_53),
          IN_DIRECTORY(every_truncated_header_is_refused),
          IN_DIRECTORY(headers_of_other_versions_and_lengths_are_refused),
          IN_DIRECTORY(long_arrays_in_c_order_are_read_buffer_by_buffer),
          IN_DIRECTORY(long_fortran_arrays_are_read_window_by_window),
          cmocka_unit_test(fortran_arrays_come_step_by_step),
          cmocka_unit_test(experts_that_differ_from_those_given_are_refused))
