/* SPDX-License-Identifier: MIT */
/* Counts that are written read as the same numbers, and files appear whole or not at all. */
#include "reading.h"

enum { SHAPE_LAYERS = 2, SHAPE_EXPERTS = 5, SHAPE_MODEL = 5 };

static const int32_t ids[SHAPE_LAYERS] = {1, 3};

/* What no power of ten, no integer of 64 bits and no float32 holds is among them. */
static const double numbers[SHAPE_LAYERS][SHAPE_EXPERTS] = {
    {0.0, 0.1, 9007199254740992.0, 18014398509481984.0, 1e300},
    {5e-324, 1.0 / 3.0, 4.0, 123456789.125, 1.7976931348623157e308},
};

static eplb_counts_shape make_shape(int64_t steps)
{
    eplb_counts_shape shape;
    eplb_counts_shape_init(&shape);
    shape.layers = SHAPE_LAYERS;
    shape.layer_ids = ids;
    shape.model_layers = SHAPE_MODEL;
    shape.experts = SHAPE_EXPERTS;
    shape.steps = steps;
    return shape;
}

static bool writes_counts(const eplb_format *format)
{
    return (eplb_format_flags(format) & EPLB_FORMAT_WRITES_COUNTS) != 0;
}

/* Different in each step, as far as doubles go. */
static double count_at(int64_t step, int32_t layer, int32_t expert)
{
    double count = numbers[layer][expert] * (double)(step + 1);
    return isfinite(count) ? count : numbers[layer][expert];
}

static eplb_status write_steps(const char *path, const eplb_format *format, int64_t promised,
                               int64_t steps, const eplb_hooks *hooks)
{
    eplb_counts_shape shape = make_shape(promised);
    eplb_counts_writer *writer;
    eplb_status status = eplb_counts_writer_create(&writer, hooks, path, format, &shape, NULL);
    for (int64_t s = 0; s < steps && status == EPLB_OK; s++) {
        for (int32_t l = 0; l < SHAPE_LAYERS && status == EPLB_OK; l++) {
            double row[SHAPE_EXPERTS];
            for (int32_t e = 0; e < SHAPE_EXPERTS; e++) {
                row[e] = count_at(s, l, e);
            }
            status = eplb_counts_writer_add(writer, s, ids[l], row, SHAPE_EXPERTS, NULL);
        }
    }
    if (status == EPLB_OK) {
        status = eplb_counts_writer_commit(writer, NULL);
    }
    if (writer != NULL) {
        eplb_counts_writer_destroy(&writer);
    }
    assert_null(writer);
    return status;
}

/* What is known of a file while it is read. */
typedef struct comparison {
    const eplb_format *format;
    int64_t rows;
} comparison;

/* The place of a row's layer in `ids`; -1: a dense layer. */
static int32_t layer_of(const comparison *self, const eplb_counts_row *row)
{
    bool is_array = strcmp(eplb_format_name(self->format), "npy") == 0;
    for (int32_t l = 0; l < SHAPE_LAYERS; l++) {
        if (row->layer == (is_array ? l : ids[l])) {
            return l;
        }
    }
    assert_false(is_array);
    return -1;
}

static void compare_row(void *context, const eplb_counts_row *row)
{
    comparison *self = context;
    int32_t layer = layer_of(self, row);
    assert_int_equal(row->length, SHAPE_EXPERTS);
    for (int32_t e = 0; e < SHAPE_EXPERTS; e++) {
        assert_true(row->counts[e] == (layer >= 0 ? count_at(row->step, layer, e) : 0.0));
    }
    self->rows++;
}

static void assert_same_numbers(const char *path, const eplb_format *format, int64_t steps)
{
    eplb_error error;
    eplb_read_options options = options_for("");
    comparison self = {.format = format};
    assert_ok(read_rows(path, &options, compare_row, &self, &error), &error);
    bool all = (eplb_format_flags(format) & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
    assert_int_equal(self.rows, steps * (all ? SHAPE_MODEL : SHAPE_LAYERS));
}

static void every_format_reads_what_it_wrote(void **state)
{
    test_path path = test_join(*state, "out");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        const eplb_format *format = eplb_format_at(i);
        for (int64_t steps = 1; writes_counts(format) && steps <= 3; steps++) {
            assert_ok(write_steps(path.text, format, steps, steps, NULL), NULL);
            assert_same_numbers(path.text, format, steps);
        }
    }
}

static void steps_need_not_be_known_but_for_arrays(void **state)
{
    test_path path = test_join(*state, "out");
    static const char *const names[] = {"csv", "jsonl", "sglang"};
    for (size_t i = 0; i < 3; i++) {
        const eplb_format *format = eplb_format_find(names[i]);
        assert_ok(write_steps(path.text, format, -1, 2, NULL), NULL);
        assert_same_numbers(path.text, format, 2);
    }
    const eplb_format *npy = eplb_format_find("npy");
    assert_status(write_steps(path.text, npy, -1, 2, NULL), EPLB_ERROR_ARGUMENT, NULL);
}

