/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <eplb/shares.h>

#include "split_cases.h"

enum { EXPERTS = 4, GPUS = 3, SLOTS = 6 };

/* Expert 0 is on all GPUs, the others beside it. */
static const int32_t star[SLOTS] = {0, 1, 0, 2, 3, 0};
static const double star_loads[EXPERTS] = {12, 10, 4, 1};

static eplb_placement *make_star(void)
{
    eplb_placement *placement = make_placement(make_cluster(GPUS, 2, 0), 2, EXPERTS);
    set_row(placement, 1, star);
    return placement;
}

static double best(const eplb_placement *placement, int32_t layer, const double *loads,
                   double *weights)
{
    eplb_error error;
    double imbalance = -1.0;
    assert_ok(eplb_shares_best(placement, layer, loads, weights, NULL, &imbalance, &error), &error);
    return imbalance;
}

static void look_at_case(const split_case *c)
{
    eplb_error error;
    double weights[SPLIT_CASE_SLOTS];
    double largest;
    double imbalance;
    assert_ok(eplb_shares_best(c->placement, 0, c->load, weights, &largest, &imbalance, &error),
              &error);
    assert_close(largest, c->best_largest, 1e-9 * c->best_largest);
    assert_close(imbalance, c->best_imbalance, 2e-9);
    assert_ok(eplb_placement_imbalance(c->placement, 0, c->load, &imbalance, &error), &error);
    assert_close(imbalance, c->even_imbalance, 2e-9);
}

static void known_cases_get_their_best_weights(void **state)
{
    (void)state;
    for_each_split_case(look_at_case);
}

static void weights_fill_up_to_the_mean(void **state)
{
    (void)state;
    eplb_placement *placement = make_star();
    double weights[SLOTS];
    double gpu_loads[GPUS];
    assert_close(best(placement, 1, star_loads, weights), 10.0 / 9.0, 1e-15);
    assert_true(weights[0] == 0.0);
    assert_ok(eplb_shares_gpu_loads(placement, 1, star_loads, weights, gpu_loads, NULL), NULL);
    assert_close(gpu_loads[0], 10.0, 1e-12);
    assert_close(gpu_loads[1] + gpu_loads[2], 17.0, 1e-12);
    assert_true(gpu_loads[1] <= 10.0 && gpu_loads[2] <= 10.0);
    eplb_placement_destroy(&placement);
}

static void best_weights_do_not_depend_on_the_unit(void **state)
{
    (void)state;
    static const double scales[] = {1e-308, 1e-300, 0.3, 1e30, 5e306};
    eplb_placement *placement = make_star();
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        double loads[EXPERTS];
        double weights[SLOTS];
        for (int32_t e = 0; e < EXPERTS; e++) {
            loads[e] = star_loads[e] * scales[i];
        }
        assert_close(best(placement, 1, loads, weights), 10.0 / 9.0, 1e-12);
    }
    eplb_placement_destroy(&placement);
}

/* The small expert's tokens vanish beside the large one's, its weights must not. */
static void expert_beside_one_of_vast_load_keeps_weights(void **state)
{
    (void)state;
    static const double loads[EXPERTS] = {1e-308, 1e308, 0, 0};
    static const int32_t row[SLOTS] = {0, 1, 0, 1, 2, 3};
    eplb_placement *placement = make_placement(make_cluster(GPUS, 2, 0), 1, EXPERTS);
    set_row(placement, 0, row);
    double weights[SLOTS];
    assert_close(best(placement, 0, loads, weights), 1.5, 1e-12);
    assert_close(weights[0] + weights[2], 1.0, 1e-15);
    assert_close(weights[1], 0.5, 1e-12);
    assert_true(weights[4] == 1.0);
    eplb_placement_destroy(&placement);
}

static void layer_without_load_has_even_weights_and_no_imbalance(void **state)
{
    (void)state;
    static const double zeros[EXPERTS] = {0};
    eplb_placement *placement = make_star();
    double weights[SLOTS];
    double largest = -1.0;
    double imbalance = -1.0;
    assert_ok(eplb_shares_best(placement, 1, zeros, weights, &largest, &imbalance, NULL), NULL);
    assert_true(imbalance == 0.0 && largest == 0.0);
    assert_true(weights[0] == 1.0 / 3.0 && weights[1] == 1.0);
    eplb_placement_destroy(&placement);
}

