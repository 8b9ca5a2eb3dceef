/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { LAYERS = 3, EXPERTS = 7, GPUS = 4, SLOTS = 2, ROW = GPUS * SLOTS };

static void new_placement_is_empty_with_plain_ids(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 2), LAYERS, EXPERTS);
    assert_int_equal(eplb_placement_layers(placement), LAYERS);
    assert_int_equal(eplb_placement_experts(placement), EXPERTS);
    assert_int_equal(eplb_placement_slots(placement), ROW);
    assert_int_equal(eplb_placement_model_layers(placement), 0);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_int_equal(eplb_placement_layer_ids(placement)[l], l);
        for (int32_t s = 0; s < ROW; s++) {
            assert_int_equal(eplb_placement_row(placement, l)[s], -1);
        }
    }
    eplb_placement_destroy(&placement);
    assert_null(placement);
}

static void placement_owns_a_copy_of_its_cluster(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS, 2);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 5, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(cluster, 2, 0, NULL), NULL);
    eplb_placement *placement = NULL;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, LAYERS, EXPERTS, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 6, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(cluster, 3, 0, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    const eplb_cluster *own = eplb_placement_cluster(placement);
    assert_int_equal(eplb_cluster_gpus(own), GPUS);
    assert_int_equal(eplb_cluster_gpu_slots(own, 1), 5);
    assert_int_equal(eplb_cluster_first_slot(own, 2), 7);
    assert_int_equal(eplb_cluster_gpu_alive(own, 2), 0);
    assert_int_equal(eplb_cluster_gpu_alive(own, 3), 1);
    assert_int_equal(eplb_cluster_nodes(own), 2);
    assert_int_equal(eplb_placement_slots(placement), 11);
    eplb_placement_destroy(&placement);
}

static void sizes_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS, 2);
    static const int32_t bad[][2] = {
        {0, EXPERTS},
        {LAYERS, 0},
        {-1, EXPERTS},
        {LAYERS, -1},
        {EPLB_MAX_LAYERS + 1, EXPERTS},
        {LAYERS, EPLB_MAX_EXPERTS + 1},
        {INT32_MAX, INT32_MAX},
    };
    eplb_error error;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eplb_placement *placement = (eplb_placement *)&error;
        assert_status(
            eplb_placement_create(&placement, NULL, cluster, bad[i][0], bad[i][1], &error),
            EPLB_ERROR_ARGUMENT, &error);
        assert_null(placement);
    }
    assert_status(eplb_placement_create(NULL, NULL, cluster, LAYERS, EXPERTS, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_placement *placement = (eplb_placement *)&error;
    assert_status(eplb_placement_create(&placement, NULL, NULL, LAYERS, EXPERTS, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_null(placement);
    eplb_cluster_destroy(&cluster);
}

static void draft_layers_are_said_of_the_last_ones(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    eplb_error error;
    assert_int_equal(eplb_placement_draft_layers(placement), 0);
    assert_ok(eplb_placement_set_draft_layers(placement, LAYERS - 1, &error), &error);
    assert_int_equal(eplb_placement_draft_layers(placement), LAYERS - 1);
    static const int32_t bad[] = {-1, LAYERS, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(eplb_placement_set_draft_layers(placement, bad[i], &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, "placement: number of draft layers ");
        assert_int_equal(eplb_placement_draft_layers(placement), LAYERS - 1);
    }
    assert_ok(eplb_placement_set_draft_layers(placement, 0, &error), &error);
    assert_int_equal(eplb_placement_draft_layers(placement), 0);
    eplb_placement_destroy(&placement);
}

/* The ids of the draft model go on where those of the model end. */
static void a_clone_has_the_draft_layers_and_their_ids(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 60, 61};
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    eplb_placement *clone = NULL;
    assert_ok(eplb_placement_set_draft_layers(placement, 1, NULL), NULL);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 62, NULL), NULL);
    assert_ok(eplb_placement_clone(&clone, NULL, placement, NULL), NULL);
    eplb_placement_destroy(&placement);
    assert_int_equal(eplb_placement_draft_layers(clone), 1);
    assert_memory_equal(eplb_placement_layer_ids(clone), ids, sizeof(ids));
    assert_int_equal(eplb_placement_model_layers(clone), 62);
    eplb_placement_destroy(&clone);
}

static void rows_are_kept_apart(void **state)
{
    (void)state;
    static const int32_t rows[LAYERS][ROW] = {
        {0, 1, 2, 3, 4, 5, 6, 0}, {6, 5, 4, 3, 2, 1, 0, -1}, {1, 1, 1, 1, 1, 1, 1, 1}};
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    for (int32_t l = LAYERS - 1; l >= 0; l--) {
        set_row(placement, l, rows[l]);
    }
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_memory_equal(eplb_placement_row(placement, l), rows[l], sizeof(rows[l]));
    }
    eplb_placement_destroy(&placement);
}

