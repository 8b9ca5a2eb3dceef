/* SPDX-License-Identifier: MIT */
/* What every plan promises, on random instances, and against brute force on tiny ones. */
#include "brute_force.h"
#include "instance.h"
#include "planning.h"

#include <eplb/plan.h>

#define SEEDS 300

#define MOST_SCENARIOS 6

/* The contract of one plan: valid, bounded from below, and the same on any number of threads. */
static void check_plan(const eplb_load *load, const eplb_cluster *cluster,
                       eplb_plan_options *options)
{
    eplb_plan *plan;
    eplb_plan *other;
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, options, NULL), NULL);
    assert_ok(eplb_placement_validate(eplb_plan_placement(plan), 0, NULL), NULL);
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        eplb_plan_layer layer = layer_of(plan, l);
        assert_true(!layer.scored || layer.lower_bound >= 1.0);
        assert_true(layer.lower_bound <= layer.imbalance_after);
        assert_true(layer.stop != EPLB_STOP_OPTIMAL || !layer.scored ||
                    layer.imbalance_after <= layer.lower_bound * (1.0 + 1e-9));
    }
    options->threads = 8;
    assert_ok(eplb_plan_create(&other, NULL, load, cluster, NULL, options, NULL), NULL);
    assert_same_maps(plan, other);
    eplb_plan_destroy(&other);
    /* Again, from its own result: nothing is copied. */
    assert_ok(
        eplb_plan_create(&other, NULL, load, cluster, eplb_plan_placement(plan), options, NULL),
        NULL);
    assert_int_equal(info_of(other).copies, 0);
    assert_same_maps(plan, other);
    eplb_plan_destroy(&other);
    eplb_plan_destroy(&plan);
}

static void every_plan_keeps_its_contract(void **state)
{
    (void)state;
    int planned = 0;
    int refused = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_cluster *cluster = draw_cluster(&random);
        int32_t experts = draw(&random, 1, MOST_EXPERTS);
        eplb_load *load = draw_scenarios(&random, MOST_SCENARIOS, draw(&random, 1, 5), experts);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = draw(&random, 1, 3);
        options.objective = draw(&random, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_OBJECTIVE_SUM);
        bool fits = eplb_cluster_live_slots(cluster) >= experts;
        for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
            fits = fits && (!eplb_cluster_gpu_alive(cluster, g) ||
                            eplb_cluster_gpu_slots(cluster, g) <= experts);
        }
        if (fits) {
            check_plan(load, cluster, &options);
            planned++;
        } else {
            eplb_error error;
            eplb_plan *plan;
            assert_status(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error),
                          EPLB_ERROR_INFEASIBLE, &error);
            refused++;
        }
        eplb_load_destroy(&load);
        eplb_cluster_destroy(&cluster);
    }
    assert_true(planned > SEEDS / 4);
    assert_true(refused > SEEDS / 10);
}

static void plan_is_never_worse_than_what_it_starts_from(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        int32_t gpus = draw(&random, 2, MOST_GPUS);
        int32_t slots_per_gpu = draw(&random, 1, 4);
        int32_t experts = draw(&random, slots_per_gpu, gpus * slots_per_gpu);
        experts = experts < MOST_EXPERTS ? experts : MOST_EXPERTS;
        eplb_cluster *cluster;
        assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, 0, NULL), NULL);
        eplb_load *old_load = draw_scenarios(&random, MOST_SCENARIOS, 2, experts);
        eplb_load *new_load = draw_scenarios(&random, MOST_SCENARIOS, 2, experts);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = 3;
        options.objective = draw(&random, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_OBJECTIVE_SUM);
        eplb_plan *old_plan;
        assert_ok(eplb_plan_create(&old_plan, NULL, old_load, cluster, NULL, &options, NULL), NULL);
        options.effort = 1;
        eplb_plan *plan;
        assert_ok(eplb_plan_create(&plan, NULL, new_load, cluster, eplb_plan_placement(old_plan),
                                   &options, NULL),
                  NULL);
        for (int32_t l = 0; l < 2; l++) {
            eplb_plan_layer layer = layer_of(plan, l);
            assert_true(layer.imbalance_after <= layer.imbalance_before);
        }
        eplb_plan_destroy(&plan);
        eplb_plan_destroy(&old_plan);
        eplb_load_destroy(&new_load);
        eplb_load_destroy(&old_load);
        eplb_cluster_destroy(&cluster);
    }
}

