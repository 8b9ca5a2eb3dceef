/* SPDX-License-Identifier: MIT */
/* omni-infer's placements, whose layers and ranks may differ in slots. */
#include "maps.h"

#define U32(value) (char)((value)&0xff), (char)((value) >> 8 & 0xff), 0, 0

static eplb_placement *read_omni(const char *path)
{
    eplb_error error;
    eplb_placement *placement;
    const eplb_format *found = NULL;
    assert_ok(eplb_placement_read(&placement, NULL, path, NULL, &found, &error), &error);
    assert_string_equal(eplb_format_name(found), "omni");
    return placement;
}

static void all_three_forms_are_the_recorded_map(void **state)
{
    (void)state;
    static const char *const names[] = {"format/omni_placement.npy", "format/omni_placement.bin",
                                        "format/omni_placement.txt"};
    eplb_placement *recorded_placement = make_recorded_placement();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_path path = test_data(names[i]);
        eplb_placement *placement = read_omni(path.text);
        assert_int_equal(eplb_placement_layers(placement), LAYERS);
        assert_int_equal(eplb_placement_experts(placement), EXPERTS);
        assert_int_equal(eplb_placement_slots(placement), SLOTS);
        assert_null(eplb_placement_layer_slots(placement, 0));
        assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
        for (int32_t l = 0; l < LAYERS; l++) {
            int64_t copies;
            assert_ok(eplb_placement_copies(recorded_placement, placement, l, &copies, NULL), NULL);
            assert_int_equal(copies, 0);
        }
        eplb_placement_destroy(&placement);
    }
    eplb_placement_destroy(&recorded_placement);
}

/* GPU 0 has four slots in layer 1 and three in the others. */
static void layers_may_differ_in_slots(void **state)
{
    (void)state;
    static const int32_t first[13] = {0, 1, 2, -1, 0, 3, 4, 0, 5, 6, 3, 5, 7};
    static const int32_t second[13] = {1, 2, 5, 7, 0, 2, 3, 2, 4, 5, 1, 6, 7};
    static const int32_t slots[GPUS] = {3, 3, 3, 3};
    test_path path = test_data("format/omni_ragged.npy");
    eplb_placement *placement = read_omni(path.text);
    assert_int_equal(eplb_placement_slots(placement), 13);
    assert_memory_equal(eplb_placement_layer_slots(placement, 0), slots, sizeof(slots));
    assert_int_equal(eplb_placement_open_slots(placement, 1), 13);
    assert_memory_equal(eplb_placement_row(placement, 0), first, sizeof(first));
    assert_memory_equal(eplb_placement_row(placement, 1), second, sizeof(second));
    assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
    eplb_placement_destroy(&placement);
}

static void what_was_read_is_written_again(void **state)
{
    test_path from = test_data("format/omni_ragged.npy");
    test_path to = test_join(*state, "out");
    eplb_placement *placement = read_omni(from.text);
    eplb_error error;
    assert_ok(eplb_placement_write(placement, NULL, to.text, eplb_format_find("omni"), &error),
              &error);
    size_t size;
    size_t written_size;
    char *expected = test_read_file(from.text, &size);
    char *written = test_read_file(to.text, &written_size);
    assert_int_equal(written_size, size);
    assert_memory_equal(written, expected, size);
    free(expected);
    free(written);
    eplb_placement_destroy(&placement);
}

static void other_formats_name_the_layer_and_the_format_that_can(void **state)
{
    static const char *const others[] = {"sglang", "ascend", "vllm", "trtllm"};
    test_path from = test_data("format/omni_ragged.npy");
    test_path to = test_join(*state, "out");
    eplb_placement *placement = read_omni(from.text);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        eplb_error error;
        assert_status(
            eplb_placement_write(placement, NULL, to.text, eplb_format_find(others[i]), &error),
            EPLB_ERROR_UNSUPPORTED, &error);
        assert_contains(error.message, "layers with different numbers of slots: layer 0 has 3 of "
                                       "4 on GPU 0; omni can");
        assert_int_not_equal(access(to.text, F_OK), 0);
    }
    eplb_placement_destroy(&placement);
}

