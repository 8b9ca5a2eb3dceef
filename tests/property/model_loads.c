/* SPDX-License-Identifier: MIT */
#include "instance.h"

enum { SEEDS = 3000 };

static void inverse_maps_agree_with_a_search_of_all_slots(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        const int32_t *row = eplb_placement_row(placement, 0);
        int32_t counts[MOST_EXPERTS];
        int32_t map[MOST_EXPERTS][MOST_SLOTS];
        assert_ok(eplb_placement_replica_counts(placement, 0, counts, NULL), NULL);
        assert_ok(eplb_placement_logical_to_physical(placement, 0, map[0], MOST_SLOTS, NULL), NULL);
        for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
            int32_t found = 0;
            for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
                if (row[s] == e) {
                    assert_int_equal(map[e][found], s);
                    found++;
                }
            }
            assert_int_equal(counts[e], found);
            assert_true(found == MOST_SLOTS || map[e][found] == -1);
        }
        eplb_placement_destroy(&placement);
    }
}

/* Draws loads, none for experts without a replica, and returns their sum. */
static double draw_placed_loads(eplb_random *random, const eplb_placement *placement, double *loads)
{
    int32_t counts[MOST_EXPERTS];
    double total = 0.0;
    draw_loads(random, loads, eplb_placement_experts(placement));
    assert_ok(eplb_placement_replica_counts(placement, 0, counts, NULL), NULL);
    for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
        loads[e] = counts[e] > 0 ? loads[e] : 0.0;
        total += loads[e];
    }
    return total;
}

static void gpu_loads_sum_to_the_total(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        double loads[MOST_EXPERTS];
        double gpu_loads[MOST_GPUS];
        double total = draw_placed_loads(&random, placement, loads);
        assert_ok(eplb_placement_gpu_loads(placement, 0, loads, gpu_loads, NULL), NULL);
        double sum = 0.0;
        for (int32_t g = 0; g < eplb_cluster_gpus(eplb_placement_cluster(placement)); g++) {
            sum += gpu_loads[g];
        }
        assert_close(sum, total, 1e-12 * total);
        eplb_placement_destroy(&placement);
    }
}

static void imbalance_is_largest_gpu_over_the_live_mean(void **state)
{
    (void)state;
    int compared = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        const eplb_cluster *cluster = eplb_placement_cluster(placement);
        double loads[MOST_EXPERTS];
        double gpu_loads[MOST_GPUS];
        double imbalance = -1.0;
        double total = draw_placed_loads(&random, placement, loads);
        assert_ok(eplb_placement_gpu_loads(placement, 0, loads, gpu_loads, NULL), NULL);
        double largest = 0.0;
        double dead = 0.0;
        for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
            largest = fmax(largest, gpu_loads[g]);
            dead += eplb_cluster_gpu_alive(cluster, g) ? 0.0 : gpu_loads[g];
        }
        double expected =
            total > 0.0 ? fmax(1.0, largest * eplb_cluster_live_gpus(cluster) / total) : 0.0;
        eplb_status status = eplb_placement_imbalance(placement, 0, loads, &imbalance, NULL);
        if (dead > 0.0) {
            assert_status(status, EPLB_ERROR_DATA, NULL);
        } else {
            assert_ok(status, NULL);
            assert_close(imbalance, expected, 1e-12 * expected);
            compared++;
        }
        eplb_placement_destroy(&placement);
    }
    assert_true(compared > SEEDS / 2);
}

/* Whole numbers, so that the sums are exact in any order. */
static void built_load_is_the_sum_of_its_rows(void **state)
{
    (void)state;
    enum { SCENARIOS = 2, LAYERS = 5, EXPERTS = 7, ROWS = 60 };
    FOR_EACH_SEED(seed, SEEDS / 10)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        double expected[SCENARIOS][LAYERS][EXPERTS] = {{{0}}};
        eplb_load_builder *builder = NULL;
        eplb_load *load = NULL;
        assert_ok(eplb_load_builder_create(&builder, NULL, SCENARIOS, NULL), NULL);
        for (int32_t i = 0; i < ROWS; i++) {
            int32_t s = i < SCENARIOS * LAYERS ? i / LAYERS : draw(&random, 0, SCENARIOS - 1);
            int32_t l = i < SCENARIOS * LAYERS ? i % LAYERS : draw(&random, 0, LAYERS - 1);
            int32_t length = draw(&random, 0, EXPERTS);
            double counts[EXPERTS];
            for (int32_t e = 0; e < length; e++) {
                counts[e] = draw(&random, 0, 1000);
                expected[s][l][e] += counts[e];
            }
            assert_ok(eplb_load_builder_add(builder, s, 11 * l, counts, length, NULL), NULL);
        }
        assert_ok(eplb_load_builder_finish(builder, &load, EXPERTS, NULL), NULL);
        assert_int_equal(eplb_load_layers(load), LAYERS);
        for (int32_t s = 0; s < SCENARIOS; s++) {
            for (int32_t l = 0; l < LAYERS; l++) {
                assert_memory_equal(eplb_load_row(load, s, l), expected[s][l],
                                    sizeof(expected[s][l]));
            }
        }
        eplb_load_destroy(&load);
        eplb_load_builder_destroy(&builder);
    }
}

TEST_MAIN(seeded_test(inverse_maps_agree_with_a_search_of_all_slots),
          seeded_test(gpu_loads_sum_to_the_total),
          seeded_test(imbalance_is_largest_gpu_over_the_live_mean),
          seeded_test(built_load_is_the_sum_of_its_rows))
