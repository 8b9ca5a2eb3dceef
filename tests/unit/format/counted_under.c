/* SPDX-License-Identifier: MIT */
/* Counts of slots folded by the placement that they were counted under. */
#include "maps.h"

/* What a file of slot counts gives. */
typedef struct folded {
    int rows;
    int32_t layers[8];
    double counts[8][EXPERTS];
} folded;

static void keep_row(void *context, const eplb_counts_row *row)
{
    folded *self = context;
    assert_true(self->rows < 8);
    assert_int_equal(row->length, EXPERTS);
    self->layers[self->rows] = row->layer;
    memcpy(self->counts[self->rows], row->counts, sizeof(self->counts[0]));
    self->rows++;
}

static eplb_status read_under(const eplb_placement *placement, folded *read, eplb_error *error)
{
    eplb_read_options options = options_for("");
    options.counted_under = placement;
    *read = (folded){0};
    return read_rows("f", &options, keep_row, read, error);
}

static void assert_under_refused(const eplb_placement *placement, const char *text,
                                 eplb_status expected, const char *message)
{
    folded read;
    eplb_error error;
    test_write_text("f", text);
    assert_status(read_under(placement, &read, &error), expected, &error);
    assert_string_equal(error.message, message);
}

#define ZEROS "0,0,0,0,0,0,0,0,0,0,0,0"
#define SLOTS_0 "214,845,527,151,177,428,131,725,186,2518,126,116"
#define SLOTS_1 "684,401,163,363,426,1007,398,808,249,731,703,211"
#define SLOTS_2 "193,55,1008,1211,263,73,448,446,60,2121,212,54"
#define LINE(layer, counts) "{\"layer\":" layer ",\"counts\":[" counts "]}\n"

static void formats_without_layer_ids_go_by_the_order_of_layers(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_error error;
    folded read;
    test_write_text("f", LINE("0", SLOTS_0) LINE("1", SLOTS_1) LINE("2", SLOTS_2));
    assert_ok(read_under(placement, &read, &error), &error);
    assert_int_equal(read.rows, LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        assert_int_equal(read.layers[l], l);
    }
    assert_memory_equal(read.counts, recorded_total, sizeof(recorded_total));
    eplb_placement_destroy(&placement);
}

/* Layer 0 is dense: its row has no tokens, and the placement does not know it. */
static void formats_with_layer_ids_go_by_them(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_error error;
    folded read;
    static const double none[EXPERTS] = {0};
    test_write_text("f",
                    "{\"logical_count\":[[" ZEROS "],[" SLOTS_0 "],[" SLOTS_1 "],[" SLOTS_2 "]]}");
    assert_ok(read_under(placement, &read, &error), &error);
    assert_int_equal(read.rows, LAYERS + 1);
    assert_memory_equal(read.counts[0], none, sizeof(none));
    assert_memory_equal(read.counts[1], recorded_total, sizeof(recorded_total));
    assert_under_refused(
        placement, "{\"logical_count\":[[" SLOTS_0 "],[" SLOTS_0 "],[" SLOTS_1 "],[" SLOTS_2 "]]}",
        EPLB_ERROR_DATA, "f: step 0: layer 0: not in the placement that it was counted under");
    eplb_placement_destroy(&placement);
}

/* As in a map of TensorRT-LLM: its layers have the numbers of the model. Logs may have those, or
 * those of MoE layers. */
static void logs_go_by_the_numbers_that_they_have(void **state)
{
    (void)state;
    static const char *const texts[] = {LINE("1", SLOTS_0) LINE("2", SLOTS_1) LINE("3", SLOTS_2),
                                        LINE("0", SLOTS_0) LINE("1", SLOTS_1) LINE("2", SLOTS_2)};
    eplb_placement *placement = make_placement(recorded_map, 0);
    eplb_error error;
    for (size_t i = 0; i < 2; i++) {
        folded read;
        test_write_text("f", texts[i]);
        assert_ok(read_under(placement, &read, &error), &error);
        assert_memory_equal(read.counts[0], recorded_total, sizeof(recorded_total));
    }
    assert_under_refused(placement, LINE("1", SLOTS_0) LINE("2", SLOTS_1), EPLB_ERROR_DATA,
                         "f: layers 1 to 2, but 1 to 3 in the placement that it was counted under, "
                         "and nothing says whether both number the layers of the model");
    eplb_placement_destroy(&placement);
}

