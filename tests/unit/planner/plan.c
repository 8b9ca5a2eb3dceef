/* SPDX-License-Identifier: MIT */
#include "planning.h"

#define LAYERS 3
#define EXPERTS 10
#define GPUS 4
#define SLOTS_PER_GPU 3
#define SLOTS (GPUS * SLOTS_PER_GPU)

/* Layer 1 has no load. */
static const double loads[LAYERS * EXPERTS] = {
    10, 20, 30, 40, 50, 60, 70, 80, 90, 100, /* */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,   /* */
    7,  1,  9,  2,  0,  3,  3,  88, 5,  41,
};

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_plan_options options;
} fixture;

static int setup(void **state)
{
    fixture *f = malloc(sizeof(*f));
    f->load = load_of(loads, LAYERS, EXPERTS);
    f->cluster = cluster_of(GPUS, SLOTS_PER_GPU, 2);
    eplb_plan_options_init(&f->options);
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

static void expect_failure(const fixture *f, const eplb_placement *current, eplb_status expected,
                           const char *part)
{
    eplb_error error;
    eplb_plan *plan = (eplb_plan *)&error;
    assert_status(eplb_plan_create(&plan, NULL, f->load, f->cluster, current, &f->options, &error),
                  expected, &error);
    assert_null(plan);
    assert_contains(error.message, part);
}

static void plan_is_valid_and_scored_as_its_placement_is(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, NULL);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
    double sum = 0.0;
    double worst = 0.0;
    for (int32_t l = 0; l < LAYERS; l += 2) {
        double imbalance;
        assert_ok(eplb_placement_imbalance(placement, l, loads + l * EXPERTS, &imbalance, NULL),
                  NULL);
        eplb_plan_layer layer = layer_of(plan, l);
        assert_int_equal(layer.scored, 1);
        assert_int_equal(layer.layer_id, l);
        assert_true(layer.imbalance_after == imbalance);
        assert_true(layer.lower_bound >= 1.0 && layer.lower_bound <= imbalance);
        sum += imbalance;
        worst = imbalance > worst ? imbalance : worst;
    }
    eplb_plan_info info = info_of(plan);
    assert_int_equal(info.layers, LAYERS);
    assert_int_equal(info.scored_layers, 2);
    assert_int_equal(info.valid, 1);
    assert_int_equal(info.has_current, 0);
    assert_close(info.imbalance_after_mean, sum / 2, 1e-15);
    assert_true(info.imbalance_after_worst == worst);
    eplb_plan_destroy(&plan);
    assert_null(plan);
}

/* vllm-project/vllm-ascend#12154, #16183: all-zero loads gave NaN and empty slots. */
static void layer_without_load_is_spread_and_not_scored(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, NULL);
    static const int32_t spread[SLOTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1};
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 1), spread, sizeof(spread));
    eplb_plan_layer layer = layer_of(plan, 1);
    assert_int_equal(layer.scored, 0);
    assert_true(layer.imbalance_after == 0.0 && layer.lower_bound == 0.0);
    eplb_plan_destroy(&plan);
}

static void load_of_zeros_alone_is_planned_without_nan(void **state)
{
    fixture *f = *state;
    static const double zeros[EXPERTS] = {0};
    eplb_load *load = load_of(zeros, 1, EXPERTS);
    eplb_plan *plan = plan_of(load, f->cluster, NULL, NULL);
    eplb_plan_info info = info_of(plan);
    assert_int_equal(info.scored_layers, 0);
    assert_true(info.imbalance_after_mean == 0.0 && info.imbalance_after_worst == 0.0);
    assert_int_equal(info.valid, 1);
    eplb_plan_destroy(&plan);
    eplb_load_destroy(&load);
}