static void dead_gpus_and_empty_slots_get_nothing(void **state)
{
    (void)state;
    static const int32_t row[SLOTS] = {0, 1, 0, 1, 2, -1};
    static const double loads[EXPERTS] = {6, 2, 1, 0};
    eplb_cluster *cluster = make_cluster(GPUS, 2, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, EXPERTS);
    set_row(placement, 0, row);
    double weights[SLOTS];
    assert_close(best(placement, 0, loads, weights), 8.0 / 4.5, 1e-15);
    static const double expected[SLOTS] = {1, 1, 0, 0, 1, 0};
    assert_memory_equal(weights, expected, sizeof(expected));
    eplb_placement_destroy(&placement);
}

static void expert_without_live_replica_is_refused(void **state)
{
    (void)state;
    static const int32_t row[SLOTS] = {0, 1, 2, 3, 0, 1};
    eplb_cluster *cluster = make_cluster(GPUS, 2, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, EXPERTS);
    set_row(placement, 0, row);
    double weights[SLOTS] = {7, 7, 7, 7, 7, 7};
    eplb_error error;
    assert_status(eplb_shares_best(placement, 0, star_loads, weights, NULL, NULL, &error),
                  EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message,
                        "layer 0: expert 2 has 4 tokens and no replica on a live GPU");
    assert_true(weights[0] == 7.0);
    eplb_placement_destroy(&placement);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_star();
    double weights[SLOTS];
    eplb_error error;
    static const double negative[EXPERTS] = {1, -2, 1, 1};
    assert_status(eplb_shares_best(NULL, 0, star_loads, weights, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_shares_best(placement, 2, star_loads, weights, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_shares_best(placement, 1, NULL, weights, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_shares_best(placement, 1, star_loads, NULL, NULL, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_shares_best(placement, 1, negative, weights, NULL, NULL, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 1: expert 1: -2");
    eplb_placement_destroy(&placement);
}

static void refuse_weights(const double *weights, const char *message)
{
    static const int32_t row[SLOTS] = {0, 1, 0, -1, 2, 3};
    eplb_placement *placement = make_placement(make_cluster(GPUS, 2, 0), 1, EXPERTS);
    set_row(placement, 0, row);
    double gpu_loads[GPUS];
    eplb_error error;
    assert_status(eplb_shares_gpu_loads(placement, 0, star_loads, weights, gpu_loads, &error),
                  EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, message);
    eplb_placement_destroy(&placement);
}

static void weights_that_are_none_are_refused(void **state)
{
    (void)state;
    refuse_weights((double[SLOTS]){0.5, 1, -0.5, 0, 1, 1},
                   "weights: layer 0: slot 2: -0.5 is not a weight (finite, >= 0)");
    refuse_weights((double[SLOTS]){0.5, 1, NAN, 0, 1, 1},
                   "weights: layer 0: slot 2: nan is not a weight (finite, >= 0)");
    refuse_weights((double[SLOTS]){0.5, 1, 0.5, 0.25, 1, 1},
                   "weights: layer 0: slot 3 of GPU 1 has 0.25 but is empty");
    refuse_weights((double[SLOTS]){0.5, 1, 0.25, 0, 1, 1},
                   "weights: layer 0: expert 0: they sum to 0.75, not to 1");
}

static eplb_status balance_with(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_placement *placement = NULL;
    eplb_cluster *cluster = NULL;
    double weights[9];
    eplb_status status = eplb_cluster_create(&cluster, hooks, GPUS, 3, 0, NULL);
    if (status == EPLB_OK) {
        status = eplb_placement_create(&placement, hooks, cluster, 1, EXPERTS, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_shares_place(placement, 0, star_loads, weights, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_shares_best(placement, 0, star_loads, weights, NULL, NULL, NULL);
    }
    if (status == EPLB_OK) {
        double gpu_loads[GPUS];
        status = eplb_shares_gpu_loads(placement, 0, star_loads, weights, gpu_loads, NULL);
    }
    eplb_placement_destroy(&placement);
    eplb_cluster_destroy(&cluster);
    return status;
}

static void failing_memory_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(balance_with, NULL);
}

TEST_MAIN(cmocka_unit_test(known_cases_get_their_best_weights),
          cmocka_unit_test(weights_fill_up_to_the_mean),
          cmocka_unit_test(best_weights_do_not_depend_on_the_unit),
          cmocka_unit_test(expert_beside_one_of_vast_load_keeps_weights),
          cmocka_unit_test(layer_without_load_has_even_weights_and_no_imbalance),
          cmocka_unit_test(dead_gpus_and_empty_slots_get_nothing),
          cmocka_unit_test(expert_without_live_replica_is_refused),
          cmocka_unit_test(wrong_arguments_are_refused),
          cmocka_unit_test(weights_that_are_none_are_refused),
          cmocka_unit_test(failing_memory_leaks_nothing))
