/* SPDX-License-Identifier: MIT */
/* SGLang's recordings of torch.save: the recording of tests/data/format, and forms made here. */
#include "pt_file.h"
#include "recording.h"

/* What the rows of a file add up to. */
typedef struct tally {
    double sums[STEPS][LAYERS + 1][EXPERTS];
    int rows;
} tally;

static void add_row(void *context, const eplb_counts_row *row)
{
    tally *self = context;
    assert_in_range(row->step, 0, STEPS - 1);
    assert_in_range(row->layer, 0, LAYERS);
    assert_int_equal(row->length, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        self->sums[row->step][row->layer][e] += row->counts[e];
    }
    self->rows++;
}

static void add_file(const char *name, int32_t rank, tally *result)
{
    test_path path = test_data(name);
    eplb_error error;
    assert_ok(read_rows(path.text, NULL, add_row, result, &error), &error);

    eplb_counts_reader *reader;
    assert_ok(eplb_counts_open(&reader, NULL, path.text, NULL, &error), &error);
    assert_string_equal(eplb_format_name(eplb_counts_format(reader)), "sglang");
    assert_int_equal(eplb_counts_rank(reader), rank);
    eplb_counts_close(&reader);
}

/* Steps 0 to `steps` - 1 of the file are those of the recording from `first` on; layer 0 is dense.
 */
static void assert_steps(const tally *result, int first, int steps)
{
    for (int t = 0; t < steps; t++) {
        for (int e = 0; e < EXPERTS; e++) {
            assert_true(result->sums[t][0][e] == 0.0);
            for (int l = 0; l < LAYERS; l++) {
                assert_true(result->sums[t][l + 1][e] == recorded[first + t][l][e]);
            }
        }
    }
}

/* Two of the eight steps of the buffer are not filled. */
static void stat_has_the_recording_without_its_empty_steps(void **state)
{
    (void)state;
    tally result = {.rows = 0};
    add_file("format/sglang_stat.pt", -1, &result);
    assert_int_equal(result.rows, STEPS * (LAYERS + 1));
    assert_steps(&result, 0, STEPS);
}

static void newer_stat_has_the_recording(void **state)
{
    (void)state;
    tally result = {.rows = 0};
    add_file("format/sglang_stat_newer.pt", -1, &result);
    assert_int_equal(result.rows, STEPS * (LAYERS + 1));
    assert_steps(&result, 0, STEPS);
}

static void a_strided_view_has_its_part_of_the_recording(void **state)
{
    (void)state;
    tally result = {.rows = 0};
    add_file("format/sglang_stat_strided.pt", -1, &result);
    assert_int_equal(result.rows, (STEPS - 1) * (LAYERS + 1));
    assert_steps(&result, 1, STEPS - 1);
}

static void two_dimensions_are_the_total(void **state)
{
    (void)state;
    tally result = {.rows = 0};
    add_file("format/sglang_stat_2d.pt", -1, &result);
    assert_int_equal(result.rows, LAYERS + 1);
    for (int l = 0; l < LAYERS; l++) {
        for (int e = 0; e < EXPERTS; e++) {
            assert_true(result.sums[0][l + 1][e] == recorded_total[l][e]);
        }
    }
}

static void ranks_of_per_pass_add_up_to_the_recording(void **state)
{
    (void)state;
    tally result = {.rows = 0};
    for (int32_t r = 0; r < GPUS; r++) {
        char name[60];
        snprintf(name, sizeof(name), "format/sglang_per_pass_%d.pt", r);
        add_file(name, r, &result);
    }
    assert_int_equal(result.rows, GPUS * STEPS * (LAYERS + 1));
    assert_steps(&result, 0, STEPS);
}

/* The paths of the ranks `first` to `last`, as one source. */
static void join_ranks(char *text, size_t size, int first, int last)
{
    text[0] = '\0';
    for (int r = first; r <= last; r++) {
        char name[60];
        snprintf(name, sizeof(name), "format/sglang_per_pass_%d.pt", r);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "", test_data(name).text);
    }
}

