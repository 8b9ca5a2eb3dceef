/* SPDX-License-Identifier: MIT */
#include "model.h"

static void gpus_slots_and_nodes_are_numbered_in_order(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(5, 3, 2);
    static const int32_t nodes[] = {0, 0, 1, 1, 2};
    assert_int_equal(eplb_cluster_gpus(cluster), 5);
    assert_int_equal(eplb_cluster_live_gpus(cluster), 5);
    assert_int_equal(eplb_cluster_nodes(cluster), 3);
    assert_int_equal(eplb_cluster_slots(cluster), 15);
    assert_int_equal(eplb_cluster_live_slots(cluster), 15);
    assert_int_equal(eplb_cluster_uniform_slots(cluster), 3);
    for (int32_t g = 0; g < 5; g++) {
        assert_int_equal(eplb_cluster_first_slot(cluster, g), 3 * g);
        assert_int_equal(eplb_cluster_gpu_slots(cluster, g), 3);
        assert_int_equal(eplb_cluster_gpu_node(cluster, g), nodes[g]);
        assert_int_equal(eplb_cluster_gpu_alive(cluster, g), 1);
    }
    eplb_cluster_destroy(&cluster);
    assert_null(cluster);
}

static void no_gpus_per_node_means_one_node(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(7, 2, 0);
    assert_int_equal(eplb_cluster_nodes(cluster), 1);
    for (int32_t g = 0; g < 7; g++) {
        assert_int_equal(eplb_cluster_gpu_node(cluster, g), 0);
    }
    eplb_cluster_destroy(&cluster);
}

static void sizes_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int32_t bad[][3] = {
        {0, 3, 2},
        {-1, 3, 2},
        {EPLB_MAX_GPUS + 1, 1, 2},
        {5, 0, 2},
        {5, -3, 2},
        {5, 3, -1},
        {5, EPLB_MAX_SLOTS / 5 + 1, 2},
        {1, EPLB_MAX_SLOTS + 1, 2},
        {INT32_MAX, INT32_MAX, INT32_MAX},
        {INT32_MIN, INT32_MIN, INT32_MIN},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_error error;
        eplb_cluster *cluster = (eplb_cluster *)&error;
        assert_status(eplb_cluster_create(&cluster, NULL, bad[i][0], bad[i][1], bad[i][2], &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_null(cluster);
    }
    assert_status(eplb_cluster_create(NULL, NULL, 5, 3, 2, NULL), EPLB_ERROR_ARGUMENT, NULL);
}

static void largest_cluster_can_be_made(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(EPLB_MAX_GPUS, EPLB_MAX_SLOTS / EPLB_MAX_GPUS, 1);
    assert_int_equal(eplb_cluster_slots(cluster), EPLB_MAX_SLOTS);
    assert_int_equal(eplb_cluster_nodes(cluster), EPLB_MAX_GPUS);
    eplb_cluster_destroy(&cluster);
}

static void uneven_slots_move_the_later_gpus(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 3, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 5, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 2, 0, NULL), NULL);
    static const int32_t first[] = {0, 3, 8, 8};
    static const int32_t slots[] = {3, 5, 0, 3};
    for (int32_t g = 0; g < 4; g++) {
        assert_int_equal(eplb_cluster_first_slot(cluster, g), first[g]);
        assert_int_equal(eplb_cluster_gpu_slots(cluster, g), slots[g]);
    }
    assert_int_equal(eplb_cluster_slots(cluster), 11);
    assert_int_equal(eplb_cluster_uniform_slots(cluster), 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 3, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 2, 3, NULL), NULL);
    assert_int_equal(eplb_cluster_uniform_slots(cluster), 3);
    eplb_cluster_destroy(&cluster);
}

