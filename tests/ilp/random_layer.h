/* SPDX-License-Identifier: MIT */
/* Random tiny layers with rules, for exact searches and for brute force. */
#ifndef EPLB_TESTS_RANDOM_LAYER_H
#define EPLB_TESTS_RANDOM_LAYER_H

#include "instance.h"
#include "layer_task.h"
#include "property/brute_force.h"

#include "ilp/exact.h"

#define BRUTE_SLOTS (3 * BRUTE_GPUS)
#define MOST_PINS 4

/* What holds of every result is checked. */
static inline eplb_ilp_exact_result solve_exactly(const layer_task *t, int64_t nodes,
                                                  int32_t *placement)
{
    eplb_ilp_exact_result result = {.placement = placement};
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_error error;
    assert_ok(eplb_ilp_exact(&hooks, &t->task, nodes, &result, &error), &error);
    assert_close(layer_task_value(t, placement), result.value, 1e-12 * result.value);
    assert_true(result.value <= t->task.value * (1.0 + 1e-15));
    assert_true(result.lower_bound <= result.value);
    assert_true(result.proven == (result.lower_bound == result.value));
    assert_true(nodes < 0 || result.nodes <= nodes);
    return result;
}

/* A random layer with its rules, and the same for brute force. */
typedef struct random_layer {
    layer_task t;
    brute_force brute;
} random_layer;

static inline eplb_load *draw_layer_load(eplb_random *random, brute_force *b)
{
    double sum = 0.0;
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, b->scenarios, 1, b->experts, NULL), NULL);
    bool alike = draw(random, 0, 3) == 0;
    for (int32_t k = 0; k < b->scenarios; k++) {
        draw_loads(random, b->loads[k], b->experts);
        for (int32_t e = 1; alike && e < b->experts; e++) {
            b->loads[k][e] = b->loads[k][e % 2];
        }
        b->loads[k][0] += 1.0; /* some load there is */
        b->weights[k] = (double)draw(random, 1, 4);
        sum += b->weights[k];
        assert_ok(eplb_load_set_row(load, k, 0, b->loads[k], NULL), NULL);
        assert_ok(eplb_load_set_scenario(load, k, NULL, b->weights[k], NULL), NULL);
    }
    for (int32_t k = 0; k < b->scenarios; k++) {
        b->weights[k] /= sum;
    }
    return load;
}

/* Equal GPUs in half of the cases. */
static inline eplb_cluster *draw_gpus(eplb_random *random, brute_force *b)
{
    int32_t most = b->experts < 3 ? b->experts : 3;
    int32_t equal = draw(random, 1, most);
    bool uneven = draw(random, 0, 1) == 1;
    eplb_cluster *cluster = cluster_of(b->gpus, equal, 0);
    for (int32_t g = 0; g < b->gpus; g++) {
        b->slots[g] = uneven ? draw(random, g > 0 ? 0 : 1, most) : equal;
        assert_ok(eplb_cluster_set_slots(cluster, g, b->slots[g], NULL), NULL);
    }
    return cluster;
}

static inline void draw_rules(eplb_random *random, brute_force *b, eplb_plan_options *options,
                              eplb_pin *pins)
{
    eplb_plan_options_init(options);
    options->effort = draw(random, 1, 2);
    options->objective = b->largest_counts ? EPLB_OBJECTIVE_MAX_OF_MAX : EPLB_OBJECTIVE_MEAN_OF_MAX;
    options->min_replicas = draw(random, 0, 3) == 0 ? 2 : 1;
    options->max_replicas = draw(random, 0, 3) == 0 ? draw(random, 2, b->gpus) : -1;
    options->pins = pins;
    options->pin_count = draw(random, 0, 1) == 0 ? draw(random, 1, MOST_PINS) : 0;
    for (int32_t i = 0; i < options->pin_count; i++) {
        int32_t expert = draw(random, 0, b->experts - 1);
        pins[i] = (eplb_pin){.expert = expert, .gpu = draw(random, 0, b->gpus - 1)};
        b->pins[pins[i].gpu] |= 1u << pins[i].expert;
    }
    b->min_replicas = options->min_replicas;
    b->max_replicas = options->max_replicas < 0 ? b->gpus : options->max_replicas;
}

/* False when there is no placement. */
static inline bool draw_layer(random_layer *layer, uint64_t seed)
{
    eplb_random random;
    eplb_random_seed(&random, seed);
    brute_force *b = &layer->brute;
    *b = (brute_force){.best = INFINITY};
    b->experts = draw(&random, 2, BRUTE_EXPERTS);
    b->gpus = draw(&random, 2, BRUTE_GPUS);
    b->scenarios = draw(&random, 1, BRUTE_SCENARIOS);
    b->largest_counts = draw(&random, 0, 1) == 1;
    eplb_plan_options options;
    eplb_pin pins[MOST_PINS];
    eplb_load *load = draw_layer_load(&random, b);
    eplb_cluster *cluster = draw_gpus(&random, b);
    draw_rules(&random, b, &options, pins);
    bool made = layer_task_make(&layer->t, load, cluster, &options);
    if (made) {
        brute_try(b, 0);
    }
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return made;
}

#endif
