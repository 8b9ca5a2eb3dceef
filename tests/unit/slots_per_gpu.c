/* SPDX-License-Identifier: MIT */
#include "model.h"

static eplb_status slots_per_gpu(int32_t experts, int32_t gpus, int32_t slots, int32_t *result,
                                 eplb_error *error)
{
    *result = -7;
    return eplb_slots_per_gpu(experts, gpus, slots, result, error);
}

static void even_slots_are_shared(void **state)
{
    (void)state;
    static const int32_t good[][4] = {
        {256, 32, 288, 9},
        {256, 32, 256, 8},
        {5, 3, 6, 2},
        {5, 3, 15, 5},
        {1, 1, 1, 1},
        {7, 9, 9, 1},
        {1, EPLB_MAX_GPUS, EPLB_MAX_GPUS, 1},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int32_t result;
        eplb_error error;
        assert_ok(slots_per_gpu(good[i][0], good[i][1], good[i][2], &result, &error), &error);
        assert_int_equal(result, good[i][3]);
    }
}

/* vllm-project/vllm#52435: 256 experts on 3, 12 and 72 GPUs. */
static void too_few_slots_name_the_smallest_number(void **state)
{
    (void)state;
    int32_t result;
    eplb_error error;
    assert_status(slots_per_gpu(256, 3, 256, &result, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "258 (2 redundant)");
    assert_status(slots_per_gpu(256, 12, 256, &result, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "264 (8 redundant)");
    assert_status(slots_per_gpu(256, 72, 287, &result, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "288 (32 redundant)");
    assert_int_equal(result, -7);
}

static void uneven_slots_name_the_numbers_beside_them(void **state)
{
    (void)state;
    int32_t result;
    eplb_error error;
    assert_status(slots_per_gpu(256, 32, 300, &result, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "300 slots");
    assert_contains(error.message, "288 and 320 (32 and 64 redundant)");
    assert_int_equal(result, -7);
}

static void more_slots_than_one_of_each_on_every_gpu_are_refused(void **state)
{
    (void)state;
    int32_t result;
    eplb_error error;
    assert_status(slots_per_gpu(5, 3, 18, &result, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "18 slots");
    assert_contains(error.message, "15 can be filled (10 redundant)");
    assert_status(slots_per_gpu(5, 3, INT32_MAX, &result, &error), EPLB_ERROR_INFEASIBLE, &error);
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int32_t bad[][3] = {
        {0, 3, 6},  {-1, 3, 6},        {EPLB_MAX_EXPERTS + 1, 3, 6},
        {5, 0, 6},  {5, INT32_MIN, 6}, {5, EPLB_MAX_GPUS + 1, 6},
        {5, 3, -1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int32_t result;
        eplb_error error;
        assert_status(slots_per_gpu(bad[i][0], bad[i][1], bad[i][2], &result, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_int_equal(result, -7);
    }
    assert_status(eplb_slots_per_gpu(5, 3, 6, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
}

/* What this function allows, a cluster of that shape must be able to hold, and the other way. */
static void agrees_with_a_cluster_of_that_shape(void **state)
{
    (void)state;
    for (int32_t experts = 1; experts < 9; experts++) {
        for (int32_t gpus = 1; gpus < 5; gpus++) {
            for (int32_t each = 1; each < 11; each++) {
                eplb_placement *placement = make_placement(make_cluster(gpus, each, 0), 1, experts);
                int32_t result;
                assert_int_equal(slots_per_gpu(experts, gpus, gpus * each, &result, NULL),
                                 eplb_placement_spread(placement, 0, NULL));
                assert_true(result == each || result == -7);
                eplb_placement_destroy(&placement);
            }
        }
    }
}

TEST_MAIN(cmocka_unit_test(even_slots_are_shared),
          cmocka_unit_test(too_few_slots_name_the_smallest_number),
          cmocka_unit_test(uneven_slots_name_the_numbers_beside_them),
          cmocka_unit_test(more_slots_than_one_of_each_on_every_gpu_are_refused),
          cmocka_unit_test(numbers_out_of_range_are_refused),
          cmocka_unit_test(agrees_with_a_cluster_of_that_shape))
