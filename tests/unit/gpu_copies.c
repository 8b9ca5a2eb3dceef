/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <eplb/migration.h>
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
    eplb_error error;
    eplb_placement *from = make_row(from_row, -1);
    eplb_placement *to = make_row(to_row, dead);
    eplb_migration_options options;
    eplb_migration_options_init(&options);
    options.mode = EPLB_MIGRATION_STAGED; /* renamed slots cost nothing then */
    options.buffer_slots = -1;
    eplb_migration *migration;
    assert_ok(eplb_migration_create(&migration, NULL, from, to, &options, &error), &error);
    assert_ok(eplb_gpu_copies_count(migration, copies, &error), &error);
    int64_t expected;
    assert_ok(eplb_placement_copies(from, to, 0, &expected, &error), &error);
    int64_t received = 0;
    int64_t sent = 0;
    for (int32_t g = 0; g < GPUS; g++) {
        received += copies[g].received_intra + copies[g].received_inter;
        sent += copies[g].sent_intra + copies[g].sent_inter;
    }
    assert_int_equal(received, expected);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
    return expected - sent; /* from storage */
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

static void what_no_live_gpu_holds_comes_from_storage(void **state)
{
    (void)state;
    eplb_gpu_copies copies[GPUS];
    assert_int_equal(count(start, (int32_t[]){0, 2, -1, -1, 4, 5, 3, 1}, 1, copies), 2);
    assert_int_equal(copies[0].received_inter, 1);
    assert_int_equal(copies[3].received_inter, 1);
    assert_int_equal(copies[1].sent_intra + copies[1].sent_inter, 0);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_gpu_copies copies[GPUS];
    assert_status(eplb_gpu_copies_count(NULL, copies, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "no schedule");
}

TEST_MAIN(cmocka_unit_test(same_and_renamed_placements_copy_nothing),
          cmocka_unit_test(nearest_holder_sends),
          cmocka_unit_test(what_no_live_gpu_holds_comes_from_storage),
          cmocka_unit_test(missing_arguments_are_refused))
