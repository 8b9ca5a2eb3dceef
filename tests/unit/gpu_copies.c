/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <eplb/price.h>

enum { EXPERTS = 6, GPUS = 4, SLOTS = 8 };

/* 4 GPUs of 2 slots on 2 nodes. */
static eplb_placement *make_row(const int32_t *row, int32_t dead)
{
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 2);
    if (dead >= 0) {
        assert_ok(eplb_cluster_set_alive(cluster, dead, 0, NULL), NULL);
    }
    eplb_placement *placement = make_placement(cluster, 1, EXPERTS);
    set_row(placement, 0, row);
    return placement;
}

static int64_t count(const int32_t *from_row, const int32_t *to_row, int32_t dead,
                     eplb_gpu_copies *copies)
{
    eplb_placement *from = make_row(from_row, -1);
    eplb_placement *to = make_row(to_row, dead);
    eplb_error error;
    int64_t stored = 0;
    memset(copies, 0, GPUS * sizeof(*copies));
    assert_ok(eplb_gpu_copies_add(from, to, 0, copies, &stored, &error), &error);
    int64_t expected;
    assert_ok(eplb_placement_copies(from, to, 0, &expected, &error), &error);
    int64_t received = 0;
    int64_t sent = 0;
    for (int32_t g = 0; g < GPUS; g++) {
        received += copies[g].received_intra + copies[g].received_inter;
        sent += copies[g].sent_intra + copies[g].sent_inter;
    }
    assert_int_equal(received, expected);
    assert_int_equal(sent + stored, expected);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
    return stored;
}

static const int32_t start[SLOTS] = {0, 1, 2, 3, 4, 5, 0, 1};

static void same_and_renamed_placements_copy_nothing(void **state)
{
    (void)state;
    eplb_gpu_copies copies[GPUS];
    count(start, start, -1, copies);
    assert_true(copies[0].sent_intra == 0 && copies[0].received_intra == 0);
    count(start, (int32_t[]){1, 0, 3, 2, 5, 4, 1, 0}, -1, copies);
    assert_true(copies[2].sent_intra == 0 && copies[2].received_intra == 0);
}

static void nearest_holder_sends(void **state)
{
    (void)state;
    eplb_gpu_copies copies[GPUS];
    assert_int_equal(count(start, (int32_t[]){0, 1, 0, 3, 4, 5, 2, 1}, -1, copies), 0);
    assert_int_equal(copies[0].sent_intra, 1); /* expert 0 within the node, though GPU 3 has it */
    assert_int_equal(copies[1].received_intra, 1);
    assert_int_equal(copies[1].sent_inter, 1); /* expert 2 is on the other node only */
    assert_int_equal(copies[3].received_inter, 1);
    assert_int_equal(copies[3].sent_intra + copies[3].sent_inter, 0);
}

static void idler_of_two_holders_sends(void **state)
{
    (void)state;
    static const int32_t from[SLOTS] = {0, 1, 0, 2, 3, 4, 5, 4};
    eplb_gpu_copies copies[GPUS];
    count(from, (int32_t[]){0, 1, 0, 2, 0, 1, 0, 4}, -1, copies);
    assert_int_equal(copies[0].sent_inter, 2); /* expert 0 first, for the tie; then expert 1 */
    assert_int_equal(copies[1].sent_inter, 1); /* expert 0 the second time */
}

static void what_no_live_gpu_holds_comes_from_storage(void **state)
{
    (void)state;
    eplb_gpu_copies copies[GPUS];
    assert_int_equal(count(start, (int32_t[]){0, 2, -1, -1, 4, 5, 3, 1}, 1, copies), 2);
    assert_int_equal(copies[0].received_inter, 1);
    assert_int_equal(copies[3].received_inter, 1);
    assert_int_equal(copies[1].sent_intra + copies[1].sent_inter, 0);
}

static void second_replica_on_a_gpu_is_copied_once(void **state)
{
    (void)state;
    eplb_gpu_copies copies[GPUS];
    count(start, (int32_t[]){5, 5, 2, 3, 4, 5, 0, 1}, -1, copies);
    assert_int_equal(copies[0].received_inter, 1);
}

static void layers_add_up(void **state)
{
    (void)state;
    eplb_placement *from = make_row(start, -1);
    eplb_placement *to = make_row((int32_t[]){0, 1, 0, 3, 4, 5, 2, 1}, -1);
    eplb_gpu_copies copies[GPUS] = {{0}};
    assert_ok(eplb_gpu_copies_add(from, to, 0, copies, NULL, NULL), NULL);
    assert_ok(eplb_gpu_copies_add(from, to, 0, copies, NULL, NULL), NULL);
    assert_int_equal(copies[1].received_intra, 2);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static void placements_that_do_not_match_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_placement *from = make_row(start, -1);
    eplb_placement *other = make_placement(make_cluster(3, 2, 0), 1, EXPERTS);
    eplb_gpu_copies copies[GPUS] = {{0}};
    assert_status(eplb_gpu_copies_add(from, other, 0, copies, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_contains(error.message, "4 GPUs");
    assert_status(eplb_gpu_copies_add(from, from, 1, copies, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_gpu_copies_add(from, from, 0, NULL, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&other);
}

TEST_MAIN(cmocka_unit_test(same_and_renamed_placements_copy_nothing),
          cmocka_unit_test(nearest_holder_sends), cmocka_unit_test(idler_of_two_holders_sends),
          cmocka_unit_test(what_no_live_gpu_holds_comes_from_storage),
          cmocka_unit_test(second_replica_on_a_gpu_is_copied_once), cmocka_unit_test(layers_add_up),
          cmocka_unit_test(placements_that_do_not_match_are_refused))