static void layer_without_load_keeps_its_current_placement(void **state)
{
    fixture *f = *state;
    static const int32_t kept[SLOTS] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 9, 8};
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, f->cluster, LAYERS, EXPERTS, NULL), NULL);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_ok(eplb_placement_set_row(current, l, kept, NULL), NULL);
    }
    eplb_plan *plan = plan_of(f->load, f->cluster, current, NULL);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 1), kept, sizeof(kept));
    assert_int_equal(layer_of(plan, 1).copies, 0);
    /* The others are planned, and never for the worse. */
    for (int32_t l = 0; l < LAYERS; l += 2) {
        eplb_plan_layer layer = layer_of(plan, l);
        assert_true(layer.imbalance_before > 1.0);
        assert_true(layer.imbalance_after <= layer.imbalance_before);
        assert_true(layer.copies > 0);
    }
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void plan_of_own_result_moves_nothing(void **state)
{
    fixture *f = *state;
    eplb_plan *first = plan_of(f->load, f->cluster, NULL, NULL);
    for (int32_t effort = 1; effort <= 5; effort += 4) {
        f->options.effort = effort;
        eplb_plan *second = plan_of(f->load, f->cluster, eplb_plan_placement(first), &f->options);
        eplb_plan_info info = info_of(second);
        assert_int_equal(info.has_current, 1);
        assert_int_equal(info.copies, 0);
        assert_true(info.imbalance_after_mean == info.imbalance_before_mean);
        for (int32_t l = 0; l < LAYERS; l++) {
            assert_memory_equal(eplb_placement_row(eplb_plan_placement(first), l),
                                eplb_placement_row(eplb_plan_placement(second), l),
                                SLOTS * sizeof(int32_t));
        }
        eplb_plan_destroy(&second);
    }
    eplb_plan_destroy(&first);
}

/* A current placement: layers 0 and 2 full, layer 1 with the row given. */
static eplb_placement *current_with(const fixture *f, const int32_t *full, const int32_t *other)
{
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, f->cluster, LAYERS, EXPERTS, NULL), NULL);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_ok(eplb_placement_set_row(current, l, l == 1 ? other : full, NULL), NULL);
    }
    return current;
}

static void empty_slot_in_one_layer_is_no_reason_to_move_another(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, NULL);
    int32_t rows[2][SLOTS];
    memcpy(rows[0], eplb_placement_row(eplb_plan_placement(plan), 0), sizeof(rows[0]));
    static const int32_t with_hole[SLOTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, -1};
    eplb_placement *current = current_with(f, rows[0], with_hole);
    eplb_plan *again = plan_of(f->load, f->cluster, current, NULL);
    assert_int_equal(info_of(again).valid, 1);
    assert_int_equal(layer_of(again, 0).copies, 0);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(again), 0), rows[0],
                        sizeof(rows[0]));
    eplb_plan_destroy(&again);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void current_placement_at_its_bound_is_kept_and_optimal(void **state)
{
    fixture *f = *state;
    double equal[EXPERTS];
    static const int32_t balanced[SLOTS] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 1};
    for (int32_t e = 0; e < EXPERTS; e++) {
        equal[e] = e < 2 ? 2.0 : 1.0; /* experts 0 and 1 have two replicas */
    }
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_ok(eplb_load_set_row(f->load, 0, l, equal, NULL), NULL);
    }
    f->options.effort = 1;
    eplb_placement *current = current_with(f, balanced, balanced);
    eplb_plan *plan = plan_of(f->load, f->cluster, current, &f->options);
    assert_int_equal(info_of(plan).copies, 0);
    assert_int_equal(info_of(plan).stop, EPLB_STOP_OPTIMAL);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void dead_gpu_gets_nothing_and_the_others_everything(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_slots(f->cluster, 1, 4, NULL), NULL);
    assert_ok(eplb_cluster_set_alive(f->cluster, 2, 0, NULL), NULL);
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, NULL);
    const eplb_placement *placement = eplb_plan_placement(plan);
    assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int32_t s = 7; s < 10; s++) {
            assert_int_equal(eplb_placement_row(placement, l)[s], -1);
        }
    }
    eplb_plan_destroy(&plan);
}

/* vllm-project/vllm#39942: a rank dies under a placement that counted on it. */
static void current_placement_may_have_a_gpu_that_died_since(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_slots(f->cluster, 0, 5, NULL), NULL);
    eplb_plan *before = plan_of(f->load, f->cluster, NULL, NULL);
    assert_ok(eplb_cluster_set_alive(f->cluster, 3, 0, NULL), NULL);
    eplb_plan *after = plan_of(f->load, f->cluster, eplb_plan_placement(before), NULL);
    assert_ok(eplb_placement_validate(eplb_plan_placement(after), 0, NULL), NULL);
    assert_true(info_of(after).copies > 0);
    eplb_plan_destroy(&after);
    eplb_plan_destroy(&before);
}

