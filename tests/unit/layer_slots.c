/* SPDX-License-Identifier: MIT */
/* Layers that have fewer slots than their cluster. */
#include "model.h"

#include <eplb/plan.h>

enum { LAYERS = 2, EXPERTS = 4, GPUS = 3, ROW = 6 };

/* Layer 1 has the slots 0, 2, 3 and 4 of six: GPU 0 closes its second one, GPU 2 its second one. */
static const int32_t fewer[GPUS] = {1, 2, 1};
static const int32_t full_row[ROW] = {0, 1, 2, 3, 0, 1};
static const int32_t fewer_row[ROW] = {0, -1, 1, 2, 3, -1};

static eplb_placement *make_uneven_placement(void)
{
    eplb_placement *placement = make_placement(make_cluster(GPUS, 2, 0), LAYERS, EXPERTS);
    assert_ok(eplb_placement_set_layer_slots(placement, 1, fewer, NULL), NULL);
    set_row(placement, 0, full_row);
    set_row(placement, 1, fewer_row);
    return placement;
}

static void new_placement_closes_nothing(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(GPUS, 2, 0), LAYERS, EXPERTS);
    assert_null(eplb_placement_layer_slots(placement, 0));
    assert_int_equal(eplb_placement_open_slots(placement, 1), ROW);
    assert_ok(eplb_placement_set_layer_slots(placement, 1, NULL, NULL), NULL);
    assert_null(eplb_placement_layer_slots(placement, 1));
    eplb_placement_destroy(&placement);
}

static void each_layer_has_its_own_slots(void **state)
{
    (void)state;
    eplb_placement *placement = make_uneven_placement();
    assert_int_equal(eplb_placement_slots(placement), ROW);
    assert_int_equal(eplb_placement_open_slots(placement, 0), ROW);
    assert_int_equal(eplb_placement_open_slots(placement, 1), 4);
    assert_int_equal(eplb_placement_open_slots_on(placement, 1, 0), 1);
    assert_int_equal(eplb_placement_open_slots_on(placement, 1, 1), 2);
    assert_int_equal(eplb_placement_open_slots_on(placement, 0, 0), 2);
    assert_memory_equal(eplb_placement_layer_slots(placement, 1), fewer, sizeof(fewer));
    assert_int_equal(eplb_placement_open_slots(placement, LAYERS), 0);
    assert_int_equal(eplb_placement_open_slots_on(placement, 1, GPUS), 0);
    assert_null(eplb_placement_layer_slots(placement, -1));
    assert_ok(eplb_placement_set_layer_slots(placement, 1, NULL, NULL), NULL);
    assert_int_equal(eplb_placement_open_slots(placement, 1), ROW);
    eplb_placement_destroy(&placement);
}

