/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { EXPERTS = 4, GPUS = 3, SLOTS = 6 };

/* Expert 0 has three replicas; GPU loads are 4 + 10, 4 + 3 and 4 + 2. */
static const int32_t row[SLOTS] = {0, 1, 2, 0, 0, 3};
static const double loads[EXPERTS] = {12, 10, 3, 2};

static eplb_placement *make_known_placement(void)
{
    eplb_placement *placement = make_placement(make_cluster(GPUS, SLOTS / GPUS, 0), 2, EXPERTS);
    set_row(placement, 1, row);
    return placement;
}

static double imbalance_of(const eplb_placement *placement, const double *expert_loads)
{
    double imbalance = -1.0;
    eplb_error error;
    assert_ok(eplb_placement_imbalance(placement, 1, expert_loads, &imbalance, &error), &error);
    return imbalance;
}

static void replicas_share_evenly(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    double gpu_loads[GPUS];
    assert_ok(eplb_placement_gpu_loads(placement, 1, loads, gpu_loads, NULL), NULL);
    assert_true(gpu_loads[0] == 14.0);
    assert_true(gpu_loads[1] == 7.0);
    assert_true(gpu_loads[2] == 6.0);
    eplb_placement_destroy(&placement);
}

static void imbalance_is_largest_over_mean(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    assert_close(imbalance_of(placement, loads), 14.0 / 9.0, 1e-15);
    eplb_placement_destroy(&placement);
}

static void imbalance_does_not_depend_on_the_unit(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    static const double scales[] = {1e-300, 0.25, 1e30, 1e305};
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        double scaled[EXPERTS];
        for (int32_t e = 0; e < EXPERTS; e++) {
            scaled[e] = loads[e] * scales[i];
        }
        assert_close(imbalance_of(placement, scaled), 14.0 / 9.0, 1e-14);
    }
    eplb_placement_destroy(&placement);
}

static void layer_without_load_has_no_imbalance(void **state)
{
    (void)state;
    static const double zeros[EXPERTS] = {0};
    eplb_placement *placement = make_known_placement();
    double gpu_loads[GPUS] = {9, 9, 9};
    assert_ok(eplb_placement_gpu_loads(placement, 1, zeros, gpu_loads, NULL), NULL);
    for (int32_t g = 0; g < GPUS; g++) {
        assert_true(gpu_loads[g] == 0.0);
    }
    assert_true(imbalance_of(placement, zeros) == 0.0);
    eplb_placement_destroy(&placement);
}

/* Thirds do not sum to what was divided: the largest GPU must still not be below the mean. */
static void perfect_balance_is_one_and_not_less(void **state)
{
    (void)state;
    for (int32_t gpus = 1; gpus < 40; gpus++) {
        eplb_placement *placement = make_placement(make_cluster(gpus, 2, 0), 2, 2);
        int32_t same[80];
        for (int32_t s = 0; s < 2 * gpus; s++) {
            same[s] = s % 2;
        }
        set_row(placement, 1, same);
        double imbalance = imbalance_of(placement, (double[]){0.1, 0.7});
        assert_true(imbalance >= 1.0);
        assert_close(imbalance, 1.0, 1e-14);
        eplb_placement_destroy(&placement);
    }
}

static void dead_gpus_do_not_count_for_the_mean(void **state)
{
    (void)state;
    static const int32_t without_gpu_1[SLOTS] = {0, 1, -1, -1, 2, 3};
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 2, EXPERTS);
    set_row(placement, 1, without_gpu_1);
    double gpu_loads[GPUS];
    assert_ok(eplb_placement_gpu_loads(placement, 1, loads, gpu_loads, NULL), NULL);
    assert_true(gpu_loads[0] == 22.0);
    assert_true(gpu_loads[1] == 0.0);
    assert_true(gpu_loads[2] == 5.0);
    assert_close(imbalance_of(placement, loads), 22.0 / 13.5, 1e-15);
    eplb_placement_destroy(&placement);
}

static void uneven_slots_are_summed_by_gpu(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, 1, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 0, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 3, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 2, EXPERTS);
    set_row(placement, 1, (int32_t[]){0, 1, 2, 3});
    double gpu_loads[GPUS];
    assert_ok(eplb_placement_gpu_loads(placement, 1, loads, gpu_loads, NULL), NULL);
    assert_true(gpu_loads[0] == 0.0);
    assert_true(gpu_loads[1] == 25.0);
    assert_true(gpu_loads[2] == 2.0);
    eplb_placement_destroy(&placement);
}

