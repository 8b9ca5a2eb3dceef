/* SPDX-License-Identifier: MIT */
/* Rebalances within limits, and what is refused. */

#define LAYERS 5
#define SEED 2
#include "rebalance_fixture.h"

/* Pairs that one GPU of a layer gets. */
static int32_t incoming(const fixture *f, const eplb_plan *plan, int32_t layer, int32_t gpu)
{
    const int32_t *before = eplb_placement_row(f->current, layer) + gpu * SLOTS_PER_GPU;
    const int32_t *after =
        eplb_placement_row(eplb_plan_placement(plan), layer) + gpu * SLOTS_PER_GPU;
    int32_t copies = 0;
    for (int32_t s = 0; s < SLOTS_PER_GPU; s++) {
        bool is_new = true;
        for (int32_t t = 0; t < SLOTS_PER_GPU; t++) {
            is_new = is_new && before[t] != after[s];
        }
        copies += is_new;
    }
    return copies;
}

static void more_copies_in_all_gain_more(void **state)
{
    fixture *f = *state;
    double before = INFINITY;
    for (int32_t most = 0; most <= 12; most += 3) {
        f->options.max_copies = most;
        eplb_plan *plan = rebalanced(f);
        assert_true(info_of(plan).copies <= most);
        assert_true(info_of(plan).imbalance_after_mean < before);
        before = info_of(plan).imbalance_after_mean;
        eplb_plan_destroy(&plan);
    }
}

static void no_copies_in_all_changes_nothing(void **state)
{
    fixture *f = *state;
    f->options.max_copies = 0;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(info_of(plan).copies, 0);
    assert_true(info_of(plan).imbalance_after_mean == info_of(plan).imbalance_before_mean);
    assert_int_equal(info_of(plan).stop, EPLB_STOP_COPIES);
    eplb_plan_destroy(&plan);
}

/* Only layer 3 is out of balance. */
static void copies_in_all_go_where_they_gain_most(void **state)
{
    fixture *f = *state;
    double even[EXPERTS];
    for (int32_t e = 0; e < EXPERTS; e++) {
        even[e] = e < SLOTS - EXPERTS ? 20.0 : 10.0;
    }
    for (int32_t l = 0; l < LAYERS; l++) {
        if (l != 3) {
            assert_ok(eplb_load_set_row(f->load, 0, l, even, NULL), NULL);
        }
    }
    f->options.max_copies = 4;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(info_of(plan).copies, layer_of(plan, 3).copies);
    assert_true(layer_of(plan, 3).copies > 0);
    eplb_plan_destroy(&plan);
}

static void copies_of_a_layer_are_limited(void **state)
{
    fixture *f = *state;
    for (int32_t most = 0; most <= 4; most++) {
        f->options.max_copies_per_layer = most;
        eplb_plan *plan = rebalanced(f);
        for (int32_t l = 0; l < LAYERS; l++) {
            assert_true(layer_of(plan, l).copies <= most);
        }
        assert_true(most == 0 || info_of(plan).copies > 0);
        eplb_plan_destroy(&plan);
    }
}

static void copies_into_a_gpu_are_limited(void **state)
{
    fixture *f = *state;
    f->options.copy_price = 0.0;
    for (int32_t most = 0; most <= 2; most++) {
        f->options.max_copies_per_gpu = most;
        eplb_plan *plan = rebalanced(f);
        for (int32_t l = 0; l < LAYERS; l++) {
            for (int32_t g = 0; g < GPUS; g++) {
                assert_true(incoming(f, plan, l, g) <= most);
            }
        }
        assert_true(most == 0 || info_of(plan).copies > 0);
        eplb_plan_destroy(&plan);
    }
}

/* Without redundant slots copies come in pairs: replicas change places. */
static void an_odd_limit_of_a_layer_is_kept_where_copies_come_in_pairs(void **state)
{
    fixture *f = *state;
    static const double loads[] = {4.0, 3.0, 1.0, 2.0};
    const int32_t row[] = {0, 1, 2, 3};
    eplb_load *load = load_of(loads, 1, 4);
    eplb_cluster *cluster = cluster_of(2, 2, 0);
    eplb_placement *current = placement_with_rows(cluster, row, 1, 4);
    for (int32_t most = 1; most <= 3; most += 2) {
        f->options.max_copies_per_layer = most;
        eplb_plan *plan = rebalance_of(load, cluster, current, NULL, &f->options);
        assert_int_equal(info_of(plan).copies, most - 1);
        eplb_plan_destroy(&plan);
    }
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void limits_hold_with_a_target_that_needs_more(void **state)
{
    fixture *f = *state;
    f->options.target_imbalance = 1.0;
    f->options.max_copies_per_layer = 2;
    f->options.max_copies_per_gpu = 1;
    f->options.max_copies = 7;
    eplb_plan *plan = rebalanced(f);
    assert_true(info_of(plan).copies <= 7);
    assert_int_equal(rebalance_info_of(plan).target_reached, 0);
    assert_int_equal(rebalance_info_of(plan).layers_missed, LAYERS);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_true(layer_of(plan, l).copies <= 2);
        for (int32_t g = 0; g < GPUS; g++) {
            assert_true(incoming(f, plan, l, g) <= 1);
        }
    }
    eplb_plan_destroy(&plan);
}

