/* SPDX-License-Identifier: MIT */
/* Statistics that engines got wrong, as their users reported it, through step statistics, the split
 * and the trigger together. Cases of one module are in the tests of that module. */
#include "step_stats.h"

#include <eplb/trigger.h>

/* No two of them are equal. */
enum { LAYERS = 2, GPUS = 3, SLOTS_PER_GPU = 4, STEPS = 5, EXPERTS = 7, SLOTS = 12 };

static const int32_t maps[LAYERS][SLOTS] = {{0, 1, 2, 3, 4, 5, 6, 0, 0, 1, 2, 4},
                                            {6, 5, 4, 3, 2, 1, 0, 6, 6, 5, 4, 2}};

static eplb_placement *make_maps(void)
{
    eplb_placement *placement =
        make_placement(make_cluster(GPUS, SLOTS_PER_GPU, 0), LAYERS, EXPERTS);
    set_row(placement, 0, maps[0]);
    set_row(placement, 1, maps[1]);
    return placement;
}

/* vllm-project/vllm-ascend#7887: axes were mixed. Each layer has its map: under the first one the
 * loads are perfect, under the second GPU 1 has 190/3 of 120. */
static void axes_of_steps_are_not_mixed(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(make_maps(), NULL);
    for (int32_t t = 0; t < STEPS; t++) {
        const double scale = t + 1;
        const double counts[EXPERTS] = {30 * scale, 20 * scale, 20 * scale, 10 * scale,
                                        20 * scale, 10 * scale, 10 * scale};
        add(stats, t, 0, counts);
        add(stats, t, 1, counts);
    }
    assert_close(layer_of(stats, 0).imbalance_mean, 1.0, 1e-15);
    assert_close(layer_of(stats, 1).imbalance_mean, 190.0 / 120.0, 1e-15);
    assert_int_equal(layer_of(stats, 1).steps, STEPS);
    static const double sums[EXPERTS] = {450, 300, 300, 150, 300, 150, 150};
    assert_memory_equal(eplb_step_stats_experts(stats, 1), sums, sizeof(sums));
    assert_null(eplb_step_stats_experts(stats, LAYERS));
    assert_int_equal(info_of(stats).layers, LAYERS);
    eplb_step_stats_destroy(&stats);
}

/* vllm-project/vllm-ascend, swift balancer: the first layer's tokens scaled all layers, so that
 * one without tokens froze the others. */
static void each_layer_is_scaled_by_its_own_tokens(void **state)
{
    (void)state;
    static const double of_layer_0[] = {0.0, 1.0, 1e15};
    for (size_t i = 0; i < sizeof(of_layer_0) / sizeof(of_layer_0[0]); i++) {
        eplb_step_stats *stats = stats_of(spread(2, 2, 2, 1), NULL);
        for (int32_t t = 0; t < 8; t++) {
            add(stats, t, 0, (double[]){of_layer_0[i], of_layer_0[i]});
            add(stats, t, 1, (double[]){3, 1});
        }
        bool is_zero = of_layer_0[i] <= 0.0;
        eplb_step_stats_info info = info_of(stats);
        assert_true(layer_of(stats, 1).imbalance_mean == 1.5);
        assert_true(split_of(stats, 1).persistent == 1.5);
        assert_int_equal(info.scored_layers, is_zero ? 1 : 2);
        assert_true(info.imbalance_worst == 1.5);
        assert_true(info.imbalance_mean == (is_zero ? 1.5 : 1.25));
        eplb_step_stats_destroy(&stats);
    }
}

/* vllm-project/vllm-ascend#12154, #16183: an all-zero load gave NaN, moves and empty slots. No
 * number of it is a NaN, and the trigger does not take it for a balance. */
static void steps_without_tokens_neither_start_nor_stop_a_rebalance(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(make_maps(), NULL);
    for (int32_t t = 0; t < STEPS; t++) {
        add(stats, t, 0, (double[EXPERTS]){0});
        add(stats, t, 1, (double[EXPERTS]){0});
    }
    eplb_step_stats_info info = info_of(stats);
    const eplb_step_stats_info zero = {.struct_size = sizeof(zero),
                                       .layers = LAYERS,
                                       .rows = LAYERS * STEPS,
                                       .skipped = LAYERS * STEPS};
    assert_memory_equal(&info, &zero, sizeof(info));
    eplb_split split = split_of(stats, 0);
    assert_true(split.persistent == 0.0 && split.seen == 0.0 && split.standard_error == 0.0);
    eplb_step_stats_destroy(&stats);

    eplb_error error;
    eplb_trigger *trigger;
    assert_ok(eplb_trigger_create(&trigger, NULL, NULL, &error), &error);
    eplb_observation skewed = {.struct_size = sizeof(skewed), .persistent = 1.5};
    eplb_observation nothing = {.struct_size = sizeof(nothing), .persistent = split.persistent};
    eplb_verdict verdict = {.struct_size = sizeof(verdict)};
    assert_ok(eplb_trigger_observe(trigger, 0.0, &skewed, &verdict, &error), &error);
    assert_status(eplb_trigger_observe(trigger, 30.0, &nothing, &verdict, &error), EPLB_ERROR_DATA,
                  &error);
    assert_ok(eplb_trigger_observe(trigger, 60.0, &skewed, &verdict, &error), &error);
    assert_int_equal(verdict.decision, EPLB_DECISION_REBALANCE);
    eplb_trigger_destroy(&trigger);
}

/* vllm-project/vllm#28155: weights of 1e30, to forbid a rank. They are loads like any other. */
static void weights_of_1e30_give_numbers(void **state)
{
    (void)state;
    eplb_step_stats *stats = stats_of(spread(1, 4, 4, 1), NULL);
    for (int32_t t = 0; t < STEPS; t++) {
        add(stats, t, 0, (double[]){1e30, 1, 2, 3});
    }
    eplb_layer_stats layer = layer_of(stats, 0);
    assert_close(layer.imbalance_mean, 4.0, 1e-12);
    assert_true(isfinite(layer.padded_ratio) && isfinite(layer.idle_share));
    eplb_split split = split_of(stats, 0);
    assert_close(split.persistent, 4.0, 1e-12);
    assert_true(isfinite(split.standard_error) && isfinite(split.drift));
    eplb_step_stats_destroy(&stats);
}

TEST_MAIN(cmocka_unit_test(axes_of_steps_are_not_mixed),
          cmocka_unit_test(each_layer_is_scaled_by_its_own_tokens),
          cmocka_unit_test(steps_without_tokens_neither_start_nor_stop_a_rebalance),
          cmocka_unit_test(weights_of_1e30_give_numbers))
