/* SPDX-License-Identifier: MIT */
/* Waits of a shape that is known at the end. */
#include "waits.h"

static eplb_waits_builder *builder_of(int32_t max_layers, int32_t max_ranks)
{
    eplb_waits_builder *builder;
    eplb_error error;
    assert_ok(eplb_waits_builder_create(&builder, NULL, max_layers, max_ranks, &error), &error);
    return builder;
}

static void build(eplb_waits_builder *builder, int32_t layer_id, int32_t rank, double wait)
{
    eplb_error error;
    assert_ok(eplb_waits_builder_add(builder, layer_id, rank, wait, &error), &error);
}

static void layers_are_the_ids_seen_and_ranks_go_to_the_largest(void **state)
{
    (void)state;
    eplb_waits_builder *builder = builder_of(100, 50);
    build(builder, 60, 2, 8.0);
    build(builder, 3, 7, 4.0);
    build(builder, 60, 2, 16.0);
    eplb_waits *waits;
    eplb_error error;
    assert_ok(eplb_waits_builder_finish(builder, &waits, 0, &error), &error);
    eplb_waits_info info = info_of(waits);
    assert_int_equal(info.layers, 2);
    assert_int_equal(info.ranks, 8);
    assert_int_equal(info.samples, 3);
    assert_int_equal(eplb_waits_layer_ids(waits)[0], 3);
    assert_int_equal(eplb_waits_layer_ids(waits)[1], 60);
    assert_true(times_of(waits, 1, 2).mean == 12.0 && times_of(waits, 0, 7).mean == 4.0);
    assert_int_equal(times_of(waits, 0, 2).samples, 0);
    add(waits, 0, 2, 1.0); /* a pair that the builder has not seen */
    assert_int_equal(times_of(waits, 0, 2).samples, 1);
    eplb_waits_destroy(&waits);
    eplb_waits_builder_destroy(&builder);
    assert_null(builder);
}