/* GPU 5 is dead: its experts are copied whatever the limits say, and nothing else. */
static void limits_do_not_keep_required_copies_away(void **state)
{
    fixture *f = *state;
    assert_ok(eplb_cluster_set_alive(f->cluster, GPUS - 1, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(f->cluster, 0, SLOTS_PER_GPU + 2, NULL), NULL);
    f->options.max_copies = 0;
    f->options.max_copies_per_layer = 0;
    f->options.max_copies_per_gpu = 0;
    eplb_plan *plan = rebalanced(f);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_true(rebalance_layer_of(plan, l).copies_required > 0);
        assert_int_equal(layer_of(plan, l).copies, rebalance_layer_of(plan, l).copies_required);
    }
    eplb_plan_destroy(&plan);
}

/* GPUs of five slots have three now. Mending alone copies an expert that the search finds room for
 * where it was. */
static void no_more_copies_are_said_to_be_required_than_are_made(void **state)
{
    fixture *f = *state;
    static const double loads[] = {4.0, 5.0, 6.0, 2.0, 2.0, 8.0, 2.0, 1.0, 9.0};
    const int32_t row[] = {4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0};
    eplb_load *load = load_of(loads, 1, 9);
    eplb_cluster *cluster = cluster_of(3, 3, 0);
    eplb_cluster *before = cluster_of(3, 5, 0);
    eplb_placement *current = placement_with_rows(before, row, 1, 9);
    eplb_plan *plan = rebalance_of(load, cluster, current, NULL, &f->options);
    assert_int_equal(info_of(plan).copies, 0);
    assert_int_equal(rebalance_layer_of(plan, 0).copies_required, 0);
    assert_true(rebalance_layer_of(plan, 0).required_imbalance ==
                layer_of(plan, 0).imbalance_after);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&before);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* GPUs of four slots have three now, and the plan from nothing needs no copy at all. */
static void a_curve_begins_with_the_copies_that_are_required(void **state)
{
    fixture *f = *state;
    static const double loads[] = {3.0, 5.0, 8.0, 2.0, 7.0};
    const int32_t row[] = {0, 1, 2, 3, 4, 0, 1, 2};
    eplb_load *load = load_of(loads, 1, 5);
    eplb_cluster *cluster = cluster_of(2, 3, 0);
    eplb_cluster *before = cluster_of(2, 4, 0);
    eplb_placement *current = placement_with_rows(before, row, 1, 5);
    f->options.max_copies_per_layer = 1;
    eplb_plan *plan = rebalance_of(load, cluster, current, NULL, &f->options);
    int32_t count;
    eplb_curve_point *points = curve_of(plan, 0, &count);
    assert_int_equal(points[0].copies, rebalance_layer_of(plan, 0).copies_required);
    assert_true(points[0].imbalance <= rebalance_layer_of(plan, 0).required_imbalance + 1e-9);
    free(points);
    eplb_plan_destroy(&plan);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&before);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

static void layers_that_would_gain_less_than_asked_stay(void **state)
{
    fixture *f = *state;
    eplb_plan *all = rebalanced(f);
    double gains[LAYERS];
    double least = INFINITY;
    for (int32_t l = 0; l < LAYERS; l++) {
        gains[l] = layer_of(all, l).imbalance_before - layer_of(all, l).imbalance_after;
        least = gains[l] < least ? gains[l] : least;
    }
    eplb_plan_destroy(&all);
    f->options.min_gain = least * 1.001;
    eplb_plan *plan = rebalanced(f);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_int_equal(layer_of(plan, l).copies > 0, gains[l] >= f->options.min_gain);
    }
    eplb_plan_destroy(&plan);
    f->options.min_gain = 100.0;
    f->options.copy_price = 0.0;
    f->options.tolerance = 0.0;
    plan = rebalanced(f);
    assert_int_equal(info_of(plan).copies, 0);
    for (int32_t l = 0; l < LAYERS; l++) { /* though the plan from nothing is better */
        assert_int_equal(rebalance_layer_of(plan, l).from_fresh, 0);
    }
    eplb_plan_destroy(&plan);
}

