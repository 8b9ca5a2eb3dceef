/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { LAYERS = 2, EXPERTS = 5, GPUS = 3, SLOTS = 6 };

static eplb_placement *make_row(const int32_t *row)
{
    eplb_placement *placement =
        make_placement(make_cluster(GPUS, SLOTS / GPUS, 0), LAYERS, EXPERTS);
    set_row(placement, 1, row);
    return placement;
}

static int64_t copies_between(const eplb_placement *from, const eplb_placement *to)
{
    int64_t copies = -1;
    eplb_error error;
    assert_ok(eplb_placement_copies(from, to, 1, &copies, &error), &error);
    return copies;
}

/* Copies between two rows of layer 1 on 3 GPUs of 2 slots. */
static int64_t copies_of(const int32_t *from_row, const int32_t *to_row)
{
    eplb_placement *from = make_row(from_row);
    eplb_placement *to = make_row(to_row);
    int64_t copies = copies_between(from, to);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
    return copies;
}

static const int32_t start[SLOTS] = {0, 1, 2, 3, 4, 0};

static void same_placement_copies_nothing(void **state)
{
    (void)state;
    assert_int_equal(copies_of(start, start), 0);
}

static void renaming_slots_inside_a_gpu_copies_nothing(void **state)
{
    (void)state;
    assert_int_equal(copies_of(start, (int32_t[]){1, 0, 3, 2, 0, 4}), 0);
}

static void each_new_pair_of_gpu_and_expert_is_a_copy(void **state)
{
    (void)state;
    assert_int_equal(copies_of(start, (int32_t[]){0, 2, 1, 3, 4, 0}), 2);
    assert_int_equal(copies_of(start, (int32_t[]){2, 3, 4, 0, 0, 1}), 5);
}

static void second_replica_on_a_gpu_is_no_copy_from_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(copies_of(start, (int32_t[]){0, 0, 2, 3, 4, 1}), 1);
    assert_int_equal(copies_of(start, (int32_t[]){3, 3, 2, 3, 4, 1}), 2);
}

static void emptying_a_slot_copies_nothing_and_filling_it_does(void **state)
{
    (void)state;
    static const int32_t empty[SLOTS] = {-1, -1, 2, -1, -1, -1};
    assert_int_equal(copies_of(start, empty), 0);
    assert_int_equal(copies_of(empty, start), 5);
}

static void layers_do_not_mix(void **state)
{
    (void)state;
    eplb_placement *from = make_row(start);
    eplb_placement *to = make_row(start);
    set_row(to, 0, (int32_t[]){4, 4, 4, 4, 4, 4});
    assert_int_equal(copies_between(from, to), 0);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static void slots_may_differ_between_the_two(void **state)
{
    (void)state;
    eplb_placement *from = make_row(start);
    eplb_cluster *cluster = make_cluster(GPUS, 3, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 1, NULL), NULL);
    eplb_placement *to = make_placement(cluster, LAYERS, EXPERTS);
    set_row(to, 1, (int32_t[]){0, 1, 2, 3, 4, 0, 2});
    assert_int_equal(copies_between(from, to), 2);
    assert_int_equal(copies_between(to, from), 1);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static void other_shapes_are_refused(void **state)
{
    (void)state;
    eplb_placement *from = make_row(start);
    eplb_placement *more_gpus = make_placement(make_cluster(GPUS + 1, 2, 0), LAYERS, EXPERTS);
    eplb_placement *more_experts = make_placement(make_cluster(GPUS, 2, 0), LAYERS, EXPERTS + 1);
    eplb_placement *fewer_layers = make_placement(make_cluster(GPUS, 2, 0), 1, EXPERTS);
    int64_t copies = -7;
    eplb_error error;
    assert_status(eplb_placement_copies(from, more_gpus, 1, &copies, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_copies(from, more_experts, 1, &copies, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_copies(from, fewer_layers, 1, &copies, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_copies(fewer_layers, from, 1, &copies, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_copies(NULL, from, 1, &copies, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_copies(from, NULL, 1, &copies, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_copies(from, from, 1, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_int_equal(copies, -7);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&more_gpus);
    eplb_placement_destroy(&more_experts);
    eplb_placement_destroy(&fewer_layers);
}

static eplb_status count_copies(const eplb_hooks *hooks, void *cluster)
{
    eplb_placement *placement = NULL;
    eplb_status status = eplb_placement_create(&placement, hooks, cluster, LAYERS, EXPERTS, NULL);
    if (status == EPLB_OK) {
        int64_t copies;
        status = eplb_placement_copies(placement, placement, 0, &copies, NULL);
    }
    eplb_placement_destroy(&placement);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    test_each_failing_allocation(count_copies, cluster);
    eplb_cluster_destroy(&cluster);
}

TEST_MAIN(cmocka_unit_test(same_placement_copies_nothing),
          cmocka_unit_test(renaming_slots_inside_a_gpu_copies_nothing),
          cmocka_unit_test(each_new_pair_of_gpu_and_expert_is_a_copy),
          cmocka_unit_test(second_replica_on_a_gpu_is_no_copy_from_elsewhere),
          cmocka_unit_test(emptying_a_slot_copies_nothing_and_filling_it_does),
          cmocka_unit_test(layers_do_not_mix), cmocka_unit_test(slots_may_differ_between_the_two),
          cmocka_unit_test(other_shapes_are_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing))