/* The same bytes are counts of three steps, or a placement on three ranks. */
static void an_array_is_what_is_asked_for(void **state)
{
    (void)state;
    test_path path = test_data("format/omni_placement.npy");
    eplb_counts_reader *reader;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_string_equal(eplb_format_name(eplb_counts_format(reader)), "npy");
    eplb_counts_close(&reader);
    eplb_placement *placement = read_omni(path.text);
    eplb_placement_destroy(&placement);
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* An array of version 1.0 with the dictionary's members and the data given. */
static void write_array(const char *path, const char *members, const char *data, size_t size)
{
    char bytes[512] = "\x93NUMPY\x01";
    int length = snprintf(bytes + 10, 128, "{%s}\n", members);
    bytes[8] = (char)length;
    memcpy(bytes + 10 + length, data, size);
    write_bytes(path, bytes, 10 + (size_t)length + size);
}

/* Rank 0 has the experts 0 and 2, rank 1 the expert 1, in the one layer. */
static void every_order_and_width_of_integers_is_read(void **state)
{
    static const int32_t row[3] = {0, 2, 1};
    static const char c_order[6] = {1, 0, 1, 0, 1, 0};
    static const char fortran[12] = {0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0};
    test_path path = test_join(*state, "f");
    write_array(path.text, "'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 3)", c_order,
                sizeof(c_order));
    eplb_placement *placement = read_omni(path.text);
    assert_memory_equal(eplb_placement_row(placement, 0), row, sizeof(row));
    eplb_placement_destroy(&placement);
    write_array(path.text, "'descr': '>i2', 'fortran_order': True, 'shape': (2, 1, 3)", fortran,
                sizeof(fortran));
    placement = read_omni(path.text);
    assert_memory_equal(eplb_placement_row(placement, 0), row, sizeof(row));
    eplb_placement_destroy(&placement);
}

static void assert_refused(const char *path, const char *format, eplb_status expected,
                           const char *part)
{
    eplb_read_options options = options_for(format);
    options.max_layers = 4;
    options.max_experts = 6;
    options.max_bytes = 1000;
    eplb_placement *placement;
    eplb_error error;
    assert_status(eplb_placement_read(&placement, NULL, path, &options, NULL, &error), expected,
                  &error);
    assert_contains(error.message, part);
    assert_null(placement);
}

static void broken_arrays_are_refused(void **state)
{
    static const char data[24] = {1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0};
    static const struct {
        const char *members;
        size_t size;
        eplb_status status;
        const char *part;
    } bad[] = {
        {"'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)", 24, EPLB_ERROR_PARSE,
         "2 dimensions of integers, expected integers [ranks, layers, experts]"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (6,)", 24, EPLB_ERROR_PARSE,
         "1 dimensions of integers, expected integers [ranks, layers, experts]"},
        {"'descr': '|b1', 'fortran_order': False, 'shape': (2, 1, 3)", 6, EPLB_ERROR_UNSUPPORTED,
         "items of type '|b1', expected integers of 8 to 64 bits"},
        {"'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3)", 24, EPLB_ERROR_PARSE,
         "3 dimensions of floats"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (2, 1, 3)", 24, EPLB_ERROR_PARSE,
         "rank 0: layer 0: expert 2: 7, expected 0 or 1"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (2, 1, 3)", 23, EPLB_ERROR_PARSE,
         "23 bytes of cells, expected 2 ranks x 1 layers x 3 experts x 4"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (1, 1, 2)", 12, EPLB_ERROR_PARSE,
         "12 bytes of cells"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (0, 1, 2)", 0, EPLB_ERROR_PARSE,
         "0 ranks, 1 layers, 2 experts: no placement"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (1, 5, 2)", 24, EPLB_ERROR_LIMIT,
         "limits 65536, 4 and 6"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 7)", 24, EPLB_ERROR_LIMIT,
         "limits 65536, 4 and 6"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (65537, 2, 2)", 24, EPLB_ERROR_LIMIT,
         "65537 ranks"},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (65536, 4, 6)", 24, EPLB_ERROR_PARSE,
         "24 bytes of cells"},
    };
    test_path path = test_join(*state, "f");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_array(path.text, bad[i].members, data, bad[i].size);
        assert_refused(path.text, "", bad[i].status, bad[i].part);
    }
    static const char negative[4] = {(char)0xff, (char)0xff, 1, 0};
    write_array(path.text, "'descr': '<i2', 'fortran_order': False, 'shape': (1, 1, 2)", negative,
                sizeof(negative));
    assert_refused(path.text, "", EPLB_ERROR_PARSE, "expert 0: -1, expected 0 or 1");
    write_array(path.text, "'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 2)", negative,
                sizeof(negative));
    assert_refused(path.text, "", EPLB_ERROR_PARSE, "expert 0: 65535, expected 0 or 1");
}

static void broken_binaries_are_refused(void **state)
{
    static const char good[] = {U32(1), U32(1), U32(2), U32(1), U32(1)};
    static const char no_rank[] = {U32(0), U32(1), U32(2), U32(1), U32(1)};
    static const char many[] = {U32(1), U32(1), U32(7), U32(1), U32(1)};
    static const char two[] = {U32(1), U32(1), U32(2), U32(1), U32(2)};
    test_path path = test_join(*state, "f");
    write_bytes(path.text, good, sizeof(good));
    eplb_placement *placement = read_omni(path.text);
    eplb_placement_destroy(&placement);
    write_bytes(path.text, good, sizeof(good) - 4);
    assert_refused(path.text, "", EPLB_ERROR_PARSE, "4 bytes of cells");
    write_bytes(path.text, good, sizeof(good) - 1);
    assert_refused(path.text, "", EPLB_ERROR_PARSE, "7 bytes of cells");
    write_bytes(path.text, good, 8);
    assert_refused(path.text, "omni", EPLB_ERROR_PARSE, "f:1: expected the numbers of ranks");
    write_bytes(path.text, good, 12);
    assert_refused(path.text, "omni", EPLB_ERROR_PARSE, "0 bytes of cells");
    write_bytes(path.text, no_rank, sizeof(no_rank));
    assert_refused(path.text, "omni", EPLB_ERROR_PARSE, "0 ranks");
    write_bytes(path.text, many, sizeof(many));
    assert_refused(path.text, "", EPLB_ERROR_LIMIT, "7 experts");
    write_bytes(path.text, two, sizeof(two));
    assert_refused(path.text, "", EPLB_ERROR_PARSE, "no known format of placements");
    assert_refused(path.text, "omni", EPLB_ERROR_PARSE, "expert 1: 2, expected 0 or 1");
}

