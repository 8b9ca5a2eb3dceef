/* SPDX-License-Identifier: MIT */
/* Files that become shorter between two reads: an error that names the file, and no signal. */
#include "reading.h"

/* A file of much more than a reader's buffer, of which the middle of a number is left. */
enum { LAYERS = 1000, EXPERTS = 64, LEFT = 300001 };

/* Of an array by columns, more than are read at once. */
enum { STEPS = 40 };

static void write_jsonl(FILE *file)
{
    for (int l = 0; l < LAYERS; l++) {
        fprintf(file, "{\"layer\":%d,\"counts\":[1000001", l);
        for (int e = 1; e < EXPERTS; e++) {
            fprintf(file, ",%d", 1000000 + e);
        }
        fprintf(file, "]}\n");
    }
}

static void write_sglang(FILE *file)
{
    fprintf(file, "{\"logical_count\":[");
    for (int l = 0; l < LAYERS; l++) {
        fprintf(file, l == 0 ? "[1000001" : ",[1000001");
        for (int e = 1; e < EXPERTS; e++) {
            fprintf(file, ",%d", 1000000 + e);
        }
        fprintf(file, "]");
    }
    fprintf(file, "]}");
}

static void write_csv(FILE *file)
{
    fprintf(file, "layer,expert,tokens\n");
    for (int l = 0; l < LAYERS; l++) {
        for (int e = 0; e < EXPERTS; e++) {
            fprintf(file, "%d,%d,1000000\n", l, e);
        }
    }
}

static void write_array(FILE *file, bool is_fortran)
{
    static const char before[] = "\x93NUMPY\x01\x00\x76\x00";
    fwrite(before, 1, sizeof(before) - 1, file);
    fprintf(file, "%-117s\n",
            is_fortran ? "{'descr': '<f8', 'fortran_order': True, 'shape': (40, 1000, 64), }"
                       : "{'descr': '<f8', 'fortran_order': False, 'shape': (1000, 64), }");
    for (int i = 0; i < (is_fortran ? STEPS : 1) * LAYERS * EXPERTS; i++) {
        double count = i;
        fwrite(&count, sizeof(count), 1, file);
    }
}

static void write_rows(FILE *file)
{
    write_array(file, false);
}

static void write_columns(FILE *file)
{
    write_array(file, true);
}

static void assert_cut_is_seen(const char *directory, void (*write)(FILE *file), const char *part)
{
    test_path path = test_join(directory, "f");
    FILE *file = fopen(path.text, "wb");
    assert_non_null(file);
    write(file);
    assert_int_equal(fclose(file), 0);

    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_error error;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_ok(eplb_counts_next(reader, &row, &error), &error);
    assert_int_equal(truncate(path.text, LEFT), 0);
    eplb_status status;
    while ((status = eplb_counts_next(reader, &row, &error)) == EPLB_OK) {
    }
    assert_status(status, EPLB_ERROR_PARSE, &error);
    assert_contains(error.message, path.text);
    assert_contains(error.message, part);
    eplb_counts_close(&reader);
}

static void json_that_shrinks_is_refused(void **state)
{
    assert_cut_is_seen(*state, write_jsonl, "found the end of the file");
    assert_cut_is_seen(*state, write_sglang, "found the end of the file");
}

static void csv_that_shrinks_is_refused(void **state)
{
    assert_cut_is_seen(*state, write_csv, "fewer fields, expected 3");
}

static void arrays_that_shrink_are_refused(void **state)
{
    assert_cut_is_seen(*state, write_rows, "the file ends too early");
    assert_cut_is_seen(*state, write_columns, "the file ends too early");
}

TEST_MAIN(IN_DIRECTORY(json_that_shrinks_is_refused), IN_DIRECTORY(csv_that_shrinks_is_refused),
          IN_DIRECTORY(arrays_that_shrink_are_refused))
