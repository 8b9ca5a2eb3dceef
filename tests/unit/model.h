/* SPDX-License-Identifier: MIT */
/* Small objects of the model, made or the test fails. */
#ifndef EPLB_TESTS_MODEL_H
#define EPLB_TESTS_MODEL_H

#include "support.h"

#include <eplb/cluster.h>
#include <eplb/load.h>
#include <eplb/placement.h>

static inline eplb_cluster *make_cluster(int32_t gpus, int32_t slots_per_gpu, int32_t gpus_per_node)
{
    eplb_cluster *cluster = NULL;
    eplb_error error;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, gpus_per_node, &error),
              &error);
    return cluster;
}

static inline eplb_load *make_load(int32_t scenarios, int32_t layers, int32_t experts)
{
    eplb_load *load = NULL;
    eplb_error error;
    assert_ok(eplb_load_create(&load, NULL, scenarios, layers, experts, &error), &error);
    return load;
}

/* A placement with every slot empty. Frees the cluster, which the placement has copied. */
static inline eplb_placement *make_placement(eplb_cluster *cluster, int32_t layers, int32_t experts)
{
    eplb_placement *placement = NULL;
    eplb_error error;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, layers, experts, &error), &error);
    eplb_cluster_destroy(&cluster);
    return placement;
}

static inline void set_row(eplb_placement *placement, int32_t layer, const int32_t *row)
{
    eplb_error error;
    assert_ok(eplb_placement_set_row(placement, layer, row, &error), &error);
}

#endif
