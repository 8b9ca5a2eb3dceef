/* SPDX-License-Identifier: MIT */
/* Random small instances of the model: uneven GPUs, dead ones, loads with zeros in them. */
#ifndef EPLB_TESTS_INSTANCE_H
#define EPLB_TESTS_INSTANCE_H

#include "support.h"

#include <eplb/cluster.h>
#include <eplb/load.h>
#include <eplb/placement.h>
#include <eplb/random.h>

#define MOST_EXPERTS 24
#define MOST_GPUS 9
#define MOST_SLOTS_PER_GPU 7
#define MOST_SLOTS (MOST_GPUS * MOST_SLOTS_PER_GPU)

/* Runs a test body for each of many seeds. `seeded_test` makes a test of it that tells the last
 * seed: that of the failure, if there was one. */
#define FOR_EACH_SEED(seed, count)                                                                 \
    for (uint64_t seed = 0; (test_last_seed = seed) < (count); seed++)
#define seeded_test(test) cmocka_unit_test_teardown(test, test_tell_seed)

static uint64_t test_last_seed;

static inline int test_tell_seed(void **state)
{
    (void)state;
    print_message("last seed: %llu\n", (unsigned long long)test_last_seed);
    return 0;
}

/* A number in low..high. */
static inline int32_t draw(eplb_random *random, int32_t low, int32_t high)
{
    return low + (int32_t)eplb_random_below(random, (uint64_t)(high - low + 1));
}

/* Equal GPUs in half of the cases; else each has its own slots, even none, and one in six is dead.
 * At least one GPU lives and has a slot. */
static inline eplb_cluster *draw_cluster(eplb_random *random)
{
    int32_t gpus = draw(random, 1, MOST_GPUS);
    /* One after another: compilers are free in the order of arguments. */
    int32_t slots_per_gpu = draw(random, 1, MOST_SLOTS_PER_GPU);
    int32_t gpus_per_node = draw(random, 0, gpus);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, gpus_per_node, NULL), NULL);
    bool uneven = draw(random, 0, 1) == 1;
    for (int32_t g = 1; uneven && g < gpus; g++) {
        assert_ok(eplb_cluster_set_slots(cluster, g, draw(random, 0, MOST_SLOTS_PER_GPU), NULL),
                  NULL);
        assert_ok(eplb_cluster_set_alive(cluster, g, draw(random, 0, 5) > 0, NULL), NULL);
    }
    return cluster;
}

/* One layer with any expert, or none, in each slot. */
static inline eplb_placement *draw_placement(eplb_random *random)
{
    eplb_cluster *cluster = draw_cluster(random);
    eplb_placement *placement = NULL;
    int32_t experts = draw(random, 1, MOST_EXPERTS);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, experts, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    int32_t row[MOST_SLOTS];
    for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
        row[s] = draw(random, -1, experts - 1);
    }
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    return placement;
}

/* Loads [experts], skewed; one expert in five has none. */
static inline void draw_loads(eplb_random *random, double *loads, int32_t experts)
{
    for (int32_t e = 0; e < experts; e++) {
        double unit = eplb_random_unit(random);
        loads[e] = draw(random, 0, 4) == 0 ? 0.0 : 1000.0 * unit * unit * unit;
    }
}

/* Scenarios of any weight; one row in ten has no load. */
static inline eplb_load *draw_scenarios(eplb_random *random, int32_t most, int32_t layers,
                                        int32_t experts)
{
    int32_t scenarios = draw(random, 1, most);
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, scenarios, layers, experts, NULL), NULL);
    for (int32_t i = 0; i < scenarios * layers; i++) {
        double row[MOST_EXPERTS] = {0};
        if (draw(random, 0, 9) > 0) {
            draw_loads(random, row, experts);
        }
        assert_ok(eplb_load_set_row(load, i / layers, i % layers, row, NULL), NULL);
        double weight = (double)draw(random, 1, 5);
        assert_ok(eplb_load_set_scenario(load, i / layers, NULL, weight, NULL), NULL);
    }
    return load;
}

static inline int32_t gpu_of_slot(const eplb_cluster *cluster, int32_t slot)
{
    int32_t gpu = 0;
    while (slot >= eplb_cluster_first_slot(cluster, gpu) + eplb_cluster_gpu_slots(cluster, gpu)) {
        gpu++;
    }
    return gpu;
}

#endif
