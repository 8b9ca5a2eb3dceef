/* SPDX-License-Identifier: MIT */
/* The recorded map as a placement. */
#ifndef EPLB_TESTS_FORMAT_MAPS_H
#define EPLB_TESTS_FORMAT_MAPS_H

#include "reading.h"
#include "recording.h"

/* A placement of the recording's shape with the rows given; layer ids as recorded. */
static inline eplb_placement *make_placement(const int32_t rows[LAYERS][SLOTS],
                                             int32_t model_layers)
{
    eplb_cluster *cluster;
    eplb_placement *placement;
    assert_ok(eplb_cluster_create(&cluster, NULL, GPUS, SLOTS / GPUS, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, LAYERS, EXPERTS, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    assert_ok(eplb_placement_set_layer_ids(placement, recorded_layer_ids, model_layers, NULL),
              NULL);
    for (int l = 0; l < LAYERS; l++) {
        assert_ok(eplb_placement_set_row(placement, l, rows[l], NULL), NULL);
    }
    return placement;
}

/* The recorded map, with all four layers of its model known. */
static inline eplb_placement *make_recorded_placement(void)
{
    return make_placement(recorded_map, LAYERS + 1);
}

#endif
