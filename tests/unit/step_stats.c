/* SPDX-License-Identifier: MIT */
/* What steps look like under a placement: each number by hand. */
#include "step_stats.h"

/* A decode step of 8 experts on 8 GPUs: 128 assignments, 80 of them to expert 3. */
static const double decode_step[8] = {7, 7, 7, 80, 7, 7, 7, 6};

static void hot_expert_keeps_all_other_gpus_idle(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 8, 8, 1), NULL);
    add(stats, 0, 0, decode_step);
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_true(layer.assignments == 128.0);
    assert_true(layer.assignments / 8.0 == 16.0); /* the fair share */
    assert_int_equal(layer.hottest_experts[0], 3);
    assert_true(layer.hottest_ratios[0] == 5.0);
    assert_true(layer.imbalance_mean == 5.0);
    assert_close(layer.idle_share, 1.0 - 16.0 / 80.0, 1e-15);
    assert_close(layer.idle_others, 1.0 - 48.0 / 7.0 / 80.0, 1e-15);
    assert_int_equal(layer.impossible_steps, 0);
    eplb_step_stats_destroy(&stats);
}

/* 64 tokens that go to two experts each cannot send 80 to one of them. */
static void expert_with_more_tokens_than_the_step_is_impossible(void **state)
{
    (void)state;
    const struct {
        int32_t topk;
        int64_t impossible;
        double tokens;
    } cases[] = {{0, 0, 0.0}, {1, 0, 128.0}, {2, 1, 64.0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_step_stats_options options = with_topk(cases[i].topk);
        eplb_step_stats *stats = stats_of(spread(1, 8, 8, 1), &options);
        add(stats, 0, 0, decode_step);
        add(stats, 1, 0, (double[]){64, 0, 0, 64, 0, 0, 0, 0});
        eplb_layer_stats layer = layer_of(stats, 0);
        assert_int_equal(layer.impossible_steps, cases[i].impossible);
        assert_true(layer.tokens == cases[i].tokens);
        eplb_step_stats_destroy(&stats);
    }
}

/* What spare slots do for it: with two, one GPU more has three replicas of the hot expert; with
 * four, five GPUs have nothing else and the other experts fill three. */
static void spare_slots_share_the_hot_expert(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(8, 1, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 0, 2, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 2, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, 8);
    set_row(placement, 0, (int32_t[]){0, 1, 2, 4, 3, 3, 3, 5, 6, 7});
    eplb_step_stats *stats = stats_of(placement, NULL);
    add(stats, 0, 0, decode_step);
    assert_close(layer_of(stats, 0).imbalance_mean, 80.0 / 3.0 / 16.0, 1e-12);
    eplb_step_stats_destroy(&stats);

    cluster = make_cluster(8, 1, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 0, 2, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 2, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 2, 3, NULL), NULL);
    placement = make_placement(cluster, 1, 8);
    set_row(placement, 0, (int32_t[]){0, 1, 2, 4, 5, 6, 7, 3, 3, 3, 3, 3});
    stats = stats_of(placement, NULL);
    const double even[8] = {8, 8, 8, 80, 8, 5, 5, 6};
    add(stats, 0, 0, even);
    assert_true(layer_of(stats, 0).imbalance_mean == 1.0);
    eplb_step_stats_destroy(&stats);
}

/* vllm-project/vllm#36304, #39178, #51784, #51813: averaged over the wrong axis. */
static void vllm_sums_over_layers_before_it_divides(void **state)
{
    (void)state;
    const struct {
        double rows[2][2];
        double balancedness;
    } cases[] = {{{{100, 200}, {100, 200}}, 0.75},
                 {{{1, 3}, {3, 1}}, 4.0 / 6.0},
                 {{{0, 0}, {3, 1}}, 2.0 / 3.0},
                 {{{10, 10}, {0, 60}}, 40.0 / 70.0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_step_stats *stats = stats_of(spread(2, 2, 2, 1), NULL);
        add(stats, 7, 0, cases[i].rows[0]);
        add(stats, 7, 1, cases[i].rows[1]);
        assert_close(info_of(stats).vllm_balancedness, cases[i].balancedness, 1e-15);
        eplb_step_stats_destroy(&stats);
    }
}

static void vllm_metric_is_the_mean_over_steps(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 2, 2, 1), NULL);
    add(stats, 0, 0, (double[]){0, 0}); /* warm-up: no step */
    add(stats, 0, 1, (double[]){0, 0});
    add(stats, 1, 0, (double[]){100, 200});
    add(stats, 1, 1, (double[]){100, 200});
    add(stats, 2, 1, (double[]){5, 5});
    assert_close(info_of(stats).vllm_balancedness, (0.75 + 1.0) / 2.0, 1e-15);
    add(stats, 2, 0, (double[]){0, 10});
    assert_close(info_of(stats).vllm_balancedness, (0.75 + 10.0 / 15.0) / 2.0, 1e-15);
    eplb_step_stats_destroy(&stats);
}

