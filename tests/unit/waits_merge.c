/* SPDX-License-Identifier: MIT */
/* Ranks record locally; their waits are merged. */
#include "waits.h"

#include <eplb/random.h>

static void assert_same(const eplb_waits *a, const eplb_waits *b)
{
    eplb_waits_info info_a = info_of(a);
    eplb_waits_info info_b = info_of(b);
    assert_memory_equal(&info_a, &info_b, sizeof(info_a));
    for (int32_t l = 0; l < info_a.layers; l++) {
        eplb_layer_waits layer_a = layer_of(a, l);
        eplb_layer_waits layer_b = layer_of(b, l);
        assert_memory_equal(&layer_a, &layer_b, sizeof(layer_a));
        for (int32_t r = 0; r < info_a.ranks; r++) {
            eplb_wait_times times_a = times_of(a, l, r);
            eplb_wait_times times_b = times_of(b, l, r);
            assert_memory_equal(&times_a, &times_b, sizeof(times_a));
        }
    }
}

static eplb_waits *waits_of_one_rank(const eplb_hooks *hooks, int32_t rank)
{
    eplb_waits_options options = shape(2, 3);
    options.rank = rank;
    eplb_waits *waits;
    assert_ok(eplb_waits_create(&waits, hooks, &options, NULL), NULL);
    return waits;
}

static void merged_ranks_are_as_if_recorded_in_one(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 5);
    eplb_waits *whole = waits_of(2, 3);
    eplb_waits *parts[3];
    for (int32_t r = 0; r < 3; r++) {
        parts[r] = waits_of_one_rank(NULL, r);
    }
    for (int i = 0; i < 3000; i++) {
        int32_t layer = i % 2;
        int32_t rank = i / 2 % 3;
        double wait = eplb_random_unit(&random) * 1000.0 * (rank + 1);
        add(whole, layer, rank, wait);
        add(parts[rank], layer, rank, wait);
    }
    assert_ok(eplb_waits_merge(parts[1], parts[0], NULL), NULL);
    assert_ok(eplb_waits_merge(parts[1], parts[2], NULL), NULL);
    assert_same(parts[1], whole);
    assert_int_equal(info_of(parts[0]).missing_ranks, 2);
    for (int32_t r = 0; r < 3; r++) {
        eplb_waits_destroy(&parts[r]);
    }
    eplb_waits_destroy(&whole);
}

static void samples_of_the_same_rank_add_up(void **state)
{
    (void)state;
    eplb_waits *a = waits_of(1, 1);
    eplb_waits *b = waits_of(1, 1);
    add(a, 0, 0, 8.0);
    add(b, 0, 0, 16.0);
    add(b, 0, 0, 0.0);
    assert_ok(eplb_waits_merge(a, b, NULL), NULL);
    eplb_wait_times times = times_of(a, 0, 0);
    assert_int_equal(times.samples, 3);
    assert_true(times.mean == 8.0 && times.worst == 16.0);
    assert_close(times.p50, 8.0, tolerance_of(8.0));
    assert_ok(eplb_waits_merge(a, a, NULL), NULL); /* twice the same */
    assert_int_equal(times_of(a, 0, 0).samples, 6);
    assert_true(times_of(a, 0, 0).mean == 8.0);
    eplb_waits_destroy(&a);
    eplb_waits_destroy(&b);
}

static eplb_waits *with_ids(int32_t layers, int32_t ranks, const int32_t *ids, int32_t model_layers)
{
    eplb_waits_options options = shape(layers, ranks);
    options.layer_ids = ids;
    options.model_layers = model_layers;
    eplb_waits *waits;
    assert_ok(eplb_waits_create(&waits, NULL, &options, NULL), NULL);
    for (int32_t l = 0; l < layers; l++) {
        add(waits, l, 0, 1.0);
    }
    return waits;
}

static void what_has_another_shape_is_refused(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 2};
    static const int32_t other_ids[] = {1, 3};
    eplb_waits *into = with_ids(2, 2, ids, 0);
    const struct {
        eplb_waits *from;
        const char *message;
    } bad[] = {
        {with_ids(1, 2, ids, 0), "2 layers of 2 ranks and 1 layers of 2 ranks"},
        {with_ids(2, 3, ids, 0), "2 layers of 2 ranks and 2 layers of 3 ranks"},
        {with_ids(2, 2, other_ids, 0), "row 1 is layer 2 and layer 3"},
        {with_ids(2, 2, ids, 4), "0 model layers and 4 model layers"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_waits *from = bad[i].from;
        eplb_error error;
        assert_status(eplb_waits_merge(into, from, &error), EPLB_ERROR_DATA, &error);
        assert_contains(error.message, bad[i].message);
        assert_int_equal(info_of(into).samples, 2);
        eplb_waits_destroy(&from);
    }
    eplb_waits_destroy(&into);
}

static eplb_status merge_with_hooks(const eplb_hooks *hooks, void *context)
{
    eplb_waits_options options = shape(2, 3);
    options.rank = 1;
    eplb_waits *into;
    eplb_status status = eplb_waits_create(&into, hooks, &options, NULL);
    if (status == EPLB_OK) {
        status = eplb_waits_merge(into, context, NULL);
        assert_int_equal(info_of(into).samples, status == EPLB_OK ? 3 : 0);
    }
    eplb_waits_destroy(&into);
    return status;
}

static void a_merge_without_memory_adds_nothing(void **state)
{
    (void)state;
    eplb_waits *from = waits_of(2, 3);
    add(from, 0, 1, 1.0);
    add(from, 1, 0, 2.0);
    add(from, 1, 2, 3.0);
    test_each_failing_allocation(merge_with_hooks, from);
    eplb_waits_destroy(&from);
}

TEST_MAIN(cmocka_unit_test(merged_ranks_are_as_if_recorded_in_one),
          cmocka_unit_test(samples_of_the_same_rank_add_up),
          cmocka_unit_test(what_has_another_shape_is_refused),
          cmocka_unit_test(a_merge_without_memory_adds_nothing))
