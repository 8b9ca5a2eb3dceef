/* SPDX-License-Identifier: MIT */
/* Directories of MindIE: decode_<rank>.csv, prefill_<rank>.csv. */
#include <sys/stat.h>

#include "maps.h"

/* Of twelve ranks of two experts: numeric and text order differ. */
static const double twelve_ranks[3][24] = {
    {114, 86,  268, 509, 439, 583, 570, 624, 764, 599, 420, 292,
     84,  636, 288, 191, 459, 999, 692, 983, 852, 970, 733, 109},
    {416, 40,  609, 686, 628, 822, 853, 431, 616, 685, 350, 684,
     191, 219, 225, 410, 346, 337, 241, 752, 229, 515, 766, 98},
    {735, 856, 916, 30,  728, 587, 382, 406, 651, 872, 890, 490,
     60,  762, 834, 466, 54,  390, 475, 864, 893, 839, 552, 19}};

/* The rows that were read, one behind another. */
typedef struct rows {
    int count;
    int64_t steps[32];
    int32_t layers[32];
    int32_t lengths[32];
    double counts[32][24];
} rows;

static void keep_row(void *context, const eplb_counts_row *row)
{
    rows *self = context;
    assert_true(self->count < 32 && row->length <= 24);
    self->steps[self->count] = row->step;
    self->layers[self->count] = row->layer;
    self->lengths[self->count] = row->length;
    memcpy(self->counts[self->count], row->counts, (size_t)row->length * sizeof(double));
    self->count++;
}

static rows read_directory(const char *path, const eplb_read_options *options)
{
    rows read = {0};
    eplb_error error;
    assert_ok(read_rows(path, options, keep_row, &read, &error), &error);
    return read;
}

static void assert_row(const rows *read, int i, int64_t step, int32_t layer, int32_t length,
                       const double *counts)
{
    assert_true(i < read->count);
    assert_int_equal(read->steps[i], step);
    assert_int_equal(read->layers[i], layer);
    assert_int_equal(read->lengths[i], length);
    assert_memory_equal(read->counts[i], counts, (size_t)length * sizeof(*counts));
}

static void ranks_are_joined_in_numeric_order(void **state)
{
    (void)state;
    test_path path = test_data("format/mindie");
    rows read = read_directory(path.text, NULL);
    assert_int_equal(read.count, LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        assert_row(&read, l, 0, l, EXPERTS, recorded_total[l]);
    }
    path = test_data("format/mindie_12_ranks");
    read = read_directory(path.text, NULL);
    assert_int_equal(read.count, 3);
    for (int l = 0; l < 3; l++) {
        assert_row(&read, l, 0, l, 24, twelve_ranks[l]);
    }
}

/* Writes name.text of a directory that is made if need be. */
static void write_in(const char *directory, const char *name, const char *text)
{
    (void)mkdir(directory, 0777);
    test_write_text(test_join(directory, name).text, text);
}

static void prefill_is_the_step_before_decode(void **state)
{
    (void)state;
    write_in("d", "decode_0.csv", "1,2\n3,4\n");
    write_in("d", "decode_1.csv", "5,6\n7,8\n");
    write_in("d", "prefill_1.csv", "50,60\n70,80\n");
    write_in("d", "prefill_0.csv", "10,20\n30,40\n");
    static const double expected[4][4] = {
        {10, 20, 50, 60}, {30, 40, 70, 80}, {1, 2, 5, 6}, {3, 4, 7, 8}};
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_row(&read, i, i / 2, i % 2, 4, expected[i]);
    }
}

static void one_phase_is_one_step(void **state)
{
    (void)state;
    static const double expected[] = {10, 20};
    write_in("d", "prefill_0.csv", "10,20\n");
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, 1);
    assert_row(&read, 0, 0, 0, 2, expected);
}

static void phases_may_have_different_numbers_of_ranks(void **state)
{
    (void)state;
    write_in("d", "prefill_0.csv", "1,2,3,4\n");
    write_in("d", "decode_0.csv", "5,6\n");
    write_in("d", "decode_1.csv", "7,8\n");
    static const double expected[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, 2);
    assert_row(&read, 0, 0, 0, 4, expected[0]);
    assert_row(&read, 1, 1, 0, 4, expected[1]);
}