static void vllm_metric_is_unknown_when_layers_come_one_by_one(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 2, 2, 1), NULL);
    for (int32_t l = 0; l < 2; l++) {
        for (int64_t step = 0; step < 3; step++) {
            add(stats, step, l, (double[]){1, 3});
        }
    }
    eplb_step_stats_info info = info_of(stats);
    assert_true(info.vllm_balancedness == 0.0);
    assert_true(info.imbalance_mean == 1.5);
    assert_int_equal(info.rows, 6);
    eplb_step_stats_destroy(&stats);
}

static void sglang_and_tensorrt_average_rows(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 2, 2, 1), NULL);
    add(stats, 0, 0, (double[]){100, 200});
    add(stats, 0, 1, (double[]){1, 3});
    add(stats, 1, 0, (double[]){50, 50});
    double of_layer_0 = ((150 + 1e-5) / (200 + 1e-5) + 1.0) / 2.0;
    double of_layer_1 = (2 + 1e-5) / (3 + 1e-5);
    assert_close(layer_of(stats, 0).sglang_utilisation, of_layer_0, 1e-14);
    assert_close(layer_of(stats, 1).sglang_utilisation, of_layer_1, 1e-14);
    assert_close(layer_of(stats, 0).trtllm_imbalance, (50.0 / 150.0 + 0.0) / 2.0, 1e-15);
    eplb_step_stats_info info = info_of(stats);
    assert_close(info.sglang_utilisation, (2.0 * of_layer_0 + of_layer_1) / 3.0, 1e-14);
    assert_close(info.trtllm_imbalance, (1.0 / 3.0 + 0.5 + 0.0) / 3.0, 1e-15);
    assert_close(info.imbalance_mean, ((4.0 / 3.0 + 1.0) / 2.0 + 1.5) / 2.0, 1e-15);
    assert_true(info.imbalance_worst == 1.5);
    eplb_step_stats_destroy(&stats);
}

/* vllm-project/vllm-ascend#12154, #16183: an all-zero load gives no number, and above all no NaN.
 */
static void zero_rows_are_skipped(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 4, 2, 2), NULL);
    add(stats, 0, 0, (double[]){0, 0, 0, 0});
    add(stats, 1, 0, (double[]){0, 0, 0, 0});
    add(stats, 1, 1, (double[]){3, 1, 1, 1});
    add(stats, 2, 1, (double[]){0, 0, 0, 0});
    eplb_layer_stats zero = {.struct_size = sizeof(zero), .skipped = 2};
    for (int32_t i = 0; i < EPLB_HOTTEST_EXPERTS; i++) {
        zero.hottest_experts[i] = -1;
    }
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_memory_equal(&layer, &zero, sizeof(layer));
    layer = layer_of(stats, 1);
    assert_int_equal(layer.steps, 1);
    assert_int_equal(layer.skipped, 1);
    assert_true(layer.assignments == 6.0);
    assert_close(layer.imbalance_mean, 4.0 / 3.0, 1e-15);
    eplb_step_stats_info info = info_of(stats);
    assert_int_equal(info.layers, 2);
    assert_int_equal(info.scored_layers, 1);
    assert_int_equal(info.rows, 4);
    assert_int_equal(info.skipped, 3);
    assert_close(info.imbalance_mean, 4.0 / 3.0, 1e-15);
    eplb_step_stats_destroy(&stats);
}

static void nothing_added_gives_zeros(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(3, 4, 2, 2), NULL);
    eplb_step_stats_info info = info_of(stats);
    const eplb_step_stats_info zero = {.struct_size = sizeof(zero), .layers = 3};
    assert_memory_equal(&info, &zero, sizeof(info));
    eplb_step_stats_destroy(&stats);
}

