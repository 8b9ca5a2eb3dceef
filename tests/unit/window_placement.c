/* SPDX-License-Identifier: MIT */
/* Slot counts, folded by the placement in force. */
#include "window.h"

enum { LAYERS = 5, EXPERTS = 3, SLOTS = 4 };

/* A placement of 2 GPUs x 2 slots with the same row in each layer. */
static eplb_placement *placement_of(const int32_t *row)
{
    eplb_placement *placement = make_placement(make_cluster(2, 2, 0), LAYERS, EXPERTS);
    for (int32_t l = 0; l < LAYERS; l++) {
        set_row(placement, l, row);
    }
    return placement;
}

static eplb_status try_placement(eplb_window *window, const int32_t *row, eplb_error *error)
{
    eplb_placement *placement = placement_of(row);
    eplb_status status = eplb_window_set_placement(window, placement, error);
    eplb_placement_destroy(&placement);
    return status;
}

static void set_placement(eplb_window *window, const int32_t *row)
{
    eplb_error error;
    assert_ok(try_placement(window, row, &error), &error);
}

static eplb_window_options slot_options(void)
{
    eplb_window_options options = window_options(LAYERS, EXPERTS);
    options.slots = SLOTS;
    return options;
}

static const int32_t first_map[SLOTS] = {0, 1, 2, 0};
static const int32_t second_map[SLOTS] = {1, 2, 0, 1};
static const uint32_t slot_counts[SLOTS] = {5, 0, 0, 5};

/* vllm-project/vllm#36305 */
static void each_step_is_folded_by_its_own_placement(void **state)
{
    (void)state;
    eplb_window_options options = slot_options();
    options.fold_each_step = 1;
    eplb_window *window = make_window(options);
    set_placement(window, first_map);
    begin_step(window);
    record_slots(window, 4, slot_counts);
    assert_window_row(window, 0, 4, 10, 0, 0);
    set_placement(window, second_map);
    begin_step(window);
    record_slots(window, 4, slot_counts);
    assert_window_row(window, 0, 4, 10, 10, 0);
    assert_window_row(window, 0, 3, 0, 0, 0);
    eplb_window_destroy(&window);
}

/* vllm-project/vllm-ascend#7887: axes were mixed. Numbers of layers, experts, slots, GPUs and steps
 * all differ, and each layer has its map. */
static void each_layer_is_folded_by_its_own_map(void **state)
{
    (void)state;
    enum { STEPS = 6 };
    eplb_window_options options = slot_options();
    options.buckets = STEPS;
    options.steps_per_bucket = 1;
    eplb_window *window = make_window(options);
    eplb_placement *placement = placement_of(first_map);
    for (int32_t l = 0; l < LAYERS; l++) {
        set_row(placement, l, (int32_t[]){l % 3, (l + 1) % 3, (l + 2) % 3, l % 3});
    }
    assert_ok(eplb_window_set_placement(window, placement, NULL), NULL);
    eplb_placement_destroy(&placement);
    for (uint32_t t = 0; t < STEPS; t++) {
        begin_step(window);
        record_slots(window, (int32_t)t % LAYERS, (uint32_t[]){1, 2, 4, 8 + 16 * t});
    }
    assert_window_row(window, 0, 0, 9, 2, 4);
    assert_window_row(window, 1, 1, 4, 25, 2);
    assert_window_row(window, 2, 2, 2, 4, 41);
    assert_window_row(window, 4, 4, 4, 73, 2);
    assert_window_row(window, 5, 0, 89, 2, 4);
    assert_window_row(window, 5, 4, 0, 0, 0);
    eplb_window_destroy(&window);
}

