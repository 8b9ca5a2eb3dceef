/* SPDX-License-Identifier: MIT */
/*
 * Placements must not change with the compiler, its optimisation or the number of threads: every
 * build compares the maps of these plans with the same golden file. A change of the planner changes
 * the file: run the program with the argument `print` to get the new one.
 */
#include "support.h"

#include <eplb/plan.h>
#include <eplb/random.h>
#include <eplb/rebalance.h>

#include <inttypes.h>

#define LAYERS 3
#define MOST_EXPERTS 256

typedef struct shape {
    const char *name;
    int32_t experts;
    int32_t gpus;
    int32_t slots;
    int32_t effort;
    int32_t algorithm;
    int32_t scenarios;
    int32_t objective;
    int32_t gpus_per_node; /* 0: one node */
    int32_t groups;        /* 0: none */
    double node_cost;      /* 0: none */
    int32_t beam;          /* 0: planned from nothing; else rebalanced from an even spread */
} shape;

static const shape shapes[] = {
    {"large-9", 256, 32, 288, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"large-4", 256, 72, 288, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"large-3", 256, 96, 288, 4, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"large-2", 256, 144, 288, 4, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"filled-3", 256, 110, 330, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"greedy", 256, 64, 320, 1, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"small", 8, 4, 12, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 0},
    {"reference", 256, 32, 288, 5, EPLB_ALGORITHM_EPLB, 1, 0, 0, 0, 0, 0},
    {"mean-9", 256, 32, 288, 5, EPLB_ALGORITHM_SEARCH, 9, EPLB_OBJECTIVE_MEAN_OF_MAX, 0, 0, 0, 0},
    {"mean-4", 256, 72, 288, 4, EPLB_ALGORITHM_SEARCH, 17, EPLB_OBJECTIVE_MEAN_OF_MAX, 0, 0, 0, 0},
    {"max-4", 256, 72, 288, 4, EPLB_ALGORITHM_SEARCH, 3, EPLB_OBJECTIVE_MAX_OF_MAX, 0, 0, 0, 0},
    {"sum-9", 256, 32, 288, 4, EPLB_ALGORITHM_SEARCH, 3, EPLB_OBJECTIVE_SUM, 0, 0, 0, 0},
    {"greedy-5", 256, 64, 320, 1, EPLB_ALGORITHM_SEARCH, 5, EPLB_OBJECTIVE_MEAN_OF_MAX, 0, 0, 0, 0},
    {"small-3", 8, 4, 12, 4, EPLB_ALGORITHM_SEARCH, 3, EPLB_OBJECTIVE_MEAN_OF_MAX, 0, 0, 0, 0},
    {"groups-9", 256, 32, 288, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 8, 8, 0, 0},
    {"groups-3", 256, 32, 288, 4, EPLB_ALGORITHM_SEARCH, 3, EPLB_OBJECTIVE_MEAN_OF_MAX, 8, 16, 0,
     0},
    {"nodes-16", 256, 32, 512, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 8, 0, 0.5, 0},
    {"nodes-5", 256, 32, 512, 4, EPLB_ALGORITHM_SEARCH, 5, EPLB_OBJECTIVE_MEAN_OF_MAX, 8, 0, 0.5,
     0},
    {"few-9", 256, 32, 288, 5, EPLB_ALGORITHM_SEARCH, 1, 0, 0, 0, 0, 2},
    {"few-mean", 256, 32, 288, 4, EPLB_ALGORITHM_SEARCH, 5, EPLB_OBJECTIVE_MEAN_OF_MAX, 0, 0, 0, 1},
    {"few-max", 256, 72, 288, 4, EPLB_ALGORITHM_SEARCH, 3, EPLB_OBJECTIVE_MAX_OF_MAX, 0, 0, 0, 1},
    {"few-nodes", 256, 32, 288, 4, EPLB_ALGORITHM_SEARCH, 5, EPLB_OBJECTIVE_MEAN_OF_MAX, 8, 0, 0,
     1},
    {"few-small", 8, 4, 12, 5, EPLB_ALGORITHM_SEARCH, 3, EPLB_OBJECTIVE_MEAN_OF_MAX, 0, 0, 0, 16},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Skewed loads out of integers and one division: no libm. */
static eplb_load *skewed_load(int32_t scenarios, int32_t experts)
{
    eplb_random random;
    eplb_random_seed(&random, 20260101);
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, scenarios, LAYERS, experts, NULL), NULL);
    for (int32_t i = 0; i < scenarios * LAYERS; i++) {
        int32_t l = i % LAYERS;
        double row[MOST_EXPERTS];
        for (int32_t e = 0; e < experts; e++) {
            row[e] = (double)(1000000 / (1 + eplb_random_below(&random, 40 + 20 * (uint64_t)l)));
        }
        assert_ok(eplb_load_set_row(load, i / LAYERS, l, row, NULL), NULL);
    }
    return load;
}

