/* SPDX-License-Identifier: MIT */
/* Short integers far from the end of a file are read by loops of their own: values and errors are
 * those of any other number. */
#include <eplb/random.h>

#include "reading.h"

enum { ROWS = 300, WIDTH = 40, FILLING = 30 };

/* What was written, and how much of it was read. */
typedef struct written {
    eplb_random random;
    double counts[ROWS][WIDTH];
    int rows;
} written;

/* Appends a number of 1 to 15 digits, mostly short ones. Returns its value. */
static double add_number(written *self, FILE *out)
{
    char text[32];
    size_t most = eplb_random_below(&self->random, 4) == 0 ? 15 : 4;
    size_t digits = 1 + (size_t)eplb_random_below(&self->random, most);
    for (size_t i = 0; i < digits; i++) {
        text[i] = (char)('0' + (char)eplb_random_below(&self->random, 10));
    }
    text[0] = text[0] == '0' && digits > 1 ? '9' : text[0];
    text[digits] = '\0';
    if (digits < 5 && eplb_random_below(&self->random, 20) == 0) {
        strcat(text, ".5");
    }
    fputs(text, out);
    return strtod(text, NULL);
}

static void check_row(void *context, const eplb_counts_row *row)
{
    written *self = context;
    assert_int_equal(row->step, self->rows);
    assert_int_equal(row->length, WIDTH);
    assert_memory_equal(row->counts, self->counts[self->rows], sizeof(self->counts[0]));
    self->rows++;
}

static void check_file(const char *path, written *self)
{
    eplb_error error;
    assert_ok(read_rows(path, NULL, check_row, self, &error), &error);
    assert_int_equal(self->rows, ROWS);
}

static void numbers_of_json_of_every_length_and_spacing_are_exact(void **state)
{
    (void)state;
    static const char *const commas[] = {",", ", ", ",  ", " ,", ",\t", " , "};
    written *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    eplb_random_seed(&self->random, 7);
    FILE *out = fopen("f", "w");
    assert_non_null(out);
    for (int t = 0; t < ROWS; t++) {
        size_t kinds = t < ROWS / 3 ? 1 : t < 2 * ROWS / 3 ? 2 : 6;
        fprintf(out, "{\"step\":%d,\"layer\":0,\"counts\":[", t);
        for (int e = 0; e < WIDTH; e++) {
            fputs(e == 0 ? "" : commas[eplb_random_below(&self->random, kinds)], out);
            self->counts[t][e] = add_number(self, out);
        }
        fputs("]}\n", out);
    }
    assert_int_equal(fclose(out), 0);
    check_file("f", self);
    free(self);
}

/* Writes and reads a file whose lines have the tokens first or last, and the experts in a different
 * order for each step. */
static void check_csv(const char *header, bool tokens_first, uint64_t ends_kinds)
{
    static const char *const ends[] = {"\n", "\n", "\n", "\r\n", " \n"};
    written *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    eplb_random_seed(&self->random, 8);
    FILE *out = fopen("f", "w");
    assert_non_null(out);
    fputs(header, out);
    for (int t = 0; t < ROWS; t++) {
        for (int i = 0; i < WIDTH; i++) {
            int e = (i * 7 + t) % WIDTH;
            if (!tokens_first) {
                fprintf(out, "%d,0,%d,", t, e);
            }
            self->counts[t][e] = add_number(self, out);
            if (tokens_first) {
                fprintf(out, ",%d,0,%d", t, e);
            }
            fputs(ends[eplb_random_below(&self->random, ends_kinds)], out);
        }
    }
    assert_int_equal(fclose(out), 0);
    check_file("f", self);
    free(self);
}

static void numbers_of_csv_of_every_length_and_line_end_are_exact(void **state)
{
    (void)state;
    check_csv("tokens,step,layer,expert\n", true, 5);
    check_csv("step,layer,expert,tokens\n", false, 5);
    check_csv("step,layer,expert,tokens\n", false, 1);
}

/* Writes `head`, a bad text and `tail`, and `filling` as often as `times`. Reads it. */
static eplb_status read_bad(const char *head, const char *bad, const char *tail,
                            const char *filling, int times, eplb_error *error)
{
    char text[4096];
    strcat(strcat(strcpy(text, head), bad), tail);
    for (int i = 0; i < times; i++) {
        strcat(text, filling);
    }
    test_write_text("f", text);
    return read_rows("f", NULL, NULL, NULL, error);
}

/* The error of the bad text is the same at the end of a file and far from it. */
static void assert_same_error(const char *head, const char *bad, const char *tail,
                              const char *filling)
{
    eplb_error near;
    eplb_error far;
    eplb_status status = read_bad(head, bad, tail, filling, 0, &near);
    assert_int_not_equal(status, EPLB_OK);
    assert_status(read_bad(head, bad, tail, filling, FILLING, &far), status, &far);
    assert_string_equal(far.message, near.message);
}

static void bad_numbers_of_json_have_the_same_error_wherever_they_are(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",   "-1",   "01", "1.", "1e400", "9007199254740993",     "x", "1x2", "1 2", "+1",
        "[1", "1\n2", "00", "\"", "\xff",  "123456789012345678901"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_same_error("{\"layer\":3,\"counts\":[10,1,100,", bad[i], ",", "12,");
    }
}

static void bad_lines_of_csv_have_the_same_error_wherever_they_are(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0,0,1,-1",
        "0,0,01,5",
        "00,0,1,5",
        "0,0,1,",
        "0,0,1",
        "0,0,1,5,6",
        "0,0,,5",
        "0,0,1,x",
        "0,0,1.0,5",
        "0,0,0,5",
        "0,2000,1,5",
        "0,0,5000,5",
        "0,0,123456789,1",
        ",0,1,5",
        "0,0,1,5\n\n2",
        "0,0,1 5",
        "0;0,1,5",
        "0,0,1,1e400",
        "0,0,1,9007199254740993",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_same_error("step,layer,expert,tokens\n0,0,0,1\n", bad[i], "\n", "1,0,0,1\n");
    }
}

TEST_MAIN(INSIDE(numbers_of_json_of_every_length_and_spacing_are_exact),
          INSIDE(numbers_of_csv_of_every_length_and_line_end_are_exact),
          INSIDE(bad_numbers_of_json_have_the_same_error_wherever_they_are),
          INSIDE(bad_lines_of_csv_have_the_same_error_wherever_they_are))