/* A target is no reason to copy for little. */
static void layers_that_would_gain_less_than_asked_miss_a_target(void **state)
{
    fixture *f = *state;
    f->options.target_imbalance = 1.1;
    eplb_plan *all = rebalanced(f);
    double gains[LAYERS];
    double most = 0.0;
    for (int32_t l = 0; l < LAYERS; l++) {
        gains[l] = layer_of(all, l).imbalance_before - layer_of(all, l).imbalance_after;
        most = fmax(most, gains[l]);
    }
    eplb_plan_destroy(&all);
    f->options.min_gain = most * 0.999;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(rebalance_info_of(plan).layers_missed, LAYERS - 1);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_int_equal(layer_of(plan, l).copies > 0, gains[l] >= f->options.min_gain);
    }
    eplb_plan_destroy(&plan);
}

static void a_higher_price_buys_fewer_copies(void **state)
{
    fixture *f = *state;
    static const double prices[] = {0.0, 0.01, 0.05, 10.0};
    int64_t before = INT64_MAX;
    for (size_t i = 0; i < sizeof(prices) / sizeof(prices[0]); i++) {
        f->options.copy_price = prices[i];
        eplb_plan *plan = rebalanced(f);
        assert_true(info_of(plan).copies < before);
        before = info_of(plan).copies;
        for (int32_t l = 0; l < LAYERS; l++) {
            eplb_plan_layer layer = layer_of(plan, l);
            double cost = layer.imbalance_after + prices[i] * (double)layer.copies;
            assert_true(cost <= layer.imbalance_before * (1.0 + 1e-9));
        }
        eplb_plan_destroy(&plan);
    }
    assert_int_equal(before, 0);
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
    assert_true(done >= calls->last_done);
    calls->last_done = done;
    calls->calls++;
    return calls->calls == calls->stop_after;
}

static void progress_ends_with_all_layers(void **state)
{
    fixture *f = *state;
    f->planning.progress = count_calls;
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        progress_calls calls = {0};
        f->planning.threads = threads;
        f->planning.progress_context = &calls;
        eplb_plan *plan = rebalanced(f);
        assert_true(calls.calls >= (threads == 1 ? LAYERS : 1));
        assert_int_equal(calls.last_done, LAYERS);
        eplb_plan_destroy(&plan);
    }
}

/* Also where limits in all need a second look at the layers. */
static void progress_never_goes_back(void **state)
{
    fixture *f = *state;
    progress_calls calls = {0};
    f->planning.progress = count_calls;
    f->planning.progress_context = &calls;
    f->options.max_copies = 3;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(calls.last_done, LAYERS);
    eplb_plan_destroy(&plan);
}

static void a_cancelled_rebalance_is_valid_and_says_so(void **state)
{
    fixture *f = *state;
    progress_calls calls = {.stop_after = 1};
    f->planning.progress = count_calls;
    f->planning.progress_context = &calls;
    f->options.target_imbalance = 1.0;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(info_of(plan).valid, 1);
    assert_int_equal(info_of(plan).stop, EPLB_STOP_CANCELLED);
    assert_int_equal(layer_of(plan, LAYERS - 1).stop, EPLB_STOP_CANCELLED);
    eplb_plan_destroy(&plan);
}

static eplb_status count_layer(void *context, const eplb_refine_task *task,
                               eplb_refine_result *result, eplb_error *error)
{
    (void)task;
    (void)result;
    (void)error;
    ++*(int32_t *)context;
    return EPLB_OK;
}

static void cancelling_stops_the_plan_from_nothing_too(void **state)
{
    fixture *f = *state;
    int32_t refined = 0;
    const eplb_refiner refiner = {
        .struct_size = sizeof(refiner), .refine = count_layer, .context = &refined};
    progress_calls calls = {.stop_after = 1};
    f->planning.refiner = &refiner;
    f->planning.progress = count_calls;
    f->planning.progress_context = &calls;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(refined, 0);
    assert_int_equal(info_of(plan).stop, EPLB_STOP_CANCELLED);
    assert_int_equal(calls.last_done, LAYERS);
    eplb_plan_destroy(&plan);
}