static void a_source_of_all_ranks_is_the_total(void **state)
{
    (void)state;
    char text[4 * 4096];
    join_ranks(text, sizeof(text), 0, GPUS - 1);
    const char *const texts[] = {text};
    eplb_load *load;
    eplb_error error;
    assert_ok(load_summed(&load, NULL, texts, 1, NULL, &error), &error);
    assert_int_equal(eplb_load_layers(load), LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        assert_int_equal(eplb_load_layer_ids(load)[l], l + 1);
        for (int e = 0; e < EXPERTS; e++) {
            assert_true(eplb_load_row(load, 0, l)[e] == recorded_total[l][e]);
        }
    }
    eplb_load_destroy(&load);
}

static void a_source_that_lacks_a_rank_is_refused(void **state)
{
    (void)state;
    char text[4 * 4096];
    join_ranks(text, sizeof(text), 1, GPUS - 1);
    const char *const texts[] = {text};
    eplb_load *load;
    eplb_error error;
    assert_status(load_summed(&load, NULL, texts, 1, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "none of rank 0");
}

/* sgl-project/sglang#5524: half of a recording looks like all of it. */
static void a_rank_alone_is_a_warning(void **state)
{
    (void)state;
    char text[4096];
    join_ranks(text, sizeof(text), 0, 0);
    const char *const texts[] = {text};
    test_warnings warnings = {0};
    eplb_hooks hooks = test_warning_hooks(&warnings);
    eplb_load *load;
    eplb_error error;
    assert_ok(eplb_source_load(&load, &hooks, texts, 1, NULL, NULL, &error), &error);
    assert_contains(warnings.last, "counts of rank 0 only: are there files of other ranks?");
    eplb_load_destroy(&load);
}

/* Sum of counts, each by its place; the expected ones come from the bytes of the file by Python:
 * sum(count * (step * layers * experts + layer * experts + expert + 1)). */
typedef struct checksum {
    int64_t first_step;
    int32_t layers; /* that the steps of the sum have */
    double sum;
    int rows;
} checksum;

static void add_to_checksum(void *context, const eplb_counts_row *row)
{
    checksum *self = context;
    double start = (double)(((row->step - self->first_step) * self->layers + row->layer)) *
                   (double)row->length;
    for (int32_t e = 0; e < row->length; e++) {
        self->sum += row->counts[e] * (start + e + 1);
    }
    self->rows++;
}

/* Enough values to need the longer opcodes; passes have numbers beyond 32 bits. */
static void a_hundred_and_twenty_records_are_whole(void **state)
{
    (void)state;
    checksum result = {.first_step = INT64_C(1) << 40, .layers = LAYERS + 1};
    test_path path = test_data("format/sglang_per_pass_120_records.pt");
    eplb_error error;
    assert_ok(read_rows(path.text, NULL, add_to_checksum, &result, &error), &error);
    assert_int_equal(result.rows, 120 * (LAYERS + 1));
    assert_true(result.sum == 177440040.0);
}

/* All steps alike for the sum, so that it is that of sglang_stat_big.expected.json, too. */
static void sixty_one_layers_of_256_experts_are_whole(void **state)
{
    (void)state;
    checksum result = {.layers = 0};
    test_path path = test_shared_or_skip("fixtures/sglang_stat_big.pt");
    eplb_error error;
    assert_ok(read_rows(path.text, NULL, add_to_checksum, &result, &error), &error);
    assert_int_equal(result.rows, 5 * 61);
    assert_true(result.sum == 1522968311781.0);
}

/* A row as a text: "step/layer: count count". */
static void describe_row(void *context, const eplb_counts_row *row)
{
    char *text = context;
    size_t used = strlen(text);
    used +=
        (size_t)snprintf(text + used, 1000 - used, "%lld/%d:", (long long)row->step, row->layer);
    for (int32_t e = 0; e < row->length; e++) {
        used += (size_t)snprintf(text + used, 1000 - used, " %.17g", row->counts[e]);
    }
    snprintf(text + used, 1000 - used, "\n");
}

static void assert_rows(const char *directory, const char *words, const void *counts, size_t size,
                        const char *expected)
{
    test_path path = test_join(directory, "f.pt");
    char rows[1000] = "";
    eplb_error error;
    pt_write_words(path.text, words, counts, size);
    assert_ok(read_rows(path.text, NULL, describe_row, rows, &error), &error);
    assert_string_equal(rows, expected);
}

#define STAT_OF(type, items) STAT(VIEW(STORAGE(type, "0", items), WHOLE))
#define ONE_TO_EIGHT "0/0: 1 2 3 4\n0/1: 5 6 7 255\n"

static void every_type_of_items_is_read(void **state)
{
    const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_rows(*state, STAT_OF("ByteStorage", "#8"), bytes, sizeof(bytes), ONE_TO_EIGHT);
    const int16_t shorts[] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_rows(*state, STAT_OF("ShortStorage", "#8"), shorts, sizeof(shorts), ONE_TO_EIGHT);
    const int32_t ints[] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_rows(*state, STAT_OF("IntStorage", "#8"), ints, sizeof(ints), ONE_TO_EIGHT);
    const int64_t longs[] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_rows(*state, STAT_OF("LongStorage", "#8"), longs, sizeof(longs), ONE_TO_EIGHT);
    const float floats[] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_rows(*state, STAT_OF("FloatStorage", "#8"), floats, sizeof(floats), ONE_TO_EIGHT);
    const double doubles[] = {1, 2, 3, 4, 5, 6, 7, 255};
    assert_rows(*state, STAT_OF("DoubleStorage", "#8"), doubles, sizeof(doubles), ONE_TO_EIGHT);
    const int8_t chars[] = {1, 2, 3, 4, 5, 6, 7, 127};
    assert_rows(*state, STAT_OF("CharStorage", "#8"), chars, sizeof(chars),
                "0/0: 1 2 3 4\n0/1: 5 6 7 127\n");
}

/* What other writers may make of the same: keys and values that do not matter, a device, the short
 * opcodes for single items, more fields. */
static const struct {
    const char *words;
    const char *rows;
} forms[] = {
    {"$80$02}'x'(NK$01M$01$02G$3f$f0$00$00$00$00$00$00$88#L-5$8a$00tsq$00'logical_count'" COUNTS(
         WHOLE) "s.",
     "0/0: 1 2 3 4\n0/1: 5 6 7 8\n"},
    {STAT(VIEW("('storage'@torch IntStorage;'0''cuda:7'#8NtQ", WHOLE)),
     "0/0: 1 2 3 4\n0/1: 5 6 7 8\n"},
    {STAT("@torch._utils _rebuild_tensor_v2;(" STORAGE("IntStorage", "0", "#8") WHOLE
          "$88@collections OrderedDict;)RNtR"),
     "0/0: 1 2 3 4\n0/1: 5 6 7 8\n"},
    {"$80$02@collections OrderedDict;)R('logical_count'" COUNTS(WHOLE) "u.",
     "0/0: 1 2 3 4\n0/1: 5 6 7 8\n"},
    {STAT(COUNTS("#2#3#2$86#2#1$86")), "0/0: 3 4\n0/1: 5 6\n0/2: 7 8\n"},
    {STAT(COUNTS("#0#4#2$86#1#4$86")), "0/0: 1 5\n0/1: 2 6\n0/2: 3 7\n0/3: 4 8\n"},
    {STAT(COUNTS("#0#1#2$86#L9223372036854775807#7$86")), "0/0: 1 8\n"},
    {STAT(COUNTS("#0#2#2#2$87#4#2#1$87")), "0/0: 1 2\n0/1: 3 4\n1/0: 5 6\n1/1: 7 8\n"},
    {STAT(COUNTS("#0#2#2#2$87#1#2#4$87")), "0/0: 1 5\n0/1: 3 7\n1/0: 2 6\n1/1: 4 8\n"},
    {PASSES(RECORD("#7", "#0", COUNTS(WHOLE)), MAP(WHOLE)), "7/0: 5 2 3\n7/1: 7 14 5\n"},
    {PASSES(RECORD("#7", "#0", COUNTS(WHOLE)) RECORD("#7", "#0", COUNTS("#0#2#4$86#1#1$86")),
            MAP(WHOLE)),
     "7/0: 5 2 3\n7/1: 7 14 5\n7/0: 5 2 3\n7/1: 4 8 2\n"},
};

static void unusual_forms_are_read(void **state)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        assert_rows(*state, forms[i].words, NULL, 0, forms[i].rows);
    }
}

