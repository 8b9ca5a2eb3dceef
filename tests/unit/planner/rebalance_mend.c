/* SPDX-License-Identifier: MIT */
/* Rebalances of placements that are not valid in the cluster: what has to be copied is little. */
#include "rebalancing.h"

#define EXPERTS 12
#define GPUS 4
#define SLOTS_PER_GPU 4
#define SLOTS (GPUS * SLOTS_PER_GPU)

/* Each expert, and 0..3 twice; the loads of the GPUs are equal when all slots are filled so. */
static const int32_t whole[SLOTS] = {
    0, 4, 8,  1, /* */
    1, 5, 9,  2, /* */
    2, 6, 10, 3, /* */
    3, 7, 11, 0,
};
static const double loads[EXPERTS] = {20, 20, 20, 20, 10, 10, 10, 10, 10, 10, 10, 10};

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster; /* to plan for */
    eplb_rebalance_options options;
    int32_t row[SLOTS]; /* in force, on four GPUs of four slots */
} fixture;

static int setup(void **state)
{
    fixture *f = malloc(sizeof(*f));
    f->load = load_of(loads, 1, EXPERTS);
    f->cluster = cluster_of(GPUS, SLOTS_PER_GPU, 0);
    f->options = rebalance_defaults();
    memcpy(f->row, whole, sizeof(whole));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    eplb_cluster_destroy(&f->cluster);
    free(f);
    return 0;
}

/* The plan, which must need `required` copies and make no others. */
static eplb_plan *mended(const fixture *f, int64_t required)
{
    eplb_cluster *before = cluster_of(GPUS, SLOTS_PER_GPU, 0);
    eplb_placement *current = placement_with_rows(before, f->row, 1, EXPERTS);
    eplb_plan *plan = rebalance_of(f->load, f->cluster, current, NULL, &f->options);
    assert_int_equal(rebalance_layer_of(plan, 0).copies_required, required);
    assert_int_equal(info_of(plan).copies, required);
    assert_int_equal(copies_again(plan, f->load, f->cluster, NULL, &f->options), 0);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&before);
    return plan;
}

static int32_t replicas(const eplb_plan *plan, int32_t expert)
{
    int32_t counts[EXPERTS];
    assert_ok(eplb_placement_replica_counts(eplb_plan_placement(plan), 0, counts, NULL), NULL);
    return counts[expert];
}

static void a_whole_placement_needs_no_copy(void **state)
{
    eplb_plan *plan = mended(*state, 0);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 0), whole, sizeof(whole));
    eplb_plan_destroy(&plan);
}

static void an_empty_slot_is_filled_with_one_copy(void **state)
{
    fixture *f = *state;
    f->row[3] = -1;
    eplb_plan *plan = mended(f, 1);
    assert_true(eplb_placement_row(eplb_plan_placement(plan), 0)[3] >= 0);
    assert_true(layer_of(plan, 0).imbalance_after <= 1.15);
    eplb_plan_destroy(&plan);
}

static void a_second_copy_on_a_gpu_gives_way(void **state)
{
    fixture *f = *state;
    f->row[3] = 0;
    eplb_plan *plan = mended(f, 1);
    assert_int_not_equal(eplb_placement_row(eplb_plan_placement(plan), 0)[3], 0);
    eplb_plan_destroy(&plan);
}

static void a_missing_expert_is_copied_in(void **state)
{
    fixture *f = *state;
    f->row[1] = 2; /* expert 4 is nowhere, 2 three times */
    eplb_plan *plan = mended(f, 1);
    assert_int_equal(replicas(plan, 4), 1);
    assert_true(layer_of(plan, 0).imbalance_before == 0.0);
    eplb_plan_destroy(&plan);
}

