/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { LAYERS = 2, EXPERTS = 5, GPUS = 3, SLOTS = 9 };

/* Experts 1 and 4 are on one GPU only, 1 twice; 2 and 3 are nowhere else than on two. */
static const int32_t row[SLOTS] = {0, 1, 1, 0, 2, 3, 3, 2, 4};

typedef struct fixture {
    eplb_placement *placement;
    eplb_cluster *cluster;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    f->placement = make_placement(make_cluster(GPUS, SLOTS / GPUS, 0), LAYERS, EXPERTS);
    set_row(f->placement, 1, row);
    f->cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    eplb_placement_destroy(&f->placement);
    eplb_cluster_destroy(&f->cluster);
    free(f);
    return 0;
}

static int32_t lost_of(const fixture *f, int32_t *experts, int32_t capacity)
{
    int32_t count = -1;
    eplb_error error;
    assert_ok(
        eplb_placement_lost_experts(f->placement, f->cluster, 1, experts, capacity, &count, &error),
        &error);
    return count;
}

static void nothing_is_lost_while_all_gpus_live(void **state)
{
    assert_int_equal(lost_of(*state, NULL, 0), 0);
}

static void experts_of_dead_gpus_alone_are_lost(void **state)
{
    fixture *f = *state;
    int32_t experts[EXPERTS] = {-1, -1, -1, -1, -1};
    assert_ok(eplb_cluster_set_alive(f->cluster, 0, 0, NULL), NULL);
    assert_int_equal(lost_of(f, experts, EXPERTS), 1);
    assert_int_equal(experts[0], 1);
    assert_ok(eplb_cluster_set_alive(f->cluster, 1, 0, NULL), NULL);
    assert_int_equal(lost_of(f, experts, EXPERTS), 2);
    assert_int_equal(experts[0], 0);
    assert_int_equal(experts[1], 1);
    experts[1] = -1;
    assert_int_equal(lost_of(f, experts, 1), 2);
    assert_int_equal(experts[1], -1);
}

static void experts_that_were_nowhere_are_not_lost(void **state)
{
    fixture *f = *state;
    static const int32_t without_4[SLOTS] = {0, 1, 1, 0, 2, 3, 3, 2, -1};
    set_row(f->placement, 1, without_4);
    assert_ok(eplb_cluster_set_alive(f->cluster, 2, 0, NULL), NULL);
    assert_int_equal(lost_of(f, NULL, 0), 0);
}

static void what_does_not_match_is_refused(void **state)
{
    fixture *f = *state;
    eplb_error error;
    int32_t count;
    assert_status(
        eplb_placement_lost_experts(f->placement, f->cluster, LAYERS, NULL, 0, &count, &error),
        EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "no layer 2");
    eplb_cluster *other = make_cluster(GPUS + 1, 2, 0);
    assert_status(eplb_placement_lost_experts(f->placement, other, 1, NULL, 0, &count, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "a placement on 3 GPUs, a cluster of 4");
    eplb_cluster_destroy(&other);
    int32_t gpu;
    assert_status(eplb_placement_single_failure(f->placement, -1, &count, &gpu, &error),
                  EPLB_ERROR_ARGUMENT, &error);
}

static void worst_single_failure_is_found(void **state)
{
    fixture *f = *state;
    int32_t lost;
    int32_t gpu;
    assert_ok(eplb_placement_single_failure(f->placement, 1, &lost, &gpu, NULL), NULL);
    assert_int_equal(lost, 1); /* expert 1 on GPU 0, expert 4 on GPU 2 */
    assert_int_equal(gpu, 0);
    static const int32_t fragile[SLOTS] = {0, 1, 2, 0, 1, 3, 4, 2, 2};
    set_row(f->placement, 1, fragile);
    assert_ok(eplb_placement_single_failure(f->placement, 1, &lost, &gpu, NULL), NULL);
    assert_int_equal(lost, 1);
    assert_int_equal(gpu, 1);
    static const int32_t safe[SLOTS] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    set_row(f->placement, 1, safe);
    assert_ok(eplb_placement_single_failure(f->placement, 1, &lost, &gpu, NULL), NULL);
    assert_int_equal(lost, 0);
    assert_int_equal(gpu, -1);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(with_fixture(nothing_is_lost_while_all_gpus_live),
          with_fixture(experts_of_dead_gpus_alone_are_lost),
          with_fixture(experts_that_were_nowhere_are_not_lost),
          with_fixture(what_does_not_match_is_refused), with_fixture(worst_single_failure_is_found))