/* FNV-1a over the little-endian bytes of all slots. */
static uint64_t fingerprint(const eplb_placement *placement)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        const int32_t *row = eplb_placement_row(placement, l);
        for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
            for (int byte = 0; byte < 4; byte++) {
                hash ^= (uint32_t)row[s] >> (8 * byte) & 0xffu;
                hash *= 0x100000001b3u;
            }
        }
    }
    return hash;
}

static eplb_plan *rebalance_spread(const eplb_load *load, const eplb_cluster *cluster,
                                   const eplb_plan_options *planning, int32_t beam)
{
    eplb_placement *spread;
    int32_t experts = eplb_load_experts(load);
    assert_ok(eplb_placement_create(&spread, NULL, cluster, LAYERS, experts, NULL), NULL);
    for (int32_t l = 0; l < LAYERS; l++) {
        assert_ok(eplb_placement_spread(spread, l, NULL), NULL);
    }
    eplb_rebalance_options options;
    eplb_rebalance_options_init(&options);
    options.beam = beam;
    eplb_plan *plan;
    assert_ok(eplb_rebalance_create(&plan, NULL, load, cluster, spread, planning, &options, NULL),
              NULL);
    eplb_placement_destroy(&spread);
    return plan;
}

static uint64_t plan_fingerprint(const shape *s, int32_t threads)
{
    eplb_load *load = skewed_load(s->scenarios, s->experts);
    eplb_cluster *cluster;
    eplb_plan *plan;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.effort = s->effort;
    options.algorithm = s->algorithm;
    options.objective = s->objective;
    options.threads = threads;
    options.groups = s->groups > 0 ? s->groups : 1;
    options.node_cost = s->node_cost > 0.0 ? s->node_cost : -1.0;
    assert_ok(
        eplb_cluster_create(&cluster, NULL, s->gpus, s->slots / s->gpus, s->gpus_per_node, NULL),
        NULL);
    if (s->beam > 0) {
        plan = rebalance_spread(load, cluster, &options, s->beam);
    } else {
        assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, NULL), NULL);
    }
    uint64_t hash = fingerprint(eplb_plan_placement(plan));
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return hash;
}

static void compare_with_golden_file(int32_t threads)
{
    const char *directory = getenv("EPLB_TEST_GOLDEN");
    assert_non_null(directory);
    char *golden = test_read_file(test_join(directory, "plan_bytes.txt").text, NULL);
    for (size_t i = 0; i < SHAPES; i++) {
        char line[80];
        snprintf(line, sizeof(line), "%s %016" PRIx64 "\n", shapes[i].name,
                 plan_fingerprint(&shapes[i], threads));
        assert_contains(golden, line);
    }
    free(golden);
}

static void one_thread_plans_the_golden_bytes(void **state)
{
    (void)state;
    compare_with_golden_file(1);
}

static void two_threads_plan_the_golden_bytes(void **state)
{
    (void)state;
    compare_with_golden_file(2);
}

static void eight_threads_plan_the_golden_bytes(void **state)
{
    (void)state;
    compare_with_golden_file(8);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "print") == 0) {
        for (size_t i = 0; i < SHAPES; i++) {
            printf("%s %016" PRIx64 "\n", shapes[i].name, plan_fingerprint(&shapes[i], 1));
        }
        return EXIT_SUCCESS;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_plans_the_golden_bytes),
        cmocka_unit_test(two_threads_plan_the_golden_bytes),
        cmocka_unit_test(eight_threads_plan_the_golden_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