/* Replicas of each expert within the limits, and each pin in its place. */
static void assert_rules_kept(const eplb_placement *placement, const eplb_plan_options *options)
{
    int32_t layers = eplb_placement_layers(placement);
    int32_t slots = eplb_placement_slots(placement);
    for (int32_t l = 0; l < layers; l++) {
        const int32_t *row = eplb_placement_row(placement, l);
        for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
            int32_t count = 0;
            for (int32_t s = 0; s < slots; s++) {
                count += row[s] == e ? 1 : 0;
            }
            assert_true(count >= options->min_replicas);
            assert_true(options->max_replicas < 0 || count <= options->max_replicas);
        }
        for (int32_t i = 0; i < options->pin_count; i++) {
            const eplb_pin *pin = &options->pins[i];
            const eplb_cluster *cluster = eplb_placement_cluster(placement);
            int32_t first = eplb_cluster_first_slot(cluster, pin->gpu);
            bool found = pin->layer >= 0 && pin->layer != l;
            for (int32_t s = first; s < first + eplb_cluster_gpu_slots(cluster, pin->gpu); s++) {
                found = found || row[s] == pin->expert;
            }
            assert_true(found);
        }
    }
}

static void plans_keep_their_rules(void **state)
{
    (void)state;
    int planned = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_cluster *cluster = draw_cluster(&random);
        int32_t experts = draw(&random, 1, MOST_EXPERTS);
        int32_t layers = draw(&random, 1, 3);
        eplb_load *load = draw_scenarios(&random, MOST_SCENARIOS, layers, experts);
        eplb_pin pins[3];
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = draw(&random, 1, 3);
        options.min_replicas = draw(&random, 1, 2);
        options.max_replicas = draw(&random, 0, 1) == 0 ? -1 : draw(&random, 2, 6);
        options.spread_nodes = draw(&random, 0, 1);
        options.pin_count = draw(&random, 0, 3);
        options.pins = pins;
        for (int32_t i = 0; i < options.pin_count; i++) {
            int32_t layer = draw(&random, -1, layers - 1);
            int32_t expert = draw(&random, 0, experts - 1);
            pins[i] = (eplb_pin){.layer = layer,
                                 .expert = expert,
                                 .gpu = draw(&random, 0, eplb_cluster_gpus(cluster) - 1)};
        }
        eplb_plan *plan;
        eplb_error error;
        eplb_status status = eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error);
        if (status == EPLB_OK) {
            assert_ok(eplb_placement_validate(eplb_plan_placement(plan), 0, NULL), NULL);
            assert_rules_kept(eplb_plan_placement(plan), &options);
            planned++;
        } else {
            assert_status(status, EPLB_ERROR_INFEASIBLE, &error);
        }
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
        eplb_cluster_destroy(&cluster);
    }
    print_message("%d of %d plans with rules\n", planned, SEEDS);
    assert_true(planned > SEEDS / 6);
}

#define TINY_EXPERTS 6
#define TINY_GPUS 3
#define TINY_SCENARIOS 3

static brute_force draw_tiny(eplb_random *random, int32_t least_slots, int32_t most_slots,
                             int32_t most_scenarios)
{
    brute_force b = {.best = INFINITY, .min_replicas = 1};
    b.gpus = draw(random, 2, TINY_GPUS);
    b.max_replicas = b.gpus;
    int32_t slots_per_gpu = draw(random, least_slots, most_slots);
    for (int32_t g = 0; g < b.gpus; g++) {
        b.slots[g] = slots_per_gpu;
    }
    int32_t most = b.gpus * slots_per_gpu;
    b.experts = draw(random, slots_per_gpu, most < TINY_EXPERTS ? most : TINY_EXPERTS);
    b.scenarios = draw(random, 1, most_scenarios);
    b.largest_counts = draw(random, 0, 1) == 1;
    for (int32_t k = 0; k < b.scenarios; k++) {
        draw_loads(random, b.loads[k], b.experts);
        b.loads[k][0] += 1.0; /* some load there is */
        b.weights[k] = 1.0 / b.scenarios;
    }
    brute_try(&b, 0);
    return b;
}