static void the_mean_before_is_over_the_layers_that_have_one(void **state)
{
    fixture *f = *state;
    int32_t rows[2 * SLOTS];
    double both[2 * EXPERTS];
    for (int32_t l = 0; l < 2; l++) {
        memcpy(rows + l * SLOTS, whole, sizeof(whole));
        memcpy(both + l * EXPERTS, loads, sizeof(loads));
    }
    rows[1] = 2; /* in the first layer expert 4 is nowhere */
    eplb_load *load = load_of(both, 2, EXPERTS);
    eplb_placement *current = placement_with_rows(f->cluster, rows, 2, EXPERTS);
    eplb_plan *plan = rebalance_of(load, f->cluster, current, NULL, &f->options);
    assert_true(layer_of(plan, 0).imbalance_before == 0.0);
    assert_close(info_of(plan).imbalance_before_mean, layer_of(plan, 1).imbalance_before, 1e-12);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_load_destroy(&load);
}

static void a_placement_without_anything_is_filled(void **state)
{
    fixture *f = *state;
    for (int32_t s = 0; s < SLOTS; s++) {
        f->row[s] = -1;
    }
    eplb_plan *plan = mended(f, SLOTS);
    assert_true(layer_of(plan, 0).imbalance_after < 1.01);
    eplb_plan_destroy(&plan);
}

/* GPU 3 had the only replicas of 7 and 11. */
static void experts_of_a_dead_gpu_live_on(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_alive(f->cluster, 3, 0, NULL), NULL);
    eplb_plan *plan = mended(f, 2);
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), 0);
    assert_true(replicas(plan, 7) >= 1 && replicas(plan, 11) >= 1);
    for (int32_t s = 3 * SLOTS_PER_GPU; s < SLOTS; s++) {
        assert_int_equal(row[s], -1);
    }
    eplb_plan_destroy(&plan);
}

static void a_gpu_that_comes_back_is_filled(void **state)
{
    fixture *f = *state;
    for (int32_t s = 0; s < SLOTS_PER_GPU; s++) {
        f->row[3 * SLOTS_PER_GPU + s] = -1;
    }
    f->row[0] = 7;
    f->row[3] = 11;
    f->row[7] = 0;
    eplb_plan *plan = mended(f, SLOTS_PER_GPU);
    eplb_plan_destroy(&plan);
}

static void further_slots_are_filled_and_the_rest_stays(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_slots(f->cluster, 1, SLOTS_PER_GPU + 1, NULL), NULL);
    f->options.copy_price = 1.0;
    eplb_plan *plan = mended(f, 1);
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), 0);
    assert_memory_equal(row, whole, 8 * sizeof(*row));
    assert_memory_equal(row + 9, whole + 8, 8 * sizeof(*row));
    eplb_plan_destroy(&plan);
}

/* The last slot of GPU 0 had expert 4, which is nowhere else. */
static void an_expert_of_a_slot_that_is_no_more_gets_another(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_slots(f->cluster, 0, SLOTS_PER_GPU - 1, NULL), NULL);
    f->row[1] = 1;
    f->row[3] = 4;
    f->options.copy_price = 1.0;
    eplb_plan *plan = mended(f, 0);
    assert_int_equal(replicas(plan, 4), 1);
    assert_int_equal(eplb_placement_row(eplb_plan_placement(plan), 0)[2], 8);
    eplb_plan_destroy(&plan);
}

