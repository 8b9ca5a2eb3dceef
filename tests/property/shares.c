/* SPDX-License-Identifier: MIT */
#include "instance.h"

#include <eplb/shares.h>

enum { SEEDS = 1000 };

static bool is_live(const eplb_placement *placement, int32_t slot)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    return eplb_cluster_gpu_alive(cluster, gpu_of_slot(cluster, slot)) == 1;
}

static int32_t live_replicas(const eplb_placement *placement, int32_t expert)
{
    int32_t count = 0;
    for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
        count += eplb_placement_row(placement, 0)[s] == expert && is_live(placement, s) ? 1 : 0;
    }
    return count;
}

/* Loads of the experts that are on a live GPU. */
static void draw_served_loads(eplb_random *random, const eplb_placement *placement, double *loads)
{
    int32_t experts = eplb_placement_experts(placement);
    draw_loads(random, loads, experts);
    for (int32_t e = 0; e < experts; e++) {
        loads[e] = live_replicas(placement, e) > 0 ? loads[e] : 0.0;
    }
}

/* The GPUs on which an expert is, as bits. */
static uint32_t holders(const eplb_placement *placement, int32_t expert)
{
    uint32_t gpus = 0;
    for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
        if (eplb_placement_row(placement, 0)[s] == expert && is_live(placement, s)) {
            gpus |= 1u << gpu_of_slot(eplb_placement_cluster(placement), s);
        }
    }
    return gpus;
}

/* The smallest largest load, by the theorem of maximum flow and minimum cut: over all sets of GPUs
 * the largest mean load of what only they hold. */
static double largest_by_cuts(const eplb_placement *placement, const double *loads)
{
    int32_t gpus = eplb_cluster_gpus(eplb_placement_cluster(placement));
    uint32_t held_by[MOST_EXPERTS];
    for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
        held_by[e] = holders(placement, e);
    }
    double largest = 0.0;
    for (uint32_t set = 1; set < 1u << gpus; set++) {
        double sum = 0.0;
        for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
            sum += (held_by[e] & ~set) == 0 ? loads[e] : 0.0;
        }
        largest = fmax(largest, sum / (double)__builtin_popcount(set));
    }
    return largest;
}

static void assert_weights(const eplb_placement *placement, const double *weights)
{
    const int32_t *row = eplb_placement_row(placement, 0);
    double sums[MOST_EXPERTS] = {0};
    for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
        assert_true(weights[s] >= 0.0);
        if (row[s] < 0 || !is_live(placement, s)) {
            assert_true(weights[s] == 0.0);
        } else {
            sums[row[s]] += weights[s];
        }
    }
    for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
        assert_close(sums[e], live_replicas(placement, e) > 0 ? 1.0 : 0.0, 1e-12);
    }
}

static void best_weights_reach_the_minimum_cut(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        double loads[MOST_EXPERTS];
        double weights[MOST_SLOTS];
        double largest;
        draw_served_loads(&random, placement, loads);
        assert_ok(eplb_shares_best(placement, 0, loads, weights, &largest, NULL, NULL), NULL);
        double expected = largest_by_cuts(placement, loads);
        assert_close(largest, expected, 1e-11 * expected);
        assert_weights(placement, weights);
        eplb_placement_destroy(&placement);
    }
}

static void one_spare_slot_a_gpu_balances_any_load(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        int32_t gpus = draw(&random, 2, MOST_GPUS);
        int32_t slots = draw(&random, 2, MOST_SLOTS_PER_GPU);
        int32_t most = gpus * (slots - 1) < MOST_EXPERTS ? gpus * (slots - 1) : MOST_EXPERTS;
        int32_t experts = draw(&random, slots, most);
        double loads[MOST_EXPERTS];
        double weights[MOST_SLOTS];
        double gpu_loads[MOST_GPUS];
        double mean = 0.0;
        eplb_cluster *cluster = NULL;
        eplb_placement *placement = NULL;
        draw_loads(&random, loads, experts);
        assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots, 0, NULL), NULL);
        assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, experts, NULL), NULL);
        assert_ok(eplb_shares_place(placement, 0, loads, weights, NULL), NULL);
        assert_ok(eplb_placement_validate(placement, 0, NULL), NULL);
        assert_weights(placement, weights);
        assert_ok(eplb_shares_gpu_loads(placement, 0, loads, weights, gpu_loads, NULL), NULL);
        for (int32_t e = 0; e < experts; e++) {
            mean += loads[e] / (double)gpus;
        }
        for (int32_t g = 0; g < gpus; g++) {
            assert_close(gpu_loads[g], mean, 1e-11 * mean);
        }
        eplb_placement_destroy(&placement);
        eplb_cluster_destroy(&cluster);
    }
}

TEST_MAIN(seeded_test(best_weights_reach_the_minimum_cut),
          seeded_test(one_spare_slot_a_gpu_balances_any_load))