/* A buffer that went round, its middle step empty; and one in which nothing was counted. */
static void empty_steps_are_left_out_but_not_all(void **state)
{
    const int32_t some[] = {0, 0, 1, 2, 0, 0, 0, 0, 3, 0, 0, 4};
    assert_rows(*state, STAT(VIEW(STORAGE("IntStorage", "0", "#12"), "#0#3#2#2$87#4#2#1$87")), some,
                sizeof(some), "0/0: 0 0\n0/1: 1 2\n2/0: 3 0\n2/1: 0 4\n");
    const int32_t none[12] = {0};
    assert_rows(*state, STAT(VIEW(STORAGE("IntStorage", "0", "#12"), "#0#3#2#2$87#4#2#1$87")), none,
                sizeof(none), "2/0: 0 0\n2/1: 0 0\n");
}

/* Rows far longer than what is read at once, in steps that lie side by side. */
static void items_far_apart_are_read(void **state)
{
    enum { FAR = 40000, COUNT = 3 * FAR };
    static int32_t counts[COUNT];
    for (int32_t i = 0; i < COUNT; i++) {
        counts[i] = i < FAR || i >= 2 * FAR ? i + 1 : 0;
    }
    assert_rows(*state,
                STAT(VIEW(STORAGE("IntStorage", "0", "#120000"), "#39998#1#3$86#0#40000$86")),
                counts, sizeof(counts), "0/0: 39999 0 119999\n");
}