static void expect_failure(const fixture *f, eplb_status expected, const char *part)
{
    eplb_error error;
    eplb_plan *plan = (eplb_plan *)&error;
    assert_status(eplb_rebalance_create(&plan, NULL, f->load, f->cluster, f->current, &f->planning,
                                        &f->options, &error),
                  expected, &error);
    assert_null(plan);
    assert_contains(error.message, part);
}

static void options_out_of_range_are_refused(void **state)
{
    fixture *f = *state;
#define refuse(field, wrong, text)                                                                 \
    do {                                                                                           \
        f->options = rebalance_defaults();                                                         \
        f->options.field = (wrong);                                                                \
        expect_failure(f, EPLB_ERROR_ARGUMENT, text);                                              \
    } while (0)
    refuse(beam, 257, "beam 257");
    refuse(beam, -1, "beam -1");
    refuse(target_imbalance, 0.99, "target_imbalance 0.99");
    refuse(target_imbalance, (double)NAN, "target_imbalance nan");
    refuse(max_copies, -2, "max_copies -2");
    refuse(max_copies_per_layer, -2, "max_copies_per_layer -2");
    refuse(max_copies_per_gpu, -2, "max_copies_per_gpu -2");
    refuse(copy_price, -0.5, "copy_price -0.5");
    refuse(min_gain, (double)INFINITY, "min_gain inf");
    refuse(tolerance, -1.0, "tolerance -1");
    refuse(struct_size, 0, "struct_size");
#undef refuse
}

static void plans_that_know_more_than_balance_are_refused(void **state)
{
    fixture *f = *state;
    f->planning.node_cost = 0.5;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "node_cost");
    eplb_plan_options_init(&f->planning);
    f->planning.spread_nodes = 1;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "spread_nodes");
    eplb_plan_options_init(&f->planning);
    f->planning.algorithm = EPLB_ALGORITHM_EPLB;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "algorithm eplb");
}

static void groups_are_refused(void **state)
{
    fixture *f = *state;
    eplb_cluster_destroy(&f->cluster);
    f->cluster = cluster_of(GPUS, SLOTS_PER_GPU, 3);
    f->planning.groups = 2;
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "groups");
}

static void a_placement_of_another_shape_is_refused(void **state)
{
    fixture *f = *state;
    eplb_placement_destroy(&f->current);
    f->current = spread_of(f->cluster, LAYERS - 1, EXPERTS);
    expect_failure(f, EPLB_ERROR_ARGUMENT, "4 layers x 24 experts on 6 GPUs, expected 5 x 24 on 6");
    eplb_cluster *other = cluster_of(GPUS + 1, SLOTS_PER_GPU, 0);
    eplb_placement_destroy(&f->current);
    f->current = spread_of(other, LAYERS, EXPERTS);
    expect_failure(f, EPLB_ERROR_ARGUMENT, "on 7 GPUs");
    eplb_cluster_destroy(&other);
}

static void closed_slots_are_refused(void **state)
{
    fixture *f = *state;
    const int32_t slots[GPUS] = {5, 5, 5, 5, 5, 4};
    assert_ok(eplb_placement_set_layer_slots(f->current, 1, slots, NULL), NULL);
    expect_failure(f, EPLB_ERROR_UNSUPPORTED, "different slots");
}

