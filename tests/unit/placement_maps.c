/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { LAYERS = 3, EXPERTS = 8, GPUS = 4, SLOTS = 12, WIDTH = 4 };

static const int32_t slot_to_expert[LAYERS][SLOTS] = {
    {0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 3, 5},
    {7, 2, 1, 2, 0, 3, 2, 4, 5, 6, 7, 1},
    {0, 4, 1, 5, 2, 4, 3, 6, 4, 7, 0, 4},
};

static const int32_t expert_to_slots[LAYERS][EXPERTS][WIDTH] = {
    {{0, 4, 8, -1},
     {1, -1, -1, -1},
     {2, -1, -1, -1},
     {3, 10, -1, -1},
     {5, -1, -1, -1},
     {6, 11, -1, -1},
     {7, -1, -1, -1},
     {9, -1, -1, -1}},
    {{4, -1, -1, -1},
     {2, 11, -1, -1},
     {1, 3, 6, -1},
     {5, -1, -1, -1},
     {7, -1, -1, -1},
     {8, -1, -1, -1},
     {9, -1, -1, -1},
     {0, 10, -1, -1}},
    {{0, 10, -1, -1},
     {2, -1, -1, -1},
     {4, -1, -1, -1},
     {6, -1, -1, -1},
     {1, 5, 8, 11},
     {3, -1, -1, -1},
     {7, -1, -1, -1},
     {9, -1, -1, -1}},
};

static const int32_t replicas[LAYERS][EXPERTS] = {
    {3, 1, 1, 2, 1, 2, 1, 1}, {1, 2, 3, 1, 1, 1, 1, 2}, {2, 1, 1, 1, 4, 1, 1, 1}};

static eplb_placement *make_known_placement(void)
{
    eplb_placement *placement =
        make_placement(make_cluster(GPUS, SLOTS / GPUS, 0), LAYERS, EXPERTS);
    for (int32_t l = 0; l < LAYERS; l++) {
        set_row(placement, l, slot_to_expert[l]);
    }
    return placement;
}

static void replicas_are_counted(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t counts[EXPERTS];
        assert_ok(eplb_placement_replica_counts(placement, l, counts, NULL), NULL);
        assert_memory_equal(counts, replicas[l], sizeof(counts));
    }
    eplb_placement_destroy(&placement);
}

static void slots_of_each_expert_ascend_and_are_padded(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t map[EXPERTS][WIDTH];
        assert_ok(eplb_placement_logical_to_physical(placement, l, map[0], WIDTH, NULL), NULL);
        assert_memory_equal(map, expert_to_slots[l], sizeof(map));
    }
    eplb_placement_destroy(&placement);
}

static void empty_slots_belong_to_nobody(void **state)
{
    (void)state;
    static const int32_t row[SLOTS] = {-1, 5, -1, 5, -1, -1, -1, -1, -1, -1, -1, 2};
    static const int32_t expected_counts[EXPERTS] = {0, 0, 1, 0, 0, 2, 0, 0};
    eplb_placement *placement = make_known_placement();
    set_row(placement, 1, row);
    int32_t counts[EXPERTS];
    assert_ok(eplb_placement_replica_counts(placement, 1, counts, NULL), NULL);
    assert_memory_equal(counts, expected_counts, sizeof(counts));
    int32_t map[EXPERTS][2];
    assert_ok(eplb_placement_logical_to_physical(placement, 1, map[0], 2, NULL), NULL);
    for (int32_t e = 0; e < EXPERTS; e++) {
        assert_int_equal(map[e][0], e == 5 ? 1 : e == 2 ? 11 : -1);
        assert_int_equal(map[e][1], e == 5 ? 3 : -1);
    }
    eplb_placement_destroy(&placement);
}

static void map_too_narrow_is_refused_and_left_alone(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    int32_t map[EXPERTS * (WIDTH - 1)];
    int32_t before[EXPERTS * (WIDTH - 1)];
    memset(map, 0x5a, sizeof(map));
    memcpy(before, map, sizeof(map));
    eplb_error error;
    assert_status(eplb_placement_logical_to_physical(placement, 2, map, WIDTH - 1, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "layer 2: expert 4");
    assert_contains(error.message, "3");
    assert_memory_equal(map, before, sizeof(map));
    assert_status(eplb_placement_logical_to_physical(placement, 0, map, 0, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_logical_to_physical(placement, 0, map, -1, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_placement_destroy(&placement);
}

static void missing_outputs_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    assert_status(eplb_placement_replica_counts(placement, 0, NULL, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    assert_status(eplb_placement_logical_to_physical(placement, 0, NULL, WIDTH, NULL),
                  EPLB_ERROR_ARGUMENT, NULL);
    eplb_placement_destroy(&placement);
}

static eplb_status invert(const eplb_hooks *hooks, void *cluster)
{
    eplb_placement *placement = NULL;
    eplb_status status = eplb_placement_create(&placement, hooks, cluster, LAYERS, EXPERTS, NULL);
    if (status == EPLB_OK) {
        int32_t map[EXPERTS][WIDTH];
        set_row(placement, 0, slot_to_expert[0]);
        status = eplb_placement_logical_to_physical(placement, 0, map[0], WIDTH, NULL);
    }
    eplb_placement_destroy(&placement);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    test_each_failing_allocation(invert, cluster);
    eplb_cluster_destroy(&cluster);
}

TEST_MAIN(cmocka_unit_test(replicas_are_counted),
          cmocka_unit_test(slots_of_each_expert_ascend_and_are_padded),
          cmocka_unit_test(empty_slots_belong_to_nobody),
          cmocka_unit_test(map_too_narrow_is_refused_and_left_alone),
          cmocka_unit_test(missing_outputs_are_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing))