/* Slots where nothing is have no tokens; where something is, they do. */
static void empty_slots_hold_no_tokens(void **state)
{
    static const int64_t map[8] = {0, 1, -1, -1, 0, 1, 0, 1};
    static const char words[] =
        PASSES(RECORD("#0", "#0", VIEW(STORAGE("LongStorage", "1", "#8"), WHOLE)),
               VIEW(STORAGE("LongStorage", "0", "#8"), WHOLE));
    test_path path = test_join(*state, "f");
    eplb_error error;
    pt_write_words(path.text, words, map, sizeof(map));
    assert_status(read_rows(path.text, NULL, NULL, NULL, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message,
                    "f: step 0: layer 0: slot 2: 2 tokens, but the map says that it is empty");
}

TEST_MAIN(cmocka_unit_test(stat_has_the_recording_without_its_empty_steps),
          cmocka_unit_test(newer_stat_has_the_recording),
          cmocka_unit_test(a_strided_view_has_its_part_of_the_recording),
          cmocka_unit_test(two_dimensions_are_the_total),
          cmocka_unit_test(ranks_of_per_pass_add_up_to_the_recording),
          cmocka_unit_test(a_rank_alone_is_a_warning),
          cmocka_unit_test(a_source_of_all_ranks_is_the_total),
          cmocka_unit_test(a_source_that_lacks_a_rank_is_refused),
          cmocka_unit_test(a_hundred_and_twenty_records_are_whole),
          cmocka_unit_test(sixty_one_layers_of_256_experts_are_whole),
          IN_DIRECTORY(every_type_of_items_is_read), IN_DIRECTORY(unusual_forms_are_read),
          IN_DIRECTORY(empty_steps_are_left_out_but_not_all),
          IN_DIRECTORY(items_far_apart_are_read), IN_DIRECTORY(empty_slots_hold_no_tokens))