static void second_placement_is_refused_while_counts_of_the_first_are_held(void **state)
{
    (void)state;
    eplb_window *window = make_window(slot_options());
    set_placement(window, first_map);
    begin_step(window);
    record_slots(window, 0, slot_counts);
    eplb_error error;
    assert_status(try_placement(window, second_map, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 0: slot 0: expert 1");
    assert_contains(error.message, "taken for expert 0");
    record_slots(window, 0, slot_counts);
    assert_window_row(window, 0, 0, 20, 0, 0);
    set_placement(window, first_map);
    eplb_window_reset(window);
    set_placement(window, second_map);
    begin_step(window);
    record_slots(window, 0, slot_counts);
    assert_window_row(window, 1, 0, 0, 10, 0);
    eplb_window_destroy(&window);
}

/* Whichever recorder has them. */
static void second_placement_waits_until_the_counts_have_left_the_window(void **state)
{
    (void)state;
    eplb_window_options options = slot_options();
    options.buckets = 2;
    options.steps_per_bucket = 1;
    options.recorders = 2;
    eplb_window *window = make_window(options);
    set_placement(window, first_map);
    begin_step(window);
    assert_ok(eplb_recorder_slot_counts(eplb_window_recorder(window, 1), 0, slot_counts, NULL),
              NULL);
    begin_step(window);
    assert_status(try_placement(window, second_map, NULL), EPLB_ERROR_DATA, NULL);
    begin_step(window);
    set_placement(window, second_map);
    record_slots(window, 0, slot_counts);
    assert_window_row(window, 2, 0, 0, 10, 0);
    eplb_window_destroy(&window);
}

static void logical_counts_and_dummy_steps_hold_no_placement(void **state)
{
    (void)state;
    eplb_window *window = make_window(slot_options());
    set_placement(window, first_map);
    begin_dummy_step(window);
    record_slots(window, 0, slot_counts);
    begin_step(window);
    record(window, 0, (uint32_t[]){1, 2, 3});
    set_placement(window, second_map);
    record_slots(window, 0, slot_counts);
    assert_window_row(window, 0, 0, 1, 12, 3);
    eplb_window_destroy(&window);
}

static void counts_of_empty_slots_are_dropped(void **state)
{
    (void)state;
    eplb_window *window = make_window(slot_options());
    set_placement(window, (int32_t[]){-1, 1, 2, 0});
    begin_step(window);
    record_slots(window, 2, (uint32_t[]){7, 1, 2, 3});
    eplb_snapshot *snapshot = take_snapshot(window);
    assert_row(snapshot, 0, 2, 3, 1, 2);
    assert_int_equal(info_of(snapshot).dropped, 7);
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void replicas_of_the_largest_counts_are_summed_exactly(void **state)
{
    (void)state;
    eplb_window *window = make_window(slot_options());
    set_placement(window, (int32_t[]){1, -1, 1, 2});
    begin_step(window);
    for (int i = 0; i < 3; i++) {
        record_slots(window, 0, (uint32_t[]){1, 1, 2, 3});
        record_slots(window, 0, (uint32_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX, 3});
        record_slots(window, 0, (uint32_t[]){INT32_MAX, 0, 0, 0});
    }
    eplb_snapshot *snapshot = take_snapshot(window);
    uint64_t largest = UINT32_MAX;
    assert_row(snapshot, 0, 0, 0, 3 * (3 + 2 * largest + INT32_MAX), 3 * 6);
    assert_int_equal(info_of(snapshot).dropped, 3 * (1 + largest));
    eplb_snapshot_destroy(&snapshot);
    eplb_window_destroy(&window);
}

static void slot_counts_without_a_placement_are_refused(void **state)
{
    (void)state;
    eplb_window *window = make_window(slot_options());
    eplb_recorder *recorder = eplb_window_recorder(window, 0);
    eplb_error error;
    begin_step(window);
    assert_status(eplb_recorder_slot_counts(recorder, 3, slot_counts, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_contains(error.message, "layer 3: slot counts without a placement");
    set_placement(window, first_map);
    assert_status(eplb_recorder_slot_counts(recorder, LAYERS, slot_counts, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_recorder_slot_counts(recorder, 0, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_window_row(window, 0, 3, 0, 0, 0);
    eplb_window_destroy(&window);
}

static void placement_of_another_shape_is_refused(void **state)
{
    (void)state;
    static const struct {
        int32_t slots_per_gpu;
        int32_t layers;
        int32_t experts;
        const char *message;
    } cases[] = {
        {3, LAYERS, EXPERTS, "6 slots, expected 4"},
        {2, LAYERS - 1, EXPERTS, "4 layers, expected 5"},
        {2, LAYERS, EXPERTS - 1, "2 experts, expected 3"},
    };
    eplb_window *window = make_window(slot_options());
    eplb_error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_placement *placement = make_placement(make_cluster(2, cases[i].slots_per_gpu, 0),
                                                   cases[i].layers, cases[i].experts);
        assert_status(eplb_window_set_placement(window, placement, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_contains(error.message, cases[i].message);
        eplb_placement_destroy(&placement);
    }
    assert_status(eplb_window_set_placement(window, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_window_destroy(&window);
}

static void window_without_slots_takes_no_placement(void **state)
{
    (void)state;
    eplb_window *window = make_window(window_options(LAYERS, EXPERTS));
    eplb_error error;
    begin_step(window);
    assert_status(try_placement(window, first_map, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "no slots");
    assert_status(
        eplb_recorder_slot_counts(eplb_window_recorder(window, 0), 0, slot_counts, &error),
        EPLB_ERROR_ARGUMENT, &error);
    eplb_window_destroy(&window);
}

/* The placement is the caller's to change. */
static void placement_is_copied(void **state)
{
    (void)state;
    eplb_window *window = make_window(slot_options());
    eplb_placement *placement = placement_of(first_map);
    assert_ok(eplb_window_set_placement(window, placement, NULL), NULL);
    set_row(placement, 0, second_map);
    begin_step(window);
    record_slots(window, 0, slot_counts);
    assert_window_row(window, 0, 0, 10, 0, 0);
    eplb_placement_destroy(&placement);
    eplb_window_destroy(&window);
}

TEST_MAIN(cmocka_unit_test(each_step_is_folded_by_its_own_placement),
          cmocka_unit_test(each_layer_is_folded_by_its_own_map),
          cmocka_unit_test(second_placement_is_refused_while_counts_of_the_first_are_held),
          cmocka_unit_test(second_placement_waits_until_the_counts_have_left_the_window),
          cmocka_unit_test(logical_counts_and_dummy_steps_hold_no_placement),
          cmocka_unit_test(counts_of_empty_slots_are_dropped),
          cmocka_unit_test(replicas_of_the_largest_counts_are_summed_exactly),
          cmocka_unit_test(slot_counts_without_a_placement_are_refused),
          cmocka_unit_test(placement_of_another_shape_is_refused),
          cmocka_unit_test(window_without_slots_takes_no_placement),
          cmocka_unit_test(placement_is_copied))