static void slots_beyond_the_cluster_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_uneven_placement();
    static const int32_t many[GPUS] = {1, 3, 1};
    static const int32_t negative[GPUS] = {1, 1, -1};
    eplb_error error;
    assert_status(eplb_placement_set_layer_slots(placement, 1, many, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_contains(error.message, "layer 1: 3 slots on GPU 1, which has 2");
    assert_status(eplb_placement_set_layer_slots(placement, 1, negative, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_placement_set_layer_slots(placement, LAYERS, fewer, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_memory_equal(eplb_placement_layer_slots(placement, 1), fewer, sizeof(fewer));
    eplb_placement_destroy(&placement);
}

static void nothing_is_missing_in_closed_slots(void **state)
{
    (void)state;
    eplb_placement *placement = make_uneven_placement();
    eplb_error error;
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    assert_ok(eplb_placement_set_layer_slots(placement, 1, NULL, NULL), NULL);
    assert_status(eplb_placement_validate(placement, 0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 1: slot 1 of GPU 0 is empty");
    eplb_placement_destroy(&placement);
}

static void open_slots_must_be_filled(void **state)
{
    (void)state;
    static const int32_t row[ROW] = {0, -1, 1, -1, 3, -1};
    eplb_placement *placement = make_uneven_placement();
    set_row(placement, 1, row);
    eplb_error error;
    assert_status(eplb_placement_validate(placement, 0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 1: slot 3 of GPU 1 is empty");
    eplb_placement_destroy(&placement);
}

/* Its weights would be nowhere, so it is no replica either. */
static void expert_in_a_closed_slot_is_a_violation(void **state)
{
    (void)state;
    static const int32_t row[ROW] = {0, 3, 1, 2, 0, -1};
    eplb_placement *placement = make_uneven_placement();
    set_row(placement, 1, row);
    eplb_error error;
    assert_status(eplb_placement_validate(placement, EPLB_VALIDATE_ALLOW_EMPTY, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 1: expert 3 in slot 1 of GPU 0, which the layer closes");
    int64_t count;
    assert_ok(eplb_placement_check(placement, 0, NULL, NULL, &count, &error), &error);
    assert_int_equal(count, 2); /* and expert 3 is missing */
    eplb_placement_destroy(&placement);
}

static void clone_has_the_same_slots(void **state)
{
    (void)state;
    eplb_placement *placement = make_uneven_placement();
    eplb_placement *clone = NULL;
    eplb_error error;
    assert_ok(eplb_placement_clone(&clone, NULL, placement, &error), &error);
    eplb_placement_destroy(&placement);
    assert_int_equal(eplb_placement_open_slots(clone, 0), ROW);
    assert_memory_equal(eplb_placement_layer_slots(clone, 1), fewer, sizeof(fewer));
    assert_ok(eplb_placement_validate(clone, 0, &error), &error);
    eplb_placement_destroy(&clone);
}

static void even_spread_leaves_closed_slots_empty(void **state)
{
    (void)state;
    eplb_placement *placement = make_uneven_placement();
    assert_ok(eplb_placement_spread(placement, 1, NULL), NULL);
    assert_memory_equal(eplb_placement_row(placement, 1), fewer_row, sizeof(fewer_row));
    static const int32_t too_few[GPUS] = {1, 1, 1};
    assert_ok(eplb_placement_set_layer_slots(placement, 1, too_few, NULL), NULL);
    eplb_error error;
    assert_status(eplb_placement_spread(placement, 1, &error), EPLB_ERROR_INFEASIBLE, &error);
    assert_contains(error.message, "layer 1: 3 slots on 3 live GPUs do not hold 4 experts");
    eplb_placement_destroy(&placement);
}

static void closed_slots_carry_nothing(void **state)
{
    (void)state;
    static const double loads[EXPERTS] = {1, 2, 3, 6};
    static const double expected[GPUS] = {1, 5, 6};
    eplb_placement *placement = make_uneven_placement();
    double gpu_loads[GPUS];
    assert_ok(eplb_placement_gpu_loads(placement, 1, loads, gpu_loads, NULL), NULL);
    assert_memory_equal(gpu_loads, expected, sizeof(expected));
    double imbalance;
    assert_ok(eplb_placement_imbalance(placement, 1, loads, &imbalance, NULL), NULL);
    assert_close(imbalance, 1.5, 1e-12);
    int32_t lost;
    int32_t gpu;
    assert_ok(eplb_placement_single_failure(placement, 1, &lost, &gpu, NULL), NULL);
    assert_int_equal(lost, 2);
    assert_int_equal(gpu, 1);
    eplb_placement_destroy(&placement);
}

static void copies_count_open_slots_only(void **state)
{
    (void)state;
    eplb_placement *from = make_uneven_placement();
    eplb_placement *to = make_uneven_placement();
    assert_ok(eplb_placement_set_layer_slots(to, 1, NULL, NULL), NULL);
    static const int32_t row[ROW] = {0, 3, 1, 2, 3, 0};
    set_row(to, 1, row);
    int64_t copies;
    assert_ok(eplb_placement_copies(from, to, 1, &copies, NULL), NULL);
    assert_int_equal(copies, 2);
    assert_ok(eplb_placement_copies(to, from, 1, &copies, NULL), NULL);
    assert_int_equal(copies, 0);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static void repair_empties_closed_slots_and_fills_open_ones(void **state)
{
    (void)state;
    static const int32_t broken[ROW] = {0, 3, 1, -1, 0, 1};
    static const int32_t mended[ROW] = {3, -1, 1, 2, 0, -1};
    eplb_placement *placement = make_uneven_placement();
    set_row(placement, 1, broken);
    int64_t changed;
    eplb_error error;
    assert_ok(eplb_placement_repair(placement, NULL, &changed, &error), &error);
    assert_ok(eplb_placement_validate(placement, 0, &error), &error);
    assert_memory_equal(eplb_placement_row(placement, 0), full_row, sizeof(full_row));
    assert_memory_equal(eplb_placement_row(placement, 1), mended, sizeof(mended));
    assert_int_equal(changed, 4);
    eplb_placement_destroy(&placement);
}

static void repair_needs_room_in_every_layer(void **state)
{
    (void)state;
    static const int32_t too_few[GPUS] = {1, 1, 1};
    eplb_placement *placement = make_uneven_placement();
    assert_ok(eplb_placement_set_layer_slots(placement, 1, too_few, NULL), NULL);
    eplb_error error;
    assert_status(eplb_placement_repair(placement, NULL, NULL, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    assert_contains(error.message, "layer 1: ");
    eplb_placement_destroy(&placement);
}

/* What a plan may keep has an expert in every slot of the cluster. */
static void plan_opens_slots_that_its_current_placement_closes(void **state)
{
    (void)state;
    static const double loads[EXPERTS] = {1, 1, 1, 1};
    eplb_placement *current = make_uneven_placement();
    eplb_load *load = make_load(1, LAYERS, EXPERTS);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_ok(eplb_load_set_row(load, 0, l, loads, NULL), NULL);
    }
    eplb_plan *plan = NULL;
    eplb_error error;
    assert_ok(
        eplb_plan_create(&plan, NULL, load, eplb_placement_cluster(current), current, NULL, &error),
        &error);
    const eplb_placement *planned = eplb_plan_placement(plan);
    assert_ok(eplb_placement_validate(planned, 0, &error), &error);
    assert_int_equal(eplb_placement_open_slots(planned, 1), ROW);
    eplb_plan_layer layer = {.struct_size = sizeof(layer)};
    assert_ok(eplb_plan_get_layer(plan, 1, &layer, NULL), NULL);
    assert_true(layer.copies >= 2);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
    eplb_placement_destroy(&current);
}

static eplb_status clone_uneven(const eplb_hooks *hooks, void *cluster)
{
    eplb_placement *placement = NULL;
    eplb_placement *clone = NULL;
    eplb_error error;
    eplb_status status = eplb_placement_create(&placement, hooks, cluster, LAYERS, EXPERTS, &error);
    if (status == EPLB_OK) {
        status = eplb_placement_set_layer_slots(placement, 1, fewer, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_clone(&clone, hooks, placement, &error);
    }
    eplb_placement_destroy(&clone);
    eplb_placement_destroy(&placement);
    return status;
}

static void no_memory_for_slots_leaks_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, 2, 0);
    test_each_failing_allocation(clone_uneven, cluster);
    eplb_cluster_destroy(&cluster);
}

TEST_MAIN(cmocka_unit_test(new_placement_closes_nothing),
          cmocka_unit_test(each_layer_has_its_own_slots),
          cmocka_unit_test(slots_beyond_the_cluster_are_refused),
          cmocka_unit_test(nothing_is_missing_in_closed_slots),
          cmocka_unit_test(open_slots_must_be_filled),
          cmocka_unit_test(expert_in_a_closed_slot_is_a_violation),
          cmocka_unit_test(clone_has_the_same_slots),
          cmocka_unit_test(even_spread_leaves_closed_slots_empty),
          cmocka_unit_test(closed_slots_carry_nothing),
          cmocka_unit_test(copies_count_open_slots_only),
          cmocka_unit_test(repair_empties_closed_slots_and_fills_open_ones),
          cmocka_unit_test(repair_needs_room_in_every_layer),
          cmocka_unit_test(plan_opens_slots_that_its_current_placement_closes),
          cmocka_unit_test(no_memory_for_slots_leaks_nothing))