/* Imbalances 1, 1.01, ..., 1.99, in another order. */
static void percentiles_are_values_that_so_many_steps_keep(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    for (int32_t i = 0; i < 100; i++) {
        double busiest = 100.0 + i * 37 % 100;
        add(stats, i, 0, (double[]){200.0 - busiest, busiest});
    }
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_close(layer.imbalance_mean, 1.495, 1e-12);
    assert_true(layer.imbalance_worst == 1.99);
    assert_true(layer.imbalance_p50 <= 1.49 && layer.imbalance_p50 > 1.49 * 0.999);
    assert_true(layer.imbalance_p99 <= 1.98 && layer.imbalance_p99 > 1.98 * 0.999);
    eplb_step_stats_destroy(&stats);
}

/* With few tokens the imbalances are whole eighths: those come out as they are. */
static void short_fractions_are_exact_percentiles(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 8, 8, 1), NULL);
    add(stats, 0, 0, (double[]){17, 7, 8, 8, 8, 8, 8, 0});
    add(stats, 1, 0, (double[]){8, 8, 8, 8, 8, 8, 8, 8});
    add(stats, 2, 0, (double[]){64, 0, 0, 0, 0, 0, 0, 0});
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_true(layer.imbalance_p50 == 2.125);
    assert_true(layer.imbalance_p99 == 8.0);
    assert_true(layer.imbalance_worst == 8.0);
    eplb_step_stats_destroy(&stats);
}

/* GPU 0: experts 0 and 1, GPU 1: 0 and 2. Tiles of 8 rows. */
static void each_replica_pads_to_whole_tiles(void **state)
{
    (void)state;
    eplb_step_stats_options options = with_topk(0);
    options.tile = 8;
    eplb_placement *placement = make_placement(make_cluster(2, 2, 0), 1, 3);
    set_row(placement, 0, (int32_t[]){0, 1, 0, 2});
    eplb_step_stats *stats = stats_of(placement, &options);
    add(stats, 0, 0, (double[]){10, 1, 8}); /* rows 8 + 8, 8 + 8 of 19 */
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_close(layer.padded_worst_rank, 16.0 / 9.5, 1e-15);
    assert_close(layer.padded_ratio, 32.0 / 19.0, 1e-15);
    add(stats, 1, 0, (double[]){18, 0, 9}); /* rows 16 + 0, 16 + 16 of 27 */
    layer = layer_of(stats, 0);
    assert_close(layer.padded_worst_rank, (16.0 / 9.5 + 32.0 / 13.5) / 2.0, 1e-15);
    assert_close(layer.padded_ratio, (32.0 / 19.0 + 48.0 / 27.0) / 2.0, 1e-15);
    eplb_step_stats_destroy(&stats);
}

static void capacity_drops_what_exceeds_the_fair_share(void **state)
{
    (void)state;
    eplb_step_stats_options options = with_topk(0);
    options.capacity_factor = 1.5;
    eplb_step_stats *stats = stats_of(spread(1, 4, 2, 2), &options);
    add(stats, 0, 0, (double[]){25, 5, 5, 5}); /* room 15: 10 of 40 */
    assert_close(layer_of(stats, 0).dropped, 0.25, 1e-15);
    add(stats, 1, 0, (double[]){15, 15, 5, 5}); /* 0 of 40 */
    assert_close(layer_of(stats, 0).dropped, 0.125, 1e-15);
    eplb_step_stats_destroy(&stats);
}

static void touched_experts_are_counted_by_step(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 4, 2, 2), NULL);
    add(stats, 0, 0, (double[]){0, 0, 9, 0});
    add(stats, 1, 0, (double[]){1, 0, 9, 1});
    assert_true(layer_of(stats, 0).experts_touched == (0.25 + 0.75) / 2.0);
    eplb_step_stats_destroy(&stats);
}

static void hottest_experts_come_in_order(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 6, 2, 3), NULL);
    add(stats, 0, 0, (double[]){1, 4, 2, 4, 0, 9});
    add(stats, 1, 0, (double[]){1, 1, 2, 1, 0, 5});
    eplb_layer_stats layer = layer_of(stats, 0);
    static const int32_t experts[EPLB_HOTTEST_EXPERTS] = {5, 1, 3, 2};
    static const double tokens[EPLB_HOTTEST_EXPERTS] = {14, 5, 5, 4};
    for (int32_t i = 0; i < EPLB_HOTTEST_EXPERTS; i++) {
        assert_int_equal(layer.hottest_experts[i], experts[i]);
        assert_close(layer.hottest_ratios[i], tokens[i] / 5.0, 1e-15);
    }
    assert_true(eplb_step_stats_experts(stats, 0)[5] == 14.0);
    assert_true(eplb_step_stats_experts(stats, 1)[5] == 0.0);
    assert_null(eplb_step_stats_experts(stats, 2));
    assert_null(eplb_step_stats_experts(stats, -1));
    eplb_step_stats_destroy(&stats);
}