static void expert_out_of_range_is_named_and_changes_nothing(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 4, 60};
    static const int32_t good[ROW] = {0, 1, 2, 3, 4, 5, 6, 0};
    static const int32_t bad_experts[] = {EXPERTS, -2, INT32_MAX, INT32_MIN};
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 0, NULL), NULL);
    set_row(placement, 2, good);
    for (size_t i = 0; i < sizeof(bad_experts) / sizeof(bad_experts[0]); i++) {
        int32_t bad[ROW] = {1, 1, 1, 1, 1, 1, 1, 1};
        bad[5] = bad_experts[i];
        eplb_error error;
        assert_status(eplb_placement_set_row(placement, 2, bad, &error), EPLB_ERROR_DATA, &error);
        assert_contains(error.message, "layer 60: slot 5");
        char value[16];
        snprintf(value, sizeof(value), "%d", bad_experts[i]);
        assert_contains(error.message, value);
        assert_memory_equal(eplb_placement_row(placement, 2), good, sizeof(good));
    }
    eplb_placement_destroy(&placement);
}

static void layer_out_of_range_is_refused(void **state)
{
    (void)state;
    static const int32_t bad[] = {-1, LAYERS, INT32_MAX, INT32_MIN};
    static const int32_t row[ROW] = {0};
    static const double loads[EXPERTS] = {0};
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int32_t map[EXPERTS * ROW];
        double out[ROW];
        int64_t copies;
        assert_null(eplb_placement_row(placement, bad[i]));
        assert_int_equal(eplb_placement_set_row(placement, bad[i], row, NULL), EPLB_ERROR_ARGUMENT);
        assert_int_equal(eplb_placement_spread(placement, bad[i], NULL), EPLB_ERROR_ARGUMENT);
        assert_int_equal(eplb_placement_replica_counts(placement, bad[i], map, NULL),
                         EPLB_ERROR_ARGUMENT);
        assert_int_equal(eplb_placement_logical_to_physical(placement, bad[i], map, ROW, NULL),
                         EPLB_ERROR_ARGUMENT);
        assert_int_equal(eplb_placement_gpu_loads(placement, bad[i], loads, out, NULL),
                         EPLB_ERROR_ARGUMENT);
        assert_int_equal(eplb_placement_imbalance(placement, bad[i], loads, out, NULL),
                         EPLB_ERROR_ARGUMENT);
        assert_int_equal(eplb_placement_copies(placement, placement, bad[i], &copies, NULL),
                         EPLB_ERROR_ARGUMENT);
    }
    assert_int_equal(eplb_placement_set_row(placement, 0, NULL, NULL), EPLB_ERROR_ARGUMENT);
    eplb_placement_destroy(&placement);
}

static void layer_ids_are_checked_as_for_loads(void **state)
{
    (void)state;
    static const int32_t good[LAYERS] = {3, 4, 60};
    static const int32_t bad[][LAYERS] = {{3, 3, 5}, {3, 5, 4}, {-1, 4, 5}, {3, 4, 61}};
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    assert_ok(eplb_placement_set_layer_ids(placement, good, 61, NULL), NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(eplb_placement_set_layer_ids(placement, bad[i], 61, NULL),
                         EPLB_ERROR_ARGUMENT);
    }
    assert_int_equal(eplb_placement_set_layer_ids(placement, NULL, 61, NULL), EPLB_ERROR_ARGUMENT);
    assert_int_equal(eplb_placement_set_layer_ids(placement, good, -1, NULL), EPLB_ERROR_ARGUMENT);
    assert_memory_equal(eplb_placement_layer_ids(placement), good, sizeof(good));
    assert_int_equal(eplb_placement_model_layers(placement), 61);
    eplb_placement_destroy(&placement);
}

static void clone_is_equal_and_apart(void **state)
{
    (void)state;
    static const int32_t ids[LAYERS] = {3, 4, 60};
    static const int32_t row[ROW] = {0, 1, 2, 3, 4, 5, 6, 0};
    static const int32_t other[ROW] = {6, 6, 6, 6, 6, 6, 6, 6};
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS, 2);
    assert_ok(eplb_cluster_set_alive(cluster, 2, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, LAYERS, EXPERTS);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 61, NULL), NULL);
    set_row(placement, 1, row);
    eplb_placement *clone = NULL;
    assert_ok(eplb_placement_clone(&clone, NULL, placement, NULL), NULL);
    set_row(placement, 1, other);
    eplb_placement_destroy(&placement);
    assert_int_equal(eplb_placement_layers(clone), LAYERS);
    assert_int_equal(eplb_placement_experts(clone), EXPERTS);
    assert_int_equal(eplb_placement_model_layers(clone), 61);
    assert_memory_equal(eplb_placement_layer_ids(clone), ids, sizeof(ids));
    assert_memory_equal(eplb_placement_row(clone, 1), row, sizeof(row));
    assert_int_equal(eplb_placement_row(clone, 2)[0], -1);
    assert_int_equal(eplb_cluster_gpu_alive(eplb_placement_cluster(clone), 2), 0);
    assert_int_equal(eplb_cluster_nodes(eplb_placement_cluster(clone)), 2);
    eplb_placement_destroy(&clone);
}