static void the_text_is_what_it_should_be(void **state)
{
    static const struct {
        const char *format;
        int64_t steps;
        const char *text;
    } cases[] = {
        {"csv", -1, "step,layer,expert,tokens\n7,1,0,3\n7,1,1,2.5e+00\n9,3,0,4\n9,3,1,0\n"},
        {"jsonl", -1,
         "{\"step\":7,\"layer\":1,\"counts\":[3,2.5e+00]}\n"
         "{\"step\":9,\"layer\":3,\"counts\":[4,0]}\n"},
        {"sglang", 2,
         "{\"logical_count\":[[\n[0,0],\n[3,2.5e+00],\n[0,0],\n[0,0],\n[0,0]],[\n"
         "[0,0],\n[0,0],\n[0,0],\n[4,0],\n[0,0]]]}\n"},
    };
    test_path path = test_join(*state, "out");
    for (size_t i = 0; i < 3; i++) {
        eplb_counts_shape shape = make_shape(cases[i].steps);
        shape.experts = 2;
        eplb_counts_writer *writer;
        const double first[] = {3.0, 2.5};
        const double second[] = {4.0};
        assert_ok(eplb_counts_writer_create(&writer, NULL, path.text,
                                            eplb_format_find(cases[i].format), &shape, NULL),
                  NULL);
        assert_ok(eplb_counts_writer_add(writer, 7, 1, first, 2, NULL), NULL);
        assert_ok(eplb_counts_writer_add(writer, 9, 3, second, 1, NULL), NULL);
        assert_ok(eplb_counts_writer_commit(writer, NULL), NULL);
        eplb_counts_writer_destroy(&writer);
        char *text = test_read_file(path.text, NULL);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
}

/* NumPy's format 1.0, by hand. */
static void arrays_begin_with_the_header_of_numpy(void **state)
{
    static const char *const dictionaries[] = {
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 5), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2, 5), }",
    };
    test_path path = test_join(*state, "out");
    for (int64_t steps = 1; steps <= 2; steps++) {
        assert_ok(write_steps(path.text, eplb_format_find("npy"), steps, steps, NULL), NULL);
        size_t size;
        char *bytes = test_read_file(path.text, &size);
        assert_int_equal(size, 128 + (size_t)steps * SHAPE_LAYERS * SHAPE_EXPERTS * 8);
        assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
        const char *dictionary = dictionaries[steps - 1];
        assert_memory_equal(bytes + 10, dictionary, strlen(dictionary));
        for (size_t i = 10 + strlen(dictionary); i < 127; i++) {
            assert_int_equal(bytes[i], ' ');
        }
        assert_int_equal(bytes[127], '\n');
        /* 4.0, expert 2 of the second layer */
        assert_memory_equal(bytes + 128 + 7 * 8, "\0\0\0\0\0\0\x10\x40", 8);
        free(bytes);
    }
}

static void rows_out_of_place_are_refused(void **state)
{
    static const struct {
        int64_t step;
        int32_t layer;
        int32_t length;
        double count;
        eplb_status status;
        const char *message;
    } cases[] = {
        {0, 1, 1, 1.0, EPLB_ERROR_ARGUMENT, "step 0: layer 1: not behind"},
        {0, 3, 1, 1.0, EPLB_ERROR_ARGUMENT, "not behind"},
        {1, 3, 1, 1.0, EPLB_ERROR_ARGUMENT, "not behind"},
        {1, 2, 1, 1.0, EPLB_ERROR_ARGUMENT, "layer 2: not one of the layers"},
        {2, 1, 6, 1.0, EPLB_ERROR_ARGUMENT, "6 counts, expected at most 5"},
        {INT64_C(9007199254740993), 1, 1, 1.0, EPLB_ERROR_ARGUMENT, "above 2^53"},
        {2, 1, 1, NAN, EPLB_ERROR_DATA, "step 2: layer 1: expert 0: nan is not a count"},
        {2, 1, 1, INFINITY, EPLB_ERROR_DATA, "inf is not a count"},
        {2, 1, 1, -1.0, EPLB_ERROR_DATA, "-1 is not a count"},
        {2, 1, 1, 1.0, EPLB_ERROR_ARGUMENT, "more than the 1 steps promised"},
    };
    test_path path = test_join(*state, "out");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_counts_shape shape = make_shape(i == 9 ? 1 : -1);
        eplb_counts_writer *writer;
        double row[6] = {cases[i].count};
        const double good[1] = {1.0};
        eplb_error error;
        assert_ok(eplb_counts_writer_create(&writer, NULL, path.text, eplb_format_find("jsonl"),
                                            &shape, &error),
                  &error);
        assert_ok(eplb_counts_writer_add(writer, 1, 3, good, 1, &error), &error);
        assert_status(eplb_counts_writer_add(writer, cases[i].step, cases[i].layer, row,
                                             cases[i].length, &error),
                      cases[i].status, &error);
        assert_contains(error.message, cases[i].message);
        assert_status(eplb_counts_writer_commit(writer, &error), EPLB_ERROR_ARGUMENT, &error);
        eplb_counts_writer_destroy(&writer);
        assert_int_not_equal(access(path.text, F_OK), 0);
    }
}

