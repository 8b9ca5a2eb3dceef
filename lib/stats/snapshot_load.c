/* SPDX-License-Identifier: MIT */
/* From the sums of snapshots to the scenarios of a load. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/range.h"
#include "stats/snapshot.h"
#include "stats/snapshot_scenarios.h"

#define MOST_EXACT ((uint64_t)1 << 53)

/* Sums one layer over the buckets of a scenario into row [experts]. */
static eplb_status sum_row(const eplb_snapshot *snapshot, const eplb_snapshot_scenario *scenario,
                           int32_t layer, double *row, eplb_error *error)
{
    for (int32_t e = 0; e < snapshot->shape.experts; e++) {
        uint64_t sum = 0;
        for (int64_t b = scenario->first_bucket; b <= scenario->last_bucket; b++) {
            sum = eplb_saturating_add(sum, eplb_snapshot_row(snapshot, b, layer)[e]);
        }
        if (sum > MOST_EXACT) {
            return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                                  "snapshot load: buckets %" PRId64 "..%" PRId64
                                  ": layer %d: expert %d: %" PRIu64 " tokens are more than 2^53",
                                  scenario->first_bucket, scenario->last_bucket,
                                  snapshot->shape.layer_ids[layer], e, sum);
        }
        row[e] = (double)sum;
    }
    return EPLB_OK;
}

static eplb_status name_scenario(eplb_load *load, const eplb_hooks *hooks, int32_t index,
                                 const char *window, const eplb_snapshot_scenario *scenario,
                                 eplb_error *error)
{
    char buckets[64];
    int length = snprintf(buckets, sizeof(buckets), "bucket %" PRId64, scenario->first_bucket);
    if (scenario->last_bucket > scenario->first_bucket) {
        snprintf(buckets + length, sizeof(buckets) - (size_t)length, "..%" PRId64,
                 scenario->last_bucket);
    }
    if (window == NULL) {
        return eplb_load_set_scenario(load, index, buckets, scenario->weight, error);
    }
    size_t size = strlen(window) + sizeof(buckets) + 1;
    char *name = eplb_alloc(hooks, 1, size);
    if (name == NULL) {
        return eplb_out_of_memory(error);
    }
    snprintf(name, size, "%s %s", window, buckets);
    eplb_status status = eplb_load_set_scenario(load, index, name, scenario->weight, error);
    eplb_free(hooks, name);
    return status;
}

static eplb_status fill(eplb_load *load, const eplb_hooks *hooks, const eplb_snapshot_request *r,
                        const eplb_snapshot_scenario *scenarios, int32_t count, double *row,
                        eplb_error *error)
{
    const eplb_window_shape *shape = &r->snapshots[0]->shape;
    eplb_status status =
        eplb_load_set_layer_ids(load, shape->layer_ids, shape->model_layers, error);
    if (status == EPLB_OK && count == 0) {
        status = eplb_load_set_scenario(load, 0, "empty", 1.0, error);
    }
    for (int32_t s = 0; s < count && status == EPLB_OK; s++) {
        const eplb_snapshot *snapshot = r->snapshots[scenarios[s].snapshot];
        status = name_scenario(load, hooks, s, snapshot->shape.name, &scenarios[s], error);
        for (int32_t l = 0; l < shape->layers && status == EPLB_OK; l++) {
            status = sum_row(snapshot, &scenarios[s], l, row, error);
            if (status == EPLB_OK) {
                status = eplb_load_set_row(load, s, l, row, error);
            }
        }
    }
    return status;
}

static eplb_status make_load(eplb_load **out, const eplb_hooks *hooks,
                             const eplb_snapshot_request *r, eplb_error *error)
{
    const eplb_window_shape *shape = &r->snapshots[0]->shape;
    int32_t count = eplb_snapshot_request_list(r, NULL, 0);
    eplb_snapshot_scenario *scenarios = eplb_alloc(hooks, (size_t)count, sizeof(*scenarios));
    double *row = eplb_alloc(hooks, (size_t)shape->experts, sizeof(*row));
    eplb_load *load = NULL;
    eplb_status status = EPLB_OK;
    if (scenarios == NULL || row == NULL) {
        status = eplb_out_of_memory(error);
    }
    if (status == EPLB_OK) {
        (void)eplb_snapshot_request_list(r, scenarios, count);
        status = eplb_load_create(&load, hooks, count > 0 ? count : 1, shape->layers,
                                  shape->experts, error);
    }
    if (status == EPLB_OK) {
        status = fill(load, hooks, r, scenarios, count, row, error);
    }
    if (status != EPLB_OK) {
        eplb_load_destroy(&load);
    }
    eplb_free(hooks, scenarios);
    eplb_free(hooks, row);
    *out = load;
    return status;
}

eplb_status eplb_snapshot_load(eplb_load **out, const eplb_hooks *hooks,
                               const eplb_snapshot *const *snapshots, int32_t count,
                               const eplb_snapshot_load_options *options, eplb_error *error)
{
    if (out == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "snapshot load: no output");
    }
    *out = NULL;
    eplb_snapshot_request r;
    eplb_status status = eplb_snapshot_request_make(&r, snapshots, count, options, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    return make_load(out, &resolved, &r, error);
}
