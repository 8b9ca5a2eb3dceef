/* SPDX-License-Identifier: MIT */
#include "planning.h"

/* Three GPUs of two slots, four experts. */
static eplb_placement *placement_of(const int32_t *row)
{
    eplb_error error;
    eplb_placement *placement;
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, 4, &error), &error);
    assert_ok(eplb_placement_set_row(placement, 0, row, &error), &error);
    eplb_cluster_destroy(&cluster);
    return placement;
}

static void expect_repair(const int32_t *before, const int32_t *after, int64_t changes,
                          const eplb_load *load)
{
    eplb_error error;
    eplb_placement *placement = placement_of(before);
    int64_t changed = -1;
    assert_ok(eplb_placement_repair(placement, load, &changed, &error), &error);
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    assert_memory_equal(eplb_placement_row(placement, 0), after, 6 * sizeof(*after));
    assert_int_equal(changed, changes);
    eplb_placement_destroy(&placement);
}

static void valid_placement_is_left_alone(void **state)
{
    (void)state;
    static const int32_t row[6] = {0, 1, 2, 3, 1, 0};
    expect_repair(row, row, 0, NULL);
}

static void second_copy_gives_way_to_the_neediest_expert(void **state)
{
    (void)state;
    static const double loads[4] = {1, 2, 3, 90};
    static const int32_t before[6] = {0, 0, 1, 2, 3, 1};
    static const int32_t after[6] = {0, 3, 1, 2, 3, 1};
    eplb_load *load = load_of(loads, 1, 4);
    expect_repair(before, after, 1, load);
    eplb_load_destroy(&load);
}

static void missing_expert_takes_an_empty_slot_first(void **state)
{
    (void)state;
    static const int32_t before[6] = {0, 1, 0, 2, 1, -1};
    static const int32_t after[6] = {0, 1, 0, 2, 1, 3};
    expect_repair(before, after, 1, NULL);
}

static void missing_expert_takes_the_slot_of_the_least_loaded_spare_copy(void **state)
{
    (void)state;
    static const double loads[4] = {50, 2, 30, 9};
    static const int32_t before[6] = {0, 1, 0, 2, 1, 0};
    static const int32_t after[6] = {0, 3, 0, 2, 1, 0};
    eplb_load *load = load_of(loads, 1, 4);
    expect_repair(before, after, 1, load);
    eplb_load_destroy(&load);
}

static void dead_gpu_is_emptied_and_its_experts_live_on(void **state)
{
    (void)state;
    static const int32_t before[6] = {0, 1, 2, 3, 0, 1};
    static const int32_t after[6] = {-1, -1, 2, 3, 0, 1};
    eplb_error error;
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 0, 0, &error), &error);
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, 4, &error), &error);
    assert_ok(eplb_placement_set_row(placement, 0, before, &error), &error);
    assert_ok(eplb_placement_repair(placement, NULL, NULL, &error), &error);
    assert_memory_equal(eplb_placement_row(placement, 0), after, sizeof(after));
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
}

static void too_few_slots_and_other_shapes_are_refused(void **state)
{
    (void)state;
    static const double loads[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    eplb_error error;
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, 8, &error), &error);
    assert_status(eplb_placement_repair(placement, NULL, NULL, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    assert_contains(error.message, "at least 9 slots");
    eplb_placement_destroy(&placement);
    static const int32_t row[6] = {0, 1, 2, 3, 1, 0};
    placement = placement_of(row);
    eplb_load *load = load_of(loads, 2, 4);
    assert_status(eplb_placement_repair(placement, load, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_repair(NULL, NULL, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_load_destroy(&load);
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
}

static void load_that_overflows_leaves_the_placement_unchanged(void **state)
{
    (void)state;
    static const int32_t rows[2][6] = {{0, 0, 1, 2, 3, 1}, {0, 0, 1, 2, 3, 1}};
    static const double huge[4] = {1e308, 0, 0, 0};
    eplb_error error;
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 2, 4, &error), &error);
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, 2, 2, 4, &error), &error);
    for (int32_t i = 0; i < 2; i++) {
        assert_ok(eplb_placement_set_row(placement, i, rows[i], &error), &error);
        assert_ok(eplb_load_set_row(load, i, 1, huge, &error), &error);
    }
    assert_status(eplb_placement_repair(placement, load, NULL, &error), EPLB_ERROR_OVERFLOW,
                  &error);
    assert_memory_equal(eplb_placement_row(placement, 0), rows[0], sizeof(rows[0]));
    eplb_load_destroy(&load);
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
}

TEST_MAIN(cmocka_unit_test(valid_placement_is_left_alone),
          cmocka_unit_test(second_copy_gives_way_to_the_neediest_expert),
          cmocka_unit_test(missing_expert_takes_an_empty_slot_first),
          cmocka_unit_test(missing_expert_takes_the_slot_of_the_least_loaded_spare_copy),
          cmocka_unit_test(dead_gpu_is_emptied_and_its_experts_live_on),
          cmocka_unit_test(too_few_slots_and_other_shapes_are_refused),
          cmocka_unit_test(load_that_overflows_leaves_the_placement_unchanged))
