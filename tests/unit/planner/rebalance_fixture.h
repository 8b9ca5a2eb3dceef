/* SPDX-License-Identifier: MIT */
/* Skewed loads on an even spread, to be rebalanced. Who includes it says LAYERS and SEED first. */
#ifndef EPLB_TESTS_REBALANCE_FIXTURE_H
#define EPLB_TESTS_REBALANCE_FIXTURE_H

#include "rebalancing.h"

#define EXPERTS 24
#define GPUS 6
#define SLOTS_PER_GPU 5
#define SLOTS (GPUS * SLOTS_PER_GPU)

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current;
    eplb_plan_options planning;
    eplb_rebalance_options options;
} fixture;

static int setup(void **state)
{
    fixture *f = malloc(sizeof(*f));
    f->load = skewed_load(1, LAYERS, EXPERTS, SEED);
    f->cluster = cluster_of(GPUS, SLOTS_PER_GPU, 0);
    f->current = spread_of(f->cluster, LAYERS, EXPERTS);
    eplb_plan_options_init(&f->planning);
    f->options = rebalance_defaults();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    eplb_cluster_destroy(&f->cluster);
    eplb_placement_destroy(&f->current);
    free(f);
    return 0;
}

static eplb_plan *rebalanced(const fixture *f)
{
    return rebalance_of(f->load, f->cluster, f->current, &f->planning, &f->options);
}

#endif