static void few_experts_leave_places_empty(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    add(stats, 0, 0, (double[]){0, 3});
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_int_equal(layer.hottest_experts[0], 1);
    assert_int_equal(layer.hottest_experts[1], 0);
    assert_int_equal(layer.hottest_experts[2], -1);
    assert_true(layer.hottest_ratios[1] == 0.0 && layer.hottest_ratios[2] == 0.0);
    eplb_step_stats_destroy(&stats);
}

/* Layers, experts, slots and GPUs all differ, so that no axis can stand for another. */
static void replicas_share_evenly_in_each_layer_by_its_own_map(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(4, 2, 0), 3, 5);
    set_row(placement, 0, (int32_t[]){0, 1, 0, 2, 0, 3, 0, 4});
    set_row(placement, 1, (int32_t[]){0, 1, 2, 3, 4, 1, 2, 3});
    set_row(placement, 2, (int32_t[]){4, -1, 4, 3, 2, 1, 0, -1});
    eplb_step_stats *stats = stats_of(placement, NULL);
    for (int64_t step = 0; step < 7; step++) {
        for (int32_t l = 0; l < 3; l++) {
            add(stats, step, l, (double[]){40, 2, 6, 4, 8});
        }
    }
    static const double busiest[3] = {18, 41, 40};
    for (int32_t l = 0; l < 3; l++) {
        assert_close(layer_of(stats, l).imbalance_mean, busiest[l] / 15.0, 1e-14);
        assert_int_equal(layer_of(stats, l).steps, 7);
    }
    eplb_step_stats_destroy(&stats);
}

/* A second copy on a GPU wastes its slot: the classical algorithm's plans are scored all the same.
 */
static void second_copy_on_a_gpu_is_scored(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(2, 2, 0), 1, 3);
    set_row(placement, 0, (int32_t[]){0, 0, 1, 2});
    eplb_step_stats *stats = stats_of(placement, NULL);
    add(stats, 0, 0, (double[]){12, 2, 2});
    assert_true(layer_of(stats, 0).imbalance_mean == 1.5);
    eplb_step_stats_destroy(&stats);
}

static void dead_gpus_do_not_count_for_the_mean(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(3, 2, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, 4);
    set_row(placement, 0, (int32_t[]){0, 1, -1, -1, 2, 3});
    eplb_step_stats *stats = stats_of(placement, NULL);
    add(stats, 0, 0, (double[]){3, 3, 1, 1});
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_true(layer.imbalance_mean == 1.5);
    assert_close(layer.idle_others, 1.0 - 2.0 / 6.0, 1e-15);
    assert_true(split_of(stats, 0).uncorrected == 1.5);
    eplb_step_stats_destroy(&stats);
}

static void one_gpu_is_balanced(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 3, 1, 3), NULL);
    for (int64_t step = 0; step < 5; step++) {
        add(stats, step, 0, (double[]){0.1, 0.7, 0.3});
    }
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_true(layer.imbalance_mean == 1.0 && layer.imbalance_p99 == 1.0);
    assert_true(layer.idle_share == 0.0 && layer.idle_others == 0.0);
    eplb_split split = split_of(stats, 0);
    assert_true(split.persistent == 1.0 && split.noise == 0.0);
    assert_true(split.dispersion == 0.0 && split.drift == 0.0);
    eplb_step_stats_destroy(&stats);
}

