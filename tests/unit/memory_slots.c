/* SPDX-License-Identifier: MIT */
#include <eplb/cluster.h>
#include <eplb/load.h>

#include "support.h"

#define GIB INT64_C(1073741824)

/* DeepSeek-V3: an expert of one layer is 3 x 7168 x 2048 weights of one byte. */
#define V3_EXPERT INT64_C(44040192)

typedef struct good_case {
    int64_t gpu;
    int64_t reserve;
    int64_t expert;
    int32_t layers;
    int32_t slots;
} good_case;

static void whole_experts_of_every_layer_are_counted(void **state)
{
    (void)state;
    static const good_case cases[] = {
        {80 * GIB, 0, V3_EXPERT, 58, 33},
        {80 * GIB, 50 * GIB, V3_EXPERT, 58, 12},
        {2 * 3 * 7, 0, 7, 3, 2},
        {2 * 3 * 7 - 1, 0, 7, 3, 1},
        {2 * 3 * 7 + 5, 6, 7, 3, 1},
        {2 * 3 * 7 + 6, 6, 7, 3, 2},
        {INT64_MAX, 0, INT64_MAX, 1, 1},
        {INT64_MAX, INT64_MAX - 1, 1, 1, 1},
        {INT64_MAX, 0, INT64_MAX / 65536, EPLB_MAX_LAYERS, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const good_case *c = &cases[i];
        int32_t slots = -7;
        eplb_error error;
        assert_ok(eplb_slots_from_memory(c->gpu, c->reserve, c->expert, c->layers, &slots, &error),
                  &error);
        assert_int_equal(slots, c->slots);
    }
}

static void slots_beyond_what_a_cluster_can_have_are_cut(void **state)
{
    (void)state;
    int32_t slots;
    assert_ok(eplb_slots_from_memory(INT64_MAX, 0, 1, 1, &slots, NULL), NULL);
    assert_int_equal(slots, EPLB_MAX_SLOTS);
    assert_ok(eplb_slots_from_memory(EPLB_MAX_SLOTS + INT64_C(1), 0, 1, 1, &slots, NULL), NULL);
    assert_int_equal(slots, EPLB_MAX_SLOTS);
}

static void memory_without_room_for_one_slot_is_told_in_gibibytes(void **state)
{
    (void)state;
    int32_t slots = -7;
    eplb_error error;
    assert_status(eplb_slots_from_memory(4 * GIB, 2 * GIB, V3_EXPERT, 58, &slots, &error),
                  EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "4 GiB of a GPU less 2 GiB in reserve");
    assert_contains(error.message, "58 layers, 2.379 GiB");
    assert_status(eplb_slots_from_memory(GIB, 2 * GIB, 1, 1, &slots, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    /* expert_bytes * layers does not fit 64 bits */
    assert_status(eplb_slots_from_memory(INT64_MAX, 0, INT64_MAX / 2, 3, &slots, &error),
                  EPLB_ERROR_INFEASIBLE, &error);
    assert_int_equal(slots, -7);
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int64_t bad[][4] = {
        {-1, 0, 1, 1}, {8, -1, 1, 1}, {8, 0, 0, 1},
        {8, 0, -1, 1}, {8, 0, 1, 0},  {8, 0, 1, EPLB_MAX_LAYERS + 1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int32_t slots = -7;
        eplb_error error;
        assert_status(eplb_slots_from_memory(bad[i][0], bad[i][1], bad[i][2], (int32_t)bad[i][3],
                                             &slots, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_int_equal(slots, -7);
    }
    assert_status(eplb_slots_from_memory(8, 0, 1, 1, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
}

TEST_MAIN(cmocka_unit_test(whole_experts_of_every_layer_are_counted),
          cmocka_unit_test(slots_beyond_what_a_cluster_can_have_are_cut),
          cmocka_unit_test(memory_without_room_for_one_slot_is_told_in_gibibytes),
          cmocka_unit_test(numbers_out_of_range_are_refused))