static eplb_plan_layer plan_tiny(const brute_force *b)
{
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_plan *plan;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.objective = b->largest_counts ? EPLB_OBJECTIVE_MAX_OF_MAX : EPLB_OBJECTIVE_MEAN_OF_MAX;
    assert_ok(eplb_load_create(&load, NULL, b->scenarios, 1, b->experts, NULL), NULL);
    for (int32_t k = 0; k < b->scenarios; k++) {
        assert_ok(eplb_load_set_row(load, k, 0, b->loads[k], NULL), NULL);
    }
    assert_ok(eplb_cluster_create(&cluster, NULL, b->gpus, b->slots[0], 0, NULL), NULL);
    assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, NULL), NULL);
    eplb_plan_layer layer = layer_of(plan, 0);
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return layer;
}

static void tiny_plans_are_those_of_brute_force(void **state)
{
    (void)state;
    int tried = 0;
    int optimal = 0;
    FOR_EACH_SEED(seed, 300)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        brute_force b = draw_tiny(&random, 1, 4, TINY_SCENARIOS);
        eplb_plan_layer layer = plan_tiny(&b);
        assert_true(layer.imbalance_after >= b.best * (1.0 - 1e-9));
        assert_true(layer.lower_bound <= b.best * (1.0 + 1e-9));
        optimal += layer.imbalance_after <= b.best * (1.0 + 1e-9);
        tried++;
    }
    print_message("%d of %d tiny plans are optimal\n", optimal, tried);
    assert_true(optimal * 100 >= tried * 99);
}

static double bound_of(const double *loads, int32_t experts, int32_t gpus, int32_t slots_per_gpu)
{
    eplb_cluster *cluster;
    double bound;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, 0, NULL), NULL);
    assert_ok(eplb_lower_bound(cluster, loads, experts, &bound, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    return bound;
}

static void no_bound_is_above_brute_force(void **state)
{
    (void)state;
    int tight = 0;
    FOR_EACH_SEED(seed, 3000)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        brute_force b = draw_tiny(&random, 2, 3, 1);
        double bound = bound_of(b.loads[0], b.experts, b.gpus, b.slots[0]);
        assert_true(bound <= b.best * (1.0 + 1e-12));
        tight += b.slots[0] == 2 && bound >= b.best * (1.0 - 1e-5);
    }
    print_message("%d bounds for two slots a GPU are the optimum\n", tight);
    assert_true(tight > 900);
}

static void no_bound_is_above_what_a_long_search_finds(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, 3)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        double loads[MOST_EXPERTS];
        int32_t gpus = draw(&random, MOST_EXPERTS / 2, MOST_EXPERTS);
        draw_loads(&random, loads, MOST_EXPERTS);
        eplb_load *load;
        eplb_cluster *cluster;
        eplb_plan *plan;
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = 9;
        assert_ok(eplb_load_create(&load, NULL, 1, 1, MOST_EXPERTS, NULL), NULL);
        assert_ok(eplb_load_set_row(load, 0, 0, loads, NULL), NULL);
        assert_ok(eplb_cluster_create(&cluster, NULL, gpus, 2, 0, NULL), NULL);
        assert_ok(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, NULL), NULL);
        double bound = bound_of(loads, MOST_EXPERTS, gpus, 2);
        assert_true(bound <= layer_of(plan, 0).imbalance_after * (1.0 + 1e-12));
        eplb_plan_destroy(&plan);
        eplb_cluster_destroy(&cluster);
        eplb_load_destroy(&load);
    }
}

TEST_MAIN(seeded_test(every_plan_keeps_its_contract),
          seeded_test(plan_is_never_worse_than_what_it_starts_from),
          seeded_test(plans_keep_their_rules), seeded_test(tiny_plans_are_those_of_brute_force),
          seeded_test(no_bound_is_above_brute_force),
          seeded_test(no_bound_is_above_what_a_long_search_finds))