static void slots_that_cannot_hold_the_experts_are_refused(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_alive(f->cluster, 0, 0, NULL), NULL);
    expect_failure(f, NULL, EPLB_ERROR_INFEASIBLE, "9 slots on 3 live GPUs do not hold 10 experts");
    for (int32_t g = 0; g < GPUS; g++) {
        assert_ok(eplb_cluster_set_alive(f->cluster, g, 0, NULL), NULL);
    }
    expect_failure(f, NULL, EPLB_ERROR_INFEASIBLE, "no live GPU");
    assert_ok(eplb_cluster_set_alive(f->cluster, 1, 1, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(f->cluster, 1, 11, NULL), NULL);
    expect_failure(f, NULL, EPLB_ERROR_INFEASIBLE, "11 slots for 10 different experts");
}

static void options_out_of_range_are_refused(void **state)
{
    fixture *f = *state;
    const eplb_plan_options defaults = f->options;
    f->options.effort = 0;
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "effort 0");
    f->options.effort = 10;
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "effort 10");
    f->options = defaults;
    f->options.threads = 0;
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "0 threads");
    f->options = defaults;
    f->options.algorithm = 7;
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "algorithm 7");
    f->options = defaults;
    f->options.groups = 0;
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "0 groups");
    f->options = defaults;
    f->options.objective = 3;
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "objective 3");
    f->options = (eplb_plan_options){.effort = 5, .threads = 1, .groups = 1};
    expect_failure(f, NULL, EPLB_ERROR_ARGUMENT, "struct_size");
}

static void current_placement_of_another_shape_is_refused(void **state)
{
    fixture *f = *state;
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, f->cluster, LAYERS, EXPERTS + 1, NULL), NULL);
    expect_failure(f, current, EPLB_ERROR_ARGUMENT, "11 experts");
    eplb_placement_destroy(&current);
    assert_ok(eplb_placement_create(&current, NULL, f->cluster, LAYERS + 2, EXPERTS, NULL), NULL);
    expect_failure(f, current, EPLB_ERROR_ARGUMENT, "5 layers");
    eplb_placement_destroy(&current);
}

static eplb_placement *current_of(const fixture *f, const int32_t *row)
{
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, f->cluster, LAYERS, EXPERTS, NULL), NULL);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_ok(eplb_placement_set_row(current, l, row, NULL), NULL);
    }
    return current;
}

static void invalid_current_placement_is_refused(void **state)
{
    fixture *f = *state;
    static const int32_t missing[SLOTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2};
    eplb_placement *current = current_of(f, missing);
    expect_failure(f, current, EPLB_ERROR_DATA, "current placement: layer 0: expert 9 has no");
    eplb_placement_destroy(&current);
}

/* vllm-project/vllm#18343: such maps are in force, and a plan leads away from them. */
static void second_copies_on_a_gpu_are_planned_away(void **state)
{
    fixture *f = *state;
    static const int32_t duplicate[SLOTS] = {0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 0};
    eplb_placement *current = current_of(f, duplicate);
    assert_status(eplb_placement_validate(current, 0, NULL), EPLB_ERROR_DATA, NULL);
    eplb_plan *plan = plan_of(f->load, f->cluster, current, NULL);
    assert_int_equal(info_of(plan).valid, 1);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_true(layer_of(plan, l).copies > 0);
        assert_true(!layer_of(plan, l).scored || layer_of(plan, l).imbalance_before >= 1.0);
    }
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
}

static void layer_ids_go_over_to_the_placement(void **state)
{
    fixture *f = *state;
    static const int32_t ids[LAYERS] = {3, 4, 7};
    assert_ok(eplb_load_set_layer_ids(f->load, ids, 9, NULL), NULL);
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, NULL);
    assert_memory_equal(eplb_placement_layer_ids(eplb_plan_placement(plan)), ids, sizeof(ids));
    assert_int_equal(eplb_placement_model_layers(eplb_plan_placement(plan)), 9);
    assert_int_equal(layer_of(plan, 2).layer_id, 7);
    eplb_plan_destroy(&plan);
}

/* The unit of the loads does not matter, not even where sums of them come near infinity. */
static void loads_of_any_magnitude_get_the_same_plan(void **state)
{
    fixture *f = *state;
    static const double units[] = {0x1p-1000, 0x1p1010};
    eplb_plan *expected = plan_of(f->load, f->cluster, NULL, NULL);
    for (size_t i = 0; i < 2; i++) {
        double scaled[LAYERS * EXPERTS];
        for (int32_t k = 0; k < LAYERS * EXPERTS; k++) {
            scaled[k] = loads[k] * units[i];
        }
        eplb_load *load = load_of(scaled, LAYERS, EXPERTS);
        eplb_plan *plan = plan_of(load, f->cluster, NULL, NULL);
        for (int32_t l = 0; l < LAYERS; l++) {
            assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), l),
                                eplb_placement_row(eplb_plan_placement(expected), l),
                                SLOTS * sizeof(int32_t));
            assert_true(layer_of(plan, l).imbalance_after == layer_of(expected, l).imbalance_after);
        }
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
    }
    eplb_plan_destroy(&expected);
}