static void slots_of_all_gpus_together_have_a_limit(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(3, 10, 0);
    eplb_error error;
    assert_ok(eplb_cluster_set_slots(cluster, 1, EPLB_MAX_SLOTS - 20, &error), &error);
    assert_int_equal(eplb_cluster_slots(cluster), EPLB_MAX_SLOTS);
    assert_status(eplb_cluster_set_slots(cluster, 1, EPLB_MAX_SLOTS - 19, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "GPU 1");
    assert_contains(error.message, "1048557");
    assert_status(eplb_cluster_set_slots(cluster, 2, INT32_MAX, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_cluster_set_slots(cluster, 2, -1, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_int_equal(eplb_cluster_slots(cluster), EPLB_MAX_SLOTS);
    assert_int_equal(eplb_cluster_gpu_slots(cluster, 2), 10);
    eplb_cluster_destroy(&cluster);
}

static void node_numbers_are_free(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 3, 2);
    assert_ok(eplb_cluster_set_node(cluster, 3, 6, NULL), NULL);
    assert_int_equal(eplb_cluster_gpu_node(cluster, 3), 6);
    assert_int_equal(eplb_cluster_gpu_node(cluster, 2), 1);
    assert_int_equal(eplb_cluster_nodes(cluster), 7);
    assert_status(eplb_cluster_set_node(cluster, 3, -1, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_status(eplb_cluster_set_node(cluster, 3, INT32_MAX, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_int_equal(eplb_cluster_nodes(cluster), 7);
    eplb_cluster_destroy(&cluster);
}

static void dead_gpu_keeps_its_slots_and_lends_none(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 3, 2);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 5, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    assert_int_equal(eplb_cluster_gpu_alive(cluster, 1), 0);
    assert_int_equal(eplb_cluster_gpus(cluster), 4);
    assert_int_equal(eplb_cluster_live_gpus(cluster), 3);
    assert_int_equal(eplb_cluster_slots(cluster), 14);
    assert_int_equal(eplb_cluster_live_slots(cluster), 9);
    assert_int_equal(eplb_cluster_first_slot(cluster, 2), 8);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 1, NULL), NULL);
    assert_int_equal(eplb_cluster_live_slots(cluster), 14);
    eplb_cluster_destroy(&cluster);
}

static void health_is_zero_or_one(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 3, 2);
    assert_status(eplb_cluster_set_alive(cluster, 1, 2, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_status(eplb_cluster_set_alive(cluster, 1, -1, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_int_equal(eplb_cluster_live_gpus(cluster), 4);
    eplb_cluster_destroy(&cluster);
}

static void gpu_out_of_range_is_refused(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(4, 3, 2);
    static const int32_t bad[] = {-1, 4, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_error error;
        assert_status(eplb_cluster_set_slots(cluster, bad[i], 1, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_status(eplb_cluster_set_node(cluster, bad[i], 1, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_status(eplb_cluster_set_alive(cluster, bad[i], 1, &error), EPLB_ERROR_ARGUMENT,
                      &error);
        assert_contains(error.message, "not in 0..3");
        assert_int_equal(eplb_cluster_first_slot(cluster, bad[i]), 0);
        assert_int_equal(eplb_cluster_gpu_slots(cluster, bad[i]), 0);
        assert_int_equal(eplb_cluster_gpu_node(cluster, bad[i]), 0);
        assert_int_equal(eplb_cluster_gpu_alive(cluster, bad[i]), 0);
    }
    eplb_cluster_destroy(&cluster);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = NULL;
    eplb_cluster_destroy(&cluster);
    eplb_cluster_destroy(NULL);
}

static eplb_status create(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_cluster *cluster = NULL;
    eplb_status status = eplb_cluster_create(&cluster, hooks, 5, 3, 2, NULL);
    eplb_cluster_destroy(&cluster);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(create, NULL);
}

TEST_MAIN(cmocka_unit_test(gpus_slots_and_nodes_are_numbered_in_order),
          cmocka_unit_test(no_gpus_per_node_means_one_node),
          cmocka_unit_test(sizes_out_of_range_are_refused),
          cmocka_unit_test(largest_cluster_can_be_made),
          cmocka_unit_test(uneven_slots_move_the_later_gpus),
          cmocka_unit_test(slots_of_all_gpus_together_have_a_limit),
          cmocka_unit_test(node_numbers_are_free),
          cmocka_unit_test(dead_gpu_keeps_its_slots_and_lends_none),
          cmocka_unit_test(health_is_zero_or_one), cmocka_unit_test(gpu_out_of_range_is_refused),
          cmocka_unit_test(destroying_nothing_does_nothing),
          cmocka_unit_test(failing_allocation_leaks_nothing))
