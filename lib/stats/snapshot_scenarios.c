/* SPDX-License-Identifier: MIT */
/* Which runs of buckets become scenarios, and what they weigh. */
#include "stats/snapshot_scenarios.h"

#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/range.h"
#include "stats/snapshot.h"

#define LEAST_WEIGHT 1e-300
#define MOST_NAMED_RANKS 16

void eplb_snapshot_load_options_init(eplb_snapshot_load_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_snapshot_load_options){
        .struct_size = sizeof(*options), .buckets_per_scenario = 1, .decay = 1.0};
}

/* EPLB_ERROR_DATA that names the missing ranks. */
static eplb_status check_ranks(const eplb_snapshot *snapshot, int32_t index, eplb_error *error)
{
    int32_t missing[MOST_NAMED_RANKS];
    int32_t count = eplb_snapshot_missing_ranks(snapshot, missing, MOST_NAMED_RANKS);
    if (count == 0) {
        return EPLB_OK;
    }
    char names[12 * MOST_NAMED_RANKS + 32] = "";
    size_t length = 0;
    int32_t named = count < MOST_NAMED_RANKS ? count : MOST_NAMED_RANKS;
    for (int32_t i = 0; i < named; i++) {
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%d",
                                   i > 0 ? ", " : "", missing[i]);
    }
    if (count > named) {
        snprintf(names + length, sizeof(names) - length, " and %d more", count - named);
    }
    return eplb_error_set(error, EPLB_ERROR_DATA, "snapshot %d: of %d ranks, missing: %s", index,
                          snapshot->shape.ranks, names);
}

static eplb_status check_options(const eplb_snapshot_load_options *options, int32_t count,
                                 eplb_error *error)
{
    int32_t per_scenario = options->buckets_per_scenario;
    if (per_scenario < 1 && per_scenario != -1) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "snapshot load: %d buckets per scenario (at least 1, or -1 for all)",
                              per_scenario);
    }
    if (!(options->decay > 0.0 && options->decay <= 1.0)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "snapshot load: decay %g is not above 0 and at most 1",
                              options->decay);
    }
    for (int32_t i = 0; options->weights != NULL && i < count; i++) {
        if (!isfinite(options->weights[i]) || options->weights[i] <= 0.0) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "snapshot load: weight %d: %g is not a finite number above 0", i,
                                  options->weights[i]);
        }
    }
    return eplb_check_range("snapshot load", "allow_missing_ranks", options->allow_missing_ranks, 0,
                            1, error);
}

static eplb_status check_snapshots(const eplb_snapshot_request *r, eplb_error *error)
{
    for (int32_t i = 0; i < r->count; i++) {
        eplb_status status = eplb_check_given("snapshot load", "snapshot", r->snapshots[i], error);
        if (status == EPLB_OK) {
            status = eplb_window_shape_match_layers("snapshots", &r->snapshots[0]->shape,
                                                    &r->snapshots[i]->shape, error);
        }
        if (status == EPLB_OK && !r->options.allow_missing_ranks) {
            status = check_ranks(r->snapshots[i], i, error);
        }
        if (status != EPLB_OK) {
            return status;
        }
    }
    return EPLB_OK;
}

eplb_status eplb_snapshot_request_make(eplb_snapshot_request *r,
                                       const eplb_snapshot *const *snapshots, int32_t count,
                                       const eplb_snapshot_load_options *options, eplb_error *error)
{
    eplb_status status = eplb_check_given("snapshot load", "snapshots", snapshots, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("snapshot load", "number of snapshots", count, 1,
                                  EPLB_MAX_SCENARIOS, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    *r = (eplb_snapshot_request){.snapshots = snapshots, .count = count};
    eplb_snapshot_load_options_init(&r->options);
    if (options != NULL && !eplb_struct_in(&r->options, sizeof(r->options), options)) {
        return eplb_error_set(
            error, EPLB_ERROR_ARGUMENT,
            "snapshot load: options without struct_size: see eplb_snapshot_load_options_init");
    }
    status = check_options(&r->options, count, error);
    return status == EPLB_OK ? check_snapshots(r, error) : status;
}

/* Products, not powers: no library function decides a weight. */
static double weight_of(const eplb_snapshot_request *r, int32_t index, int64_t age)
{
    double weight = r->options.weights != NULL ? r->options.weights[index] : 1.0;
    for (int64_t i = 0; i < age; i++) {
        weight *= r->options.decay;
    }
    return weight > LEAST_WEIGHT ? weight : LEAST_WEIGHT;
}

/* Lists the scenarios of one snapshot behind the first *count ones. */
static void list_snapshot(const eplb_snapshot_request *r, int32_t index,
                          eplb_snapshot_scenario *scenarios, int32_t capacity, int32_t *count)
{
    const eplb_snapshot *snapshot = r->snapshots[index];
    int64_t buckets = snapshot->buckets;
    int64_t run =
        r->options.buckets_per_scenario == -1 ? EPLB_MAX_BUCKETS : r->options.buckets_per_scenario;
    int64_t newest = snapshot->first_bucket + buckets - 1;
    for (int64_t age = buckets > 0 ? (buckets - 1) / run * run : -1; age >= 0; age -= run) {
        eplb_snapshot_scenario scenario = {.snapshot = index, .last_bucket = newest - age};
        int64_t first = scenario.last_bucket - run + 1;
        scenario.first_bucket = first > snapshot->first_bucket ? first : snapshot->first_bucket;
        for (int64_t b = scenario.first_bucket; b <= scenario.last_bucket; b++) {
            scenario.filled_steps += eplb_snapshot_filled_steps(snapshot, b);
        }
        if (scenario.filled_steps == 0) {
            continue;
        }
        if (*count < capacity) {
            scenario.weight = weight_of(r, index, age);
            scenarios[*count] = scenario;
        }
        (*count)++;
    }
}

int32_t eplb_snapshot_request_list(const eplb_snapshot_request *r,
                                   eplb_snapshot_scenario *scenarios, int32_t capacity)
{
    int32_t count = 0;
    for (int32_t i = 0; i < r->count; i++) {
        list_snapshot(r, i, scenarios, capacity, &count);
    }
    return count;
}

eplb_status eplb_snapshot_list_scenarios(const eplb_snapshot *const *snapshots, int32_t count,
                                         const eplb_snapshot_load_options *options,
                                         eplb_snapshot_scenario *scenarios, int32_t capacity,
                                         int32_t *scenario_count, eplb_error *error)
{
    eplb_snapshot_request r;
    eplb_status status = eplb_check_given("snapshot load", "output", scenario_count, error);
    if (status == EPLB_OK) {
        status = eplb_snapshot_request_make(&r, snapshots, count, options, error);
    }
    if (status == EPLB_OK) {
        *scenario_count = eplb_snapshot_request_list(&r, scenarios, capacity);
    }
    return status;
}