static void missing_arguments_are_refused(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_plan *plan;
    assert_status(
        eplb_rebalance_create(NULL, NULL, f->load, f->cluster, f->current, NULL, NULL, &error),
        EPLB_ERROR_ARGUMENT, &error);
    assert_status(
        eplb_rebalance_create(&plan, NULL, NULL, f->cluster, f->current, NULL, NULL, &error),
        EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_rebalance_create(&plan, NULL, f->load, NULL, f->current, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_rebalance_create(&plan, NULL, f->load, f->cluster, NULL, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_rebalance_options_init(NULL);
}

static void results_of_other_plans_or_layers_are_refused(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_rebalance_info info = {.struct_size = sizeof(info)};
    eplb_rebalance_layer layer = {.struct_size = sizeof(layer)};
    int32_t count;
    eplb_plan *plan = plan_of(f->load, f->cluster, NULL, NULL);
    assert_status(eplb_plan_get_rebalance(plan, &info, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_plan_get_rebalance_layer(plan, 0, &layer, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_plan_get_curve(plan, 0, NULL, 0, &count, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    eplb_plan_destroy(&plan);
    plan = rebalanced(f);
    assert_status(eplb_plan_get_rebalance_layer(plan, LAYERS, &layer, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_contains(error.message, "layer 5");
    assert_status(eplb_plan_get_curve(plan, -2, NULL, 0, &count, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_plan_get_curve(plan, 0, NULL, 3, &count, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_plan_get_curve(plan, 0, NULL, 0, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    info.struct_size = 0;
    assert_status(eplb_plan_get_rebalance(plan, &info, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_plan_destroy(&plan);
}

static void shorter_structs_of_an_older_caller_are_filled_as_far_as_they_go(void **state)
{
    fixture *f = *state;
    f->options.struct_size = offsetof(eplb_rebalance_options, max_copies);
    f->options.max_copies = -5;
    f->options.copy_price = -5.0;
    eplb_plan *plan = rebalanced(f);
    eplb_rebalance_info info = {.struct_size = offsetof(eplb_rebalance_info, layers_changed),
                                .layers_changed = 77};
    assert_ok(eplb_plan_get_rebalance(plan, &info, NULL), NULL);
    assert_int_equal(info.target_reached, -1);
    assert_int_equal(info.layers_changed, 77);
    assert_int_equal(info.struct_size, offsetof(eplb_rebalance_info, layers_changed));
    eplb_rebalance_layer layer = {.struct_size = offsetof(eplb_rebalance_layer, fresh_copies),
                                  .fresh_copies = 77};
    assert_ok(eplb_plan_get_rebalance_layer(plan, 0, &layer, NULL), NULL);
    assert_true(layer.required_imbalance > 1.0);
    assert_int_equal(layer.fresh_copies, 77);
    eplb_plan_destroy(&plan);
}

static eplb_status rebalance_with_all(const eplb_hooks *hooks, void *context)
{
    const fixture *f = context;
    eplb_plan *plan = NULL;
    eplb_status status = eplb_rebalance_create(&plan, hooks, f->load, f->cluster, f->current,
                                               &f->planning, &f->options, NULL);
    eplb_plan_destroy(&plan);
    return status;
}

/* Few layers, a low effort and dear copies: it runs once for each allocation. */
static void every_failing_allocation_is_an_error_without_a_leak(void **state)
{
    fixture *f = *state;
    const eplb_pin pin = {.layer = -1, .expert = 3, .gpu = 1};
    f->planning.pins = &pin;
    f->planning.pin_count = 1;
    f->planning.threads = 2;
    f->planning.effort = 1;
    f->options.max_copies = 1;
    eplb_placement_destroy(&f->current);
    f->current = spread_of(f->cluster, 2, EXPERTS);
    eplb_load_destroy(&f->load);
    f->load = skewed_load(1, 2, EXPERTS, 5);
    test_each_failing_allocation(rebalance_with_all, f);
    eplb_load_destroy(&f->load);
    f->load = skewed_load(3, 2, EXPERTS, 5);
    f->planning.pin_count = 0;
    f->options = rebalance_defaults();
    f->options.copy_price = 0.05;
    test_each_failing_allocation(rebalance_with_all, f);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(with_fixture(more_copies_in_all_gain_more),
          with_fixture(no_copies_in_all_changes_nothing),
          with_fixture(copies_in_all_go_where_they_gain_most),
          with_fixture(copies_of_a_layer_are_limited), with_fixture(copies_into_a_gpu_are_limited),
          with_fixture(an_odd_limit_of_a_layer_is_kept_where_copies_come_in_pairs),
          with_fixture(limits_hold_with_a_target_that_needs_more),
          with_fixture(limits_do_not_keep_required_copies_away),
          with_fixture(no_more_copies_are_said_to_be_required_than_are_made),
          with_fixture(a_curve_begins_with_the_copies_that_are_required),
          with_fixture(layers_that_would_gain_less_than_asked_stay),
          with_fixture(layers_that_would_gain_less_than_asked_miss_a_target),
          with_fixture(a_higher_price_buys_fewer_copies),
          with_fixture(progress_ends_with_all_layers), with_fixture(progress_never_goes_back),
          with_fixture(a_cancelled_rebalance_is_valid_and_says_so),
          with_fixture(cancelling_stops_the_plan_from_nothing_too),
          with_fixture(options_out_of_range_are_refused),
          with_fixture(plans_that_know_more_than_balance_are_refused),
          with_fixture(groups_are_refused), with_fixture(a_placement_of_another_shape_is_refused),
          with_fixture(closed_slots_are_refused), with_fixture(missing_arguments_are_refused),
          with_fixture(results_of_other_plans_or_layers_are_refused),
          with_fixture(shorter_structs_of_an_older_caller_are_filled_as_far_as_they_go),
          with_fixture(every_failing_allocation_is_an_error_without_a_leak))