/* With a draft layer at its end a map of MoE layers has as many as the model. */
static void model_layers_under_a_map_of_moe_layers_are_refused(void **state)
{
    (void)state;
    static const int32_t moe_layers[LAYERS] = {0, 1, 2};
    eplb_placement *placement = make_placement(recorded_map, 0);
    assert_ok(eplb_placement_set_layer_ids(placement, moe_layers, 0, NULL), NULL);
    assert_under_refused(
        placement, "{\"logical_count\":[[" ZEROS "],[" SLOTS_0 "],[" SLOTS_1 "]]}", EPLB_ERROR_DATA,
        "f: layers 1 to 2, but 0 to 2 in the placement that it was counted under, and nothing says "
        "whether both number the layers of the model: give a placement that lists all of them, "
        "such as sglang");
    folded read;
    eplb_error error;
    test_write_text("f", "{\"logical_count\":[[" SLOTS_0 "],[" SLOTS_1 "],[" SLOTS_2 "]]}");
    assert_ok(read_under(placement, &read, &error), &error);
    assert_memory_equal(read.counts[0], recorded_total, sizeof(recorded_total));
    eplb_placement_destroy(&placement);
}

/* In CSV rows end with the last slot that has tokens. */
static void slots_that_csv_leaves_out_have_no_tokens(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_error error;
    folded read;
    static const double expected[EXPERTS] = {7, 0, 0, 0, 0, 5, 0, 0};
    test_write_text("f", "layer,expert,tokens\n0,4,7\n0,6,2\n0,11,3\n1,0,1\n2,0,1\n");
    assert_ok(read_under(placement, &read, &error), &error);
    assert_memory_equal(read.counts[0], expected, sizeof(expected));
    test_write_text("f", "layer,expert,tokens\n0,4,7\n0,6,5\n1,0,1\n2,0,1\n");
    assert_ok(read_under(placement, &read, &error), &error);
    assert_memory_equal(read.counts[0], expected, sizeof(expected));
    assert_under_refused(placement, "layer,expert,tokens\n0,12,7\n", EPLB_ERROR_DATA,
                         "f:2: layer 0: expert 12 not in 0..11");
    eplb_placement_destroy(&placement);
}

static void tokens_in_an_empty_slot_are_refused(void **state)
{
    (void)state;
    int32_t rows[LAYERS][SLOTS];
    memcpy(rows, recorded_map, sizeof(rows));
    rows[1][6] = -1; /* expert 2 has two others */
    eplb_placement *placement = make_placement(rows, LAYERS + 1);
    assert_under_refused(
        placement, LINE("0", SLOTS_0) LINE("1", SLOTS_1) LINE("2", SLOTS_2), EPLB_ERROR_DATA,
        "f: step 0: layer 1: slot 6: 398 tokens, but the map says that it is empty");
    eplb_error error;
    folded read;
    test_write_text("f", LINE("0", SLOTS_0) LINE("1", ZEROS) LINE("2", SLOTS_2));
    assert_ok(read_under(placement, &read, &error), &error);
    eplb_placement_destroy(&placement);
}

static void a_placement_without_a_slot_for_an_expert_is_refused(void **state)
{
    (void)state;
    int32_t rows[LAYERS][SLOTS];
    memcpy(rows, recorded_map, sizeof(rows));
    for (int s = 0; s < SLOTS; s++) {
        rows[1][s] = rows[1][s] == 5 ? 6 : rows[1][s];
    }
    eplb_placement *placement = make_placement(rows, LAYERS + 1);
    assert_under_refused(
        placement, LINE("0", SLOTS_0), EPLB_ERROR_DATA,
        "f: the placement that it was counted under: layer 2: expert 5 has no slot");
    eplb_placement_destroy(&placement);
}

static void rows_of_another_width_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    folded read;
    eplb_error error;
    test_write_text("f", LINE("0", "1,2,3,4,5,6,7,8"));
    assert_status(read_under(placement, &read, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "f:1: layer 0: 8 counts, expected 12, the slots of the "
                                   "placement that they were counted under");
    test_write_text("f", LINE("0", ZEROS ",0"));
    assert_status(read_under(placement, &read, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "f:1: layer 0: 13 counts, expected 12");
    eplb_placement_destroy(&placement);
}

static void a_sum_that_is_too_large_is_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    assert_under_refused(placement, LINE("0", "1e308,0,0,0,1e308,0,0,0,0,0,0,0"),
                         EPLB_ERROR_OVERFLOW,
                         "f: step 0: layer 0: expert 0: the sum of its counts is too large");
    eplb_placement_destroy(&placement);
}

/* Gives the layers the numbers 0, 1, 2. */
static void number_from_zero(eplb_placement *placement, int32_t model_layers)
{
    static const int32_t ids[LAYERS] = {0, 1, 2};
    assert_ok(eplb_placement_set_layer_ids(placement, ids, model_layers, NULL), NULL);
}

static void layers_beyond_the_placement_have_no_tokens(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(recorded_map, 0);
    folded read;
    eplb_error error;
    number_from_zero(placement, 0);
    test_write_text("f", LINE("2", SLOTS_2) LINE("3", ZEROS));
    assert_ok(read_under(placement, &read, &error), &error);
    assert_memory_equal(read.counts[0], recorded_total[2], sizeof(recorded_total[2]));
    assert_under_refused(placement, LINE("2", SLOTS_2) LINE("3", SLOTS_2), EPLB_ERROR_DATA,
                         "f: step 0: layer 3: not in the placement that it was counted under");
    eplb_placement_destroy(&placement);
}