static void numbers_of_every_form_are_read(void **state)
{
    (void)state;
    write_in("d", "decode_0.csv",
             "\xEF\xBB\xBF"
             "5.770000000000000000e+02,1.5\r\n 3 , 4\r\n\n\n");
    write_in("d", "decode_1.csv", "9007199254740992,0\n1E2,0.25");
    static const double expected[2][4] = {{577, 1.5, 9007199254740992.0, 0}, {3, 4, 100, 0.25}};
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, 2);
    assert_row(&read, 0, 0, 0, 4, expected[0]);
    assert_row(&read, 1, 0, 1, 4, expected[1]);
}

/* What MindIE leaves beside the counts. */
static void backups_and_other_files_of_the_engine_are_left_aside(void **state)
{
    (void)state;
    static const double expected[] = {1, 2};
    write_in("d", "decode_0.csv", "1,2\n");
    write_in("d", "decode_0_bak.csv", "9,9\n");
    write_in("d", "decode_topk_0.csv", "9,9,9\n");
    write_in("d", "config.json", "{}");
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, 1);
    assert_row(&read, 0, 0, 0, 2, expected);
}

/* The recording as sums since its beginning, two columns a rank. */
static void write_sums(const char *directory, const char *phase, int first_step, int steps)
{
    for (int r = 0; r < GPUS; r++) {
        char name[32];
        char text[1024] = "";
        double sums[LAYERS][2] = {{0}};
        size_t used = 0;
        for (int t = first_step; t < first_step + steps; t++) {
            for (int l = 0; l < LAYERS; l++) {
                sums[l][0] += recorded[t][l][2 * r];
                sums[l][1] += recorded[t][l][2 * r + 1];
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%.0f,%.0f\n",
                                         sums[l][0], sums[l][1]);
            }
        }
        assert_true(used < sizeof(text));
        snprintf(name, sizeof(name), "%s_%d.csv", phase, r);
        write_in(directory, name, text);
    }
}

#define CONFIG "{\"num_moe_layers\": 3, \"collection_Interval\": 8, \"num_of_experts\": 8}"

static void sums_become_steps(void **state)
{
    (void)state;
    write_sums("d", "decode", 0, STEPS);
    write_in("d", "model_gen_config.json", CONFIG);
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, STEPS * LAYERS);
    for (int i = 0; i < read.count; i++) {
        assert_row(&read, i, i / LAYERS, i % LAYERS, EXPERTS, recorded[i / LAYERS][i % LAYERS]);
    }
}

/* What reading the directory "d" warns of; "" is nothing. */
static void assert_warning(const char *expected)
{
    test_warnings warnings = {0};
    eplb_hooks hooks = test_warning_hooks(&warnings);
    assert_ok(read_counts(&hooks, (void *)"d"), NULL);
    assert_string_equal(warnings.last, expected);
}

static void sums_without_their_config_are_warned_of(void **state)
{
    (void)state;
    write_sums("d", "decode", 0, STEPS);
    assert_warning("d: decode: 18 rows, which look like sums of 6 iterations of 3 layers, but are "
                   "taken for 18 layers: sums of several iterations need a model_gen_config.json "
                   "with num_moe_layers");
    assert_int_equal(read_directory("d", NULL).layers[17], 17);
    write_in("d", "model_gen_config.json", CONFIG);
    assert_warning("");
}

/* Neither one that falls once nor one that hardly grows. */
static void counts_that_are_no_sums_are_not_warned_of(void **state)
{
    (void)state;
    write_sums("d", "decode", 0, 1);
    assert_warning("");
    for (int r = 0; r < GPUS; r++) {
        char name[32];
        snprintf(name, sizeof(name), "decode_%d.csv", r);
        write_in("d", name, r == 2 ? "10,10\n90,90\n20,19\n99,89\n" : "1,2\n3,4\n5,6\n7,8\n");
    }
    assert_warning("");
    for (int r = 0; r < GPUS; r++) {
        char name[32];
        snprintf(name, sizeof(name), "decode_%d.csv", r);
        write_in("d", name, r == 2 ? "1,0\n2,0\n3,1\n4,0\n" : "0,0\n0,0\n0,0\n0,0\n");
    }
    assert_warning("");
}