static void load_of_a_missing_expert_is_refused(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 8};
    static const int32_t without_2[SLOTS] = {0, 1, 3, 0, 0, 3};
    eplb_placement *placement = make_known_placement();
    assert_ok(eplb_placement_set_layer_ids(placement, ids, 0, NULL), NULL);
    set_row(placement, 1, without_2);
    double gpu_loads[GPUS] = {-7, -7, -7};
    double imbalance = -7;
    eplb_error error;
    assert_status(eplb_placement_gpu_loads(placement, 1, loads, gpu_loads, &error), EPLB_ERROR_DATA,
                  &error);
    assert_contains(error.message, "layer 8: expert 2");
    assert_true(gpu_loads[0] == -7.0 && gpu_loads[2] == -7.0);
    assert_status(eplb_placement_imbalance(placement, 1, loads, &imbalance, &error),
                  EPLB_ERROR_DATA, &error);
    assert_true(imbalance == -7.0);
    const double not_on_2[EXPERTS] = {12, 10, 0, 2};
    assert_close(imbalance_of(placement, not_on_2), 14.0 / 8.0, 1e-15);
    eplb_placement_destroy(&placement);
}

static void value_that_is_no_load_is_refused(void **state)
{
    (void)state;
    const double bad_values[] = {(double)NAN, (double)INFINITY, -1.0};
    eplb_placement *placement = make_known_placement();
    for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]); i++) {
        double bad[EXPERTS] = {12, 10, 3, 2};
        bad[2] = bad_values[i];
        double gpu_loads[GPUS] = {-7, -7, -7};
        double imbalance = -7;
        eplb_error error;
        assert_status(eplb_placement_gpu_loads(placement, 1, bad, gpu_loads, &error),
                      EPLB_ERROR_DATA, &error);
        assert_contains(error.message, "expert 2");
        assert_true(gpu_loads[0] == -7.0 && gpu_loads[2] == -7.0);
        assert_status(eplb_placement_imbalance(placement, 1, bad, &imbalance, &error),
                      EPLB_ERROR_DATA, &error);
        assert_true(imbalance == -7.0);
    }
    eplb_placement_destroy(&placement);
}

static void missing_arrays_are_refused(void **state)
{
    (void)state;
    eplb_placement *placement = make_known_placement();
    double out[GPUS];
    assert_status(eplb_placement_gpu_loads(placement, 1, NULL, out, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    assert_status(eplb_placement_gpu_loads(placement, 1, loads, NULL, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    assert_status(eplb_placement_imbalance(placement, 1, NULL, out, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    assert_status(eplb_placement_imbalance(placement, 1, loads, NULL, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
    eplb_placement_destroy(&placement);
}

static eplb_status score(const eplb_hooks *hooks, void *cluster)
{
    eplb_placement *placement = NULL;
    eplb_status status = eplb_placement_create(&placement, hooks, cluster, 2, EXPERTS, NULL);
    if (status == EPLB_OK) {
        set_row(placement, 1, row);
        double imbalance;
        status = eplb_placement_imbalance(placement, 1, loads, &imbalance, NULL);
    }
    eplb_placement_destroy(&placement);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    test_each_failing_allocation(score, cluster);
    eplb_cluster_destroy(&cluster);
}

static void load_on_a_dead_gpu_has_no_imbalance(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(2, 2, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, 1, 4);
    set_row(placement, 0, (int32_t[]){0, 1, 2, 3});
    const double tokens[] = {5, 5, 0, 7};
    double imbalance = -7.0;
    eplb_error error;
    assert_status(eplb_placement_imbalance(placement, 0, tokens, &imbalance, &error),
                  EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "GPU 1 is dead and holds experts with 7 tokens");
    assert_true(imbalance == -7.0);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(cmocka_unit_test(load_on_a_dead_gpu_has_no_imbalance),
          cmocka_unit_test(replicas_share_evenly), cmocka_unit_test(imbalance_is_largest_over_mean),
          cmocka_unit_test(imbalance_does_not_depend_on_the_unit),
          cmocka_unit_test(layer_without_load_has_no_imbalance),
          cmocka_unit_test(perfect_balance_is_one_and_not_less),
          cmocka_unit_test(dead_gpus_do_not_count_for_the_mean),
          cmocka_unit_test(uneven_slots_are_summed_by_gpu),
          cmocka_unit_test(load_of_a_missing_expert_is_refused),
          cmocka_unit_test(value_that_is_no_load_is_refused),
          cmocka_unit_test(missing_arrays_are_refused),
          cmocka_unit_test(failing_allocation_leaks_nothing))