/* By the order of layers, a dense one in the placement would shift all others. */
static void a_placement_that_lists_dense_layers_is_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    number_from_zero(placement, LAYERS);
    assert_under_refused(
        placement, LINE("0", SLOTS_0) LINE("1", SLOTS_1), EPLB_ERROR_DATA,
        "f: 2 layers, but 3 in the placement that it was counted under, which lists dense layers, "
        "too: leave them out of it");
    eplb_placement_destroy(&placement);
}

/* Layers 0 and 1 of the file: the placement's first two rows, or do its numbers begin elsewhere? */
static void a_part_of_layers_with_two_numbers_is_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(recorded_map, 0);
    assert_under_refused(placement, LINE("0", SLOTS_0) LINE("1", SLOTS_1), EPLB_ERROR_DATA,
                         "f: not all of layers 0 to 2, which are layers 1 to 3 in the placement "
                         "that it was counted under");
    eplb_placement_destroy(&placement);
}

static void experts_that_contradict_the_placement_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_read_options options = options_for("");
    eplb_error error;
    options.counted_under = placement;
    options.experts = EXPERTS + 1;
    test_write_text("f", LINE("0", SLOTS_0));
    assert_status(read_rows("f", &options, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_string_equal(error.message,
                        "f: the placement that it was counted under has 8 experts, not 9");
    eplb_placement_destroy(&placement);
}

/* A placement of more slots than rows may have experts. */
static void the_limit_of_experts_is_not_one_of_slots(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_read_options options = options_for("");
    eplb_error error;
    options.counted_under = placement;
    options.max_experts = EXPERTS;
    test_write_text("f", LINE("0", SLOTS_0) LINE("1", SLOTS_1) LINE("2", SLOTS_2));
    assert_ok(read_rows("f", &options, NULL, NULL, &error), &error);
    eplb_placement_destroy(&placement);
}

/* Two ranks, each with its part of the tokens: the rows of all of a source are folded. */
static void the_files_of_a_source_are_folded(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    eplb_read_options options = options_for("");
    const char *text = "f,g";
    eplb_load *load;
    eplb_error error;
    options.counted_under = placement;
    options.experts = EXPERTS;
    test_write_text("f", LINE("0", SLOTS_0) LINE("1", ZEROS) LINE("2", SLOTS_2));
    test_write_text("g", LINE("0", ZEROS) LINE("1", SLOTS_1) LINE("2", ZEROS));
    assert_ok(load_summed(&load, NULL, &text, 1, &options, &error), &error);
    assert_int_equal(eplb_load_experts(load), EXPERTS);
    for (int l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_load_row(load, 0, l), recorded_total[l],
                            sizeof(recorded_total[l]));
    }
    eplb_load_destroy(&load);
    eplb_placement_destroy(&placement);
}

static eplb_status read_folded(const eplb_hooks *hooks, void *context)
{
    eplb_read_options options = options_for("");
    options.counted_under = context;
    eplb_counts_reader *reader;
    eplb_counts_row row;
    eplb_status status = eplb_counts_open(&reader, hooks, "f", &options, NULL);
    while (status == EPLB_OK) {
        status = eplb_counts_next(reader, &row, NULL);
    }
    eplb_counts_close(&reader);
    return status == EPLB_END ? EPLB_OK : status;
}

static void each_failing_allocation_is_survived(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    test_write_text("f", LINE("0", SLOTS_0) LINE("1", SLOTS_1) LINE("2", SLOTS_2));
    test_each_failing_allocation(read_folded, placement);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(INSIDE(formats_without_layer_ids_go_by_the_order_of_layers),
          INSIDE(a_placement_without_a_slot_for_an_expert_is_refused),
          INSIDE(formats_with_layer_ids_go_by_them), INSIDE(logs_go_by_the_numbers_that_they_have),
          INSIDE(model_layers_under_a_map_of_moe_layers_are_refused),
          INSIDE(slots_that_csv_leaves_out_have_no_tokens),
          INSIDE(tokens_in_an_empty_slot_are_refused), INSIDE(rows_of_another_width_are_refused),
          INSIDE(a_sum_that_is_too_large_is_refused),
          INSIDE(layers_beyond_the_placement_have_no_tokens),
          INSIDE(a_placement_that_lists_dense_layers_is_refused),
          INSIDE(a_part_of_layers_with_two_numbers_is_refused),
          INSIDE(experts_that_contradict_the_placement_are_refused),
          INSIDE(the_limit_of_experts_is_not_one_of_slots),
          INSIDE(the_files_of_a_source_are_folded), INSIDE(each_failing_allocation_is_survived))