/* Splitting cold experts balances equal loads: 3 whole ones and a fifth of another on each GPU. */
static void equal_loads_with_few_slots_a_gpu_are_balanced(void **state)
{
    (void)state;
    static const int32_t shapes[][2] = {{16, 5}, {256, 80}, {1024, 320}};
    for (size_t i = 0; i < 3; i++) {
        double equal[1024];
        for (int32_t e = 0; e < shapes[i][0]; e++) {
            equal[e] = 100.0;
        }
        eplb_load *load = load_of(equal, 1, shapes[i][0]);
        eplb_cluster *cluster = cluster_of(shapes[i][1], 4, 0);
        eplb_plan *plan = plan_of(load, cluster, NULL, NULL);
        assert_close(layer_of(plan, 0).imbalance_after, 1.0, 1e-12);
        assert_int_equal(info_of(plan).stop, EPLB_STOP_OPTIMAL);
        eplb_plan_destroy(&plan);
        eplb_cluster_destroy(&cluster);
        eplb_load_destroy(&load);
    }
}

typedef struct progress_calls {
    int32_t calls;
    int32_t last_done;
    int32_t stop_after; /* 0: never */
} progress_calls;

static int count_calls(void *context, int32_t done, int32_t layers)
{
    progress_calls *calls = context;
    assert_int_equal(layers, LAYERS);
    assert_true(done > calls->last_done);
    calls->last_done = done;
    calls->calls++;
    return calls->calls == calls->stop_after;
}

static void progress_ends_with_all_layers_on_any_number_of_threads(void **state)
{
    fixture *f = *state;
    f->options.threads = 4;
    f->options.progress = count_calls;
    for (int run = 0; run < 50; run++) {
        progress_calls calls = {0};
        f->options.progress_context = &calls;
        eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
        assert_int_equal(calls.last_done, LAYERS);
        eplb_plan_destroy(&plan);
    }
}

static void progress_is_told_of_every_layer(void **state)
{
    fixture *f = *state;
    progress_calls calls = {0};
    f->options.progress = count_calls;
    f->options.progress_context = &calls;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_int_equal(calls.calls, LAYERS);
    assert_int_equal(calls.last_done, LAYERS);
    eplb_plan_destroy(&plan);
}

static void cancelled_plan_is_valid_and_says_so(void **state)
{
    fixture *f = *state;
    progress_calls calls = {.stop_after = 1};
    f->options.progress = count_calls;
    f->options.progress_context = &calls;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_int_equal(info_of(plan).valid, 1);
    assert_int_equal(info_of(plan).stop, EPLB_STOP_CANCELLED);
    assert_int_equal(layer_of(plan, 2).stop, EPLB_STOP_CANCELLED);
    eplb_plan_destroy(&plan);
}

static void shorter_options_of_an_older_caller_get_defaults(void **state)
{
    fixture *f = *state;
    f->options.struct_size = offsetof(eplb_plan_options, threads);
    f->options.threads = -5;
    f->options.groups = -5;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, &f->options);
    eplb_plan_info info = {.struct_size = offsetof(eplb_plan_info, valid), .valid = 77};
    assert_ok(eplb_plan_get_info(plan, &info, NULL), NULL);
    assert_int_equal(info.layers, LAYERS);
    assert_int_equal(info.valid, 77);
    assert_int_equal(info.struct_size, offsetof(eplb_plan_info, valid));
    eplb_plan_destroy(&plan);
}