static void broken_texts_are_refused(void **state)
{
    static const struct {
        const char *format;
        const char *content;
        eplb_status status;
        const char *part;
    } bad[] = {
        {"", "1 1 2\n1", EPLB_ERROR_PARSE, "rank 0: layer 0: expert 1: the file ends too early"},
        {"", "1 1 2\n1 0 1\n", EPLB_ERROR_PARSE, "content behind the 2 cells"},
        {"", "1 1 2\n0 0\n", EPLB_ERROR_PARSE, "1 layers of 0 slots: nothing to read"},
        {"", "1 1 2\n10\n", EPLB_ERROR_PARSE, "expert 0: '10', expected 0 or 1"},
        {"omni", "1 1 2\n1 2\n", EPLB_ERROR_PARSE, "expert 1: '2', expected 0 or 1"},
        {"omni", "2 1 2\n1 0\n\n1 x\x01y\n", EPLB_ERROR_PARSE, "rank 1: layer 0: expert 1: 'x?y'"},
        {"omni", "1 1\n1 1\n", EPLB_ERROR_PARSE, "f:1: expected the numbers of ranks, layers and"},
        {"omni", "1 1 2 2\n1 1\n", EPLB_ERROR_PARSE, "f:1: expected the numbers"},
        {"omni", "-1 1 2\n1 1\n", EPLB_ERROR_PARSE, "f:1: expected the numbers"},
        {"omni", "1 1 2", EPLB_ERROR_PARSE, "f:1: expected the numbers"},
        {"", "1 0 2\n", EPLB_ERROR_PARSE, "0 layers"},
        {"", "1 1 7\n1 1 1 1 1 1 1\n", EPLB_ERROR_LIMIT, "7 experts"},
        {"", "65536 4 6\n1 1 1\n", EPLB_ERROR_PARSE, "6 bytes behind the first line are too few"},
        {"", "9999999999 1 1\n1\n", EPLB_ERROR_PARSE, "no known format"},
        {"", "", EPLB_ERROR_PARSE, "the file is empty"},
    };
    test_path path = test_join(*state, "f");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        test_write_text(path.text, bad[i].content);
        assert_refused(path.text, bad[i].format, bad[i].status, bad[i].part);
    }
}

static void what_contradicts_the_file_is_refused(void **state)
{
    (void)state;
    test_path path = test_data("format/omni_placement.npy");
    eplb_read_options options = options_for("");
    eplb_placement *placement;
    eplb_error error;
    options.gpus = 3;
    assert_status(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "made for 4 GPUs, expected 3");
    options.gpus = 0;
    options.experts = 9;
    assert_status(eplb_placement_read(&placement, NULL, path.text, &options, NULL, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "8 experts, expected 9");
}

static eplb_status read_and_write(const eplb_hooks *hooks, void *path)
{
    eplb_placement *placement;
    char *text = NULL;
    size_t length;
    eplb_status status = eplb_placement_read(&placement, hooks, path, NULL, NULL, NULL);
    if (status == EPLB_OK) {
        status =
            eplb_placement_format(placement, hooks, eplb_format_find("omni"), &text, &length, NULL);
    }
    if (text != NULL) {
        hooks->release(hooks->memory_context, text);
    }
    eplb_placement_destroy(&placement);
    return status;
}

static void every_failed_allocation_leaks_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"format/omni_ragged.npy", "format/omni_placement.bin",
                                        "format/omni_placement.txt"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_path path = test_data(names[i]);
        test_each_failing_allocation(read_and_write, path.text);
    }
}

TEST_MAIN(cmocka_unit_test(all_three_forms_are_the_recorded_map),
          cmocka_unit_test(layers_may_differ_in_slots),
          IN_DIRECTORY(what_was_read_is_written_again),
          IN_DIRECTORY(other_formats_name_the_layer_and_the_format_that_can),
          cmocka_unit_test(an_array_is_what_is_asked_for),
          IN_DIRECTORY(every_order_and_width_of_integers_is_read),
          IN_DIRECTORY(broken_arrays_are_refused), IN_DIRECTORY(broken_binaries_are_refused),
          IN_DIRECTORY(broken_texts_are_refused),
          cmocka_unit_test(what_contradicts_the_file_is_refused),
          cmocka_unit_test(every_failed_allocation_leaks_nothing))