static void bad_row_changes_nothing(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 9};
    eplb_placement *placement = spread(2, 4, 2, 2);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 0, NULL), NULL);
    eplb_step_stats *stats = stats_of(placement, NULL);
    add(stats, 5, 1, (double[]){1e308, 1, 1, 1});
    eplb_layer_stats before = layer_of(stats, 1);
    const struct {
        int64_t step;
        double counts[4];
        eplb_status status;
        const char *message;
    } cases[] = {
        {6, {1, (double)NAN, 1, 1}, EPLB_ERROR_DATA, "layer 9: expert 1: nan"},
        {6, {1, 1, -1, 1}, EPLB_ERROR_DATA, "layer 9: expert 2: -1"},
        {6, {1, 1, 1, (double)INFINITY}, EPLB_ERROR_DATA, "layer 9: expert 3: inf"},
        {6, {1e308, 1e308, 1, 1}, EPLB_ERROR_OVERFLOW, "layer 9"},
        {6, {1e308, 1, 1, 1}, EPLB_ERROR_OVERFLOW, "layer 9: the sum of the loads up to step 6"},
        {5, {1, 1, 1, 1}, EPLB_ERROR_DATA, "layer 9: step 5 after step 5"},
        {4, {1, 1, 1, 1}, EPLB_ERROR_DATA, "layer 9: step 4 after step 5"},
        {-1, {1, 1, 1, 1}, EPLB_ERROR_ARGUMENT, "step -1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_error error;
        assert_status(eplb_step_stats_add(stats, cases[i].step, 1, cases[i].counts, &error),
                      cases[i].status, &error);
        assert_contains(error.message, cases[i].message);
        eplb_layer_stats after = layer_of(stats, 1);
        assert_memory_equal(&before, &after, sizeof(after));
    }
    assert_int_equal(before.layer_id, 9);
    assert_true(isfinite(before.imbalance_mean) && isfinite(before.padded_ratio));
    eplb_step_stats_destroy(&stats);
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(2, 4, 2, 2), NULL);
    const double counts[4] = {1, 1, 1, 1};
    eplb_error error;
    assert_status(eplb_step_stats_add(stats, 0, 2, counts, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "layer 2 not in 0..1");
    assert_status(eplb_step_stats_add(stats, 0, -1, counts, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_status(eplb_step_stats_add(stats, 0, 0, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
    eplb_layer_stats layer = {.struct_size = sizeof(layer)};
    assert_status(eplb_step_stats_get_layer(stats, 2, &layer, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_status(eplb_step_stats_get_layer(stats, 0, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
    layer.struct_size = 0;
    assert_status(eplb_step_stats_get_layer(stats, 0, &layer, NULL), EPLB_ERROR_ARGUMENT, NULL);
    eplb_step_stats_info info = {.struct_size = 0};
    assert_status(eplb_step_stats_get_info(stats, &info, NULL), EPLB_ERROR_ARGUMENT, NULL);
    assert_status(eplb_step_stats_get_info(stats, NULL, NULL), EPLB_ERROR_ARGUMENT, NULL);
    eplb_step_stats_destroy(&stats);
}

/* What an older caller's shorter struct has no room for is not written. */
static void shorter_result_is_filled_as_far_as_it_goes(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 2, 2, 1), NULL);
    add(stats, 0, 0, (double[]){1, 3});
    eplb_layer_stats layer = {.struct_size = offsetof(eplb_layer_stats, imbalance_p50),
                              .imbalance_p50 = -7.0};
    assert_ok(eplb_step_stats_get_layer(stats, 0, &layer, NULL), NULL);
    assert_true(layer.imbalance_mean == 1.5);
    assert_true(layer.imbalance_p50 == -7.0);
    eplb_step_stats_destroy(&stats);
}

static void expect_refused(const eplb_placement *placement, const eplb_step_stats_options *options,
                           eplb_status status, const char *message)
{
    eplb_step_stats *stats = (eplb_step_stats *)&stats;
    eplb_error error;
    assert_status(eplb_step_stats_create(&stats, NULL, placement, options, &error), status, &error);
    assert_contains(error.message, message);
    assert_null(stats);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = spread(1, 4, 2, 2);
    eplb_step_stats_options options = with_topk(5);
    expect_refused(placement, &options, EPLB_ERROR_ARGUMENT, "top-k 5 not in 0..4");
    options = with_topk(-1);
    expect_refused(placement, &options, EPLB_ERROR_ARGUMENT, "top-k -1");
    options = with_topk(0);
    options.tile = 0;
    expect_refused(placement, &options, EPLB_ERROR_ARGUMENT, "tile 0");
    options = with_topk(0);
    options.reserved = 1;
    expect_refused(placement, &options, EPLB_ERROR_ARGUMENT, "reserved 1");
    options = with_topk(0);
    options.struct_size = 0;
    expect_refused(placement, &options, EPLB_ERROR_ARGUMENT, "struct_size");
    const double factors[] = {0.0, -1.0, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
        options = with_topk(0);
        options.capacity_factor = factors[i];
        expect_refused(placement, &options, EPLB_ERROR_ARGUMENT, "capacity factor");
    }
    expect_refused(NULL, NULL, EPLB_ERROR_ARGUMENT, "no placement");
    assert_status(eplb_step_stats_create(NULL, NULL, placement, NULL, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    eplb_placement_destroy(&placement);
}

static void expert_without_a_live_replica_is_refused(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 9};
    eplb_placement *placement = spread(2, 4, 2, 2);
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 0, NULL), NULL);
    set_row(placement, 1, (int32_t[]){0, -1, 3, 3}); /* twice on a GPU, and two are missing */
    expect_refused(placement, NULL, EPLB_ERROR_DATA, "layer 9");
    expect_refused(placement, NULL, EPLB_ERROR_DATA, "expert 1");
    eplb_placement_destroy(&placement);

    eplb_cluster *cluster = make_cluster(2, 2, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    placement = make_placement(cluster, 1, 2);
    set_row(placement, 0, (int32_t[]){0, 1, 0, 1});
    expect_refused(placement, NULL, EPLB_ERROR_DATA, "GPU 1");
    eplb_placement_destroy(&placement);
}

static eplb_status use(const eplb_hooks *hooks, void *placement)
{
    eplb_step_stats *stats = NULL;
    eplb_status status = eplb_step_stats_create(&stats, hooks, placement, NULL, NULL);
    for (int64_t step = 0; step < 6 && status == EPLB_OK; step++) {
        status = eplb_step_stats_add(stats, step, 0, (double[]){1, 2, 3, 4}, NULL);
    }
    eplb_split split = {.struct_size = sizeof(split)};
    if (status == EPLB_OK) {
        status = eplb_step_stats_split(stats, 0, &split, NULL);
    }
    eplb_step_stats_destroy(&stats);
    return status;
}

/* The placement's own hooks never fail: what fails is the statistics' share. */
static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_placement *placement = spread(2, 4, 2, 2);
    test_each_failing_allocation(use, placement);
    eplb_placement_destroy(&placement);
}

static void adding_allocates_nothing(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_placement *placement = spread(2, 4, 2, 2);
    eplb_step_stats *stats;
    assert_ok(eplb_step_stats_create(&stats, &hooks, placement, NULL, NULL), NULL);
    int64_t requests = memory.requests;
    for (int64_t step = 0; step < 1000; step++) {
        add(stats, step, step % 2 == 0, (double[]){1, 2, 3, 4});
    }
    assert_int_equal(memory.requests, requests);
    eplb_step_stats_destroy(&stats);
    assert_null(stats);
    eplb_step_stats_destroy(&stats);
    assert_int_equal(memory.live, 0);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(cmocka_unit_test(hot_expert_keeps_all_other_gpus_idle),
          cmocka_unit_test(expert_with_more_tokens_than_the_step_is_impossible),
          cmocka_unit_test(spare_slots_share_the_hot_expert),
          cmocka_unit_test(vllm_sums_over_layers_before_it_divides),
          cmocka_unit_test(vllm_metric_is_the_mean_over_steps),
          cmocka_unit_test(vllm_metric_is_unknown_when_layers_come_one_by_one),
          cmocka_unit_test(sglang_and_tensorrt_average_rows),
          cmocka_unit_test(zero_rows_are_skipped), cmocka_unit_test(nothing_added_gives_zeros),
          cmocka_unit_test(percentiles_are_values_that_so_many_steps_keep),
          cmocka_unit_test(short_fractions_are_exact_percentiles),
          cmocka_unit_test(each_replica_pads_to_whole_tiles),
          cmocka_unit_test(capacity_drops_what_exceeds_the_fair_share),
          cmocka_unit_test(touched_experts_are_counted_by_step),
          cmocka_unit_test(hottest_experts_come_in_order),
          cmocka_unit_test(few_experts_leave_places_empty),
          cmocka_unit_test(replicas_share_evenly_in_each_layer_by_its_own_map),
          cmocka_unit_test(second_copy_on_a_gpu_is_scored),
          cmocka_unit_test(dead_gpus_do_not_count_for_the_mean),
          cmocka_unit_test(one_gpu_is_balanced), cmocka_unit_test(bad_row_changes_nothing),
          cmocka_unit_test(arguments_out_of_range_are_refused),
          cmocka_unit_test(shorter_result_is_filled_as_far_as_it_goes),
          cmocka_unit_test(options_out_of_range_are_refused),
          cmocka_unit_test(expert_without_a_live_replica_is_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing),
          cmocka_unit_test(adding_allocates_nothing))