static void missing_arguments_are_refused(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_plan *plan;
    assert_status(eplb_plan_create(NULL, NULL, f->load, f->cluster, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_plan_create(&plan, NULL, NULL, f->cluster, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_plan_create(&plan, NULL, f->load, NULL, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    plan = plan_of(f->load, f->cluster, NULL, NULL);
    eplb_plan_layer layer = {.struct_size = sizeof(layer)};
    assert_status(eplb_plan_get_layer(plan, LAYERS, &layer, &error), EPLB_ERROR_ARGUMENT, &error);
    layer.struct_size = 0;
    assert_status(eplb_plan_get_layer(plan, 0, &layer, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_plan_get_info(plan, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(NULL);
}

/* A whole plan: load, cluster, current placement, several threads, both algorithms, repair. */
static eplb_status whole_plan(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_error error;
    eplb_load *load = NULL;
    eplb_cluster *cluster = NULL;
    eplb_plan *first = NULL;
    eplb_plan *second = NULL;
    eplb_placement *copy = NULL;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.threads = 2;
    eplb_status status = eplb_load_create(&load, hooks, 1, LAYERS, EXPERTS, &error);
    for (int32_t l = 0; l < LAYERS && status == EPLB_OK; l++) {
        status = eplb_load_set_row(load, 0, l, loads + l * EXPERTS, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_cluster_create(&cluster, hooks, GPUS, SLOTS_PER_GPU, 2, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_cluster_set_slots(cluster, 0, SLOTS_PER_GPU + 1, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_plan_create(&first, hooks, load, cluster, NULL, &options, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_plan_create(&second, hooks, load, cluster, eplb_plan_placement(first),
                                  &options, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_clone(&copy, hooks, eplb_plan_placement(second), &error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_repair(copy, load, NULL, &error);
    }
    double bound;
    if (status == EPLB_OK) {
        status = eplb_lower_bound(cluster, loads, EXPERTS, &bound, &error);
    }
    if (status == EPLB_ERROR_NOMEM) {
        assert_string_equal(error.message, "out of memory");
    }
    eplb_placement_destroy(&copy);
    eplb_plan_destroy(&second);
    eplb_plan_destroy(&first);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return status;
}

static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    (void)state;
    test_each_failing_allocation(whole_plan, NULL);
}

#define planned(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* 33 GPUs of two slots; the current placement pairs the two heavier experts, and is 1e-4 off. */
static void layer_that_is_kept_within_the_tolerance_is_not_called_optimal(void **state)
{
    (void)state;
    enum { MANY = 66 };
    double row[MANY];
    int32_t pairs[MANY];
    for (int32_t e = 0; e < MANY; e++) {
        row[e] = e < 2 ? 1.0 + 1e-4 : e < 4 ? 1.0 - 1e-4 : 1.0;
        pairs[e] = e;
    }
    eplb_load *load = load_of(row, 1, MANY);
    eplb_cluster *cluster = cluster_of(MANY / 2, 2, 0);
    eplb_placement *current;
    assert_ok(eplb_placement_create(&current, NULL, cluster, 1, MANY, NULL), NULL);
    assert_ok(eplb_placement_set_row(current, 0, pairs, NULL), NULL);
    eplb_plan *plan = plan_of(load, cluster, current, NULL);
    assert_int_equal(info_of(plan).copies, 0);
    assert_true(layer_of(plan, 0).imbalance_after > layer_of(plan, 0).lower_bound * (1.0 + 1e-5));
    assert_int_equal(layer_of(plan, 0).stop, EPLB_STOP_EFFORT);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

TEST_MAIN(cmocka_unit_test(layer_that_is_kept_within_the_tolerance_is_not_called_optimal),
          planned(plan_is_valid_and_scored_as_its_placement_is),
          planned(layer_without_load_is_spread_and_not_scored),
          planned(load_of_zeros_alone_is_planned_without_nan),
          planned(layer_without_load_keeps_its_current_placement),
          planned(plan_of_own_result_moves_nothing),
          planned(empty_slot_in_one_layer_is_no_reason_to_move_another),
          planned(current_placement_at_its_bound_is_kept_and_optimal),
          planned(progress_ends_with_all_layers_on_any_number_of_threads),
          planned(loads_of_any_magnitude_get_the_same_plan),
          cmocka_unit_test(equal_loads_with_few_slots_a_gpu_are_balanced),
          planned(dead_gpu_gets_nothing_and_the_others_everything),
          planned(current_placement_may_have_a_gpu_that_died_since),
          planned(slots_that_cannot_hold_the_experts_are_refused),
          planned(options_out_of_range_are_refused),
          planned(current_placement_of_another_shape_is_refused),
          planned(invalid_current_placement_is_refused),
          planned(second_copies_on_a_gpu_are_planned_away),
          planned(layer_ids_go_over_to_the_placement), planned(progress_is_told_of_every_layer),
          planned(cancelled_plan_is_valid_and_says_so),
          planned(shorter_options_of_an_older_caller_get_defaults),
          planned(missing_arguments_are_refused),
          cmocka_unit_test(every_failing_allocation_is_an_error_without_a_leak))