static void the_ranks_given_are_the_ranks(void **state)
{
    (void)state;
    eplb_waits_builder *builder = builder_of(4, 16);
    build(builder, 0, 5, 1.0);
    eplb_waits *waits = (eplb_waits *)&builder;
    eplb_error error;
    assert_status(eplb_waits_builder_finish(builder, &waits, 5, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "rank 5 has waits, expected 5 ranks");
    assert_null(waits);
    assert_ok(eplb_waits_builder_finish(builder, &waits, 20, &error), &error);
    assert_int_equal(info_of(waits).ranks, 20);
    assert_int_equal(info_of(waits).missing_ranks, 19);
    assert_int_equal(info_of(waits).samples, 1);
    eplb_waits_destroy(&waits);
    eplb_waits_builder_destroy(&builder);
}

static void a_finished_builder_is_empty_and_works_again(void **state)
{
    (void)state;
    eplb_waits_builder *builder = builder_of(4, 4);
    eplb_waits *first;
    eplb_waits *second;
    eplb_error error;
    assert_status(eplb_waits_builder_finish(builder, &first, 0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "no waits at all");
    build(builder, 1, 3, 1.0);
    assert_ok(eplb_waits_builder_finish(builder, &first, 0, &error), &error);
    assert_status(eplb_waits_builder_finish(builder, &second, 0, &error), EPLB_ERROR_DATA, &error);
    build(builder, 2, 1, 9.0);
    assert_ok(eplb_waits_builder_finish(builder, &second, 0, &error), &error);
    assert_int_equal(info_of(second).ranks, 2);
    assert_int_equal(eplb_waits_layer_ids(second)[0], 2);
    assert_true(info_of(first).mean == 1.0 && info_of(second).mean == 9.0);
    eplb_waits_destroy(&first);
    eplb_waits_destroy(&second);
    eplb_waits_builder_destroy(&builder);
}

static void bad_arguments_are_refused_and_leave_no_layer(void **state)
{
    (void)state;
    eplb_waits_builder *builder = builder_of(4, 6);
    eplb_waits *waits;
    eplb_error error;
    assert_status(eplb_waits_builder_add(builder, 4, 0, 1.0, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "layer 4 not in 0..3");
    assert_status(eplb_waits_builder_add(builder, -1, 0, 1.0, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_builder_add(builder, 0, 6, 1.0, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "rank 6 not in 0..5");
    assert_status(eplb_waits_builder_add(builder, 0, -1, 1.0, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_waits_builder_add(builder, 2, 1, -2.0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 2: rank 1: a wait of -2 us");
    assert_status(eplb_waits_builder_finish(builder, &waits, 0, &error), EPLB_ERROR_DATA, &error);
    assert_status(eplb_waits_builder_finish(builder, &waits, -1, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_waits_builder_finish(builder, &waits, 65537, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_waits_builder_finish(builder, NULL, 0, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_waits_builder_destroy(&builder);

    static const int32_t limits[][2] = {{0, 1}, {65537, 1}, {1, 0}, {1, 65537}};
    for (int i = 0; i < 4; i++) {
        builder = (eplb_waits_builder *)&waits;
        assert_status(eplb_waits_builder_create(&builder, NULL, limits[i][0], limits[i][1], &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_null(builder);
    }
    assert_status(eplb_waits_builder_create(NULL, NULL, 1, 1, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_waits_builder_destroy(NULL);
}

/* Sparse waits take memory for what is there, not for the rectangle around it. */
static void memory_is_that_of_the_pairs_seen(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_waits_builder *builder;
    assert_ok(eplb_waits_builder_create(&builder, &hooks, 1024, 4096, NULL), NULL);
    int64_t before = memory.live;
    for (int32_t l = 0; l < 20; l++) {
        build(builder, l * 50, l * 200, 1.0);
        build(builder, l * 50, l * 200, 2.0);
    }
    assert_int_equal(memory.live, before + 2 * 20);
    eplb_waits *waits;
    assert_ok(eplb_waits_builder_finish(builder, &waits, 0, NULL), NULL);
    assert_int_equal(info_of(waits).ranks, 3801);
    assert_int_equal(info_of(waits).samples, 40);
    eplb_waits_builder_destroy(&builder);
    eplb_waits_destroy(&waits);
    assert_int_equal(memory.live, 0);
}

static eplb_status build_with_hooks(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_waits_builder *builder;
    eplb_waits *waits = NULL;
    eplb_status status = eplb_waits_builder_create(&builder, hooks, 8, 8, NULL);
    for (int32_t i = 0; i < 6 && status == EPLB_OK; i++) {
        status = eplb_waits_builder_add(builder, i / 2 * 3, i, 1.0, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_waits_builder_finish(builder, &waits, 0, NULL);
        if (status != EPLB_OK) { /* what failed can be tried again */
            assert_null(waits);
            assert_ok(eplb_waits_builder_finish(builder, &waits, 0, NULL), NULL);
        }
        assert_int_equal(info_of(waits).samples, 6);
    }
    eplb_waits_destroy(&waits);
    eplb_waits_builder_destroy(&builder);
    return status;
}

static void building_survives_each_failing_allocation(void **state)
{
    (void)state;
    test_each_failing_allocation(build_with_hooks, NULL);
}

static void a_layer_that_found_no_memory_was_not_seen(void **state)
{
    (void)state;
    for (int64_t more = 1; more <= 2; more++) {
        test_memory memory = {0};
        eplb_hooks hooks = test_hooks(&memory);
        eplb_waits_builder *builder;
        assert_ok(eplb_waits_builder_create(&builder, &hooks, 8, 8, NULL), NULL);
        build(builder, 1, 1, 1.0);
        memory.fail_at = memory.requests + more;
        eplb_error error;
        assert_status(eplb_waits_builder_add(builder, 2, 5, 1.0, &error), EPLB_ERROR_NOMEM, &error);
        eplb_waits *waits;
        assert_ok(eplb_waits_builder_finish(builder, &waits, 0, &error), &error);
        assert_int_equal(info_of(waits).layers, 1);
        assert_int_equal(info_of(waits).ranks, 2);
        eplb_waits_destroy(&waits);
        eplb_waits_builder_destroy(&builder);
        assert_int_equal(memory.live, 0);
    }
}

TEST_MAIN(cmocka_unit_test(layers_are_the_ids_seen_and_ranks_go_to_the_largest),
          cmocka_unit_test(the_ranks_given_are_the_ranks),
          cmocka_unit_test(a_finished_builder_is_empty_and_works_again),
          cmocka_unit_test(bad_arguments_are_refused_and_leave_no_layer),
          cmocka_unit_test(memory_is_that_of_the_pairs_seen),
          cmocka_unit_test(building_survives_each_failing_allocation),
          cmocka_unit_test(a_layer_that_found_no_memory_was_not_seen))