static void spread_fills_slots_in_order_and_starts_again(void **state)
{
    (void)state;
    static const int32_t expected[ROW] = {0, 1, 2, 3, 4, 5, 6, 0};
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), LAYERS, EXPERTS);
    assert_ok(eplb_placement_spread(placement, 1, NULL), NULL);
    assert_memory_equal(eplb_placement_row(placement, 1), expected, sizeof(expected));
    assert_int_equal(eplb_placement_row(placement, 0)[0], -1);
    assert_int_equal(eplb_placement_row(placement, 2)[0], -1);
    eplb_placement_destroy(&placement);
}

static void spread_leaves_dead_gpus_empty(void **state)
{
    (void)state;
    static const int32_t before[] = {4, 4, 4, 4, 4, 4, 4, 4, 4};
    static const int32_t expected[] = {0, 1, -1, -1, 2, 3, 4, 0, 1};
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 2, 3, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, 5);
    set_row(placement, 0, before);
    assert_ok(eplb_placement_spread(placement, 0, NULL), NULL);
    assert_memory_equal(eplb_placement_row(placement, 0), expected, sizeof(expected));
    assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
    eplb_placement_destroy(&placement);
}

static void spread_that_cannot_be_valid_changes_nothing(void **state)
{
    (void)state;
    static const int32_t before[ROW] = {0, 1, 2, 3, 4, 5, 6, 7};
    eplb_error error;
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS, 0), 1, ROW + 1);
    set_row(placement, 0, before);
    assert_status(eplb_placement_spread(placement, 0, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_memory_equal(eplb_placement_row(placement, 0), before, sizeof(before));
    eplb_placement_destroy(&placement);
    placement = make_placement(make_cluster(2, 4, 0), 1, 3);
    assert_status(eplb_placement_spread(placement, 0, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_int_equal(eplb_placement_row(placement, 0)[0], -1);
    eplb_placement_destroy(&placement);
}

static void cluster_without_any_slot_has_empty_rows(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(1, 3, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 0, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, LAYERS, EXPERTS);
    assert_int_equal(eplb_placement_slots(placement), 0);
    assert_non_null(eplb_placement_row(placement, 2));
    assert_int_equal(eplb_placement_validate(placement, 0, NULL), EPLB_ERROR_DATA);
    eplb_placement_destroy(&placement);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    eplb_placement *placement = NULL;
    eplb_placement_destroy(&placement);
    eplb_placement_destroy(NULL);
}

static eplb_status create_and_clone(const eplb_hooks *hooks, void *cluster)
{
    eplb_placement *placement = NULL;
    eplb_placement *clone = NULL;
    eplb_status status = eplb_placement_create(&placement, hooks, cluster, LAYERS, EXPERTS, NULL);
    if (status == EPLB_OK) {
        status = eplb_placement_clone(&clone, hooks, placement, NULL);
        assert_true(status == EPLB_OK || clone == NULL);
    }
    eplb_placement_destroy(&clone);
    eplb_placement_destroy(&placement);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS, 0);
    test_each_failing_allocation(create_and_clone, cluster);
    eplb_cluster_destroy(&cluster);
}

TEST_MAIN(cmocka_unit_test(new_placement_is_empty_with_plain_ids),
          cmocka_unit_test(placement_owns_a_copy_of_its_cluster),
          cmocka_unit_test(sizes_out_of_range_are_refused),
          cmocka_unit_test(draft_layers_are_said_of_the_last_ones),
          cmocka_unit_test(a_clone_has_the_draft_layers_and_their_ids),
          cmocka_unit_test(rows_are_kept_apart),
          cmocka_unit_test(expert_out_of_range_is_named_and_changes_nothing),
          cmocka_unit_test(layer_out_of_range_is_refused),
          cmocka_unit_test(layer_ids_are_checked_as_for_loads),
          cmocka_unit_test(clone_is_equal_and_apart),
          cmocka_unit_test(spread_fills_slots_in_order_and_starts_again),
          cmocka_unit_test(spread_leaves_dead_gpus_empty),
          cmocka_unit_test(spread_that_cannot_be_valid_changes_nothing),
          cmocka_unit_test(cluster_without_any_slot_has_empty_rows),
          cmocka_unit_test(destroying_nothing_does_nothing),
          cmocka_unit_test(failing_allocation_leaks_nothing))