/* Elsewhere it would be cooler. */
static void an_expert_that_loses_its_slot_stays_on_its_gpu_where_another_can_give_way(void **state)
{
    fixture *f = *state;
    const double hot[EXPERTS] = {20, 20, 20, 20, 10, 10, 10, 10, 40, 10, 10, 10};
    assert_ok(eplb_load_set_row(f->load, 0, 0, hot, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(f->cluster, 0, SLOTS_PER_GPU - 1, NULL), NULL);
    f->row[1] = 1;
    f->row[3] = 4;
    f->options.copy_price = 1.0;
    eplb_plan *plan = mended(f, 0);
    assert_int_equal(replicas(plan, 4), 1);
    eplb_plan_destroy(&plan);
}

/* Expert 4 loses its slot and 5 is nowhere; there is one hole. */
static void a_hole_is_left_to_an_expert_that_must_be_copied(void **state)
{
    fixture *f = *state;
    static const int32_t row[SLOTS] = {0, 1, 8,  4,  /* */
                                       1, 3, 9,  2,  /* */
                                       2, 6, 10, -1, /* */
                                       3, 7, 11, 0};
    const double hot[EXPERTS] = {20, 20, 20, 20, 15, 10, 10, 10, 10, 10, 10, 10};
    memcpy(f->row, row, sizeof(row));
    assert_ok(eplb_load_set_row(f->load, 0, 0, hot, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(f->cluster, 0, SLOTS_PER_GPU - 1, NULL), NULL);
    f->options.copy_price = 1.0;
    eplb_plan *plan = mended(f, 1);
    assert_int_equal(replicas(plan, 5), 1);
    eplb_plan_destroy(&plan);
}

/* Expert 4 loses its slot and 5 is nowhere; on GPU 0, the coolest, only expert 0 can give way. */
static void a_copied_expert_does_not_take_the_place_of_one_that_could_stay(void **state)
{
    fixture *f = *state;
    static const int32_t row[SLOTS] = {0, 6, 8,  4, /* */
                                       0, 1, 9,  2, /* */
                                       0, 2, 10, 3, /* */
                                       0, 7, 11, 1};
    const double hot[EXPERTS] = {20, 20, 20, 20, 10, 15, 1, 10, 1, 10, 10, 10};
    memcpy(f->row, row, sizeof(row));
    assert_ok(eplb_load_set_row(f->load, 0, 0, hot, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(f->cluster, 0, SLOTS_PER_GPU - 1, NULL), NULL);
    f->options.copy_price = 1.0;
    eplb_plan *plan = mended(f, 1);
    assert_int_equal(replicas(plan, 4), 1);
    eplb_plan_destroy(&plan);
}

/* Expert 3 has one replica too many, on GPU 3, whose last slot had expert 2. */
static void a_slot_that_becomes_free_gets_what_its_gpu_would_lose(void **state)
{
    fixture *f = *state;
    static const int32_t surplus[SLOTS] = {0, 4, 8,  1, /* */
                                           1, 5, 9,  3, /* */
                                           2, 6, 10, 3, /* */
                                           3, 7, 11, 2};
    eplb_placement *current = placement_with_rows(f->cluster, surplus, 1, EXPERTS);
    assert_ok(eplb_cluster_set_slots(f->cluster, 3, SLOTS_PER_GPU - 1, NULL), NULL);
    const double hot[EXPERTS] = {80, 20, 20, 20, 10, 10, 10, 10, 10, 10, 10, 10};
    assert_ok(eplb_load_set_row(f->load, 0, 0, hot, NULL), NULL);
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.max_replicas = 2;
    f->options.copy_price = 1.0;
    eplb_plan *plan = rebalance_of(f->load, f->cluster, current, &planning, &f->options);
    assert_int_equal(rebalance_layer_of(plan, 0).copies_required, 0);
    assert_int_equal(replicas(plan, 2), 2);
    assert_int_equal(copies_again(plan, f->load, f->cluster, &planning, &f->options), 0);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void required_copies_count_before_those_that_pay(void **state)
{
    fixture *f = *state;
    const double hot[EXPERTS] = {40, 10, 10, 10, 40, 10, 10, 10, 40, 10, 10, 10};
    assert_ok(eplb_load_set_row(f->load, 0, 0, hot, NULL), NULL);
    eplb_placement *current = placement_with_rows(f->cluster, f->row, 1, EXPERTS);
    assert_ok(eplb_cluster_set_alive(f->cluster, 3, 0, NULL), NULL);
    eplb_plan *plan = rebalance_of(f->load, f->cluster, current, NULL, &f->options);
    eplb_rebalance_layer layer = rebalance_layer_of(plan, 0);
    assert_int_equal(layer.copies_required, 2);
    assert_true(layer.required_imbalance > 1.3);
    assert_true(layer_of(plan, 0).imbalance_after < layer.required_imbalance - 0.1);
    assert_true(info_of(plan).copies > 2);
    int32_t count;
    eplb_curve_point *points = curve_of(plan, 0, &count);
    assert_int_equal(points[0].copies, 2);
    assert_close(points[0].imbalance, layer.required_imbalance, 1e-9);
    free(points);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

/* From where two copies are required the cheapest way on gains too little, and is not taken; once
 * they are there another way is the cheapest. */
static const int32_t lacking[12] = {-1, -1, 5, 1, 3, 4, 0, 2, 5, 1, 3, 4};
static const double skewed[6] = {25, 83, 111, 1, 519, 2};

static eplb_status rebalance_lacking(const eplb_hooks *hooks, void *context)
{
    fixture *f = context;
    eplb_load *load = load_of(skewed, 1, 6);
    eplb_cluster *cluster = cluster_of(4, 3, 0);
    eplb_placement *current = placement_with_rows(cluster, lacking, 1, 6);
    f->options.copy_price = 0.02;
    f->options.tolerance = 0.0;
    f->options.min_gain = 0.2;
    f->options.beam = 1;
    eplb_plan *plan;
    eplb_status status =
        eplb_rebalance_create(&plan, hooks, load, cluster, current, NULL, &f->options, NULL);
    if (hooks == NULL) { /* what is asked of the plan takes memory, too */
        eplb_rebalance_layer layer = rebalance_layer_of(plan, 0);
        assert_int_equal(layer.copies_required, 2);
        assert_true(layer_of(plan, 0).imbalance_after < layer.required_imbalance - 0.2);
        (void)assert_keeps_promises(plan, load, current, EPLB_OBJECTIVE_MEAN_OF_MAX);
        assert_int_equal(copies_again(plan, load, cluster, NULL, &f->options), 0);
    }
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return status;
}

static void a_mended_layer_is_left_only_where_the_next_call_leaves_it(void **state)
{
    assert_int_equal(rebalance_lacking(NULL, *state), EPLB_OK);
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    test_each_failing_allocation(rebalance_lacking, *state);
}

static void a_layer_without_load_is_mended_too(void **state)
{
    fixture *f = *state;
    const double none[EXPERTS] = {0.0};
    assert_ok(eplb_load_set_row(f->load, 0, 0, none, NULL), NULL);
    f->row[1] = 2;
    f->row[6] = -1;
    eplb_plan *plan = mended(f, 2);
    assert_int_equal(layer_of(plan, 0).scored, 0);
    eplb_plan_destroy(&plan);
}

static void a_pin_is_copied_where_it_is_missing(void **state)
{
    fixture *f = *state;
    const eplb_pin pin = {.layer = 0, .expert = 5, .gpu = 2};
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.pins = &pin;
    planning.pin_count = 1;
    eplb_placement *current = placement_with_rows(f->cluster, f->row, 1, EXPERTS);
    eplb_plan *plan = rebalance_of(f->load, f->cluster, current, &planning, &f->options);
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), 0);
    bool is_there = false;
    for (int32_t s = 2 * SLOTS_PER_GPU; s < 3 * SLOTS_PER_GPU; s++) {
        is_there = is_there || row[s] == 5;
    }
    assert_true(is_there);
    assert_int_equal(rebalance_layer_of(plan, 0).copies_required, 1);
    assert_true(info_of(plan).copies >= 1 && info_of(plan).copies <= 4);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void surplus_replicas_give_way_to_others(void **state)
{
    fixture *f = *state;
    static const int32_t surplus[SLOTS] = {0, 4, 8, 1, 0, 5, 9, 2, 0, 6, 10, 3, 0, 7, 11, 1};
    eplb_placement *current = placement_with_rows(f->cluster, surplus, 1, EXPERTS);
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.max_replicas = 2;
    eplb_plan *plan = rebalance_of(f->load, f->cluster, current, &planning, &f->options);
    eplb_rebalance_layer layer = rebalance_layer_of(plan, 0);
    assert_true(replicas(plan, 0) <= 2);
    assert_int_equal(layer.copies_required, 2);
    assert_int_equal(layer.from_fresh, 0);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

/* The hole is on the one GPU that has expert 2, and no other replica is one too many. */
static void a_placement_that_cannot_be_mended_gives_way_to_a_plan_from_nothing(void **state)
{
    fixture *f = *state;
    static const double three[3] = {3, 2, 1};
    static const int32_t stuck[6] = {0, 1, 0, 1, 2, -1};
    eplb_load *load = load_of(three, 1, 3);
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    eplb_placement *current = placement_with_rows(cluster, stuck, 1, 3);
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.min_replicas = 2;
    const double targets[] = {2.0, 1.1};
    for (int i = 0; i < 2; i++) {
        f->options.target_imbalance = targets[i];
        eplb_plan *plan = rebalance_of(load, cluster, current, &planning, &f->options);
        eplb_rebalance_layer layer = rebalance_layer_of(plan, 0);
        assert_int_equal(layer.from_fresh, 1);
        assert_int_equal(layer.copies_required, info_of(plan).copies);
        assert_int_equal(layer.target_reached, i == 0);
        assert_close(layer_of(plan, 0).imbalance_after, 1.25, 1e-12);
        assert_close(layer.fresh_imbalance, 1.25, 1e-12);
        assert_close(layer.required_imbalance, 1.25, 1e-12);
        int32_t count;
        eplb_curve_point *points = curve_of(plan, 0, &count);
        assert_int_equal(count, 1);
        assert_close(points[0].imbalance, 1.25, 1e-12);
        free(points);
        eplb_plan_destroy(&plan);
    }
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void a_cluster_without_room_for_all_experts_is_refused(void **state)
{
    fixture *f = *state;
    eplb_placement *current = placement_with_rows(f->cluster, f->row, 1, EXPERTS);
    assert_ok(eplb_cluster_set_alive(f->cluster, 2, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(f->cluster, 3, 0, NULL), NULL);
    eplb_error error;
    eplb_plan *plan = NULL;
    assert_status(
        eplb_rebalance_create(&plan, NULL, f->load, f->cluster, current, NULL, NULL, &error),
        EPLB_ERROR_INFEASIBLE, &error);
    assert_null(plan);
    eplb_placement_destroy(&current);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(with_fixture(a_whole_placement_needs_no_copy),
          with_fixture(an_empty_slot_is_filled_with_one_copy),
          with_fixture(a_second_copy_on_a_gpu_gives_way),
          with_fixture(a_missing_expert_is_copied_in),
          with_fixture(the_mean_before_is_over_the_layers_that_have_one),
          with_fixture(a_placement_without_anything_is_filled),
          with_fixture(experts_of_a_dead_gpu_live_on),
          with_fixture(a_gpu_that_comes_back_is_filled),
          with_fixture(further_slots_are_filled_and_the_rest_stays),
          with_fixture(an_expert_of_a_slot_that_is_no_more_gets_another),
          with_fixture(an_expert_that_loses_its_slot_stays_on_its_gpu_where_another_can_give_way),
          with_fixture(a_hole_is_left_to_an_expert_that_must_be_copied),
          with_fixture(a_copied_expert_does_not_take_the_place_of_one_that_could_stay),
          with_fixture(a_slot_that_becomes_free_gets_what_its_gpu_would_lose),
          with_fixture(required_copies_count_before_those_that_pay),
          with_fixture(a_mended_layer_is_left_only_where_the_next_call_leaves_it),
          with_fixture(a_failed_allocation_is_an_error_and_leaks_nothing),
          with_fixture(a_layer_without_load_is_mended_too),
          with_fixture(a_pin_is_copied_where_it_is_missing),
          with_fixture(surplus_replicas_give_way_to_others),
          with_fixture(a_placement_that_cannot_be_mended_gives_way_to_a_plan_from_nothing),
          with_fixture(a_cluster_without_room_for_all_experts_is_refused))