static void sums_of_both_phases_are_steps_behind_each_other(void **state)
{
    (void)state;
    write_sums("d", "prefill", 0, 2);
    write_sums("d", "decode", 2, 4);
    write_in("d", "model_gen_config.json", CONFIG);
    rows read = read_directory("d", NULL);
    assert_int_equal(read.count, STEPS * LAYERS);
    for (int i = 0; i < read.count; i++) {
        assert_row(&read, i, i / LAYERS, i % LAYERS, EXPERTS, recorded[i / LAYERS][i % LAYERS]);
    }
}

/* Three slots a rank. */
static void write_slots(const char *directory)
{
    for (int r = 0; r < GPUS; r++) {
        char name[32];
        char text[256] = "";
        size_t used = 0;
        for (int l = 0; l < LAYERS; l++) {
            const double *slots = recorded_physical[l] + 3 * r;
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%.0f,%.0f,%.0f\n", slots[0],
                                     slots[1], slots[2]);
        }
        snprintf(name, sizeof(name), "decode_%d.csv", r);
        write_in(directory, name, text);
    }
}

static void counts_of_slots_are_folded(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_read_options options = options_for("");
    options.counted_under = placement;
    write_slots("d");
    write_in("d", "model_gen_config.json", CONFIG);
    rows read = read_directory("d", &options);
    assert_int_equal(read.count, LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        assert_row(&read, l, 0, l, EXPERTS, recorded_total[l]);
    }
    eplb_placement_destroy(&placement);
}

static void a_directory_is_a_source(void **state)
{
    (void)state;
    test_path path = test_data("format/mindie");
    const char *text = path.text;
    eplb_load *load;
    eplb_error error;
    assert_ok(load_summed(&load, NULL, &text, 1, NULL, &error), &error);
    assert_int_equal(eplb_load_layers(load), LAYERS);
    assert_int_equal(eplb_load_experts(load), EXPERTS);
    for (int l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_load_row(load, 0, l), recorded_total[l],
                            sizeof(recorded_total[l]));
    }
    eplb_load_destroy(&load);
}

static void one_file_of_a_recording_is_refused_with_what_to_do(void **state)
{
    (void)state;
    eplb_error error;
    write_in("d", "decode_0.csv", "577,845\n426,374\n");
    assert_status(read_rows("d/decode_0.csv", NULL, NULL, NULL, &error), EPLB_ERROR_UNSUPPORTED,
                  &error);
    assert_string_equal(error.message,
                        "d/decode_0.csv: numbers without a header: if it is one rank of a "
                        "recording of MindIE, give the directory with those of all ranks");
}

static void each_failing_allocation_is_survived(void **state)
{
    (void)state;
    write_sums("d", "prefill", 0, 2);
    write_sums("d", "decode", 0, STEPS);
    write_in("d", "model_gen_config.json", CONFIG);
    test_each_failing_allocation(read_counts, "d");
    assert_int_equal(remove("d/model_gen_config.json"), 0);
    write_sums("d", "prefill", 0, STEPS);
    test_each_failing_allocation(read_counts, "d");
    test_path path = test_data("format/mindie_12_ranks");
    test_each_failing_allocation(read_counts, path.text);
}

TEST_MAIN(cmocka_unit_test(ranks_are_joined_in_numeric_order),
          INSIDE(prefill_is_the_step_before_decode), INSIDE(one_phase_is_one_step),
          INSIDE(phases_may_have_different_numbers_of_ranks),
          INSIDE(numbers_of_every_form_are_read),
          INSIDE(backups_and_other_files_of_the_engine_are_left_aside), INSIDE(sums_become_steps),
          INSIDE(sums_without_their_config_are_warned_of),
          INSIDE(counts_that_are_no_sums_are_not_warned_of),
          INSIDE(sums_of_both_phases_are_steps_behind_each_other),
          INSIDE(counts_of_slots_are_folded), cmocka_unit_test(a_directory_is_a_source),
          INSIDE(one_file_of_a_recording_is_refused_with_what_to_do),
          INSIDE(each_failing_allocation_is_survived))