static void half_of_the_steps_is_no_file(void **state)
{
    test_path path = test_join(*state, "out");
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        if (writes_counts(eplb_format_at(i))) {
            assert_status(write_steps(path.text, eplb_format_at(i), 3, 2, NULL),
                          EPLB_ERROR_ARGUMENT, NULL);
            assert_status(write_steps(path.text, eplb_format_at(i), 3, 0, NULL),
                          EPLB_ERROR_ARGUMENT, NULL);
            assert_int_not_equal(access(path.text, F_OK), 0);
        }
    }
}

static void shapes_that_cannot_be_are_refused(void **state)
{
    test_path path = test_join(*state, "out");
    static const int32_t descending[SHAPE_LAYERS] = {3, 3};
    for (int i = 0; i < 7; i++) {
        eplb_counts_shape shape = make_shape(1);
        shape.layers = i == 0 ? 0 : shape.layers;
        shape.experts = i == 1 ? 0 : shape.experts;
        shape.model_layers = i == 2 ? 3 : shape.model_layers; /* layer 3 is the fourth */
        shape.layer_ids = i == 3 ? descending : ids;
        shape.steps = i == 4 ? 0 : 1;
        shape.struct_size = i == 5 ? 0 : shape.struct_size;
        eplb_counts_writer *writer;
        eplb_error error;
        assert_status(eplb_counts_writer_create(&writer, NULL, path.text,
                                                eplb_format_find(i == 6 ? "ascend" : "csv"), &shape,
                                                &error),
                      i == 6 ? EPLB_ERROR_UNSUPPORTED : EPLB_ERROR_ARGUMENT, &error);
        assert_null(writer);
        assert_int_not_equal(access(path.text, F_OK), 0);
    }
}

typedef struct writing {
    const char *path;
    const eplb_format *format;
} writing;

static eplb_status write_three(const eplb_hooks *hooks, void *context)
{
    const writing *self = context;
    eplb_status status = write_steps(self->path, self->format, 3, 3, hooks);
    assert_int_equal(access(self->path, F_OK) == 0, status == EPLB_OK);
    return status;
}

static void writing_survives_each_failing_allocation(void **state)
{
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        if (writes_counts(eplb_format_at(i))) {
            test_path path = test_join(*state, eplb_format_name(eplb_format_at(i)));
            writing context = {path.text, eplb_format_at(i)};
            test_each_failing_allocation(write_three, &context);
        }
    }
}

static void fits_says_what_the_content_is(void **state)
{
    test_path path = test_join(*state, "out");
    const eplb_format *jsonl = eplb_format_find("jsonl");
    assert_ok(write_steps(path.text, jsonl, 2, 2, NULL), NULL);
    int32_t fits = -1;
    eplb_error error;
    assert_ok(eplb_format_fits(jsonl, NULL, path.text, EPLB_FORMAT_READS_COUNTS, &fits, &error),
              &error);
    assert_int_equal(fits, 1);
    assert_ok(eplb_format_fits(jsonl, NULL, path.text, EPLB_FORMAT_READS_PLACEMENT, &fits, &error),
              &error);
    assert_int_equal(fits, 0);
    assert_ok(eplb_format_fits(eplb_format_find("csv"), NULL, path.text, EPLB_FORMAT_READS_COUNTS,
                               &fits, &error),
              &error);
    assert_int_equal(fits, 0);
    test_path none = test_join(*state, "none");
    assert_status(eplb_format_fits(jsonl, NULL, none.text, EPLB_FORMAT_READS_COUNTS, &fits, &error),
                  EPLB_ERROR_IO, &error);
}

TEST_MAIN(IN_DIRECTORY(every_format_reads_what_it_wrote),
          IN_DIRECTORY(steps_need_not_be_known_but_for_arrays),
          IN_DIRECTORY(the_text_is_what_it_should_be),
          IN_DIRECTORY(arrays_begin_with_the_header_of_numpy),
          IN_DIRECTORY(rows_out_of_place_are_refused), IN_DIRECTORY(half_of_the_steps_is_no_file),
          IN_DIRECTORY(shapes_that_cannot_be_are_refused),
          IN_DIRECTORY(writing_survives_each_failing_allocation),
          IN_DIRECTORY(fits_says_what_the_content_is))
